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

All that belongs to rows stays with the data set. Rows that have no numbers are not sampled, and the systems have one
equation a feature.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Dataset, Handle, Vector, inner
from primalsvm.objective import Evaluation, Objective
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.protocol import Point, Run, Traits
from primalsvm.solvers.proximal import (
    Proximal,
    add_constant,
    assign,
    balance_at,
    maximise,
    middles,
    move_scores,
    slope_along,
)

# "Work" is that of solving 31 problems (a9a, ijcnn1, covtype, housing; small and badly scaled ones that were generated)
# with another value, in operations relative to this one.

# q, in units of the margin:
FIRST_Q = 4.0  # all rows are inside at w = 0, as a = ½ + 1/q < 1 (work: 1.01 with 1 or 2, 1.08 with 10)
LAST_Q = 1e-4  # new α make up for what rounding the kinks costs: it need not be smaller (1e-2 to 1e-6 are as good)
IMMOVABLE = 1e6  # a last q with which α hardly moves, as Δa = Δp/q: features that are not scaled
HANDED_Q = 1.0  # where it begins from another solver's point (digits, 1000 dense features: 0.3 to 4 as good)
PATH_Q = 1.0  # where it begins at the next λ of a path, α and w as they were: the rows at the margin are others there
WARMER = 10.0  # times the q where a previous run ended is where the next one begins: a few values of q back
CONDITION = 1e-10  # of the dual's own curvature ‖x‖²/(λm): a smaller q leaves systems with less than 6 digits

# When α and q change:
SHRINK_Q = 3.0  # q is divided by this (work: 1.11 with 2, 0.98 with 5, 0.93 with 10, 1.09 with 30)
FAST_ENOUGH = 0.3  # q stays while each new α cuts the gap by this factor (work: 0.98 with 0.1, 1.12 with 0.6)
INNER_ACCURACY = 0.1  # of the gap: how well Φ is minimised before (work: 1.01 with 0.03, 1.13 with 0.3; 1: 12 fail),
ROUGHLY = 0.3  # … on a sample, whose minimum is not the one of all rows anyway (0.1 to 1 are as good)

# The search for the least of Φ along a step, each trial of which looks at scores only:
FLAT = 0.1  # of its slope at the start: how flat Φ has to be (work: 0.99 to 1.07 with 0.001 to 0.3)
SEARCHES = 40  # trials at most (10 are too few at kinks: six times the work on covtype; 100 gain nothing)
ROUNDING = 1e-13  # of the terms of a slope, which is a sum over all rows
DOUBLINGS = 60  # of the bracket for the best b where no row is inside, at most: from 1 to 1e18

# When only rounding is left (they do not matter to problems that are solved, which is the work above):
UNCHANGED = 1e-15  # of Φ: a step that changes it by less is stuck
STILL = 0.999  # a new α that leaves this much of the gap changes nothing
FUTILE = 10  # steps in a row like that are enough

# Samples for the first steps: (q, rows per feature) that are good enough down to q, so that some ten rows per feature
# are inside. They have at least `costs.SAMPLE_ENTRIES` entries and at most `costs.SAMPLE_SHARE` of the rows (150,000
# rows of covtype: without samples up to 2.7 times the work).
SAMPLES = ((1.0, costs.SAMPLE_ROWS), (0.3, 50))
SAMPLE_BYTES = 2**28  # at most, as they are copies
CATCH_UP = 5.0  # times smaller is q at most, on going over to all rows (work: 1.02 with 1.5, 10 or 30, 1.00 with 3)


@dataclass
class View:
    """What the solver knows of the rows in use, at its point."""

    alpha: Handle
    scores: Handle  # ⟨w, xᵢ⟩
    a: Handle
    h: Handle
    change: Handle  # in aᵢ, by the last step
    sums: Proximal
    combination: Vector  # Σ cᵢ aᵢ xᵢ
    curvature: Curvature

    @classmethod
    def of(cls, data: Dataset, alpha: Handle, w: Vector) -> "View":
        """All but a and what follows from it."""
        sums = Proximal(0.0, 0.0, 0.0, 0.0, 0)
        a, h, change = (data.zeros() for _ in range(3))
        return cls(alpha, data.scores(w), a, h, change, sums, np.zeros(w.shape[0]), Curvature.of(data))

    def update(self, objective: Objective, along: Handle, t: float, b: float, q: float, anew: bool = False) -> None:
        """a, h, the sums and the combination at the scores + t · along + b.

        The combination takes up the changes only; `anew`: all rows, as small changes leave the rounding of large ones.
        """
        data = objective.data
        kernel = partial(maximise, objective.loss, t, b, q)
        handles = (objective.y, data.weights, self.scores, along, self.alpha, self.a, self.h, self.change)
        self.sums = Proximal(*data.reduce(kernel, *handles))
        self.combination = data.combine(self.a) if anew else self.combination + data.combine(self.change)


