"""A solver that is evaluated more often than it asks for: for pictures and studies of its convergence."""

from dataclasses import dataclass
from typing import Any

from primalsvm.data import Vector
from primalsvm.objective import Evaluation
from primalsvm.solvers.protocol import Point, Run, Solver, Traits


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
    def traits(self) -> Traits:
        """As the solver."""
        return self.solver.traits

    def start(self, objective: Any, run: Run, previous: Any = None) -> Any:
        """As the solver."""
        return self.solver.start(objective, run, previous)

    def advance(self, objective: Any, state: Any) -> Any:
        """As the solver; an evaluation is due when one of the epochs has just ended."""
        before = state.epoch
        state = self.solver.advance(objective, state)
        state.worth_evaluating |= any(before < epoch <= state.epoch for epoch in self.epochs)
        return state

    def evaluate(self, objective: Any, state: Any) -> Evaluation:
        """As the solver."""
        return self.solver.evaluate(objective, state)

    def iterate(self, objective: Any, state: Any) -> tuple[Vector, float]:
        """As the solver."""
        return self.solver.iterate(objective, state)

    def observe(self, objective: Any, state: Any, evaluation: Evaluation) -> None:
        """As the solver."""
        self.solver.observe(objective, state, evaluation)

    def hand_over(self, objective: Any, state: Any) -> Point:
        """As the solver, if it can."""
        solver: Any = self.solver
        point: Point = solver.hand_over(objective, state)
        return point

    def path_start(self, state: Any, memory: Any, lam: float) -> tuple[Any, Any]:
        """As the solver, if it can."""
        solver: Any = self.solver
        found: tuple[Any, Any] = solver.path_start(state, memory, lam)
        return found
