"""Pegasos: primal estimated sub-gradient solver (Shalev-Shwartz, Singer and Srebro 2007).

    w₁ with ‖w₁‖ ≤ 1/√λ
    for t = 1, 2, …, T:
        choose A_t of k rows
        η_t     = 1/(λ t)
        w_{t+½} = (1 − η_t λ) w_t − (η_t/k) Σ_{i ∈ A_t} (cᵢ/c̄) ℓ'(yᵢ, ⟨w_t, xᵢ⟩ + b) xᵢ         eq. (3)
        w_{t+1} = min{1, 1/(√λ ‖w_{t+½}‖)} w_{t+½}                       eq. (4), if `projection`
    output w_{T+1}, an average of w_1 … w_T, or one of them at random

For the hinge −ℓ' xᵢ is yᵢ xᵢ where yᵢ⟨w, xᵢ⟩ < 1 and 0 elsewhere, as in the paper.

Sparse steps. w = a v with ν = ‖w‖² kept beside it (end of the paper's section 2): shrinking and projecting change a and
ν, adding a row touches its non-zeros. Averages are kept the same way: Σ ω_s w_s = γ v + u with γ = Σ ω_s a_s, so that
adding δ to v takes γ δ from u.

Intercept. Penalised: the weight of a constant feature, part of w. Free: b moves with ASSET's step D_X/(D_G √t) in
[−B, B] (Lee and Wright, Algorithm 1), here with D_X/D_G = 1/sup|ℓ'|; 1/(λt) would throw it to ±1/λ.

First steps. With λ small, 1/λ, 1/(2λ), … are so long that it takes most of a run to get back. With an offset,
η_t = 1/(λ(t + t₀)), they are shorter and w₁ is not erased. The default is the paper's t₀ = 0 when a number of steps is
given, and t₀ = 70 mean‖x‖²/λ when the goal is an accuracy. For a smooth loss whose slope is not bounded (the squared
hinge) t₀ is at least sup ℓ'' · R²/λ: a longer first step overshoots, and the run blows up.

Certificate. −(the mean slope at row i over its visits in the tail of the run) is a feasible αᵢ. Its w(α) is near w, but
a row near the margin is visited too seldom to tell its share precisely. When the goal is an accuracy and it is within
reach, some sweeps of dual ascent over α (a share of the epochs so far) sharpen the bound, and w(α) is returned if its P
is lower. A run of `n_iter` steps returns what the paper returns.
"""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import slope
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
    total_weight,
    value_dtype,
    weight_of,
)
from primalsvm.solution import relative_gap
from primalsvm.solvers.dual_ascent import sharpen
from primalsvm.solvers.order import AHEAD, FAR_AHEAD
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import Sampler, Sampling
from primalsvm.team import Team

Average = Literal["last", "uniform", "suffix", "weighted", "random"]

CHUNK = 65_536  # rows between two looks at the clock
TINY = 1e-9  # v is rescaled when a falls below
SAMPLE = 1000  # rows that estimate ‖x‖² for the offset and for the bounds of a free intercept
GENTLE = 70.0  # λ t₀ / mean‖x‖² when the goal is an accuracy (a9a, covtype, λ = 1e-5: best between 50 and 150)
SWEEPS_PER_EPOCH = 0.5  # of dual ascent, to sharpen the certificate,
WITHIN_REACH = 30.0  # … where its gap is within this factor of the target
NEVER = 2**62


class Settings(NamedTuple):
    """Scalars that do not change during a run."""

    lam: float
    offset: float  # t₀
    radius: float  # of the ball; inf without projection
    constant: float  # value of the constant feature: 1 for a penalised intercept, else 0
    intercept_step: float  # D_X/D_G for a free intercept, else 0
    intercept_bound: float  # B
    mean_weight: float  # c̄
    rising: bool  # iterate t enters the average with weight t, not 1


class Iterate(NamedTuple):
    """The scalars of w_t = a v and of its average (γ v + u)/mass."""

    t: int = 0
    a: float = 1.0
    nu: float = 0.0  # ‖w‖²
    bias: float = 0.0  # v's entry for the constant feature
    b: float = 0.0  # the free intercept
    mass: float = 0.0  # Σ ω
    gamma: float = 0.0  # Σ ω a
    u_bias: float = 0.0  # u's entry for the constant feature
    b_sum: float = 0.0  # Σ ω b


