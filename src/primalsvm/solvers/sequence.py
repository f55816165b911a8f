"""Several solvers in sequence: one that will not reach the target in time hands its point over to the next.

    repeat: advance the present solver
        at operations W₁, W₂, … (each 1.5 times the last), with the gap that the solver estimates:
            remaining = forecast of the operations that it still needs
            if remaining > `patience`: the next solver starts from its point

`patience` is about what the solvers that follow would take from there. If the forecasts were worthless, and a solver
were left only when it has used up its patience, a sequence of two would take twice as long as the better one at most.

Forecast. Two things happen in dual ascent: D grows like a power of the operations W, and P falls exponentially, where
the rows are separable or nearly orthogonal; where they are not, it soon stops falling, and D has a long way to go. So
both are extrapolated to where they are a factor of two apart. Once they are, the gap falls like a power of W, or
exponentially.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Vector
from primalsvm.solution import relative_gap
from primalsvm.solvers.protocol import Run, Solver
from primalsvm.team import Team

APART = 1.5  # times the operations of one mark is the next
HALF = 0.5  # relative gap from which on it is extrapolated itself
TAIL = 4.0  # its power, before it is measured (seen: 3 to 5)
GROWTH = (0.1, 3.0)  # least and largest power of D that is believed (seen: 0 to 2.5),
FALL = (0.5, 8.0)  # … of the gap


@dataclass(frozen=True)
class Stage:
    """A solver, and how much work it may still seem to need before it hands over.

    Parameters
    ----------
    solver : a solver object; all but the last of a sequence have `hand_over`
    patience : operations (`costs`); inf: it never hands over, unless rounding stops it
    first_mark : operations before its first forecast; None: there are none, and it hands over after `patience`
    """

    solver: Solver
    patience: float = math.inf
    first_mark: float | None = None


class Mark(NamedTuple):
    """How far a solver has come: P and D, as it estimates them, after so many operations."""

    operations: float
    primal: float
    dual: float


@dataclass
class SequenceState:
    """The present solver's state, and what its progress was."""

    stage: int
    name: str  # of the present solver
    inner: Any
    run: Run
    target: float
    next_mark: float  # operations of the present solver
    mark: Mark | None = None  # the last one
    leaving: bool = False  # the next step begins with the next solver
    epochs_before: float = 0.0  # of the solvers that have handed over
    steps_before: int = 0
    operations_before: float = 0.0
    epoch: float = 0.0
    steps: int = 0
    operations: float = 0.0
    finished: bool = False
    worth_evaluating: bool = False

    def release(self) -> None:
        """Forget what can be computed again."""
        if hasattr(self.inner, "release"):
            self.inner.release()


@dataclass(frozen=True, repr=False)
class SolverSequence:
    """Solvers that are tried one after the other, each begun where the one before has left off.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import DualAscent, Hinge, Newton, Problem, solve
    >>> X = np.random.default_rng(0).normal(size=(500, 300)) * np.geomspace(0.01, 100, 300)
    >>> both = SolverSequence((Stage(DualAscent(), patience=1e6), Stage(Newton())))
    >>> solution = solve(Problem(Hinge(), lam=1e-4), X, np.sign(X[:, 0]), solver=both)
    >>> solution.status.value, np.unique(solution.trace["solver"]).tolist()
    ('converged', ['dual_ascent', 'newton'])
    """

    stages: tuple[Stage, ...]
    name: ClassVar[str] = "sequence"
    precise: ClassVar[bool] = True
    self_paced: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(stage.solver.name for stage in self.stages)})"

    def after(self, name: str) -> "SolverSequence":
        """The stages that follow the solver of this name; all of them, if it is not the first."""
        return SolverSequence(self.stages[1:]) if self.stages[0].solver.name == name and len(self.stages) > 1 else self

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> SequenceState:
        """The first solver, from where it can go on; a previous sequence, at the solver that it ended with."""
        stage = 0
        if isinstance(previous, SequenceState):
            names = [one.solver.name for one in self.stages]
            stage = names.index(previous.name) if previous.name in names else 0
            previous = previous.inner
        solver = self.stages[stage].solver
        inner = solver.start(problem, batch, run, team, previous)
        return SequenceState(stage, solver.name, inner, run, run.target, self.stages[stage].first_mark or 0.0)

    def advance(self, problem: Problem, batch: Batch, state: SequenceState, team: Team) -> SequenceState:
        """One chunk of the present solver's, or the first of the next one's."""
        if state.leaving:
            self._hand_over(problem, batch, state, team)
        stage = self.stages[state.stage]
        inner = state.inner
        inner.target = state.target
        state.inner = inner = stage.solver.advance(problem, batch, inner, team)
        state.epoch = state.epochs_before + inner.epoch
        state.steps = state.steps_before + inner.steps
        state.operations = state.operations_before + inner.operations
        last = state.stage + 1 == len(self.stages)
        done = inner.finished and not last and inner.estimate > state.target  # rounding has stopped it
        state.finished = inner.finished and not done
        state.leaving = done or (not last and self._will_not_make_it(state, stage))
        state.worth_evaluating = inner.worth_evaluating or state.leaving  # the history shows where it was left
        return state

    def _will_not_make_it(self, state: SequenceState, stage: Stage) -> bool:
        """Whether the present solver seems to need more than its patience; looked at from time to time."""
        inner = state.inner
        if stage.first_mark is None:
            return bool(inner.operations >= stage.patience)
        if inner.operations < state.next_mark:
            return False
        before, mark = state.mark, Mark(inner.operations, inner.primal, inner.dual)
        state.mark, state.next_mark = mark, APART * inner.operations
        return before is not None and forecast(before, mark, state.target) > stage.patience

    def _hand_over(self, problem: Problem, batch: Batch, state: SequenceState, team: Team) -> None:
        solver: Any = self.stages[state.stage].solver
        point = solver.hand_over(problem, batch, state.inner)
        state.stage += 1
        stage = self.stages[state.stage]
        state.name = stage.solver.name
        state.epochs_before, state.steps_before = state.epoch, state.steps
        state.operations_before = state.operations
        state.inner = stage.solver.start(problem, batch, state.run, team, point)
        state.next_mark, state.mark, state.leaving = stage.first_mark or 0.0, None, False

    def evaluate(self, problem: Problem, batch: Batch, state: SequenceState, team: Team) -> Evaluation:
        """As the present solver."""
        solver = self.stages[state.stage].solver
        return solver.evaluate(problem, batch, state.inner, team)._replace(solver=solver.name)

    def iterate(self, problem: Problem, batch: Batch, state: SequenceState) -> tuple[Vector, float]:
        """As the present solver."""
        return self.stages[state.stage].solver.iterate(problem, batch, state.inner)


