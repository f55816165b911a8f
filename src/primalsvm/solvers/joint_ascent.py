"""Dual coordinate ascent on many problems at once: the same rows, other labels (one class against the rest).

    V = [v₁ … v_K],  v_k = Σ cᵢ α_ik xᵢ                                     one row of V for each feature
    for i in a fresh order of the rows:
        p  = s Vᵀxᵢ + b                                                    one pass over the row, for all k
        α'_k = argmax −ℓ*(−α') − p_k (α' − α_ik) − q/2 (α' − α_ik)²          `Loss.dual_step`, for each k
        V += xᵢ (cᵢ (α' − α_i))ᵀ                                            one more, if any of them has moved

Each problem is that of `dual_ascent`, with the same steps, intercepts, over-relaxation and running mean; what is new is
that a row is read once for all of them, and that the K numbers that each of its entries meets lie side by side
(`vectors`). A row sleeps when no problem would move it. A problem that is certified is taken out, and the others go on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, dual_step, value
from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import (
    CSR,
    Batch,
    Dense,
    Rows,
    Vector,
    fetch,
    sampled_squared_norms,
    shape,
    squared_norm,
    total_weight,
    weight_of,
)
from primalsvm.solution import Certificate, Solution, Status, Trace, relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.ascent import (
    CHUNK,
    LEAST_TRUST,
    LONGEST_NAP,
    RELAXATION,
    RELAXED_FROM,
    SLACK,
    DualState,
    memory_after,
    strength_of,
    trust_after,
)
from primalsvm.solvers.drive import PRECISE, SMALL, Progress, Stops, sentence
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.order import AHEAD, interleave, room_for_order, run_length, shuffled_runs
from primalsvm.solvers.protocol import Point
from primalsvm.solvers.sequence import APART, Mark, SequenceState, Stage, forecast
from primalsvm.sums import dual_sums, loss_sums
from primalsvm.vectors import (
    add_outer,
    dots,
    room_for,
    selected,
    squared_norms,
    transposed,
    unpacked,
    width,
)

LOOK = 2.0  # sweeps before the first mark
SINGLE_UNTIL = 1e-4  # relative gap down to which V and α are kept in single precision (half the bytes), P and D apart
SWEEPS_PER_EVALUATION = 10  # unless the estimates promise that it pays sooner, or exclude it; a quarter more later
PROMISING_SHARE = 0.9  # of the problems that are left: then it is worth while to evaluate them
FIRST_TRUST = 0.5  # true gap / estimate, before it is known (text, digits, letters: 0.3 to 0.7)


class Frame(NamedTuple):
    """What does not change during a sweep."""

    lam: float
    total: float  # Σc
    strength: float  # ρ: of the constant feature that stands for the intercept
    relaxation: float  # ω


@kernel
def sweep(batch, signs, loss, frame, centre, norms, order, alpha, V, beta, square, gap, gain, sleep, nap):  # type: ignore[no-untyped-def]  # compiled
    """Coordinate steps on the rows in `order`, for all problems; everything after `order` is updated."""
    rows, _, weight = batch
    K = np.uint64(alpha.shape[1])
    p = np.zeros(width(rows, V), V.dtype)
    change = np.zeros(width(rows, V), V.dtype)
    at, new = np.empty(K), np.empty(K)
    s = 1.0 / (frame.lam * frame.total)
    n = order.shape[0]
    for r in range(n):
        if r + AHEAD < n:
            fetch(rows, order[r + AHEAD])
        i = np.uint64(order[r])
        c = weight_of(weight, i)
        if c == 0.0:
            continue
        dots(rows, i, V, p)
        if norms[i] < 0.0:
            norms[i] = squared_norm(rows, i)
        q = s * c * (norms[i] + frame.strength) / frame.relaxation
        y, old = signs[i], alpha[i]
        # short loops, each over few arrays: a compiler makes vectors of those
        for k in range(K):
            at[k] = s * p[k] + centre[k] + frame.strength * s * beta[k]
        for k in range(K):
            new[k] = alpha.dtype.type(dual_step(loss, at[k], np.float64(y[k]), np.float64(old[k]), q))
        for k in range(K):
            kept = conjugate(loss, -np.float64(old[k]), np.float64(y[k]))
            gap[k] += c * (value(loss, at[k], np.float64(y[k])) + kept + old[k] * at[k])
        moved = False
        for k in range(K):
            moved |= new[k] != old[k]
        if moved:
            for k in range(K):
                kept = conjugate(loss, -np.float64(old[k]), np.float64(y[k]))
                gain[k] += c * (kept - conjugate(loss, -new[k], np.float64(y[k])))
            for k in range(K):
                change[k] = c * (new[k] - old[k])
                old[k] = new[k]
            for k in range(K):
                square[k] += change[k] * (2.0 * p[k] + change[k] * norms[i])
                beta[k] += change[k]
            add_outer(rows, i, change, V)
            nap[i] = 0
            continue
        calm = True
        for k in range(K):
            one, kept = np.float64(y[k]), np.float64(old[k])
            calm &= dual_step(loss, at[k] - SLACK, one, kept, q) == kept == dual_step(loss, at[k] + SLACK, one, kept, q)
        if calm:
            nap[i] = min(2 * nap[i] + 1, LONGEST_NAP)
            sleep[i] = nap[i]


@kernel
def average(V, past, mean):  # type: ignore[no-untyped-def]  # compiled
    """mean ← past · mean + (1 − past) V."""
    old, new = V.dtype.type(past), V.dtype.type(1.0 - past)
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            mean[j, k] = old * mean[j, k] + new * V[j, k]


@kernel
def scores_of(rows, V, s, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i, k] ← s ⟨v_k, xᵢ⟩."""
    p = np.zeros(width(rows, V))
    for i in range(np.uint64(out.shape[0])):
        dots(rows, i, V, p)
        for k in range(np.uint64(out.shape[1])):
            out[i, k] = s * p[k]


