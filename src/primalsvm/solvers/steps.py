"""Stochastic sub-gradient steps, compiled.

    for t = 1, 2, …, T:
        choose A_t of k rows
        w ← (1 − η_t λ) w − (η_t/k) Σ_{i ∈ A_t} (cᵢ/c̄) ℓ'(yᵢ, ⟨w, xᵢ⟩ + b) xᵢ,   projected onto a ball if requested

Sparse steps. w = a v with ‖w‖² kept beside it (Pegasos, end of section 2): shrinking and projecting change a and ‖w‖²,
adding a row touches its non-zeros. Averages are kept the same way: Σ ω_s w_s = γ v + u with γ = Σ ω_s a_s, so that
adding δ to v takes γ δ from u.
"""

from typing import NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import add, dot, prefetch, prefetch_pointer, prefetch_row, squared_norm, weight_of
from primalsvm.losses import slope
from primalsvm.solvers.order import POINTER_PREFETCH_DISTANCE, PREFETCH_DISTANCE

# v is rescaled when a falls below this: seldom, but well before single precision is affected.
LEAST_SCALE = 1e-9
# The weight of an iterate in an average: 1, t, or the length of the step before it.
EQUAL, RISING, BY_STEP = range(3)


class Settings(NamedTuple):
    """Scalars that do not change during a run."""

    lam: float
    offset: float  # t₀ in η = 1/(λ(t + t₀))
    root_step: float  # if positive, η = root_step/√t instead
    radius: float  # of the ball; inf without projection
    constant: float  # value of the constant feature: 1 for a penalised intercept, else 0
    intercept_step: float  # a free intercept moves by this/√t; else 0
    intercept_bound: float  # B
    mean_weight: float  # c̄
    weighting: int
    nu: float = 0.0  # ν of the one-class problem: a further slope in b


class Iterate(NamedTuple):
    """The scalars of w_t = a v and of its average (γ v + u)/mass."""

    t: int = 0
    a: float = 1.0
    square: float = 0.0  # ‖w‖²
    bias: float = 0.0  # v's entry for the constant feature
    b: float = 0.0  # the free intercept
    mass: float = 0.0  # Σ ω
    gamma: float = 0.0  # Σ ω a
    u_bias: float = 0.0  # u's entry for the constant feature
    b_sum: float = 0.0  # Σ ω b


class Tail(NamedTuple):
    """The steps begin < t ≤ end whose slopes give the certificate, weighted by a triangular window.

    If all rows have equally many visits, the tail has s steps and η is nearly constant, slopes of equal weight would
    give w(α) = w̄ + (w_end − w_begin)/(η λ s), which has the noise of two single iterates. Weights that rise and then
    fall replace these two by averages of iterates.
    """

    begin: float = 0.0
    end: float = 0.0


@kernel
def step_length(lam, offset, root_step, t):  # type: ignore[no-untyped-def]  # compiled
    """η_t."""
    if root_step > 0.0:
        return root_step / np.sqrt(np.float64(t))
    return 1.0 / (lam * (t + offset))


@kernel
def take_steps(batch, loss, settings, iterate, tail, order, v, u, slopes, visits, g):  # type: ignore[no-untyped-def]  # compiled
    """One step per len(g) rows of `order`; v and u are updated, and slopes and visits if a certificate is wanted."""
    rows, y, weight = batch
    lam, offset, root_step, radius, constant, intercept_step, intercept_bound, mean_weight, weighting, nu = settings
    t, a, square, bias, b, mass, gamma, u_bias, b_sum = iterate
    k = g.shape[0]
    averaging = u.shape[0] > 0
    counting = visits.shape[0] > 0
    projecting = radius < np.inf
    for first in range(0, order.shape[0] - k + 1, k):
        t += 1
        eta = step_length(lam, offset, root_step, t)
        window = max(min(t - tail.begin, tail.end + 1.0 - t), 0.0)
        if averaging:
            omega = 1.0
            if weighting == BY_STEP:
                omega = step_length(lam, offset, root_step, t - 1) if t > 1 else 0.0
            elif weighting == RISING:
                omega = np.float64(t)
            mass += omega
            gamma += omega * a
            b_sum += omega * b
        for j in range(k):
            if first + j + PREFETCH_DISTANCE < order.shape[0]:
                prefetch_row(rows, order[first + j + PREFETCH_DISTANCE])
            if first + j + POINTER_PREFETCH_DISTANCE < order.shape[0]:
                prefetch_pointer(rows, order[first + j + POINTER_PREFETCH_DISTANCE])
                prefetch(y, order[first + j + POINTER_PREFETCH_DISTANCE])
            i = np.uint64(order[first + j])
            p = a * (dot(rows, i, v) + constant * bias) + b
            gradient = slope(loss, p, y[i])
            if counting:
                slopes[i] += window * gradient
                visits[i] += window
            g[j] = gradient * weight_of(weight, i) / mean_weight
        shrink = 1.0 - eta * lam
        a *= shrink
        square *= shrink * shrink
        if a < LEAST_SCALE:  # u ← γ v + u, γ ← 0; v ← a v, a ← 1. At t = 1 without t₀, a = 0: this erases w₁
            for j in range(v.shape[0]):
                if averaging:
                    u[j] += gamma * v[j]
                v[j] *= a
            u_bias += gamma * bias
            gamma = 0.0
            bias *= a
            a = 1.0
        slope_sum = 0.0
        for j in range(k):
            if g[j] == 0.0:
                continue
            i = np.uint64(order[first + j])
            c = -eta * g[j] / k
            slope_sum += g[j]
            if projecting:
                score = a * (dot(rows, i, v) + constant * bias)
                square += 2.0 * c * score + c * c * (squared_norm(rows, i) + constant)
            add(rows, i, c / a, v)
            bias += constant * c / a
            if averaging:
                add(rows, i, -gamma * c / a, u)
                u_bias -= gamma * constant * c / a
        if projecting and square > radius * radius:
            a *= radius / np.sqrt(square)
            square = radius * radius
        if intercept_step > 0.0:
            b -= intercept_step / np.sqrt(np.float64(t)) * (slope_sum / k + nu)
            b = min(max(b, -intercept_bound), intercept_bound)
    return Iterate(t, a, square, bias, b, mass, gamma, u_bias, b_sum)
