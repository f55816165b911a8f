"""The smooth function Φ of `newton` as sums over rows, given their scores.

    φᵢ(p) = max over a of  −ℓ*(−a) − p a − q/2 (a − αᵢ)²,     aᵢ the maximiser: `Loss.dual_step(p, y, αᵢ, q)`
    φᵢ'   = −aᵢ,     φᵢ'' = 1/(q + (ℓ*)'') where aᵢ is inside its domain, else 0

The functions are for `Dataset.map`, `update` and `reduce`: arguments that are the same for all rows come first.
"""

from typing import NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Vector, weight_of
from primalsvm.losses import conjugate, conjugate_curvature, dual_step, feasible, value
from primalsvm.sums import is_free


class Proximal(NamedTuple):
    """Sums over rows at one point."""

    phi: float  # Σ cᵢ φᵢ(pᵢ)
    loss: float  # Σ cᵢ ℓ(pᵢ)
    dual: float  # Σ cᵢ (−ℓ*(−aᵢ))
    balance: float  # Σ cᵢ aᵢ
    inside: int  # the number of rows with hᵢ > 0


@kernel
def maximise(loss, t, b, q, y, weight, scores, direction, alpha, a, h, change):  # type: ignore[no-untyped-def]  # compiled
    """The sums of `Proximal` at the scores + t · direction + b; writes aᵢ, its change, and hᵢ = cᵢ φᵢ''."""
    phi = 0.0
    losses = 0.0
    dual = 0.0
    balance = 0.0
    inside = 0
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
        h[i] = c / (q + conjugate_curvature(loss, -best, y[i])) if is_free(loss, best, y[i]) else 0.0
        inside += h[i] > 0.0
    return phi, losses, dual, balance, inside


@kernel
def slope_along(loss, t, b, q, y, weight, scores, direction, alpha):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ aᵢ directionᵢ at the scores + t · direction + b: minus the derivative of Σ cᵢ φᵢ in t."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        p = scores[i] + t * direction[i] + b
        total += weight_of(weight, i) * dual_step(loss, p, y[i], alpha[i], q) * direction[i]
    return total


@kernel
def balance_at(loss, b, q, y, weight, scores, alpha):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ aᵢ at the scores + b: decreasing in b."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * dual_step(loss, scores[i] + b, y[i], alpha[i], q)
    return total


@kernel
def middles(loss, far, y, out):  # type: ignore[no-untyped-def]  # as above
    """out ← the middle of each α's domain, which ends before ±far."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = 0.5 * (feasible(loss, far, y[i]) + feasible(loss, -far, y[i]))


@kernel
def changes(share, h, counted, out):  # type: ignore[no-untyped-def]  # as above
    """out ← h − counted where that is more than a share of the larger one, else 0."""
    for i in range(np.uint64(h.shape[0])):
        change = h[i] - counted[i]
        out[i] = change if abs(change) > share * max(h[i], counted[i]) else 0.0


def assign_changed(change: Vector, values: Vector, out: Vector) -> None:
    """out ← values, where there is a change."""
    np.copyto(out, values, where=change != 0.0)


def move_scores(t: float, step_b: float, along: Vector, scores: Vector) -> None:
    """scores ← scores + t ⟨δ, xᵢ⟩, given ⟨δ, xᵢ⟩ + δ_b."""
    scores += t * (along - step_b)


def divide(divisor: float, values: Vector, out: Vector) -> None:
    """out ← values / divisor."""
    np.divide(values, divisor, out=out)
