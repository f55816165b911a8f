"""Dual coordinate ascent over rows that do not fit in memory (after Yu, Hsieh, Chang and Lin 2010).

    for each epoch:
        cut the rows into runs of neighbours, and shuffle the runs
        for the next `RUNS` runs, a block B that fits in memory:
            read the rows and α_B                             (the system reads the next block meanwhile)
            `SWEEPS` times: coordinate ascent over B, in a fresh order               `dual_ascent.ascend`
            write α_B

A block takes its runs from far-apart places, so that it looks like all rows even where a file is sorted by label. What
is kept of v, the intercept and the mean of w is as in `dual_ascent`. α, one number a row, lives in a file; in memory
are the labels, a block of the rows, and vectors of the size of w (to evaluate with a free intercept, also two more
numbers a row).

Reading a block costs about as much as a sweep over it. A second sweep makes more of what was read (text, λ = 1e-6: a
third fewer epochs; a third and a fifth sweep gain less than they cost), as rows that do not move sleep through it.

Certificate. v = Σ cᵢ αᵢ xᵢ is at hand: P, and what D needs with a free intercept, take one more pass.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Distant, Vector, room_for, stored_bytes, take_batch
from primalsvm.solvers.ascent import (
    DualState,
    Part,
    chunk_length,
    close_sweep,
    judged,
    own_point,
    start_state,
    visit,
)
from primalsvm.solvers.dual_ascent import TRUST_V_UNTIL, WORK_PER_EVALUATION
from primalsvm.solvers.order import interleave, room_for_order, run_length, shuffled_runs
from primalsvm.solvers.protocol import Run
from primalsvm.team import Team

RUNS = 32  # in a block: so few that each is read at the speed of the disk (60 MB: 1 MB of each column)
SWEEPS = 2  # over a block that has been read
BLOCK_BYTES = 2**28  # at most, also where memory would hold more: a block is what Ctrl-C has to wait for


@dataclass(frozen=True)
class BlockAscent:
    """Dual coordinate ascent over blocks of rows that are read from files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import scipy.sparse as sp
    >>> from primalsvm import Hinge, Problem
    >>> from primalsvm.rows import Weights
    >>> from primalsvm.solvers.drive import Stops, drive
    >>> from primalsvm.sources.cache import CacheWriter
    >>> from primalsvm.sources.filed import filed_rows
    >>> X, y = sp.csr_matrix([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with CacheWriter(Path(folder) / "rows", 2) as writer:
    ...         writer.append(X, y)
    ...     with filed_rows(Path(folder) / "rows", at_once=24) as rows:
    ...         batch = Batch(rows, y, Weights(np.ones(1), 0))
    ...         drive(Problem(Hinge(), lam=0.1), batch, BlockAscent(), Stops()).status.value
    'converged'
    """

    name: ClassVar[str] = "block_ascent"
    precise: ClassVar[bool] = False
    self_paced: ClassVar[bool] = False

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> DualState:
        """α = 0, or the α of a previous state of as many rows."""
        assert isinstance(batch.rows, Distant)
        state = start_state(problem, batch, run, team, previous, room_for(batch.rows, batch.y.shape[0]), 0)
        state.run_length = rows_in_run(batch.rows)
        return state

    def advance(self, problem: Problem, batch: Batch, state: DualState, team: Team) -> DualState:
        """One block: read it, sweep over it, write its α."""
        assert isinstance(batch.rows, Distant)
        m, length = batch.y.shape[0], state.run_length
        if not state.runs.shape[0]:
            state.runs = state.rng.permutation(-(-m // length))
            state.sweep_gap = 0.0
        chosen = rows_of(state.runs[:RUNS], length, m)
        state.runs = state.runs[RUNS:]
        part = brought(batch, chosen, state)
        if batch.rows.files is not None:
            batch.rows.files.expect(rows_of(state.runs[:RUNS], length, m))
        for sweep in range(SWEEPS):
            starts = shuffled_runs(state.rng, chosen.shape[0])
            awake = interleave(starts, run_length(chosen.shape[0]), chosen.shape[0], part.sleep, part.order)
            at_once = chunk_length(part.batch, team)
            for first in range(0, awake, at_once):
                visit(problem, part, state, part.order[first : min(first + at_once, awake)], team)
            if sweep == 0:
                first_gap, seen = state.sweep_gap, state.seen
        state.sweep_gap, state.seen = first_gap, seen  # those of one sweep over all rows
        state.alpha[chosen] = part.alpha
        state.awake = m
        state.epoch += chosen.shape[0] / m
        state.worth_evaluating = False
        if not state.runs.shape[0]:
            state.epoch = float(round(state.epoch))
            promising = close_sweep(problem, batch, state)
            state.worth_evaluating = promising or state.work >= WORK_PER_EVALUATION * m
            state.finished = not (state.certify or state.rough) and state.estimate <= state.target
        return state

    def evaluate(self, problem: Problem, batch: Batch, state: DualState, team: Team) -> Evaluation:
        """P at the running mean of w, with the best b if it is free; D at α."""
        if state.target < TRUST_V_UNTIL:
            state.v = team.combine(batch, state.alpha)
        w, b = own_point(problem, state)
        allowed = problem.balanced(batch, state.alpha)
        scores, change = team.scores_and_combine(batch, w, allowed - state.alpha)
        dual = problem.dual_value(batch, allowed, *problem.combined(batch, allowed, team, state.v + change))
        if problem.intercept == "free":
            b = problem.best_intercept(batch, scores, b)
        return judged(state, w, b, problem.value_at(batch, scores, w, b), dual)

    def iterate(self, problem: Problem, batch: Batch, state: DualState) -> tuple[Vector, float]:
        """The running mean of w, and b (if free, its centre)."""
        return own_point(problem, state)


def rows_in_run(rows: Distant) -> int:
    """Neighbours that are read together: so many that `RUNS` runs are a block."""
    assert rows.files is not None
    at_once = min(rows.files.at_once, BLOCK_BYTES)
    return max(1, at_once * rows.n_rows // max(stored_bytes(rows), 1) // RUNS)


def rows_of(runs: Vector, length: int, m: int) -> Vector:
    """The rows of some runs, in the order of the file.

    Examples
    --------
    >>> rows_of(np.array([3, 0]), 3, 11)
    array([ 0,  1,  2,  9, 10])
    """
    rows: Vector = (np.sort(runs)[:, None] * length + np.arange(length)).reshape(-1)
    return rows[rows < m]


def brought(batch: Batch, chosen: Vector, state: DualState) -> Part:
    """The chosen rows, read, with what is kept of each while they are here."""
    n = chosen.shape[0]
    return Part(
        batch=take_batch(batch, chosen),
        alpha=state.alpha[chosen],
        norms=np.full(n, -1.0),
        sleep=np.zeros(n, np.uint8),
        nap=np.zeros(n, np.uint8),
        order=room_for_order(n),
    )
