"""Primal-dual interior-point method, for problems on which the other solvers are slow.

    ℓ(y, p) = Σⱼ max over 0 ≤ aⱼ ≤ uⱼ of  aⱼ (tⱼ − σⱼ p) − κⱼ/2 aⱼ²          `quadratic_pieces(y)`: one or two a row
    αᵢ = Σⱼ σⱼ aⱼ,   and at the solution, with multipliers s of a ≥ 0 and z of a ≤ u:
        λ w = (1/Σc) Σ cᵢ αᵢ xᵢ,   b's equation,   t − κ a − σ (⟨w, x⟩ + b) + s − z = 0,   s a = 0,   z (u − a) = 0

    repeat (Mehrotra 1992; for support vector machines Ferris and Munson 2002, Fine and Scheinberg 2001):
        μ   = mean of s a and z (u − a)
        Newton's direction for s a = z (u − a) = 0, and for σμ plus its second-order error, σ = (μ of a full step / μ)³
        a step along the second one, 0.995 of the way to the boundary at most

With e = κ + s/a + z/(u − a) and h = Σⱼ 1/e the direction solves the bordered system of `systems` in (w, b). The number
of steps hardly depends on the scale of the features, on whether the rows are separable, or on λ: it is 6 to 40. Each
step costs about a factorisation of a matrix of min(m, d) rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from primalsvm.data import Vector, inner
from primalsvm.losses.base import QuadraticPiece, pieces_of
from primalsvm.objective import Evaluation, Objective
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.systems import bordered, by_features, by_rows, conjugate_gradients

# A step goes at most this share of the way to the boundary (48 badly scaled and noisy problems: 0.9 takes 1.3 times the
# steps, 0.999 takes 0.97 times the steps).
TO_THE_BOUNDARY = 0.995
# The rows that a factor leaves out have a trace of at most this multiple of λ. (Digits: half of the rows in late steps,
# for four more conjugate-gradient steps. 30 leaves out too few, 3000 takes more time than it saves.)
LEFT_OUT = 300.0
# Directions are corrected to this relative residual (1e-4: 3 of 48 problems are not solved; 1e-10: as many steps).
CORRECTED = 1e-8
# A correction takes at most this many conjugate-gradient steps; more than a few are rare.
CORRECTIONS = 20
# Corrected steps may lead in a circle (two classes of five rows and as many features, C = 1e4: a cycle of four steps).
# After this many steps without progress they aim at this share of μ, without correction.
CYCLING, CENTRED = 3, 0.1
# After this many steps in a row without progress only rounding is left.
FUTILE_STEPS = 10
# Below this μ / P the products of variables are rounding only.
LEAST_MU = 1e-18
# In place of 0 in a denominator.
LEAST_DENOMINATOR = 1e-300


@dataclass
class InteriorState(SolverState):
    """The state between two steps. Arrays of pieces have a row per piece and a column per sample."""

    w: Vector
    b: float
    scores: Vector  # ⟨w, xᵢ⟩
    a: Vector
    slack: Vector  # u − a, kept because the difference is inaccurate near the bound; 1 where u is infinite
    s: Vector
    z: Vector  # 0 where u is infinite
    certify: bool
    products: Vector | None  # ⟨xᵢ, xⱼ⟩, where systems have one equation a row
    estimate: float = np.inf  # estimate of the relative gap
    smallest: float = np.inf  # the smallest μ so far
    least: float = np.inf  # the smallest estimate so far
    futile: int = 0

    def release(self) -> None:
        """Drop what can be computed again."""
        self.products = None


class Direction(NamedTuple):
    """The direction of a step in each of the variables; `w` is empty if it follows from α."""

    w: Vector
    b: float
    scores: Vector
    a: Vector
    s: Vector
    z: Vector


# r ↦ (δw, δb, r − the change of score + b), where r is the wanted change of each row, with the weight k
RowDirection: TypeAlias = Callable[[Vector], tuple[Vector, float, Vector]]


@dataclass(frozen=True)
class InteriorPoint:
    """Interior-point method: robust to unscaled features and separable rows, for min(m, d) up to a few thousand.

    Passes over the rows go through the data set. The variables, one to three numbers a row and piece, are arrays of
    this process: they are small where m or d is.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]]) * [1e4, 1e-3]
    >>> solution = solve(Problem(Hinge(), lam=1e-9, intercept="free"), X, [1, 1, -1, -1], solver=InteriorPoint())
    >>> solution.certificate.relative_gap < 1e-9
    True
    """

    name: ClassVar[str] = "interior_point"
    traits: ClassVar[Traits] = Traits("passes", precise=True)

    def start(self, objective: Objective, run: Run, previous: Any = None) -> InteriorState:
        """w = 0 and a in the middle of its interval; from other solvers' points, near the boundary, it is slower."""
        data, loss = objective.data, objective.loss
        m, d = data.shape
        if not hasattr(loss, "quadratic_pieces"):
            raise ValueError(f"the interior-point method needs a piecewise quadratic loss, not {loss!r}")
        if min(m, d) >= costs.LARGEST_FACTOR:
            most = costs.LARGEST_FACTOR
            raise ValueError(f"the interior-point method needs fewer than {most:,} rows or features, not {m:,} × {d:,}")
        upper = pieces_of(loss, data.to_array(objective.y)).upper
        size = costs.Size.of(data)
        rows = data.numbered and costs.prefers_rows(size)
        bounded = np.isfinite(upper)
        a = np.where(bounded, 0.5 * upper, 1.0)
        state = InteriorState(
            np.zeros(d), 0.0, np.zeros(m), a, a.copy(), np.ones(a.shape), np.where(bounded, 1.0, 0.0),
            run.certify, data.products(np.arange(m)) if rows else None, target=run.target,
        )  # fmt: skip
        state.operations = costs.products_of_rows(size) if rows else 0.0
        return state

    def advance(self, objective: Objective, state: InteriorState) -> InteriorState:
        """One step: a factorisation, a predictor direction and a corrector direction."""
        data, lam = objective.data, objective.lam
        pieces = pieces_of(objective.loss, data.to_array(objective.y))
        sign, target, upper, quadratic = pieces
        weight = data.weight_array() / objective.total
        bounded = np.isfinite(upper)
        a, slack, s, z = state.a, state.slack, state.s, state.z
        e = np.maximum(quadratic + s / a + z / slack, LEAST_DENOMINATOR)
        h = (1.0 / e).sum(axis=0)
        alpha = data.from_array(alpha_of(pieces, a))
        off_balance = objective.imbalance(objective.balance(alpha)) / objective.total
        if objective.intercept == "penalized":
            off_balance -= lam * state.b
        stationarity = target - quadratic * a - sign * (state.scores + state.b) + s - z
        if state.products is None:
            residual = data.combine(alpha) / objective.total - lam * state.w  # of w = w(α)
            row_direction = _direction_by_features(objective, weight * h, residual, off_balance)
        else:
            row_direction = _direction_by_rows(objective, state.products, weight * h, off_balance)

        def direction(goal_s: Vector, goal_z: Vector) -> Direction:
            """Newton's direction for s a = goal_s and z (u − a) = goal_z."""
            r = stationarity + goal_s / a - s - np.where(bounded, goal_z / slack - z, 0.0)
            mean = (sign * r / e).sum(axis=0) / h
            dw, db, left = row_direction(mean)
            # σ e da = σ r − (change of the score + b), and that change is `mean` − `left`
            da = (np.where(a.shape[0] > 1, r - sign * mean, 0.0) + sign * left) / e
            da[:, weight == 0.0] = 0.0
            ds = goal_s / a - s - s * da / a
            dz = np.where(bounded, goal_z / slack - z + z * da / slack, 0.0)
            return Direction(dw, db, mean - left - db, da, ds, dz)

        def longest(step: Direction) -> float:
            """The step length to near the boundary, at most 1."""
            up = np.where(bounded, -step.a, 0.0)
            worst = max(ratio(a, step.a), ratio(s, step.s), ratio(slack, up), ratio(z, step.z))
            return float(min(1.0, TO_THE_BOUNDARY / max(worst, LEAST_DENOMINATOR)))

        def mean_product(t: float, step: Direction) -> float:
            """μ after a step."""
            products = (s + t * step.s) * (a + t * step.a) + (z + t * step.z) * (slack - t * step.a)
            return float(inner(weight, products.sum(axis=0)) / (a.shape[0] + np.count_nonzero(bounded[:, 0])))

        zero = np.zeros(a.shape)
        predictor = direction(zero, zero)
        mu = mean_product(0.0, predictor)
        if state.futile < CYCLING:
            centred = mu * (mean_product(longest(predictor), predictor) / mu) ** 3
            step = direction(centred - predictor.s * predictor.a, centred + predictor.z * predictor.a)
        else:
            step = direction(zero + CENTRED * mu, zero + CENTRED * mu)
        t = longest(step)
        state.a, state.slack = a + t * step.a, np.where(bounded, slack - t * step.a, 1.0)
        state.s, state.z = s + t * step.s, z + t * step.z
        state.b += t * step.b
        if state.products is None:
            state.w, state.scores = state.w + t * step.w, state.scores + t * step.scores
        else:
            state.w, _ = objective.primal_point(data.from_array(alpha_of(pieces, state.a)))
            state.scores = data.to_array(data.scores(state.w))
        state.steps += 1
        state.epoch += 1.0
        state.operations += costs.interior_step(costs.Size.of(data))
        self._estimate(objective, pieces, state, mean_product(t, step))
        return state

    def _estimate(self, objective: Objective, pieces: QuadraticPiece, state: InteriorState, mu: float) -> None:
        """Estimate the gap; decide whether to evaluate and whether to end."""
        data, total = objective.data, objective.total
        conjugates = (state.a * (pieces.target - 0.5 * pieces.quadratic * state.a)).sum(axis=0)  # −ℓ*(−α)
        primal = objective.value_at(data.from_array(state.scores), state.w, state.b)
        size = objective.problem.penalty(float(inner(state.w, state.w)), state.b) - objective.nu * state.b
        dual = objective.balance(data.from_array(conjugates)) / total - size
        gap = max(abs(primal - dual), mu)  # P − D may pass through 0 while w is not yet w(α)
        if objective.free:
            balance = objective.balance(data.from_array(alpha_of(pieces, state.a)))
            gap += abs(state.b * objective.imbalance(balance)) / total
        state.estimate = 0.0 if dual >= objective.trivial_above else relative_gap(primal, primal - gap)
        # μ may grow for many steps while w is still far away (the one-class problem); then the estimate falls
        progress = mu < 0.999 * state.smallest or state.estimate < 0.999 * state.least
        state.futile = 0 if progress else state.futile + 1
        state.smallest, state.least = min(state.smallest, mu), min(state.least, state.estimate)
        state.worth_evaluating = state.estimate <= state.target
        state.finished = (
            not (np.isfinite(state.estimate) and mu > LEAST_MU * abs(primal))
            or state.futile >= FUTILE_STEPS
            or (not state.certify and state.worth_evaluating)
        )

    def evaluate(self, objective: Objective, state: InteriorState) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at α."""
        data = objective.data
        pieces = pieces_of(objective.loss, data.to_array(objective.y))
        b, primal, _ = objective.evaluate_primal(state.w, state.b)
        alpha = objective.clip_alpha(data.from_array(alpha_of(pieces, state.a)))
        return Evaluation(state.w.copy(), b, primal, objective.lower_bound(alpha))

    def iterate(self, objective: Objective, state: InteriorState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b


def alpha_of(pieces: QuadraticPiece, a: Vector) -> Vector:
    """αᵢ = Σⱼ σⱼ aⱼ."""
    found: Vector = (pieces.sign * a).sum(axis=0)
    return found


def _direction_by_features(objective: Objective, k: Vector, residual: Vector, off_balance: float) -> RowDirection:
    """By the equations in (w, b)."""
    problem, data = objective.problem, objective.data
    system = bordered(problem, data, data.from_array(k))
    factor = by_features(problem, data, data.from_array(significant(objective, k)))

    def direction(r: Vector) -> tuple[Vector, float, Vector]:
        g = data.combine(data.from_array(k * r), weighted=False) + residual
        g_b = 0.0 if problem.intercept == "none" else float(inner(k, r)) + off_balance
        dw, db = conjugate_gradients(system, factor, g, g_b, CORRECTED, CORRECTIONS)
        return dw, db, r - data.to_array(data.scores(dw)) - db

    return direction


def _direction_by_rows(objective: Objective, products: Vector, k: Vector, off_balance: float) -> RowDirection:
    """By one equation a row; w is then w(α)."""
    system = by_rows(objective.problem, products, k)

    def direction(r: Vector) -> tuple[Vector, float, Vector]:
        q, db = system(r, -off_balance)
        return np.zeros(0), db, np.divide(q, k, out=np.zeros(k.shape), where=k > 0.0)

    return direction


def ratio(x: Vector, step: Vector) -> float:
    """max −step/x: the inverse of the longest step that keeps x positive; 0 if any step does."""
    falling = np.divide(-step, x, out=np.zeros(x.shape), where=x > 0.0)
    return max(0.0, float(falling.max(initial=0.0)))


def significant(objective: Objective, k: Vector) -> Vector:
    """k, with zeros for rows that a factor leaves out: their kᵢ ‖x‖² add up to at most `LEFT_OUT` λ.

    They also have at most half of Σ k, which is the whole diagonal entry of a free intercept.
    """
    order = np.argsort(k)
    sums = np.cumsum(k[order])
    largest = float(objective.data.squared_norms().max())
    most = min(LEFT_OUT * objective.lam / largest if largest > 0.0 else np.inf, 0.5 * float(sums[-1]))
    found = k.copy()
    found[order[: int(np.searchsorted(sums, most))]] = 0.0
    return found
