"""The problem that every solver sees, and the two numbers that certify a solution.

    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)
    D(α)    = (1/Σc) Σ cᵢ (−ℓ*(−αᵢ)) − λ/2 ‖w(α)‖²,    w(α) = (1/(λ Σc)) Σ cᵢ αᵢ xᵢ

D(α) ≤ P* ≤ P(w, b) for every (w, b) and every feasible α. A penalised intercept is the weight of a constant feature 1;
a free intercept adds the constraint Σ cᵢ αᵢ = 0. With a further term τ b, a tilt, the constraint is Σ cᵢ αᵢ = τ Σc: so
is the one-class problem (`losses.novelty`), whose P* is not positive.

One evaluation costs two passes over the rows (`Team.scores`, `Team.combine`); everything else here works on vectors.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np

from primalsvm import sums
from primalsvm.losses import Loss, OneSided, check_loss
from primalsvm.rows import Batch, Vector, Weights, inner, sampled_squared_norms, total_weight
from primalsvm.team import Team

Intercept = Literal["none", "penalized", "free"]

ALONE = Team(1)

SAMPLED = 1024  # rows for a first guess of the best b, where there are many


class Evaluation(NamedTuple):
    """A point with its objective value and a lower bound of the optimum (−inf: none known)."""

    w: Vector
    b: float
    primal: float
    dual: float
    solver: str = ""  # which one of several solvers it comes from


class Objective(Protocol):
    """What the driver has to know of a problem; the rest is between the problem and its solvers."""

    def settled(self, batch: Batch, team: Team) -> Self:
        """The same problem, with what these rows say of it."""

    @property
    def tunable(self) -> bool:
        """Whether λ is for the user to choose."""

    def vanishes(self, dual: float) -> bool:
        """Whether so high a lower bound shows that w* = 0, which tells nothing."""

    def held_out_error(self, batch: Batch, w: Vector, b: float, team: Team) -> float:
        """How wrong (w, b) is on other rows."""


class Targets(NamedTuple):
    """What bounds w* and b*: |b*| ≤ max|y| + max‖x‖ ‖w*‖. See `Problem.settled`."""

    at_zero: float  # what λ/2 ‖w*‖² is at most: P(0, 0)
    largest: float  # |y|; with a tilt, how far scores spread
    trivial: float = 0.0  # with a tilt: a P* above −this is 0 up to rounding, and w* is 0


SIGNS = Targets(0.5, 1.0)  # ½ will do for every margin loss: see `Problem.radius`
LEAST_SPREAD = 1e-2  # of scores, relative to their mean,
LEAST_SCORE = 1e-8  # … and to ‖x‖²: a smaller one is no unit
TRIVIAL = 1e-12  # (‖w‖/‖x‖)² of a one-class w* that is 0 up to rounding. A million rows that are all apart have 1e-6


@dataclass(frozen=True)
class Problem:
    """min P(w, b): a loss, λ > 0, and what is done about the intercept.

    Parameters
    ----------
    loss : a loss from `primalsvm.losses`
    lam : λ, the strength of the regularisation
    intercept : "none", "penalized" (the weight of a constant feature) or "free"
    targets : how large the targets are; `settled` finds it where they are not signs
    tilt : τ of a further term τ b, with the loss `OneSided` and a free intercept: ν of the one-class problem

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> from primalsvm.inputs import as_batch
    >>> problem = Problem(Hinge(), lam=0.5)
    >>> batch = as_batch(np.eye(2), [1, -1])
    >>> problem.value(batch, np.array([1.0, -1.0]), 0.0)
    0.5
    """

    loss: Loss
    lam: float
    intercept: Intercept = "none"
    targets: Targets = SIGNS
    tilt: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"lam must be a positive number, got {self.lam!r}")
        if isinstance(self.loss, str | type) or not hasattr(self.loss, "dual_step"):
            raise TypeError(f"loss must be a loss object such as Hinge(), got {self.loss!r}")
        check_loss(self.loss)
        if self.intercept not in ("none", "penalized", "free"):
            raise ValueError(f"intercept={self.intercept!r}: choose 'none', 'penalized' or 'free'")
        one_class = isinstance(self.loss, OneSided)
        if one_class != (self.tilt != 0.0) or (one_class and not (self.intercept == "free" and 0.0 < self.tilt <= 1.0)):
            raise ValueError(
                "the one-class problem has the loss OneSided, a free intercept and a tilt in (0, 1], and no other has "
                f"a tilt; got {self.loss!r}, intercept={self.intercept!r}, tilt={self.tilt!r}"
            )

    @property
    def radius(self) -> float:
        """Radius of a ball that holds w*: √(2 P(0)/λ), as λ/2 ‖w*‖² ≤ P* ≤ P(0).

        For every margin loss here 1/√λ, as λ‖w*‖² = mean(θ z) ≤ 1. With a tilt: see `settled`.
        """
        return math.sqrt(2.0 * self.targets.at_zero / self.lam)

    def settled(self, batch: Batch, team: Team = ALONE) -> "Problem":
        """The same problem, with what these rows' targets say of its size.

        With a tilt τ, P* = D* = −λ/2 ‖w*‖² (conjugates are 0 there), and α = τ is allowed: λ/2 ‖w*‖² ≤ −D(τ), which is
        λ/2 ‖τ x̄/λ‖² with x̄ the mean row; and −b* may be one of the scores, |⟨w*, x⟩| ≤ ‖w*‖ max‖x‖.
        """
        if self.loss.of_signs:
            return self
        smallest = np.finfo(float).tiny
        if self.tilt:
            length = self.tilt / self.lam  # of w(τ), in mean rows
            mean = mean_row(batch, team)
            energy = self.lam / 2 * length**2
            sizes = Targets(
                max(energy * mean.squared_norm, smallest), length * mean.spread, TRIVIAL * energy * mean.rows
            )
            return replace(self, targets=sizes)
        at_zero = self.mean_loss(batch, np.zeros(batch.y.shape), 0.0)
        return replace(self, targets=Targets(max(at_zero, smallest), float(np.abs(batch.y).max())))

    @property
    def tunable(self) -> bool:
        """Whether λ is for the user to choose: in the one-class problem it is ν."""
        return not self.tilt

    def vanishes(self, dual: float) -> bool:
        """Whether this lower bound says that a one-class P* is 0, and w* with it: the rows surround the origin."""
        return self.tilt != 0.0 and dual >= -self.targets.trivial

    def penalty(self, square: Any, b: Any) -> Any:
        """`regularizer`, given ‖w‖²; of several w's at once, if they are arrays."""
        return self.lam / 2 * (square + (b * b if self.intercept == "penalized" else 0.0)) + self.tilt * b

    def regularizer(self, w: Vector, b: float) -> float:
        """λ/2 ‖w‖², with b² if the intercept is penalised; plus τ b."""
        return float(self.penalty(float(inner(w, w)), b))

    def value(self, batch: Batch, w: Vector, b: float, team: Team = ALONE) -> float:
        """P(w, b)."""
        return self.value_at(batch, team.scores(batch.rows, w), w, b)

    def value_at(self, batch: Batch, scores: Vector, w: Vector, b: float) -> float:
        """P(w, b), given the scores ⟨w, xᵢ⟩."""
        return self.regularizer(w, b) + self.mean_loss(batch, scores, b)

    def mean_loss(self, batch: Batch, scores: Vector, b: float) -> float:
        """(1/Σc) Σ cᵢ ℓ(yᵢ, scoreᵢ + b)."""
        return float(sums.loss_sum(self.loss, batch.y, batch.weight, scores, b)) / total_weight(batch)

    def held_out_error(self, batch: Batch, w: Vector, b: float, team: Team) -> float:
        """The weighted share of rows on the wrong side; where labels are no signs, P without its λ/2 ‖w‖²."""
        scores = team.scores(batch.rows, w)
        if not self.loss.of_signs:
            return self.mean_loss(batch, scores, b) + self.tilt * b
        wrong = (scores + b > 0) != (batch.y > 0)
        return float(np.average(wrong, weights=np.broadcast_to(batch.weight.values, wrong.shape)))

    def evaluate_primal(self, batch: Batch, w: Vector, b: float, team: Team = ALONE) -> tuple[float, float, Vector]:
        """b (the best one for w, if it is free: the given one is a guess, NaN none), P(w, b), and ⟨w, xᵢ⟩."""
        scores = team.scores(batch.rows, w)
        if self.intercept == "free":
            b = self.best_intercept(batch, scores, b)
        return b, self.value_at(batch, scores, w, b), scores

    def subgradient(self, batch: Batch, w: Vector, b: float, team: Team = ALONE) -> tuple[Vector, float]:
        """A sub-gradient of P in (w, b): λw + (1/Σc) Σ cᵢ ℓ'(pᵢ) xᵢ, and its part in b (0.0 without intercept)."""
        slopes = self.slopes_at(batch, team.scores(batch.rows, w), b)
        total = total_weight(batch)
        in_w = self.lam * w + team.combine(batch, slopes) / total
        if self.intercept == "none":
            return in_w, 0.0
        in_b = self.balance(batch, slopes) / total + self.tilt
        return in_w, in_b + (self.lam * b if self.intercept == "penalized" else 0.0)

    def slopes_at(self, batch: Batch, scores: Vector, b: float) -> Vector:
        """ℓ'(yᵢ, scoreᵢ + b)."""
        out = np.empty_like(scores)
        sums.slopes(self.loss, batch.y, scores, b, out)
        return out

    def best_intercept(self, batch: Batch, scores: Vector, near: float = math.nan) -> float:
        """The b that minimises P(w, ·) given the scores ⟨w, xᵢ⟩; the middle, where that is an interval.

        A guess that is `near` saves some passes; NaN: there is none.
        """
        if math.isnan(near) and batch.y.shape[0] >= 2 * SAMPLED:
            every = slice(None, None, batch.y.shape[0] // SAMPLED)
            y, some = np.ascontiguousarray(batch.y[every]), np.ascontiguousarray(scores[every])
            c = np.ascontiguousarray(np.broadcast_to(batch.weight.values, batch.y.shape)[every])
            near = sums.best_intercept(self.loss, y, Weights(c, 1), some, self.tilt * float(c.sum()), near)
        return float(
            sums.best_intercept(self.loss, batch.y, batch.weight, scores, self.tilt * total_weight(batch), near)
        )

    def best_constant(self, batch: Batch) -> float:
        """The b that minimises P(0, ·): what to say of every row while nothing is known of them.

        Examples
        --------
        >>> from primalsvm.inputs import as_batch
        >>> from primalsvm.losses import EpsilonInsensitive, Hinge
        >>> round(Problem(Hinge(), 1.0, "free").best_constant(as_batch(np.eye(3), [1, -1, -1])), 9)
        -1.0
        >>> Problem(EpsilonInsensitive(0.0), 1.0, "free").best_constant(as_batch(np.eye(3), [1.0, 5.0, 9.0]))
        5.0
        """
        if self.loss.of_signs:  # two kinds of rows, so two rows
            total, balance = total_weight(batch), self.balance(batch, batch.y)
            kinds = np.array([total - balance, total + balance]) / 2.0
            batch = Batch(batch.rows, np.array([-1.0, 1.0]), Weights(kinds, 1))
        return self.best_intercept(batch, np.zeros(batch.y.shape[0]))

    def clipped(self, batch: Batch, alpha: Vector) -> Vector:
        """The point nearest to α inside the dual domain of this loss and these labels."""
        out = np.empty(alpha.shape)
        sums.clip(self.loss, batch.y, alpha, out)
        return out

    def balanced(self, batch: Batch, alpha: Vector) -> Vector:
        """A dual point near α that this problem allows: with a free intercept, Σ cᵢ αᵢ = τ Σc."""
        if self.intercept != "free":
            return alpha
        out = np.empty_like(alpha)
        sums.balance(self.loss, batch.y, batch.weight, alpha, self.tilt * total_weight(batch), out)
        return out

    def combined(
        self, batch: Batch, alpha: Vector, team: Team = ALONE, pull: Vector | None = None
    ) -> tuple[Vector, float]:
        """w(α), and the intercept that α implies if it is penalised (else 0.0); `pull` is Σ cᵢ αᵢ xᵢ where known."""
        s = 1.0 / (self.lam * total_weight(batch))
        w = s * (team.combine(batch, alpha) if pull is None else pull)
        b = s * self.balance(batch, alpha) if self.intercept == "penalized" else 0.0
        return w, b

    def balance(self, batch: Batch, alpha: Vector) -> float:
        """Σ cᵢ αᵢ."""
        return float(sums.weighted_sum(batch.weight, alpha))

    def imbalance(self, batch: Batch, balance: float) -> float:
        """How far Σ cᵢ αᵢ, the `balance`, is from what a free intercept asks for."""
        return balance - self.tilt * total_weight(batch)

    def conjugate_sum(self, batch: Batch, alpha: Vector) -> float:
        """Σ cᵢ (−ℓ*(−αᵢ))."""
        return float(sums.dual_sum(self.loss, batch.y, batch.weight, alpha))

    def dual_value(self, batch: Batch, alpha: Vector, w: Vector, b: float) -> float:
        """D(α), given w(α) and its implied intercept."""
        return self.conjugate_sum(batch, alpha) / total_weight(batch) - self.regularizer(w, b)

    def lower_bound(self, batch: Batch, alpha: Vector, team: Team = ALONE, pull: Vector | None = None) -> float:
        """D at the allowed dual point nearest to α: a lower bound of P* for any α.

        With `pull` = Σ cᵢ αᵢ xᵢ given, only rows that `balanced` moves are combined anew.
        """
        allowed = self.balanced(batch, alpha)
        if pull is not None and allowed is not alpha:
            pull = pull + team.combine(batch, allowed - alpha)
        return self.dual_value(batch, allowed, *self.combined(batch, allowed, team, pull))

    def evaluate_dual(self, batch: Batch, alpha: Vector, team: Team = ALONE) -> Evaluation:
        """The primal point w(α) that a dual point implies, with both objective values."""
        alpha = self.balanced(batch, alpha)
        w, b = self.combined(batch, alpha, team)
        dual = self.dual_value(batch, alpha, w, b)
        b, primal, _ = self.evaluate_primal(batch, w, math.nan if self.intercept == "free" else b, team)
        return Evaluation(w, b, primal, dual)


class MeanRow(NamedTuple):
    """What the mean row x̄ tells of the one-class problem."""

    squared_norm: float  # ‖x̄‖²
    spread: float  # of the scores ⟨x̄, xᵢ⟩, or what is not negligible beside them: never 0
    rows: float  # mean ‖x‖², of a sample


def mean_row(batch: Batch, team: Team = ALONE) -> MeanRow:
    """Two passes over the rows."""
    scores = team.scores(batch.rows, team.combine(batch, np.ones(batch.y.shape)) / total_weight(batch))
    weight = np.broadcast_to(batch.weight.values, scores.shape)
    mean = float(np.average(scores, weights=weight))  # ⟨x̄, x̄⟩, also where w is known by its coefficients alone
    spread = float(np.sqrt(np.average(np.square(scores - mean), weights=weight)))
    rows = float(sampled_squared_norms(batch.rows).mean())
    return MeanRow(max(mean, 0.0), max(spread, LEAST_SPREAD * mean, LEAST_SCORE * rows) or 1.0, rows)


def check_signs(batch: Batch) -> None:
    """Labels are −1 or +1."""
    if not np.isin(batch.y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1")


def check_targets(problem: Problem, batch: Batch) -> None:
    """Margin losses need labels −1 and +1, both present; others take any numbers."""
    if problem.loss.of_signs:
        check_labels(batch)


def check_labels(batch: Batch) -> None:
    """Labels are −1 and +1, both present."""
    check_signs(batch)
    counted = batch.y if batch.weight.stride == 0 else batch.y[batch.weight.values > 0]
    if np.all(counted == counted[0]):
        raise ValueError("one class only has rows of positive weight: two classes are needed")
