"""Kernels of decomposition methods: sequential minimal optimisation on a block of the kernel matrix.

The dual in variables v, one for each piece of each row's loss (`losses.base.QuadraticPiece`), in units of
Cᵢ = cᵢ/(λ Σc):

    min ½ βᵀKβ − Σ t A + ½ Σ κ A²,    0 ≤ A ≤ U,    βᵢ = Σ σ A over the pieces of row i,    Σ βᵢ constant

F = σ (t − κ A) − s with s = Kβ is the intercept b for which A would be optimal if it is free. A is optimal if
max F over the variables by which β can grow ≤ min F over those by which it can fall; b lies between the two.
"""

import numpy as np

from primalsvm.compiled import kernel

# A pair of rows with the same features has no curvature; it moves to a bound.
LEAST_CURVATURE = 1e-12


@kernel
def pair_steps(K, row, sign, quadratic, upper, a, F, least, most):  # type: ignore[no-untyped-def]  # compiled
    """Steps along pairs (i, j): β grows by t at i and falls by t at j (Fan, Chen and Lin 2005).

        i = argmax F over those that can grow,    j = argmax (F_i − F_j)²/q over those that can fall
        t = (F_i − F_j)/q,    q = K_ii + K_jj − 2 K_ij + κ_i + κ_j

    until the largest difference F_i − F_j is at most `least`, or after `most` steps. Updates a and F; returns the
    number of steps. K is the kernel matrix of the block, `row` the row of each variable in it (None: row v).

    Loops that vectorise are kept apart from those that look for a maximum. `closed_up` is −inf for a variable by which
    β cannot grow, `closed_down` inf for one by which it cannot fall.
    """
    n = F.shape[0]
    own = np.empty(n)  # K_vv + κ_v
    closed_up, closed_down = np.empty(n), np.empty(n)
    gain = np.empty(n)
    for v in range(n):
        own[v] = K[row_of(row, v), row_of(row, v)] + quadratic[v]
        close(v, sign, upper, a, closed_up, closed_down)
    for step in range(most):
        i = -1
        high = -np.inf
        low = np.inf
        for v in range(n):
            if F[v] + closed_up[v] > high:
                i, high = v, F[v]
        for v in range(n):
            low = min(low, F[v] + closed_down[v])
        if i < 0 or high - low <= least:
            return step
        of_i = K[row_of(row, i)]
        own_i = own[i]
        for v in range(n):
            difference = max(high - (F[v] + closed_down[v]), 0.0)
            gain[v] = difference * difference / max(own_i + own[v] - 2.0 * of_i[row_of(row, v)], LEAST_CURVATURE)
        j = -1
        best = 0.0
        for v in range(n):
            if gain[v] > best:
                j, best = v, gain[v]
        if j < 0:
            return step
        of_j = K[row_of(row, j)]
        t = (high - F[j]) / max(own_i + own[j] - 2.0 * of_i[row_of(row, j)], LEAST_CURVATURE)
        room_i = upper[i] - a[i] if sign[i] > 0 else a[i]
        room_j = a[j] if sign[j] > 0 else upper[j] - a[j]
        t = min(t, room_i, room_j)
        move(i, t, t >= room_i, sign, upper, a)
        move(j, -t, t >= room_j, sign, upper, a)
        close(i, sign, upper, a, closed_up, closed_down)
        close(j, sign, upper, a, closed_up, closed_down)
        F[i] -= quadratic[i] * t
        F[j] += quadratic[j] * t
        for v in range(n):
            F[v] -= t * (of_i[row_of(row, v)] - of_j[row_of(row, v)])
    return most


@kernel
def row_of(row, v):  # type: ignore[no-untyped-def]  # compiled
    """The row of a variable; None is decided at compile time."""
    return v if row is None else row[v]


@kernel
def move(v, t, to_bound, sign, upper, a):  # type: ignore[no-untyped-def]  # compiled
    """Let β grow by t at a variable, which is then at its bound or strictly inside."""
    if to_bound:
        a[v] = upper[v] if (t > 0) == (sign[v] > 0) else 0.0
    else:
        a[v] += t * sign[v]


@kernel
def close(v, sign, upper, a, closed_up, closed_down):  # type: ignore[no-untyped-def]  # compiled
    """Note by which variables β can grow and fall."""
    grows, falls = a[v] < upper[v], a[v] > 0
    if sign[v] < 0:
        grows, falls = falls, grows
    closed_up[v] = 0.0 if grows else -np.inf
    closed_down[v] = 0.0 if falls else np.inf


@kernel
def single_steps(K, row, sign, quadratic, upper, a, F, least, most):  # type: ignore[no-untyped-def]  # compiled
    """Steps along single variables, for problems whose Σ β is free: the one with the largest gain F²/q.

    Otherwise as `pair_steps`; K includes the constant feature of a penalised intercept.
    """
    n = F.shape[0]
    for step in range(most):
        i = -1
        best = 0.0
        worst = 0.0
        for v in range(n):
            f = F[v]
            grows = a[v] < upper[v] if sign[v] > 0 else a[v] > 0
            falls = a[v] > 0 if sign[v] > 0 else a[v] < upper[v]
            if (f > 0.0 and grows) or (f < 0.0 and falls):
                worst = max(worst, abs(f))
                gain = f * f / max(K[row_of(row, v), row_of(row, v)] + quadratic[v], LEAST_CURVATURE)
                if gain > best:
                    i, best = v, gain
        if i < 0 or worst <= least:
            return step
        of_i = K[row_of(row, i)]
        t = F[i] / max(of_i[row_of(row, i)] + quadratic[i], LEAST_CURVATURE)
        rises = (t > 0) == (sign[i] > 0)
        room = upper[i] - a[i] if rises else a[i]
        to_bound = abs(t) >= room
        t = (room if t > 0 else -room) if to_bound else t
        move(i, t, to_bound, sign, upper, a)
        F[i] -= quadratic[i] * t
        for v in range(n):
            F[v] -= t * of_i[row_of(row, v)]
    return most
