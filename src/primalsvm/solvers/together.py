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
from primalsvm.rows import CSR, Batch, Dense
from primalsvm.solution import Solution, Status
from primalsvm.solvers.drive import Progress, Stops, interrupts, running, sentence
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.joint_ascent import solve_jointly
from primalsvm.solvers.protocol import Solver
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
    sweeps: int | None = None,
) -> list[Solution]:
    """The solution of each problem, as `drive` finds it. The batches have the same rows, and labels of their own.

    They begin with some `sweeps` of joint dual ascent; None: if the solver is `DualAscent`.

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
    if sweeps is None:
        sweeps = SWEEPS if isinstance(solver, DualAscent) else 0
    jointly = sweeps > 0 and isinstance(batches[0].rows, CSR | Dense) and stops.certify and validation is None
    with team_for(n_jobs) as team, interrupts() as interrupted:

        def solve(first: int, last: int) -> list[Solution]:
            alone = Team(1, team.blas if team.size == 1 else 1)
            told = watch if team.size == 1 else None
            own = batches[first:last]
            before = [None for _ in own] if start is None else [one.state for one in start[first:last]]
            ahead: list[Solution] = []
            if jointly:
                ahead = solve_jointly(
                    problem, own, stops, interrupted, sweeps=sweeps, seed=seed, start=before, watch=told
                )
                before = [one.state for one in ahead]
            left = [k for k in range(len(own)) if not ahead or unfinished(ahead[k], stops)]
            runs = [
                running(
                    problem, own[k], solver, left_of(stops, ahead[k]) if ahead else stops, alone, interrupted,
                    validation=None if validation is None else validation[first + k], seed=seed,
                    start=before[k], watch=told, shared=True,
                )
                for k in left
            ]  # fmt: skip
            found = dict(enumerate(ahead))
            for k, one in zip(left, taking_turns(runs), strict=True):
                found[k] = continued(ahead[k], one, stops) if ahead else one
            return [found[k] for k in range(len(own))]

        with team.blas_limited(working=True):  # all the while: members that limit it in turn would change its bits
            # with more members than problems some have none
            ranges = [(first, last) for first, last in team.ranges(len(batches)) if first < last]
            parts: list[list[Solution]] = team.run(solve, ranges)
    return [solution for part in parts for solution in part]


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
    return solution.status is Status.MAX_ITER and solution.n_epochs < stops.max_iter


def left_of(stops: Stops, solution: Solution) -> Stops:
    """What is left of the epochs and the seconds."""
    seconds = None if stops.max_seconds is None else max(stops.max_seconds - solution.seconds, 1e-9)
    return replace(stops, max_iter=max(1, stops.max_iter - int(solution.n_epochs)), max_seconds=seconds)


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
