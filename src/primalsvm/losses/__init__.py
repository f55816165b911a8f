"""Losses ℓ(y, p) of a score p = ⟨w, x⟩ + b: NamedTuples of their parameters.

Each loss states, once, everything that solvers need of it:

    value(p, y)                 ℓ
    slope(p, y)                 a sub-gradient of ℓ in p (at a kink where the loss is 0: 0)
    conjugate(a, y)             ℓ*(a) = sup_p a p − ℓ(p);  +inf outside its domain
    conjugate_curvature(a, y)   (ℓ*)''(a) inside its domain
    feasible(alpha, y)          the point nearest to α at which −ℓ*(−α) is finite
    dual_step(p, y, alpha, q)   argmax over α' of  −ℓ*(−α') − p (α' − α) − q/2 (α' − α)²
    slope_bound, curvature      sup |ℓ'|, finite where the step 1/(λt) is safe, and no less than any |α| in the dual
                                domain, the middle of which Newton looks for; sup ℓ'', finite for smooth losses
    is_classification           whether y is ±1 (`margin`), or any number (`regression`)
    degree, scaled(s)           of regression losses: ℓ(y, p) = s^degree ℓ_s(y/s, p/s) with ℓ_s = scaled(s), as
                                regressors solve in units in which y is about 1 in size
    limits                      optional: the open interval of each parameter, {"gamma": (0.0, math.inf)}
    quadratic_pieces(y)         optional: ℓ as a sum of `QuadraticPiece`s: interior-point method, working sets

The methods use plain arithmetic only: the same text runs in Python (tests, tables) and, through the functions `value`,
`slope`, … below, inside compiled kernels.
"""

from typing import Any, Protocol

from numba.extending import overload

from primalsvm.losses.base import FINITE, NOT_NEGATIVE, POSITIVE
from primalsvm.losses.margin import Hinge, Logistic, SmoothedHinge, SquaredHinge
from primalsvm.losses.novelty import OneSided
from primalsvm.losses.registry import by_name
from primalsvm.losses.regression import EpsilonInsensitive, Huber, Pinball, SquaredEpsilonInsensitive

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "OneSided",
    "Pinball",
    "RegressionLoss",
    "SmoothedHinge",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "by_name",
    "check_loss",
    "conjugate",
    "conjugate_curvature",
    "dual_step",
    "feasible",
    "slope",
    "value",
]


class Loss(Protocol):
    """A row-separable loss; see the module's docstring."""

    @property
    def is_classification(self) -> bool: ...

    @property
    def slope_bound(self) -> float: ...

    @property
    def curvature(self) -> float: ...

    def value(self, p: float, y: float) -> float: ...

    def slope(self, p: float, y: float) -> float: ...

    def conjugate(self, a: float, y: float) -> float: ...

    def conjugate_curvature(self, a: float, y: float) -> float: ...

    def feasible(self, alpha: float, y: float) -> float: ...

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float: ...


class RegressionLoss(Loss, Protocol):
    """A loss for regression."""

    @property
    def degree(self) -> int: ...

    def scaled(self, s: float) -> "RegressionLoss": ...


def check_loss(loss: Loss) -> None:
    """Raise a ValueError if a parameter of a loss is out of range.

    Examples
    --------
    >>> check_loss(Huber(-1.0))
    Traceback (most recent call last):
    ...
    ValueError: Huber(delta=-1.0): delta must be positive and finite
    """
    limits: dict[str, tuple[float, float]] = getattr(loss, "limits", {})
    for name in getattr(loss, "_fields", ()):
        low, high = limits.get(name, FINITE)
        if not low < getattr(loss, name) < high:
            said = {POSITIVE: "positive and finite", NOT_NEGATIVE: "finite and not negative", FINITE: "finite"}
            raise ValueError(f"{loss!r}: {name} must be {said.get((low, high), f'between {low:g} and {high:g}')}")


# The same methods as free functions, which is how a compiled kernel calls them on whichever loss it is given.
def value(self: Loss, p: float, y: float) -> float:
    """ℓ(y, p) of the given loss."""
    return self.value(p, y)


def slope(self: Loss, p: float, y: float) -> float:
    """A sub-gradient of the given loss in p."""
    return self.slope(p, y)


def conjugate(self: Loss, a: float, y: float) -> float:
    """ℓ*(a) of the given loss."""
    return self.conjugate(a, y)


def conjugate_curvature(self: Loss, a: float, y: float) -> float:
    """(ℓ*)''(a) of the given loss, inside its domain."""
    return self.conjugate_curvature(a, y)


def feasible(self: Loss, alpha: float, y: float) -> float:
    """The feasible dual value nearest to α."""
    return self.feasible(alpha, y)


def dual_step(self: Loss, p: float, y: float, alpha: float, q: float) -> float:
    """The best new value of one dual variable."""
    return self.dual_step(p, y, alpha, q)


def _method(name: str) -> Any:
    def choose(self: Any, *arguments: Any) -> Any:
        return getattr(self.instance_class, name)

    return choose


for _function in (value, slope, conjugate, conjugate_curvature, feasible, dual_step):
    overload(_function, strict=False)(_method(_function.__name__))
