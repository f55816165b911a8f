"""scikit-learn's own checks, whole."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from primalsvm import (
    SVC,
    SVR,
    FourierFeatures,
    LinearOneClassSVM,
    LinearRanker,
    LinearSVC,
    LinearSVR,
    Nystroem,
    OneClassSVM,
)

CLASSIFIERS = [LinearSVC(), LinearSVC(lam=0.01), SVC(), SVC(lam=0.01)]
REGRESSORS = [LinearSVR(), LinearSVR(lam=0.01), SVR(), SVR(lam=0.01)]
RANKERS = [LinearRanker(), LinearRanker(lam=0.01)]
DETECTORS = [LinearOneClassSVM(), OneClassSVM()]


@pytest.mark.filterwarnings("ignore:LinearOneClassSVM .* the rows surround the origin")  # so do those of some checks
@parametrize_with_checks([*CLASSIFIERS, *REGRESSORS, *RANKERS, *DETECTORS, Nystroem(), FourierFeatures()])
def test_sklearn_check(estimator, check):
    check(estimator)
