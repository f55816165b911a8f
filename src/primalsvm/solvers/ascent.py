"""Coordinate steps on the dual: what `dual_ascent` and `block_ascent` share. The formulas are in `dual_ascent`."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, dual_step, value
from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import (
    Batch,
    Vector,
    add,
    dot,
    fetch,
    locate,
    prefetch,
    sampled_squared_norms,
    shape,
    squared_norm,
    stored,
    stored_bytes,
    total_weight,
    weight_of,
)
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.order import AHEAD, FAR_AHEAD, room_for_order
from primalsvm.solvers.protocol import Point, Run
from primalsvm.sums import squares
from primalsvm.team import Team

SLACK = 0.1  # how much a score may move before a sleeping row would care
LONGEST_NAP = 15  # sweeps
LEAST_TRUST, MOST_TRUST = 0.2, 5.0  # true gap / estimate of it
TINY = 1e-300
FORESIGHTS = 2  # evaluations that may find that somebody slept wrongly; then sweeps are as everywhere
CHUNK = 65_536  # rows between two looks at the clock
TURN_BYTES = 2**21  # of rows that problems take turns on: they stay in the cache from one to the next
TURN_PER_WEIGHT = 32  # bytes of rows for each weight: a turn brings the weights back, which shall not cost more
LEAST_TURN = 256  # rows
CHUNK_PER_THREAD = 16_384  # rows between two merges: fresh enough to converge like one thread
CAUTIOUS_SWEEPS = 10  # after which members' changes overlap less
RELAXATION = 1.4  # ω (text, λ = 1e-6: a sixth fewer sweeps to 1e-4; 1.2 and 1.6 gain less)
RELAXED_FROM = 5  # sweeps: before, larger steps only add to the swinging
SHORT_MEMORY, LONG_MEMORY = 0.4, 0.7  # share of the past in the running mean of w, early and late (text: ± 0.1 best)
EARLY_MEMORY = 0.2  # … in the second sweep, if the first began close by
FREE_STRENGTH = 0.05  # ρ / mean‖x‖² for a free intercept (measured on text and a9a: 0.03 to 0.1 best, 1 twice as slow)
GROWING_SWEEP_FROM = 20.0  # λm / mean‖x‖² from which the growing first sweep pays (measured: 50 yes, 5 no, 0.5 harm)


class Frame(NamedTuple):
    """Scalars of the problem and of v at the start of a chunk."""

    lam: float
    total: float  # Σc
    strength: float  # ρ
    centre: float  # b₀
    beta: float  # Σ cᵢ αᵢ, less what a free intercept asks for
    seen: float  # Σc of the rows seen so far; `total` after the first sweep
    pace: float  # rows that the whole team visits while one member visits one
    relaxation: float  # ω
    caution: float  # how many times over a member counts its own changes, for those of the others


class Outcome(NamedTuple):
    """What a chunk of steps did."""

    beta: float  # change of β
    gain: float  # change of Σ cᵢ (−ℓ*(−αᵢ))
    gap: float  # Σ cᵢ (ℓ(pᵢ) + ℓ*(−αᵢ) + αᵢ pᵢ) over the visited rows, each before its step
    seen: float


@kernel
def ascend(batch, loss, frame, norms, order, alpha, v, sleep, nap, before):  # type: ignore[no-untyped-def]  # compiled
    """Coordinate steps on the rows in `order`; α, v, sleep and nap are updated, `before` receives the old α."""
    rows, y, weight = batch
    shrinking = sleep.shape[0] > 0
    beta, seen = frame.beta, frame.seen
    gain = 0.0
    gap = 0.0
    n = order.shape[0]
    for k in range(n):
        if k + AHEAD < n:
            fetch(rows, order[k + AHEAD])
        if k + FAR_AHEAD < n:
            far = np.uint64(order[k + FAR_AHEAD])
            locate(rows, far)
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
        seen = min(seen + frame.pace * c, frame.total)
        s = 1.0 / (frame.lam * seen)
        p = s * dot(rows, i, v) + frame.centre + frame.strength * s * beta
        if norms[i] < 0.0:  # the first visit: the row is in the cache now
            norms[i] = squared_norm(rows, i)
        q = frame.caution / frame.relaxation * s * c * (norms[i] + frame.strength)
        new = dual_step(loss, p, y[i], old, q)
        kept = conjugate(loss, -old, y[i])
        gap += c * (value(loss, p, y[i]) + kept + old * p)
        if new != old:
            alpha[i] = new
            change = frame.caution * c * (new - old)
            add(rows, i, change, v)
            beta += change
            gain += c * (kept - conjugate(loss, -new, y[i]))
            if shrinking:
                nap[i] = 0
        elif (
            shrinking
            and dual_step(loss, p - SLACK, y[i], old, q) == old
            and dual_step(loss, p + SLACK, y[i], old, q) == old
        ):
            nap[i] = min(2 * nap[i] + 1, LONGEST_NAP)
            sleep[i] = nap[i]
    return Outcome((beta - frame.beta) / frame.caution, gain, gap, seen)


@kernel
def foresee(batch, loss, scores, slack, alpha, sleep, nap):  # type: ignore[no-untyped-def]  # compiled
    """Put to sleep whom these scores, changed by the slack, would not move, and wake the others."""
    _, y, weight = batch
    for i in range(np.uint64(y.shape[0])):
        p, old = scores[i], alpha[i]
        below, above = dual_step(loss, p - slack, y[i], old, 1.0), dual_step(loss, p + slack, y[i], old, 1.0)
        calm = (weight_of(weight, i) == 0.0) | (
            (below == old) & (above == old)
        )  # no branches: a compiler makes vectors
        nap[i] = LONGEST_NAP * calm
        sleep[i] = nap[i]


class Part(NamedTuple):
    """Rows to visit, with what is kept of each: all rows, or copies of those that still move."""

    batch: Batch
    alpha: Vector
    norms: Vector
    sleep: Vector  # empty: nobody sleeps
    nap: Vector
    order: Vector


class Copies(NamedTuple):
    """The rows that still move, side by side."""

    chosen: Vector  # which rows they are
    part: Part


class Ahead(NamedTuple):
    """A dual point to start from, with what is known of these very rows and weights."""

    alpha: Vector  # feasible
    centre: float
    v: Vector  # Σ cᵢ αᵢ xᵢ
    norms: Vector
    scores: Vector  # that are foreseen at the solution, b included,
    slack: float  # … give or take so much
    trust: float  # true gap / estimate, if this is like the last time


@kernel
def joint_change(v, copies, caution):  # type: ignore[no-untyped-def]  # compiled
    """copies[0] ← δ = Σ (copy − v)/caution; returns ⟨v, δ⟩ and ‖δ‖²."""
    along = 0.0
    square = 0.0
    for j in range(v.shape[0]):
        delta = 0.0
        for member in range(copies.shape[0]):
            delta += copies[member, j] - v[j]
        delta /= caution
        copies[0, j] = delta
        along += v[j] * delta
        square += delta * delta
    return along, square


@dataclass
class DualState:
    """All that the solver remembers between two chunks."""

    alpha: Vector
    v: Vector
    beta: float
    centre: float
    strength: float
    norms: Vector
    total: float
    seen: float
    sleep: Vector
    nap: Vector
    order: Vector
    rng: np.random.Generator
    dual_sum: float  # Σ cᵢ (−ℓ*(−αᵢ))
    target: float
    certify: bool
    threads_v: Vector  # one v per thread
    mean_v: Vector  # running means over the sweeps
    mean_beta: float
    grows: bool = False  # the first sweep is over the rows seen so far
    mean_norm: float = 0.0  # of ‖x‖², about
    runs: Vector = field(default_factory=lambda: np.zeros(0, np.int64))  # of rows in files, not read yet in this epoch
    run_length: int = 0  # rows in each of them
    copies: Copies | None = None  # what the sweeps go over, if not over all rows
    copied_sweeps: int = 0  # that are left of them
    shared: bool = False  # problems take turns on these rows
    foreseen: int = 0  # evaluations before which who sleeps is told from afar
    scores: Vector = field(default_factory=lambda: np.zeros(0))  # at the last evaluation, b included
    awake: int = 0  # rows in this sweep's order
    position: int = 0  # how many of them have been visited
    sweep_gap: float = 0.0
    lagging_gap: float = np.inf  # what the last sweep added up
    primal: float = np.inf  # P that the last sweeps suggest,
    dual: float = 0.0  # … and D
    estimate: float = np.inf  # the relative gap that the last sweeps suggest
    trust: float = 1.0  # true gap / estimate, at the last evaluation
    work: int = 0  # rows visited since the last evaluation
    visit_cost: float = 0.0  # operations of a visit to a row
    epoch: float = 0.0
    steps: int = 0
    operations: float = 0.0
    finished: bool = False
    worth_evaluating: bool = False

    @property
    def rough(self) -> bool:
        """Whether the estimate is that of a first sweep that grows: of another kind than those that follow."""
        return self.grows and self.epoch <= 1.0

    def frame(self, lam: float, pace: int) -> Frame:
        """The scalars a chunk starts from."""
        caution = float(pace) if self.epoch < CAUTIOUS_SWEEPS else 0.5 * (1.0 + pace)
        relaxation = 1.0 if self.epoch < RELAXED_FROM else RELAXATION
        return Frame(
            lam, self.total, self.strength, self.centre, self.beta, self.seen, float(pace), relaxation, caution
        )  # fmt: skip

    def part(self, batch: Batch) -> Part:
        """What this sweep goes over."""
        if self.copies is not None:
            return self.copies.part
        return Part(batch, self.alpha, self.norms, self.sleep, self.nap, self.order)

    def account(self, outcome: Outcome, step: float = 1.0) -> None:
        """Add up what a chunk did, taken with the given step."""
        self.beta += step * outcome.beta
        self.dual_sum += step * outcome.gain
        self.sweep_gap += outcome.gap
        self.seen = max(self.seen, outcome.seen)


def start_state(
    problem: Problem, batch: Batch, run: Run, team: Team, previous: Any, alpha: Vector, per_row: int
) -> DualState:
    """A state with the α of a previous one of as many rows in `alpha`, or zeros; `per_row` rows are kept notes of."""
    m, d = shape(batch.rows)
    mean_norm = float(sampled_squared_norms(batch.rows).mean())
    total = total_weight(batch)
    ahead = isinstance(previous, Ahead)
    warm = ahead or (isinstance(previous, DualState | Point) and previous.alpha.shape == (m,))
    if warm:
        alpha[:] = previous.alpha if ahead else problem.clipped(batch, previous.alpha)
    elif problem.tilt:
        alpha[:] = problem.tilt
    growing = not (warm or problem.tilt) and problem.lam * m >= GROWING_SWEEP_FROM * mean_norm
    v = previous.v if ahead else team.combine(batch, alpha) if warm or problem.tilt else np.zeros(d)
    if problem.intercept != "free":
        centre = 0.0
    elif warm:
        centre = previous.b if isinstance(previous, Point) else previous.centre
    elif problem.tilt:  # all of α moves at once otherwise: w(α) is the mean row, and a quantile its b
        centre = problem.best_intercept(batch, team.scores(batch.rows, v / (problem.lam * total)))
    else:  # with classes of unequal size, or far-off targets, it takes many sweeps to get even there
        centre = problem.best_constant(batch)
    state = DualState(
        alpha=alpha,
        v=v,
        beta=problem.imbalance(batch, problem.balance(batch, alpha)),
        centre=centre,
        strength=strength_of(problem, mean_norm),
        norms=previous.norms if ahead else np.full(per_row, -1.0),
        total=total,
        seen=0.0 if growing else total,
        sleep=np.zeros(per_row, np.uint8),
        nap=np.zeros(per_row, np.uint8),
        order=room_for_order(per_row),
        rng=np.random.default_rng(run.seed),
        dual_sum=problem.conjugate_sum(batch, alpha),
        target=run.target,
        certify=run.certify,
        threads_v=np.empty((0, d)),
        mean_v=np.zeros(d),
        mean_beta=0.0,
        grows=growing,
        mean_norm=mean_norm,
        shared=run.shared,
        foreseen=FORESIGHTS if ahead else 0,
        visit_cost=costs.visits(costs.Size.of(batch.rows)) / m,
    )
    if ahead:
        foresee(batch, problem.loss, previous.scores, previous.slack, alpha, state.sleep, state.nap)
        state.trust = max(1.0, previous.trust)
    return state


def strength_of(problem: Problem, mean_norm: float) -> float:
    """ρ, given the mean of ‖x‖².

    Examples
    --------
    >>> from primalsvm.losses import Hinge
    >>> strength_of(Problem(Hinge(), 1.0, "penalized"), 40.0), strength_of(Problem(Hinge(), 1.0, "free"), 40.0)
    (1.0, 2.0)
    """
    free = FREE_STRENGTH * mean_norm or 1.0  # where rows say nothing, b still has to move
    return {"none": 0.0, "penalized": 1.0, "free": free}[problem.intercept]


def chunk_length(batch: Batch, team: Team, shared: bool = False) -> int:
    """Rows to visit between two looks at the clock, two merges of the members' changes, or two problems' turns."""
    if team.size == 1 and shared:
        m, d = shape(batch.rows)
        per_row = max(1, stored_bytes(batch.rows) // max(m, 1))
        return max(LEAST_TURN, min(CHUNK, max(TURN_BYTES, TURN_PER_WEIGHT * d) // per_row))
    if team.size == 1:
        return CHUNK
    m, d = shape(batch.rows)
    worthwhile = 4 * d * m // max(stored(batch.rows), 1)  # rows whose work outweighs the copies of v
    return team.size * max(CHUNK_PER_THREAD, worthwhile)


def visit(problem: Problem, part: Part, state: DualState, order: Vector, team: Team) -> None:
    """Coordinate steps on the rows in `order`."""
    if team.size == 1:
        unused = state.alpha[:0]
        outcome = ascend(
            part.batch, problem.loss, state.frame(problem.lam, 1), part.norms, order,
            part.alpha, state.v, part.sleep, part.nap, unused,
        )  # fmt: skip
        state.account(outcome)
    else:
        _visit_together(problem, part, state, order, team)
    state.steps += order.shape[0]
    state.work += order.shape[0]
    state.operations += order.shape[0] * state.visit_cost


def _visit_together(problem: Problem, part: Part, state: DualState, order: Vector, team: Team) -> None:
    frame = state.frame(problem.lam, team.size)
    if state.threads_v.shape[0] != team.size:
        state.threads_v = np.empty((team.size, state.v.shape[0]))
    before = np.empty(order.shape[0])

    def visit(member: int, first: int, last: int) -> Outcome:
        state.threads_v[member] = state.v
        outcome: Outcome = ascend(
            part.batch, problem.loss, frame, part.norms, order[first:last],
            part.alpha, state.threads_v[member], part.sleep, part.nap, before[first:last],
        )  # fmt: skip
        return outcome

    parts = [(member, *ends) for member, ends in enumerate(team.ranges(order.shape[0]))]
    outcomes = team.run(visit, parts)
    beta = sum(outcome.beta for outcome in outcomes)
    # Σc · D along the joint change δ, at step t ∈ [0, 1], is at least  t · rise − t²/2 · bend,  as −ℓ* is concave.
    along, square = joint_change(state.v, state.threads_v, frame.caution)
    s = 1.0 / (problem.lam * (max(outcome.seen for outcome in outcomes) or frame.total))
    implied = frame.centre + s * frame.strength * frame.beta
    rise = sum(outcome.gain for outcome in outcomes) - s * along - implied * beta
    bend = s * (square + frame.strength * beta * beta)
    step = min(max(rise / bend, 0.0), 1.0) if bend > 0.0 else 1.0
    change = state.threads_v[0]
    if step < 1.0:
        part.alpha[order] = before + step * (part.alpha[order] - before)
        change *= step
    state.v += change
    for outcome in outcomes:
        state.account(outcome, step)


def memory_after(epoch: float, early: float = 0.0) -> float:
    """The share of the past in the running mean of w; `early` in the second sweep.

    Examples
    --------
    >>> memory_after(2), memory_after(100)
    (0.0, 0.7)
    """
    if epoch <= 2.0:  # the first sweep is far from anything
        return early if epoch > 1.0 else 0.0
    return float(np.clip(1.0 - 6.0 / epoch, SHORT_MEMORY, LONG_MEMORY))


def close_sweep(problem: Problem, batch: Batch, state: DualState) -> bool:
    """After a sweep: the running means, the intercept's centre, the gap about; whether that may be small enough."""
    state.seen = state.total
    past = memory_after(state.epoch, EARLY_MEMORY if state.foreseen else 0.0)
    state.mean_v *= past
    state.mean_v += (1.0 - past) * state.v
    state.mean_beta = past * state.mean_beta + (1.0 - past) * state.beta
    s = 1.0 / (problem.lam * state.total)
    b = state.centre + state.strength * s * state.beta
    gap = state.sweep_gap / state.total
    if problem.intercept == "free":
        state.centre = b
        gap += abs(b * state.beta) / state.total
    if state.awake == 0:  # everyone slept: this sweep tells nothing
        return False
    dual = state.dual_sum / state.total - problem.regularizer(s * state.v, 0.0 if problem.intercept == "free" else b)
    if state.rough:  # what was added up is the loss of rows never seen before; each is off by a step of its own now
        now = s / state.total / 2.0 * (state.mean_norm + state.strength) * float(squares(batch.weight, state.alpha))
    else:  # each row's gap was measured before its step, so the sum lags behind by about one sweep's progress
        now = gap * min(1.0, gap / state.lagging_gap) if 0.0 < state.lagging_gap < np.inf else gap
    state.lagging_gap = gap
    state.primal, state.dual, state.estimate = dual + now, dual, relative_gap(dual + now, dual)
    return state.estimate * state.trust <= state.target


def own_point(problem: Problem, state: DualState) -> tuple[Vector, float]:
    """The running mean of w = s v (before the first sweep has ended, w itself), and b (if free, its centre)."""
    s = 1.0 / (problem.lam * (state.seen or state.total))
    v, beta = (state.mean_v, state.mean_beta) if state.epoch >= 1.0 else (state.v, state.beta)
    implied = 0.0 if problem.intercept == "free" else s * state.strength * beta
    return s * v, state.centre + implied


def trust_after(reached: float, estimate: float) -> float:
    """True gap / estimate, within reason.

    Examples
    --------
    >>> trust_after(2e-3, 1e-3), trust_after(0.0, 1e-3), trust_after(1.0, 1e-3)
    (2.0, 0.2, 5.0)
    """
    return min(max(reached / max(estimate, TINY), LEAST_TRUST), MOST_TRUST)


def judged(state: DualState, w: Vector, b: float, primal: float, dual: float) -> Evaluation:
    """An evaluation, which also tells how far to trust the estimates."""
    if 0.0 < state.estimate < np.inf and not state.rough:
        state.trust = trust_after(relative_gap(primal, dual), state.estimate)
    state.work = 0
    return Evaluation(w, b, primal, dual)
