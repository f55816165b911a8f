"""Several solvers in sequence: one that will not reach the target in time hands its point over to the next.

    repeat: advance the present solver
        at operations W₁, W₂, … (each 1.5 times the last), with the gap that the solver estimates:
            remaining = forecast of the operations that it still needs
            if remaining > `budget`, twice in a row: the next solver starts from its point

`budget` is about what the following solvers would need from there. Even if all forecasts were wrong, and a solver were
left only after it had used up its budget, a sequence of two would take at most twice as long as the better one.

Forecast. In dual ascent D grows like a power of the operations W. P falls exponentially if the rows are separable or
nearly orthogonal; otherwise it soon stops falling while D is still small. So P and D are both extrapolated until they
are a factor of two apart. From there on the gap falls like a power of W, or exponentially.

Each of several problems is handed over on its own. If they advance together (`Traits.simultaneous`), all are handed
over once more than half of them are too slow. The next solver starts when the present one has no problems left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

from primalsvm.data import Vector
from primalsvm.objective import Evaluation
from primalsvm.solution import relative_gap
from primalsvm.solvers.protocol import JointSolver, JointSolverState, Member, Run, Traits
from primalsvm.solvers.several import LastStage, as_joint

# The operations of each mark are those of the mark before times this ratio.
MARK_RATIO = 1.5
# Below this relative gap the gap itself is extrapolated, instead of P and D.
HALF = 0.5
# The gap is assumed to fall with this power of W until the power can be measured (measured later: 3 to 5).
DEFAULT_GAP_POWER = 4.0
# The measured power of D is clipped to this range (measured: 0 to 2.5).
DUAL_POWERS = (0.1, 3.0)
# The measured power of the gap is clipped to this range.
GAP_POWERS = (0.5, 8.0)


@dataclass(frozen=True)
class Stage:
    """A solver, and the forecast of further work above which it hands over.

    Parameters
    ----------
    solver : a solver object; all but the last of a sequence can hand over
    budget : operations (`costs`); inf: it hands over only if rounding stops it
    first_mark : operations before the first mark; None: no forecasts, it hands over after `budget` operations
    """

    solver: Any
    budget: float = math.inf
    first_mark: float | None = None


class Mark(NamedTuple):
    """The estimates of P and D after a number of operations."""

    operations: float
    primal: float
    dual: float


@dataclass
class StageProgress:
    """The progress of one problem in the present stage."""

    now: Member  # totals of all solvers so far
    before: Member  # totals of the solvers that have handed it over
    next_mark: float  # operations of the present solver at its next mark
    mark: Mark | None = None  # the last mark
    doubtful: bool = False  # the forecast at the last mark exceeded the budget
    too_slow: bool = False  # it would take longer than the solvers that follow
    leaving: bool = False  # the next call of `advance` hands it over


@dataclass
class SequenceState(JointSolverState):
    """The present solver's state, and the progress of each problem."""

    stage: int
    inner: Any
    run: Run
    progress: list[StageProgress]
    points: list[Any]  # of the problems that wait for the next solver


