"""∇²Φ of `newton`: kept as a sum over rows, brought up to date by the rows that changed, and its systems solved.

    H = (1/Σc) Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ,    (λI + H) δ = −g,    hᵢ with the weight cᵢ in it

From one step to the next most rows stay where they are, inside or outside, and keep their hᵢ. So H is not summed anew:
rows whose hᵢ has changed by more than a tenth are added with the difference.

H only directs the steps. It is summed in single precision while the rounding is small against λ. Where neither the
features nor the rows inside are few enough for a factorisation, conjugate gradients solve the systems, roughly.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from primalsvm.grams import add_diagonal, add_squares, row_products
from primalsvm.objective import Problem
from primalsvm.rows import (
    Batch,
    Rows,
    Vector,
    fetched,
    sampled_squared_norms,
    shape,
    total_weight,
    value_dtype,
)
from primalsvm.solvers import costs
from primalsvm.solvers.costs import LARGEST_FACTOR, PRODUCTS
from primalsvm.solvers.systems import Bordered, combination, conjugate_gradients, factorise
from primalsvm.team import Team

SINGLE_ENOUGH = 1.0  # rounding of a sum in single precision / λ, up to which it is harmless
CHANGED = 0.1  # of hᵢ: a smaller change is left for later
ROUGHLY = 0.05  # relative residual of a system that is solved by conjugate gradients
COPIED_SHARE = 0.5  # of the rows: if fewer are inside, they are copied for these steps


@dataclass
class Curvature:
    """H, and the hᵢ that it was summed with."""

    squares: Vector | None  # Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ, the lower triangle; None before it is needed
    counted: Vector  # hᵢ
    single: bool  # summed in single precision
    largest: float  # ‖x‖² of a row, about
    operations: float = 0.0  # since they were last taken

    @classmethod
    def of(cls, rows: Rows) -> "Curvature":
        """No row counted yet."""
        single = value_dtype(rows) != np.float64
        return cls(None, np.zeros(shape(rows)[0]), single, float(sampled_squared_norms(rows).max()))

    def step(
        self, problem: Problem, batch: Batch, h: Vector, g: Vector, g_b: float, team: Team
    ) -> tuple[Vector, float]:
        """−(λI + H)⁻¹ (g, g_b), through the smaller of the two systems; there is a row with hᵢ > 0."""
        inside, d = np.flatnonzero(h), g.shape[0]
        few_rows, few_features = inside.shape[0] <= LARGEST_FACTOR, d + 1 <= LARGEST_FACTOR
        if few_rows and (2 * inside.shape[0] < d or not few_features):
            self.operations += costs.row_system(costs.Size.of(batch.rows), inside.shape[0])
            return _step_by_rows(problem, batch, inside, np.sqrt(h[inside] / total_weight(batch)), g, g_b, team)
        if few_features:
            self.operations += costs.factorisation(d)
            return self._step_by_features(problem, batch, h, g, g_b)
        self.operations += 2.0 * PRODUCTS * costs.one_pass(costs.Size.of(batch.rows))
        return _rough_step(problem, batch, inside, h, g, g_b, team)

    def _step_by_features(
        self, problem: Problem, batch: Batch, h: Vector, g: Vector, g_b: float
    ) -> tuple[Vector, float]:
        """Solve the d + 1 equations."""
        d, total = g.shape[0], total_weight(batch)
        size = float(h.sum()) / total * (self.largest + 1.0)  # of the trace, at most
        if self.single and np.finfo(np.float32).eps * size > SINGLE_ENOUGH * problem.lam:
            self._forget(single=False)
        for ridge in (0.0, 1e-14, 1e-10):
            hessian = self._updated(batch, h) / total
            hessian[np.arange(d), np.arange(d)] += problem.lam
            if problem.intercept == "none":
                hessian[d, :d] = 0.0
            hessian[d, d] += {"none": 1.0, "penalized": problem.lam, "free": 0.0}[problem.intercept]
            hessian[np.arange(d + 1), np.arange(d + 1)] *= 1.0 + ridge
            try:
                factor = scipy.linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:  # rounding: again with less of it, and with more on the diagonal
                self._forget(single=False)
                continue
            step = -scipy.linalg.cho_solve(factor, np.append(g, g_b), check_finite=False)
            return step[:d], float(step[d])
        return -g / problem.lam, 0.0

    def take_operations(self) -> float:
        """The operations since the last time."""
        operations, self.operations = self.operations, 0.0
        return operations

    def _forget(self, single: bool) -> None:
        self.squares = None
        self.counted[:] = 0.0
        self.single = single

    def _updated(self, batch: Batch, h: Vector) -> Vector:
        """The squares, after counting the rows that changed; or all anew, if those are fewer."""
        change = h - self.counted
        moved = np.abs(change) > CHANGED * np.maximum(h, self.counted)
        if np.count_nonzero(moved) > np.count_nonzero(h):
            self._forget(self.single)
            change, moved = h, h > 0.0
        d = shape(batch.rows)[1]
        squares = np.zeros((d + 1, d + 1), order="F") if self.squares is None else self.squares
        for sign in (1.0, -1.0):
            chosen = np.flatnonzero(moved & (sign * change > 0.0))
            precision: Any = np.float32 if self.single else np.float64
            add_squares(squares, batch.rows, chosen, np.sqrt(np.abs(change[chosen])), sign, precision)
            self.operations += costs.squares(costs.Size.of(batch.rows)) * chosen.shape[0] / h.shape[0]
        self.counted[moved] = h[moved]
        self.squares = squares
        return squares


def _step_by_rows(
    problem: Problem, batch: Batch, inside: Vector, roots: Vector, g: Vector, g_b: float, team: Team
) -> tuple[Vector, float]:
    """The same with one equation a row: z = A δ_w + s δ_b,  (I + AAᵀ/λ) z = s δ_b − A g/λ,  μ δ_b + sᵀz = −g_b.

    A are the rows inside times s = √(hᵢ/Σc).
    """
    lam = problem.lam
    rows, among, every = batch.rows, inside, np.arange(inside.shape[0])
    if inside.shape[0] <= COPIED_SHARE * batch.y.shape[0]:
        rows, among = fetched(rows, inside), every
    matrix = row_products(rows, among)
    matrix *= roots[:, None] / lam
    matrix *= roots
    matrix[every, every] += 1.0
    solve = factorise(matrix)
    z = solve(-roots * team.scores(rows, g)[among] / lam)
    step_b = 0.0
    if problem.intercept != "none":
        pulled = solve(roots)
        mu = lam if problem.intercept == "penalized" else 0.0
        step_b = float((-g_b - roots @ z) / (mu + roots @ pulled))
        z = z + step_b * pulled
    coefficients = np.zeros(shape(rows)[0])
    coefficients[among] = roots * z
    return -(g + combination(rows, coefficients, team)) / lam, step_b


def _rough_step(
    problem: Problem, batch: Batch, inside: Vector, h: Vector, g: Vector, g_b: float, team: Team
) -> tuple[Vector, float]:
    """The same by conjugate gradients, with M's diagonal as preconditioner."""
    rows, k = batch.rows, h / total_weight(batch)
    if inside.shape[0] <= COPIED_SHARE * h.shape[0]:
        rows, k = fetched(rows, inside), k[inside]
    diagonal = np.full(g.shape[0], problem.lam)
    add_diagonal(diagonal, rows, k)
    corner = {"none": 1.0, "penalized": problem.lam + k.sum(), "free": k.sum()}[problem.intercept]
    return conjugate_gradients(
        Bordered(problem, rows, k, team),
        lambda r, r_b: (r / diagonal, r_b / corner), -g, -g_b, ROUGHLY, PRODUCTS,
    )  # fmt: skip
