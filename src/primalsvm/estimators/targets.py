"""What y becomes: one vector of labels for each problem that is solved, and back again.

    Classes   two classes: signs; more: one against the rest, a problem for each
    Numbers   y = c + s y' with c the median (where the intercept is free) and s such that P(0) is ½ at most

A regression with targets far from 1 in size is the same problem in other units, and solvers that know margins of 1 are
at home with y':

    λ/2 ‖w‖² + mean ℓ(y, p) = s^k (λ'/2 ‖w'‖² + mean ℓ_s(y', p')),     w = s w',  p = c + s p',  λ' = λ s^(2−k)

for a loss of degree k. Its certificate is that of the problem as it was given: P, D and the gap times s^k.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from primalsvm.objective import Problem
from primalsvm.rows import Batch, Vector
from primalsvm.solution import Certificate, Solution

NEAR = 0.25  # of its size: so far units may change, and a solution in the old ones is still a place to start from


class Targets(Protocol):
    """The labels of the problems that are solved."""

    @property
    def count(self) -> int:
        """How many problems."""

    def labels(self, k: int) -> Vector:
        """Of problem k."""

    @property
    def strata(self) -> Vector | None:
        """Groups of rows that held-out rows are drawn from alike."""

    def check(self, batch: Batch) -> None:
        """Refuse rows that say nothing about a problem."""

    def take(self, rows: Vector) -> Self:
        """Those of some rows."""

    def problem(self, problem: Problem) -> Problem:
        """What is solved in place of the problem that was given."""

    def restored(self, solution: Solution) -> Solution:
        """The solution of the problem that was given."""


@dataclass(frozen=True)
class Classes:
    """The classes, sorted, and each row's index into them."""

    classes: npt.NDArray[Any]
    codes: npt.NDArray[Any]

    @property
    def count(self) -> int:
        return len(self.classes) if len(self.classes) > 2 else 1

    def labels(self, k: int) -> Vector:
        return np.where(self.codes == (k if self.count > 1 else 1), 1.0, -1.0)

    @property
    def strata(self) -> Vector:
        return self.codes

    def check(self, batch: Batch) -> None:
        weight = np.broadcast_to(batch.weight.values, self.codes.shape)
        there = np.bincount(self.codes, weights=weight, minlength=len(self.classes)) > 0
        if np.count_nonzero(there) < 2:
            raise ValueError("one class only has rows of positive weight: two classes are needed")
        if not there.all():
            missing = self.classes[np.flatnonzero(~there)[0]].item()
            raise ValueError(f"the class {missing!r} has no rows of positive weight")

    def take(self, rows: Vector) -> "Classes":
        return replace(self, codes=self.codes[rows])

    def problem(self, problem: Problem) -> Problem:
        return problem

    def restored(self, solution: Solution) -> Solution:
        return solution


@dataclass(frozen=True)
class Numbers:
    """Numbers y, with the unit and the origin in which they are solved for."""

    y: Vector
    scale: float
    centre: float
    degree: int

    @classmethod
    def of(cls, y: Vector, weight: Vector, loss: Any, free: bool) -> "Numbers":
        """Numbers with a scale and a centre that suit the loss."""
        counted = y[np.broadcast_to(weight, y.shape) > 0]
        centre = float(np.median(counted)) if free else 0.0
        size = np.abs(counted - centre)
        with np.errstate(all="ignore"):  # what is too large is told below
            scale = 2.0 * float(size.mean()) if loss.degree == 1 else float(np.sqrt(2.0 * np.square(size).mean()))
        scale = scale if scale > 0.0 else 1.0
        if not (np.isfinite(scale) and 1e-300 < scale < 1e300 ** (1.0 / loss.degree)):
            raise ValueError(f"y is about {scale:.1e} in size, beyond what numbers can hold: use other units")
        return cls(y, scale, centre, loss.degree)

    def near(self, other: "Numbers") -> bool:
        """Whether the units are about the same."""
        closeness = (
            abs(np.log(self.scale / other.scale)) <= NEAR and abs(self.centre - other.centre) <= NEAR * self.scale
        )
        return bool(closeness and self.degree == other.degree)

    @property
    def count(self) -> int:
        return 1

    def labels(self, k: int) -> Vector:
        return (self.y - self.centre) / self.scale

    @property
    def strata(self) -> None:
        return None

    def check(self, batch: Batch) -> None:
        pass

    def take(self, rows: Vector) -> "Numbers":
        return replace(self, y=self.y[rows])

    def problem(self, problem: Problem) -> Problem:
        loss: Any = problem.loss
        return replace(problem, loss=loss.scaled(self.scale), lam=problem.lam * self.scale ** (2 - self.degree))

    def restored(self, solution: Solution) -> Solution:
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
