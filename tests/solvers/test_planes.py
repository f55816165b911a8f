"""Planes: the best bound is that of a general solver, and forgetting planes does not spoil it."""

import numpy as np
import pytest
import scipy.optimize

from primalsvm.solvers.planes import FIRST_ROOM, PATIENCE, Planes


def best_bound(h, g, lam):
    """max h·β − ‖Σ β g‖²/(2λ) over the simplex."""
    found = scipy.optimize.minimize(
        lambda beta: (beta @ g) @ (beta @ g) / (2 * lam) - h @ beta,
        np.full(len(h), 1 / len(h)),
        jac=lambda beta: g @ (beta @ g) / lam - h,
        bounds=[(0, 1)] * len(h),
        constraints={"type": "eq", "fun": lambda beta: beta.sum() - 1, "jac": lambda beta: np.ones(len(h))},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -found.fun


@pytest.mark.parametrize("lam", [1.0, 1e-2])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (6, 2), (20, 30), (40, 5)])
def test_the_bound_is_that_of_a_general_solver(n, d, lam):
    rng = np.random.default_rng(n)
    h, g = rng.random(n), rng.normal(size=(n, d)) / 5
    planes = Planes.none(d)
    for k in range(n):
        planes.add(h[k], g[k])
    bound, least = planes.bound(lam, 1e-10)
    assert bound == pytest.approx(best_bound(h, g, lam), abs=1e-8)
    model = lam / 2 * least @ least + np.max(h + g @ least)  # of which `least` is the minimiser
    assert model == pytest.approx(bound, abs=1e-8)


def test_planes_without_mass_are_forgotten_and_the_bound_stays():
    rng = np.random.default_rng(0)
    planes = Planes.none(2)
    planes.add(1.0, np.array([0.1, 0.0]))
    planes.add(1.0, np.array([-0.1, 0.0]))
    before, _ = planes.bound(0.1, 1e-12)
    for _ in range(PATIENCE + 2 * FIRST_ROOM):
        planes.add(-1.0, rng.normal(size=2) / 10)
        bound, _ = planes.bound(0.1, 1e-12)
    assert bound == pytest.approx(before, abs=1e-10) == 1.0
    assert planes.count < PATIENCE + FIRST_ROOM + 2
    assert np.flatnonzero(planes.beta[: planes.count]).tolist() == [0, 1]
