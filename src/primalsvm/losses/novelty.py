"""The one-class loss: ℓ = max(0, −p), which knows no labels.

With λ = ν and a further term ν b (`Problem.nu`) it is the one-class problem (Schölkopf et al. 2001), times ν,
with ρ = −b:

    ν (½ ‖w‖² − ρ + 1/(νΣc) Σ cᵢ max(0, ρ − ⟨w, xᵢ⟩)) = ν/2 ‖w‖² + ν b + (1/Σc) Σ cᵢ max(0, −(⟨w, xᵢ⟩ + b))

Its dual: w is the shortest of the means Σ cᵢ αᵢ xᵢ / Σ cᵢ αᵢ with 0 ≤ αᵢ ≤ 1 and Σ cᵢ αᵢ = νΣc, and D = −ν/2 ‖w‖².
"""

import math
from typing import Any

from primalsvm.losses.base import NoParameters, QuadraticPiece
from primalsvm.losses.regression import RegressionDefaults


class OneSided(NoParameters, RegressionDefaults):
    """ℓ = max(0, −p); dual α ∈ [0, 1], −ℓ*(−α) = 0.

    Examples
    --------
    >>> OneSided().value(-0.5, 1.0), OneSided().value(2.0, 1.0)
    (0.5, 0.0)
    """

    def scaled(self, s: float) -> "OneSided":
        return self

    def value(self, p: float, y: float) -> float:
        return max(0.0, -p)

    def slope(self, p: float, y: float) -> float:
        return -1.0 if p < 0.0 else 0.0

    def conjugate(self, a: float, y: float) -> float:
        return 0.0 if -1.0 <= a <= 0.0 else math.inf

    def feasible(self, alpha: float, y: float) -> float:
        return min(max(alpha, 0.0), 1.0)

    def quadratic_pieces(self, y: Any) -> tuple[QuadraticPiece, ...]:
        return (QuadraticPiece(1.0, 0.0, 1.0, 0.0),)

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        if q <= 0.0:  # the row is zero: the dual is linear in α
            return 1.0 if p < 0.0 else (0.0 if p > 0.0 else alpha)
        return min(max(alpha - p / q, 0.0), 1.0)
