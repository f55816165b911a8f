"""Several problems on the same rows, solved side by side: one class against the rest, for each class.

    for each block of rows: every problem takes its turn on it

Rows are read from memory once for all problems, not once for each (from files, by each). The threads of a team share
the problems out.
"""

from collections.abc import Callable, Generator, Sequence

from primalsvm.objective import Problem
from primalsvm.rows import Batch
from primalsvm.solution import Solution
from primalsvm.solvers.drive import Progress, Stops, interrupts, running
from primalsvm.solvers.protocol import Solver
from primalsvm.team import Team, team_for


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
    with team_for(n_jobs) as team, interrupts() as interrupted:

        def solve(first: int, last: int) -> list[Solution]:
            alone = Team(1, team.blas if team.size == 1 else 1)
            runs = [
                running(
                    problem, batches[k], solver, stops, alone, interrupted,
                    validation=None if validation is None else validation[k], seed=seed,
                    start=None if start is None else start[k], watch=watch if team.size == 1 else None, shared=True,
                )
                for k in range(first, last)
            ]  # fmt: skip
            return taking_turns(runs)

        with team.blas_limited(working=True):  # all the while: members that limit it in turn would change its bits
            parts: list[list[Solution]] = team.run(solve, list(team.ranges(len(batches))))
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
