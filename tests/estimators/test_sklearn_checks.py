"""scikit-learn's own checks, whole."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from primalsvm import LinearSVC


@parametrize_with_checks([LinearSVC()])
def test_sklearn_check(estimator, check):
    check(estimator)
