"""Decomposition for exact kernel machines: working sets of rows, whose kernel columns come from matrix products.

    F = σ (t − κ A) − s,   s = Kβ                              (`smo` has the symbols)
    repeat:
        B = half of the last working set, and the rows that violate optimality most: in equal numbers those by which β
            should grow and those by which it should fall, as Σ β is constant with a free intercept
        K_B = the columns of B                                 (`KernelColumns`: single precision, cached)
        minimise over A_B by pair steps                        (`smo`)
        s ← s + K_B Δβ_B                                       in double precision
        P − D, from s: no kernel value is needed

Joachims 1999 has working sets and the cache; large sets filled by matrix products are ThunderSVM's (Wen et al. 2018).

Columns in single precision only steer. A certificate computes s anew from kernel values in double precision, at the
cost of all columns of support vectors, and the run goes on from these.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Vector, inner
from primalsvm.losses.base import QuadraticPiece, pieces_of
from primalsvm.objective import Evaluation, Objective
from primalsvm.solution import relative_gap
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.smo import add_rows, pair_steps, single_steps

# Rows of a working set.
SET_SIZE = 1024
# The pair steps on a set end when the violation has fallen to this share of that of all rows.
INNER = 0.1
# … or after this many steps for each variable of the set.
STEPS_PER_VARIABLE = 100
# The estimated gap at which a certificate is worth its cost, as a share of the target.
READY = 0.9


@dataclass
class WorkingSetState(SolverState):
    """The state between two working sets. Arrays of variables have a row per piece and a column per sample."""

    a: Vector  # A, in units of Cᵢ = cᵢ/(λ Σc)
    scores: Vector  # s = Kβ
    b: float
    kept: Vector  # the last working set, the latest rows last
    columns: Any = None  # `KernelColumns`; None: not made yet
    estimate: float = np.inf
    idle: int = 0  # evaluations in a row without a step between them
    moved: bool = field(default=False)

    def release(self) -> None:
        """Drop what can be computed again."""
        self.columns = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "columns": None}


@dataclass(frozen=True)
class WorkingSets:
    """Working sets with pair steps, for the rows of a kernel matrix; `w` is the vector of coefficients β.

    Parameters
    ----------
    size : rows of a working set
    cache_bytes : memory for kernel columns; None: the budget of the data set
    """

    size: int = SET_SIZE
    cache_bytes: float | None = None
    name: ClassVar[str] = "working_sets"
    traits: ClassVar[Traits] = Traits("passes")

    def start(self, objective: Objective, run: Run, previous: Any = None) -> WorkingSetState:
        """A = 0, or that of a previous state of as many rows; in the one-class problem the first rows share ν/λ."""
        data = objective.data
        m = data.shape[0]
        if not hasattr(objective.loss, "quadratic_pieces"):
            raise ValueError(f"exact kernel machines need a piecewise quadratic loss, not {objective.loss!r}")
        if not data.kernel_rows:
            raise ValueError("working sets are for the rows of a kernel matrix")
        pieces = variables_of(objective)
        a = np.zeros(pieces.sign.shape)
        if isinstance(previous, WorkingSetState) and previous.a.shape == a.shape:
            a = np.minimum(previous.a, pieces.upper)
            if objective.free:
                a = balanced(objective, pieces, a)
        elif objective.nu:
            share = np.cumsum(pieces.upper[0]) - pieces.upper[0]
            a[0] = np.clip(objective.nu / objective.lam - share, 0.0, pieces.upper[0])
        beta = coefficients(pieces, a)
        scores = data.scores(beta) if beta.any() else np.zeros(m)
        return WorkingSetState(a, scores, 0.0, np.zeros(0, np.int64), target=run.target)

    def advance(self, objective: Objective, state: WorkingSetState) -> WorkingSetState:
        """One working set."""
        data = objective.data
        m = data.shape[0]
        pieces = variables_of(objective)
        sign, target, upper, quadratic = pieces
        a = state.a
        F = sign * (target - quadratic * a) - state.scores
        if objective.intercept == "penalized":
            F -= coefficients(pieces, a).sum()
        grows = np.where(np.where(sign > 0, a < upper, a > 0), F, -np.inf).max(axis=0)
        falls = np.where(np.where(sign > 0, a > 0, a < upper), F, np.inf).min(axis=0)
        high, low = (grows.max(), falls.min()) if objective.free else (max(grows.max(), 0.0), min(falls.min(), 0.0))
        chosen = self._choose(state, grows - low, high - falls, m)
        state.moved = False
        if chosen.size:
            if state.columns is None:
                state.columns = data.kernel_columns(np.arange(m), self.cache_bytes, 2 * self.size)
            places = state.columns.places(chosen)
            K = state.columns.values[np.ix_(places, chosen)].astype(np.float64)
            if objective.intercept == "penalized":
                K += 1.0
            J, n = sign.shape[0], chosen.shape[0]
            row = np.tile(np.arange(n), J)
            part = a[:, chosen].ravel()
            before = sign[:, chosen] * a[:, chosen]
            steps = pair_steps if objective.free else single_steps
            taken = steps(
                K, row, sign[:, chosen].ravel(), quadratic[:, chosen].ravel(), upper[:, chosen].ravel(),
                part, F[:, chosen].ravel(), INNER * (high - low), STEPS_PER_VARIABLE * J * n,
            )  # fmt: skip
            a[:, chosen] = part.reshape(J, n)
            change = (sign[:, chosen] * a[:, chosen] - before).sum(axis=0)
            moved = np.flatnonzero(change)
            state.moved = moved.size > 0
            self._add(state, data.threads, places[moved], change[moved])
            state.steps += int(taken)
            state.epoch += n / m
            state.kept = chosen
        self._estimate(objective, pieces, state)
        return state

    def _choose(self, state: WorkingSetState, excess_up: Vector, excess_down: Vector, m: int) -> Vector:
        """The rows of the next working set; none if no pair of rows violates optimality."""
        if m <= self.size:
            return np.arange(m) if excess_up.max() > 0.0 else np.zeros(0, np.int64)
        kept = state.kept[-(self.size // 2) :]
        excess_up[kept] = excess_down[kept] = -np.inf
        half = (self.size - kept.shape[0]) // 2
        new = np.union1d(largest(excess_up, half), largest(excess_down, half))
        return np.concatenate([kept, new])

    def _add(self, state: WorkingSetState, threads: Any, places: Vector, change: Vector) -> None:
        """s ← s + K_B Δβ_B."""
        columns = state.columns

        def add(start: int, stop: int) -> None:
            add_rows(columns.values, places, change, start, stop, state.scores)

        threads.run(add, list(threads.ranges(state.scores.shape[0])))

    def _estimate(self, objective: Objective, pieces: QuadraticPiece, state: WorkingSetState) -> None:
        """P − D from the scores; decide whether to evaluate and whether to end."""
        sign, target, upper, quadratic = pieces
        a = state.a
        F = sign * (target - quadratic * a) - state.scores
        beta = coefficients(pieces, a)
        if objective.free:
            high = np.where(np.where(sign > 0, a < upper, a > 0), F, -np.inf).max()
            low = np.where(np.where(sign > 0, a > 0, a < upper), F, np.inf).min()
            state.b = float(0.5 * (high + low)) if np.isfinite(high + low) else float(low if np.isfinite(low) else high)
        else:
            state.b = float(beta.sum()) if objective.intercept == "penalized" else 0.0
        primal = objective.value_at(state.scores, beta, state.b)
        dual = self._dual(objective, pieces, a, beta, state.scores)
        state.estimate = 0.0 if dual >= objective.trivial_above else relative_gap(primal, dual)
        state.worth_evaluating = state.estimate <= READY * state.target or not state.moved

    def _dual(self, objective: Objective, pieces: QuadraticPiece, a: Vector, beta: Vector, scores: Vector) -> float:
        """D(α)."""
        values = (a * (pieces.target - 0.5 * pieces.quadratic * a)).sum()
        square = float(inner(beta, scores))
        if objective.intercept == "penalized":
            square += float(beta.sum()) ** 2
        return float(objective.lam * (values - 0.5 * square))

    def evaluate(self, objective: Objective, state: WorkingSetState) -> Evaluation:
        """P and D, from scores that are computed anew in double precision."""
        pieces = variables_of(objective)
        beta = coefficients(pieces, state.a)
        scores = objective.data.scores(beta)
        b = objective.best_intercept(scores, state.b) if objective.free else state.b
        primal = objective.value_at(scores, beta, b)
        dual = self._dual(objective, pieces, state.a, beta, scores)
        return Evaluation(beta, b, primal, dual, details=scores)

    def observe(self, objective: Objective, state: WorkingSetState, evaluation: Evaluation) -> None:
        """Go on from the scores in double precision; end if no step was possible since the last ones."""
        state.scores = np.array(evaluation.details)
        state.idle = 0 if state.moved else state.idle + 1
        state.finished = state.idle >= 2

    def iterate(self, objective: Objective, state: WorkingSetState) -> tuple[Vector, float]:
        """(β, b)."""
        return coefficients(variables_of(objective), state.a), state.b


def variables_of(objective: Objective) -> QuadraticPiece:
    """The variables A of the dual, as pieces in units of Cᵢ; a row without weight has U = 0."""
    data = objective.data
    scale = data.weight_array() / (objective.lam * objective.total)
    pieces = pieces_of(objective.loss, data.to_array(objective.y))
    upper = np.where(scale > 0.0, scale * pieces.upper, 0.0)
    quadratic = np.divide(pieces.quadratic, scale, out=np.zeros(pieces.quadratic.shape), where=scale > 0.0)
    return pieces._replace(upper=upper, quadratic=quadratic)


def coefficients(pieces: QuadraticPiece, a: Vector) -> Vector:
    """β = Σ σ A."""
    found: Vector = (pieces.sign * a).sum(axis=0)
    return found


def balanced(objective: Objective, pieces: QuadraticPiece, a: Vector) -> Vector:
    """A with Σ β = ν/λ: the variables on the heavier side are scaled down."""
    positive, negative = (np.where(side, a, 0.0).sum() for side in (pieces.sign > 0, pieces.sign < 0))
    excess = positive - negative - objective.nu / objective.lam
    if excess > 0.0:
        return np.where(pieces.sign > 0, a * (1.0 - excess / positive), a)
    return np.where(pieces.sign < 0, a * (1.0 + excess / negative), a) if excess < 0.0 and negative > 0.0 else a


def largest(values: Vector, n: int) -> Vector:
    """The indices of the n largest positive values, or of all if they are fewer."""
    found = np.argpartition(values, -n)[-n:] if n < values.shape[0] else np.arange(values.shape[0])
    return found[values[found] > 0.0]
