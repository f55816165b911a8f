"""K problems on the same rows, each solved on its own.

    solvers that visit rows: all problems take turns on a chunk of rows, which stays in the cache
    solvers that make passes over all rows: one problem after the other, because each holds its own matrices

The threads share the problems; a single problem has all threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from primalsvm.data import Dataset, Vector
from primalsvm.objective import Evaluation
from primalsvm.solvers.protocol import JointSolver, JointSolverState, Point, Run, Solver, Traits


class Single:
    """One objective as K = 1 problems, for the driver.

    Parameters
    ----------
    objective : of any kind
    """

    def __init__(self, objective: Any) -> None:
        self.objective = objective

    @property
    def data(self) -> Dataset:
        """The rows."""
        data: Dataset = self.objective.data
        return data

    def __len__(self) -> int:
        return 1

    def __getitem__(self, k: int) -> Any:
        return (self.objective,)[k]

    def trivial_bound(self, k: int) -> float:
        """As the objective."""
        return float(self.objective.trivial_above)

    def separate(self, k: int) -> Any:
        """The objective."""
        return self[k]

    def forget(self, k: int) -> None:
        """Does nothing."""

    def with_lam(self, lam: float) -> "Single":
        """The same objective at another λ."""
        return Single(self.objective.with_lam(lam))


@dataclass
class SeveralState(JointSolverState):
    """The state of each problem."""

    run: Run


@dataclass(frozen=True)
class Several:
    """A solver of one problem, for K of them.

    Parameters
    ----------
    solver : a solver object
    """

    solver: Solver

    @property
    def name(self) -> str:
        """As the solver."""
        return self.solver.name

    @property
    def traits(self) -> Traits:
        """As the solver."""
        return self.solver.traits

    def start(self, objectives: Any, run: Run, chosen: Sequence[int], previous: Sequence[Any]) -> SeveralState:
        """All problems, or as many as there are threads; the others wait."""
        run = run._replace(shared=len(chosen) > 1)
        waiting = {k: previous[k] for k in chosen}
        state = SeveralState(run, target=run.target, members=[None] * len(objectives), waiting=waiting)
        self._start_waiting(objectives, state)
        return state

    def advance(self, objectives: Any, state: SeveralState) -> SeveralState:
        """A chunk of each problem at work."""
        self._start_waiting(objectives, state)
        working = [k for k, member in enumerate(state.members) if member is not None]

        def advance(k: int) -> None:
            member = state.members[k]
            member.target = state.target
            state.members[k] = self.solver.advance(objectives.separate(k), member)

        self._run(objectives, advance, working)
        return state

    def _start_waiting(self, objectives: Any, state: SeveralState) -> None:
        """Start problems that wait, where there is room."""
        room = len(objectives)
        if self.traits.rows == "passes":
            room = objectives.data.threads.size - sum(member is not None for member in state.members)
        chosen = list(state.waiting)[: max(0, room)]

        def start(k: int) -> None:
            previous = as_previous(state.waiting[k])
            state.members[k] = self.solver.start(objectives.separate(k), state.run, previous)

        self._run(objectives, start, chosen)
        for k in chosen:
            del state.waiting[k]

    def evaluate(self, objectives: Any, state: SeveralState, chosen: Sequence[int]) -> list[Evaluation]:
        """As the solver."""
        found: dict[int, Evaluation] = {}

        def evaluate(k: int) -> None:
            found[k] = self.solver.evaluate(objectives.separate(k), state.members[k])

        self._run(objectives, evaluate, list(chosen))
        return [found[k] for k in chosen]

    def iterate(self, objectives: Any, state: SeveralState, k: int) -> tuple[Vector, float]:
        """As the solver."""
        return self.solver.iterate(objectives.separate(k), state.members[k])

    def observe(self, objectives: Any, state: SeveralState, k: int, evaluation: Evaluation) -> None:
        """As the solver, if it stores anything."""
        if hasattr(self.solver, "observe"):
            self.solver.observe(objectives.separate(k), state.members[k], evaluation)

    def hand_over(self, objectives: Any, state: SeveralState, k: int) -> Point:
        """As the solver, if it has this method."""
        solver: Any = self.solver
        point: Point = solver.hand_over(objectives.separate(k), state.members[k])
        return point

    def close(self, objectives: Any, state: SeveralState, k: int) -> tuple[Any, Any]:
        """The solver and its state."""
        member, state.members[k] = state.members[k], None
        objectives.forget(k)
        if hasattr(member, "release"):
            member.release()
        return self.solver, member

    def _run(self, objectives: Any, work: Any, chosen: list[int]) -> None:
        """The same for each of some problems, shared by the threads if there are several."""
        threads = objectives.data.threads
        if len(objectives) == 1 or threads.size == 1:
            for k in chosen:
                work(k)
        elif chosen:
            with threads.blas_limited(working=True):
                threads.run(work, [(k,) for k in chosen])


def as_joint(solver: Any) -> JointSolver:
    """The solver itself if it is for K problems, else `Several` of it."""
    joint: JointSolver = solver if hasattr(solver, "close") else Several(solver)
    return joint


@dataclass(frozen=True)
class LastStage:
    """The solver that a sequence ended with and its state; a later run may start there."""

    name: str
    state: Any


def as_previous(state: Any) -> Any:
    """The state of a single solver in a previous state."""
    return state.state if isinstance(state, LastStage) else state


def replace_state(previous: Any, state: Any) -> Any:
    """The previous state with another state of the single solver."""
    return replace(previous, state=state) if isinstance(previous, LastStage) else state
