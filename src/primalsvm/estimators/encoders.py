"""From y to the targets Y of one or more problems, and from their solutions back.

    classes   two: ±1; more: ±1 for each class against the rest
    labels    any number of labels a row: ±1 for each label that some rows have and some have not
    numbers   y = c + s y' with c the median (if the intercept is free) and s such that P(0) is at most ½
    none      zeros (novelty); s is the unit of the scores

Solvers are made for margins of 1. A regression with targets of another size is solved in other units:

    λ/2 ‖w‖² + mean ℓ(y, p) = s^k (λ'/2 ‖w'‖² + mean ℓ_s(y', p')),     w = s w',  p = c + s p',  λ' = λ s^(2−k)

for a loss of degree k. P, D and the gap of the given problem are those of the problem solved, times s^k.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight

from primalsvm.data import InMemory, Vector
from primalsvm.objective import Problem
from primalsvm.solution import Certificate, Solution

NEAR = 0.25  # relative change of units up to which a solution in the old ones is a good starting point


@dataclass(frozen=True)
class Encoded:
    """Rows, and the problems to solve on them."""

    data: InMemory  # with all weights
    problem: Any  # the definition of each problem, in the units of y
    Y: Any = None  # a column for each problem: int8 signs, or float64 if there is only one problem
    decoder: "Classes | Labels | None" = None  # what the columns are; None for numbers
    strata: Vector | None = None  # groups of rows, for stratified sampling
    objective: Any = None  # of the only problem; None: it follows from data, problem and Y
    solver: Any = None  # replaces the parameter `solver` of the estimator
    pairs: list[tuple[int, int]] | None = None  # of classes, one-vs-one; None: each class has a problem
    score_unit: float = 1.0  # the scores of the fitted model are those of the solution times this

    @property
    def count(self) -> int:
        """The number of problems."""
        if self.pairs is not None:
            return len(self.pairs)
        return 1 if self.Y is None else int(self.Y.shape[1])

    def subset(self, numbers: Vector) -> "Encoded":
        """Some of the rows."""
        data = InMemory(self.data.take(numbers), self.data.weights.take(numbers), self.data.threads)
        return replace(self, data=data, Y=np.asfortranarray(self.Y[numbers]))


# ---- classes and labels ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Classes:
    """The classes of the rows."""

    classes: npt.NDArray[Any]  # sorted
    codes: npt.NDArray[Any]  # of each row: the index of its class, or −1 for a class of weight 0
    weights: Vector | None = None  # of the classes
    notice: ClassVar[None] = None

    def row_weights(self, given: Vector) -> Vector:
        """The weights of the rows: the given ones times those of their classes."""
        return given if self.weights is None else given * np.where(self.codes < 0, 0.0, self.weights[self.codes])

    def with_class_weight(self, class_weight: Any, given: Vector) -> "Classes":
        """The same classes with the weights of `class_weight`, for rows with the given weights."""
        if class_weight is None:
            return self
        weights: Vector = compute_class_weight(
            class_weight, classes=self.classes, y=self.classes[self.codes], sample_weight=given
        )
        if not np.isfinite(weights).all():
            raise ValueError("class_weight contains NaN or infinity")
        if weights.min() < 0.0:
            raise ValueError(f"class_weight must not be negative, got {class_weight!r}")
        return replace(self, weights=weights)

    def with_positive_weight(self, given: Vector) -> "Classes":
        """The classes that have rows of positive weight; the others are left out."""
        there = np.bincount(self.codes + 1, self.row_weights(given), len(self.classes) + 1)[1:] > 0
        if np.count_nonzero(there) < 2:
            raise ValueError("one class only has rows of positive weight: two classes are needed")
        if there.all():
            return self
        codes = np.append(np.where(there, np.cumsum(there) - 1, -1), -1)[self.codes]
        return Classes(self.classes[there], codes, None if self.weights is None else self.weights[there])

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that give the meaning of scores."""
        weights = np.ones(len(self.classes)) if self.weights is None else self.weights
        return {"classes_": self.classes, "multilabel_": False, "class_weight_": weights}

    def expand(self, W: Vector, b: Vector, certificates: list[Any]) -> tuple[Vector, Vector, list[Any]]:
        """The same, as every class has a problem."""
        return W, b, certificates

    def check_training(self, Y: Vector, weight: Vector) -> None:
        """Raise a ValueError if a class has no training row of positive weight."""
        counted = Y[weight > 0]
        sides = [counted == -1, counted == 1] if Y.shape[1] == 1 else [counted == 1]
        there = np.hstack([side.any(axis=0) for side in sides])
        if not there.all():
            missing = self.classes[np.flatnonzero(~there)[0]].item()
            raise ValueError(f"the class {missing!r} has no rows of positive weight")


