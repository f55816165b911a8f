"""A solver that is looked at more often than it asks for: for pictures and studies of its convergence."""

from dataclasses import dataclass
from typing import Any

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Vector
from primalsvm.solvers.protocol import Run, Solver
from primalsvm.team import Team


@dataclass(frozen=True)
class Watched:
    """Another solver, evaluated after the given epochs too. Its steps stay the same; the evaluations cost time.

    Parameters
    ----------
    solver : a solver object
    epochs : at the end of which to evaluate

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import DualAscent, Hinge, Problem, solve
    >>> X, y = np.array([[2.0, 0.1], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]]), [1, 1, -1, -1]
    >>> solve(Problem(Hinge(), lam=0.01), X, y, solver=Watched(DualAscent(), (1, 2, 3))).trace["epoch"][:3]
    array([1., 2., 3.])
    """

    solver: Solver
    epochs: tuple[int, ...]

    @property
    def name(self) -> str:
        """As the solver."""
        return self.solver.name

    @property
    def precise(self) -> bool:
        """As the solver."""
        return self.solver.precise

    @property
    def self_paced(self) -> bool:
        """As the solver."""
        return self.solver.self_paced

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> Any:
        """As the solver."""
        return self.solver.start(problem, batch, run, team, previous)

    def advance(self, problem: Problem, batch: Batch, state: Any, team: Team) -> Any:
        """As the solver; an evaluation is due when one of the epochs has just ended."""
        before = state.epoch
        state = self.solver.advance(problem, batch, state, team)
        state.worth_evaluating |= any(before < epoch <= state.epoch for epoch in self.epochs)
        return state

    def evaluate(self, problem: Problem, batch: Batch, state: Any, team: Team) -> Evaluation:
        """As the solver."""
        return self.solver.evaluate(problem, batch, state, team)

    def iterate(self, problem: Problem, batch: Batch, state: Any) -> tuple[Vector, float]:
        """As the solver."""
        return self.solver.iterate(problem, batch, state)
