"""Coordinate steps on the dual: what `dual_ascent` and `block_ascent` share. The formulas are in `dual_ascent`."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from primalsvm import sums
from primalsvm.compiled import kernel
from primalsvm.data import (
    Batch,
    Dataset,
    Handle,
    Vector,
    add,
    dot,
    prefetch,
    prefetch_pointer,
    prefetch_row,
    squared_norm,
    weight_of,
)
from primalsvm.losses import conjugate, dual_step, value
from primalsvm.objective import Evaluation, Objective, Problem
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.order import POINTER_PREFETCH_DISTANCE, PREFETCH_DISTANCE
from primalsvm.solvers.protocol import Point, Run, SolverState
from primalsvm.solvers.screening import LONGEST_PAUSE, SLACK, PathStart

# In place of 0 in a denominator.
LEAST_DENOMINATOR = 1e-300
# The ratio of the true gap to its estimate is clipped to [this, 5].
LEAST_RATIO = 0.2
# The clock is read after this many rows.
SWEEP_CHUNK = 65_536
# Problems take turns on about this many bytes of rows, so that the rows stay in the cache between the turns.
SHARED_BYTES = 2**21
# Problems take turns on at least this many bytes of rows for each feature: every turn reads its weights again, and this
# must not cost more than the rows.
BYTES_PER_WEIGHT = 32
# A thread visits this many rows between two merges: few enough to converge like one thread.
CHUNK_PER_THREAD = 16_384
# ω (text, λ = 1e-6: a sixth fewer sweeps to 1e-4; 1.2 and 1.6 gain less).
RELAXATION = 1.4
# ω is 1 before this sweep, as larger steps would only add to the oscillation.
RELAXED_FROM = 5
# ρ / mean‖x‖² for a free intercept (text and a9a: 0.03 to 0.1 are best, 1 is twice as slow).
FREE_STRENGTH = 0.05
# The first sweep grows if λm / mean‖x‖² is at least this (measured: at 50 it helps, at 5 not, at 0.5 it does harm).
GROWING_SWEEP_FROM = 20.0


class Frame(NamedTuple):
    """Scalars of the problem and of v at the start of a chunk."""

    lam: float
    total: float  # Σc
    strength: float  # ρ
    centre: float  # b₀
    beta: float  # Σ cᵢ αᵢ, minus ν Σc if the intercept is free
    seen: float  # Σc of the rows seen so far; `total` after the first sweep
    threads: float  # rows that all threads visit while one thread visits one
    relaxation: float  # ω
    sigma: float  # σ′ of CoCoA+: how many times a thread counts its own changes, to allow for those of the others


class Outcome(NamedTuple):
    """The changes by a chunk of steps."""

    beta: float  # change of β
    gain: float  # change of Σ cᵢ (−ℓ*(−αᵢ))
    gap: float  # Σ cᵢ (ℓ(pᵢ) + ℓ*(−αᵢ) + αᵢ pᵢ) over the visited rows, each before its step
    seen: float


@kernel
def ascend(batch, loss, frame, norms, order, alpha, v, skip, pause, before):  # type: ignore[no-untyped-def]  # compiled
    """Coordinate steps on the rows in `order`; α, v, skip and pause are updated, `before` receives the old α."""
    rows, y, weight = batch
    shrinking = skip.shape[0] > 0
    beta, seen = frame.beta, frame.seen
    gain = 0.0
    gap = 0.0
    n = order.shape[0]
    for k in range(n):
        if k + PREFETCH_DISTANCE < n:
            prefetch_row(rows, order[k + PREFETCH_DISTANCE])
        if k + POINTER_PREFETCH_DISTANCE < n:
            far = np.uint64(order[k + POINTER_PREFETCH_DISTANCE])
            prefetch_pointer(rows, far)
            prefetch(alpha, far)
            prefetch(norms, far)
            prefetch(y, far)
        i = np.uint64(order[k])
        old = alpha[i]
        if before.shape[0] > 0:
            before[k] = alpha[i]
        c = weight_of(weight, i)
        if c == 0.0:
            continue
        seen = min(seen + frame.threads * c, frame.total)
        s = 1.0 / (frame.lam * seen)
        p = s * dot(rows, i, v) + frame.centre + frame.strength * s * beta
        if norms[i] < 0.0:  # the first visit: the row is in the cache now
            norms[i] = squared_norm(rows, i)
        q = frame.sigma / frame.relaxation * s * c * (norms[i] + frame.strength)
        new = dual_step(loss, p, y[i], old, q)
        conjugate_old = conjugate(loss, -old, y[i])
        gap += c * (value(loss, p, y[i]) + conjugate_old + old * p)
        if new != old:
            alpha[i] = new
            change = frame.sigma * c * (new - old)
            add(rows, i, change, v)
            beta += change
            gain += c * (conjugate_old - conjugate(loss, -new, y[i]))
            if shrinking:
                pause[i] = 0
        elif (
            shrinking
            and dual_step(loss, p - SLACK, y[i], old, q) == old
            and dual_step(loss, p + SLACK, y[i], old, q) == old
        ):
            pause[i] = min(2 * pause[i] + 1, LONGEST_PAUSE)
            skip[i] = pause[i]
    return Outcome((beta - frame.beta) / frame.sigma, gain, gap, seen)


@kernel
def merge_changes(v, copies, sigma):  # type: ignore[no-untyped-def]  # compiled
    """copies[0] ← δ = Σ (copy − v)/σ′; returns ⟨v, δ⟩ and ‖δ‖²."""
    along = 0.0
    square = 0.0
    for j in range(v.shape[0]):
        delta = 0.0
        for thread in range(copies.shape[0]):
            delta += copies[thread, j] - v[j]
        delta /= sigma
        copies[0, j] = delta
        along += v[j] * delta
        square += delta * delta
    return along, square


class Shrinking(NamedTuple):
    """Which rows are inactive: those with skip > 0."""

    skip: Vector  # the number of coming sweeps that leave the row out; empty: without shrinking
    pause: Vector  # the number of sweeps that left the row out the last time; 0: it has moved since

    @classmethod
    def of(cls, m: int) -> "Shrinking":
        """All of m rows are active."""
        return cls(np.zeros(m, np.uint8), np.zeros(m, np.uint8))


class VisitedRows(NamedTuple):
    """Rows that sweeps visit, with their α, norms and shrinking."""

    batch: Batch
    alpha: Vector
    norms: Vector  # ‖xᵢ‖²; −1: not known yet
    shrinking: Shrinking
    order: Vector


@dataclass(kw_only=True)
class AscentState(SolverState):
    """The state of dual ascent between two chunks; the states of both solvers derive from it."""

    lam: float
    certify: bool
    rng: np.random.Generator
    visit_cost: float  # operations of a visit to a row
    alpha: Handle
    v: Vector  # Σ cᵢ αᵢ xᵢ
    beta: float  # Σ cᵢ αᵢ, minus ν Σc if the intercept is free
    dual_sum: float  # Σ cᵢ (−ℓ*(−αᵢ))
    centre: float  # b₀
    strength: float  # ρ
    mean_norm: float  # of ‖x‖², about
    growing: bool  # whether the first sweep solves the problem of the rows seen so far
    seen: float  # their Σc
    mean_v: Vector  # running means over the sweeps
    mean_beta: float = 0.0
    thread_v: Vector  # scratch memory: a v for each thread
    sweep_gap: float = 0.0  # the sum of row gaps in this sweep so far
    lagging_gap: float = np.inf  # the gap from the last sweep
    primal: float = np.inf  # P, estimated from the last sweeps
    dual: float = 0.0  # D, estimated likewise
    estimate: float = np.inf  # the relative gap of these two
    gap_ratio: float = 1.0  # true gap / estimate, at the last evaluation
    work: int = 0  # rows visited since the last evaluation

    @property
    def rough(self) -> bool:
        """Whether the estimate is from a growing first sweep, which is computed in another way than later ones."""
        return self.growing and self.epoch <= 1.0

    def frame(self, total: float, threads: int) -> Frame:
        """The scalars at the start of a chunk."""
        # after some sweeps the changes of the threads overlap less
        sigma = float(threads) if self.epoch < 10 else 0.5 * (1.0 + threads)
        relaxation = 1.0 if self.epoch < RELAXED_FROM else RELAXATION
        return Frame(
            self.lam, total, self.strength, self.centre, self.beta, self.seen, float(threads), relaxation, sigma
        )  # fmt: skip

    def add(self, outcome: Outcome, step: float = 1.0) -> None:
        """Add the changes by a chunk, times a step."""
        self.beta += step * outcome.beta
        self.dual_sum += step * outcome.gain
        self.sweep_gap += outcome.gap
        self.seen = max(self.seen, outcome.seen)


S = TypeVar("S", bound=AscentState)


def start_state(kind: type[S], objective: Objective, run: Run, previous: Any, **own: Any) -> S:
    """A state with the α of a previous run on as many rows, or α = 0; `own` are the fields that only its class has."""
    data, problem = objective.data, objective.problem
    m, d = data.shape
    known = known_point(previous, m)
    mean_norm = float(data.squared_norms().mean())
    if known is not None:
        alpha = objective.clip_alpha(known[0])
    else:
        alpha = data.zeros()
        if problem.nu:
            alpha[:] = problem.nu
    growing = known is None and not problem.nu and problem.lam * m >= GROWING_SWEEP_FROM * mean_norm
    if isinstance(previous, PathStart):
        v = previous.v
    else:
        v = data.combine(alpha) if known is not None or problem.nu else np.zeros(d)
    if not objective.free:
        centre = 0.0
    elif known is not None:
        centre = known[1]
    elif problem.nu:  # w(α) is the mean row, and its best b a quantile; from b = 0 all of α would move at once
        centre = objective.best_intercept(data.scores(v / (problem.lam * objective.total)))
    else:  # from b = 0 it would take many sweeps to get here, if classes are unbalanced or targets far from 0
        centre = objective.best_constant()
    return kind(
        lam=problem.lam,
        target=run.target,
        certify=run.certify,
        rng=np.random.default_rng(run.seed),
        visit_cost=costs.visit(costs.Size.of(data)),
        alpha=alpha,
        v=v,
        beta=objective.imbalance(objective.balance(alpha)),
        dual_sum=objective.conjugate_sum(alpha),
        centre=centre,
        strength=strength_of(problem, mean_norm),
        mean_norm=mean_norm,
        growing=growing,
        seen=0.0 if growing else objective.total,
        mean_v=np.zeros(d),
        thread_v=np.empty((0, d)),
        **own,
    )


def known_point(previous: Any, m: int) -> tuple[Vector, float] | None:
    """α and b₀ of a previous state or point, if it has a dual point of m rows; else None.

    Examples
    --------
    >>> known_point(Point(np.zeros(2), 0.5), 2), known_point(Point(np.zeros(2), 0.5), 3)
    ((array([0., 0.]), 0.5), None)
    """
    if isinstance(previous, Point):
        alpha, centre = previous.alpha, previous.b
    elif isinstance(previous, AscentState | PathStart):
        alpha, centre = previous.alpha, previous.centre
    else:
        return None
    return (alpha, centre) if alpha.shape == (m,) else None


def strength_of(problem: Problem, mean_norm: float) -> float:
    """ρ, given the mean of ‖x‖².

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> strength_of(Problem(Hinge(), 1.0, "penalized"), 40.0), strength_of(Problem(Hinge(), 1.0, "free"), 40.0)
    (1.0, 2.0)
    """
    free = FREE_STRENGTH * mean_norm or 1.0  # if all rows are 0, b still has to move
    return {"none": 0.0, "penalized": 1.0, "free": free}[problem.intercept]


def chunk_length(data: Dataset, shared: bool = False) -> int:
    """Rows to visit until the clock is read, the threads' changes are merged, or the next problem has its turn."""
    m, d = data.shape
    size = data.threads.size
    if size > 1:
        worthwhile = 4 * d * m // max(data.entries, 1)  # rows that take more work than copying v
        return size * max(CHUNK_PER_THREAD, worthwhile)
    if shared:
        per_row = max(1, data.nbytes // m)
        at_once = max(SHARED_BYTES, BYTES_PER_WEIGHT * d) // per_row
        return max(256, min(SWEEP_CHUNK, at_once))  # fewer rows take less time than the call
    return SWEEP_CHUNK


def visit_rows(objective: Objective, rows: VisitedRows, state: AscentState, order: Vector) -> None:
    """Coordinate steps on the rows in `order`."""
    n = order.shape[0]
    if objective.data.threads.size == 1:
        outcome = ascend(
            rows.batch, objective.loss, state.frame(objective.total, 1), rows.norms, order,
            rows.alpha, state.v, *rows.shrinking, rows.alpha[:0],
        )  # fmt: skip
        state.add(outcome)
    else:
        _visit_in_parallel(objective, rows, state, order)
    state.steps += n
    state.work += n
    state.operations += n * state.visit_cost


def _visit_in_parallel(objective: Objective, rows: VisitedRows, state: AscentState, order: Vector) -> None:
    """The same, each thread on its share of the rows with a v of its own; then their changes are merged."""
    threads = objective.data.threads
    frame = state.frame(objective.total, threads.size)
    if state.thread_v.shape[0] != threads.size:
        state.thread_v = np.empty((threads.size, state.v.shape[0]))
    before = np.empty(order.shape[0])

    def visit(thread: int, first: int, last: int) -> Outcome:
        state.thread_v[thread] = state.v
        outcome: Outcome = ascend(
            rows.batch, objective.loss, frame, rows.norms, order[first:last],
            rows.alpha, state.thread_v[thread], *rows.shrinking, before[first:last],
        )  # fmt: skip
        return outcome

    outcomes = threads.run(visit, [(thread, *ends) for thread, ends in enumerate(threads.ranges(order.shape[0]))])
    beta = sum(outcome.beta for outcome in outcomes)
    # Σc · D along the joint change δ, at step t ∈ [0, 1], is at least  t · rise − t²/2 · bend,  as −ℓ* is concave.
    along, square = merge_changes(state.v, state.thread_v, frame.sigma)
    s = 1.0 / (frame.lam * (max(outcome.seen for outcome in outcomes) or frame.total))
    implied = frame.centre + s * frame.strength * frame.beta
    rise = sum(outcome.gain for outcome in outcomes) - s * along - implied * beta
    bend = s * (square + frame.strength * beta * beta)
    step = min(max(rise / bend, 0.0), 1.0) if bend > 0.0 else 1.0
    change = state.thread_v[0]
    if step < 1.0:
        rows.alpha[order] = before + step * (rows.alpha[order] - before)
        change *= step
    state.v += change
    for outcome in outcomes:
        state.add(outcome, step)


def memory_after(epoch: float, early: float = 0.0) -> float:
    """The share of the past in the running mean of w; `early` in the second sweep.

    Examples
    --------
    >>> memory_after(2), memory_after(100)
    (0.0, 0.7)
    """
    if epoch <= 2.0:  # the first sweep is far from the solution
        return early if epoch > 1.0 else 0.0
    # about the last sixth of the sweeps; the bounds were measured on text, where ± 0.1 is as good
    return min(max(1.0 - 6.0 / epoch, 0.4), 0.7)


def close_sweep(objective: Objective, state: AscentState, early: float = 0.0) -> float:
    """Update the running means and the intercept's centre; returns the sum of row gaps in the sweep, as a gap."""
    total = objective.total
    state.operations += costs.SWEEP
    state.seen = total
    past = memory_after(state.epoch, early)
    state.mean_v *= past
    state.mean_v += (1.0 - past) * state.v
    state.mean_beta = past * state.mean_beta + (1.0 - past) * state.beta
    gap = state.sweep_gap / total
    if objective.free:
        state.centre += state.strength * (1.0 / (state.lam * total)) * state.beta
        gap += abs(state.centre * state.beta) / total
    return gap


def estimate_gap(objective: Objective, state: AscentState, gap: float) -> bool:
    """Estimate P, D and the relative gap from the gap of the sweep; whether the target may be reached."""
    total = objective.total
    s = 1.0 / (state.lam * total)
    b = 0.0 if objective.free else state.strength * s * state.beta
    dual = state.dual_sum / total - objective.regularizer(s * state.v, b)
    if state.rough:  # the sum is the loss of rows not seen before; now each row is off by about a step of its own
        squares = float(objective.data.reduce(sums.weighted_squares, objective.data.weights, state.alpha))
        now = s / total / 2.0 * (state.mean_norm + state.strength) * squares
    else:  # each gap was measured before the step of its row, so the sum lags behind by about one sweep
        now = gap * min(1.0, gap / state.lagging_gap) if 0.0 < state.lagging_gap < np.inf else gap
    state.lagging_gap = gap
    state.primal, state.dual, state.estimate = dual + now, dual, relative_gap(dual + now, dual)
    return state.estimate * state.gap_ratio <= state.target


def own_point(objective: Objective, state: AscentState) -> tuple[Vector, float]:
    """The running mean of w = s v (before the first sweep has ended, w itself), and b (if free, its centre)."""
    s = 1.0 / (state.lam * (state.seen or objective.total))
    v, beta = (state.mean_v, state.mean_beta) if state.epoch >= 1.0 else (state.v, state.beta)
    implied = 0.0 if objective.free else s * state.strength * beta
    return s * v, state.centre + implied


def observe_gap(state: AscentState, evaluation: Evaluation) -> float:
    """Update the ratio of the true gap to its estimate; returns the true relative gap."""
    gap = relative_gap(evaluation.primal, evaluation.dual)
    if 0.0 < state.estimate < np.inf and not state.rough:
        state.gap_ratio = gap_ratio(gap, state.estimate)
    state.work = 0
    return gap


def gap_ratio(gap: float, estimate: float) -> float:
    """True gap / estimate, clipped.

    Examples
    --------
    >>> gap_ratio(2e-3, 1e-3), gap_ratio(0.0, 1e-3), gap_ratio(1.0, 1e-3)
    (2.0, 0.2, 5.0)
    """
    return min(max(gap / max(estimate, LEAST_DENOMINATOR), LEAST_RATIO), 5.0)
