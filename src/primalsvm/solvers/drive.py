"""The one loop around every solver: the clock, evaluation, stopping, and what is kept.

When to evaluate is decided by the solver from the work it has done, never from the clock, so that a run has the same
bits every time. What is kept is the best point evaluated so far; the certificate pairs its P with the best lower bound
seen.
"""

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from primalsvm.objective import Evaluation, Objective, Problem
from primalsvm.rows import Batch, shape
from primalsvm.solution import Certificate, Solution, Status, Trace
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Run, Solver
from primalsvm.solvers.sequence import state_for
from primalsvm.team import Team, team_for

SMALL = 100_000  # m·d below which a precise solver simply solves the problem
PRECISE = 1e-10  # … to this relative gap
EPOCHS = 1000  # that a run may always take,
OPERATIONS = 1e11  # … and what it may take in any case (`costs`), a minute or two;
OPERATIONS_IF_SMALL = 1e9  # … for a small problem, which is solved far beyond `tol`, a second or two
ROUNDING = 1e-9  # of a gap, relative;
ROUNDING_OF_LOSSES = 1e-13  # … and of means of losses around 1


class Progress(NamedTuple):
    """What a watcher is told after every chunk."""

    epoch: float
    max_iter: int
    relative_gap: float  # of the last evaluation; inf before the first
    tol: float
    seconds: float


class Snapshot(NamedTuple):
    """Where a run is, between two chunks: all that it takes to go on to the same bits."""

    state: Any
    best: Evaluation | None
    bound: float
    merit: float
    stale: int
    trace: npt.NDArray[Any]
    seconds: float