@dataclass
class Sample:
    """Some of the rows, in memory."""

    numbers: Vector

    def __post_init__(self) -> None:
        self._objective: Objective | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The numbers only."""
        return {**self.__dict__, "_objective": None}

    def of(self, objective: Objective) -> Objective:
        """The objective on these rows, which are copied once."""
        if self._objective is None:
            data = objective.data.subset(self.numbers)
            y = data.from_array(objective.data.get(objective.y, self.numbers))
            self._objective = replace(objective, data=data, y=y)
        return self._objective


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
    sample: Sample | None  # the rows in use, while they are not all
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

    def release(self) -> None:
        """Forget what can be computed again: the matrix, and the copies of rows."""
        self.view.curvature.squares = None
        self.sample = None if self.sample is None else Sample(self.sample.numbers)


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
    traits: ClassVar[Traits] = Traits("passes", precise=True, hands_over=True, path=True)

    def start(self, objective: Objective, run: Run, previous: Any = None) -> NewtonState:
        """w = 0 and α in the middle of its domain, or those of a previous state of the same shape, or of a point."""
        data = objective.data
        m, d = data.shape
        rng, last_q = np.random.default_rng(run.seed), least_q(objective)
        w, b, alpha, q = np.zeros(d), 0.0, None, FIRST_Q
        if isinstance(previous, Point) and fits(previous.alpha, m):
            alpha = objective.clipped(previous.alpha)
            w = objective.combined(alpha)[0] if previous.w is None else np.asarray(previous.w, np.float64)
            b, q = previous.b, HANDED_Q
        elif isinstance(previous, NewtonState) and fits(previous.view.alpha, m) and previous.w.shape == (d,):
            alpha = data.map(assign, previous.view.alpha)
            w, b, q = previous.w.copy(), previous.b, min(FIRST_Q, WARMER * previous.q)
        b, q = 0.0 if objective.intercept == "none" else b, max(q, last_q)
        sample = None if alpha is not None else sample_of(objective, rows_for(q, data), rng)
        used = objective if sample is None else sample.of(objective)
        view = View.of(used.data, first_alpha(used, last_q) if alpha is None else alpha, w)
        view.update(used, view.scores, 0.0, b, q)
        return NewtonState(w, b, q, last_q, run.target, run.certify, rng, sample, view)

    def path_start(self, state: NewtonState, memory: None, lam: float) -> tuple[NewtonState, None]:
        """A state of the last λ from which it begins at `PATH_Q`."""
        return replace(state, q=max(PATH_Q / WARMER, state.q)), None

    def advance(self, objective: Objective, state: NewtonState) -> NewtonState:
        """If Φ is well enough minimised, the next α and q, or more rows; then one Newton step on Φ."""
        if state.minimised and state.sample is None:
            self._next_alpha(objective, state)
        elif state.minimised:
            self._next_sample(objective, state)
        used = self._used(objective, state)
        slack = self._newton_step(used, state)
        state.steps += 1
        state.epoch += used.data.shape[0] / objective.data.shape[0]
        passes = costs.NEWTON_PASSES * costs.one_pass(costs.Size.of(used.data))
        state.operations += costs.NEWTON_STEP + passes + state.view.curvature.take_operations()
        state.gap, state.estimate = self._gap(used, state)
        state.rounded = max(1.0 - slack / state.gap, ROUNDING) if state.gap > 0.0 else 1.0
        accuracy = INNER_ACCURACY if state.sample is None else ROUGHLY
        state.minimised = slack <= accuracy * state.gap or state.stuck
        state.worth_evaluating = state.sample is None and state.estimate <= state.target
        lost = state.stuck and state.q == state.last_q and state.gap >= STILL * state.outer_gap
        state.futile = state.futile + 1 if lost else 0
        state.finished = state.futile >= FUTILE or (not state.certify and state.worth_evaluating)
        return state

    def _used(self, objective: Objective, state: NewtonState) -> Objective:
        """The objective on the rows in use."""
        return objective if state.sample is None else state.sample.of(objective)

    def _next_alpha(self, objective: Objective, state: NewtonState) -> None:
        """α ← a, and a smaller q unless the gap falls anyway."""
        view = state.view
        objective.data.update(assign, view.a, view.alpha)
        if state.gap > FAST_ENOUGH * state.outer_gap:
            state.q = max(state.q / SHRINK_Q, state.last_q)
        state.outer_gap = state.gap
        view.update(objective, view.scores, 0.0, state.b, state.q, anew=True)

    def _next_sample(self, objective: Objective, state: NewtonState) -> None:
        """A smaller q; and more rows, where the sample is too small for it."""
        assert state.sample is not None
        m = objective.data.shape[0]
        q = max(state.q / SHRINK_Q, state.last_q)
        n = rows_for(q, objective.data) if q < state.q else m
        if n != state.sample.numbers.shape[0]:
            state.sample = sample_of(objective, n, state.rng)
            used = self._used(objective, state)
            state.view = View.of(used.data, first_alpha(used, state.last_q), state.w)
        if state.sample is None:
            # what rounding the kinks costs is about proportional to q²: so many rows are inside, so much for each
            shrink = np.sqrt(0.5 * state.target / (state.rounded * state.estimate)) if state.estimate > 0.0 else 1.0
            q = max(float(np.clip(shrink, 1.0 / CATCH_UP, 1.0)) * state.q, state.last_q)
        state.q = q
        state.view.update(self._used(objective, state), state.view.scores, 0.0, state.b, state.q)

    def _gradient(self, objective: Objective, state: NewtonState) -> tuple[Vector, float]:
        total, lam = objective.total, objective.lam
        in_b = 0.0 if objective.intercept == "none" else -objective.imbalance(state.view.sums.balance) / total
        if objective.intercept == "penalized":
            in_b += lam * state.b
        return lam * state.w - state.view.combination / total, in_b

    def _newton_step(self, objective: Objective, state: NewtonState) -> float:
        """Move (w, b); returns how far Φ is from its minimum, about."""
        data, view, total = objective.data, state.view, objective.total
        g, g_b = self._gradient(objective, state)
        step, step_b = self._direction(objective, state, g, g_b)
        along = data.scores(step)
        data.update(partial(add_constant, step_b), along)
        before = objective.regularizer(state.w, state.b) + view.sums.phi / total
        t = self._line_search(objective, state, step, step_b, along)
        view.update(objective, along, t, state.b, state.q)
        state.w = state.w + t * step
        data.update(partial(move_scores, t, step_b), along, view.scores)
        state.b += t * step_b
        after = objective.regularizer(state.w, state.b) + view.sums.phi / total
        state.stuck = abs(before - after) <= UNCHANGED * abs(before)
        g, g_b = self._gradient(objective, state)
        return float(inner(g, g)) / (2.0 * objective.lam) + abs(g_b * step_b)

    def _direction(self, objective: Objective, state: NewtonState, g: Vector, g_b: float) -> tuple[Vector, float]:
        """δ = −(∇²Φ)⁻¹ ∇Φ. Where no row is inside, Φ has no curvature but λ's: a free b goes straight to its best."""
        view, lam = state.view, objective.lam
        if view.sums.inside:
            return view.curvature.step(objective, view.h, view.sums.inside, g, g_b)
        if objective.free:
            return -g / lam, best_intercept(objective, view.scores, view.alpha, state.b, state.q) - state.b
        return -g / lam, -g_b / lam

    def _line_search(
        self, objective: Objective, state: NewtonState, step: Vector, step_b: float, along: Handle
    ) -> float:
        """A t at which Φ is nearly flat along the step: the root of an increasing function, by regula falsi."""
        data, lam = objective.data, objective.lam
        handles = (objective.y, data.weights, state.view.scores, along, state.view.alpha)
        constant = step_b if objective.intercept == "penalized" else 0.0
        at_start = lam * (float(inner(state.w, step)) + state.b * constant) + objective.tilt * step_b
        growth = lam * (float(inner(step, step)) + constant * constant)

        def slope(t: float) -> float:
            of_rows = data.reduce(partial(slope_along, objective.loss, t, state.b, state.q), *handles)
            return at_start + t * growth - float(of_rows) / objective.total

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

    def _gap(self, objective: Objective, state: NewtonState) -> tuple[float, float]:
        """P(w, b) − D(a), up to the balance of a; and the same relative to P."""
        sums, total, length = state.view.sums, objective.total, objective.lam * objective.total
        primal = objective.regularizer(state.w, state.b) + sums.loss / total
        implied = sums.balance / length if objective.intercept == "penalized" else 0.0
        dual = sums.dual / total - objective.regularizer(state.view.combination / length, implied)
        gap = abs(primal - dual)
        if objective.free:
            gap += abs(state.b * objective.imbalance(sums.balance)) / total
        return gap, 0.0 if objective.vanishes(dual) else relative_gap(primal, primal - gap)

    def evaluate(self, objective: Objective, state: NewtonState) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at a."""
        b, primal, scores = objective.evaluate_primal(state.w, state.b)
        a = state.view.a
        if state.sample is not None:
            data, alpha = objective.data, first_alpha(objective, state.last_q)
            a, h, change = (data.zeros() for _ in range(3))
            kernel = partial(maximise, objective.loss, 0.0, state.b, state.q)
            data.reduce(kernel, objective.y, data.weights, scores, scores, alpha, a, h, change)
        return Evaluation(state.w.copy(), b, primal, objective.lower_bound(a))

    def iterate(self, objective: Objective, state: NewtonState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b

    def observe(self, objective: Objective, state: NewtonState, evaluation: Evaluation) -> None:
        """There is nothing that it would do otherwise."""

    def hand_over(self, objective: Objective, state: NewtonState) -> Point:
        """(w, b), and α if it is known of all rows."""
        alpha = state.view.a if state.sample is None else first_alpha(objective, state.last_q)
        return Point(alpha, state.b, state.w)


def fits(handle: Handle, m: int) -> bool:
    """Whether a handle is one of m rows, as far as it tells."""
    return bool(getattr(handle, "shape", (m,)) == (m,))


def least_q(objective: Objective) -> float:
    """The least q."""
    data = objective.data
    curvature = float(data.squared_norms().mean()) / (objective.lam * data.shape[0])
    return float(max(LAST_Q, CONDITION * curvature))


def first_alpha(objective: Objective, last_q: float) -> Handle:
    """The middle of each α's domain; 0 where that is unbounded, or q stays so large that α will hardly move.

    Examples
    --------
    >>> from primalsvm import Hinge, Problem
    >>> from primalsvm.data import as_dataset
    >>> first_alpha(Problem(Hinge(), 1.0).on(as_dataset(np.eye(2)), np.array([-1.0, 1.0])), last_q=1e-4)
    array([-0.5,  0.5])
    """
    data, bound = objective.data, objective.loss.slope_bound
    if not np.isfinite(bound) or last_q >= IMMOVABLE:
        return data.zeros()
    return data.map(partial(middles, objective.loss, 2.0 * bound), objective.y)


def best_intercept(objective: Objective, scores: Handle, alpha: Handle, b: float, q: float) -> float:
    """The b that minimises Φ(w, ·), where Σ cᵢ aᵢ = τ Σc, by bisection from around the present one."""
    data, wanted = objective.data, objective.tilt * objective.total

    def balance(b: float) -> float:
        at_b = partial(balance_at, objective.loss, b, q)
        return float(data.reduce(at_b, objective.y, data.weights, scores, alpha))

    reach = 1.0
    low, high = b - reach, b + reach
    for _ in range(DOUBLINGS):
        if balance(low) > wanted > balance(high):
            break
        reach *= 2.0
        low, high = b - reach, b + reach
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        low, high = (middle, high) if balance(middle) > wanted else (low, middle)


def rows_for(q: float, data: Dataset) -> int:
    """How many rows tell the way for this q; all, where fewer are not worth their while."""
    m, d = data.shape
    for least, rows_per_feature in SAMPLES if data.numbered else ():
        n = max(rows_per_feature * d, costs.SAMPLE_ENTRIES // d)
        if q >= least and n <= costs.SAMPLE_SHARE * m and n * d * data.dtype.itemsize <= SAMPLE_BYTES:
            return n
    return m


def sample_of(objective: Objective, n: int, rng: np.random.Generator) -> Sample | None:
    """n rows drawn at random; None if that is all of them, or those drawn have one side of two only."""
    m = objective.data.shape[0]
    if n == m:
        return None
    sample = Sample(np.sort(rng.choice(m, n, replace=False)))
    drawn = sample.of(objective)
    one_sided = np.ptp(drawn.data.to_array(drawn.y)) == 0.0 and not objective.tilt
    return None if one_sided or not drawn.total > 0.0 else sample
