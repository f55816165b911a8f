"""Optimisation problems, with the primal and dual values that certify a solution.

    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b)
    D(α)    = (1/Σc) Σ cᵢ (−ℓ*(−αᵢ)) − λ/2 ‖w(α)‖²,    w(α) = (1/(λ Σc)) Σ cᵢ αᵢ xᵢ

D(α) ≤ P* ≤ P(w, b) for every (w, b) and every feasible α. A penalised intercept is the weight of a constant feature 1;
a free intercept adds the constraint Σ cᵢ αᵢ = 0. The one-class problem (`losses.novelty`) has a further term ν b, and
the constraint Σ cᵢ αᵢ = ν Σc. Its P* is not positive.

A `Problem` is the definition; `Problem.on` gives the `Objective`: P and D on the rows of a data set, with targets.
Scores, targets and α are handles of that data set (`primalsvm.data`). One evaluation costs two passes over the rows
(`Dataset.scores`, `Dataset.combine`); everything else works on handles.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from primalsvm import sums
from primalsvm.data import ALONE, Dataset, Handle, Vector, Weights, inner
from primalsvm.intercepts import balancing_shift, best_intercept, reduce_locally
from primalsvm.losses import Loss, OneSided, check_loss

Intercept = Literal["none", "penalized", "free"]


class Evaluation(NamedTuple):
    """A point with its objective value and a lower bound of the optimum (−inf: none known)."""

    w: Vector
    b: float
    primal: float
    dual: float
    solver: str = ""  # which one of several solvers it comes from
    details: Any = None  # for the solver's own `observe`


class Bounds(NamedTuple):
    """Bounds of w* and b*: of λ/2 ‖w*‖², and |b*| ≤ max|y| + max‖x‖ ‖w*‖. See `Problem.on`."""

    at_zero: float  # bound of λ/2 ‖w*‖²
    largest: float  # max|y|; of the one-class problem, the spread of the scores
    trivial_above: float = math.inf  # of the one-class problem: if P* is above this, P* and w* are 0


# The bounds for targets −1 and 1, and losses of at most 1 at a score of 0: see `Problem.on`.
SIGNS = Bounds(0.5, 1.0)
# The spread of scores is at least this share of their mean.
LEAST_SPREAD = 1e-2
# The spread of scores is at least this share of ‖x‖²; a smaller one is no useful unit.
LEAST_SCORE = 1e-8
# A one-class w* with (‖w‖/‖x‖)² below this is 0 up to rounding. A million orthogonal rows have 1e-6.
TRIVIAL = 1e-12
# With many rows, the first guess of the best b is from this many.
SAMPLED_ROWS = 1024


@dataclass(frozen=True)
class Problem:
    """min P(w, b): a loss, λ > 0, and the kind of intercept.

    Parameters
    ----------
    loss : a loss from `primalsvm.losses`
    lam : λ, the strength of the regularisation
    intercept : "none", "penalized" (the weight of a constant feature) or "free"
    nu : ν of the one-class problem, which has the loss `OneSided`, a free intercept and a further term ν b; else 0

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.losses import Hinge
    >>> objective = Problem(Hinge(), lam=0.5).on(as_dataset(np.eye(2)), np.array([1.0, -1.0]))
    >>> objective.value(np.array([1.0, -1.0]), 0.0)
    0.5
    """

    loss: Loss
    lam: float
    intercept: Intercept = "none"
    nu: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"lam must be a positive number, got {self.lam!r}")
        if isinstance(self.loss, str | type) or not hasattr(self.loss, "dual_step"):
            raise TypeError(f"loss must be a loss object such as Hinge(), got {self.loss!r}")
        check_loss(self.loss)
        if self.intercept not in ("none", "penalized", "free"):
            raise ValueError(f"intercept={self.intercept!r}: choose 'none', 'penalized' or 'free'")
        one_class = isinstance(self.loss, OneSided)
        if one_class != (self.nu != 0.0) or (one_class and not (self.intercept == "free" and 0.0 < self.nu <= 1.0)):
            raise ValueError(
                "the one-class problem has the loss OneSided, a free intercept and nu in (0, 1], and no other has nu; "
                f"got {self.loss!r}, intercept={self.intercept!r}, nu={self.nu!r}"
            )

    def on(self, data: Dataset, y: Handle) -> "Objective":
        """P and D on the rows of a data set with these targets.

        P(0, 0) ≥ P* + λ/2 ‖w*‖² (strong convexity) and P* ≥ λ/2 ‖w*‖², so λ/2 ‖w*‖² ≤ P(0, 0)/2. With signs as targets
        this is at most half the loss at a score of 0. Else the size of the targets bounds w* and b*.

        In the one-class problem P* = D* = −λ/2 ‖w*‖² (conjugates are 0), and α = ν is feasible: λ/2 ‖w*‖² ≤ −D(ν),
        which is λ/2 ‖ν x̄/λ‖² with x̄ the mean row; and −b* may be one of the scores, |⟨w*, x⟩| ≤ ‖w*‖ max‖x‖.
        """
        objective = Objective(self, data, y)
        if self.loss.is_classification:
            at_most = max(
                1.0, self.loss.value(0.0, 1.0), self.loss.value(0.0, -1.0)
            )  # 1: the ball of the Pegasos paper
            return replace(objective, bounds=SIGNS._replace(at_zero=at_most / 2.0))
        smallest = np.finfo(float).tiny
        if self.nu:
            length = self.nu / self.lam  # of w(ν), in mean rows
            mean = mean_row(data)
            energy = self.lam / 2 * length**2
            at_zero = max(energy * mean.squared_norm, smallest)
            return replace(objective, bounds=Bounds(at_zero, length * mean.spread, -TRIVIAL * energy * mean.rows))
        at_zero = max(objective.mean_loss(data.zeros(), 0.0), smallest)
        largest = data.reduce(sums.largest_size, y, merge=max)
        return replace(objective, bounds=Bounds(at_zero, largest))

    def penalty(self, square: Any, b: Any) -> Any:
        """The terms without rows: λ/2 ‖w‖², with b² in ‖w‖² if the intercept is penalised, plus ν b."""
        return self.lam / 2 * (square + (b * b if self.intercept == "penalized" else 0.0)) + self.nu * b


class Definition(Protocol):
    """The definition of a problem, of whatever form."""

    @property
    def loss(self) -> Loss: ...
    @property
    def lam(self) -> float: ...
    @property
    def intercept(self) -> Intercept: ...
    @property
    def nu(self) -> float: ...


class ProblemOnRows:
    """What the objectives of all problems have: a definition, and the rows that it is for."""

    problem: Definition
    data: Dataset

    @property
    def loss(self) -> Loss:
        """The loss."""
        return self.problem.loss

    @property
    def lam(self) -> float:
        """λ."""
        return self.problem.lam

    @property
    def intercept(self) -> Intercept:
        """The kind of intercept."""
        return self.problem.intercept

    @property
    def free(self) -> bool:
        """Whether the intercept is free."""
        return self.problem.intercept == "free"

    @property
    def nu(self) -> float:
        """ν; 0 in a problem without it."""
        return self.problem.nu

    @property
    def total(self) -> float:
        """Σc."""
        return self.data.total_weight


@dataclass(frozen=True)
class Objective(ProblemOnRows):
    """P and D of one problem on the rows of a data set; made by `Problem.on`.

    Parameters
    ----------
    problem : the definition
    data : the rows with their weights
    y : handle of the targets
    bounds : of w* and b*
    """

    problem: Problem
    data: Dataset
    y: Handle
    bounds: Bounds = SIGNS

    @property
    def radius(self) -> float:
        """Radius of a ball that contains w*: 1/√λ for the margin losses here, √(2 P(0)/λ) for regression losses.

        See `Problem.on`.
        """
        return math.sqrt(2.0 * self.bounds.at_zero / self.lam)

    @property
    def trivial_above(self) -> float:
        """A lower bound of at least this shows that a one-class w* is 0: the rows surround the origin. Else inf."""
        return self.bounds.trivial_above

    def with_lam(self, lam: float) -> "Objective":
        """The same objective at another λ."""
        return replace(self, problem=replace(self.problem, lam=lam))

    def squared_norm(self, w: Vector, scores: Handle | None = None) -> float:
        """‖w‖². If w is a vector of coefficients this is Σ wᵢ ⟨w, xᵢ⟩: a pass, unless the scores are given."""
        if not self.data.kernel_rows:
            return float(inner(w, w))
        return float(inner(w, self.data.to_array(self.data.scores(w) if scores is None else scores)))

    def regularizer(self, w: Vector, b: float, scores: Handle | None = None) -> float:
        """`penalty` of a point; known scores save a pass over rows of a kernel matrix."""
        return float(self.problem.penalty(self.squared_norm(w, scores), b))

    # ---- P -----------------------------------------------------------------------------------------------------------

    def value(self, w: Vector, b: float) -> float:
        """P(w, b)."""
        return self.value_at(self.data.scores(w), w, b)

    def value_at(self, scores: Handle, w: Vector, b: float) -> float:
        """P(w, b), given the scores ⟨w, xᵢ⟩."""
        return self.regularizer(w, b, scores) + self.mean_loss(scores, b)

    def mean_loss(self, scores: Handle, b: float) -> float:
        """(1/Σc) Σ cᵢ ℓ(yᵢ, scoreᵢ + b)."""
        total = self.data.reduce(partial(sums.loss_sum, self.loss, float(b)), self.y, self.data.weights, scores)
        return float(total) / self.total

    def held_out_error(self, w: Vector, b: float) -> float:
        """The weighted share of rows on the wrong side; unless labels are signs, P without λ/2 ‖w‖²."""
        scores = self.data.scores(w)
        if not self.loss.is_classification:
            return self.mean_loss(scores, b) + self.nu * b
        return (
            float(self.data.reduce(partial(sums.misclassified_weight, float(b)), self.y, self.data.weights, scores))
            / self.total
        )

    def evaluate_primal(self, w: Vector, b: float) -> tuple[float, float, Handle]:
        """b, P(w, b) and ⟨w, xᵢ⟩. A free b is the best one for w; the given b is a first guess (NaN: without one)."""
        scores = self.data.scores(w)
        if self.free:
            b = self.best_intercept(scores, b)
        return b, self.value_at(scores, w, b), scores

    def slopes_at(self, scores: Handle, b: float) -> Handle:
        """ℓ'(yᵢ, scoreᵢ + b)."""
        return self.data.map(partial(sums.slopes, self.loss, float(b)), self.y, scores)

    def subgradient(self, w: Vector, b: float) -> tuple[Vector, float]:
        """A sub-gradient of P in (w, b): λw + (1/Σc) Σ cᵢ ℓ'(pᵢ) xᵢ, and its part in b (0.0 without intercept)."""
        slopes = self.slopes_at(self.data.scores(w), b)
        in_w = self.lam * w + self.data.combine(slopes) / self.total
        if self.intercept == "none":
            return in_w, 0.0
        in_b = self.balance(slopes) / self.total + self.nu
        return in_w, in_b + (self.lam * b if self.intercept == "penalized" else 0.0)

    def best_intercept(self, scores: Handle, guess: float = math.nan) -> float:
        """The b that minimises P(w, ·), given the scores ⟨w, xᵢ⟩; the middle of an interval of minimisers.

        A `guess` near the best b saves some passes; NaN: without one.
        """
        data = self.data
        m = data.shape[0]
        if math.isnan(guess) and data.numbered and m >= 2 * SAMPLED_ROWS:  # a first guess from a sample
            some = np.arange(0, m, m // SAMPLED_ROWS)
            y, weight, few = (data.get(handle, some) for handle in (self.y, data.weights, scores))
            total = weight.total(some.size)
            guess = best_intercept(reduce_locally, self.loss, self.nu * total, total, y, weight, few)
        linear = self.nu * self.total
        return best_intercept(data.reduce, self.loss, linear, self.total, self.y, data.weights, scores, guess)

    def best_constant(self) -> float:
        """The b that minimises P(0, ·): the best constant prediction.

        Examples
        --------
        >>> from primalsvm.data import as_dataset
        >>> from primalsvm.losses import EpsilonInsensitive, Hinge
        >>> rows = as_dataset(np.eye(3))
        >>> round(Problem(Hinge(), 1.0, "free").on(rows, np.array([1.0, -1.0, -1.0])).best_constant(), 9)
        -1.0
        >>> Problem(EpsilonInsensitive(0.0), 1.0, "free").on(rows, np.array([1.0, 5.0, 9.0])).best_constant()
        5.0
        """
        if not self.loss.is_classification:
            return self.best_intercept(self.data.zeros())
        kinds = np.array(self.data.reduce(sums.side_weights, self.y, self.data.weights))  # two kinds of rows
        y, weight, scores = np.array([-1.0, 1.0]), Weights(kinds, 1), np.zeros(2)
        return best_intercept(reduce_locally, self.loss, 0.0, float(kinds.sum()), y, weight, scores)

    # ---- D -----------------------------------------------------------------------------------------------------------

    def clip_alpha(self, alpha: Handle) -> Handle:
        """The point nearest to α inside the dual domain of this loss and these labels."""
        return self.data.map(partial(sums.clip, self.loss), self.y, alpha)

    def balance(self, alpha: Handle) -> float:
        """Σ cᵢ αᵢ."""
        return float(self.data.reduce(sums.weighted_sum, self.data.weights, alpha))

    def imbalance(self, balance: float) -> float:
        """The difference of Σ cᵢ αᵢ, the `balance`, from ν Σc, as a free intercept requires."""
        return balance - self.nu * self.total

    def balance_alpha(self, alpha: Handle) -> Handle:
        """A feasible dual point near α: with a free intercept, Σ cᵢ αᵢ = ν Σc."""
        if not self.free:
            return alpha
        shift_by, shift = balancing_shift(
            self.data.reduce, self.loss, self.nu * self.total, self.total, self.y, self.data.weights, alpha
        )
        return self.data.map(partial(shift_by, self.loss, shift), self.y, alpha)

    def primal_point(self, alpha: Handle, combination: Vector | None = None) -> tuple[Vector, float]:
        """w(α), and the intercept that α implies if it is penalised (else 0.0).

        `combination` is Σ cᵢ αᵢ xᵢ, if it is known.
        """
        s = 1.0 / (self.lam * self.total)
        w = s * (self.data.combine(alpha) if combination is None else combination)
        return w, s * self.balance(alpha) if self.intercept == "penalized" else 0.0

    def conjugate_sum(self, alpha: Handle) -> float:
        """Σ cᵢ (−ℓ*(−αᵢ))."""
        return float(self.data.reduce(partial(sums.dual_sum, self.loss), self.y, self.data.weights, alpha))

    def dual_value(self, alpha: Handle, w: Vector, b: float) -> float:
        """D(α), given w(α) and its implied intercept."""
        return self.conjugate_sum(alpha) / self.total - self.regularizer(w, b)

    def lower_bound(self, alpha: Handle, combination: Vector | None = None) -> float:
        """D at a feasible dual point near α: a lower bound of P*.

        Each αᵢ must lie in its dual domain, as −ℓ' at any score does, or the bound is −∞ (see `clip_alpha`); the
        constraint of a free intercept need not hold. If `combination` = Σ cᵢ αᵢ xᵢ is given, only rows that
        `balance_alpha` moves are added to it.
        """
        allowed = self.balance_alpha(alpha)
        if combination is not None and allowed is not alpha:
            combination = combination + self.data.combine(self.data.map(np.subtract, allowed, alpha))
        return self.dual_value(allowed, *self.primal_point(allowed, combination))

    def evaluate_dual(self, alpha: Handle) -> Evaluation:
        """The primal point w(α) that a dual point implies, with both objective values."""
        alpha = self.balance_alpha(alpha)
        w, b = self.primal_point(alpha)
        dual = self.dual_value(alpha, w, b)
        b, primal, _ = self.evaluate_primal(w, math.nan if self.free else b)
        return Evaluation(w, b, primal, dual)


class Objectives:
    """K problems that differ in their targets only: one class against the rest, for each class.

    Parameters
    ----------
    problem : the definition of each, with a margin loss
    data : the rows with their weights
    Y : handle of the signs, K columns

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.losses import Hinge
    >>> both = Objectives(Problem(Hinge(), 0.5), as_dataset(np.eye(2)), np.array([[1, -1], [-1, 1]]))
    >>> len(both), both[1].y
    (2, array([-1.,  1.]))
    """

    def __init__(self, problem: Problem, data: Dataset, Y: Handle) -> None:
        self.problem, self.data, self.Y = problem, data, Y
        self._separate: dict[int, Objective] = {}

    def __len__(self) -> int:
        return int(self.Y.shape[1])

    def __getitem__(self, k: int) -> Objective:
        if not 0 <= k < len(self):
            raise IndexError(k)
        return self.problem.on(self.data, self.data.map(partial(_column, k), self.Y))

    def trivial_bound(self, k: int) -> float:
        """None: with rows of both labels w* is not 0."""
        return math.inf

    def separate(self, k: int) -> Objective:
        """Problem k, on one thread if other threads solve other problems; kept until `forget`."""
        if k not in self._separate:
            objective = self[k]
            alone = replace(objective, data=self.data.with_threads(ALONE))
            self._separate[k] = objective if len(self) == 1 else alone
        return self._separate[k]

    def forget(self, k: int) -> None:
        """Drop what `separate` keeps for problem k."""
        self._separate.pop(k, None)

    def with_lam(self, lam: float) -> "Objectives":
        """The same problems at another λ."""
        return Objectives(replace(self.problem, lam=lam), self.data, self.Y)


def _column(k: int, Y: Vector, out: Vector) -> None:
    out[:] = Y[:, k]


class MeanRow(NamedTuple):
    """Properties of the mean row x̄, for the one-class problem."""

    squared_norm: float  # ‖x̄‖²
    spread: float  # of the scores ⟨x̄, xᵢ⟩; at least a share of their mean and of ‖x‖², never 0
    rows: float  # mean ‖x‖², of a sample


def mean_row(data: Dataset) -> MeanRow:
    """The mean row, by two passes over the rows.

    With many kernel rows, its scores are those of the mean of a sample, and mean ‖x‖² bounds ‖x̄‖².
    """
    total = data.total_weight
    mean_of_all = data.combine(data.map(sums.ones)) / total
    counted = np.flatnonzero(mean_of_all) if data.kernel_rows else np.zeros(0, np.intp)
    sampled = counted.shape[0] >= 8 * SAMPLED_ROWS
    if sampled:
        chosen = counted[:: counted.shape[0] // SAMPLED_ROWS]
        few = mean_of_all[chosen]
        mean_of_all = np.zeros(mean_of_all.shape[0])
        mean_of_all[chosen] = few / few.sum()
    scores = data.scores(mean_of_all)
    mean = float(data.reduce(sums.weighted_sum, data.weights, scores)) / total  # ⟨x̄, x̄⟩, also with kernel rows
    spread = math.sqrt(data.reduce(partial(sums.centred_squares, mean), data.weights, scores) / total)
    rows = float(data.squared_norms().mean())
    return MeanRow(
        rows if sampled else max(mean, 0.0), max(spread, LEAST_SPREAD * mean, LEAST_SCORE * rows) or 1.0, rows
    )


def check_signs(y: Vector) -> None:
    """Raise a ValueError unless all labels are −1 or +1."""
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("y must hold the labels -1 and +1")


def check_both_signs(y: Vector, weight: Weights) -> None:
    """Raise a ValueError unless labels are −1 and +1, and both are there."""
    check_signs(y)
    counted = y if weight.stride == 0 else y[weight.values > 0]
    if np.all(counted == counted[0]):
        raise ValueError("one class only has rows of positive weight: two classes are needed")
