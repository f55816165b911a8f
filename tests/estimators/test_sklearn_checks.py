"""scikit-learn's own checks, whole."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from primalsvm import SVC, FourierFeatures, LinearSVC, Nystroem


@parametrize_with_checks([LinearSVC(), LinearSVC(lam=0.01), SVC(), SVC(lam=0.01), Nystroem(), FourierFeatures()])
def test_sklearn_check(estimator, check):
    check(estimator)