class Tail(NamedTuple):
    """The steps begin < t ≤ end whose slopes make up the certificate, weighted like a hat: rising, then falling.

    With n visits a row, s the steps of the tail and η nearly constant, w(α) = w̄ + (w_end − w_begin)/(η λ s) for equal
    weights: the noise of two single iterates. A hat takes averages of iterates instead of w_begin and w_end.
    """

    begin: float
    end: float


@kernel
def take_steps(batch, loss, settings, iterate, tail, order, v, u, slopes, visits, g):  # type: ignore[no-untyped-def]  # compiled
    """One step per len(g) rows of `order`. v and u are updated; slopes and visits, if kept, make the certificate."""
    rows, y, weight = batch
    lam, offset, radius, constant, intercept_step, intercept_bound, mean_weight, rising = settings
    t, a, nu, bias, b, mass, gamma, u_bias, b_sum = iterate
    k = g.shape[0]
    averaging = u.shape[0] > 0
    counting = visits.shape[0] > 0
    projecting = radius < np.inf
    if projecting:  # ν afresh, so that rounding does not pile up over a long run
        nu = bias * bias
        for j in range(v.shape[0]):
            nu += np.float64(v[j]) * np.float64(v[j])
        nu *= a * a
    for first in range(0, order.shape[0] - k + 1, k):
        t += 1
        eta = 1.0 / (lam * (t + offset))
        hat = max(min(t - tail.begin, tail.end + 1.0 - t), 0.0)
        if averaging:
            omega = np.float64(t) if rising else 1.0
            mass += omega
            gamma += omega * a
            b_sum += omega * b
        for j in range(k):
            if first + j + AHEAD < order.shape[0]:
                fetch(rows, order[first + j + AHEAD])
            if first + j + FAR_AHEAD < order.shape[0]:
                locate(rows, order[first + j + FAR_AHEAD])
                prefetch(y, order[first + j + FAR_AHEAD])
            i = np.uint64(order[first + j])
            p = a * (dot(rows, i, v) + constant * bias) + b
            gradient = slope(loss, p, y[i])
            if counting:
                slopes[i] += hat * gradient
                visits[i] += hat
            g[j] = gradient * weight_of(weight, i) / mean_weight
        shrink = 1.0 - eta * lam
        a *= shrink
        nu *= shrink * shrink
        if a < TINY:  # u ← γ v + u, γ ← 0; v ← a v, a ← 1. At t = 1 without t₀, a = 0: this erases w₁
            for j in range(v.shape[0]):
                if averaging:
                    u[j] += gamma * v[j]
                v[j] *= a
            u_bias += gamma * bias
            gamma = 0.0
            bias *= a
            a = 1.0
        slope_sum = 0.0
        for j in range(k):
            if g[j] == 0.0:
                continue
            i = np.uint64(order[first + j])
            c = -eta * g[j] / k
            slope_sum += g[j]
            if projecting:
                score = a * (dot(rows, i, v) + constant * bias)
                nu += 2.0 * c * score + c * c * (squared_norm(rows, i) + constant)
            add(rows, i, c / a, v)
            bias += constant * c / a
            if averaging:
                add(rows, i, -gamma * c / a, u)
                u_bias -= gamma * constant * c / a
        if projecting and nu > radius * radius:
            a *= radius / np.sqrt(nu)
            nu = radius * radius
        if intercept_step > 0.0:
            b -= intercept_step / np.sqrt(np.float64(t)) * slope_sum / k
            b = min(max(b, -intercept_bound), intercept_bound)
    return Iterate(t, a, nu, bias, b, mass, gamma, u_bias, b_sum)


