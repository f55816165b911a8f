"""Dual coordinate ascent over rows that do not fit in memory (after Yu, Hsieh, Chang and Lin 2010).

    for each epoch:
        divide the rows into runs of neighbours, and shuffle the runs
        for the next `RUNS` runs, a block B that fits in memory:
            read the rows and α_B                             (the system reads the next block meanwhile)
            `SWEEPS_PER_BLOCK` times: coordinate ascent over B, in a fresh order               `ascent.ascend`
            write α_B

The runs of a block are from far-apart places, so that a block resembles all rows even if the file is sorted by label.
v, the intercept and the mean of w are as in `dual_ascent`. α is a handle, in a file; in memory are the labels, a block
of rows, and vectors of the size of w (and two more handles, to evaluate with a free intercept).

Reading a block costs about as much as a sweep over it. A second sweep saves reading (text, λ = 1e-6: a third fewer
epochs) and leaves out rows that do not move. More than two sweeps gain less than they cost.

Certificate. v = Σ cᵢ αᵢ xᵢ is known, so P, and D with a free intercept, take one more pass.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Batch, Block, Dataset, Vector, Weights
from primalsvm.data.blocks import combine_rows, scores_of
from primalsvm.objective import Evaluation, Objective
from primalsvm.solvers import ascent
from primalsvm.solvers.dual_ascent import EXACT_V_BELOW, WORK_PER_EVALUATION
from primalsvm.solvers.order import empty_order, write_order
from primalsvm.solvers.protocol import Run, Traits

# The number of runs in a block: so few that each is read at the speed of the disk (60 MB: 1 MB of each column).
RUNS = 32
# The number of sweeps over a block that has been read.
SWEEPS_PER_BLOCK = 2
# A block takes at most this many bytes, even if memory would hold more, because Ctrl-C waits for the end of a block.
BLOCK_BYTES = 2**28


@dataclass(kw_only=True)
class BlockState(ascent.AscentState):
    """The state between two blocks."""

    run_length: int  # rows in a run
    runs: Vector = field(default_factory=lambda: np.zeros(0, np.int64))  # not read yet in this epoch


@dataclass(frozen=True)
class BlockAscent:
    """Dual coordinate ascent over blocks of rows that are read from files.

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.losses import Hinge
    >>> from primalsvm.objective import Problem
    >>> from primalsvm.solvers.drive import drive
    >>> from primalsvm.solvers.several import Several, Single
    >>> from primalsvm.solvers.stops import Stops
    >>> data = as_dataset(np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]]))
    >>> objective = Problem(Hinge(), lam=0.1).on(data, np.array([1.0, 1.0, -1.0, -1.0]))
    >>> drive(Single(objective), Several(BlockAscent()), Stops())[0].status.value
    'converged'
    """

    name: ClassVar[str] = "block_ascent"
    traits: ClassVar[Traits] = Traits("take")

    def start(self, objective: Objective, run: Run, previous: Any = None) -> BlockState:
        """Start at α = 0, or at the α of a previous run on as many rows."""
        return ascent.start_state(BlockState, objective, run, previous, run_length=rows_in_run(objective.data))

    def advance(self, objective: Objective, state: BlockState) -> BlockState:
        """One block: read it, sweep over it, write its α."""
        data = objective.data
        m, length = data.shape[0], state.run_length
        if not state.runs.shape[0]:
            state.runs = state.rng.permutation(-(-m // length))
            state.sweep_gap = 0.0
        chosen = rows_of(state.runs[:RUNS], length, m)
        state.runs = state.runs[RUNS:]
        rows = read_rows(objective, chosen, state)
        data.prefetch(rows_of(state.runs[:RUNS], length, m))
        at_once = ascent.chunk_length(data)
        for sweep in range(SWEEPS_PER_BLOCK):
            n_active = write_order(state.rng, rows.shrinking.skip, rows.order)
            for first in range(0, n_active, at_once):
                ascent.visit_rows(objective, rows, state, rows.order[first : min(first + at_once, n_active)])
            if sweep == 0:
                first_gap, seen = state.sweep_gap, state.seen
        state.sweep_gap, state.seen = first_gap, seen  # as one sweep over all rows would give them
        state.alpha[chosen] = rows.alpha
        state.epoch += chosen.shape[0] / m
        state.worth_evaluating = False
        if not state.runs.shape[0]:
            state.epoch = float(round(state.epoch))
            promising = ascent.estimate_gap(objective, state, ascent.close_sweep(objective, state))
            state.worth_evaluating = promising or state.work >= WORK_PER_EVALUATION * m
            state.finished = not (state.certify or state.rough) and state.estimate <= state.target
        return state

    def evaluate(self, objective: Objective, state: BlockState) -> Evaluation:
        """P at the running mean of w, with the best b if it is free; D at α."""
        data, alpha = objective.data, state.alpha
        combination = v = data.combine(alpha) if state.target < EXACT_V_BELOW else state.v
        w, b = ascent.own_point(objective, state)
        allowed = objective.balance_alpha(alpha)
        if allowed is alpha:
            scores = data.scores(w)
        else:  # both in one pass
            scores, change = data.zeros(), data.map(np.subtract, allowed, alpha)
            moved = data.reduce(partial(scores_and_combination, w), scores, data.weights, change, rows=True)
            combination = v + moved
        dual = objective.dual_value(allowed, *objective.primal_point(allowed, combination))
        if objective.free:
            b = objective.best_intercept(scores, b)
        return Evaluation(w, b, objective.value_at(scores, w, b), dual, details=v)

    def iterate(self, objective: Objective, state: BlockState) -> tuple[Vector, float]:
        """The running mean of w, and b (if free, its centre)."""
        return ascent.own_point(objective, state)

    def observe(self, objective: Objective, state: BlockState, evaluation: Evaluation) -> None:
        """Update v and the ratio of the true gap to its estimate."""
        state.v = evaluation.details
        ascent.observe_gap(state, evaluation)


def scores_and_combination(w: Vector, block: Block, scores: Vector, weight: Weights, alpha: Vector) -> Vector:
    """Σ cᵢ αᵢ xᵢ of a piece; its scores ← ⟨w, xᵢ⟩."""
    scores_of(block, w, scores)
    out = np.zeros(w.shape[0])
    combine_rows(block, weight, alpha, out)
    return out


def rows_in_run(data: Dataset) -> int:
    """The number of neighbouring rows that are read together: `RUNS` runs are a block."""
    return max(1, int(min(data.bytes_at_once, BLOCK_BYTES)) * data.shape[0] // max(data.nbytes, 1) // RUNS)


def rows_of(runs: Vector, length: int, m: int) -> Vector:
    """The rows of some runs, in the order of the file.

    Examples
    --------
    >>> rows_of(np.array([3, 0]), 3, 11)
    array([ 0,  1,  2,  9, 10])
    """
    rows: Vector = (np.sort(runs)[:, None] * length + np.arange(length)).reshape(-1)
    return rows[rows < m]


def read_rows(objective: Objective, chosen: Vector, state: BlockState) -> ascent.VisitedRows:
    """Read the chosen rows and their α."""
    data, n = objective.data, chosen.shape[0]
    return ascent.VisitedRows(
        batch=Batch(data.take(chosen), data.get(objective.y, chosen), data.get(data.weights, chosen)),
        alpha=data.get(state.alpha, chosen),
        norms=np.full(n, -1.0),
        shrinking=ascent.Shrinking.of(n),
        order=empty_order(n),
    )
