"""Wraps a solver to evaluate it at given epochs: for plots and studies of convergence."""

from dataclasses import dataclass
from typing import Any


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

    solver: Any
    epochs: tuple[int, ...]

    def advance(self, objective: Any, state: Any) -> Any:
        """As the solver; an evaluation is due when one of the epochs has just ended."""
        before = state.epoch
        state = self.solver.advance(objective, state)
        state.worth_evaluating |= any(before < epoch <= state.epoch for epoch in self.epochs)
        return state

    def __getattr__(self, name: str) -> Any:
        """All else is that of the solver."""
        if name == "solver" or name.startswith("__"):  # while a copy is made, there is no solver yet
            raise AttributeError(name)
        return getattr(self.solver, name)