@dataclass
class PegasosState:
    """All that the solver remembers between two chunks."""

    settings: Settings
    iterate: Iterate
    v: Vector
    u: Vector  # empty unless an average is kept
    slopes: Vector  # empty without certificate
    visits: Vector
    sampler: Sampler
    per_epoch: int  # steps
    target: float
    last: int  # the last step that `max_iter` allows
    length: int | None  # steps in a try; None: no end
    tail: Tail
    next_tail: int  # step of this try at which the tail begins anew
    chosen: tuple[Vector, float]  # the random iterate
    best_try: tuple[float, Vector, float] | None = None  # P, w, b
    tries_left: int = 1
    taken: int = 0  # steps of this try
    epoch: float = 0.0
    steps: int = 0
    finished: bool = False
    worth_evaluating: bool = False


@dataclass(frozen=True, eq=False)
class Pegasos:
    """Stochastic sub-gradient steps of length 1/(λt).

    Parameters
    ----------
    batch_size : int
        k, the rows in a step.
    n_iter : int or None
        T, the number of steps, which then are all taken whatever `tol` and `max_iter` say; None: until the certified
        relative gap reaches `tol`.
    sampling : {"blocks", "epochs", "iid", "distinct"}
        Rows in mixed blocks (fast), in a fresh permutation each epoch, independent draws, or k distinct rows each step
        (k = m is the deterministic sub-gradient method).
    projection : bool
        Project onto the ball of radius 1/√λ after each step.
    average : {"suffix", "weighted", "last", "uniform", "random"}
        What is returned: the average of the tail (the last half if `n_iter` is given, else since the last power of two
        epochs), the average with weights t, w_{T+1}, the plain average, or a random iterate.
    tries : int
        s: run s times n_iter/s steps and keep the best outcome. For the 1 − δ guarantee s = ⌈ln 1/δ⌉ with
        ``average="random"``.
    w1 : array or None
        The start, in the ball; None is 0. (With t₀ = 0 the first step erases it, as 1 − η₁λ = 0.)
    offset : float or "auto"
        t₀ in η_t = 1/(λ(t + t₀)). "auto" is 0 with `n_iter`, else 70 mean‖x‖²/λ; more where the loss needs it.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1), X, [1, 1, -1, -1], solver=Pegasos(n_iter=1000))
    >>> solution.n_steps, solution.certificate.relative_gap < 0.05
    (1000, True)
    """

    batch_size: int = 1
    n_iter: int | None = None
    sampling: Sampling = "blocks"
    projection: bool = False
    average: Average = "suffix"
    tries: int = 1
    w1: Vector | None = None
    offset: float | Literal["auto"] = "auto"
    precise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "n_iter", "tries"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Integral):
                raise TypeError(f"{name} must be an integer, got {given!r}")
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {self.batch_size!r}")
        if self.n_iter is not None and self.n_iter < self.tries:
            raise ValueError(f"n_iter must be at least 1 per try, got {self.n_iter!r} for {self.tries} tries")
        if self.sampling not in ("iid", "distinct", "epochs", "blocks"):
            raise ValueError(f"sampling={self.sampling!r}: choose 'blocks', 'epochs', 'iid' or 'distinct'")
        if self.average not in ("last", "uniform", "suffix", "weighted", "random"):
            raise ValueError(f"average={self.average!r}: choose 'suffix', 'weighted', 'last', 'uniform' or 'random'")
        if self.offset != "auto" and not float(self.offset) >= 0.0:
            raise ValueError(f"offset must be 'auto' or a number that is not negative, got {self.offset!r}")
        if self.tries < 1 or (self.tries > 1 and self.n_iter is None):
            raise ValueError("tries must be at least 1, and more than one try needs n_iter, the total of all steps")

    @property
    def self_paced(self) -> bool:
        """With n_iter given, exactly so many steps are taken."""
        return self.n_iter is not None

    # ---- state -------------------------------------------------------------------------------------------------------

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> PegasosState:
        """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
        m, d = shape(batch.rows)
        k = self.batch_size
        dtype = np.dtype(np.float64 if value_dtype(batch.rows) == np.float64 else np.float32)
        v, iterate = self._start_point(problem, d, dtype, previous)
        averaging = self.average in ("uniform", "suffix", "weighted")
        per_epoch = -(-m // k)
        length = self._length(self.tries)
        rows_counted = m if run.certify else 0
        return PegasosState(
            settings=self._settings(problem, batch),
            iterate=iterate,
            v=v,
            u=np.zeros(d if averaging else 0, dtype),
            slopes=np.zeros(rows_counted, np.float32),
            visits=np.zeros(rows_counted, np.float32),
            sampler=Sampler(self.sampling, m, k, np.random.default_rng(run.seed)),
            per_epoch=per_epoch,
            length=length,
            tail=Tail(iterate.t, iterate.t + per_epoch),
            next_tail=per_epoch if length is None else -(-length // 2),
            target=run.target,
            last=NEVER if length is not None else run.max_iter * per_epoch,
            chosen=(v.astype(np.float64), iterate.b),
            tries_left=self.tries,
        )

    def _length(self, tries_left: int) -> int | None:
        """Steps of the next try: n_iter/s, the first ones taking a step more where that is no whole number."""
        if self.n_iter is None:
            return None
        return self.n_iter // self.tries + (self.tries - tries_left < self.n_iter % self.tries)

    def _start_point(self, problem: Problem, d: int, dtype: Any, previous: Any) -> tuple[Vector, Iterate]:
        if isinstance(previous, PegasosState) and previous.v.shape == (d,):
            kept = previous.iterate
            return previous.v.astype(dtype), Iterate(t=kept.t, a=kept.a, nu=kept.nu, bias=kept.bias, b=kept.b)
        if self.w1 is None:
            return np.zeros(d, dtype), Iterate()
        w1 = np.array(self.w1, dtype)
        if w1.shape != (d,):
            raise ValueError(f"w1 has shape {w1.shape}, expected ({d},)")
        norm = float(np.linalg.norm(w1))
        if not norm <= problem.radius * (1 + 1e-6):
            raise ValueError(
                f"w1 must lie in the ball of radius 1/sqrt(lam) = {problem.radius:.6g}; its norm is {norm:.6g}"
            )
        return w1, Iterate(nu=norm * norm)

    def _settings(self, problem: Problem, batch: Batch) -> Settings:
        loss = problem.loss
        steep = math.isinf(loss.slope_bound)
        if steep and math.isinf(loss.curvature):
            raise ValueError(f"{loss!r} has neither a bounded slope nor a bounded curvature: Pegasos has no safe step")
        mean_weight = total_weight(batch) / shape(batch.rows)[0]
        constant = 1.0 if problem.intercept == "penalized" else 0.0
        # A run of n_iter steps costs the same whatever the number of rows: only a safe step has to look at all of them.
        norms = sampled_squared_norms(batch.rows, shape(batch.rows)[0] if steep else SAMPLE) + constant
        if self.offset != "auto":
            offset = float(self.offset)
        else:
            offset = GENTLE * float(norms.mean()) / problem.lam if self.n_iter is None else 0.0
        if steep:
            heaviest = float(batch.weight.values.max()) / mean_weight
            offset = max(offset, loss.curvature * float(norms.max()) * heaviest / problem.lam)
        free = problem.intercept == "free"
        return Settings(
            lam=problem.lam,
            offset=offset,
            radius=problem.radius if self.projection else math.inf,
            constant=constant,
            intercept_step=1.0 / min(loss.slope_bound, max(1.0, loss.curvature)) if free else 0.0,
            intercept_bound=1.0 + math.sqrt(float(norms.max())) * problem.radius if free else 0.0,
            mean_weight=mean_weight,
            rising=self.average == "weighted",
        )

    # ---- steps -------------------------------------------------------------------------------------------------------

    def advance(self, problem: Problem, batch: Batch, state: PegasosState, team: Team) -> PegasosState:
        """Steps up to the next point of interest: a chunk, the tail, an evaluation, the end of a try."""
        if state.taken == state.next_tail:
            self._begin_tail(state)
        n = max(1, CHUNK // self.batch_size)
        if state.taken < state.next_tail:
            n = min(n, state.next_tail - state.taken)
        if state.length is not None:
            n = min(n, state.length - state.taken)
        order = state.sampler.draw(n * self.batch_size)
        # A uniformly random iterate of w_1 … w_T, T unknown: replace the one chosen so far with probability n/T.
        if self.average == "random" and state.sampler.rng.random() * (state.taken + n) < n:
            cut = int(state.sampler.rng.integers(n)) * self.batch_size
            self._take_steps(problem, batch, state, order[:cut])
            state.chosen = self._present(state)
            order = order[cut:]
        self._take_steps(problem, batch, state, order)
        state.taken += n
        state.steps += n
        state.epoch = state.steps / state.per_epoch
        state.worth_evaluating = state.length is None and state.taken == state.next_tail
        if state.taken == state.length:
            self._end_try(problem, batch, state, team)
        return state

    def _take_steps(self, problem: Problem, batch: Batch, state: PegasosState, order: Vector) -> None:
        early = (
            self.average == "suffix" and state.length is not None and state.next_tail != NEVER
        )  # not in the tail yet
        state.iterate = take_steps(
            batch, problem.loss, state.settings, state.iterate, state.tail, order,
            state.v, state.u[:0] if early else state.u, state.slopes, state.visits, np.empty(self.batch_size),
        )  # fmt: skip

    def _begin_tail(self, state: PegasosState) -> None:
        state.slopes[:] = 0.0
        state.visits[:] = 0.0
        if self.average == "suffix":
            state.u[:] = 0.0
            state.iterate = state.iterate._replace(mass=0.0, gamma=0.0, u_bias=0.0, b_sum=0.0)
        begin = state.next_tail
        if state.length is None:  # tails of doubling length, each known when it begins
            state.next_tail = min(2 * begin, state.last) if begin < state.last else NEVER
            end = state.next_tail
        else:
            state.next_tail, end = NEVER, state.length
        before = state.iterate.t - state.taken  # steps before this try: of a run that this one goes on from
        state.tail = Tail(before + begin, before + end)

    def _end_try(self, problem: Problem, batch: Batch, state: PegasosState, team: Team) -> None:
        state.tries_left -= 1
        if self.tries > 1:
            w, b = self._output(state)
            value = problem.value(batch, w, b, team)
            if state.best_try is None or value < state.best_try[0]:
                state.best_try = (value, w, b)
        if state.tries_left == 0:
            state.finished = True
            return
        state.taken = 0
        state.v, state.iterate = self._start_point(problem, state.v.shape[0], state.v.dtype, None)
        state.u[:] = 0.0
        state.length = self._length(state.tries_left)
        state.next_tail = -(-state.length // 2) if state.length is not None else NEVER

    # ---- results -----------------------------------------------------------------------------------------------------

    def _present(self, state: PegasosState) -> tuple[Vector, float]:
        it = state.iterate
        return it.a * state.v.astype(np.float64), it.b + it.a * it.bias

    def _output(self, state: PegasosState) -> tuple[Vector, float]:
        """What `average` says of this try."""
        it = state.iterate
        if self.average == "random":
            return state.chosen
        if self.average == "last" or it.mass == 0.0:
            return self._present(state)
        w = (it.gamma * state.v.astype(np.float64) + state.u) / it.mass
        return w, (it.b_sum + it.gamma * it.bias + it.u_bias) / it.mass

    def iterate(self, problem: Problem, batch: Batch, state: PegasosState) -> tuple[Vector, float]:
        """The output so far: the average's, or the best try's."""
        return self._output(state) if state.best_try is None else state.best_try[1:]

    def evaluate(self, problem: Problem, batch: Batch, state: PegasosState, team: Team) -> Evaluation:
        """P at the output, with the best b if it is free; D at the mean slopes."""
        w, b = self.iterate(problem, batch, state)
        b, primal, scores = problem.evaluate_primal(batch, w, b, team)
        now = problem.slopes_at(batch, scores, b)  # for the rows that the tail has not visited
        alpha = -np.divide(state.slopes, state.visits, out=now, where=state.visits > 0)
        own = Evaluation(w, b, primal, problem.lower_bound(batch, alpha, team))
        return own if self.self_paced else self._sharpened(problem, batch, state, own, alpha, team)

    def _sharpened(
        self, problem: Problem, batch: Batch, state: PegasosState, own: Evaluation, alpha: Vector, team: Team
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