@dataclass(frozen=True)
class Stops:
    """When to stop, and what to show for it.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach: gap ≤ tol · max(|P|, |D|).
    max_iter : int or None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two; 1e9 for small problems),
        whichever comes last.
    max_seconds : float or None
        Seconds at most, looked at after every chunk of rows.
    certify : bool
        Compute the certificate. Without it `tol` is judged by the solver's own estimate, if it has one.
    patience : int
        With a validation set: stop after so many evaluations without a lower error.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None
    certify: bool = True
    patience: int = 5

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")
        if self.max_iter is not None and self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1 or None, got {self.max_iter!r}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be positive or None, got {self.max_seconds!r}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, got {self.patience!r}")

    @property
    def epochs(self) -> int:
        """Epochs that a run may take whatever they cost."""
        return EPOCHS if self.max_iter is None else self.max_iter

    def exhausted(self, epoch: float, operations: float, small: bool) -> bool:
        """Whether a run has taken what it may take."""
        most = OPERATIONS_IF_SMALL if small else OPERATIONS
        return epoch >= self.epochs and (self.max_iter is not None or operations >= most)


def drive(
    problem: Objective,
    batch: Batch,
    solver: Solver,
    stops: Stops,
    *,
    validation: Batch | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    start: Solution | None = None,
    watch: Callable[[Progress], None] | None = None,
    resume: Snapshot | None = None,
    keep: Callable[[Snapshot, bool], None] | None = None,
) -> Solution:
    """Run a solver on a checked batch until one of the stops applies. See `solve`.

    `keep` is handed a snapshot after every chunk, and whether it is the last because the run is cut short; a run that
    is given one as `resume` goes on from there.
    """
    with team_for(n_jobs) as team, team.blas_limited(), interrupts() as interrupted:
        steps = running(
            problem, batch, solver, stops, team, interrupted, validation=validation, seed=seed,
            start=None if start is None else start.state, watch=watch, resume=resume, keep=keep,
        )  # fmt: skip
        while True:
            try:
                next(steps)
            except StopIteration as end:
                solution: Solution = end.value
                return solution


def running(
    problem: Objective,
    batch: Batch,
    solver: Solver,
    stops: Stops,
    team: Team,
    interrupted: Callable[[], bool],
    *,
    validation: Batch | None = None,
    seed: int = 0,
    start: Any = None,
    watch: Callable[[Progress], None] | None = None,
    resume: Snapshot | None = None,
    keep: Callable[[Snapshot, bool], None] | None = None,
    shared: bool = False,
) -> Generator[None, None, Solution]:
    """The loop of `drive`, chunk by chunk, so that several may take turns (`together`): then the rows are `shared`."""
    m, d = shape(batch.rows)
    problem = problem.settled(batch, team)
    solver = _prepared(solver, problem, batch)
    small = m * d < SMALL and solver.precise and stops.certify
    target = min(stops.tol, PRECISE) if small else stops.tol
    run = Run(target, stops.certify, stops.epochs, seed, shared)
    begin = time.perf_counter() - (0.0 if resume is None else resume.seconds)
    keeper = _Keeper(problem, validation, stops, team, solver.name)
    if resume is None:
        state = solver.start(problem, batch, run, team, state_for(solver, start))
    else:
        state = resume.state
        state.target = target  # another tol may be asked for now
        keeper.restore(resume)
    status: Status | None = None
    epoch = int(state.epoch)
    while status is None:
        state = solver.advance(problem, batch, state, team)
        seconds = time.perf_counter() - begin
        if interrupted():
            status = Status.INTERRUPTED
        elif state.finished:
            status = Status.FINISHED if solver.self_paced or not stops.certify else Status.STALLED
        elif not solver.self_paced and stops.exhausted(state.epoch, state.operations, small):
            status = Status.MAX_ITER
        elif stops.max_seconds is not None and seconds >= stops.max_seconds:
            status = Status.MAX_SECONDS
        new_epoch = validation is not None and int(state.epoch) > epoch
        long_enough = (
            stops.max_iter is None and epoch < stops.epochs <= state.epoch
        )  # a solver that goes on for longer may never be as good again
        epoch = int(state.epoch)
        due = new_epoch or (stops.certify and (state.worth_evaluating or long_enough))
        cut_short = status in (Status.INTERRUPTED, Status.MAX_SECONDS, Status.MAX_ITER)
        if keep is not None and cut_short and not due:  # before the evaluation that only this end asks for
            keep(keeper.snapshot(state, seconds), True)
        if stops.certify and (status is not None or due):
            keeper.add(solver.evaluate(problem, batch, state, team), state.epoch, state.steps, begin)
            reached = keeper.relative_gap <= target and keeper.sound
            if reached and not (solver.self_paced and status is None):
                status = Status.CONVERGED
            elif problem.vanishes(keeper.bound):
                keeper.add(Evaluation(np.zeros(d), 0.0, 0.0, keeper.bound), state.epoch, state.steps, begin)
                status = Status.STALLED
        elif status is not None or new_epoch:
            w, b = solver.iterate(problem, batch, state)
            keeper.add(Evaluation(w, b, np.nan, -np.inf), state.epoch, state.steps, begin)
        if status is None and keeper.stale >= stops.patience:
            status = Status.EARLY_STOPPING
        if watch is not None:
            seconds = time.perf_counter() - begin
            watch(Progress(state.epoch, stops.epochs, keeper.relative_gap, stops.tol, seconds))
        if keep is not None and (status is None or (cut_short and due and status is not Status.CONVERGED)):
            keep(keeper.snapshot(state, seconds), cut_short)
        yield
    reached = keeper.relative_gap <= stops.tol and keeper.sound
    if not solver.self_paced and reached and status is not Status.EARLY_STOPPING:
        status = Status.CONVERGED
    assert keeper.best is not None  # a run ends with an evaluation
    if hasattr(state, "release"):
        state.release()
    return Solution(
        w=keeper.best.w,
        b=keeper.best.b,
        certificate=keeper.certificate() if stops.certify else None,
        status=status,
        message=sentence(
            status,
            state.epoch,
            keeper.relative_gap,
            stops,
            vanishes=problem.vanishes(keeper.bound),
            tunable=problem.tunable,
        ),
        trace=keeper.trace.array(),
        n_epochs=state.epoch,
        n_steps=state.steps,
        seconds=time.perf_counter() - begin,
        solver=solver,
        state=state,
    )


def _prepared(solver: Solver, problem: Objective, batch: Batch) -> Solver:
    """The solver with all options settled."""
    if isinstance(solver, Pegasos) and isinstance(problem, Problem):
        return solver.prepared(problem, batch)
    return solver


class _Keeper:
    """Keeps the best evaluation, the best lower bound and the trace."""

    def __init__(self, problem: Objective, validation: Batch | None, stops: Stops, team: Team, solver: str) -> None:
        self.problem = problem
        self.solver = solver
        self.validation = validation
        self.stops = stops
        self.team = team
        self.trace = Trace()
        self.best: Evaluation | None = None
        self.bound = -np.inf
        self.merit = np.inf
        self.stale = 0  # evaluations since the validation error last fell
        self.last_solver = ""  # of a sequence

    def add(self, evaluation: Evaluation, epoch: float, steps: int, begin: float) -> None:
        """Take an evaluation into account."""
        self.bound = max(self.bound, evaluation.dual)
        error = np.nan
        if self.validation is not None:
            error = self.problem.held_out_error(self.validation, evaluation.w, evaluation.b, self.team)
        merit = evaluation.primal if self.validation is None else error
        if evaluation.solver != self.last_solver:  # the next solver may begin with worse points
            self.stale, self.last_solver = 0, evaluation.solver
        unjudged = self.validation is None and not self.stops.certify  # the latest is as good as any
        if merit < self.merit or self.best is None or unjudged:
            self.best, self.merit, self.stale = evaluation, merit, 0
        elif self.validation is not None:
            self.stale += 1
        self.trace.append(
            epoch, steps, time.perf_counter() - begin, evaluation.primal, evaluation.dual, error,
            evaluation.solver or self.solver,
        )  # fmt: skip

    def snapshot(self, state: Any, seconds: float) -> Snapshot:
        """All that is kept, with the state."""
        return Snapshot(state, self.best, self.bound, self.merit, self.stale, self.trace.array(), seconds)

    def restore(self, snapshot: Snapshot) -> None:
        """As it was."""
        _, self.best, self.bound, self.merit, self.stale, trace, _ = snapshot
        self.trace = Trace.of(trace)

    def certificate(self) -> Certificate:
        """P of the best point against the best lower bound."""
        assert self.best is not None
        return Certificate.of(self.best.primal, self.bound)

    @property
    def sound(self) -> bool:
        """Whether the lower bound is not above P, up to rounding: a certificate that says so would be none."""
        primal, dual, gap, *_ = self.certificate()
        return gap >= -max(ROUNDING * max(abs(primal), abs(dual)), ROUNDING_OF_LOSSES)

    @property
    def relative_gap(self) -> float:
        """That certificate's relative gap; inf before the first evaluation or without certificates."""
        return self.certificate().relative_gap if np.isfinite(self.bound) else np.inf


