"""Decomposition for ν-problems: working sets as in `working_sets`, with pairs of one side (`nu_smo`).

    F = t − s,   s = Kβ,   A ≥ 0 for each side of each row, Σ A = ν/(2λ) on each side
    repeat:
        B = half of the last working set, and the rows that violate optimality most: in equal numbers those by which β
            should grow and those by which it should fall, of either side
        minimise over A_B by pair steps within the sides, with K_BB
        s ← s + K_B Δβ_B,   D ← D + its change
        P − D ≤ λ Σ of the gaps of the variables at the levels b ± δ between the F of each side

The optimality conditions are those of Chang and Lin 2001. Columns in single precision only steer; a certificate updates
s by kernel values in double precision for the rows whose β has changed since the last one.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Vector, inner
from primalsvm.losses.base import QuadraticPiece
from primalsvm.nu_problem import Levels, NuObjective
from primalsvm.objective import Evaluation
from primalsvm.options import check_integer
from primalsvm.solution import relative_gap
from primalsvm.solvers.nu_smo import permuted, side_steps
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.working_sets import (
    INNER,
    INNER_OF_ALL,
    READY,
    STEPS_PER_VARIABLE,
    a_of,
    check_finite,
    coefficients,
    columns_of,
    largest,
    piece_gaps,
    set_size,
    updated_scores,
)

NO_LEVELS = Levels(0.0, 0.0)
# The least size that a user may ask for: half of a set are rows of the last one, and an eighth new rows of each
# direction of each side.
LEAST_GIVEN = 8


@dataclass
class NuState(SolverState):
    """The state between two working sets. Arrays of variables have a row per side and a column per sample."""

    a: Vector  # A, in units of Cᵢ = cᵢ/(λ Σc)
    scores: Vector  # s = Kβ
    exact_beta: Vector  # β at the last certificate
    exact_scores: Vector  # its s, in double precision
    dual: float  # D
    pieces: QuadraticPiece  # of the variables
    certify: bool
    levels: Levels = NO_LEVELS
    kept: Vector | None = None  # the last working set, the latest rows last
    columns: Any = field(default=None, init=False)  # of the kernel matrix; None: not made yet
    moved: bool = False  # whether the last working set has changed anything
    idle: int = 0  # working sets in a row that have changed nothing, each with a certificate after it

    def release(self) -> None:
        """Drop what can be computed again."""
        self.columns = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "columns": None}


@dataclass(frozen=True)
class NuWorkingSets:
    """Working sets for `NuObjective`; `w` is the vector of coefficients β, of a classifier divided by ρ.

    Parameters
    ----------
    size : rows of a working set; None: as `WorkingSets`
    cache_bytes : memory for kernel columns; None: 4 GB, or what the data set may use
    """

    size: int | None = None
    cache_bytes: float | None = None
    name: ClassVar[str] = "nu_working_sets"
    traits: ClassVar[Traits] = Traits("passes", precise=True, intercepts=("free",))

    def __post_init__(self) -> None:
        check_integer("size", self.size, LEAST_GIVEN, none=True)

    def start(self, objective: NuObjective, run: Run, previous: Any = None) -> NuState:
        """On each side the first rows share ν/(2λ), as in LIBSVM."""
        if not isinstance(objective, NuObjective):
            raise ValueError("NuWorkingSets is for the problems of NuSVC and NuSVR")
        pieces = objective.variables
        a = np.zeros(pieces.sign.shape)
        for side in (pieces.sign > 0, pieces.sign < 0):
            upper = np.where(side, pieces.upper, 0.0).ravel()
            before = np.cumsum(upper) - upper
            a += np.clip(objective.nu / (2.0 * objective.lam) - before, 0.0, upper).reshape(a.shape)
        beta = coefficients(pieces, a)
        scores = objective.data.scores(beta)
        dual = objective.dual_value(beta, scores)
        return NuState(a, scores.copy(), beta, scores, dual, pieces, run.certify, target=run.target)

    def advance(self, objective: NuObjective, state: NuState) -> NuState:
        """One working set."""
        data, pieces = objective.data, state.pieces
        m = data.shape[0]
        if state.columns is None:
            state.columns = columns_of(data, np.arange(m), self.cache_bytes)
        sides = sides_of(state)
        violation = max(side.violation for side in sides)
        state.kept, state.moved = self._choose(state, sides, violation), False
        B, K = ordered(pieces, state.kept, state.columns)
        J, n = pieces.sign.shape[0], B.shape[0]
        if n:
            part, own_sign = a_of(state.a, B), a_of(pieces.sign, B)
            before = part.copy()
            row = None if J == 1 else np.tile(np.arange(n), J)
            F = (pieces.target[:, B] - state.scores[B]).ravel()
            least = (INNER if n < m else INNER_OF_ALL) * violation
            taken = side_steps(K, row, own_sign, a_of(pieces.upper, B), part, F, least, STEPS_PER_VARIABLE * J * n)
            change = (own_sign * (part - before)).reshape(J, n).sum(axis=0)
            linear = float((pieces.target[:, B].ravel() * own_sign) @ (part - before))
            quadratic = inner(change, state.scores[B]) + 0.5 * inner(change, K @ change)
            state.a[:, B] = part.reshape(J, n)
            state.dual += objective.lam * (linear - quadratic)
            moved = np.flatnonzero(change)
            state.moved = moved.size > 0
            if state.moved:
                state.columns.add(B[moved], change[moved], state.scores)
            state.steps += int(taken)
            state.epoch += n / m
        state.idle = 0 if state.moved else state.idle + 1
        self._estimate(objective, state)
        return state

    def _choose(self, state: NuState, sides: "tuple[Side, Side]", violation: float) -> Vector:
        """The numbers of the rows of the next working set; none if no pair of one side violates optimality."""
        m = state.scores.shape[0]
        if not violation > 0.0:
            return np.zeros(0, np.int64)
        size = set_size(self.size, m)
        if m <= size:
            return np.arange(m)
        kept = np.zeros(0, np.int64) if state.kept is None else state.kept[-(size // 2) :]
        new = np.zeros(0, np.int64)
        for side in sides:
            for excess in (side.up - side.low, side.high - side.down):
                excess[kept] = -np.inf
                new = np.union1d(new, largest(excess, (size - kept.shape[0]) // 4))
        return np.concatenate([kept, new])

    def _estimate(self, objective: NuObjective, state: NuState) -> None:
        """P − D at the levels between the F of each side; decide whether to evaluate."""
        sign, target, upper, quadratic = state.pieces
        positive, negative = sides_of(state)
        state.levels = Levels(positive.level, negative.level)
        slope = sign * (target - state.scores - np.where(sign > 0, positive.level, negative.level))
        gap = objective.lam * float(piece_gaps(slope, state.a, upper, quadratic).sum())
        check_finite(state.dual + gap)
        trivial = state.dual >= objective.trivial_above
        estimate = 0.0 if trivial else relative_gap(state.dual + gap, state.dual)
        state.worth_evaluating = estimate <= READY * state.target or not state.moved
        state.finished |= not state.certify and state.worth_evaluating

    def evaluate(self, objective: NuObjective, state: NuState) -> Evaluation:
        """P and D; s is updated in double precision for the rows whose β has changed since the last certificate."""
        beta = coefficients(state.pieces, state.a)
        scores = updated_scores(objective.data, beta, state.exact_beta, state.exact_scores)
        dual = objective.dual_value(beta, scores)
        levels = NO_LEVELS if dual >= objective.trivial_above else objective.best_levels(scores)
        w, scores_of_w, b = objective.point(beta, scores, levels)
        return Evaluation(w, b, objective.value_at(scores_of_w, w, b), dual, details=(beta, scores))

    def observe(self, objective: NuObjective, state: NuState, evaluation: Evaluation) -> None:
        """Go on from the scores in double precision; end if no step was possible since the last ones."""
        state.exact_beta, state.exact_scores = evaluation.details
        state.scores, state.dual = state.exact_scores.copy(), evaluation.dual
        state.finished = state.idle >= 2

    def iterate(self, objective: NuObjective, state: NuState) -> tuple[Vector, float]:
        """(β, b)."""
        w, _, b = objective.point(coefficients(state.pieces, state.a), state.scores, state.levels)
        return w, b


@dataclass
class Side:
    """F of the variables of one side; of a row without one, up is −inf and down is inf."""

    up: Vector  # F of those by which β can grow; −inf: none
    down: Vector  # F of those by which β can fall; inf: none

    @property
    def high(self) -> float:
        """The largest F by which β can grow."""
        return float(self.up.max())

    @property
    def low(self) -> float:
        """The smallest F by which β can fall."""
        return float(self.down.min())

    @property
    def violation(self) -> float:
        """How far the side is from optimal."""
        return max(self.high - self.low, 0.0)

    @property
    def level(self) -> float:
        """The middle of the two; where all variables are at the same bound, the one that there is."""
        high, low = self.high, self.low
        if np.isfinite(high) and np.isfinite(low):
            return 0.5 * (high + low)
        return low if np.isfinite(low) else high


def sides_of(state: NuState) -> tuple[Side, Side]:
    """The positive and the negative side."""
    sign, target, upper, _ = state.pieces
    F = target - state.scores
    positive = sign > 0
    grows = np.where(positive, state.a < upper, state.a > 0.0)
    falls = np.where(positive, state.a > 0.0, state.a < upper)

    def side(own: Vector) -> Side:
        up = np.where(own & grows, F, -np.inf).max(axis=0)
        return Side(up, np.where(own & falls, F, np.inf).min(axis=0))

    return side(positive), side(~positive)


def ordered(pieces: QuadraticPiece, rows: Vector, columns: Any) -> tuple[Vector, Vector]:
    """The rows of a working set and their kernel matrix, those of the positive side first."""
    K = columns.between(rows)
    if pieces.sign.shape[0] > 1:  # every row has both sides, the positive one first
        return rows, K
    order = np.argsort(-pieces.sign[0, rows], kind="stable")
    return rows[order], permuted(K, order)
