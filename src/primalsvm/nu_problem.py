"""The ν-problems of classification and regression: ν takes the place of the margin 1, or of the tube's ε.

    classification   min over w, b, ρ ≥ 0 of   λ/2 ‖w‖² − ν ρ + (1/Σc) Σ cᵢ max(0, ρ − yᵢ pᵢ),    pᵢ = ⟨w, xᵢ⟩ + b
    regression       min over w, b, ε ≥ 0 of   λ/2 ‖w‖² + ν ε + (1/Σc) Σ cᵢ max(0, |yᵢ − pᵢ| − ε)

(Schölkopf, Smola, Williamson and Bartlett 2000.) Their duals, with w(α) = (1/(λ Σc)) Σ cᵢ αᵢ xᵢ:

    classification   D(α) = −λ/2 ‖w(α)‖²,                      0 ≤ yᵢ αᵢ ≤ 1,   Σ cᵢ αᵢ = 0,   Σ cᵢ |αᵢ| = ν Σc
    regression       D(α) = (1/Σc) Σ cᵢ αᵢ yᵢ − λ/2 ‖w(α)‖²,   |αᵢ| ≤ 1,        Σ cᵢ αᵢ = 0,   Σ cᵢ |αᵢ| ≤ ν Σc

A classifier (w, b, ρ) classifies as (w/ρ, b/ρ), which has a margin of 1. P is stated for that one, and for a regressor
without its ε; each is the least value over ρ or ε:

    classification   P(w, b) = min over ρ ≥ 0 of  λ/2 ρ²‖w‖² − ρ (ν − h) = −max(0, ν − h)² / (2λ ‖w‖²)
    regression       P(w, b) = λ/2 ‖w‖² + min over ε ≥ 0 of  ν ε + (1/Σc) Σ cᵢ max(0, |yᵢ − pᵢ| − ε)

with h the mean hinge loss (1/Σc) Σ cᵢ max(0, 1 − yᵢ pᵢ) of the classifier.

Both duals have a variable A for each side of a row (a classifier's row has one side, its sign), and Σ A = ν/(2λ) on
each side. So the best b and ρ, or ε, are two intercepts of one-class problems, one for each side.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from primalsvm import sums
from primalsvm.data import Dataset, Handle, Vector, Weights, inner
from primalsvm.intercepts import best_intercept, reduce_locally
from primalsvm.losses import EpsilonInsensitive, Hinge, Loss, OneSided
from primalsvm.losses.base import QuadraticPiece, pieces_of
from primalsvm.objective import TRIVIAL, Evaluation, Intercept, ProblemOnRows
from primalsvm.options import check_share

# Σc of a class may fall short of ν Σc/2 by this share, as sums are rounded.
ROUNDING_OF_WEIGHTS = 1e-12

# The size of ⟨x, x⟩ is that of this many rows.
SAMPLED_ROWS = 16


class Levels(NamedTuple):
    """The best b + δ for the positive side and b − δ for the negative one; δ is −ρ or ε."""

    positive: float
    negative: float

    @property
    def b(self) -> float:
        """The intercept."""
        return 0.5 * (self.positive + self.negative)

    @property
    def offset(self) -> float:
        """δ: −ρ of a classifier, ε of a regressor."""
        return 0.5 * (self.positive - self.negative)


@dataclass(frozen=True)
class NuProblem:
    """min P(w, b) of a ν-problem, with a free intercept.

    Parameters
    ----------
    loss : `Hinge()` for classification, `EpsilonInsensitive()` for regression; a margin or ε of its own has no effect
    lam : λ > 0
    nu : ν in (0, 1]

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> objective = NuProblem(Hinge(), lam=1.0, nu=0.5).on(as_dataset(np.eye(2)), np.array([1.0, -1.0]))
    >>> objective.value(np.array([1.0, -1.0]), 0.0)  # −ν²/(2 ‖w‖²), as h = 0
    -0.0625
    """

    loss: Loss
    lam: float
    nu: float
    intercept: Intercept = "free"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"lam must be a positive number, got {self.lam!r}")
        check_share("nu", self.nu)
        if not isinstance(self.loss, Hinge | EpsilonInsensitive):
            raise ValueError(f"a ν-problem has the loss Hinge() or EpsilonInsensitive(), not {self.loss!r}")

    def on(self, data: Dataset, y: Handle) -> "NuObjective":
        """P and D on the rows of a data set; refuses a ν that a class is too small for."""
        objective = NuObjective(self, data, y)
        if not self.loss.is_classification:
            return objective
        check_feasible(self.nu, *data.reduce(sums.side_weights, y, data.weights))
        rows = float(data.squared_norms(SAMPLED_ROWS).mean())
        return replace(objective, trivial_above=-TRIVIAL * self.nu**2 / (2.0 * self.lam) * rows)


def check_feasible(nu: float, first: float, second: float) -> None:
    """Raise a ValueError if ν Σc/2 is more than the weight of one of two classes.

    Examples
    --------
    >>> check_feasible(0.5, 1.0, 9.0)
    Traceback (most recent call last):
    ValueError: specified nu is infeasible: nu=0.5, but two classes of weights 1 and 9 allow at most 0.2
    """
    smaller, total = min(first, second), first + second
    if nu * total / 2 > smaller * (1.0 + ROUNDING_OF_WEIGHTS):
        raise ValueError(
            f"specified nu is infeasible: nu={nu:g}, but two classes of weights {first:g} and {second:g} allow at most "
            f"{2.0 * smaller / total:.6g}"
        )


@dataclass(frozen=True)
class NuObjective(ProblemOnRows):
    """P and D of one ν-problem on the rows of a kernel matrix; made by `NuProblem.on`.

    Parameters
    ----------
    problem : the definition
    data : the rows with their weights
    y : handle of the targets
    trivial_above : a lower bound of at least this shows that w* = 0: the classes overlap too much for so small a ν
    """

    problem: NuProblem
    data: Dataset
    y: Handle
    trivial_above: float = math.inf

    @property
    def variables(self) -> QuadraticPiece:
        """The sides of every row: max over A of A (σ (t − p) − δ), A ≤ cᵢ/(λ Σc); of a classifier t = 0."""
        y = self.data.to_array(self.y)
        pieces = pieces_of(self.loss, y) if self.loss.is_classification else pieces_of(EpsilonInsensitive(0.0), y)
        target = np.zeros(pieces.target.shape) if self.loss.is_classification else pieces.target * pieces.sign
        upper = np.broadcast_to(self.data.weight_array() / (self.lam * self.total), pieces.upper.shape)
        return pieces._replace(target=target, upper=np.ascontiguousarray(upper))

    # ---- P -----------------------------------------------------------------------------------------------------------

    def value(self, w: Vector, b: float) -> float:
        """P(w, b)."""
        return self.value_at(self.data.to_array(self.data.scores(w)), w, b)

    def value_at(self, scores: Vector, w: Vector, b: float) -> float:
        """P(w, b), given the scores ⟨w, xᵢ⟩."""
        square = float(inner(w, scores)) if self.data.kernel_rows else float(inner(w, w))
        if self.loss.is_classification:
            free = max(0.0, self.nu - self._mean_loss(Hinge(), scores, b))
            return -free * free / (2.0 * self.lam * square) if square > 0.0 else 0.0
        epsilon = self.best_epsilon(scores, b)
        return self.lam / 2 * square + self.nu * epsilon + self._mean_loss(EpsilonInsensitive(epsilon), scores, b)

    def _mean_loss(self, loss: Loss, scores: Vector, b: float) -> float:
        total = self.data.reduce(partial(sums.loss_sum, loss, float(b)), self.y, self.data.weights, scores)
        return float(total) / self.total

    def best_epsilon(self, scores: Vector, b: float) -> float:
        """The best ε of a regressor: a share ν of the weight has a larger error."""
        errors = np.abs(self.data.to_array(self.y) - scores - b)
        return max(0.0, self._quantile(errors, self.data.weight_array(), self.nu))

    def _quantile(self, values: Vector, weight: Vector, share: float) -> float:
        """The u that minimises share · u + (1/Σc) Σ cᵢ max(0, valueᵢ − u): the intercept of a one-class problem."""
        counted = weight > 0.0
        scores = -values[counted]
        linear = share * self.total
        return best_intercept(
            reduce_locally, OneSided(), linear, self.total, np.zeros(scores.shape), Weights(weight[counted], 1), scores
        )

    def best_levels(self, scores: Vector) -> Levels:
        """The best intercept and δ for a w, given the scores ⟨w, xᵢ⟩: a quantile of t − s for each side."""
        sign, target, _, _ = self.variables
        values, weight = target - scores, np.broadcast_to(self.data.weight_array(), sign.shape)
        positive = self._quantile(values[sign > 0], weight[sign > 0], self.nu / 2)
        negative = -self._quantile(-values[sign < 0], weight[sign < 0], self.nu / 2)
        return Levels(positive, negative)

    def point(self, w: Vector, scores: Vector, levels: Levels) -> tuple[Vector, Vector, float]:
        """(w, scores, b) of a regressor; of a classifier divided by its ρ, and 0 if that is not positive."""
        if not self.loss.is_classification:
            return w, scores, levels.b
        rho = -levels.offset
        if not rho > 0.0:
            return np.zeros(w.shape), np.zeros(scores.shape), 0.0
        return w / rho, scores / rho, levels.b / rho

    # ---- D -----------------------------------------------------------------------------------------------------------

    def dual_value(self, beta: Vector, scores: Vector) -> float:
        """D, given β = cᵢ αᵢ/(λ Σc) and the scores K β."""
        square = float(inner(beta, scores))
        linear = 0.0 if self.loss.is_classification else float(inner(beta, self.data.to_array(self.y)))
        return self.lam * (linear - 0.5 * square)

    def evaluate_dual(self, alpha: Handle) -> Evaluation:
        """The point of a run that has not begun: w = 0 without a bound."""
        zero = np.zeros(self.data.shape[1])
        b = 0.0 if self.loss.is_classification else self.best_levels(zero).b
        return Evaluation(zero, b, self.value_at(zero, zero, b), -math.inf)
