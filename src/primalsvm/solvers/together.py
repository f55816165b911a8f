"""Several problems on the same rows, solved side by side: one class against the rest, for each class.

    some sweeps of dual ascent on all problems at once (`joint_ascent`)
    those that are left: for each block of rows, every problem takes its turn on it

Either way rows are read from memory once for all problems, not once for each (from files, by each). The threads of a
team share the problems out.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import numpy as np

from primalsvm.objective import Problem
from primalsvm.rows import CSR, Batch, Dense, shape
from primalsvm.solution import Solution, Status
from primalsvm.solvers.drive import SMALL, Progress, Stops, interrupts, running, sentence
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.joint_ascent import solve_jointly
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.team import Team, team_for

SWEEPS = 100  # of all problems at once, before each goes on alone: rows that sleep in one are awake in others


def drive_together(
    problem: Problem,
    batches: Sequence[Batch],
    solver: Solver,
    stops: Stops,
    *,
    validation: Sequence[Batch] | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    start: Sequence[Solution] | None = None,
    watch: Callable[[Progress], None] | None = None,
) -> list[Solution]:
    """The solution of each problem, as `drive` finds it. The batches have the same rows, and labels of their own.

    They begin with some sweeps of joint dual ascent, if the solver is `DualAscent` or a `SolverSequence`.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import DualAscent, Hinge
    >>> from primalsvm.inputs import as_batch
    >>> batch = as_batch(np.eye(3), [1, -1, -1])
    >>> both = [batch, batch._replace(y=-batch.y)]
    >>> first, second = drive_together(Problem(Hinge(), 0.1), both, DualAscent(), Stops())
    >>> np.allclose(first.w, -second.w)
    True
    """
    joint = joint_stage(solver, batches[0])
    jointly = joint is not None and stops.certify and validation is None
    with team_for(n_jobs) as team, interrupts() as interrupted:

        def solve(first: int, last: int) -> list[Solution]:
            alone = Team(1, team.blas if team.size == 1 else 1)
            told = watch if team.size == 1 else None
            own = batches[first:last]
            before = [None for _ in own] if start is None else [one.state for one in start[first:last]]
            ahead: list[Solution] = []
            rest = solver
            if jointly and joint is not None:
                ahead, hopeless = solve_jointly(
                    problem, own, stops, interrupted,
                    sweeps=SWEEPS, stage=joint, seed=seed, start=before, watch=told,
                )  # fmt: skip
                before = [one.state for one in ahead]
                rest = solver.after("dual_ascent") if hopeless and isinstance(solver, SolverSequence) else solver
            left = [k for k in range(len(own)) if not ahead or unfinished(ahead[k], stops)]
            runs = [
                running(
                    problem, own[k], rest, left_of(stops, ahead[k]) if ahead else stops, alone, interrupted,
                    validation=None if validation is None else validation[first + k], seed=seed,
                    start=before[k], watch=told, shared=True,
                )
                for k in left
            ]  # fmt: skip
            found = dict(enumerate(ahead))
            # turns on blocks of rows are for solvers that visit rows; the matrices of others are held one at a time
            groups = [[run] for run in runs] if rest.precise and not isinstance(rest, DualAscent) else [runs]
            solutions = [one for group in groups for one in taking_turns(group)]
            for k, one in zip(left, solutions, strict=True):
                found[k] = continued(ahead[k], one, stops) if ahead else one
            return [found[k] for k in range(len(own))]

        with team.blas_limited(working=True):  # all the while: members that limit it in turn would change its bits
            # with more members than problems some have none
            ranges = [(first, last) for first, last in team.ranges(len(batches)) if first < last]
            parts: list[list[Solution]] = team.run(solve, ranges)
    return [solution for part in parts for solution in part]


def joint_stage(solver: Solver, batch: Batch) -> Stage | None:
    """How long all problems are solved at once, if they are.

    A sequence that begins with another solver gets some sweeps too: over all problems they cost less than the first
    steps for each of them.
    """
    if not isinstance(batch.rows, CSR | Dense):
        return None
    if isinstance(solver, DualAscent):
        return Stage(solver)
    if not isinstance(solver, SolverSequence):
        return None
    m, d = shape(batch.rows)
    first = solver.stages[0]
    if isinstance(first.solver, DualAscent):
        return first
    return None if m * d < SMALL else Stage(DualAscent(), first.patience)


def taking_turns(runs: list[Generator[None, None, Solution]]) -> list[Solution]:
    """A chunk of each run that is not over yet, again and again."""
    found: dict[int, Solution] = {}
    while len(found) < len(runs):
        for k, run in enumerate(runs):
            if k not in found:
                try:
                    next(run)
                except StopIteration as end:
                    found[k] = end.value
    return [found[k] for k in range(len(runs))]


def unfinished(solution: Solution, stops: Stops) -> bool:
    """Whether joint ascent has given up on it, while there is time."""
    return solution.status is Status.MAX_ITER and (stops.max_iter is None or solution.n_epochs < stops.max_iter)


def left_of(stops: Stops, solution: Solution) -> Stops:
    """What is left of the epochs and the seconds."""
    seconds = None if stops.max_seconds is None else max(stops.max_seconds - solution.seconds, 1e-9)
    epochs = None if stops.max_iter is None else max(1, stops.max_iter - int(solution.n_epochs))
    return replace(stops, max_iter=epochs, max_seconds=seconds)


def continued(before: Solution, after: Solution, stops: Stops) -> Solution:
    """A solution together with what led to it."""
    trace = after.trace.copy()
    trace["epoch"] += before.n_epochs
    trace["steps"] += before.n_steps
    trace["seconds"] += before.seconds
    epochs = before.n_epochs + after.n_epochs
    reached = np.inf if after.certificate is None else after.certificate.relative_gap
    return replace(
        after,
        trace=np.concatenate([before.trace, trace]),
        n_epochs=epochs,
        n_steps=before.n_steps + after.n_steps,
        seconds=before.seconds + after.seconds,
        message=sentence(after.status, epochs, reached, stops),
    )
