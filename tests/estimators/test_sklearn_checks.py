"""scikit-learn's own checks, whole."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from primalsvm import (
    SVC,
    SVCCV,
    SVR,
    FourierFeatures,
    LinearOneClassSVM,
    LinearRanker,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    Nystroem,
    OneClassSVM,
)

CLASSIFIERS = [LinearSVC(), LinearSVC(lam=0.01), SVC(), SVC(lam=0.01)]
SELECTING = [LinearSVCCV(Cs=2, cv=2), SVCCV(Cs=2, gammas=2, cv=2)]
REGRESSORS = [LinearSVR(), LinearSVR(lam=0.01), SVR(), SVR(lam=0.01)]
RANKERS = [LinearRanker(), LinearRanker(lam=0.01)]
DETECTORS = [LinearOneClassSVM(), OneClassSVM()]


@pytest.mark.filterwarnings("ignore:LinearOneClassSVM .* the rows surround the origin")  # so do those of some checks
@parametrize_with_checks([*CLASSIFIERS, *SELECTING, *REGRESSORS, *RANKERS, *DETECTORS, Nystroem(), FourierFeatures()])
def test_sklearn_check(estimator, check):
    check(estimator)
