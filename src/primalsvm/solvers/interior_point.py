"""Primal-dual interior-point method: for problems on which the other solvers crawl.

    ℓ(y, p) = Σⱼ max over 0 ≤ aⱼ ≤ uⱼ of  aⱼ (tⱼ − σⱼ p) − κⱼ/2 aⱼ²                    `Loss.pieces`: one or two a row
    αᵢ = Σⱼ σⱼ aⱼ,   and at the solution, with multipliers s of a ≥ 0 and z of a ≤ u:
        λ w = (1/Σc) Σ cᵢ αᵢ xᵢ,   b's equation,   t − κ a − σ (⟨w, x⟩ + b) + s − z = 0,   s a = 0,   z (u − a) = 0

    repeat (Mehrotra 1992; for support vector machines Ferris and Munson 2002, Fine and Scheinberg 2001):
        μ   = mean of s a and z (u − a)
        Newton's direction for s a = z (u − a) = 0, and for σμ plus its second-order error, σ = (μ of a full step / μ)³
        a step along the second one, 0.995 of the way to the boundary at most

With e = κ + s/a + z/(u − a) and h = Σⱼ 1/e the direction solves the bordered system of `systems` in (w, b). The number
of steps hardly depends on the data: 6 to 40, however features are scaled, whether or not the rows are separable, for
every λ. Each costs a factorisation of a matrix of min(m, d) rows or so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from primalsvm.grams import row_products
from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Rows, Vector, inner, sampled_squared_norms, shape, total_weight
from primalsvm.solution import relative_gap
from primalsvm.solvers import costs
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.systems import Bordered, RowSystem, by_features, combination, conjugate_gradients
from primalsvm.team import Team

TO_THE_BOUNDARY = 0.995
# Times λ: trace of the rows that a factor leaves out. Digits: half of the rows in late steps, for four more steps of
# conjugate gradients; 30 leaves out too few, 3000 takes more time than it saves.
LEFT_OUT = 300.0
CORRECTED = 1e-8  # relative residual of a direction
CORRECTIONS = 20  # conjugate-gradient steps for it, at most
PROGRESS = 0.999  # of μ
FUTILE = 10  # steps in a row without that progress after which only rounding is left
ROUNDING = 1e-18  # μ / P below which products of variables lose their meaning
TINY = 1e-300


@dataclass
class InteriorState:
    """All that the solver remembers between two steps. Arrays of pieces have a row per piece, a column per sample."""

    w: Vector
    b: float
    scores: Vector  # ⟨w, xᵢ⟩
    a: Vector
    room: Vector  # u − a, which is far more accurate than the difference near the bound; 1 where u is infinite
    s: Vector
    z: Vector  # 0 where u is infinite
    target: float
    certify: bool
    products: Vector | None  # ⟨xᵢ, xⱼ⟩, where systems have one equation a row
    estimate: float = np.inf  # relative gap, about
    smallest: float = np.inf  # μ so far
    futile: int = 0
    epoch: float = 0.0
    steps: int = 0
    operations: float = 0.0
    finished: bool = False
    worth_evaluating: bool = False

    def release(self) -> None:
        """Forget what can be computed again."""
        self.products = None


class Direction(NamedTuple):
    """Of a step, for each of the variables; `w` is empty where it follows from α."""

    w: Vector
    b: float
    scores: Vector
    a: Vector
    s: Vector
    z: Vector


# r ↦ (δw, δb, r less the change of score + b), where the rows ask for a change of r, each with its own weight k
RowSolve: TypeAlias = Callable[[Vector], tuple[Vector, float, Vector]]
NOWHERE = np.zeros(0)


@dataclass(frozen=True)
class InteriorPoint:
    """Interior-point method: robust to unscaled features and separable rows, for min(m, d) up to a few thousand.

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
    precise: ClassVar[bool] = True
    self_paced: ClassVar[bool] = False

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> InteriorState:
        """w = 0 and a in the middle of its interval: points near the boundary, as other solvers have, take longer."""
        m, d = shape(batch.rows)
        if not hasattr(problem.loss, "pieces"):
            raise ValueError(f"the interior-point method needs a piecewise quadratic loss, not {problem.loss!r}")
        if min(m, d) >= costs.LARGEST_FACTOR:
            most = costs.LARGEST_FACTOR
            raise ValueError(f"the interior-point method needs fewer than {most:,} rows or features, not {m:,} × {d:,}")
        _, _, upper, _ = pieces(problem, batch)
        rows = costs.prefers_rows(costs.Size.of(batch.rows))
        products = row_products(batch.rows, np.arange(m)) if rows else None
        bounded = np.isfinite(upper)
        a = np.where(bounded, 0.5 * upper, 1.0)
        state = InteriorState(
            np.zeros(d), 0.0, np.zeros(m), a, a.copy(), np.ones(a.shape), np.where(bounded, 1.0, 0.0),
            run.target, run.certify, products,
        )  # fmt: skip
        state.operations = costs.products_of_rows(costs.Size.of(batch.rows)) if rows else 0.0
        return state

    def advance(self, problem: Problem, batch: Batch, state: InteriorState, team: Team) -> InteriorState:
        """One step: a factorisation, a direction that predicts and one that corrects."""
        with team.blas_limited():
            return self._step(problem, batch, state, team)

    def _step(self, problem: Problem, batch: Batch, state: InteriorState, team: Team) -> InteriorState:
        sign, target, upper, quadratic = pieces(problem, batch)
        total = total_weight(batch)
        weight = np.broadcast_to(batch.weight.values, batch.y.shape) / total
        bounded = np.isfinite(upper)
        a, room, s, z = state.a, state.room, state.s, state.z
        e = np.maximum(quadratic + s / a + z / room, TINY)
        h = (1.0 / e).sum(axis=0)
        alpha = (sign * a).sum(axis=0)
        off_balance = problem.imbalance(batch, problem.balance(batch, alpha)) / total
        if problem.intercept == "penalized":
            off_balance -= problem.lam * state.b
        stationarity = target - quadratic * a - sign * (state.scores + state.b) + s - z
        if state.products is None:
            solve = self._by_features(problem, batch, state, weight * h, off_balance, alpha, team)
        else:
            solve = self._by_rows(problem, state.products, weight * h, off_balance)

        def direction(goal_s: Vector, goal_z: Vector) -> Direction:
            """To s a = goal_s and z (u − a) = goal_z."""
            r = stationarity + goal_s / a - s - np.where(bounded, goal_z / room - z, 0.0)
            mean = (sign * r / e).sum(axis=0) / h
            dw, db, behind = solve(mean)
            # σ e da = σ r − (change of the score + b), and that change is `mean` − `behind`
            da = (np.where(a.shape[0] > 1, r - sign * mean, 0.0) + sign * behind) / e
            da[:, weight == 0.0] = 0.0
            ds = goal_s / a - s - s * da / a
            dz = np.where(bounded, goal_z / room - z + z * da / room, 0.0)
            return Direction(dw, db, mean - behind - db, da, ds, dz)

        def longest(step: Direction) -> float:
            """The step that comes close to the boundary, or 1."""
            up = np.where(bounded, -step.a, 0.0)
            worst = max(ratio(a, step.a), ratio(s, step.s), ratio(room, up), ratio(z, step.z))
            return float(min(1.0, TO_THE_BOUNDARY / max(worst, TINY)))

        def mean_product(t: float, step: Direction) -> float:
            """μ after a step."""
            products = (s + t * step.s) * (a + t * step.a) + (z + t * step.z) * (room - t * step.a)
            return float(inner(weight, products.sum(axis=0)) / (a.shape[0] + np.count_nonzero(bounded[:, 0])))

        nothing = np.zeros(a.shape)
        predictor = direction(nothing, nothing)
        mu = mean_product(0.0, predictor)
        centred = mu * (mean_product(longest(predictor), predictor) / mu) ** 3
        step = direction(centred - predictor.s * predictor.a, centred + predictor.z * predictor.a)
        t = longest(step)
        state.a, state.room = a + t * step.a, np.where(bounded, room - t * step.a, 1.0)
        state.s, state.z = s + t * step.s, z + t * step.z
        state.b += t * step.b
        if state.products is None:
            state.w, state.scores = state.w + t * step.w, state.scores + t * step.scores
        else:
            state.w, _ = problem.combined(batch, (sign * state.a).sum(axis=0), team)
            state.scores = team.scores(batch.rows, state.w)
        state.steps += 1
        state.epoch += 1.0
        state.operations += costs.interior_step(costs.Size.of(batch.rows))
        self._look(problem, batch, state, mean_product(t, step))
        return state

    def _by_features(
        self,
        problem: Problem,
        batch: Batch,
        state: InteriorState,
        k: Vector,
        off_balance: float,
        alpha: Vector,
        team: Team,
    ) -> RowSolve:
        """Through the equations in (w, b)."""
        system = Bordered(problem, batch.rows, k, team)
        factor = by_features(problem, batch.rows, k, counted_rows(problem, batch.rows, k))
        residual = team.combine(batch, alpha) / total_weight(batch) - problem.lam * state.w  # of w = w(α)

        def solve(r: Vector) -> tuple[Vector, float, Vector]:
            g = combination(batch.rows, k * r, team) + residual
            g_b = 0.0 if problem.intercept == "none" else float(inner(k, r)) + off_balance
            dw, db = conjugate_gradients(system, factor, g, g_b, CORRECTED, CORRECTIONS)
            return dw, db, r - team.scores(batch.rows, dw) - db

        return solve

    def _by_rows(self, problem: Problem, products: Vector, k: Vector, off_balance: float) -> RowSolve:
        """Through one equation a row; w is w(α) then."""
        system = RowSystem(problem, products, k).solver()

        def solve(r: Vector) -> tuple[Vector, float, Vector]:
            q, db = system(r, -off_balance)
            return NOWHERE, db, np.divide(q, k, out=np.zeros(k.shape), where=k > 0.0)

        return solve

    def _look(self, problem: Problem, batch: Batch, state: InteriorState, mu: float) -> None:
        """The gap, about, and whether steps still make it smaller."""
        sign, target, _, quadratic = pieces(problem, batch)
        total = total_weight(batch)
        alpha = (sign * state.a).sum(axis=0)
        kept = (state.a * (target - 0.5 * quadratic * state.a)).sum(axis=0)
        primal = problem.value_at(batch, state.scores, state.w, state.b)
        size = problem.penalty(float(inner(state.w, state.w)), state.b) - problem.tilt * state.b
        dual = problem.balance(batch, kept) / total - size
        gap = max(abs(primal - dual), mu)  # P − D alone may pass through 0 while w is not w(α) yet
        if problem.intercept == "free":
            gap += abs(state.b * problem.imbalance(batch, problem.balance(batch, alpha))) / total
        state.estimate = 0.0 if problem.vanishes(dual) else relative_gap(primal, primal - gap)
        state.futile = 0 if mu < PROGRESS * state.smallest else state.futile + 1
        state.smallest = min(state.smallest, mu)
        state.worth_evaluating = state.estimate <= state.target
        state.finished = (
            not (np.isfinite(state.estimate) and mu > ROUNDING * abs(primal))
            or state.futile >= FUTILE
            or (not state.certify and state.worth_evaluating)
        )

    def evaluate(self, problem: Problem, batch: Batch, state: InteriorState, team: Team) -> Evaluation:
        """P at (w, b) with the best b if it is free, D at α."""
        sign, *_ = pieces(problem, batch)
        b, primal, _ = problem.evaluate_primal(batch, state.w, state.b, team)
        alpha = problem.clipped(batch, (sign * state.a).sum(axis=0))
        return Evaluation(state.w.copy(), b, primal, problem.lower_bound(batch, alpha, team))

    def iterate(self, problem: Problem, batch: Batch, state: InteriorState) -> tuple[Vector, float]:
        """(w, b)."""
        return state.w.copy(), state.b


