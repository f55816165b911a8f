"""Regression losses: value, slope, conjugate and dual step belong together, in Python and compiled."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import minimize_scalar

from primalsvm.losses import (
    EpsilonInsensitive,
    Huber,
    Pinball,
    SquaredEpsilonInsensitive,
    check_loss,
    conjugate,
    conjugate_curvature,
    dual_step,
    feasible,
    slope,
    value,
)

LOSSES = [
    EpsilonInsensitive(0.0),
    EpsilonInsensitive(0.3),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(0.3),
    Huber(0.7),
    Pinball(0.5),
    Pinball(0.9),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
numbers = st.floats(-30, 30)
shares = st.floats(0, 1)
GRID = np.linspace(-80, 80, 16001)


def formula(loss, p, y):
    """ℓ in plain NumPy."""
    r = np.abs(p - y)
    if isinstance(loss, EpsilonInsensitive):
        return np.maximum(0, r - loss.epsilon)
    if isinstance(loss, SquaredEpsilonInsensitive):
        return np.maximum(0, r - loss.epsilon) ** 2
    if isinstance(loss, Huber):
        return np.where(r <= loss.delta, r**2 / 2, loss.delta * (r - loss.delta / 2))
    return np.where(y > p, loss.tau, 1 - loss.tau) * r


def domain(loss):
    """The ends of α's domain; ±20 where there are none."""
    if isinstance(loss, Pinball):
        return loss.tau - 1, loss.tau
    end = {EpsilonInsensitive: 1.0, Huber: getattr(loss, "delta", 0.0), SquaredEpsilonInsensitive: 20.0}[type(loss)]
    return -end, end


def inside(loss, share):
    low, high = domain(loss)
    return min(max(low + share * (high - low), low), high)


@each_loss
@given(p=numbers, y=numbers)
def test_value_is_the_formula(loss, p, y):
    assert loss.value(p, y) == pytest.approx(float(formula(loss, p, y)), rel=1e-13, abs=1e-15)


@each_loss
@given(p=numbers, q=numbers, y=numbers)
def test_slope_is_a_subgradient_within_its_bounds(loss, p, q, y):
    below = loss.value(p, y) + loss.slope(p, y) * (q - p)
    assert loss.value(q, y) >= below - 1e-11 * (1 + abs(below))
    assert abs(loss.slope(p, y)) <= loss.slope_bound
    if loss.curvature < np.inf:
        assert abs(loss.slope(p, y) - loss.slope(q, y)) <= loss.curvature * abs(p - q) * (1 + 1e-12) + 1e-12


@each_loss
@given(p=numbers, y=numbers, share=shares)
def test_fenchel_young(loss, p, y, share):
    a = -inside(loss, share)
    assert loss.value(p, y) + loss.conjugate(a, y) >= a * p - 1e-11 * (1 + abs(a * p))
    at_slope = loss.slope(p, y)
    assert loss.value(p, y) + loss.conjugate(at_slope, y) == pytest.approx(at_slope * p, rel=1e-11, abs=1e-10)


@each_loss
@pytest.mark.parametrize("y", [-3.0, 0.0, 2.5])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.77, 1.0])
def test_conjugate_is_the_supremum(loss, y, share):
    a = -inside(loss, share)
    best = minimize_scalar(
        lambda p: loss.value(p, y) - a * p, bounds=(-80, 80), method="bounded", options={"xatol": 1e-9}
    )
    sup = max(-best.fun, (a * GRID - formula(loss, GRID, y)).max())
    assert loss.conjugate(a, y) == pytest.approx(sup, abs=1e-7)


@each_loss
@given(beyond=st.floats(0.01, 5), y=numbers)
def test_conjugate_is_infinite_outside_its_domain(loss, beyond, y):
    if isinstance(loss, SquaredEpsilonInsensitive):
        assert np.isfinite(loss.conjugate(beyond, y))
    else:
        low, high = domain(loss)
        assert loss.conjugate(-(high + beyond), y) == np.inf == loss.conjugate(-(low - beyond), y)


@each_loss
@given(p=numbers, y=numbers, share=shares, q=st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))
@example(p=0.5, y=0.5, share=0.3, q=0.0)
@example(p=0.5, y=0.8, share=0.5, q=1.0)
def test_dual_step_is_the_best(loss, p, y, share, q):
    alpha = inside(loss, share)

    def gain(new):
        return -loss.conjugate(-new, y) - p * (new - alpha) - q / 2 * (new - alpha) ** 2

    new = loss.dual_step(p, y, alpha, q)
    low, high = domain(loss)
    if isinstance(loss, SquaredEpsilonInsensitive):
        low, high = -200.0, 200.0
    assert low <= new <= high
    sought = minimize_scalar(lambda a: -gain(a), bounds=(low, high), method="bounded", options={"xatol": 1e-10})
    best = max(-sought.fun, *(gain(a) for a in np.linspace(low, high, 101)))
    assert gain(new) >= best - 1e-9 * (1 + abs(best) + abs(p) + abs(y) + q)


@each_loss
@given(alpha=st.floats(-5, 5), y=numbers, share=shares)
def test_feasible_is_the_nearest_feasible_point(loss, alpha, y, share):
    near = loss.feasible(alpha, y)
    assert np.isfinite(loss.conjugate(-near, y)) and loss.feasible(near, y) == near
    assert abs(near - alpha) <= abs(inside(loss, share) - alpha)


@each_loss
@given(p=numbers, y=numbers, s=st.floats(0.1, 10))
def test_scaled(loss, p, y, s):
    scaled = loss.scaled(s).value(p / s, y / s) * s**loss.degree
    assert scaled == pytest.approx(loss.value(p, y), rel=1e-11, abs=1e-11)


@njit
def tabulate(loss, p, y, alpha, q, out):
    for i in range(p.shape[0]):
        out[i, 0] = value(loss, p[i], y[i])
        out[i, 1] = slope(loss, p[i], y[i])
        out[i, 2] = conjugate(loss, -alpha[i], y[i])
        out[i, 3] = feasible(loss, p[i], y[i])
        out[i, 4] = dual_step(loss, p[i], y[i], alpha[i], q[i])
        out[i, 5] = conjugate_curvature(loss, -alpha[i], y[i])


@each_loss
def test_compiled_equals_python(loss):
    rng = np.random.default_rng(0)
    n = 500
    p, y, alpha = rng.normal(scale=3, size=n), rng.normal(scale=3, size=n), rng.uniform(-1.3, 1.3, size=n)
    q = rng.choice([0.0, 0.1, 7.0], size=n)
    p[:3] = y[:3]
    compiled, plain = np.empty((n, 6)), np.empty((n, 6))
    tabulate(loss, p, y, alpha, q, compiled)
    tabulate.py_func(loss, p, y, alpha, q, plain)
    np.testing.assert_allclose(compiled, plain, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (EpsilonInsensitive(-0.1), "epsilon must be finite and not negative"),
        (SquaredEpsilonInsensitive(np.inf), "epsilon must be finite and not negative"),
        (Huber(0.0), "delta must be positive and finite"),
        (Pinball(1.0), "tau must be between 0 and 1"),
        (Pinball(np.nan), "tau must be between 0 and 1"),
    ],
    ids=repr,
)
def test_numbers_that_make_no_loss_are_refused(loss, said):
    with pytest.raises(ValueError, match=said):
        check_loss(loss)
