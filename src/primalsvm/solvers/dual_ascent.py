"""Dual coordinate ascent.

    maximise D(α) over one αᵢ at a time                       (Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013)

    v = Σ cᵢ αᵢ xᵢ,  s = 1/(λ Σc),  w = s v
    for i in a fresh order of the active rows:
        p  = s ⟨v, xᵢ⟩ + b
        q  = s cᵢ (‖xᵢ‖² + ρ) / ω
        α' = argmax −ℓ*(−α') − p (α' − αᵢ) − q/2 (α' − αᵢ)²         `Loss.dual_step`
        v += cᵢ (α' − αᵢ) xᵢ;  β += cᵢ (α' − αᵢ);  αᵢ = α'

Intercept. b = b₀ + ρ s β with β = Σ cᵢ αᵢ: the weight of a constant feature of strength ρ around a centre b₀.
Penalised: ρ = 1, b₀ = 0. Free: b₀ is the best constant at first, and moves to b after every sweep: a proximal-point
method whose limit has β = 0.

Over-relaxation. ω = 1 at first, then 1.4 as in SOR. The step maximises a q-strongly concave model, so it raises that by
at least q/2 (α' − αᵢ)², and D by that less (ω − 1) q/2 (α' − αᵢ)²: it never falls for ω < 2.

First sweep. Where λm is large, the first sweep solves the problem of the rows seen so far: s = 1/(λ Σ_seen c).

Shrinking. A row that does not move, and would not if its score changed by `SLACK`, is inactive for 1, 3, 7, … sweeps.
The count starts again when the row moves. Every row becomes active again, and the certificate is over all rows.

Working set. Once few rows move, they are far apart in memory, and reading them costs more than the arithmetic. They are
then copied side by side, and each sweep over all rows is followed by `WORKING_SET_SWEEPS` sweeps over the copies, which
may fit in the cache. On a path whose rows have been screened (`screening`), the working set has all rows that are not
screened out, unless these are many; sweeps visit only these until an evaluation has checked the others.

Primal point. w(α) oscillates around w*, so a running mean of w over the sweeps is returned; it is over more sweeps as
the run gets longer. Its P − P* is lower by a quarter on text. D is that of α itself.

Threads. Each thread takes a part of a chunk with its own copy of v. At first all change v in the same direction, so a
thread counts its own changes as many times as there are threads (as CoCoA+, Ma et al. 2015), later about half as often.
The changes are added with the step in [0, 1] that is best for D along their sum (D is concave), so a chunk never
lowers D. The same `n_jobs` gives the same bits.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Batch, Dataset, Vector
from primalsvm.objective import Evaluation, Objective
from primalsvm.solvers import ascent
from primalsvm.solvers.order import empty_order, write_order
from primalsvm.solvers.protocol import Point, Run, Traits
from primalsvm.solvers.screening import LONGEST_PAUSE, SLACK, PathMemory, PathStart, predict, screen

# Each sweep over all rows is followed by this many over the working set (text: 3 to 5 are best).
WORKING_SET_SWEEPS = 4
# The copies of a working set may take this share of the bytes of all rows.
WORKING_SET_SHARE = 0.07
# After this many sweeps over the rows that are not screened out, an evaluation checks the others.
SCREENED_SWEEPS = 30
# The copies of the rows that are not screened out may take this share of the bytes of all rows.
SCREENED_SHARE = 0.2
# This many evaluations look for rows that should not have been screened out; later sweeps are as without screening.
SCREENINGS = 2
# The share of the first sweep in the running mean of w, if the run began near the solution.
EARLY_MEMORY = 0.2
# For targets below this, v is recomputed from α for an evaluation, as its rounding may add up to 1e-12.
EXACT_V_BELOW = 1e-7
# An evaluation is due after this many visits to each row: evaluations stay below a fifth of the work.
WORK_PER_EVALUATION = 5.0


@dataclass
class WorkingSet:
    """Copies of the rows that sweeps go over."""

    chosen: Vector  # their numbers
    rows: ascent.VisitedRows
    sweeps_left: int


@dataclass(kw_only=True)
class DualState(ascent.AscentState):
    """The state between two chunks."""

    norms: Vector  # ‖xᵢ‖²; −1: not known yet
    order: Vector  # of this sweep
    n_active: int = 0  # rows in it
    position: int = 0  # how many of them have been visited
    shared: bool  # whether problems take turns on these rows
    shrinking: ascent.Shrinking
    working_set: WorkingSet | None = None
    screenings: int = 0  # how many more evaluations look for rows that should not be screened out
    scores: Vector | None = None  # at the last evaluation, b included

    def release(self) -> None:
        """Drop what a later run does not need."""
        self.working_set, self.thread_v = None, self.thread_v[:0]


@dataclass(frozen=True)
class DualAscent:
    """Dual coordinate ascent over interleaved runs of rows (`order`): accurate; the choice for many features.

    Parameters
    ----------
    shrinking : bool
        Leave rows that do not move out of some sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1), X, [1, 1, -1, -1], solver=DualAscent())
    >>> solution.certificate.relative_gap < 1e-9
    True
    """

    shrinking: bool = True
    name: ClassVar[str] = "dual_ascent"
    traits: ClassVar[Traits] = Traits("block", precise=True)

    def start(self, objective: Objective, run: Run, previous: Any = None) -> DualState:
        """Start at α = 0, or at the α of a previous run on as many rows."""
        check_in_memory(objective.data)
        batch = batch_of(objective)
        m = batch.y.shape[0]
        screened = isinstance(previous, PathStart)
        state = ascent.start_state(
            DualState, objective, run, previous,
            norms=previous.norms if screened else np.full(m, -1.0),
            order=empty_order(m),
            shared=run.shared,
            shrinking=ascent.Shrinking.of(m if self.shrinking else 0),
        )  # fmt: skip
        if screened and self.shrinking:
            state.screenings = SCREENINGS
            state.gap_ratio = max(1.0, previous.gap_ratio)
            screen(
                batch.y, batch.weight, objective.loss, previous.scores, previous.slack, state.alpha, *state.shrinking
            )
        return state

    def advance(self, objective: Objective, state: DualState) -> DualState:
        """One chunk of coordinate steps; at the end of a sweep, the intercept's centre and the estimate of the gap."""
        batch = batch_of(objective)
        if state.position >= state.n_active:
            self._begin_sweep(batch, state)
        rows = visited_rows(batch, state)
        last = min(state.position + ascent.chunk_length(objective.data, state.shared), state.n_active)
        order = rows.order[state.position : last]
        ascent.visit_rows(objective, rows, state, order)
        if state.working_set is not None:
            state.alpha[state.working_set.chosen[order]] = rows.alpha[order]
        state.position = last
        state.worth_evaluating = False
        if state.position >= state.n_active:
            self._end_sweep(objective, state)
        return state

    def _begin_sweep(self, batch: Batch, state: DualState) -> None:
        """Choose the rows of the sweep and their order."""
        working_set = state.working_set
        if working_set is not None and working_set.sweeps_left > 0:
            working_set.sweeps_left -= 1
        elif working_set is not None:
            state.working_set = None
        elif state.screenings:
            copied = state.shrinking.pause < LONGEST_PAUSE
            state.working_set = working_set_of(batch, state, copied, SCREENED_SHARE, SCREENED_SWEEPS)
        elif self.shrinking and state.epoch > 2.0:
            copied = state.shrinking.pause == 0
            state.working_set = working_set_of(batch, state, copied, WORKING_SET_SHARE, WORKING_SET_SWEEPS)
        rows = visited_rows(batch, state)
        state.n_active = write_order(state.rng, rows.shrinking.skip, rows.order)
        state.position = 0
        state.sweep_gap = 0.0

    def _end_sweep(self, objective: Objective, state: DualState) -> None:
        """Estimate the gap; decide whether to evaluate."""
        state.epoch += 1.0
        gap = ascent.close_sweep(objective, state, EARLY_MEMORY if state.screenings else 0.0)
        working_set = state.working_set
        if state.n_active == 0:  # a sweep over no rows is not informative
            state.worth_evaluating = state.screenings > 0
            if working_set is not None:
                working_set.sweeps_left = 0
            return
        promising = ascent.estimate_gap(objective, state, gap)
        if working_set is not None and not state.screenings:
            if promising:  # the other rows matter as well
                working_set.sweeps_left = 0
            return
        last = working_set is not None and working_set.sweeps_left == 0
        enough_work = state.work >= WORK_PER_EVALUATION * objective.data.shape[0]
        state.worth_evaluating = promising or last or enough_work
        state.finished = not (state.certify or state.rough) and state.estimate <= state.target

    def evaluate(self, objective: Objective, state: DualState) -> Evaluation:
        """P at the running mean of w, with the best b if it is free; D at α."""
        v = objective.data.combine(state.alpha) if state.target < EXACT_V_BELOW else state.v
        dual = objective.lower_bound(state.alpha, v)
        w, b = ascent.own_point(objective, state)
        b, primal, scores = objective.evaluate_primal(w, b)
        scores += b
        return Evaluation(w, b, primal, dual, details=(v, scores))

    def iterate(self, objective: Objective, state: DualState) -> tuple[Vector, float]:
        """The running mean of w, and b (if free, its centre)."""
        return ascent.own_point(objective, state)

    def observe(self, objective: Objective, state: DualState, evaluation: Evaluation) -> None:
        """Update the ratio of gap and estimate; activate rows that should not have been screened out."""
        state.v, state.scores = evaluation.details
        gap = ascent.observe_gap(state, evaluation)
        if state.screenings and gap > state.target:
            batch = batch_of(objective)
            screen(batch.y, batch.weight, objective.loss, state.scores, SLACK, state.alpha, *state.shrinking)
            state.screenings -= 1
            state.working_set = None

    def hand_over(self, objective: Objective, state: DualState) -> Point:
        """α, and the running mean of w."""
        w, b = ascent.own_point(objective, state)
        return Point(state.alpha, b, w)

    def path_start(self, state: Any, memory: PathMemory | None, lam: float) -> tuple[Any, PathMemory | None]:
        """The start at the next λ of a path: the last solution, with scores predicted from the last two."""
        if not (self.shrinking and isinstance(state, DualState) and state.scores is not None):
            return state, None
        scores, centre, slack = predict(lam, state.lam, state.scores, state.centre, memory)
        begin = PathStart(state.alpha, centre, state.v.copy(), state.norms, scores, slack, state.gap_ratio)
        return begin, PathMemory(state.lam, state.scores, state.centre, scores)


