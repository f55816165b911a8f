"""Kernels of decomposition methods: sequential minimal optimisation on a block of the kernel matrix.

The dual in variables v, one for each piece of each row's loss (`losses.base.Piece`), in units of Cᵢ = cᵢ/(λ Σc):

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
    number of steps. K is the kernel matrix of the block, `row` the row of each variable in it.
    """
    n = row.shape[0]
    diagonal = np.empty(K.shape[0])
    for r in range(K.shape[0]):
        diagonal[r] = K[r, r]
    grows = np.empty(n, np.bool_)
    falls = np.empty(n, np.bool_)
    for v in range(n):
        grows[v] = a[v] < upper[v] if sign[v] > 0 else a[v] > 0
        falls[v] = a[v] > 0 if sign[v] > 0 else a[v] < upper[v]
    i = -1
    high = -np.inf
    for v in range(n):
        if grows[v] and F[v] > high:
            i, high = v, F[v]
    for step in range(most):
        if i < 0:
            return step
        j = -1
        best = 0.0
        low = np.inf
        of_i = K[row[i]]
        for v in range(n):
            if falls[v]:
                f = F[v]
                if f < low:
                    low = f
                difference = high - f
                if difference > 0.0:
                    q = diagonal[row[i]] + diagonal[row[v]] - 2.0 * of_i[row[v]] + quadratic[i] + quadratic[v]
                    gain = difference * difference / max(q, LEAST_CURVATURE)
                    if gain > best:
                        j, best = v, gain
        if j < 0 or high - low <= least:
            return step
        of_j = K[row[j]]
        q = diagonal[row[i]] + diagonal[row[j]] - 2.0 * of_i[row[j]] + quadratic[i] + quadratic[j]
        t = (high - F[j]) / max(q, LEAST_CURVATURE)
        room_i = upper[i] - a[i] if sign[i] > 0 else a[i]
        room_j = a[j] if sign[j] > 0 else upper[j] - a[j]
        t = min(t, room_i, room_j)
        _move(i, t, t >= room_i, sign, upper, a, grows, falls)
        _move(j, -t, t >= room_j, sign, upper, a, grows, falls)
        F[i] -= quadratic[i] * t
        F[j] += quadratic[j] * t
        i = -1
        high = -np.inf
        for v in range(n):
            F[v] -= t * (of_i[row[v]] - of_j[row[v]])
            if grows[v] and F[v] > high:
                i, high = v, F[v]
    return most


@kernel
def _move(v, t, to_bound, sign, upper, a, grows, falls):  # type: ignore[no-untyped-def]  # compiled
    """Let β grow by t at a variable, which is then at its bound or strictly inside."""
    rises = (t > 0) == (sign[v] > 0)
    if to_bound:
        a[v] = upper[v] if rises else 0.0
    else:
        a[v] += t * sign[v]
    grows[v] = a[v] < upper[v] if sign[v] > 0 else a[v] > 0
    falls[v] = a[v] > 0 if sign[v] > 0 else a[v] < upper[v]


@kernel
def single_steps(K, row, sign, quadratic, upper, a, F, least, most):  # type: ignore[no-untyped-def]  # compiled
    """Steps along single variables, for problems whose Σ β is free: the one with the largest gain F²/q.

    Otherwise as `pair_steps`; K includes the constant feature of a penalised intercept.
    """
    n = row.shape[0]
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
                gain = f * f / max(K[row[v], row[v]] + quadratic[v], LEAST_CURVATURE)
                if gain > best:
                    i, best = v, gain
        if i < 0 or worst <= least:
            return step
        t = F[i] / max(K[row[i], row[i]] + quadratic[i], LEAST_CURVATURE)
        rises = (t > 0) == (sign[i] > 0)
        room = upper[i] - a[i] if rises else a[i]
        if abs(t) >= room:
            t = room if t > 0 else -room
            a[i] = upper[i] if rises else 0.0
        else:
            a[i] += t * sign[i]
        F[i] -= quadratic[i] * t
        of_i = K[row[i]]
        for v in range(n):
            F[v] -= t * of_i[row[v]]
    return most


@kernel
def add_rows(values, places, coefficients, start, stop, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i] += Σⱼ coefficientⱼ · values[placeⱼ, i] for start ≤ i < stop, in double precision."""
    for first in range(start, stop, 1024):
        last = min(first + 1024, stop)
        part = out[first:last]
        for j in range(places.shape[0]):
            c = coefficients[j]
            line = values[places[j], first:last]
            for i in range(part.shape[0]):
                part[i] += c * line[i]
