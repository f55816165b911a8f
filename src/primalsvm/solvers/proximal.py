"""The smooth function Φ of `newton` as sums over rows, given their scores.

φᵢ(p) = max over a of  −ℓ*(−a) − p a − q/2 (a − αᵢ)²,     aᵢ the maximiser: `Loss.dual_step(p, y, αᵢ, q)`
φᵢ'   = −aᵢ,     φᵢ'' = 1/(q + (ℓ*)'') where aᵢ is inside its domain, else 0
"""

from typing import NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, conjugate_curvature, dual_step, feasible, value
from primalsvm.rows import weight_of


class Proximal(NamedTuple):
    """Sums over rows at one point."""

    phi: float  # Σ cᵢ φᵢ(pᵢ)
    loss: float  # Σ cᵢ ℓ(pᵢ)
    dual: float  # Σ cᵢ (−ℓ*(−aᵢ))
    balance: float  # Σ cᵢ aᵢ


@kernel
def maximise(y, weight, loss, scores, direction, t, b, q, alpha, a, h, change):  # type: ignore[no-untyped-def]  # compiled
    """aᵢ, its change and hᵢ at the scores + t · direction + b."""
    phi = 0.0
    losses = 0.0
    dual = 0.0
    balance = 0.0
    for i in range(np.uint64(y.shape[0])):
        c = weight_of(weight, i)
        if c == 0.0:
            a[i] = 0.0
            h[i] = 0.0
            change[i] = 0.0
            continue
        p = scores[i] + t * direction[i] + b
        best = dual_step(loss, p, y[i], alpha[i], q)
        kept = -conjugate(loss, -best, y[i])
        phi += c * (kept - p * best - 0.5 * q * (best - alpha[i]) ** 2)
        losses += c * value(loss, p, y[i])
        dual += c * kept
        balance += c * best
        change[i] = best - a[i]
        a[i] = best
        inside = best != 0.0 and feasible(loss, 1.5 * best, y[i]) != best
        h[i] = c / (q + conjugate_curvature(loss, -best, y[i])) if inside else 0.0
    return Proximal(phi, losses, dual, balance)


@kernel
def pull_along(y, weight, loss, scores, direction, t, b, q, alpha):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ aᵢ directionᵢ at the scores + t · direction + b: what the losses add to the slope of Φ in t, negated."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        p = scores[i] + t * direction[i] + b
        total += weight_of(weight, i) * dual_step(loss, p, y[i], alpha[i], q) * direction[i]
    return total


@kernel
def balance(y, weight, loss, scores, b, q, alpha):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ aᵢ at the scores + b: decreasing in b."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * dual_step(loss, scores[i] + b, y[i], alpha[i], q)
    return total


@kernel
def best_intercept(y, weight, loss, scores, b, q, alpha, wanted):  # type: ignore[no-untyped-def]  # compiled
    """The b that minimises Φ(w, ·), where Σ cᵢ aᵢ is what is wanted, by bisection from around the present one."""
    reach = 1.0
    low, high = b - reach, b + reach
    for _ in range(60):
        if (
            balance(y, weight, loss, scores, low, q, alpha) > wanted
            and balance(y, weight, loss, scores, high, q, alpha) < wanted
        ):
            break
        reach *= 2.0
        low, high = b - reach, b + reach
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return middle
        if balance(y, weight, loss, scores, middle, q, alpha) > wanted:
            low = middle
        else:
            high = middle


@kernel
def middles(loss, y, far, out):  # type: ignore[no-untyped-def]  # compiled
    """The middle of each α's domain, which ends before ±far."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = 0.5 * (feasible(loss, far, y[i]) + feasible(loss, -far, y[i]))
