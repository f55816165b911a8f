"""Proximal method of multipliers with semismooth Newton steps: for few features, or few rows.

    α⁺ = argmax D(α') − (q/2Σc) Σ cᵢ (α'ᵢ − αᵢ)²                               (Rockafellar 1976), q → q/3 each time

Its dual is smooth in (w, b), without constraints, with a free intercept as exact as any:

    Φ(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ φᵢ(⟨w, xᵢ⟩ + b),    φᵢ(p) = max over a of −ℓ*(−a) − p a − q/2 (a − αᵢ)²
    ∇Φ      = λ w − (1/Σc) Σ cᵢ aᵢ xᵢ,                   aᵢ the maximiser: `Loss.dual_step(p, y, αᵢ, q)`
    ∇²Φ     = λ I + (1/Σc) Σ_J cᵢ hᵢ xᵢ xᵢᵀ,              hᵢ = 1/(q + (ℓ*)''), J the rows with aᵢ inside its domain

    repeat: (w, b) += t δ with ∇²Φ δ = −∇Φ, t the least of Φ along δ;  once ∇Φ is small against the gap: α ← a, q ← q/3

First-order methods crawl where features are many times fewer than rows or badly scaled; here a step costs a few passes
over the rows and a system of the smaller of d and |J| equations.

∇²Φ only directs the steps. Where J has many times more rows than there are features, a sample of them will do at first;
and it is summed in single precision while the rounding is small against λ. All else is in double precision.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, conjugate_curvature, dual_step, feasible, value
from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import (
    Batch,
    Computed,
    Rows,
    Vector,
    add,
    fetched,
    inner,
    sampled_squared_norms,
    shape,
    total_weight,
    value_dtype,
    weight_of,
)
from primalsvm.solution import relative_gap
from primalsvm.solvers.protocol import Run
from primalsvm.team import Team

FIRST_Q = 2.0  # in units of the margin
LAST_Q = 1e-4
SHRINK_Q = 3.0
FAST_ENOUGH = 0.3  # q stays while each new α cuts the gap by this factor
CONDITION = 1e-10  # q stays above this share of the dual's own curvature ‖x‖²/(λm): below, systems are only rounding
BLOCK = 4096  # rows that are made dense at a time
SINGLE_ENOUGH = 1.0  # rounding of a sum in single precision / λ, up to which it is harmless
INNER_ACCURACY = 0.1  # of the gap: how well Φ is minimised before q changes
SEARCHES = 40  # for the least of Φ along a step, at most; each looks at scores only
ROUNDING = 1e-13
FLAT = 0.1  # of its slope at the start: how flat Φ shall be at the end of a step
SAMPLED = 6  # rows of J per feature that are enough to direct a step,
ROUGH = 0.01  # … until the relative gap is this small (to the end a sample converges slower than all of J),
CHEAP = 1_000_000_000  # … and as many more as cost no more than so many multiplications
DAMPING = 0.1  # of the mean square of a sampled row, added to λ: what the sample misses in its weakest directions
FUTILE = 10  # steps without change after which only rounding is left
STILL = 0.999  # a new α that leaves this much of the gap changes nothing


class Proximal(NamedTuple):
    """Sums over rows at one point."""

    phi: float  # Σ cᵢ φᵢ(pᵢ)
    loss: float  # Σ cᵢ ℓ(pᵢ)
    dual: float  # Σ cᵢ (−ℓ*(−aᵢ))
    balance: float  # Σ cᵢ aᵢ


@kernel
def maximise(y, weight, loss, scores, direction, t, b, q, alpha, a, h):  # type: ignore[no-untyped-def]  # compiled
    """aᵢ and hᵢ at the scores + t · direction + b."""
    phi = 0.0
    losses = 0.0
    dual = 0.0
    balance = 0.0
    for i in range(np.uint64(y.shape[0])):
        c = weight_of(weight, i)
        if c == 0.0:
            a[i] = 0.0
            h[i] = 0.0
            continue
        p = scores[i] + t * direction[i] + b
        best = dual_step(loss, p, y[i], alpha[i], q)
        kept = -conjugate(loss, -best, y[i])
        phi += c * (kept - p * best - 0.5 * q * (best - alpha[i]) ** 2)
        losses += c * value(loss, p, y[i])
        dual += c * kept
        balance += c * best
        a[i] = best
        inside = best != 0.0 and feasible(loss, 1.5 * best, y[i]) != best
        h[i] = c / (q + conjugate_curvature(loss, -best, y[i])) if inside else 0.0
    return Proximal(phi, losses, dual, balance)


@kernel
def pull_along(y, weight, loss, scores, direction, t, b, q, alpha):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ aᵢ directionᵢ at the scores + t · direction + b: what the losses add to the slope of Φ in t, negated."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        p = scores[i] + t * direction[i] + b
        total += weight_of(weight, i) * dual_step(loss, p, y[i], alpha[i], q) * direction[i]
    return total


@kernel
def balance(y, weight, loss, scores, b, q, alpha):  # type: ignore[no-untyped-def]  # compiled
    """Σ cᵢ aᵢ at the scores + b: decreasing in b, 0 where Φ(w, ·) is least."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * dual_step(loss, scores[i] + b, y[i], alpha[i], q)
    return total


