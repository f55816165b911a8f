"""Runs of stochastic sub-gradient steps, for Pegasos, ASSET and Pegasos with a kernel.

The steps are in `steps`; streams of rows are in `streams`.

Certificate. −(the mean slope at row i over its visits in the tail of the run) is a feasible αᵢ. Its w(α) is near w, but
rows near the margin are visited too seldom for a precise mean. If the run is to reach a target gap and is near it, some
sweeps of dual ascent from α (a share of the epochs so far) raise the bound, and w(α) is returned if its P is lower. A
run of `n_iter` steps returns what its paper returns.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from primalsvm import sums
from primalsvm.data import Batch, Dataset, Handle, Vector, inner
from primalsvm.losses import Loss
from primalsvm.objective import Evaluation, Objective
from primalsvm.solution import relative_gap
from primalsvm.solvers.dual_ascent import improve_dual
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.sampling import Sampler, Sampling
from primalsvm.solvers.steps import BY_STEP, Iterate, Settings, Tail, step_length, take_steps

Average = Literal["last", "uniform", "suffix", "weighted", "random"]

# The clock is read after this many rows.
STEP_CHUNK = 65_536
# Rows that are not in memory are taken in chunks of this many bytes.
STEP_CHUNK_BYTES = 64_000_000
# Dual ascent raises the bound in this many sweeps for each epoch of steps: half as much work as the steps.
SWEEPS_PER_EPOCH = 0.5
# Dual ascent is used if the gap is at most this multiple of the target (text, epochs of steps: up to 64 times as many
# with 10; with 1000 up to an eighth, but then dual ascent finds the solution, not the steps).
IMPROVABLE_GAP = 30.0
# A step number that is not reached.
NEVER = 2**62


@dataclass(frozen=True, eq=False)
class RunOptions:
    """The number of steps, the choice of rows, and the average that is returned."""

    batch_size: int
    n_iter: int | None
    sampling: Sampling
    average: Average
    tries: int = 1
    share: float = 0.5  # of the steps, after which "suffix" begins to average
    average_last: int | None = None  # average this many of the last steps instead
    w1: Vector | None = None

    def length(self, tries_left: int) -> int | None:
        """Steps of the next try: n_iter/s, rounded so that the first tries take a step more."""
        if self.n_iter is None:
            return None
        return self.n_iter // self.tries + (self.tries - tries_left < self.n_iter % self.tries)

    def first_averaged(self, steps: int) -> int:
        """The number of steps before "suffix" begins to average."""
        if self.average_last is not None:
            return max(0, steps - self.average_last)
        return min(int(np.ceil(self.share * steps)), steps - 1)


class Bucket(NamedTuple):
    """A sum of weighted iterates of a stream."""

    w: Vector
    b: float
    mass: float


@dataclass
class StochasticState(SolverState):
    """The state of a stochastic solver between two chunks."""

    options: RunOptions
    settings: Settings
    iterate: Iterate
    v: Vector
    u: Vector  # empty unless an average is kept
    chosen: tuple[Vector, float]  # the random iterate
    slopes: Vector  # empty without certificate
    visits: Vector
    sampler: Sampler | None = None  # None: rows come from a stream
    per_epoch: int = 1  # steps
    last_step: int = NEVER  # the last step that `max_iter` allows
    length: int | None = None  # steps in a try; None: no end
    tail: Tail = field(default_factory=Tail)
    next_tail: int = NEVER  # step of this try at which a new tail begins
    next_average: int = NEVER  # step of this try at which a new average begins
    best_try: tuple[float, Vector, float] | None = None  # P, w, b
    pending: Batch | None = None  # rows of a stream that do not fill a step yet
    before: Bucket | None = None  # the previous bucket of a stream
    tries_left: int = 1
    taken: int = 0  # steps of this try
    operations: float = field(default=np.inf, kw_only=True)  # not counted


class StochasticSolver(ABC):
    """A solver that takes stochastic sub-gradient steps; its own options give those of the run."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def n_iter(self) -> int | str | None:
        """The exact number of steps, if it is given."""

    @abstractmethod
    def start(self, objective: Objective, run: Run, previous: Any = None) -> StochasticState:
        """The first point; or, from a previous state of as many features, that state's point and step number."""

    @property
    def traits(self) -> Traits:
        """Rows are taken in the order of the steps."""
        return Traits("take", fixed_steps=self.n_iter is not None, planned=True)

    def advance(self, objective: Objective, state: StochasticState) -> StochasticState:
        """Steps up to the next event: the end of a chunk, a new tail or average, an evaluation, the end of a try."""
        assert state.sampler is not None
        options = state.options
        if not objective.data.kernel_rows:
            refresh_norm(state)
        if state.taken == state.next_tail:
            begin_tail(state)
        if state.taken == state.next_average:
            reset_average(state)
        n = max(1, chunk_rows(objective.data) // options.batch_size)
        for point in (state.next_tail, state.next_average, state.length):
            if point is not None and state.taken < point:
                n = min(n, point - state.taken)
        order = state.sampler.draw(n * options.batch_size)
        # A uniformly random iterate of w_1 … w_T, T unknown: replace the one chosen so far with probability n/T.
        if options.average == "random" and state.sampler.rng.random() * (state.taken + n) < n:
            cut = int(state.sampler.rng.integers(n)) * options.batch_size
            visit_numbers(objective, state, order[:cut])
            state.chosen = last_iterate(state)
            order = order[cut:]
        visit_numbers(objective, state, order)
        state.taken += n
        state.steps += n
        state.epoch = state.steps / state.per_epoch
        state.worth_evaluating = state.length is None and state.taken == state.next_tail
        if state.taken == state.length:
            end_try(objective, state)
        return state

    def evaluate(self, objective: Objective, state: StochasticState) -> Evaluation:
        """P at the output, with the best b if it is free; D at the mean slopes, or better."""
        w, b = output(state)
        b, primal, scores = objective.evaluate_primal(w, b)
        data = objective.data
        slopes, visits = data.from_array(state.slopes), data.from_array(state.visits)
        alpha = data.map(partial(feasible_alpha, objective.loss, float(b)), objective.y, scores, slopes, visits)
        own = Evaluation(w, b, primal, objective.lower_bound(alpha))
        if state.options.n_iter is not None or data.block is None:
            return own
        return improve(objective, state, own, alpha)

    def iterate(self, objective: Objective, state: StochasticState) -> tuple[Vector, float]:
        """The output so far: the average, or the best try."""
        return output(state)


# ---- state -----------------------------------------------------------------------------------------------------------


def start(
    options: RunOptions, settings: Settings, objective: Objective, run: Run, previous: Any = None
) -> StochasticState:
    """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
    m, k = objective.data.shape[0], options.batch_size
    sampler = Sampler(options.sampling, m, k, np.random.default_rng(run.seed))
    state = begin(options, settings, objective, previous, m if run.certify else 0)
    state.sampler, state.per_epoch, state.target = sampler, -(-m // k), run.target
    state.length = options.length(options.tries)
    state.last_step = NEVER if state.length is not None else run.max_iter * state.per_epoch
    state.tail = Tail(state.iterate.t, state.iterate.t + state.per_epoch)
    schedule(state, state.per_epoch if state.length is None else state.length)
    return state


def begin(
    options: RunOptions, settings: Settings, objective: Objective, previous: Any = None, counted: int = 0
) -> StochasticState:
    """A state before its first step. This is the state of a stream of rows like those of the objective.

    `counted` is the number of rows whose slopes are counted.
    """
    d = objective.data.shape[1]
    dtype = np.dtype(np.float64 if objective.data.dtype == np.float64 else np.float32)
    v, iterate = start_point(options, objective, dtype, previous)
    return StochasticState(
        options=options,
        settings=settings,
        iterate=iterate,
        v=v,
        u=np.zeros(d if options.average in ("uniform", "suffix", "weighted") else 0, dtype),
        chosen=(v.astype(np.float64), iterate.b),
        slopes=np.zeros(counted, np.float32),
        visits=np.zeros(counted, np.float32),
        tries_left=options.tries,
    )


def start_point(options: RunOptions, objective: Objective, dtype: Any, previous: Any = None) -> tuple[Vector, Iterate]:
    """v and its scalars before the first step."""
    d = objective.data.shape[1]
    if isinstance(previous, StochasticState) and previous.v.shape == (d,):
        kept = previous.iterate
        bias = kept.bias if objective.intercept == "penalized" else 0.0
        b = kept.b if objective.free else 0.0
        return previous.v.astype(dtype), Iterate(t=kept.t, a=kept.a, square=kept.square, bias=bias, b=b)
    if options.w1 is None:
        return np.zeros(d, dtype), Iterate()
    w1 = np.array(options.w1, dtype)
    if w1.shape != (d,):
        raise ValueError(f"w1 has shape {w1.shape}, expected ({d},)")
    norm = float(np.sqrt(objective.squared_norm(w1)))
    if not norm <= objective.radius * (1 + 1e-6):
        raise ValueError(
            f"w1 must lie in the ball that holds w*, of radius {objective.radius:.6g}; its norm is {norm:.6g}"
        )
    return w1, Iterate(square=norm * norm)


def schedule(state: StochasticState, goal: int) -> None:
    """Set where the tail and the average begin in a try that is evaluated after `goal` steps."""
    state.next_tail = goal if state.length is None else -(-goal // 2)
    state.next_average = state.options.first_averaged(goal) if state.options.average == "suffix" else NEVER


def weight_scale(data: Dataset) -> tuple[float, float]:
    """c̄, the mean weight of a row, and the largest cᵢ/c̄."""
    mean = data.total_weight / data.shape[0]
    return mean, float(data.weight_array().max()) / mean


# ---- steps -----------------------------------------------------------------------------------------------------------


def refresh_norm(state: StochasticState) -> None:
    """Compute ‖w‖² again, so that its rounding does not add up over a long run."""
    it = state.iterate
    if np.isfinite(state.settings.radius):
        state.iterate = it._replace(square=it.a * it.a * (it.bias * it.bias + float(inner(state.v, state.v))))


def visit_numbers(objective: Objective, state: StochasticState, numbers: Vector) -> None:
    """The steps over the rows with these numbers: in place, or over copies of them."""
    data, loss = objective.data, objective.loss
    if data.block is not None:
        batch = Batch(data.block, data.to_array(objective.y), data.weights)
        step_over(loss, batch, state, numbers, state.slopes, state.visits)
        return
    batch = Batch(data.take(numbers), data.get(objective.y, numbers), data.get(data.weights, numbers))
    n = numbers.shape[0]
    counted = n if state.visits.shape[0] else 0
    slopes, visits = np.zeros(counted, np.float32), np.zeros(counted, np.float32)
    step_over(loss, batch, state, np.arange(n, dtype=np.uint64), slopes, visits)
    if counted:
        np.add.at(state.slopes, numbers, slopes)
        np.add.at(state.visits, numbers, visits)


def step_over(loss: Loss, batch: Batch, state: StochasticState, order: Vector, slopes: Vector, visits: Vector) -> None:
    """The steps over rows of a batch in this order."""
    options = state.options
    not_averaging_yet = options.average == "suffix" and state.taken < state.next_average != NEVER
    u = state.u[:0] if not_averaging_yet else state.u
    state.iterate = take_steps(
        batch, loss, state.settings, state.iterate, state.tail, order, state.v, u, slopes, visits,
        np.empty(options.batch_size),
    )  # fmt: skip


def chunk_rows(data: Dataset) -> int:
    """Rows until the clock is read; if they are copied, the copies must fit in memory."""
    if data.block is not None:
        return STEP_CHUNK
    return max(1, min(STEP_CHUNK, STEP_CHUNK_BYTES * data.shape[0] // data.nbytes))


def begin_tail(state: StochasticState) -> None:
    """Begin to count slopes, up to the end of this tail."""
    state.slopes[:] = 0.0
    state.visits[:] = 0.0
    options, first = state.options, state.next_tail
    if state.length is None:  # tails of doubling length
        state.next_tail = min(2 * first, state.last_step) if first < state.last_step else NEVER
        end = state.next_tail
        if options.average == "suffix":
            state.next_average = first if options.average_last is None else max(first, end - options.average_last)
    else:
        state.next_tail, end = NEVER, state.length
    before = state.iterate.t - state.taken  # steps before this try, in a run that this one goes on from
    state.tail = Tail(before + first, before + end)


def reset_average(state: StochasticState) -> None:
    """Begin a new average."""
    state.u[:] = 0.0
    state.iterate = state.iterate._replace(mass=0.0, gamma=0.0, u_bias=0.0, b_sum=0.0)


def end_try(objective: Objective, state: StochasticState) -> None:
    """Keep the best try so far; begin the next one, if there is one."""
    options = state.options
    state.tries_left -= 1
    if options.tries > 1:
        w, b = output_of_try(state)
        b, value, _ = objective.evaluate_primal(w, b)
        if state.best_try is None or value < state.best_try[0]:
            state.best_try = (value, w, b)
    if state.tries_left == 0:
        state.finished = True
        return
    state.taken = 0
    state.v, state.iterate = start_point(options, objective, state.v.dtype)
    state.u[:] = 0.0
    state.length = options.length(state.tries_left)
    assert state.length is not None
    schedule(state, state.length)


# ---- results ---------------------------------------------------------------------------------------------------------


def last_iterate(state: StochasticState) -> tuple[Vector, float]:
    """The present (w, b)."""
    it = state.iterate
    return it.a * state.v.astype(np.float64), it.b + it.a * it.bias


def average_sum(state: StochasticState) -> Bucket:
    """Σ ω w, Σ ω b and Σ ω over the averaged iterates."""
    it = state.iterate
    w = it.gamma * state.v.astype(np.float64) + state.u
    return Bucket(w, it.b_sum + it.gamma * it.bias + it.u_bias, it.mass)


def output_of_try(state: StochasticState) -> tuple[Vector, float]:
    """The output of this try, as `average` defines it."""
    average = state.options.average
    if average == "random":
        return state.chosen
    if average == "last" or (state.iterate.mass == 0.0 and state.before is None):
        return last_iterate(state)
    parts = [average_sum(state)]
    if state.before is not None:
        parts.append(state.before)
    settings, t = state.settings, state.iterate.t
    if settings.weighting == BY_STEP:  # an iterate is added with the next step, so the last one is missing
        eta = step_length(settings.lam, settings.offset, settings.root_step, t)
        last_w, last_b = last_iterate(state)
        parts.append(Bucket(eta * last_w, eta * last_b, eta))
    mass = sum(part.mass for part in parts)
    w: Vector = np.sum([part.w for part in parts], axis=0) / mass
    return w, sum(part.b for part in parts) / mass


def output(state: StochasticState) -> tuple[Vector, float]:
    """The output so far: the average, or the best try."""
    return output_of_try(state) if state.best_try is None else state.best_try[1:]


def feasible_alpha(
    loss: Loss, b: float, y: Vector, scores: Vector, slopes: Vector, visits: Vector, out: Vector
) -> None:
    """α: minus the mean slope at each row over its visits in the tail; the present slope for rows without visits.

    The means are in single precision, and may be outside the dual domain by their rounding.
    """
    sums.slopes(loss, b, y, scores, out)
    np.divide(slopes, visits, out=out, where=visits > 0)
    np.negative(out, out=out)
    sums.clip(loss, y, out, out)


def improve(objective: Objective, state: StochasticState, own: Evaluation, alpha: Handle) -> Evaluation:
    """The best of P and D at the output and at a dual point better than α, if this may reach the target."""
    gap = relative_gap(own.primal, own.dual)
    sweeps = int(state.epoch * SWEEPS_PER_EPOCH)
    within_reach = gap <= IMPROVABLE_GAP * state.target or state.taken == state.last_step
    if gap <= state.target or not within_reach or sweeps == 0:
        return own
    implied = objective.evaluate_dual(improve_dual(objective, alpha, own.b, sweeps))
    better = own if own.primal <= implied.primal else implied
    return better._replace(dual=max(own.dual, implied.dual))
