"""Proximal method of multipliers with semismooth Newton steps: for few features, or few rows.

    α⁺ = argmax D(α') − (q/2Σc) Σ cᵢ (α'ᵢ − αᵢ)²                               (Rockafellar 1976), q → q/3 each time

Its dual is smooth in (w, b), without constraints, with a free intercept as exact as any:

    Φ(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ φᵢ(⟨w, xᵢ⟩ + b),    φᵢ(p) = max over a of −ℓ*(−a) − p a − q/2 (a − αᵢ)²
    ∇Φ      = λ w − (1/Σc) Σ cᵢ aᵢ xᵢ,                   aᵢ the maximiser
    ∇²Φ     = λ I + (1/Σc) Σ_J cᵢ hᵢ xᵢ xᵢᵀ,              hᵢ = 1/(q + (ℓ*)''), J the rows with aᵢ inside its domain

    repeat: (w, b) += t δ with ∇²Φ δ = −∇Φ, t the least of Φ along δ;  once ∇Φ is small against the gap: α ← a, q ← q/3

First-order methods crawl where features are many times fewer than rows or badly scaled; here a step costs a pass over
the rows, the rows that change sides, and a system of the smaller of d and |J| equations.

α starts in the middle of its domain: then Φ is the objective with its kinks rounded over a width of q. While q is
large, few rows tell the way as well as all do: of many rows, the first steps look at a sample only.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.losses import Loss
from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import (
    Batch,
    Vector,
    inner,
    sampled_squared_norms,
    shape,
    take_batch,
    total_weight,
    value_dtype,
)
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.protocol import Point, Run
from primalsvm.solvers.proximal import Proximal, best_intercept, maximise, middles, pull_along
from primalsvm.team import Team

FIRST_Q = 4.0  # in units of the margin: all rows are inside at w = 0
LAST_Q = 1e-4
IMMOVABLE = 1e6  # a q with which α hardly moves: features that are not scaled
HANDED_Q = 1.0  # where it begins from another solver's point (digits, 1000 dense features: 0.3 to 4 as good)
WARMER = 10.0  # times the q where a previous run ended is where the next one begins
SHRINK_Q = 3.0
FAST_ENOUGH = 0.3  # q stays while each new α cuts the gap by this factor
CONDITION = 1e-10  # q stays above this share of the dual's own curvature ‖x‖²/(λm): below, systems are only rounding
INNER_ACCURACY = 0.1  # of the gap: how well Φ is minimised before q or α change,
ROUGHLY = 0.3  # … on a sample
SEARCHES = 40  # for the least of Φ along a step, at most; each looks at scores only
ROUNDING = 1e-13
FLAT = 0.1  # of its slope at the start: how flat Φ shall be at the end of a step
FUTILE = 10  # steps without change after which only rounding is left
STILL = 0.999  # a new α that leaves this much of the gap changes nothing
SAMPLES = ((1.0, costs.SAMPLE_ROWS), (0.3, 50))  # (q, rows per feature): samples that are good enough down to q; some
# ten rows per feature are inside. They have at least `costs.SAMPLE_ENTRIES` entries,
LARGEST = 2**28  # … at most so many bytes, and at most `costs.SAMPLE_SHARE` of the rows
MOST = 5.0  # times smaller is q at once, on going over to all rows


@dataclass
class View:
    """What the solver knows of the rows in use, at its point."""

    alpha: Vector
    scores: Vector  # ⟨w, xᵢ⟩
    a: Vector
    h: Vector
    change: Vector  # in aᵢ, by the last step
    sums: Proximal
    pull: Vector  # Σ cᵢ aᵢ xᵢ
    curvature: Curvature

    @classmethod
    def of(cls, batch: Batch, alpha: Vector, w: Vector, team: Team) -> "View":
        """All but a and what follows from it."""
        m = batch.y.shape[0]
        scores = team.scores(batch.rows, w)
        sums, pull, curvature = Proximal(0.0, 0.0, 0.0, 0.0), np.zeros(w.shape[0]), Curvature.of(batch.rows)
        return cls(alpha, scores, np.zeros(m), np.zeros(m), np.zeros(m), sums, pull, curvature)

    def look(
        self,
        problem: Problem,
        batch: Batch,
        along: Vector,
        t: float,
        b: float,
        q: float,
        team: Team,
        anew: bool = False,
    ) -> None:
        """a, h, the sums and the pull at the scores + t · along + b.

        The pull takes up the changes only; `anew`: all rows, as small changes leave the rounding of large ones.
        """
        self.sums = maximise(
            batch.y, batch.weight, problem.loss, self.scores, along, t, b, q, self.alpha, self.a, self.h, self.change
        )
        self.pull = team.combine(batch, self.a) if anew else self.pull + team.combine(batch, self.change)


@dataclass
class NewtonState:
    """All that the solver remembers between two steps."""

    w: Vector
    b: float
    q: float
    last_q: float
    target: float
    certify: bool
    rng: np.random.Generator
    sample: Batch | None  # the rows in use, while they are not all
    view: View  # of the rows in use
    gap: float = np.inf  # about: P − D for the rows in use
    estimate: float = np.inf  # the same, relative
    rounded: float = 1.0  # share of it that is q's doing, not the minimisation's
    outer_gap: float = 0.0  # when α last changed
    minimised: bool = False  # Φ is, well enough
    stuck: bool = False
    futile: int = 0  # steps in a row that changed nothing with q at its last value
    epoch: float = 0.0
    steps: int = 0
    operations: float = 0.0
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

    name: ClassVar[str] = "newton"
    precise: ClassVar[bool] = True
    self_paced: ClassVar[bool] = False

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> NewtonState:
        """w = 0 and α in the middle of its domain, or those of a previous state of the same shape, or of a point."""
        m, d = shape(batch.rows)
        if isinstance(previous, Point) and previous.alpha.shape == (m,):
            return self._start_from(problem, batch, run, team, previous)
        warm = isinstance(previous, NewtonState) and previous.view.alpha.shape == (m,) and previous.w.shape == (d,)
        w = previous.w.copy() if warm else np.zeros(d)
        b = previous.b if warm and problem.intercept != "none" else 0.0
        last_q = least_q(problem, batch)
        q = max(min(FIRST_Q, WARMER * previous.q) if warm else FIRST_Q, last_q)
        rng = np.random.default_rng(run.seed)
        sample = None if warm else sample_of(problem, batch, rows_for(q, batch), rng)
        used = sample or batch
        alpha = previous.view.alpha.copy() if warm else first_alpha(problem.loss, used.y, last_q)
        view = View.of(used, alpha, w, team)
        view.look(problem, used, view.scores, 0.0, b, q, team)
        return NewtonState(w, b, q, last_q, run.target, run.certify, rng, sample, view)

    def _start_from(self, problem: Problem, batch: Batch, run: Run, team: Team, point: Point) -> NewtonState:
        alpha = problem.clipped(batch, point.alpha)
        w = problem.combined(batch, alpha, team)[0] if point.w is None else np.asarray(point.w, np.float64)
        b = 0.0 if problem.intercept == "none" else point.b
        last_q = least_q(problem, batch)
        q = max(HANDED_Q, last_q)
        view = View.of(batch, alpha, w, team)
        view.look(problem, batch, view.scores, 0.0, b, q, team)
        rng = np.random.default_rng(run.seed)
        return NewtonState(w, b, q, last_q, run.target, run.certify, rng, None, view)

    def advance(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> NewtonState:
        """If Φ is well enough minimised, the next α and q, or more rows; then one Newton step on Φ."""
        if state.minimised and state.sample is None:
            self._next_alpha(problem, batch, state, team)
        elif state.minimised:
            self._go_on_from_sample(problem, batch, state, team)
        used = state.sample or batch
        slack = self._newton_step(problem, used, state, team)
        state.steps += 1
        state.epoch += used.y.shape[0] / batch.y.shape[0]
        passes = costs.NEWTON_PASSES * costs.one_pass(costs.Size.of(used.rows))
        state.operations += costs.NEWTON_STEP + passes + state.view.curvature.take_operations()
        state.gap, state.estimate = self._gap(problem, used, state)
        state.rounded = max(1.0 - slack / state.gap, ROUNDING) if state.gap > 0.0 else 1.0
        accuracy = INNER_ACCURACY if state.sample is None else ROUGHLY
        state.minimised = slack <= accuracy * state.gap or state.stuck
        state.worth_evaluating = state.sample is None and state.estimate <= state.target
        lost = state.stuck and state.q == state.last_q and state.gap >= STILL * state.outer_gap
        state.futile = state.futile + 1 if lost else 0
        state.finished = state.futile >= FUTILE or (not state.certify and state.worth_evaluating)
        return state

    def _next_alpha(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> None:
        view = state.view
        view.alpha[:] = view.a
        if state.gap > FAST_ENOUGH * state.outer_gap:
            state.q = max(state.q / SHRINK_Q, state.last_q)
        state.outer_gap = state.gap
        view.look(problem, batch, view.scores, 0.0, state.b, state.q, team, anew=True)

    def _go_on_from_sample(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> None:
        """A smaller q; and more rows, where the sample is too small for it."""
        assert state.sample is not None
        q = max(state.q / SHRINK_Q, state.last_q)
        n = rows_for(q, batch) if q < state.q else batch.y.shape[0]
        if n != state.sample.y.shape[0]:
            state.sample = sample_of(problem, batch, n, state.rng)
            used = state.sample or batch
            state.view = View.of(used, first_alpha(problem.loss, used.y, state.last_q), state.w, team)
        if state.sample is None:
            # what rounding the kinks costs is about proportional to q²: so many rows are inside, so much for each
            shrink = np.sqrt(0.5 * state.target / (state.rounded * state.estimate)) if state.estimate > 0.0 else 1.0
            q = max(float(np.clip(shrink, 1.0 / MOST, 1.0)) * state.q, state.last_q)
        state.q = q
        state.view.look(problem, state.sample or batch, state.view.scores, 0.0, state.b, state.q, team)

    def _gradient(self, problem: Problem, batch: Batch, state: NewtonState) -> tuple[Vector, float]:
        total = total_weight(batch)
        in_b = 0.0 if problem.intercept == "none" else -problem.imbalance(batch, state.view.sums.balance) / total
        if problem.intercept == "penalized":
            in_b += problem.lam * state.b
        return problem.lam * state.w - state.view.pull / total, in_b

    def _newton_step(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> float:
        """Move (w, b); returns how far Φ is from its minimum, about."""
        view, total = state.view, total_weight(batch)
        g, g_b = self._gradient(problem, batch, state)
        step, step_b = self._direction(problem, batch, state, g, g_b, team)
        along = team.scores(batch.rows, step) + step_b
        before = problem.regularizer(state.w, state.b) + view.sums.phi / total
        t = self._line_search(problem, batch, state, step, step_b, along)
        view.look(problem, batch, along, t, state.b, state.q, team)
        state.w = state.w + t * step
        view.scores += t * (along - step_b)
        state.b += t * step_b
        after = problem.regularizer(state.w, state.b) + view.sums.phi / total
        state.stuck = abs(before - after) <= 1e-15 * abs(before)
        g, g_b = self._gradient(problem, batch, state)
        return float(inner(g, g)) / (2.0 * problem.lam) + abs(g_b * step_b)

    def _direction(
        self, problem: Problem, batch: Batch, state: NewtonState, g: Vector, g_b: float, team: Team
    ) -> tuple[Vector, float]:
        """δ = −(∇²Φ)⁻¹ ∇Φ. Where no row is inside, Φ has no curvature but λ's: a free b goes straight to its best."""
        view = state.view
        if view.h.any():
            with team.blas_limited():
                return view.curvature.step(problem, batch, view.h, g, g_b, team)
        if problem.intercept == "free":
            wanted = problem.tilt * total_weight(batch)
            best = best_intercept(
                batch.y, batch.weight, problem.loss, view.scores, state.b, state.q, view.alpha, wanted
            )
            return -g / problem.lam, float(best) - state.b
        return -g / problem.lam, -g_b / problem.lam

    def _line_search(
        self, problem: Problem, batch: Batch, state: NewtonState, step: Vector, step_b: float, along: Vector
    ) -> float:
        """A t at which Φ is nearly flat along the step: the root of an increasing function, by regula falsi."""
        view, total = state.view, total_weight(batch)
        constant = step_b if problem.intercept == "penalized" else 0.0
        at_start = problem.lam * (float(inner(state.w, step)) + state.b * constant) + problem.tilt * step_b
        growth = problem.lam * (float(inner(step, step)) + constant * constant)

        def slope(t: float) -> float:
            pulled = pull_along(
                batch.y, batch.weight, problem.loss, view.scores, along, t, state.b, state.q, view.alpha
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

    def _gap(self, problem: Problem, batch: Batch, state: NewtonState) -> tuple[float, float]:
        """P(w, b) − D(a), up to the balance of a; and the same relative to P."""
        sums, total = state.view.sums, total_weight(batch)
        primal = problem.regularizer(state.w, state.b) + sums.loss / total
        implied = sums.balance / (problem.lam * total) if problem.intercept == "penalized" else 0.0
        dual = sums.dual / total - problem.regularizer(state.view.pull / (problem.lam * total), implied)
        gap = abs(primal - dual)
        if problem.intercept == "free":
            gap += abs(state.b * problem.imbalance(batch, sums.balance)) / total
        return gap, 0.0 if problem.vanishes(dual) else relative_gap(primal, primal - gap)

    def evaluate(self, problem: Problem, batch: Batch, state: NewtonState, team: Team) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at a."""
        b, primal, scores = problem.evaluate_primal(batch, state.w, state.b, team)
        a = state.view.a
        if state.sample is not None:
            alpha = first_alpha(problem.loss, batch.y, state.last_q)
            a, h, change = (np.zeros(batch.y.shape) for _ in range(3))
            maximise(batch.y, batch.weight, problem.loss, scores, scores, 0.0, state.b, state.q, alpha, a, h, change)
        return Evaluation(state.w.copy(), b, primal, problem.lower_bound(batch, a, team))

    def iterate(self, problem: Problem, batch: Batch, state: NewtonState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b

    def hand_over(self, problem: Problem, batch: Batch, state: NewtonState) -> Point:
        """(w, b), and α if it is known of all rows."""
        alpha = state.view.a if state.sample is None else first_alpha(problem.loss, batch.y, state.last_q)
        return Point(alpha, state.b, state.w)


def least_q(problem: Problem, batch: Batch) -> float:
    """The least q."""
    curvature = float(sampled_squared_norms(batch.rows).mean()) / (problem.lam * batch.y.shape[0])
    return float(max(LAST_Q, CONDITION * curvature))


def first_alpha(loss: Loss, y: Vector, last_q: float) -> Vector:
    """The middle of each α's domain; 0 where that is unbounded, or q stays so large that α will hardly move.

    Examples
    --------
    >>> from primalsvm import Hinge
    >>> first_alpha(Hinge(), np.array([-1.0, 1.0]), last_q=1e-4)
    array([-0.5,  0.5])
    """
    found = np.zeros(y.shape)
    if np.isfinite(loss.slope_bound) and last_q < IMMOVABLE:
        middles(loss, y, 2.0 * loss.slope_bound, found)
    return found


def rows_for(q: float, batch: Batch) -> int:
    """How many rows tell the way for this q; all, where fewer are not worth their while."""
    m, d = shape(batch.rows)
    for least, rows_per_feature in SAMPLES:
        n = max(rows_per_feature * d, costs.SAMPLE_ENTRIES // d)
        if q >= least and n <= costs.SAMPLE_SHARE * m and n * d * value_dtype(batch.rows).itemsize <= LARGEST:
            return n
    return m


def sample_of(problem: Problem, batch: Batch, n: int, rng: np.random.Generator) -> Batch | None:
    """n rows drawn at random; None if that is all of them, or those drawn have one side of two only."""
    m = batch.y.shape[0]
    if n == m:
        return None
    sample = take_batch(batch, np.sort(rng.choice(m, n, replace=False)))
    one_sided = np.ptp(sample.y) == 0.0 and not problem.tilt
    return None if one_sided or not total_weight(sample) > 0.0 else sample