@kernel
def best_intercept(y, weight, loss, scores, b, q, alpha):  # type: ignore[no-untyped-def]  # compiled
    """The b that minimises Φ(w, ·), by bisection from around the present one."""
    reach = 1.0
    low, high = b - reach, b + reach
    for _ in range(60):
        if (
            balance(y, weight, loss, scores, low, q, alpha) > 0.0
            and balance(y, weight, loss, scores, high, q, alpha) < 0.0
        ):
            break
        reach *= 2.0
        low, high = b - reach, b + reach
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return middle
        if balance(y, weight, loss, scores, middle, q, alpha) > 0.0:
            low = middle
        else:
            high = middle


@kernel
def densify(rows, chosen, scale, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k] = scale[k] · row chosen[k], as dense rows."""
    for k in range(chosen.shape[0]):
        line = out[k]
        line[:] = 0.0
        add(rows, np.uint64(chosen[k]), scale[k], line)


def dense_rows(rows: Rows, chosen: Vector, scale: Vector, out: Vector) -> None:
    """out[k] = scale[k] · row chosen[k], whatever the rows are."""
    if isinstance(rows, Computed):
        rows, chosen = fetched(rows, chosen), np.arange(chosen.shape[0])
    densify(rows, chosen, scale, out)


@dataclass
class NewtonState:
    """All that the solver remembers between two steps."""

    w: Vector
    b: float
    alpha: Vector
    scores: Vector  # ⟨w, xᵢ⟩
    a: Vector
    h: Vector
    sums: Proximal
    pull: Vector  # (1/Σc) Σ cᵢ aᵢ xᵢ
    q: float
    last_q: float
    target: float
    certify: bool
    rng: np.random.Generator
    estimate: float = np.inf
    outer_gap: float = 0.0  # when α last changed
    stuck: bool = False
    futile: int = 0  # steps in a row that changed nothing with q at its last value
    epoch: float = 0.0
    steps: int = 0
    finished: bool = False
    worth_evaluating: bool = False


@dataclass(frozen=True)
class Newton:
    """Second-order solver for dense features with many more rows than features, and for small problems.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = 1000 + np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1, intercept="free"), X, [1, 1, -1, -1], solver=Newton())
    >>> solution.certificate.relative_gap < 1e-9
    True
    """

    precise: ClassVar[bool] = True
    self_paced: ClassVar[bool] = False

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> NewtonState:
        """w = 0 and α = 0, or those of a previous state of the same shape."""
        m, d = shape(batch.rows)
        warm = isinstance(previous, NewtonState) and previous.alpha.shape == (m,) and previous.w.shape == (d,)
        w = previous.w.copy() if warm else np.zeros(d)
        alpha = previous.alpha.copy() if warm else np.zeros(m)
        curvature = float(sampled_squared_norms(batch.rows).mean()) / (problem.lam * m)
        last_q = max(LAST_Q, CONDITION * curvature)
        state = NewtonState(
            w=w,
            b=previous.b if warm else 0.0,
            alpha=alpha,
            scores=team.scores(batch.rows, w),
            a=np.empty(m),
            h=np.empty(m),
            sums=Proximal(0.0, 0.0, 0.0, 0.0),
            pull=np.zeros(d),
            q=max(FIRST_Q, last_q),
            last_q=last_q,
            target=run.target,
            certify=run.certify,
            rng=np.random.default_rng(run.seed),
        )
        self._refresh(problem, batch, state, team)
        return state

    def advance(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> NewtonState:
        """One Newton step on Φ; then, if Φ is well enough minimised, the next α and q."""
        slack = self._newton_step(problem, batch, state, team)
        state.steps += 1
        state.epoch += 1.0
        gap = self._gap(problem, batch, state)
        state.worth_evaluating = state.estimate <= state.target
        lost = state.stuck and state.q == state.last_q and gap >= STILL * state.outer_gap
        state.futile = state.futile + 1 if lost else 0
        state.finished = state.futile >= FUTILE or (not state.certify and state.worth_evaluating)
        if slack <= INNER_ACCURACY * gap or state.stuck:
            state.alpha[:] = state.a
            if gap > FAST_ENOUGH * state.outer_gap:
                state.q = max(state.q / SHRINK_Q, state.last_q)
            state.outer_gap = gap
            self._refresh(problem, batch, state, team)
        return state

    def _refresh(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> None:
        """a, h, the sums and the pull at the present (w, b), α and q."""
        state.sums = maximise(
            batch.y,
            batch.weight,
            problem.loss,
            state.scores,
            state.scores,
            0.0,
            state.b,
            state.q,
            state.alpha,
            state.a,
            state.h,
        )
        state.pull = team.combine(batch, state.a) / total_weight(batch)

    def _gradient(self, problem: Problem, batch: Batch, state: NewtonState) -> tuple[Vector, float]:
        in_b = 0.0 if problem.intercept == "none" else -state.sums.balance / total_weight(batch)
        if problem.intercept == "penalized":
            in_b += problem.lam * state.b
        return problem.lam * state.w - state.pull, in_b

    def _newton_step(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> float:
        """Move (w, b); returns how far Φ is from its minimum, about."""
        total = total_weight(batch)
        g, g_b = self._gradient(problem, batch, state)
        step, step_b = self._direction(problem, batch, state, g, g_b, team)
        along = team.scores(batch.rows, step) + step_b
        before = problem.regularizer(state.w, state.b) + state.sums.phi / total
        t = self._line_search(problem, batch, state, step, step_b, along)
        state.sums = maximise(
            batch.y, batch.weight, problem.loss, state.scores, along, t, state.b, state.q, state.alpha, state.a, state.h
        )
        after = problem.regularizer(state.w + t * step, state.b + t * step_b) + state.sums.phi / total
        state.stuck = abs(before - after) <= 1e-15 * abs(before)
        state.w = state.w + t * step
        state.b += t * step_b
        state.scores += t * (along - step_b)
        state.pull = team.combine(batch, state.a) / total
        g, g_b = self._gradient(problem, batch, state)
        return float(inner(g, g)) / (2.0 * problem.lam) + abs(g_b * step_b)

    def _line_search(
        self, problem: Problem, batch: Batch, state: NewtonState, step: Vector, step_b: float, along: Vector
    ) -> float:
        """A t at which Φ is nearly flat along the step: the root of an increasing function, by regula falsi."""
        total = total_weight(batch)
        constant = step_b if problem.intercept == "penalized" else 0.0
        at_start = problem.lam * (float(inner(state.w, step)) + state.b * constant)
        growth = problem.lam * (float(inner(step, step)) + constant * constant)

        def slope(t: float) -> float:
            pulled = pull_along(
                batch.y, batch.weight, problem.loss, state.scores, along, t, state.b, state.q, state.alpha
            )
            return at_start + t * growth - float(pulled) / total

        low, high, at_low, at_high = 0.0, np.inf, slope(0.0), np.inf
        flat = max(FLAT * abs(at_low), ROUNDING * (abs(at_start) + growth))
        t = 1.0
        for k in range(SEARCHES):
            at_t = slope(t)
            if abs(at_t) <= flat or at_low >= 0.0:  # a step that does not go down is one of rounding
                break
            if at_t < 0.0:
                low, at_low = t, at_t
            else:
                high, at_high = t, at_t
            if high == np.inf:
                t = 2.0 * low
            elif k % 3 < 2:
                t = low + (high - low) * at_low / (at_low - at_high)
            else:
                t = 0.5 * (low + high) if low > 0.0 else 1e-2 * high
        else:  # a kink: beyond it there are rows that tell the next step about it
            return min(high, 2.0 * low)
        return t

    def _direction(
        self, problem: Problem, batch: Batch, state: NewtonState, g: Vector, g_b: float, team: Team
    ) -> tuple[Vector, float]:
        """δ = −(∇²Φ)⁻¹ ∇Φ, through the smaller of the two systems."""
        _, d = shape(batch.rows)
        inside = np.flatnonzero(state.h)
        roots = np.sqrt(state.h[inside] / total_weight(batch))
        damping = 0.0
        sampled = max(SAMPLED * d, CHEAP // (d * d))
        if inside.shape[0] > 2 * sampled and state.estimate > ROUGH:
            chosen = np.sort(state.rng.choice(inside.shape[0], sampled, replace=False))
            roots = roots[chosen] * np.sqrt(inside.shape[0] / sampled)
            inside = inside[chosen]
            damping = DAMPING / sampled
        with team.blas_limited():
            if inside.shape[0] == 0:
                return -g / problem.lam, self._intercept_step(problem, batch, state, g_b)
            if 2 * inside.shape[0] < d:
                return self._direction_by_rows(problem, batch, inside, roots, g, g_b)
            return self._direction_by_features(problem, batch, inside, roots, damping, g, g_b)

    def _intercept_step(self, problem: Problem, batch: Batch, state: NewtonState, g_b: float) -> float:
        """Where no row is inside, Φ has no curvature but λ's: a free b goes straight to its best value."""
        if problem.intercept != "free":
            return -g_b / problem.lam if problem.intercept == "penalized" else 0.0
        best = best_intercept(batch.y, batch.weight, problem.loss, state.scores, state.b, state.q, state.alpha)
        return float(best) - state.b

    def _direction_by_features(
        self, problem: Problem, batch: Batch, inside: Vector, roots: Vector, damping: float, g: Vector, g_b: float
    ) -> tuple[Vector, float]:
        """Solve the d + 1 equations (λI + AᵀA) δ = −∇Φ with A the rows of J times √(cᵢhᵢ/Σc), and their constant."""
        d = g.shape[0]
        trace = float(roots @ roots) * (float(sampled_squared_norms(batch.rows).max()) + 1.0)
        harmless = np.finfo(np.float32).eps * trace <= SINGLE_ENOUGH * problem.lam
        single = harmless and value_dtype(batch.rows) != np.float64
        for precision, ridge in ((np.float32, 0.0), (np.float64, 1e-14), (np.float64, 1e-10)):
            if precision == np.float32 and not single:
                continue
            hessian = self._squares(problem, batch, inside, roots, precision)
            hessian[np.arange(d), np.arange(d)] += problem.lam + damping * np.trace(hessian[:d, :d])
            hessian[d, d] += {"none": 1.0, "penalized": problem.lam, "free": 0.0}[problem.intercept]
            hessian[np.arange(d + 1), np.arange(d + 1)] *= 1.0 + ridge
            try:
                factor = scipy.linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
                break
            except np.linalg.LinAlgError:  # rounding: next time with less of it, or with more on the diagonal
                continue
        else:
            return -g / problem.lam, 0.0
        step = -scipy.linalg.cho_solve(factor, np.append(g, g_b), check_finite=False)
        return step[:d], float(step[d])

    def _squares(self, problem: Problem, batch: Batch, inside: Vector, roots: Vector, precision: Any) -> Vector:
        """AᵀA in its lower triangle, summed in the given precision."""
        d = shape(batch.rows)[1]
        constant = 0.0 if problem.intercept == "none" else 1.0
        syrk = scipy.linalg.blas.ssyrk if precision == np.float32 else scipy.linalg.blas.dsyrk
        hessian = np.zeros((d + 1, d + 1), precision, order="F")
        block = np.empty((min(BLOCK, inside.shape[0]), d + 1), precision)
        for first in range(0, inside.shape[0], BLOCK):
            part = block[: min(BLOCK, inside.shape[0] - first)]
            scale = roots[first : first + BLOCK]
            dense_rows(batch.rows, inside[first : first + BLOCK], scale, part[:, :d])
            part[:, d] = constant * scale
            hessian = syrk(1.0, part.T, beta=1.0, c=hessian, lower=1, overwrite_c=1)
        return hessian.astype(np.float64)

    def _direction_by_rows(
        self, problem: Problem, batch: Batch, inside: Vector, roots: Vector, g: Vector, g_b: float
    ) -> tuple[Vector, float]:
        """The same with |J| equations: z = A δ_w + s δ_b,  (I + AAᵀ/λ) z = s δ_b − A g/λ,  μ δ_b + sᵀz = −g_b."""
        lam = problem.lam
        A = np.empty((inside.shape[0], g.shape[0]))
        dense_rows(batch.rows, inside, roots, A)
        factor = scipy.linalg.cho_factor(np.eye(A.shape[0]) + A @ A.T / lam, overwrite_a=True, check_finite=False)
        z = scipy.linalg.cho_solve(factor, -(A @ g) / lam, check_finite=False)
        step_b = 0.0
        if problem.intercept != "none":
            pulled = scipy.linalg.cho_solve(factor, roots, check_finite=False)
            mu = lam if problem.intercept == "penalized" else 0.0
            step_b = float((-g_b - roots @ z) / (mu + roots @ pulled))
            z = z + step_b * pulled
        return -(g + A.T @ z) / lam, step_b

    def _gap(self, problem: Problem, batch: Batch, state: NewtonState) -> float:
        """P(w, b) − D(a), up to the balance of a; and the same relative to P as the estimate."""
        total = total_weight(batch)
        primal = problem.regularizer(state.w, state.b) + state.sums.loss / total
        implied = state.sums.balance / (problem.lam * total) if problem.intercept == "penalized" else 0.0
        dual = state.sums.dual / total - problem.regularizer(state.pull / problem.lam, implied)
        gap = abs(primal - dual)
        if problem.intercept == "free":
            gap += abs(state.b * state.sums.balance) / total
        state.estimate = relative_gap(primal, primal - gap)
        return gap

    def evaluate(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at a."""
        b, primal, _ = problem.evaluate_primal(batch, state.w, state.b, team)
        return Evaluation(state.w.copy(), b, primal, problem.lower_bound(batch, state.a, team))

    def iterate(self, problem: Problem, batch: Batch, state: NewtonState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b