@dataclass(frozen=True, repr=False)
class SolverSequence:
    """Solvers that are tried one after the other; each starts from the point of the one before.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import DualAscent, Hinge, Newton, Problem, solve
    >>> X = np.random.default_rng(0).normal(size=(500, 300)) * np.geomspace(0.01, 100, 300)
    >>> both = SolverSequence((Stage(DualAscent(), budget=1e6), Stage(Newton())))
    >>> solution = solve(Problem(Hinge(), lam=1e-4), X, np.sign(X[:, 0]), solver=both)
    >>> solution.status.value, np.unique(solution.trace["solver"]).tolist()
    ('converged', ['dual_ascent', 'newton'])
    """

    stages: tuple[Stage, ...]
    name: ClassVar[str] = "sequence"

    @property
    def traits(self) -> Traits:
        """The ways in which the solvers read rows, and the problems that all of them support."""
        traits = [stage.solver.traits for stage in self.stages]
        reads: Any = "block" if any(one.rows == "block" for one in traits) else "passes"
        intercepts = tuple(one for one in traits[0].intercepts if all(one in other.intercepts for other in traits))
        return Traits(reads, precise=True, simultaneous=traits[0].simultaneous, intercepts=intercepts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(stage.solver.name for stage in self.stages)})"

    def _solver(self, stage: int) -> JointSolver:
        return as_joint(self.stages[stage].solver)

    def start(self, objectives: Any, run: Run, chosen: Sequence[int], previous: Sequence[Any]) -> SequenceState:
        """The first solver; after a previous sequence, the one that it ended with."""
        names = [stage.solver.name for stage in self.stages]
        left = [previous[k] for k in chosen]
        again = [names.index(one.name) for one in left if isinstance(one, LastStage) and one.name in names]
        stage = min(again) if len(again) == len(left) else 0
        K = len(objectives)
        progress = [StageProgress(Member(), Member(), 0.0) for _ in range(K)]
        state = SequenceState(stage, None, run, progress, [None] * K, target=run.target, members=[None] * K)
        self._start_stage(objectives, state, chosen, previous)
        return state

    def _start_stage(self, objectives: Any, state: SequenceState, chosen: Sequence[int], previous: Any) -> None:
        first_mark = self.stages[state.stage].first_mark or 0.0
        state.inner = self._solver(state.stage).start(objectives, state.run, chosen, previous)
        for k in chosen:
            now = state.progress[k].now
            state.progress[k] = StageProgress(now, replace(now), first_mark)
            state.points[k] = None

    def advance(self, objectives: Any, state: SequenceState) -> SequenceState:
        """One chunk of the present solver, or the first chunk of the next one."""
        self._hand_over_leaving(objectives, state)
        solver = self._solver(state.stage)
        state.inner.target = state.target
        state.inner = solver.advance(objectives, state.inner)
        at_work = [k for k, member in enumerate(state.inner.members) if member is not None]
        for k in at_work:
            self._note_progress(state, state.progress[k], state.inner.members[k])
        if solver.traits.simultaneous:
            leaving = 2 * sum(state.progress[k].too_slow for k in at_work) > len(at_work)
            for k in at_work:
                state.progress[k].leaving = leaving
        for k in at_work:  # so that the history has the point of each handover
            state.progress[k].now.worth_evaluating |= state.progress[k].leaving
        state.members = [None] * len(state.members)
        for k in at_work:
            state.members[k] = state.progress[k].now
        return state

    def _note_progress(self, state: SequenceState, progress: StageProgress, inner: Any) -> None:
        """Update the totals of a problem, and decide whether it leaves the present solver."""
        now, before = progress.now, progress.before
        now.epoch = before.epoch + inner.epoch
        now.steps = before.steps + inner.steps
        now.operations = before.operations + inner.operations
        last = state.stage + 1 == len(self.stages)
        # Rounding, or a limit of the solver, has stopped it. The next evaluation shows whether the problem is solved.
        stopped = inner.finished and not last and (state.run.certify or inner.estimate > state.target)
        now.finished = inner.finished and not stopped
        now.worth_evaluating = inner.worth_evaluating
        progress.too_slow = stopped or (not last and self._is_too_slow(state, progress, inner))
        progress.leaving = progress.too_slow

    def _is_too_slow(self, state: SequenceState, progress: StageProgress, inner: Any) -> bool:
        """Whether the forecast of a problem exceeds the budget; it is updated at each mark."""
        stage = self.stages[state.stage]
        if stage.first_mark is None:
            return bool(inner.operations >= stage.budget)
        if inner.operations < progress.next_mark:
            return progress.too_slow
        before, mark = progress.mark, Mark(inner.operations, inner.primal, inner.dual)
        progress.mark, progress.next_mark = mark, MARK_RATIO * inner.operations
        doubted = progress.doubtful  # one bad forecast may be chance: the estimates of P and D fluctuate
        progress.doubtful = before is not None and forecast(before, mark, state.target) > stage.budget
        return doubted and progress.doubtful

    def _hand_over_leaving(self, objectives: Any, state: SequenceState) -> None:
        """Store the points of the problems that leave; start the next solver when the present one has none left."""
        solver: Any = self._solver(state.stage)
        inner, forecast_was_bad = state.inner, False
        for k, progress in enumerate(state.progress):
            if progress.leaving and inner.members[k] is not None:
                forecast_was_bad |= not inner.members[k].finished
                state.points[k] = solver.hand_over(objectives, inner, k)
                solver.close(objectives, inner, k)
                progress.leaving = False
        if not inner.waiting and all(member is None for member in inner.members):
            state.stage += 1
            while (
                forecast_was_bad
                and state.stage + 1 < len(self.stages)
                and self._solver(state.stage).name == solver.name
            ):
                state.stage += 1  # the same algorithm on one problem at a time would not be faster
            chosen = [k for k, point in enumerate(state.points) if point is not None]
            self._start_stage(objectives, state, chosen, state.points)

    def evaluate(self, objectives: Any, state: SequenceState, chosen: Sequence[int]) -> list[Evaluation]:
        """As the present solver."""
        solver = self._solver(state.stage)
        return [one._replace(solver=solver.name) for one in solver.evaluate(objectives, state.inner, chosen)]

    def iterate(self, objectives: Any, state: SequenceState, k: int) -> tuple[Vector, float]:
        """As the present solver."""
        return self._solver(state.stage).iterate(objectives, state.inner, k)

    def observe(self, objectives: Any, state: SequenceState, k: int, evaluation: Evaluation) -> None:
        """As the present solver."""
        self._solver(state.stage).observe(objectives, state.inner, k, evaluation)

    def close(self, objectives: Any, state: SequenceState, k: int) -> tuple[Any, Any]:
        """The solver that the problem ended with, and its state."""
        state.members[k] = None
        solver, own = self._solver(state.stage).close(objectives, state.inner, k)
        return solver, LastStage(solver.name, own)


def forecast(before: Mark, now: Mark, target: float) -> float:
    """The operations that are still needed to reach the target, from two marks.

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
        return operations_until(w, gap, target, fall / growth, fall / since)
    if not (primal > 0.0 and dual > 0.0 and before.primal > 0.0 and before.dual > 0.0):  # no power law fits
        return w
    power = min(max(math.log(dual / before.dual) / growth, DUAL_POWERS[0]), DUAL_POWERS[1])
    rate = max(math.log(before.primal / primal), 0.0) / since
    apart = math.log(primal / dual) - math.log(2.0)
    # the least x with  rate · x + power · log(1 + x/w) = apart,  which is concave: by bisection
    low, high = 0.0, w * math.expm1(min(apart / power, 700.0))
    high = min(high, apart / rate) if rate > 0.0 else high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rate * middle + power * math.log1p(middle / w) >= apart else (middle, high)
    return high + operations_until(w + high, HALF, target, DEFAULT_GAP_POWER, rate)


def operations_until(w: float, gap: float, target: float, power: float, rate: float) -> float:
    """Operations from a gap to the target: the gap falls like a power of w, or exponentially at a rate, if sooner."""
    left = math.log(gap / target)
    like_power = w * math.expm1(min(left / min(max(power, GAP_POWERS[0]), GAP_POWERS[1]), 700.0))
    return min(like_power, left / rate) if rate > 0.0 else like_power
