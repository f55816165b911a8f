"""Dual coordinate ascent on many problems at once: the same rows, other labels (one class against the rest).

    V = [v₁ … v_K],  v_k = Σ cᵢ α_ik xᵢ                                     one row of V for each feature
    for i in a fresh order of the rows that are awake:
        p  = s Vᵀxᵢ + b                                                    one pass over the row, for all k
        α'_k = argmax −ℓ*(−α') − p_k (α' − α_ik) − q/2 (α' − α_ik)²          `Loss.dual_step`, for each k
        V += xᵢ (cᵢ (α' − α_i))ᵀ                                            one more, if any of them has moved

Each problem is that of `dual_ascent`, with the same steps, intercepts, over-relaxation and running mean; what is new is
that a row is read once for all of them, and that the K numbers that each of its entries meets lie side by side. Rows
sleep when no problem would move them. A problem that is certified is taken out, and the others go on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, dual_step, value
from primalsvm.objective import Problem
from primalsvm.rows import (
    Batch,
    Vector,
    add_outer,
    dots,
    fetch,
    sampled_squared_norms,
    shape,
    squared_norm,
    total_weight,
    weight_of,
)
from primalsvm.solution import Certificate, Solution, Status, Trace, relative_gap
from primalsvm.solvers.ascent import (
    FREE_STRENGTH,
    LONG_MEMORY,
    LONGEST_NAP,
    RELAXATION,
    RELAXED_FROM,
    SHORT_MEMORY,
    SLACK,
    DualState,
    Warm,
)
from primalsvm.solvers.drive import PRECISE, SMALL, Stops, sentence
from primalsvm.solvers.order import AHEAD, interleave, room_for_order, run_length, shuffled_runs
from primalsvm.team import Team

SINGLE_UNTIL = 1e-5  # relative gap down to which V is kept in single precision: half the bytes
SWEEPS_PER_EVALUATION = 5  # at most, between two evaluations of the problems that are left


class Frame(NamedTuple):
    """What does not change during a sweep."""

    lam: float
    total: float  # Σc
    strength: float  # ρ: of the constant feature that stands for the intercept
    relaxation: float  # ω


@kernel
def sweep(batch, signs, loss, frame, centre, beta, norms, order, alpha, V, sleep, nap, gap, gain):  # type: ignore[no-untyped-def]  # compiled
    """Coordinate steps on the rows in `order`, for all problems; everything after `order`, and β, is updated."""
    rows, _, weight = batch
    K = V.shape[1]
    p = np.empty(K, V.dtype)
    change = np.empty(K, V.dtype)
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
        moved = False
        for k in range(K):
            y = np.float64(signs[i, k])
            at = s * p[k] + centre[k] + frame.strength * s * beta[k]
            old = np.float64(alpha[i, k])
            new = np.float64(alpha.dtype.type(dual_step(loss, at, y, old, q)))
            kept = conjugate(loss, -old, y)
            gap[k] += c * (value(loss, at, y) + kept + old * at)
            gain[k] += c * (kept - conjugate(loss, -new, y))
            step = c * (new - old)
            change[k] = step
            beta[k] += step
            alpha[i, k] = new
            moved |= new != old
        if moved:
            add_outer(rows, i, change, V)
            nap[i] = 0
            continue
        calm = True
        for k in range(K):
            y = np.float64(signs[i, k])
            at = s * p[k] + centre[k] + frame.strength * s * beta[k]
            old = np.float64(alpha[i, k])
            calm &= dual_step(loss, at - SLACK, y, old, q) == old and dual_step(loss, at + SLACK, y, old, q) == old
        if calm:
            nap[i] = min(2 * nap[i] + 1, LONGEST_NAP)
            sleep[i] = nap[i]


@kernel
def scores_of(rows, W, out):  # type: ignore[no-untyped-def]  # compiled
    """out ← X W, a row at a time."""
    for i in range(np.uint64(out.shape[0])):
        dots(rows, i, W, out[i])


@kernel
def combination_of(batch, alpha, out):  # type: ignore[no-untyped-def]  # compiled
    """out ← Σ cᵢ xᵢ α_iᵀ."""
    rows, _, weight = batch
    scaled = np.empty(alpha.shape[1], out.dtype)
    for i in range(np.uint64(alpha.shape[0])):
        c = weight_of(weight, i)
        some = False
        for k in range(alpha.shape[1]):
            scaled[k] = c * alpha[i, k]
            some |= scaled[k] != 0.0
        if some:
            add_outer(rows, i, scaled, out)


@dataclass
class Joint:
    """The problems that are left, and what is known of them."""

    left: Vector  # their numbers
    signs: Vector
    alpha: Vector
    V: Vector
    mean: Vector
    beta: Vector
    centre: Vector
    dual_sum: Vector  # Σ cᵢ (−ℓ*(−αᵢ))

    def keep(self, those: Vector) -> None:
        """Go on with some of them."""
        self.left = self.left[those]
        for name in ("signs", "alpha", "V", "mean"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[:, those]))
        for name in ("beta", "centre", "dual_sum"):
            setattr(self, name, getattr(self, name)[those])


def solve_jointly(
    problem: Problem,
    batch: Batch,
    signs: Vector,
    stops: Stops,
    *,
    seed: int = 0,
    start: list[Warm | None] | None = None,
    team: Team,
    interrupted: Callable[[], bool] = lambda: False,
    solver: Any = None,
) -> list[Solution]:
    """The solution of every problem, each to its own certificate.

    Parameters
    ----------
    problem : what they share
    batch : rows and weights; its labels are not looked at
    signs : labels −1 and +1, a column for each problem
    stops : tol, max_iter and max_seconds, for each
    """
    begin = perf_counter()
    m, d = shape(batch.rows)
    K = signs.shape[1]
    target = min(stops.tol, PRECISE) if m * d < SMALL else stops.tol
    exactly = np.dtype(np.float32 if target >= SINGLE_UNTIL else np.float64)
    total = total_weight(batch)
    mean_norm = float(sampled_squared_norms(batch.rows).mean())
    strength = {"none": 0.0, "penalized": 1.0, "free": FREE_STRENGTH * mean_norm}[problem.intercept]
    joint = begun(problem, batch, signs, d, exactly, start)
    norms, sleep, nap = np.full(m, -1.0), np.zeros(m, np.uint8), np.zeros(m, np.uint8)
    order, rng = room_for_order(m), np.random.default_rng(seed)
    traces = [Trace() for _ in range(K)]
    found: dict[int, Solution] = {}
    epoch = steps = since = 0
    estimate = np.full(K, np.inf)
    while len(found) < K:
        awake = interleave(shuffled_runs(rng, m), run_length(m), m, sleep, order)
        gap, gain = np.zeros(joint.left.size), np.zeros(joint.left.size)
        frame = Frame(problem.lam, total, strength, RELAXATION if epoch >= RELAXED_FROM else 1.0)
        sweep(
            batch, joint.signs, problem.loss, frame, joint.centre, joint.beta, norms, order[:awake],
            joint.alpha, joint.V, sleep, nap, gap, gain,
        )  # fmt: skip
        epoch, steps, since = epoch + 1, steps + awake, since + 1
        joint.dual_sum += gain
        lagging, estimate = estimate, closed(problem, joint, epoch, gap / total, total, strength)
        # each row's gap was measured before its step: the sum lags behind by about one sweep's progress
        falling = np.clip(estimate / np.maximum(lagging, 1e-300), 0.0, 1.0)
        now = estimate * np.where(np.isfinite(lagging), falling, 1.0)
        seconds = perf_counter() - begin
        status = None
        if interrupted():
            status = Status.INTERRUPTED
        elif epoch >= stops.max_iter:
            status = Status.MAX_ITER
        elif stops.max_seconds is not None and seconds >= stops.max_seconds:
            status = Status.MAX_SECONDS
        promising = awake > 0 and bool(np.mean(now <= target) >= 0.5)
        if status is None and not promising and since < SWEEPS_PER_EVALUATION:
            continue
        since = 0
        done = []
        for column, (w, b, primal, dual) in enumerate(evaluated(problem, batch, joint, total, team)):
            number = int(joint.left[column])
            traces[number].append(epoch, steps, perf_counter() - begin, primal, dual, np.nan)
            estimate[column] = relative_gap(primal, dual)
            reached = estimate[column] <= target
            if reached or status is not None:
                ended = Status.CONVERGED if estimate[column] <= stops.tol else status or Status.CONVERGED
                found[number] = Solution(
                    w=w, b=b, certificate=Certificate.of(primal, dual), status=ended,
                    message=sentence(ended, float(epoch), float(estimate[column]), stops),
                    trace=traces[number].array(), n_epochs=float(epoch), n_steps=steps,
                    seconds=perf_counter() - begin, solver=solver,
                    state=Warm(joint.alpha[:, column].astype(np.float64), float(joint.centre[column])),
                )  # fmt: skip
                done.append(column)
        if done and len(found) < K:
            others = np.setdiff1d(np.arange(joint.left.size), done)
            joint.keep(others)
            estimate = estimate[others]
    return [found[k] for k in range(K)]


def begun(
    problem: Problem, batch: Batch, signs: Vector, d: int, exactly: Any, start: list[Warm | None] | None
) -> Joint:
    """α = 0, or where the previous ones ended."""
    m, K = signs.shape
    alpha, centre = np.zeros((m, K), exactly), np.zeros(K)
    for k, one in enumerate(start or ()):
        if one is not None and one.alpha.shape == (m,):
            alpha[:, k] = problem.clipped(batch._replace(y=signs[:, k].astype(np.float64)), one.alpha)
            centre[k] = one.centre if problem.intercept == "free" else 0.0
    V = np.zeros((d, K))
    combination_of(batch, alpha, V)
    weight = np.broadcast_to(batch.weight.values, (m,))
    dual_sum = [
        problem.conjugate_sum(batch._replace(y=signs[:, k].astype(np.float64)), alpha[:, k].astype(np.float64))
        for k in range(K)
    ]
    beta = weight @ alpha.astype(np.float64)
    return Joint(
        np.arange(K), signs, alpha, V.astype(exactly), np.zeros((d, K), exactly), beta, centre, np.array(dual_sum)
    )


def warm_point(solution: Solution) -> Warm | None:
    """Where a solution can be gone on from."""
    state = solution.state
    return Warm(state.alpha, state.centre) if isinstance(state, Warm | DualState) else None


def closed(problem: Problem, joint: Joint, epoch: int, gap: Vector, total: float, strength: float) -> Vector:
    """After a sweep: the running means and the intercepts' centres; the relative gaps, about."""
    past = 0.0 if epoch <= 2 else float(np.clip(1.0 - 6.0 / epoch, SHORT_MEMORY, LONG_MEMORY))
    joint.mean *= joint.mean.dtype.type(past)
    joint.mean += joint.V.dtype.type(1.0 - past) * joint.V
    s = 1.0 / (problem.lam * total)
    b = joint.centre + strength * s * joint.beta
    if problem.intercept == "free":
        joint.centre = b
        gap = gap + np.abs(b * joint.beta) / total
    norms = np.einsum("dk,dk->k", joint.V, joint.V, dtype=np.float64)
    dual = joint.dual_sum / total - problem.lam / 2 * s * s * norms
    return gap / np.maximum(np.abs(dual + gap), 1e-300)