def pieces(problem: Problem, batch: Batch) -> tuple[Vector, Vector, Vector, Vector]:
    """(σ, t, u, κ) of every row, each with one row a piece.

    Examples
    --------
    >>> from primalsvm import Hinge
    >>> from primalsvm.inputs import as_batch
    >>> pieces(Problem(Hinge(), 1.0), as_batch(np.eye(2), [1, -1]))[0]
    array([[ 1., -1.]])
    """
    loss: Any = problem.loss
    found = [np.stack(np.broadcast_arrays(batch.y, *piece)[1:]) for piece in loss.pieces(batch.y)]
    sign, target, upper, quadratic = np.stack(found, axis=1)
    return sign, target, upper, quadratic


def ratio(x: Vector, step: Vector) -> float:
    """max −step/x: the inverse of the longest step that keeps x positive; 0 where none is too long."""
    falling = np.divide(-step, x, out=np.zeros(x.shape), where=x > 0.0)
    return max(0.0, float(falling.max(initial=0.0)))


def counted_rows(problem: Problem, rows: Rows, k: Vector) -> Vector:
    """The rows that a factor needs: the others have kᵢ ‖x‖² that add up to no more than `LEFT_OUT` λ.

    They also have no more than half of Σ k, which is all that a free intercept has on the diagonal.
    """
    order = np.argsort(k)
    left_out = np.cumsum(k[order])
    largest = float(sampled_squared_norms(rows).max())
    most = min(LEFT_OUT * problem.lam / largest if largest > 0.0 else np.inf, 0.5 * float(left_out[-1]))
    return np.sort(order[int(np.searchsorted(left_out, most)) :])
