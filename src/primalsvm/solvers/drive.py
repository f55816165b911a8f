"""The loop around every solver: the clock, evaluation, stopping, and the results.

    state = solver.start(objectives, …)                   K problems on the same rows; most often K = 1
    while a problem is open:
        state = solver.advance(objectives, state)         one chunk of work
        evaluate the problems for which that is due       P and D: is the gap small enough?
        close those that are solved or have reached a limit

The solver decides when to evaluate from the work done, never from the clock, so a run gives the same bits every time.
The result is the best point evaluated so far; its certificate has the P of that point and the best lower bound.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from primalsvm.data import Vector
from primalsvm.objective import Evaluation
from primalsvm.solution import Certificate, Solution, Status, Trace
from primalsvm.solvers.protocol import JointSolver, ObjectiveSequence, Run
from primalsvm.solvers.stops import SMALL_PROBLEM_TOL, Stops, sentence

# A run with one of these statuses can go on later.
CUT_SHORT = (Status.INTERRUPTED, Status.MAX_SECONDS, Status.MAX_ITER)
# Rounding may change a gap by this share of P or D.
ROUNDING_OF_GAPS = 1e-9
# Rounding may change a mean of losses, which are about 1, by this much.
ROUNDING_OF_LOSSES = 1e-13


class Progress(NamedTuple):
    """The progress of a run after a chunk, for `on_progress`."""

    epoch: float
    max_iter: int
    relative_gap: float  # of the last evaluation, the largest of the problems that are open; inf before the first
    tol: float
    seconds: float


class Snapshot(NamedTuple):
    """A run between two chunks: all that is needed to resume with bit-identical results."""

    state: Any
    records: list[Any]  # a `Record` of each problem
    seconds: float


@dataclass
class Record:
    """The results of a problem so far: the best evaluation, the best lower bound and the trace."""

    solver: str  # its name in the trace
    best: Evaluation | None = None
    bound: float = -np.inf
    selection_value: float = np.inf
    evaluations_without_improvement: int = 0  # evaluations since the validation error was last reduced
    last_solver: str = ""  # of a sequence
    epoch: int = 0  # the last one that was completed
    status: Status | None = None  # why it is closed; None: it is open
    trace: Trace = field(default_factory=Trace)
    solution: Solution | None = None

    def add(self, evaluation: Evaluation, error: float, certify: bool, at: tuple[float, int, float]) -> None:
        """Add an evaluation; `error` is the error on the validation set, NaN without one."""
        self.bound = max(self.bound, evaluation.dual)
        selection_value = evaluation.primal if np.isnan(error) else error
        if evaluation.solver != self.last_solver:  # the next solver may begin with worse points
            self.evaluations_without_improvement, self.last_solver = 0, evaluation.solver
        unjudged = np.isnan(error) and not certify  # nothing to compare: take the latest
        if selection_value < self.selection_value or self.best is None or unjudged:
            self.best, self.selection_value, self.evaluations_without_improvement = (
                evaluation._replace(details=None),
                selection_value,
                0,
            )
        elif not np.isnan(error):
            self.evaluations_without_improvement += 1
        self.trace.append(*at, evaluation.primal, evaluation.dual, error, evaluation.solver or self.solver)

    @property
    def certificate(self) -> Certificate:
        """P of the best point against the best lower bound."""
        assert self.best is not None
        return Certificate.of(self.best.primal, self.bound)

    @property
    def relative_gap(self) -> float:
        """That certificate's relative gap; inf before the first evaluation or without certificates."""
        return np.inf if self.best is None else self.certificate.relative_gap

    def reached(self, tol: float) -> bool:
        """Whether the relative gap is at most `tol`, and the lower bound at most P up to rounding."""
        primal, dual, gap, *_ = self.certificate
        sound = gap >= -max(ROUNDING_OF_GAPS * max(abs(primal), abs(dual)), ROUNDING_OF_LOSSES)
        return self.relative_gap <= tol and sound


