"""Sequential minimal optimisation for ν-problems: Σ A is constant on each of two sides, so pairs are of one side.

The symbols are those of `smo`. The variables of the positive side (σ = 1) come first. F of a free variable is b + δ on
the positive side and b − δ on the negative one.
"""

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.solvers.smo import LEAST_CURVATURE, close, move, row_of


@kernel
def side_steps(K, row, sign, upper, a, F, least, most):  # type: ignore[no-untyped-def]  # compiled
    """Steps along the pair of one side that gains most (Chang and Lin 2001): β grows by t at i and falls by t at j.

    Of each side i = argmax F over those that can grow, and j has the largest (F_i − F_j)²/q; the better of the two
    pairs moves. The steps end when the difference F_i − F_j is at most `least` on both sides, or after `most` of them.
    Updates a and F; returns the number of steps.
    """
    n = F.shape[0]
    split = 0
    own = np.empty(n)  # K_vv
    closed_up, closed_down, gain = np.empty(n), np.empty(n), np.empty(n)
    for v in range(n):
        split += sign[v] > 0
        own[v] = K[row_of(row, v), row_of(row, v)]
        close(v, sign, upper, a, closed_up, closed_down)
    for step in range(most):
        i, j, best, worst = pair_of(K, row, own, F, closed_up, closed_down, gain, 0, split)
        other_i, other_j, other, violation = pair_of(K, row, own, F, closed_up, closed_down, gain, split, n)
        if max(worst, violation) <= least:
            return step
        if other > best:
            i, j = other_i, other_j
        if j < 0:
            return step
        of_i, of_j = K[row_of(row, i)], K[row_of(row, j)]
        t = (F[i] - F[j]) / max(own[i] + own[j] - 2.0 * of_i[row_of(row, j)], LEAST_CURVATURE)
        room_i = upper[i] - a[i] if sign[i] > 0 else a[i]
        room_j = a[j] if sign[j] > 0 else upper[j] - a[j]
        t = min(t, room_i, room_j)
        move(i, t, t >= room_i, sign, upper, a)
        move(j, -t, t >= room_j, sign, upper, a)
        close(i, sign, upper, a, closed_up, closed_down)
        close(j, sign, upper, a, closed_up, closed_down)
        for v in range(n):
            F[v] -= t * (of_i[row_of(row, v)] - of_j[row_of(row, v)])
    return most


@kernel
def pair_of(K, row, own, F, closed_up, closed_down, gain, start, stop):  # type: ignore[no-untyped-def]  # compiled
    """The pair (i, j) of one side, its gain, and the largest difference F_i − F_j; −1 for no such variable."""
    i, j = -1, -1
    high, low = -np.inf, np.inf
    for v in range(start, stop):
        if F[v] + closed_up[v] > high:
            i, high = v, F[v]
    for v in range(start, stop):
        low = min(low, F[v] + closed_down[v])
    if i < 0 or not high > low:
        return -1, -1, 0.0, 0.0
    of_i = K[row_of(row, i)]
    own_i = own[i]
    for v in range(start, stop):
        difference = max(high - (F[v] + closed_down[v]), 0.0)
        gain[v] = difference * difference / max(own_i + own[v] - 2.0 * of_i[row_of(row, v)], LEAST_CURVATURE)
    best = 0.0
    for v in range(start, stop):
        if gain[v] > best:
            j, best = v, gain[v]
    return i, j, best, high - low


@kernel
def permuted(K, order):  # type: ignore[no-untyped-def]  # compiled
    """K with its rows and columns in another order; a fifth of the time of `K[np.ix_(order, order)]`."""
    n = order.shape[0]
    out = np.empty((n, n))
    for a in range(n):
        line = K[order[a]]
        for b in range(n):
            out[a, b] = line[order[b]]
    return out