def check_in_memory(data: Dataset) -> None:
    """Raise a ValueError unless kernels can visit rows in any order."""
    if data.block is None:
        raise ValueError(
            "this solver reads rows one by one, out of order, so they have to be kept in memory: raise the budget for "
            "them, or use solver='newton'"
        )


def batch_of(objective: Objective) -> Batch:
    """The rows with their targets and weights, for kernels."""
    return Batch(objective.data.block, objective.data.to_array(objective.y), objective.data.weights)


def visited_rows(batch: Batch, state: DualState) -> ascent.VisitedRows:
    """The rows of this sweep."""
    if state.working_set is not None:
        return state.working_set.rows
    return ascent.VisitedRows(batch, state.alpha, state.norms, state.shrinking, state.order)


def working_set_of(batch: Batch, state: DualState, copied: Vector, share: float, sweeps: int) -> WorkingSet | None:
    """Copies of some rows with their α and norms; None without rows, or if they take more than a share of all bytes."""
    chosen = np.flatnonzero(copied)
    if not 0 < batch.rows.nbytes_of(chosen) <= share * batch.rows.nbytes_of():
        return None
    rows = ascent.VisitedRows(
        batch=Batch(batch.rows.take(chosen), batch.y[chosen], batch.weight.take(chosen)),
        alpha=state.alpha[chosen],
        norms=state.norms[chosen],
        shrinking=ascent.Shrinking(state.shrinking.skip[chosen], state.shrinking.pause[chosen]),
        order=empty_order(chosen.shape[0]),
    )
    return WorkingSet(chosen, rows, sweeps - 1)


def improve_dual(objective: Objective, alpha: Vector, centre: float, sweeps: int) -> Vector:
    """A dual point better than α, by some sweeps of dual ascent around the intercept `centre`."""
    solver = DualAscent(shrinking=False)
    run = Run(target=EXACT_V_BELOW, certify=True, max_iter=sweeps, seed=0)
    state = solver.start(objective, run, Point(alpha, centre))
    while state.epoch < sweeps:
        state = solver.advance(objective, state)
    found: Vector = state.alpha
    return found
