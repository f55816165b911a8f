"""Margin losses: functions of z = y p with labels y = ±1. Their α = y θ has θ ≥ 0."""

import math
from typing import Any, ClassVar, NamedTuple

from primalsvm.losses.base import POSITIVE, LossDefaults, NoParameters, QuadraticPiece


class MarginLoss(LossDefaults):
    """The defaults of margin losses: 0 ≤ θ ≤ 1."""

    is_classification = True

    def feasible(self, alpha: float, y: float) -> float:
        return y * min(max(y * alpha, 0.0), 1.0)


class Hinge(NoParameters, MarginLoss):
    """ℓ = max(0, 1 − yp); dual θ ∈ [0, 1], −ℓ*(−α) = θ.

    Examples
    --------
    >>> Hinge().value(0.25, 1.0), Hinge().slope(0.25, 1.0), Hinge().slope(1.0, 1.0)
    (0.75, -1.0, 0.0)
    """

    def value(self, p: float, y: float) -> float:
        return max(0.0, 1.0 - y * p)

    def slope(self, p: float, y: float) -> float:
        return -y if y * p < 1.0 else 0.0 * y

    def conjugate(self, a: float, y: float) -> float:
        return a * y if -1.0 <= a * y <= 0.0 else math.inf

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return (QuadraticPiece(y, 1.0, 1.0, 0.0),)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        ascent = 1.0 - y * p
        if q <= 0.0:  # the row is zero: the dual is linear in θ
            return y if ascent > 0.0 else 0.0 * y
        return y * min(max(y * alpha + ascent / q, 0.0), 1.0)


class Smoothing(NamedTuple):
    """The parameter of `SmoothedHinge`: the width of the quadratic part."""

    gamma: float = 1.0


class SmoothedHinge(Smoothing, MarginLoss):
    """The hinge with its kink rounded: quadratic on the last γ before the margin; −ℓ*(−α) = θ − γθ²/2, θ ∈ [0, 1].

    Examples
    --------
    >>> SmoothedHinge(gamma=0.5).value(0.75, 1.0), SmoothedHinge(gamma=0.5).value(0.0, 1.0)
    (0.0625, 0.75)
    """

    limits: ClassVar = {"gamma": POSITIVE}

    @property
    def curvature(self) -> float:
        return 1.0 / self.gamma

    def value(self, p: float, y: float) -> float:
        r = max(0.0, 1.0 - y * p)
        return r * r / (2.0 * self.gamma) if r < self.gamma else r - self.gamma / 2.0

    def slope(self, p: float, y: float) -> float:
        return -y * min(max(0.0, 1.0 - y * p) / self.gamma, 1.0)

    def conjugate(self, a: float, y: float) -> float:
        u = a * y
        return u + self.gamma * u * u / 2.0 if -1.0 <= u <= 0.0 else math.inf

    def conjugate_curvature(self, a: float, y: float) -> float:
        return self.gamma

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return (QuadraticPiece(y, 1.0, 1.0, self.gamma),)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        return y * min(max((1.0 - y * p + q * y * alpha) / (q + self.gamma), 0.0), 1.0)


class SquaredHinge(NoParameters, MarginLoss):
    """ℓ = max(0, 1 − yp)² (no ½, as scikit-learn); −ℓ*(−α) = θ − θ²/4, θ ≥ 0.

    Examples
    --------
    >>> SquaredHinge().value(0.5, 1.0), SquaredHinge().slope(0.5, 1.0)
    (0.25, -1.0)
    """

    slope_bound = math.inf
    curvature = 2.0

    def value(self, p: float, y: float) -> float:
        return max(0.0, 1.0 - y * p) ** 2

    def slope(self, p: float, y: float) -> float:
        return -2.0 * y * max(0.0, 1.0 - y * p)

    def conjugate(self, a: float, y: float) -> float:
        u = a * y
        return u + u * u / 4.0 if u <= 0.0 else math.inf

    def conjugate_curvature(self, a: float, y: float) -> float:
        return 0.5

    def feasible(self, alpha: float, y: float) -> float:
        return y * max(y * alpha, 0.0)

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return (QuadraticPiece(y, 1.0, math.inf, 0.5),)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        return y * max((1.0 - y * p + q * y * alpha) / (q + 0.5), 0.0)


class Logistic(NoParameters, MarginLoss):
    """ℓ = log(1 + exp(−yp)); −ℓ*(−α) = −θ log θ − (1 − θ) log(1 − θ), θ ∈ [0, 1].

    Examples
    --------
    >>> round(Logistic().value(0.0, 1.0), 6), Logistic().slope(0.0, 1.0)
    (0.693147, -0.5)
    """

    curvature = 0.25

    def value(self, p: float, y: float) -> float:
        z = y * p
        return max(0.0, -z) + math.log1p(math.exp(-abs(z)))

    def slope(self, p: float, y: float) -> float:
        z = y * p
        e = math.exp(-abs(z))
        return -y * (e if z > 0.0 else 1.0) / (1.0 + e)

    def conjugate(self, a: float, y: float) -> float:
        theta = -a * y
        if theta < 0.0 or theta > 1.0:
            return math.inf
        entropy = 0.0
        if theta > 0.0:
            entropy -= theta * math.log(theta)
        if theta < 1.0:
            entropy -= (1.0 - theta) * math.log1p(-theta)
        return -entropy

    def conjugate_curvature(self, a: float, y: float) -> float:
        theta = -a * y
        return 1.0 / max(theta * (1.0 - theta), 1e-300)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        # With θ' = σ(u) the condition is h(u) = u + q σ(u) − r = 0, h increasing with slope ≥ 1, root in [r − q, r].
        r = q * y * alpha - y * p
        low = r - q
        high = r
        u = 0.5 * (low + high)
        last_step = high - low
        for _ in range(100):
            theta = 1.0 / (1.0 + math.exp(-u)) if u > -700.0 else 0.0
            h = u + q * theta - r
            if h > 0.0:
                high = u
            else:
                low = u
            step = h / (1.0 + q * theta * (1.0 - theta))
            if abs(step) <= 1e-15 * (1.0 + abs(u)):
                break
            if low <= u - step <= high and abs(step) <= 0.5 * abs(last_step):
                last_step = step
                u -= step
            else:  # Newton leaves the bracket or swings to and fro: halve
                last_step = 0.5 * (high - low)
                u = low + last_step
        return y / (1.0 + math.exp(-u)) if u > -700.0 else 0.0 * y