def evaluated(
    problem: Problem, batch: Batch, joint: Joint, total: float, team: Team
) -> list[tuple[Vector, float, float, float]]:
    """(w, b, P, D) of each problem that is left: P at the running mean, D at α."""
    s = 1.0 / (problem.lam * total)
    exact = np.zeros(joint.V.shape)
    combination_of(batch, joint.alpha, exact)
    joint.V = exact.astype(joint.V.dtype)  # the rounding of many changes is gone
    W = s * joint.mean.astype(np.float64)
    scores = np.empty((joint.alpha.shape[0], W.shape[1]))
    scores_of(batch.rows, W, scores)
    found = []
    for k in range(W.shape[1]):
        one = batch._replace(y=np.ascontiguousarray(joint.signs[:, k], dtype=np.float64))
        alpha = joint.alpha[:, k].astype(np.float64)
        own = np.ascontiguousarray(scores[:, k])
        w = np.ascontiguousarray(W[:, k])
        b = 0.0
        if problem.intercept == "free":
            b = problem.best_intercept(one, own)
        elif problem.intercept == "penalized":
            b = float(s * joint.beta[k])
        dual = problem.lower_bound(one, alpha, team, np.ascontiguousarray(exact[:, k]))
        found.append((w, b, problem.value_at(one, own, w, b), dual))
    return found