@kernel
def combination_of(batch, alpha, out):  # type: ignore[no-untyped-def]  # compiled
    """out ← Σ cᵢ xᵢ (α_i1 … α_iK)."""
    rows, _, weight = batch
    out[:] = 0
    scaled = np.zeros(width(rows, out), out.dtype)
    for i in range(np.uint64(alpha.shape[0])):
        c = weight_of(weight, i)
        some = False
        for k in range(np.uint64(alpha.shape[1])):
            scaled[k] = c * alpha[i, k]
            some |= scaled[k] != 0.0
        if some:
            add_outer(rows, i, scaled, out)


@dataclass
class Joint:
    """The problems that are left, and what is known of them."""

    left: Vector  # their numbers
    signs: Vector  # m × K
    alpha: Vector  # m × K
    V: Vector  # as `vectors` has it
    mean: Vector  # its running mean over the sweeps
    beta: Vector  # Σ cᵢ α_ik
    mean_beta: Vector
    centre: Vector  # b₀
    square: Vector  # ‖v_k‖²
    dual_sum: Vector  # Σ cᵢ (−ℓ*(−α_ik))
    lagging: Vector  # the gaps that the last sweep added up
    primal: Vector  # P that the last sweeps suggest,
    dual: Vector  # … D,
    estimate: Vector  # … and the relative gaps
    trust: Vector  # true gap / estimate, at the last evaluation

    def keep(self, rows: Rows, those: Vector) -> None:
        """Go on with some of them."""
        if those.size == self.left.size:
            return
        for name in ("signs", "alpha"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, those]))
        for name in ("V", "mean"):
            setattr(self, name, selected(rows, getattr(self, name), those))
        for name in (
            "left",
            "beta",
            "mean_beta",
            "centre",
            "square",
            "dual_sum",
            "lagging",
            "primal",
            "dual",
            "estimate",
            "trust",
        ):
            setattr(self, name, getattr(self, name)[those])


