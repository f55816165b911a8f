"""Regression losses: functions of r = p − y with any number y. ℓ*(a) = a y + h*(a) for ℓ = h(p − y).

    EpsilonInsensitive          h = max(0, |r| − ε)                      h* = ε|a|,            |a| ≤ 1
    SquaredEpsilonInsensitive   h = max(0, |r| − ε)²                     h* = ε|a| + a²/4
    Huber                       h = r²/2, beyond δ linear                h* = a²/2,            |a| ≤ δ
    Pinball                     h = τ max(0, −r) + (1 − τ) max(0, r)     h* = 0,               −τ ≤ a ≤ 1 − τ

`scaled(s)` is the loss of targets divided by s, and `degree` its homogeneity: ℓ(y, p) = s^degree ℓ_s(y/s, p/s).
"""

import math
from typing import Any, ClassVar, NamedTuple

from primalsvm.losses.base import NOT_NEGATIVE, POSITIVE, LossDefaults, QuadraticPiece


class RegressionDefaults(LossDefaults):
    """The defaults of regression losses: homogeneous of degree 1."""

    is_classification = False
    degree = 1


class Tolerance(NamedTuple):
    """The parameter of the ε-insensitive losses."""

    epsilon: float = 0.0


class Threshold(NamedTuple):
    """The parameter of `Huber`."""

    delta: float = 1.0


class Quantile(NamedTuple):
    """The parameter of `Pinball`."""

    tau: float = 0.5


class EpsilonInsensitive(Tolerance, RegressionDefaults):
    """ℓ = max(0, |y − p| − ε): errors up to ε are free.

    Examples
    --------
    >>> EpsilonInsensitive(0.5).value(2.0, 1.0), EpsilonInsensitive(0.5).slope(1.2, 1.0)
    (0.5, 0.0)
    """

    limits: ClassVar = {"epsilon": NOT_NEGATIVE}

    def scaled(self, s: float) -> "EpsilonInsensitive":
        return EpsilonInsensitive(self.epsilon / s)

    def value(self, p: float, y: float) -> float:
        return max(0.0, abs(p - y) - self.epsilon)

    def slope(self, p: float, y: float) -> float:
        r = p - y
        if r > self.epsilon:
            return 1.0
        return -1.0 if r < -self.epsilon else 0.0

    def conjugate(self, a: float, y: float) -> float:
        return a * y + self.epsilon * abs(a) if -1.0 <= a <= 1.0 else math.inf

    def feasible(self, alpha: float, y: float) -> float:
        return min(max(alpha, -1.0), 1.0)

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return QuadraticPiece(1.0, y - self.epsilon, 1.0, 0.0), QuadraticPiece(-1.0, -y - self.epsilon, 1.0, 0.0)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        # the slope of the concave function at α' = 0 is u ∓ ε to its left and right
        u = y - p + q * alpha
        if u > self.epsilon:
            return min((u - self.epsilon) / q, 1.0) if q > 0.0 else 1.0
        if u < -self.epsilon:
            return max((u + self.epsilon) / q, -1.0) if q > 0.0 else -1.0
        return 0.0


class SquaredEpsilonInsensitive(Tolerance, RegressionDefaults):
    """ℓ = max(0, |y − p| − ε)² (no ½, as scikit-learn).

    Examples
    --------
    >>> SquaredEpsilonInsensitive(0.5).value(2.5, 1.0)
    1.0
    """

    limits: ClassVar = {"epsilon": NOT_NEGATIVE}
    degree = 2
    slope_bound = math.inf
    curvature = 2.0

    def scaled(self, s: float) -> "SquaredEpsilonInsensitive":
        return SquaredEpsilonInsensitive(self.epsilon / s)

    def value(self, p: float, y: float) -> float:
        return max(0.0, abs(p - y) - self.epsilon) ** 2

    def slope(self, p: float, y: float) -> float:
        r = p - y
        if r > self.epsilon:
            return 2.0 * (r - self.epsilon)
        return 2.0 * (r + self.epsilon) if r < -self.epsilon else 0.0

    def conjugate(self, a: float, y: float) -> float:
        return a * y + self.epsilon * abs(a) + 0.25 * a * a

    def conjugate_curvature(self, a: float, y: float) -> float:
        return 0.5

    def feasible(self, alpha: float, y: float) -> float:
        return alpha

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return QuadraticPiece(1.0, y - self.epsilon, math.inf, 0.5), QuadraticPiece(
            -1.0, -y - self.epsilon, math.inf, 0.5
        )

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        u = y - p + q * alpha
        if u > self.epsilon:
            return (u - self.epsilon) / (q + 0.5)
        return (u + self.epsilon) / (q + 0.5) if u < -self.epsilon else 0.0


class Huber(Threshold, RegressionDefaults):
    """ℓ = (y − p)²/2 up to an error of δ, then linear: δ (|y − p| − δ/2).

    Examples
    --------
    >>> Huber(1.0).value(0.5, 0.0), Huber(1.0).value(3.0, 0.0)
    (0.125, 2.5)
    """

    limits: ClassVar = {"delta": POSITIVE}
    degree = 2
    curvature = 1.0

    @property
    def slope_bound(self) -> float:
        return self.delta

    def scaled(self, s: float) -> "Huber":
        return Huber(self.delta / s)

    def value(self, p: float, y: float) -> float:
        r = abs(p - y)
        return 0.5 * r * r if r <= self.delta else self.delta * (r - 0.5 * self.delta)

    def slope(self, p: float, y: float) -> float:
        return min(max(p - y, -self.delta), self.delta)

    def conjugate(self, a: float, y: float) -> float:
        return a * y + 0.5 * a * a if -self.delta <= a <= self.delta else math.inf

    def conjugate_curvature(self, a: float, y: float) -> float:
        return 1.0

    def feasible(self, alpha: float, y: float) -> float:
        return min(max(alpha, -self.delta), self.delta)

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return QuadraticPiece(1.0, y, self.delta, 1.0), QuadraticPiece(-1.0, -y, self.delta, 1.0)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        return min(max((y - p + q * alpha) / (q + 1.0), -self.delta), self.delta)


class Pinball(Quantile, RegressionDefaults):
    """ℓ = τ max(0, y − p) + (1 − τ) max(0, p − y): its best constant is the τ-quantile.

    Examples
    --------
    >>> Pinball(0.9).value(0.0, 1.0), round(Pinball(0.9).value(1.0, 0.0), 2)
    (0.9, 0.1)
    """

    limits: ClassVar = {"tau": (0.0, 1.0)}

    @property
    def slope_bound(self) -> float:
        return max(self.tau, 1.0 - self.tau)

    def scaled(self, s: float) -> "Pinball":
        return Pinball(self.tau)

    def value(self, p: float, y: float) -> float:
        return self.tau * (y - p) if y > p else (1.0 - self.tau) * (p - y)

    def slope(self, p: float, y: float) -> float:
        if p < y:
            return -self.tau
        return 1.0 - self.tau if p > y else 0.0

    def conjugate(self, a: float, y: float) -> float:
        return a * y if -self.tau <= a <= 1.0 - self.tau else math.inf

    def feasible(self, alpha: float, y: float) -> float:
        return min(max(alpha, self.tau - 1.0), self.tau)

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return QuadraticPiece(1.0, y, self.tau, 0.0), QuadraticPiece(-1.0, -y, 1.0 - self.tau, 0.0)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        u = y - p
        if q <= 0.0:  # the row is zero: the dual is linear in α
            return self.tau if u > 0.0 else (self.tau - 1.0 if u < 0.0 else alpha)
        return min(max(alpha + u / q, self.tau - 1.0), self.tau)
