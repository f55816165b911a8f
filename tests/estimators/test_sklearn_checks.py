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
    NuSVC,
    NuSVR,
    Nystroem,
    OneClassSVM,
)

CLASSIFIERS = [LinearSVC(), LinearSVC(lam=0.01), SVC(), SVC(lam=0.01), NuSVC()]
SELECTING = [LinearSVCCV(Cs=2, cv=2), SVCCV(Cs=2, gammas=2, cv=2)]
REGRESSORS = [LinearSVR(), LinearSVR(lam=0.01), SVR(), SVR(lam=0.01), NuSVR()]
RANKERS = [LinearRanker(), LinearRanker(lam=0.01)]
DETECTORS = [LinearOneClassSVM(), OneClassSVM()]


def infeasible(estimator):
    """The checks whose weights leave a class less than ν Σc/2."""
    if not isinstance(estimator, NuSVC):
        return {}
    equivalence = (f"sample_weight_equivalence_on_{rows}_data" for rows in ("dense", "sparse"))
    names = ("class_weight_classifiers", *equivalence)
    return {f"check_{name}": "specified nu is infeasible" for name in names}


@pytest.mark.filterwarnings("ignore:LinearOneClassSVM .* the rows surround the origin")  # so do those of some checks
@parametrize_with_checks(
    [*CLASSIFIERS, *SELECTING, *REGRESSORS, *RANKERS, *DETECTORS, Nystroem(), FourierFeatures()],
    expected_failed_checks=infeasible,
)
def test_sklearn_check(estimator, check):
    check(estimator)