def solve_jointly(
    problem: Problem,
    batches: Sequence[Batch],
    stops: Stops,
    interrupted: Callable[[], bool],
    *,
    sweeps: int,
    stage: Stage,
    seed: int,
    start: Sequence[Any],
    watch: Callable[[Progress], None] | None = None,
) -> tuple[list[Solution], bool]:
    """The solution of every problem, each to its own certificate; and whether those left were given up.

    Parameters
    ----------
    problem : what they share
    batches : the same rows and weights, with the labels −1 and +1 of each
    stops : tol, max_iter and max_seconds, for each
    sweeps : at most; if max_iter is less, that many
    stage : how much work a problem may still seem to need; if most need more, those left are given up
    start : for each a previous state to go on from, or None
    """
    begin = perf_counter()
    m, d = shape(batches[0].rows)
    K = len(batches)
    target = min(stops.tol, PRECISE) if m * d < SMALL else stops.tol
    total = total_weight(batches[0])
    strength = strength_of(problem, float(sampled_squared_norms(batches[0].rows).mean()))
    dtype = np.dtype(np.float32 if target >= SINGLE_UNTIL else np.float64)
    batch = batches[0]._replace(rows=side_by_side(batches[0].rows, K))
    joint = begun(problem, batch.rows, batches, dtype, start)
    norms, sleep, nap = np.full(m, -1.0), np.zeros(m, np.uint8), np.zeros(m, np.uint8)
    order, rng = room_for_order(m), np.random.default_rng(seed)
    traces = [Trace() for _ in range(K)]
    found: dict[int, Solution] = {}
    epoch = steps = since = 0
    per_visit = costs.joint_visits(costs.Size.of(batches[0].rows), K) / m
    operations, next_mark = 0.0, LOOK * m * per_visit
    marks: dict[int, Mark] = {}
    hopeless = False
    while len(found) < K:
        awake = interleave(shuffled_runs(rng, m), run_length(m), m, sleep, order)
        gap, gain = np.zeros(joint.left.size), np.zeros(joint.left.size)
        frame = Frame(problem.lam, total, strength, RELAXATION if epoch >= RELAXED_FROM else 1.0)
        status = None
        for first in range(0, awake, CHUNK):
            sweep(
                batch, joint.signs, problem.loss, frame, joint.centre, norms, order[first : min(first + CHUNK, awake)],
                joint.alpha, joint.V, joint.beta, joint.square, gap, gain, sleep, nap,
            )  # fmt: skip
            if interrupted():
                status = Status.INTERRUPTED
            elif stops.max_seconds is not None and perf_counter() - begin >= stops.max_seconds:
                status = Status.MAX_SECONDS
            if status is not None:
                break
        epoch, steps, since = epoch + 1, steps + awake, since + 1
        operations += awake * per_visit
        joint.dual_sum += gain
        close_sweep(problem, joint, epoch, gap, total, strength)
        if operations >= next_mark:
            now = {
                int(number): Mark(operations, float(primal), float(dual))
                for number, primal, dual in zip(joint.left, joint.primal, joint.dual, strict=True)
            }
            needed = [forecast(marks[number], mark, target) for number, mark in now.items() if number in marks]
            hopeless = bool(needed) and float(np.median(needed)) > stage.patience
            marks, next_mark = now, APART * operations
        if status is None and (hopeless or epoch >= min(sweeps, stops.epochs)):
            status = Status.MAX_ITER
        promising = np.mean(joint.estimate * joint.trust <= target) >= PROMISING_SHARE
        overdue = since >= max(SWEEPS_PER_EVALUATION, epoch // 4) and joint.estimate.min() * LEAST_TRUST <= target
        if status is None and not promising and not overdue:
            continue
        since, seconds, open_problems = 0, perf_counter() - begin, []
        given_up = status is Status.MAX_ITER and (stops.max_iter is None or epoch < stops.max_iter)  # others go on
        for column, (w, b, primal, dual, _) in enumerate(evaluated(problem, batch, batches, joint, total)):
            number = int(joint.left[column])
            traces[number].append(epoch, steps, seconds, primal, dual, solver="dual_ascent")
            reached = relative_gap(primal, dual)
            joint.trust[column] = trust_after(reached, float(joint.estimate[column]))
            joint.estimate[column] = reached
            if reached > target and status is None:
                open_problems.append(column)
                continue
            enough = reached <= (target if given_up else stops.tol)
            ended = Status.CONVERGED if enough or status is None else status
            found[number] = Solution(
                w=w, b=b, certificate=Certificate.of(primal, dual), status=ended,
                message=sentence(ended, float(epoch), reached, stops),
                trace=traces[number].array(), n_epochs=float(epoch), n_steps=steps, seconds=seconds,
                solver=DualAscent(),
                state=Point(joint.alpha[:, column].astype(np.float64), float(joint.centre[column]), w),
            )  # fmt: skip
        if watch is not None:
            watch(Progress(epoch, stops.epochs, float(joint.estimate.max()), stops.tol, seconds))
        joint.keep(batch.rows, np.array(open_problems, np.intp))
    return [found[k] for k in range(K)], hopeless


def begun(problem: Problem, rows: Rows, batches: Sequence[Batch], dtype: Any, start: Sequence[Any]) -> Joint:
    """α = 0, or where the previous solutions ended."""
    batch, signs = batches[0]._replace(rows=rows), np.stack([one.y.astype(np.int8) for one in batches], axis=1)
    m, K = signs.shape
    alpha, centre, beta = np.zeros((m, K), dtype), np.zeros(K), np.zeros(K)
    V, somewhere = room_for(rows, K, dtype), False
    for k, (one, given) in enumerate(zip(batches, start, strict=True)):
        previous = given.inner if isinstance(given, SequenceState) else given
        warm = isinstance(previous, Point | DualState) and previous.alpha.shape == (m,)
        if warm:
            alpha[:, k] = problem.clipped(one, previous.alpha)
            somewhere = True
        if problem.intercept == "free":
            centre[k] = (
                (previous.b if isinstance(previous, Point) else previous.centre) if warm else problem.best_constant(one)
            )
    if somewhere:
        combination_of(batch, alpha, V)
    return Joint(
        left=np.arange(K),
        signs=signs,
        alpha=alpha,
        V=V,
        mean=np.zeros_like(V),
        dual_sum=dual_sums(problem.loss, signs, batch.weight, alpha, beta),
        beta=beta,
        mean_beta=np.zeros(K),
        centre=centre,
        square=squared_norms(rows, V, K) if somewhere else np.zeros(K),
        lagging=np.full(K, np.inf),
        primal=np.full(K, np.inf),
        dual=np.zeros(K),
        estimate=np.full(K, np.inf),
        trust=np.full(K, FIRST_TRUST),
    )


def side_by_side(rows: Rows, count: int) -> Rows:
    """The rows, as sparse ones where they are dense with fewer features than there are problems.

    Products with vectors as short as that are mostly overhead; a feature's numbers of all problems are long enough.
    """
    m, d = shape(rows)
    if not isinstance(rows, Dense) or d > count:
        return rows
    indices = np.broadcast_to(np.arange(d, dtype=np.uint32), (m, d)).reshape(-1)
    return CSR(rows.values.reshape(-1), indices, np.arange(m + 1, dtype=np.uint64) * np.uint64(d), d)


def close_sweep(problem: Problem, joint: Joint, epoch: int, gap: Vector, total: float, strength: float) -> None:
    """After a sweep: the running means, the intercepts' centres, the gaps about. See `ascent.close_sweep`."""
    past = memory_after(epoch)
    average(joint.V, past, joint.mean)
    joint.mean_beta = past * joint.mean_beta + (1.0 - past) * joint.beta
    s = 1.0 / (problem.lam * total)
    b = joint.centre + strength * s * joint.beta
    gap = gap / total
    if problem.intercept == "free":
        joint.centre = b
        gap += np.abs(b * joint.beta) / total
    dual = joint.dual_sum / total - problem.penalty(s * s * joint.square, s * joint.beta)
    now = gap * np.minimum(1.0, gap / np.maximum(joint.lagging, 1e-300)) if epoch > 1 else gap  # it lags by a sweep
    joint.lagging = gap
    joint.primal, joint.dual = dual + now, dual
    joint.estimate = now / np.maximum(np.maximum(np.abs(dual + now), np.abs(dual)), 1e-300)


def evaluated(problem: Problem, batch: Batch, batches: Sequence[Batch], joint: Joint, total: float) -> list[Evaluation]:
    """Of each problem that is left: P at the running mean of w, with the best b if it is free; D at α."""
    s = 1.0 / (problem.lam * total)
    m, K = joint.alpha.shape
    free, own = problem.intercept == "free", [batches[number] for number in joint.left]
    alpha = balanced(problem, own, joint.alpha) if free else joint.alpha
    pull, balance = room_for(batch.rows, K, np.float64), np.zeros(K)  # what decides is summed in double precision
    combination_of(batch, alpha, pull)
    duals = dual_sums(problem.loss, joint.signs, batch.weight, alpha, balance) / total
    duals -= problem.penalty(s * s * squared_norms(batch.rows, pull, K), s * balance)
    W, scores = unpacked(batch.rows, joint.mean, K), np.empty((m, K))
    scores_of(batch.rows, joint.mean if isinstance(batch.rows, CSR) else W, s, scores)
    W *= s
    b = s * joint.mean_beta if problem.intercept == "penalized" else np.zeros(K)
    if free:
        b[:] = [problem.best_intercept(*one) for one in zip(own, transposed(scores), joint.centre, strict=True)]
    losses = loss_sums(problem.loss, joint.signs, batch.weight, scores, b) / total
    return [
        Evaluation(W[k], float(b[k]), problem.regularizer(W[k], float(b[k])) + float(losses[k]), float(duals[k]))
        for k in range(K)
    ]


def balanced(problem: Problem, batches: Sequence[Batch], alpha: Vector) -> Vector:
    """`Problem.balanced`, column by column."""
    columns = transposed(alpha)
    for one, column in zip(batches, columns, strict=True):
        column[:] = problem.balanced(one, column)
    return transposed(columns)
