"""Warm starts of exact machines: whatever changes between two fits, P ≥ D and the constraint on Σ β hold."""

import numpy as np
import pytest

from primalsvm import SVC, SVR, OneClassSVM

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
SIDES = (X[:, 0] * X[:, 1] > 0.1 * RNG.normal(size=120)).astype(int)
CLASSES = SIDES + (X[:, 2] > 0.5)
NUMBERS = np.sin(2.0 * X[:, 0]) + X[:, 1]
WEIGHTS = RNG.integers(0, 3, size=120).astype(float)
GIVEN = {"gamma": 0.5, "warm_start": True}

CHANGES = {
    "other labels": (SVC(**GIVEN), SIDES, {}, 1 - SIDES, {}, None),
    "some other labels": (SVC(**GIVEN), SIDES, {}, np.where(X[:, 2] > 1.0, 1, SIDES), {}, None),
    "other classes": (SVC(**GIVEN), CLASSES, {}, (CLASSES + 1) % 3, {}, None),
    "a larger C": (SVC(**GIVEN), SIDES, {"C": 0.1}, SIDES, {"C": 50.0}, None),
    "a smaller C": (SVC(**GIVEN), CLASSES, {"C": 50.0}, CLASSES, {"C": 0.1}, None),
    "weights": (SVC(**GIVEN), SIDES, {}, SIDES, {}, WEIGHTS),
    "another kernel": (SVC(**GIVEN), SIDES, {}, SIDES, {"gamma": 3.0}, None),
    "numbers": (SVR(**GIVEN), NUMBERS, {}, NUMBERS + 0.1 * X[:, 2], {}, WEIGHTS),
    "epsilon": (SVR(**GIVEN), NUMBERS, {"epsilon": 0.5}, NUMBERS, {"epsilon": 0.01}, None),
    "a larger nu": (OneClassSVM(**GIVEN), None, {"nu": 0.2}, None, {"nu": 0.8}, None),
    "a smaller nu": (OneClassSVM(**GIVEN), None, {"nu": 0.8}, None, {"nu": 0.2}, WEIGHTS),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_warm_start_has_a_sound_certificate_and_the_solution_of_a_cold_one(name):
    estimator, y, first, other, second, weight = CHANGES[name]
    warm = estimator.set_params(approximation="exact", tol=1e-8, **first).fit(X, y)
    warm.set_params(**second).fit(X, other, sample_weight=weight)
    cold = type(estimator)(**{**warm.get_params(), "warm_start": False}).fit(X, other, sample_weight=weight)
    for proof in warm.certificates_:
        assert -1e-10 <= proof.relative_gap <= 1e-8
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-7)
    scores = [one.predict(X) if y is NUMBERS else one.decision_function(X) for one in (warm, cold)]
    np.testing.assert_allclose(*scores, atol=1e-4)
    total = warm.nu * (X.shape[0] if weight is None else weight.sum()) if isinstance(warm, OneClassSVM) else 0.0
    if warm.dual_coef_.shape[0] == 1:
        assert warm.dual_coef_.sum() == pytest.approx(total, abs=1e-8)