def drive(
    objectives: ObjectiveSequence,
    solver: JointSolver,
    stops: Stops,
    *,
    validation: ObjectiveSequence | None = None,
    seed: int = 0,
    start: Sequence[Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    resume: Snapshot | None = None,
    on_snapshot: Callable[[Snapshot, bool], None] | None = None,
) -> list[Solution]:
    """Run a solver until each problem is solved, or one of the stops applies.

    Parameters
    ----------
    objectives : the problems, which share their rows
    solver : see `protocol`
    stops : when to stop
    validation : the same problems on other rows; the points with the lowest error there are kept
    seed : of random numbers
    start : a previous state for each problem, or None
    on_progress : called with the progress after every chunk
    resume : a snapshot to go on from
    on_snapshot : called with a snapshot after every chunk, and whether it is the last one of a run that is cut short
    """
    data = objectives.data
    with data.threads.blas_limited(), interrupts() as interrupted:
        run = _Run(objectives, solver, stops, validation, seed, start, resume)
        while run.open:
            run.advance(interrupted, on_snapshot)
            if on_progress is not None:
                gap = max((record.relative_gap for record in run.records if record.status is None), default=0.0)
                on_progress(Progress(run.epoch, stops.epochs, gap, stops.tol, run.seconds))
        return [record.solution for record in run.records if record.solution is not None]


class _Run:
    """One call of `drive`."""

    def __init__(
        self,
        objectives: ObjectiveSequence,
        solver: JointSolver,
        stops: Stops,
        validation: ObjectiveSequence | None,
        seed: int,
        start: Sequence[Any] | None,
        resume: Snapshot | None,
    ) -> None:
        self.objectives, self.solver, self.stops, self.validation = objectives, solver, stops, validation
        K = len(objectives)
        m, d = objectives.data.shape
        self.traits = solver.traits
        intercept = getattr(objectives[0], "intercept", "none")  # a ranking has none
        if intercept not in self.traits.intercepts:
            known = " or ".join(map(repr, self.traits.intercepts))
            raise ValueError(f"solver {solver.name!r} is for problems with intercept={known}, not {intercept!r}")
        self.small = stops.small(m, d) and self.traits.precise
        self.target = min(stops.tol, SMALL_PROBLEM_TOL) if self.small else stops.tol
        self.begin = time.perf_counter() - (0.0 if resume is None else resume.seconds)
        self.epoch = 0.0
        if resume is None:
            given = Run(self.target, stops.certify, stops.epochs, seed)
            self.state = solver.start(objectives, given, range(K), [None] * K if start is None else start)
            self.records = [Record(solver.name) for _ in range(K)]
        else:
            self.state, self.records = resume.state, resume.records
            self.state.target = self.target  # `tol` may have changed

    @property
    def open(self) -> bool:
        """Whether a problem is open."""
        return any(record.status is None for record in self.records)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.begin

    def advance(self, interrupted: Callable[[], bool], on_snapshot: Callable[[Snapshot, bool], None] | None) -> None:
        """One chunk of work, then evaluations, stopping and snapshots."""
        stops, solver = self.stops, self.solver
        self.state = solver.advance(self.objectives, self.state)
        seconds = self.seconds
        cut = Status.INTERRUPTED if interrupted() else None
        if cut is None and stops.max_seconds is not None and seconds >= stops.max_seconds:
            cut = Status.MAX_SECONDS
        ends: dict[int, Status | None] = {}
        due: list[int] = []
        new_epochs: list[int] = []
        for k, record in enumerate(self.records):
            if record.status is not None:
                continue
            member = self.state.members[k]
            ends[k] = cut if member is None else self._end(member, cut)
            if member is None:
                continue
            self.epoch = max(self.epoch, member.epoch)
            new_epoch = int(member.epoch) > record.epoch
            # the epoch limit is passed while operations are left: evaluate there, as later points may be worse
            long_enough = stops.max_iter is None and record.epoch < stops.epochs <= member.epoch
            record.epoch = int(member.epoch)
            if new_epoch and self.validation is not None:
                new_epochs.append(k)
            if k in new_epochs or (stops.certify and (member.worth_evaluating or long_enough)):
                due.append(k)
        # evaluations that are made only because the run is cut short come after the snapshot
        undue: dict[int, Status | None] = {k: end for k, end in ends.items() if end in CUT_SHORT and k not in due}
        self._evaluate({k: end for k, end in ends.items() if k not in undue}, due, new_epochs)
        unsolved = [k for k in ends if k in undue or self.records[k].status in CUT_SHORT]
        for k in ends:
            if self.records[k].status is not None and k not in unsolved:
                self._close(k)
        goes_on = any(self.records[k].status is None for k in ends if k not in undue)
        if on_snapshot is not None and unsolved and not goes_on:
            on_snapshot(self._snapshot(seconds), True)
        self._evaluate(undue, [], [])
        for k in unsolved:
            self._close(k)
        if on_snapshot is not None and goes_on:
            on_snapshot(self._snapshot(seconds), False)

    def _end(self, member: Any, cut: Status | None) -> Status | None:
        """Why a problem ends with this chunk, if it does."""
        traits, stops = self.traits, self.stops
        if cut is Status.INTERRUPTED:
            return cut
        if member.finished:
            return Status.FINISHED if traits.fixed_steps or not stops.certify else Status.STALLED
        if not traits.fixed_steps and stops.exhausted(member.epoch, member.operations, self.small):
            return Status.MAX_ITER
        return cut

    def _evaluate(self, ends: dict[int, Status | None], due: list[int], new_epochs: list[int]) -> None:
        """Evaluate the problems that end or are due; set the status of those that are over."""
        stops, paced = self.stops, self.traits.fixed_steps
        chosen = [k for k, end in ends.items() if end is not None or k in due]
        if not chosen:
            return
        if stops.certify:
            known = [k for k in chosen if self.state.members[k] is not None]
            found = dict(zip(known, self.solver.evaluate(self.objectives, self.state, known), strict=True))
            for k in chosen:
                status, record = ends[k], self.records[k]
                if k in found:
                    self._add(k, found[k])
                    self.solver.observe(self.objectives, self.state, k, found[k])
                elif record.best is None:  # the problem has not been started
                    objective = self.objectives[k]
                    self._add(k, objective.evaluate_dual(objective.data.zeros()))
                if record.reached(self.target) and not (paced and status is None):
                    status = Status.CONVERGED
                elif record.bound >= self.objectives.trivial_bound(k):
                    self._add(k, Evaluation(self._zero(k), 0.0, 0.0, record.bound))
                    status = Status.STALLED
                ends[k] = status
        else:
            for k in chosen:
                if self.state.members[k] is None:
                    self._add(k, Evaluation(self._zero(k), 0.0, np.nan, -np.inf))
                elif ends[k] is not None or k in new_epochs:
                    w, b = self.solver.iterate(self.objectives, self.state, k)
                    self._add(k, Evaluation(w, b, np.nan, -np.inf))
        for k, status in ends.items():
            record = self.records[k]
            if status is None and record.evaluations_without_improvement >= stops.patience:
                status = Status.EARLY_STOPPING
            elif status is not None and not paced and record.reached(stops.tol):
                status = Status.CONVERGED
            record.status = status

    def _zero(self, k: int) -> Vector:
        """w = 0 of a problem, whose rows may be some of all."""
        return np.zeros(self.objectives[k].data.shape[1])

    def _add(self, k: int, evaluation: Evaluation) -> None:
        error = np.nan
        if self.validation is not None:
            error = self.validation[k].held_out_error(evaluation.w, evaluation.b)
        member = self.state.members[k]
        epoch, steps = (0.0, 0) if member is None else (member.epoch, member.steps)
        self.records[k].add(evaluation, error, self.stops.certify, (epoch, steps, self.seconds))

    def _snapshot(self, seconds: float) -> Snapshot:
        """The run as it is; unsolved problems are open again when it goes on."""
        records = [replace(one, status=None) if one.solution is None else one for one in self.records]
        return Snapshot(self.state, records, seconds)

    def _close(self, k: int) -> None:
        """Store the solution of a problem that is over."""
        record, member = self.records[k], self.state.members[k]
        assert record.status is not None and record.best is not None  # a problem ends with an evaluation
        epoch, steps = (0.0, 0) if member is None else (member.epoch, member.steps)
        above = self.objectives.trivial_bound(k)
        solver, state = (self.solver, None) if member is None else self.solver.close(self.objectives, self.state, k)
        zero, tunable = record.bound >= above, above == np.inf
        record.solution = Solution(
            w=record.best.w,
            b=record.best.b,
            certificate=record.certificate if self.stops.certify else None,
            status=record.status,
            message=sentence(record.status, epoch, record.relative_gap, self.stops, zero=zero, tunable=tunable),
            trace=record.trace.array(),
            n_epochs=epoch,
            n_steps=steps,
            seconds=self.seconds,
            solver=solver,
            state=state,
        )


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag that is read between chunks; the second one raises as usual.

    A state must never be left half updated. Python delivers signals to the main thread only, so the flag is never set
    in other threads.
    """
    pressed = False

    def handler(number: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    usable = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not usable:
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, previous)