def sentence(
    status: Status, epoch: float, relative_gap: float, stops: Stops, *, vanishes: bool = False, tunable: bool = True
) -> str:
    """What a status means, with its figures and what to do."""
    if vanishes:
        return (
            f"stopped after {epoch:.4g} epochs: the rows surround the origin, so that w = 0 is the solution and tells "
            "nothing apart; use a kernel, features that are not centred, or a larger nu"
        )
    reached = (
        f"a relative gap of {relative_gap:.1e}" if np.isfinite(relative_gap) else "an accuracy that was not certified"
    )
    if status is Status.CONVERGED:
        return f"converged after {epoch:.4g} epochs to {reached}"
    if status is Status.FINISHED:
        above = np.isfinite(relative_gap) and relative_gap > stops.tol
        return f"finished after {epoch:.4g} epochs at {reached}" + (f" > tol {stops.tol:.1e}" if above else "")
    if status is Status.EARLY_STOPPING:
        return (
            f"stopped early after {epoch:.4g} epochs: the validation error has not fallen for {stops.patience} "
            f"evaluations (at {reached})"
        )
    short = f" > tol {stops.tol:.1e}" if np.isfinite(relative_gap) else ""
    stronger = "" if not tunable else ", or regularise more (a larger lam, a smaller C)"
    if status is Status.STALLED:
        advice = "only rounding is left to it; scale the features" + stronger
        return f"stalled after {epoch:.4g} epochs at {reached}{short}: {advice}"
    if status is Status.MAX_ITER:
        advice = f"{'raise' if stops.max_iter else 'set'} max_iter, scale the features{stronger}"
        return f"stopped after {epoch:.4g} epochs at {reached}{short}: {advice}"
    if status is Status.MAX_SECONDS:
        return (
            f"stopped after {stops.max_seconds:g} seconds ({epoch:.3g} epochs) at {reached}{short}: raise max_seconds"
        )
    return f"interrupted after {epoch:.3g} epochs at {reached}{short}: the best point so far is kept"


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag that is looked at between chunks; the second one raises as usual.

    A state must never be left half updated. Python delivers signals to the main thread only, so in any other thread the
    flag stays down.
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