def present(solver: Solver, state: Any) -> tuple[Solver, Any]:
    """The solver of a sequence that is at work, or was at last, and its own state; any other solver is at work itself.

    Examples
    --------
    >>> from primalsvm import Newton
    >>> present(Newton(), None)
    (Newton(), None)
    """
    if isinstance(solver, SolverSequence) and isinstance(state, SequenceState):
        return solver.stages[state.stage].solver, state.inner
    return solver, state


def state_for(solver: Solver, state: Any) -> Any:
    """A previous state, as this solver may know it: that of a sequence is unwrapped for a solver that is none."""
    return state.inner if isinstance(state, SequenceState) and not isinstance(solver, SolverSequence) else state


def forecast(before: Mark, now: Mark, target: float) -> float:
    """Operations that are still needed to reach the target, given how far a solver was before and is now.

    Examples
    --------
    >>> round(forecast(Mark(1e6, 1.0, 0.996), Mark(2e6, 1.0, 0.998), 1e-3))  # half the gap for a million operations
    1000000
    >>> forecast(Mark(1e6, 1.0, 0.01), Mark(2e6, 0.99, 0.02), 1e-3) > 1e8
    True
    >>> forecast(Mark(1e6, 1e-2, 1e-6), Mark(2e6, 1e-3, 1e-6), 1e-3) < 1e7  # P falls tenfold a million
    True
    """
    w, primal, dual = now
    gap = relative_gap(primal, dual)
    if gap <= target:
        return 0.0
    since, growth = w - before.operations, math.log(w / before.operations)
    if gap < HALF:
        fall = math.log(max(relative_gap(before.primal, before.dual), gap) / gap)
        return tail(w, gap, target, fall / growth, fall / since)
    if not (primal > 0.0 and dual > 0.0 and before.primal > 0.0 and before.dual > 0.0):  # as much again
        return w
    power = min(max(math.log(dual / before.dual) / growth, GROWTH[0]), GROWTH[1])
    rate = max(math.log(before.primal / primal), 0.0) / since
    apart = math.log(primal / dual) - math.log(2.0)
    # the least x with  rate · x + power · log(1 + x/w) = apart,  which is concave: by bisection
    low, high = 0.0, w * math.expm1(min(apart / power, 700.0))
    high = min(high, apart / rate) if rate > 0.0 else high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rate * middle + power * math.log1p(middle / w) >= apart else (middle, high)
    return high + tail(w + high, HALF, target, TAIL, rate)


def tail(w: float, gap: float, target: float, power: float, rate: float) -> float:
    """Operations from a gap to the target, if it falls like a power of w or at a rate, whichever is sooner."""
    left = math.log(gap / target)
    like_power = w * math.expm1(min(left / min(max(power, FALL[0]), FALL[1]), 700.0))
    return min(like_power, left / rate) if rate > 0.0 else like_power
