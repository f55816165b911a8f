"""The one-class loss: value, slope, conjugate and dual step belong together, in Python and compiled."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

from primalsvm.losses import OneSided, conjugate, dual_step, feasible, slope, value

LOSS = OneSided()
numbers = st.floats(-30, 30)
shares = st.floats(0, 1)
GRID = np.linspace(0, 1, 2001)


@given(p=numbers, q=numbers)
def test_slope_is_a_subgradient_of_the_formula(p, q):
    assert LOSS.value(p, 0.0) == max(0.0, -p)
    assert LOSS.value(q, 0.0) >= LOSS.value(p, 0.0) + LOSS.slope(p, 0.0) * (q - p) - 1e-13
    assert abs(LOSS.slope(p, 0.0)) <= LOSS.slope_bound


@given(p=numbers, alpha=shares)
def test_conjugate_is_the_supremum(p, alpha):
    """Fenchel-Young, with equality at the slope; nothing is feasible outside [0, 1]."""
    assert LOSS.value(p, 0.0) + LOSS.conjugate(-alpha, 0.0) >= -alpha * p - 1e-13
    at = LOSS.slope(p, 0.0)
    assert LOSS.value(p, 0.0) + LOSS.conjugate(at, 0.0) == pytest.approx(at * p, abs=1e-13)
    assert LOSS.conjugate(0.1, 0.0) == LOSS.conjugate(-1.1, 0.0) == np.inf
    assert (LOSS.feasible(-0.5, 0.0), LOSS.feasible(alpha, 0.0), LOSS.feasible(2.0, 0.0)) == (0.0, alpha, 1.0)


@given(p=numbers, alpha=shares, q=st.floats(0, 50))
@example(p=0.0, alpha=0.3, q=0.0)
def test_dual_step_is_the_best(p, alpha, q):
    def gain(a):
        return -p * (a - alpha) - q / 2 * (a - alpha) ** 2

    found = LOSS.dual_step(p, 0.0, alpha, q)
    assert 0.0 <= found <= 1.0
    assert gain(found) >= gain(GRID).max() - 1e-12


def test_compiled_kernels_mean_the_same():
    @njit
    def all_of(loss, p, a, q):
        return (
            value(loss, p, 0.0), slope(loss, p, 0.0), conjugate(loss, -a, 0.0), feasible(loss, a, 0.0),
            dual_step(loss, p, 0.0, a, q),
        )  # fmt: skip

    for p, a, q in [(-1.5, 0.25, 2.0), (0.0, 0.5, 0.0), (3.0, 1.0, 0.1)]:
        assert all_of(LOSS, p, a, q) == all_of.py_func(LOSS, p, a, q)