@dataclass(frozen=True)
class Labels:
    """Which labels vary from row to row, and so have a problem, and which are constant."""

    count: int
    varying: npt.NDArray[np.intp]
    constants: dict[int, bool]  # whether all rows have the label, or none

    @classmethod
    def of(cls, present: npt.NDArray[np.bool_], weight: Vector) -> "Labels":
        """From a matrix of which rows have which labels, a column each."""
        counted = present[weight > 0]
        constant = counted.all(axis=0) | ~counted.any(axis=0)
        if constant.all():
            raise ValueError("every label is at all rows or at none: there is nothing to learn")
        constants = {int(k): bool(counted[0, k]) for k in np.flatnonzero(constant)}
        return cls(present.shape[1], np.flatnonzero(~constant), constants)

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that give the meaning of scores."""
        return {"classes_": np.arange(self.count), "multilabel_": True}

    def check_training(self, Y: Vector, weight: Vector) -> None:
        """Raise a ValueError if a label is constant among the training rows of positive weight."""
        counted = Y[weight > 0]
        constant = self.varying[(counted == 1).all(axis=0) | (counted == -1).all(axis=0)].tolist()
        if constant:
            raise ValueError(f"label {constant[0]} is at all of the rows left to train on, or at none")

    def expand(self, W: Vector, b: Vector, certificates: list[Any]) -> tuple[Vector, Vector, list[Any]]:
        """Solutions of all labels; a constant one has w = 0, b = ±1 and no certificate."""
        all_w, all_b = np.zeros((self.count, W.shape[1])), np.zeros(self.count)
        all_w[self.varying], all_b[self.varying] = W, b
        for k, everywhere in self.constants.items():
            all_b[k] = 1.0 if everywhere else -1.0
        known = dict(zip(self.varying.tolist(), certificates, strict=True))
        return all_w, all_b, [known.get(k) for k in range(self.count)]

    @property
    def notice(self) -> str | None:
        """A warning if there are constant labels."""
        if not self.constants:
            return None
        k, everywhere = next(iter(self.constants.items()))
        more = f" (and {len(self.constants) - 1} more are as constant)" if len(self.constants) > 1 else ""
        if everywhere:
            return f"label {k} is at all rows{more}: it is always predicted"
        return f"label {k} is at none of the rows{more}: it is never predicted"


# ---- units -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """The units that a problem is solved in: y = c + s y'."""

    scale: float  # s
    centre: float  # c
    degree: int  # k, of the loss

    @classmethod
    def of(cls, y: Vector, weight: Vector, degree: int, free: bool) -> "Units":
        """Units for targets with these weights; c is 0 unless the intercept is free."""
        counted = y[weight > 0]
        centre = float(np.median(counted)) if free else 0.0
        size = np.abs(counted - centre)
        with np.errstate(all="ignore"):  # what is too large is refused below
            scale = 2.0 * float(size.mean()) if degree == 1 else float(np.sqrt(2.0 * np.square(size).mean()))
        scale = scale if scale > 0.0 else 1.0
        if not (np.isfinite(scale) and 1e-300 < scale < 1e300 ** (1.0 / degree)):
            raise ValueError(f"y is about {scale:.1e} in size, beyond what numbers can hold: use other units")
        return cls(scale, centre, degree)

    def near(self, other: "Units") -> bool:
        """Whether the units are approximately the same."""
        return bool(
            self.degree == other.degree
            and abs(np.log(self.scale / other.scale)) <= NEAR
            and abs(self.centre - other.centre) <= NEAR * self.scale
        )

    def targets(self, Y: Vector) -> Vector:
        """y'."""
        return (Y - self.centre) / self.scale

    def problem(self, problem: Problem) -> Problem:
        """The problem for y'."""
        loss: Any = problem.loss
        return replace(problem, loss=loss.scaled(self.scale), lam=problem.lam * self.scale ** (2 - self.degree))

    def restore(self, solution: Solution) -> Solution:
        """The solution in the units of y."""
        unit = self.scale**self.degree
        trace = solution.trace.copy()
        for name in ("primal", "dual", "gap", "validation_error"):
            trace[name] *= unit
        proof = solution.certificate
        return replace(
            solution,
            w=self.scale * solution.w,
            b=self.centre + self.scale * solution.b,
            certificate=None if proof is None else Certificate.of(unit * proof.primal, unit * proof.dual),
            trace=trace,
        )
