"""Decomposition for exact kernel machines: working sets of rows, whose kernel columns come from matrix products.

    F = σ (t − κ A) − s,   s = Kβ                              (`smo` has the symbols)
    repeat:
        B = half of the last working set, and the active rows that violate optimality most: in equal numbers those by
            which β should grow and those by which it should fall, as Σ β is constant with a free intercept
        minimise over A_B by pair steps, with K_BB             (`smo`)
        s ← s + K_B Δβ_B at the active rows                    (`KernelColumns`: single precision, cached)
        D ← D + its change;   P − D = Σ cᵢ (ℓᵢ + ℓᵢ* + αᵢ (sᵢ + b)) / Σc over the active rows
        shrink, where columns are not kept: rows at a bound, far from leaving it, are no longer active

Joachims 1999 has working sets, the cache and shrinking; large sets filled by matrix products are ThunderSVM's (Wen et
al. 2018). Columns in single precision only steer. A certificate updates s at all rows from the last certificate's, by
kernel values in double precision for the rows whose β has changed; the run goes on from these.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Vector, inner
from primalsvm.losses.base import QuadraticPiece, pieces_of
from primalsvm.objective import Evaluation, Objective
from primalsvm.options import check_integer
from primalsvm.solution import relative_gap
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.smo import pair_steps, single_steps

# Rows of a working set: one in so many, between these limits. With more, fewer columns are used in all; with fewer, the
# steps on a set take less time.
SET_SHARE, LEAST_SIZE, LARGEST_SIZE = 50, 1024, 4096
# The least that a user may ask for: half of it are rows of the last set, and a quarter new rows of each direction.
LEAST_GIVEN = 4
# The steps on a set end when the violation has fallen to this share of that of all rows; where the set has all rows,
# there is nothing else to do, so to a smaller one.
INNER, INNER_OF_ALL = 0.1, 0.001
# … or after this many steps for each variable of the set.
STEPS_PER_VARIABLE = 100
# The estimated gap at which a certificate is worth its cost, as a share of the target.
READY = 0.9
# Bytes for kernel columns at most, unless the user says otherwise.
CACHE_BYTES = 4e9
# Rows become inactive once the gap is at most this: before, too many come back.
SHRINK_GAP = 0.3
# All rows are active again when the gap of the active ones has fallen to this share of that of all rows.
UNSHRINK = 0.1
# Rows stay active if they are nearer to leaving their bound than this multiple of the violation.
BAND = 0.3
# Rows become inactive only if at most this share stays active, as the points of those are copied.
SHRINK = 0.7


@dataclass
class WorkingSetState(SolverState):
    """The state between two working sets. Arrays of variables have a row per piece and a column per sample."""

    a: Vector  # A, in units of Cᵢ = cᵢ/(λ Σc)
    scores: Vector  # s = Kβ, up to date at the active rows
    exact_beta: Vector  # β at the last certificate
    exact_scores: Vector  # its s, in double precision
    dual: float  # D
    active: Vector  # numbers of the active rows, in order
    pieces: QuadraticPiece  # of the variables
    b: float = 0.0
    kept: Vector | None = None  # the last working set, the latest rows last
    columns: Any = field(default=None, init=False)  # of the kernel matrix at the active rows; None: not made yet
    estimate: float = np.inf  # of the relative gap, by the active rows
    full_estimate: float = np.inf  # when all rows were active last
    violation: float = np.inf
    moved: bool = True  # false if the last working set has changed nothing
    idle: int = 0  # working sets in a row that have changed nothing, each with a certificate after it
    certify: bool = True  # whether the driver evaluates; else the solver does, to know when to end

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
    size : rows of a working set; None: one in 50, from 1,024 to 4,096
    cache_bytes : memory for kernel columns; None: 4 GB, or what the data set may use
    shrinking : whether rows that stay at a bound are left out for a while, where columns are not kept
    """

    size: int | None = None
    cache_bytes: float | None = None
    shrinking: bool = True
    name: ClassVar[str] = "working_sets"
    traits: ClassVar[Traits] = Traits("passes", precise=True)

    def __post_init__(self) -> None:
        check_integer("size", self.size, LEAST_GIVEN, none=True)

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
        elif objective.nu:
            share = np.cumsum(pieces.upper[0]) - pieces.upper[0]
            a[0] = np.clip(objective.nu / objective.lam - share, 0.0, pieces.upper[0])
        zero = np.zeros(m)
        state = WorkingSetState(
            a, zero.copy(), zero, zero, 0.0, np.arange(m), pieces, certify=run.certify, target=run.target
        )
        if a.any():
            self._begin_at(objective, state, a)
        return state

    def _begin_at(self, objective: Objective, state: WorkingSetState, a: Vector) -> None:
        """Begin at A."""
        pieces = state.pieces
        state.a = balanced(objective, pieces, a) if objective.free else a
        beta = coefficients(pieces, state.a)
        self._open_columns(objective, state)
        state.columns.add_all(beta, state.scores)
        state.dual = dual_value(objective, pieces, state.a, beta, state.scores)

    def _open_columns(self, objective: Objective, state: WorkingSetState) -> None:
        """Columns at the active rows, if there are none yet."""
        if state.columns is None:
            state.columns = columns_of(objective.data, state.active, self.cache_bytes)

    def advance(self, objective: Objective, state: WorkingSetState) -> WorkingSetState:
        """One working set."""
        data, active = objective.data, state.active
        m = data.shape[0]
        sign, _, upper, quadratic = state.pieces
        self._open_columns(objective, state)
        F = self._intercepts(objective, state)
        high, low = bounds_of(objective, F)
        state.violation = max(high - low, 0.0)
        chosen = self._choose(state, F.up - low, high - F.down)
        state.moved = False
        if chosen.size:
            B = active[chosen]
            K = state.columns.between(B)
            if objective.intercept == "penalized":
                K = K + 1.0
            J, n = sign.shape[0], B.shape[0]
            part, own_sign = a_of(state.a, B), a_of(sign, B)
            before = part.copy()
            steps = pair_steps if objective.free else single_steps
            row = None if J == 1 else np.tile(np.arange(n), J)
            least = (INNER if n < m else INNER_OF_ALL) * state.violation
            taken = steps(
                K, row, own_sign, a_of(quadratic, B), a_of(upper, B), part, F.values[:, chosen].ravel(), least,
                STEPS_PER_VARIABLE * J * n,
            )  # fmt: skip
            state.a[:, B] = part.reshape(J, n)
            change = (own_sign * (part - before)).reshape(J, n).sum(axis=0)
            moved = np.flatnonzero(change)
            state.moved = moved.size > 0
            state.dual += self._gain(objective, state, B, before.reshape(J, n), change, K)
            if state.moved:
                out = state.scores[active] if active.shape[0] < m else state.scores
                state.columns.add(B[moved], change[moved], out)
                if active.shape[0] < m:
                    state.scores[active] = out
            state.steps += int(taken)
            state.epoch += n / m
            state.kept = B
        state.idle = 0 if state.moved else state.idle + 1
        self._estimate(objective, state)
        if state.worth_evaluating and not state.certify:
            found = self.evaluate(objective, state)
            self.observe(objective, state, found)
            solved = relative_gap(found.primal, found.dual) <= state.target
            state.finished |= solved or found.dual >= objective.trivial_above
        return state

    def _intercepts(self, objective: Objective, state: WorkingSetState) -> "Intercepts":
        """F of the active rows."""
        pieces = state.pieces
        rows = state.active if state.active.shape[0] < state.scores.shape[0] else slice(None)
        sign, target, upper, quadratic = (part[:, rows] for part in pieces)
        a = state.a[:, rows]
        F = sign * (target - quadratic * a) - state.scores[rows]
        if objective.intercept == "penalized":
            F -= coefficients(pieces, state.a).sum()
        below_upper, above_zero = a < upper, a > 0
        up = np.where(np.where(sign > 0, below_upper, above_zero), F, -np.inf).max(axis=0)
        down = np.where(np.where(sign > 0, above_zero, below_upper), F, np.inf).min(axis=0)
        return Intercepts(F, up, down)

    def _choose(self, state: WorkingSetState, excess_up: Vector, excess_down: Vector) -> Vector:
        """The next working set, as places among the active rows; empty if no pair of rows violates optimality."""
        n = excess_up.shape[0]
        size = set_size(self.size, state.scores.shape[0])
        if n <= size:
            return np.arange(n) if state.violation > 0.0 else np.zeros(0, np.int64)
        kept = np.zeros(0, np.int64)
        if state.kept is not None:
            last = state.kept[-(size // 2) :]
            kept = np.searchsorted(state.active, last)
            kept = kept[(kept < n) & (state.active[np.minimum(kept, n - 1)] == last)]
        excess_up[kept] = excess_down[kept] = -np.inf
        half = (size - kept.shape[0]) // 2
        new = np.union1d(largest(excess_up, half), largest(excess_down, half))
        return np.concatenate([kept, new]) if new.size or state.violation > 0.0 else new

    def _gain(
        self, objective: Objective, state: WorkingSetState, B: Vector, before: Vector, change: Vector, K: Vector
    ) -> float:
        """The change of D by the steps on B, before the scores are updated."""
        _, target, _, quadratic = (part[:, B] for part in state.pieces)
        after = state.a[:, B]
        linear = (target * (after - before)).sum() - 0.5 * (quadratic * (after * after - before * before)).sum()
        scores = state.scores[B]
        if objective.intercept == "penalized":
            scores = scores + (coefficients(state.pieces, state.a).sum() - change.sum())
        return float(objective.lam * (linear - inner(change, scores) - 0.5 * inner(change, K @ change)))

    def _estimate(self, objective: Objective, state: WorkingSetState) -> None:
        """P − D from the active rows; decide whether to evaluate, and whether to shrink."""
        F = self._intercepts(objective, state)
        high, low = bounds_of(objective, F)
        state.violation = max(high - low, 0.0)
        if objective.free:
            state.b = float(0.5 * (high + low)) if np.isfinite(high + low) else float(low if np.isfinite(low) else high)
        elif objective.intercept == "penalized":
            state.b = float(coefficients(state.pieces, state.a).sum())
        rows = state.active
        sign, _, upper, quadratic = (part[:, rows] for part in state.pieces)
        a = state.a[:, rows]
        slope = sign * (F.values - (state.b if objective.free else 0.0))  # of D in A
        gap = float(objective.lam * piece_gaps(slope, a, upper, quadratic).sum())
        primal = state.dual + gap
        check_finite(primal)
        state.estimate = 0.0 if state.dual >= objective.trivial_above else relative_gap(primal, state.dual)
        all_active = rows.shape[0] == state.scores.shape[0]
        if all_active:
            state.full_estimate = state.estimate
        goal = READY * state.target if all_active else max(READY * state.target, UNSHRINK * state.full_estimate)
        state.worth_evaluating = state.estimate <= goal or not state.moved
        shrinks = self.shrinking and not state.columns.keeps
        if shrinks and state.estimate <= SHRINK_GAP and not state.worth_evaluating:
            self._shrink(state, F, state.b if objective.free else 0.0)

    def _shrink(self, state: WorkingSetState, F: "Intercepts", b: float) -> None:
        """Leave out the active rows whose F is far from making them move."""
        near = (F.up > b - BAND * state.violation) | (F.down < b + BAND * state.violation)
        n = near.shape[0]
        if 2 * set_size(self.size, n) < np.count_nonzero(near) <= SHRINK * n:
            places = np.flatnonzero(near)
            state.active = state.active[places]
            state.columns = state.columns.restrict(places)

    def evaluate(self, objective: Objective, state: WorkingSetState) -> Evaluation:
        """P and D; s is updated in double precision for the rows whose β has changed since the last certificate."""
        pieces = state.pieces
        beta = coefficients(pieces, state.a)
        scores = updated_scores(objective.data, beta, state.exact_beta, state.exact_scores)
        b = objective.best_intercept(scores, state.b) if objective.free else state.b
        primal = objective.value_at(scores, beta, b)
        dual = dual_value(objective, pieces, state.a, beta, scores)
        return Evaluation(beta, b, primal, dual, details=scores)

    def observe(self, objective: Objective, state: WorkingSetState, evaluation: Evaluation) -> None:
        """Go on from the scores in double precision, with all rows; end if no step was possible since the last ones."""
        state.exact_scores, state.exact_beta = evaluation.details, evaluation.w
        state.scores, state.dual = evaluation.details.copy(), evaluation.dual
        if state.active.shape[0] < state.scores.shape[0]:
            state.active, state.columns = np.arange(state.scores.shape[0]), None
        state.finished = state.idle >= 2

    def iterate(self, objective: Objective, state: WorkingSetState) -> tuple[Vector, float]:
        """(β, b)."""
        return coefficients(state.pieces, state.a), state.b


@dataclass
class Intercepts:
    """F of the active rows."""

    values: Vector  # of each piece
    up: Vector  # the largest F of a row's variables by which β can grow; −inf: none
    down: Vector  # the smallest F of those by which it can fall; inf: none


def set_size(size: int | None, m: int) -> int:
    """Rows of a working set, of m rows; None is the default."""
    return min(max(m // SET_SHARE, LEAST_SIZE), LARGEST_SIZE) if size is None else size


def columns_of(data: Any, active: Vector, cache_bytes: float | None) -> Any:
    """Kernel columns at the active rows, within the memory for them."""
    return data.kernel_columns(
        active, min(CACHE_BYTES, data.nbytes_for_columns) if cache_bytes is None else cache_bytes
    )


def updated_scores(data: Any, beta: Vector, before: Vector, scores: Vector) -> Vector:
    """Kβ in double precision, given K β `before`: only rows whose β has changed are visited, if these are fewer."""
    change = beta - before
    found: Vector = (
        data.scores(beta) if np.count_nonzero(change) >= np.count_nonzero(beta) else scores + data.scores(change)
    )
    return found


def state_at(objective: Objective, alpha: Vector) -> WorkingSetState:
    """A previous state with a given α, to start from."""
    pieces, zero = variables_of(objective), np.zeros(alpha.shape[0])
    scale = objective.data.weight_array() / (objective.lam * objective.total)
    a = np.minimum(np.maximum(pieces.sign * alpha, 0.0) * scale, pieces.upper)
    return WorkingSetState(a, zero, zero, zero, 0.0, np.arange(alpha.shape[0]), pieces)


def variables_of(objective: Objective) -> QuadraticPiece:
    """The variables A of the dual, as pieces in units of Cᵢ; a row without weight has U = 0."""
    data = objective.data
    scale = data.weight_array() / (objective.lam * objective.total)
    pieces = pieces_of(objective.loss, data.to_array(objective.y))
    upper = np.multiply(scale, pieces.upper, out=np.zeros(pieces.upper.shape), where=scale > 0.0)
    quadratic = np.divide(pieces.quadratic, scale, out=np.zeros(pieces.quadratic.shape), where=scale > 0.0)
    return pieces._replace(upper=upper, quadratic=quadratic)


def bounds_of(objective: Objective, F: Intercepts) -> tuple[float, float]:
    """max F by which β can grow, min F by which it can fall; a b that is not free is 0 here."""
    high, low = float(F.up.max()), float(F.down.min())
    return (high, low) if objective.free else (max(high, 0.0), min(low, 0.0))


def coefficients(pieces: QuadraticPiece, a: Vector) -> Vector:
    """β = Σ σ A."""
    found: Vector = (pieces.sign * a).sum(axis=0)
    return found


def dual_value(objective: Objective, pieces: QuadraticPiece, a: Vector, beta: Vector, scores: Vector) -> float:
    """D."""
    values = (a * (pieces.target - 0.5 * pieces.quadratic * a)).sum()
    square = float(inner(beta, scores))
    if objective.intercept == "penalized":
        square += float(beta.sum()) ** 2
    return float(objective.lam * (values - 0.5 * square))


def piece_gaps(slope: Vector, a: Vector, upper: Vector, quadratic: Vector) -> Vector:
    """max over 0 ≤ a' ≤ U of the growth of g(a' − a) − κ/2 (a' − a)², g the slope of D: P − D of each piece.

    Examples
    --------
    >>> piece_gaps(np.array([2.0, -3.0]), np.array([0.5, 0.5]), np.ones(2), np.zeros(2))
    array([1. , 1.5])
    """
    best = np.where(slope > 0.0, upper, 0.0)
    inside = quadratic > 0.0
    best = np.where(inside, np.clip(a + slope / np.where(inside, quadratic, 1.0), 0.0, upper), best)
    step = best - a
    found: Vector = step * (slope - 0.5 * quadratic * step)
    return found


def a_of(values: Vector, rows: Vector) -> Vector:
    """The variables of some rows, piece by piece."""
    return values[:, rows].ravel()


def balanced(objective: Objective, pieces: QuadraticPiece, a: Vector) -> Vector:
    """A with Σ β = ν/λ: the variables on the heavier side shrink; those of a one-class problem may have to grow."""
    positive, negative = (np.where(side, a, 0.0).sum() for side in (pieces.sign > 0, pieces.sign < 0))
    excess = positive - negative - objective.nu / objective.lam
    if excess > 0.0:
        return np.where(pieces.sign > 0, a * (1.0 - excess / positive), a)
    if excess < 0.0 and negative > 0.0:
        return np.where(pieces.sign < 0, a * (1.0 + excess / negative), a)
    if excess < 0.0:
        room = pieces.upper - a
        grown: Vector = a + room * min(-excess / room.sum(), 1.0)
        return grown
    return a


def check_finite(primal: float) -> None:
    """Raise a ValueError if P is NaN or infinity, which a kernel matrix of numbers does not give."""
    if not np.isfinite(primal):
        raise ValueError("the kernel matrix has NaN or infinity, of many rows in single precision: scale the features")


def largest(values: Vector, n: int) -> Vector:
    """The indices of the n largest positive values, or of all if they are fewer."""
    found = np.argpartition(values, -n)[-n:] if n < values.shape[0] else np.arange(values.shape[0])
    return found[values[found] > 0.0]
