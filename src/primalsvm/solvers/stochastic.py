"""Runs of stochastic sub-gradient steps: what Pegasos and ASSET share.

The steps themselves are in `steps`.

Certificate. −(the mean slope at row i over its visits in the tail of the run) is a feasible αᵢ. Its w(α) is near w, but
a row near the margin is visited too seldom to tell its share precisely. When the goal is an accuracy and it is within
reach, some sweeps of dual ascent over α (a share of the epochs so far) sharpen the bound, and w(α) is returned if its P
is lower. A run of `n_iter` steps returns what its paper returns.

Streams. `absorb` takes the rows as they come, each once. Rows that do not fill a step wait in the state. The average
goes over the present and the previous bucket of iterates (their ends are fixed step numbers), so that what a stream
leaves behind does not depend on how it was cut.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import (
    Batch,
    Distant,
    Vector,
    inner,
    join,
    shape,
    stored_bytes,
    take_batch,
    value_dtype,
)
from primalsvm.rows import widened as rows_widened
from primalsvm.solution import relative_gap
from primalsvm.solvers.dual_ascent import sharpen
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import Sampler, Sampling
from primalsvm.solvers.steps import BY_STEP, Iterate, Settings, Tail, step_length, take_steps
from primalsvm.team import Team

Average = Literal["last", "uniform", "suffix", "weighted", "random"]
Primal = Callable[[Batch, Vector, float, Team], tuple[float, float, Vector]]  # (w, b) → the best b, P, the scores

CHUNK = 65_536  # rows between two looks at the clock
BROUGHT_BYTES = 64_000_000  # of distant rows that are held at a time
SWEEPS_PER_EPOCH = 0.5  # of dual ascent, to sharpen the certificate,
WITHIN_REACH = 30.0  # … where its gap is within this factor of the target
NEVER = 2**62


@dataclass(frozen=True, eq=False)
class Plan:
    """How many steps, over which rows, and what is made of them."""

    batch_size: int
    n_iter: int | None
    sampling: Sampling
    average: Average
    tries: int = 1
    share: float = 0.5  # of the steps, after which "suffix" begins to average
    last: int | None = None  # average so many of the last steps instead
    w1: Vector | None = None

    def length(self, tries_left: int) -> int | None:
        """Steps of the next try: n_iter/s, the first ones taking a step more where that is no whole number."""
        if self.n_iter is None:
            return None
        return self.n_iter // self.tries + (self.tries - tries_left < self.n_iter % self.tries)

    def first_averaged(self, steps: int) -> int:
        """After how many of these steps "suffix" begins to average."""
        if self.last is not None:
            return max(0, steps - self.last)
        return min(int(np.ceil(self.share * steps)), steps - 1)


class Bucket(NamedTuple):
    """A sum of weighted iterates of a stream."""

    w: Vector
    b: float
    mass: float


@dataclass
class StochasticState:
    """All that a stochastic solver remembers between two chunks."""

    settings: Settings
    iterate: Iterate
    v: Vector
    u: Vector  # empty unless an average is kept
    slopes: Vector  # empty without certificate
    visits: Vector
    sampler: Sampler | None  # None: rows come from a stream
    per_epoch: int  # steps
    target: float
    last: int  # the last step that `max_iter` allows
    length: int | None  # steps in a try; None: no end
    tail: Tail
    next_tail: int  # step of this try at which the tail begins anew
    next_average: int  # … and the average
    chosen: tuple[Vector, float]  # the random iterate
    best_try: tuple[float, Vector, float] | None = None  # P, w, b
    pending: Batch | None = None  # rows of a stream that do not fill a step yet
    before: Bucket | None = None  # the previous bucket of a stream
    tries_left: int = 1
    taken: int = 0  # steps of this try
    epoch: float = 0.0
    steps: int = 0
    operations: float = np.inf  # not counted
    finished: bool = False
    worth_evaluating: bool = False


# ---- state -----------------------------------------------------------------------------------------------------------


def start(
    plan: Plan, settings: Settings, problem: Problem, batch: Batch, run: Run, previous: Any = None
) -> StochasticState:
    """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
    m, _ = shape(batch.rows)
    per_epoch = -(-m // plan.batch_size)
    sampler = Sampler(plan.sampling, m, plan.batch_size, np.random.default_rng(run.seed))
    state = begin(plan, settings, problem, batch, previous)
    rows_counted = m if run.certify else 0
    state.slopes, state.visits = np.zeros(rows_counted, np.float32), np.zeros(rows_counted, np.float32)
    state.sampler = sampler
    state.per_epoch = per_epoch
    state.target = run.target
    state.length = plan.length(plan.tries)
    state.last = NEVER if state.length is not None else run.max_iter * per_epoch
    state.tail = Tail(state.iterate.t, state.iterate.t + per_epoch)
    aim(plan, state, per_epoch if state.length is None else state.length)
    return state


def begin(plan: Plan, settings: Settings, problem: Problem, batch: Batch, previous: Any = None) -> StochasticState:
    """A state before its first step, for a stream of rows like those in the batch."""
    d = shape(batch.rows)[1]
    dtype = np.dtype(np.float64 if value_dtype(batch.rows) == np.float64 else np.float32)
    v, iterate = start_point(plan, problem, d, dtype, previous)
    averaging = plan.average in ("uniform", "suffix", "weighted")
    return StochasticState(
        settings=settings,
        iterate=iterate,
        v=v,
        u=np.zeros(d if averaging else 0, dtype),
        slopes=np.zeros(0, np.float32),
        visits=np.zeros(0, np.float32),
        sampler=None,
        per_epoch=1,
        target=0.0,
        last=NEVER,
        length=None,
        tail=Tail(0.0, 0.0),
        next_tail=NEVER,
        next_average=NEVER,
        chosen=(v.astype(np.float64), iterate.b),
        tries_left=plan.tries,
    )


def start_point(plan: Plan, problem: Problem, d: int, dtype: Any, previous: Any) -> tuple[Vector, Iterate]:
    """v and its scalars before the first step."""
    if isinstance(previous, StochasticState) and previous.v.shape == (d,):
        kept = previous.iterate
        bias = kept.bias if problem.intercept == "penalized" else 0.0
        b = kept.b if problem.intercept == "free" else 0.0
        return previous.v.astype(dtype), Iterate(t=kept.t, a=kept.a, nu=kept.nu, bias=bias, b=b)
    if plan.w1 is None:
        return np.zeros(d, dtype), Iterate()
    w1 = np.array(plan.w1, dtype)
    if w1.shape != (d,):
        raise ValueError(f"w1 has shape {w1.shape}, expected ({d},)")
    norm = float(np.linalg.norm(w1))
    if not norm <= problem.radius * (1 + 1e-6):
        raise ValueError(
            f"w1 must lie in the ball that holds w*, of radius {problem.radius:.6g}; its norm is {norm:.6g}"
        )
    return w1, Iterate(nu=norm * norm)


def aim(plan: Plan, state: StochasticState, goal: int) -> None:
    """Plan the tail and the average of a try that is looked at after `goal` steps."""
    state.next_tail = goal if state.length is None else -(-goal // 2)
    state.next_average = plan.first_averaged(goal) if plan.average == "suffix" else NEVER


# ---- steps -----------------------------------------------------------------------------------------------------------


def advance(
    plan: Plan, problem: Problem, batch: Batch, state: StochasticState, team: Team, primal: Primal | None = None
) -> StochasticState:
    """Steps up to the next point of interest: a chunk, the tail, the average, an evaluation, the end of a try.

    `primal` judges the tries; None: P of a w that is a vector of features.
    """
    assert state.sampler is not None
    if not (isinstance(batch.rows, Distant) and batch.rows.expansion):
        refresh_norm(state)
    if state.taken == state.next_tail:
        begin_tail(plan, state)
    if state.taken == state.next_average:
        forget_average(state)
    n = max(1, chunk_rows(batch) // plan.batch_size)
    for point in (state.next_tail, state.next_average, state.length):
        if point is not None and state.taken < point:
            n = min(n, point - state.taken)
    order = state.sampler.draw(n * plan.batch_size)
    # A uniformly random iterate of w_1 … w_T, T unknown: replace the one chosen so far with probability n/T.
    if plan.average == "random" and state.sampler.rng.random() * (state.taken + n) < n:
        cut = int(state.sampler.rng.integers(n)) * plan.batch_size
        walk(plan, problem, batch, state, order[:cut])
        state.chosen = present(state)
        order = order[cut:]
    walk(plan, problem, batch, state, order)
    state.taken += n
    state.steps += n
    state.epoch = state.steps / state.per_epoch
    state.worth_evaluating = state.length is None and state.taken == state.next_tail
    if state.taken == state.length:
        end_try(plan, problem, batch, state, team, primal or problem.evaluate_primal)
    return state


def refresh_norm(state: StochasticState) -> None:
    """ν afresh, so that rounding does not pile up over a long run."""
    it = state.iterate
    if np.isfinite(state.settings.radius):
        state.iterate = it._replace(nu=it.a * it.a * (it.bias * it.bias + float(inner(state.v, state.v))))


def walk(plan: Plan, problem: Problem, batch: Batch, state: StochasticState, order: Vector) -> None:
    """The steps over the rows in `order`."""
    early = plan.average == "suffix" and state.taken < state.next_average != NEVER  # not averaging yet
    u = state.u[:0] if early else state.u
    g = np.empty(plan.batch_size)
    if not isinstance(batch.rows, Distant):
        state.iterate = take_steps(
            batch, problem.loss, state.settings, state.iterate, state.tail, order,
            state.v, u, state.slopes, state.visits, g,
        )  # fmt: skip
        return
    here = take_batch(batch, order)
    counted = order.shape[0] if state.visits.shape[0] else 0
    slopes, visits = np.zeros(counted, np.float32), np.zeros(counted, np.float32)
    state.iterate = take_steps(
        here, problem.loss, state.settings, state.iterate, state.tail, np.arange(order.shape[0], dtype=np.uint64),
        state.v, u, slopes, visits, g,
    )  # fmt: skip
    if counted:
        np.add.at(state.slopes, order, slopes)
        np.add.at(state.visits, order, visits)


def chunk_rows(batch: Batch) -> int:
    """Rows between two looks at the clock; distant ones must fit in memory meanwhile."""
    if not isinstance(batch.rows, Distant):
        return CHUNK
    m = shape(batch.rows)[0]
    return max(1, min(CHUNK, BROUGHT_BYTES * m // stored_bytes(batch.rows)))


def begin_tail(plan: Plan, state: StochasticState) -> None:
    """From here on, slopes are counted; and the end of this tail is known."""
    state.slopes[:] = 0.0
    state.visits[:] = 0.0
    first = state.next_tail
    if state.length is None:  # tails of doubling length, each known when it begins
        state.next_tail = min(2 * first, state.last) if first < state.last else NEVER
        end = state.next_tail
        if plan.average == "suffix":
            state.next_average = first if plan.last is None else max(first, end - plan.last)
    else:
        state.next_tail, end = NEVER, state.length
    before = state.iterate.t - state.taken  # steps before this try: of a run that this one goes on from
    state.tail = Tail(before + first, before + end)


def forget_average(state: StochasticState) -> None:
    """The average begins anew."""
    state.u[:] = 0.0
    state.iterate = state.iterate._replace(mass=0.0, gamma=0.0, u_bias=0.0, b_sum=0.0)


def end_try(plan: Plan, problem: Problem, batch: Batch, state: StochasticState, team: Team, primal: Primal) -> None:
    """Keep the best try so far; begin the next one, if there is one."""
    state.tries_left -= 1
    if plan.tries > 1:
        w, b = output(plan, state)
        b, value, _ = primal(batch, w, b, team)
        if state.best_try is None or value < state.best_try[0]:
            state.best_try = (value, w, b)
    if state.tries_left == 0:
        state.finished = True
        return
    state.taken = 0
    state.v, state.iterate = start_point(plan, problem, state.v.shape[0], state.v.dtype, None)
    state.u[:] = 0.0
    state.length = plan.length(state.tries_left)
    assert state.length is not None
    aim(plan, state, state.length)


# ---- streams ---------------------------------------------------------------------------------------------------------


def absorb(plan: Plan, problem: Problem, batch: Batch, state: StochasticState) -> StochasticState:
    """A step for each k rows, in the order in which they come; rows left over wait for the next call."""
    if state.pending is not None:
        batch = join(state.pending, batch)
    rows = shape(batch.rows)[0]
    steps = rows // plan.batch_size
    absorb_steps(plan, problem, batch, state, steps)
    done = steps * plan.batch_size
    state.pending = take_batch(batch, np.arange(done, rows)) if done < rows else None
    return state


def absorb_steps(plan: Plan, problem: Problem, batch: Batch, state: StochasticState, steps: int) -> None:
    """So many steps over the first rows."""
    k = plan.batch_size
    taken = 0
    while taken < steps:
        n = min(steps - taken, bucket_end(plan, state.steps) - state.steps)
        order = np.arange(taken * k, (taken + n) * k, dtype=np.uint64)
        walk(plan, problem, batch, state, order)
        taken += n
        state.steps += n
        state.epoch = float(state.steps)
        if state.steps == bucket_end(plan, state.steps - 1):
            refresh_norm(state)
        if plan.average == "suffix" and state.steps == bucket_end(plan, state.steps - 1):
            state.before = average_sum(state)
            forget_average(state)


def widened(state: StochasticState, d: int) -> StochasticState:
    """The state of a stream whose rows have d columns from now on, the new ones zero so far."""

    def longer(vector: Vector) -> Vector:
        return np.pad(vector, (0, d - vector.shape[0])) if vector.shape[0] else vector

    return replace(
        state,
        v=longer(state.v),
        u=longer(state.u),
        chosen=(longer(state.chosen[0]), state.chosen[1]),
        pending=None if state.pending is None else rows_widened(state.pending, d),
        before=None if state.before is None else state.before._replace(w=longer(state.before.w)),
    )


def bucket_end(plan: Plan, t: int) -> int:
    """The first end of a bucket after t steps: multiples of `last`, or powers of two."""
    return (t // plan.last + 1) * plan.last if plan.last is not None else 1 << int(t).bit_length()


# ---- results ---------------------------------------------------------------------------------------------------------


def present(state: StochasticState) -> tuple[Vector, float]:
    """The last iterate."""
    it = state.iterate
    return it.a * state.v.astype(np.float64), it.b + it.a * it.bias


def average_sum(state: StochasticState) -> Bucket:
    """Σ ω w, Σ ω b and Σ ω over the iterates that have entered the average."""
    it = state.iterate
    w = it.gamma * state.v.astype(np.float64) + state.u
    return Bucket(w, it.b_sum + it.gamma * it.bias + it.u_bias, it.mass)


def output(plan: Plan, state: StochasticState) -> tuple[Vector, float]:
    """What `average` says of this try."""
    if plan.average == "random":
        return state.chosen
    if plan.average == "last" or (state.iterate.mass == 0.0 and state.before is None):
        return present(state)
    sums = [average_sum(state)]
    if state.before is not None:
        sums.append(state.before)
    settings, t = state.settings, state.iterate.t
    if settings.weighting == BY_STEP:  # an iterate enters with the next step: the last one has not yet
        eta = step_length(settings.lam, settings.offset, settings.root_step, t)
        last_w, last_b = present(state)
        sums.append(Bucket(eta * last_w, eta * last_b, eta))
    mass = sum(part.mass for part in sums)
    w: Vector = np.sum([part.w for part in sums], axis=0) / mass
    return w, sum(part.b for part in sums) / mass


def iterate(plan: Plan, state: StochasticState) -> tuple[Vector, float]:
    """The output so far: the average's, or the best try's."""
    return output(plan, state) if state.best_try is None else state.best_try[1:]


def evaluate(plan: Plan, problem: Problem, batch: Batch, state: StochasticState, team: Team) -> Evaluation:
    """P at the output, with the best b if it is free; D at the mean slopes."""
    w, b = iterate(plan, state)
    b, primal, scores = problem.evaluate_primal(batch, w, b, team)
    alpha = mean_slopes(problem, batch, state, scores, b)
    own = Evaluation(w, b, primal, problem.lower_bound(batch, alpha, team))
    unsharpened = plan.n_iter is not None or isinstance(batch.rows, Distant)
    return own if unsharpened else sharpened(problem, batch, state, own, alpha, team)


def mean_slopes(problem: Problem, batch: Batch, state: StochasticState, scores: Vector, b: float) -> Vector:
    """α: minus the mean slope at each row over its visits in the tail; the slope now, where there were none."""
    now = problem.slopes_at(batch, scores, b)
    alpha: Vector = -np.divide(state.slopes, state.visits, out=now, where=state.visits > 0)
    return alpha


def sharpened(
    problem: Problem, batch: Batch, state: StochasticState, own: Evaluation, alpha: Vector, team: Team
) -> Evaluation:
    """The best of P and D at the output and at a dual point better than α, where that may reach the target."""
    gap = relative_gap(own.primal, own.dual)
    sweeps = int(state.epoch * SWEEPS_PER_EPOCH)
    within_reach = gap <= WITHIN_REACH * state.target or state.taken == state.last
    if gap <= state.target or not within_reach or sweeps == 0:
        return own
    implied = problem.evaluate_dual(batch, sharpen(problem, batch, alpha, own.b, sweeps, team), team)
    better = own if own.primal <= implied.primal else implied
    return better._replace(dual=max(own.dual, implied.dual))
