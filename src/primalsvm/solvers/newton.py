"""Proximal method of multipliers with semismooth Newton steps, for few features or few rows.

    α⁺ = argmax D(α') − (q/2Σc) Σ cᵢ (α'ᵢ − αᵢ)²                               (Rockafellar 1976), q → q/3 each time

The dual of this sub-problem is smooth in (w, b) and has no constraints; a free intercept is treated exactly:

    Φ(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ φᵢ(⟨w, xᵢ⟩ + b),    φᵢ(p) = max over a of −ℓ*(−a) − p a − q/2 (a − αᵢ)²
    ∇Φ      = λ w − (1/Σc) Σ cᵢ aᵢ xᵢ,                   aᵢ the maximiser
    ∇²Φ     = λ I + (1/Σc) Σ_J cᵢ hᵢ xᵢ xᵢᵀ,              hᵢ = 1/(q + (ℓ*)''), J the rows with aᵢ inside its domain

    repeat: (w, b) += t δ with ∇²Φ δ = −∇Φ, t the least of Φ along δ;  once ∇Φ is small against the gap: α ← a, q ← q/3

First-order methods are slow where there are many more rows than features, or where features are badly scaled. Here a
step costs a few passes over the rows, an update of the Hessian for the rows whose hᵢ changes, and a system of the
smaller of d and |J| equations.

α starts in the middle of its domain: Φ is then the objective with its kinks smoothed over a width of q. While q is
large, a sample of the rows gives nearly the same steps as all rows, so the first steps use a sample if there are many.

Numbers that belong to rows are handles of the data set. Rows without numbers are not sampled, and the systems then have
one equation a feature.
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
from primalsvm.solvers.protocol import Point, Run, SolverState, Traits
from primalsvm.solvers.proximal import Proximal, balance_at, maximise, middles, move_scores, slope_along

# In these comments "work" is the operations for solving 31 problems (a9a, ijcnn1, covtype, housing; small and badly
# scaled ones that were generated) with another value of the constant, relative to the operations with this value.

# Values of q are in units of the margin.

# The first q. All rows are inside at w = 0, as a = ½ + 1/q < 1 (work: 1.01 with 1 or 2, 1.08 with 10).
FIRST_Q = 4.0
# The last q. It need not be smaller, because new α correct the error of smoothing the kinks (1e-2 to 1e-6: as good).
LAST_Q = 1e-4
# With a last q above this α hardly moves, as Δa = Δp/q, so it starts at 0. This happens with unscaled features.
MOST_MOVABLE_Q = 1e6
# The first q from another solver's point (digits, 1000 dense features: 0.3 to 4 are as good).
Q_AFTER_HANDOVER = 1.0
# The least first q at the next λ of a path, with the last α and w: other rows are at the margin there.
PATH_Q = 1.0
# A warm start begins with the last q of the previous run times this factor: a few values of q back.
WARM_START_FACTOR = 10.0
# The last q is at least this share of the dual's own curvature ‖x‖²/(λm): a smaller q leaves systems with less than 6
# digits.
CONDITION = 1e-10

# q is divided by this factor (work: 1.11 with 2, 0.98 with 5, 0.93 with 10, 1.09 with 30).
SHRINK_Q = 3.0
# q stays the same while each new α reduces the gap by this factor (work: 0.98 with 0.1, 1.12 with 0.6).
FAST_ENOUGH = 0.3
# Φ is minimised to this share of the gap before α changes (work: 1.01 with 0.03, 1.13 with 0.3; with 1, 12 fail).
INNER_ACCURACY = 0.1
# On a sample Φ is minimised to this share: its minimum is not that of all rows (0.1 to 1 are as good).
SAMPLE_ACCURACY = 0.3

# The line search stops where the slope of Φ is this share of the slope at its start (work: 0.99 to 1.07 with 0.001 to
# 0.3). A trial reads scores only.
SLOPE_REDUCTION = 0.1
# A line search makes at most this many trials (10 are too few at kinks: six times the work on covtype; 100 gain
# nothing).
SEARCHES = 40
# The rounding of a slope, which is a sum over all rows, relative to its terms.
ROUNDING_OF_SUMS = 1e-13

# After this many steps in a row without progress only rounding is left.
FUTILE_STEPS = 10

# Samples for the first steps: (q, rows per feature). A sample is used down to its q, so that about ten rows per feature
# are inside. It has at least `costs.SAMPLE_ENTRIES` entries and at most `costs.SAMPLE_SHARE` of the rows (150,000 rows
# of covtype: without samples up to 2.7 times the work).
SAMPLES = ((1.0, costs.SAMPLE_ROWS), (0.3, 50))
# A sample takes at most this many bytes, because its rows are copied.
SAMPLE_BYTES = 2**28
# When a sample is replaced by all rows, q is divided by at most this (work: 1.02 with 1.5, 10 or 30, 1.00 with 3).
MOST_Q_DROP = 5.0


@dataclass
class RowState:
    """Handles and sums of the rows in use, at the present point."""

    alpha: Handle
    scores: Handle  # ⟨w, xᵢ⟩
    a: Handle
    h: Handle
    change: Handle  # in aᵢ, by the last step
    sums: Proximal
    combination: Vector  # Σ cᵢ aᵢ xᵢ
    curvature: Curvature

    @classmethod
    def of(cls, data: Dataset, alpha: Handle, w: Vector) -> "RowState":
        """The row_state before `update`: a and its sums are still 0."""
        sums = Proximal(0.0, 0.0, 0.0, 0.0, 0)
        a, h, change = (data.zeros() for _ in range(3))
        return cls(alpha, data.scores(w), a, h, change, sums, np.zeros(w.shape[0]), Curvature.of(data))

    def update(self, objective: Objective, along: Handle, t: float, b: float, q: float, anew: bool = False) -> None:
        """a, h, the sums and the combination at the scores + t · along + b.

        The combination adds only the changed rows; `anew` sums all rows again, which removes accumulated rounding.
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
class NewtonState(SolverState):
    """All that the solver remembers between two steps."""

    w: Vector
    b: float
    q: float
    last_q: float
    certify: bool
    rng: np.random.Generator
    sample: Sample | None  # the rows in use, while they are not all
    row_state: RowState  # of the rows in use
    gap: float = np.inf  # about: P − D for the rows in use
    estimate: float = np.inf  # the same, relative
    rounded: float = 1.0  # share of the gap that is due to q, not to the inexact minimum of Φ
    outer_gap: float = 0.0  # when α last changed
    minimised: bool = False  # whether Φ is minimised accurately enough
    stuck: bool = False
    futile: int = 0  # steps in a row that changed nothing with q at its last value

    def release(self) -> None:
        """Drop the matrix and the copies of rows, which can be computed again."""
        self.row_state.curvature.squares = None
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
    traits: ClassVar[Traits] = Traits("passes", precise=True)

    def start(self, objective: Objective, run: Run, previous: Any = None) -> NewtonState:
        """w = 0 and α in the middle of its domain, or w and α of a previous state of the same shape, or of a point."""
        data = objective.data
        m, d = data.shape
        rng, last_q = np.random.default_rng(run.seed), least_q(objective)
        w, b, alpha, q = np.zeros(d), 0.0, None, FIRST_Q
        if isinstance(previous, Point) and fits(previous.alpha, m):
            alpha = objective.clip_alpha(previous.alpha)
            w = objective.primal_point(alpha)[0] if previous.w is None else np.asarray(previous.w, np.float64)
            b, q = previous.b, Q_AFTER_HANDOVER
        elif isinstance(previous, NewtonState) and fits(previous.row_state.alpha, m) and previous.w.shape == (d,):
            alpha = data.map(np.positive, previous.row_state.alpha)  # a copy
            w, b, q = previous.w.copy(), previous.b, min(FIRST_Q, WARM_START_FACTOR * previous.q)
        b, q = 0.0 if objective.intercept == "none" else b, max(q, last_q)
        sample = None if alpha is not None else sample_of(objective, rows_for(q, data), rng)
        used = objective if sample is None else sample.of(objective)
        row_state = RowState.of(used.data, first_alpha(used, last_q) if alpha is None else alpha, w)
        row_state.update(used, row_state.scores, 0.0, b, q)
        return NewtonState(w, b, q, last_q, run.certify, rng, sample, row_state, target=run.target)

    def path_start(self, state: NewtonState, memory: None, lam: float) -> tuple[NewtonState, None]:
        """The last state, changed so that q begins at `PATH_Q` or above."""
        return replace(state, q=max(PATH_Q / WARM_START_FACTOR, state.q)), None

    def advance(self, objective: Objective, state: NewtonState) -> NewtonState:
        """If Φ is minimised accurately enough, the next α and q, or more rows; then one Newton step on Φ."""
        if state.minimised and state.sample is None:
            self._next_alpha(objective, state)
        elif state.minimised:
            self._next_sample(objective, state)
        used = self._used(objective, state)
        slack = self._newton_step(used, state)
        state.steps += 1
        state.epoch += used.data.shape[0] / objective.data.shape[0]
        passes = costs.NEWTON_PASSES * costs.one_pass(costs.Size.of(used.data))
        state.operations += costs.NEWTON_STEP + passes + state.row_state.curvature.take_operations()
        state.gap, state.estimate = self._gap(used, state)
        state.rounded = max(1.0 - slack / state.gap, ROUNDING_OF_SUMS) if state.gap > 0.0 else 1.0
        accuracy = INNER_ACCURACY if state.sample is None else SAMPLE_ACCURACY
        state.minimised = slack <= accuracy * state.gap or state.stuck
        state.worth_evaluating = state.sample is None and state.estimate <= state.target
        lost = state.stuck and state.q == state.last_q and state.gap >= 0.999 * state.outer_gap
        state.futile = state.futile + 1 if lost else 0
        state.finished = state.futile >= FUTILE_STEPS or (not state.certify and state.worth_evaluating)
        return state

    def _used(self, objective: Objective, state: NewtonState) -> Objective:
        """The objective on the rows in use."""
        return objective if state.sample is None else state.sample.of(objective)

    def _next_alpha(self, objective: Objective, state: NewtonState) -> None:
        """α ← a, and a smaller q unless the gap falls fast enough."""
        row_state = state.row_state
        objective.data.update(np.copyto, row_state.alpha, row_state.a)
        if state.gap > FAST_ENOUGH * state.outer_gap:
            state.q = max(state.q / SHRINK_Q, state.last_q)
        state.outer_gap = state.gap
        row_state.update(objective, row_state.scores, 0.0, state.b, state.q, anew=True)

    def _next_sample(self, objective: Objective, state: NewtonState) -> None:
        """A smaller q, and more rows if the sample is too small for it."""
        assert state.sample is not None
        m = objective.data.shape[0]
        q = max(state.q / SHRINK_Q, state.last_q)
        n = rows_for(q, objective.data) if q < state.q else m
        if n != state.sample.numbers.shape[0]:
            state.sample = sample_of(objective, n, state.rng)
            used = self._used(objective, state)
            state.row_state = RowState.of(used.data, first_alpha(used, state.last_q), state.w)
        if state.sample is None:
            # The error of smoothing is about proportional to q²: the number of rows inside times the error of each.
            shrink = np.sqrt(0.5 * state.target / (state.rounded * state.estimate)) if state.estimate > 0.0 else 1.0
            q = max(float(np.clip(shrink, 1.0 / MOST_Q_DROP, 1.0)) * state.q, state.last_q)
        state.q = q
        state.row_state.update(self._used(objective, state), state.row_state.scores, 0.0, state.b, state.q)

    def _gradient(self, objective: Objective, state: NewtonState) -> tuple[Vector, float]:
        total, lam = objective.total, objective.lam
        in_b = 0.0 if objective.intercept == "none" else -objective.imbalance(state.row_state.sums.balance) / total
        if objective.intercept == "penalized":
            in_b += lam * state.b
        return lam * state.w - state.row_state.combination / total, in_b

    def _newton_step(self, objective: Objective, state: NewtonState) -> float:
        """Move (w, b); returns an estimate of how far Φ is from its minimum."""
        data, row_state, total = objective.data, state.row_state, objective.total
        g, g_b = self._gradient(objective, state)
        step, step_b = self._direction(objective, state, g, g_b)
        along = data.scores(step)
        data.update(partial(np.add, step_b), along, along)  # in place
        before = objective.regularizer(state.w, state.b) + row_state.sums.phi / total
        t = self._line_search(objective, state, step, step_b, along)
        row_state.update(objective, along, t, state.b, state.q)
        state.w = state.w + t * step
        data.update(partial(move_scores, t, step_b), along, row_state.scores)
        state.b += t * step_b
        after = objective.regularizer(state.w, state.b) + row_state.sums.phi / total
        state.stuck = abs(before - after) <= 1e-15 * abs(before)  # rounding
        g, g_b = self._gradient(objective, state)
        return float(inner(g, g)) / (2.0 * objective.lam) + abs(g_b * step_b)

    def _direction(self, objective: Objective, state: NewtonState, g: Vector, g_b: float) -> tuple[Vector, float]:
        """δ = −(∇²Φ)⁻¹ ∇Φ. If no row is inside, the only curvature of Φ is λ, and a free b moves to its minimiser."""
        row_state, lam = state.row_state, objective.lam
        if row_state.sums.inside:
            return row_state.curvature.step(objective, row_state.h, row_state.sums.inside, g, g_b)
        if objective.free:
            return -g / lam, proximal_intercept(
                objective, row_state.scores, row_state.alpha, state.b, state.q
            ) - state.b
        return -g / lam, -g_b / lam

    def _line_search(
        self, objective: Objective, state: NewtonState, step: Vector, step_b: float, along: Handle
    ) -> float:
        """A t at which the slope of Φ along the step is nearly 0, by regula falsi: the slope increases with t."""
        data, lam = objective.data, objective.lam
        handles = (objective.y, data.weights, state.row_state.scores, along, state.row_state.alpha)
        constant = step_b if objective.intercept == "penalized" else 0.0
        at_start = lam * (float(inner(state.w, step)) + state.b * constant) + objective.nu * step_b
        growth = lam * (float(inner(step, step)) + constant * constant)

        def slope(t: float) -> float:
            of_rows = data.reduce(partial(slope_along, objective.loss, t, state.b, state.q), *handles)
            return at_start + t * growth - float(of_rows) / objective.total

        low, high, at_low, at_high = 0.0, np.inf, slope(0.0), np.inf
        flat = max(SLOPE_REDUCTION * abs(at_low), ROUNDING_OF_SUMS * (abs(at_start) + growth))
        t = 1.0
        for k in range(SEARCHES):
            at_t = slope(t)
            if abs(at_t) <= flat or at_low >= 0.0:  # a step along which Φ does not fall is due to rounding
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
        else:  # a kink: go beyond it, so that the next step sees the rows there
            return min(high, 2.0 * low)
        return t

    def _gap(self, objective: Objective, state: NewtonState) -> tuple[float, float]:
        """P(w, b) − D(a) plus |b| times the imbalance of a; and the same relative to P."""
        sums, total, length = state.row_state.sums, objective.total, objective.lam * objective.total
        primal = objective.regularizer(state.w, state.b) + sums.loss / total
        implied = sums.balance / length if objective.intercept == "penalized" else 0.0
        dual = sums.dual / total - objective.regularizer(state.row_state.combination / length, implied)
        gap = abs(primal - dual)
        if objective.free:
            gap += abs(state.b * objective.imbalance(sums.balance)) / total
        return gap, 0.0 if dual >= objective.trivial_above else relative_gap(primal, primal - gap)

    def evaluate(self, objective: Objective, state: NewtonState) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at a."""
        b, primal, scores = objective.evaluate_primal(state.w, state.b)
        a = state.row_state.a
        if state.sample is not None:
            data, alpha = objective.data, first_alpha(objective, state.last_q)
            a, h, change = (data.zeros() for _ in range(3))
            kernel = partial(maximise, objective.loss, 0.0, state.b, state.q)
            data.reduce(kernel, objective.y, data.weights, scores, scores, alpha, a, h, change)
        return Evaluation(state.w.copy(), b, primal, objective.lower_bound(a))

    def iterate(self, objective: Objective, state: NewtonState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b

    def hand_over(self, objective: Objective, state: NewtonState) -> Point:
        """(w, b), and a if it is known for all rows; else the first α."""
        alpha = state.row_state.a if state.sample is None else first_alpha(objective, state.last_q)
        return Point(alpha, state.b, state.w)


def fits(handle: Handle, m: int) -> bool:
    """Whether a handle has m rows; a handle without a shape is accepted."""
    return bool(getattr(handle, "shape", (m,)) == (m,))


def least_q(objective: Objective) -> float:
    """The least q."""
    data = objective.data
    curvature = float(data.squared_norms().mean()) / (objective.lam * data.shape[0])
    return float(max(LAST_Q, CONDITION * curvature))


def first_alpha(objective: Objective, last_q: float) -> Handle:
    """The middle of each α's domain; 0 if the domain is unbounded, or if q stays so large that α hardly moves.

    Examples
    --------
    >>> from primalsvm import Hinge, Problem
    >>> from primalsvm.data import as_dataset
    >>> first_alpha(Problem(Hinge(), 1.0).on(as_dataset(np.eye(2)), np.array([-1.0, 1.0])), last_q=1e-4)
    array([-0.5,  0.5])
    """
    data, bound = objective.data, objective.loss.slope_bound
    if not np.isfinite(bound) or last_q >= MOST_MOVABLE_Q:
        return data.zeros()
    return data.map(partial(middles, objective.loss, 2.0 * bound), objective.y)


def proximal_intercept(objective: Objective, scores: Handle, alpha: Handle, b: float, q: float) -> float:
    """The b that minimises Φ(w, ·), where Σ cᵢ aᵢ = ν Σc, by bisection around the present b."""
    data = objective.data

    def excess(b: float) -> float:
        at_b = partial(balance_at, objective.loss, b, q)
        return objective.imbalance(float(data.reduce(at_b, objective.y, data.weights, scores, alpha)))

    reach = 1.0
    low, high = b - reach, b + reach
    for _ in range(60):
        if excess(low) > 0.0 > excess(high):
            break
        reach *= 2.0
        low, high = b - reach, b + reach
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return middle


def rows_for(q: float, data: Dataset) -> int:
    """The number of rows to use for this q; all rows if a sample does not pay."""
    m, d = data.shape
    for least, rows_per_feature in SAMPLES if data.numbered else ():
        n = max(rows_per_feature * d, costs.SAMPLE_ENTRIES // d)
        if q >= least and n <= costs.SAMPLE_SHARE * m and n * d * data.dtype.itemsize <= SAMPLE_BYTES:
            return n
    return m


def sample_of(objective: Objective, n: int, rng: np.random.Generator) -> Sample | None:
    """n rows drawn at random; None if n is all rows, or if the drawn rows have one sign only."""
    m = objective.data.shape[0]
    if n == m:
        return None
    sample = Sample(np.sort(rng.choice(m, n, replace=False)))
    drawn = sample.of(objective)
    one_sided = np.ptp(drawn.data.to_array(drawn.y)) == 0.0 and not objective.nu
    return None if one_sided or not drawn.total > 0.0 else sample
