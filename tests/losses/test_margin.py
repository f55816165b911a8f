"""Losses: value, slope, conjugate and dual step belong together, in Python and compiled."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import minimize_scalar

from primalsvm.losses import (
    Hinge,
    Logistic,
    SmoothedHinge,
    SquaredHinge,
    by_name,
    conjugate,
    dual_step,
    feasible,
    slope,
    value,
)
from tests.reference import LOSSES, dual_values, loss_slopes, loss_values

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
scores = st.floats(-30, 30)
labels = st.sampled_from([-1.0, 1.0])
shares = st.floats(0, 1)  # θ
GRID = np.linspace(-40, 40, 8001)


def largest_theta(loss):
    return 8.0 if isinstance(loss, SquaredHinge) else 1.0


@each_loss
@given(p=scores, y=labels)
@example(p=1.0, y=1.0)
@example(p=-1.0, y=-1.0)
def test_value_and_slope_are_the_formulas(loss, p, y):
    assert loss.value(p, y) == pytest.approx(float(loss_values(loss, np.float64(p), y)), rel=1e-13, abs=1e-15)
    assert loss.slope(p, y) == pytest.approx(float(loss_slopes(loss, np.float64(p), y)), rel=1e-13, abs=1e-15)


@each_loss
@given(p=scores, q=scores, y=labels)
@example(p=1.0, q=0.999, y=1.0)
def test_slope_is_a_subgradient(loss, p, q, y):
    below = loss.value(p, y) + loss.slope(p, y) * (q - p)
    assert loss.value(q, y) >= below - 1e-12 * (1 + abs(below))


@each_loss
@given(p=scores, q=scores, y=labels)
def test_slope_bound_and_curvature_hold(loss, p, q, y):
    assert abs(loss.slope(p, y)) <= loss.slope_bound
    if loss.curvature < np.inf:
        assert abs(loss.slope(p, y) - loss.slope(q, y)) <= loss.curvature * abs(p - q) * (1 + 1e-12) + 1e-15


@each_loss
def test_slope_bound_and_curvature_are_tight(loss):
    slopes = np.array([loss.slope(p, 1.0) for p in GRID])
    assert np.abs(slopes).max() == pytest.approx(loss.slope_bound) or loss.slope_bound == np.inf
    steepest = np.abs(np.diff(slopes) / np.diff(GRID)).max()
    assert steepest == pytest.approx(loss.curvature, rel=1e-3) or loss.curvature == np.inf


@each_loss
@given(p=scores, share=shares, y=labels)
def test_fenchel_young(loss, p, share, y):
    a = -y * share * largest_theta(loss)
    assert loss.value(p, y) + loss.conjugate(a, y) >= a * p - 1e-12 * (1 + abs(a * p))


@each_loss
@given(p=scores, y=labels)
@example(p=1.0, y=1.0)
@example(p=0.5, y=1.0)
def test_fenchel_young_is_an_equality_at_the_slope(loss, p, y):
    a = loss.slope(p, y)
    assert loss.value(p, y) + loss.conjugate(a, y) == pytest.approx(a * p, rel=1e-12, abs=1e-12)


@each_loss
@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.8, 1.0])
def test_conjugate_is_the_supremum(loss, y, share):
    a = -y * share * largest_theta(loss)
    if isinstance(loss, Logistic) and share in (0.0, 1.0):  # reached at ±infinity only
        assert loss.conjugate(a, y) == 0.0
        return
    best = minimize_scalar(
        lambda p: loss.value(p, y) - a * p, bounds=(-40, 40), method="bounded", options={"xatol": 1e-9}
    )
    sup = max(-best.fun, (a * GRID - loss_values(loss, GRID, y)).max())
    assert loss.conjugate(a, y) == pytest.approx(sup, abs=1e-9)


@each_loss
@given(outside=st.floats(0.01, 5), y=labels)
def test_conjugate_is_infinite_outside_its_domain(loss, outside, y):
    thetas = [-outside] if isinstance(loss, SquaredHinge) else [-outside, 1 + outside]
    for theta in thetas:
        a = -y * theta
        assert max(a * p - loss.value(p, y) for p in (-1e6, 1e6)) > 1e3  # the supremum has no end …
        assert loss.conjugate(a, y) == np.inf


def step_gain(loss, p, y, alpha, q, new):
    """What `dual_step` maximises."""
    return dual_values(loss, new, y) - p * (new - alpha) - q / 2 * (new - alpha) ** 2


@each_loss
@given(p=scores, y=labels, share=shares, q=st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
@example(p=0.5, y=1.0, share=0.3, q=0.0)
@example(p=2.0, y=-1.0, share=1.0, q=0.0)
@example(p=3.0, y=-1.0, share=0.0, q=26.0)  # a plain Newton iteration for the logistic loss cycles here
def test_dual_step_is_the_best(loss, p, y, share, q):
    largest = max(largest_theta(loss), 100.0 if isinstance(loss, SquaredHinge) else 0.0)
    alpha = y * share * largest_theta(loss)
    new = loss.dual_step(p, y, alpha, q)
    assert 0.0 <= y * new <= largest
    gain = step_gain(loss, p, y, alpha, q, new)
    others = y * np.linspace(0, largest, 2001)
    sought = minimize_scalar(
        lambda theta: -step_gain(loss, p, y, alpha, q, y * theta),
        bounds=(0, largest),
        method="bounded",
        options={"xatol": 1e-10},
    )
    best = max(step_gain(loss, p, y, alpha, q, others).max(), -sought.fun)
    assert gain >= best - 1e-12 * (1 + abs(best) + abs(p) + q)
    assert gain <= best + 1e-6 * (1 + abs(best) + q)  # … and the search did find a comparable point


@each_loss
@given(p=st.floats(-1e4, 1e4), y=labels, share=shares, q=st.floats(0, 1e8))
def test_dual_step_stays_feasible_far_out(loss, p, y, share, q):
    assert np.isfinite(loss.conjugate(-loss.dual_step(p, y, y * share, q), y))


@each_loss
@given(alpha=st.floats(-5, 5), y=labels, share=shares)
def test_feasible_is_the_nearest_feasible_point(loss, alpha, y, share):
    near = loss.feasible(alpha, y)
    assert np.isfinite(loss.conjugate(-near, y))
    assert loss.feasible(near, y) == near
    assert abs(near - alpha) <= abs(y * share * largest_theta(loss) - alpha)


@njit
def tabulate(loss, p, y, theta, q, out):
    for i in range(p.shape[0]):
        out[i, 0] = value(loss, p[i], y[i])
        out[i, 1] = slope(loss, p[i], y[i])
        out[i, 2] = conjugate(loss, -y[i] * theta[i], y[i])
        out[i, 3] = feasible(loss, p[i], y[i])
        out[i, 4] = dual_step(loss, p[i], y[i], y[i] * abs(theta[i]), q[i])


@each_loss
def test_compiled_equals_python(loss):
    rng = np.random.default_rng(0)
    n = 500
    p, theta, q = rng.normal(scale=3, size=n), rng.uniform(-0.3, 1.3, size=n), rng.choice([0.0, 0.1, 7.0], size=n)
    y = rng.choice([-1.0, 1.0], size=n)
    p[:4], theta[:4] = [1.0, -1.0, 0.0, 0.5], [0.0, 1.0, -1.0, 0.5]
    compiled, plain = np.empty((n, 5)), np.empty((n, 5))
    tabulate(loss, p, y, theta, q, compiled)
    tabulate.py_func(loss, p, y, theta, q, plain)
    np.testing.assert_allclose(compiled, plain, rtol=1e-13, atol=1e-15)
    assert np.isinf(plain[:, 2]).any() and np.isfinite(plain[:, 2]).any()


def test_names():
    assert by_name("squared_hinge") == SquaredHinge() and isinstance(by_name("squared_hinge"), SquaredHinge)
    given_loss = SmoothedHinge(0.25)
    assert by_name(given_loss) is given_loss
    with pytest.raises(ValueError, match=r"'huber' is not known.*hinge"):
        by_name("huber")


def test_smoothed_hinge_tends_to_the_hinge():
    values = [SmoothedHinge(1e-9).value(p, 1.0) for p in (-1.0, 0.0, 0.5, 1.0, 2.0)]
    np.testing.assert_allclose(values, [Hinge().value(p, 1.0) for p in (-1.0, 0.0, 0.5, 1.0, 2.0)], atol=1e-9)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan])
def test_a_smoothed_hinge_without_width_is_refused(gamma):
    from primalsvm import Problem, solve

    with pytest.raises(ValueError, match="gamma"):
        solve(Problem(SmoothedHinge(gamma), lam=0.1), np.eye(2), [1, -1])
