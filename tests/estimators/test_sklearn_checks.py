"""scikit-learn's own checks, whole."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from primalsvm import SVC, SVR, FourierFeatures, LinearRanker, LinearSVC, LinearSVR, Nystroem

CLASSIFIERS = [LinearSVC(), LinearSVC(lam=0.01), SVC(), SVC(lam=0.01)]
REGRESSORS = [LinearSVR(), LinearSVR(lam=0.01), SVR(), SVR(lam=0.01)]
RANKERS = [LinearRanker(), LinearRanker(lam=0.01)]


@parametrize_with_checks([*CLASSIFIERS, *REGRESSORS, *RANKERS, Nystroem(), FourierFeatures()])
def test_sklearn_check(estimator, check):
    check(estimator)
