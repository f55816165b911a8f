"""∇²Φ of `newton`: kept as a sum over rows, brought up to date by the rows that changed, and its systems solved.

    H = (1/Σc) Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ,    (λI + H) δ = −g,    hᵢ with the weight cᵢ in it

From one step to the next most rows stay where they are, inside or outside, and keep their hᵢ. So H is not summed anew:
rows whose hᵢ has changed by more than a tenth are added with the difference.

H only directs the steps. It is summed in single precision while the rounding is small against λ.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from primalsvm.compiled import kernel
from primalsvm.objective import Problem
from primalsvm.rows import (
    Batch,
    Distant,
    Mixed,
    Rows,
    Vector,
    add,
    fetched,
    inner,
    mix,
    sampled_squared_norms,
    shape,
    total_weight,
    value_dtype,
)

BLOCK = 4096  # rows that are made dense at a time
SINGLE_ENOUGH = 1.0  # rounding of a sum in single precision / λ, up to which it is harmless
CHANGED = 0.1  # of hᵢ: a smaller change is left for later


@dataclass
class Curvature:
    """H, and the hᵢ that it was summed with."""

    squares: Vector | None  # Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ, the lower triangle; None before it is needed
    counted: Vector  # hᵢ
    single: bool  # summed in single precision
    largest: float  # ‖x‖² of a row, about

    @classmethod
    def of(cls, rows: Rows) -> "Curvature":
        """No row counted yet."""
        single = value_dtype(rows) != np.float64
        return cls(None, np.zeros(shape(rows)[0]), single, float(sampled_squared_norms(rows).max()))

    def step(self, problem: Problem, batch: Batch, h: Vector, g: Vector, g_b: float) -> tuple[Vector, float]:
        """−(λI + H)⁻¹ (g, g_b), through the smaller of the two systems; there is a row with hᵢ > 0."""
        inside = np.flatnonzero(h)
        if 2 * inside.shape[0] < g.shape[0]:
            return _step_by_rows(problem, batch, inside, np.sqrt(h[inside] / total_weight(batch)), g, g_b)
        return self._step_by_features(problem, batch, h, g, g_b)

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
            self._add(squares, batch.rows, chosen, np.sqrt(np.abs(change[chosen])), sign)
        self.counted[moved] = h[moved]
        self.squares = squares
        return squares

    def _add(self, squares: Vector, rows: Rows, chosen: Vector, roots: Vector, sign: float) -> None:
        """squares ± Σ roots² (x, 1)(x, 1)ᵀ over the chosen rows, in place."""
        if chosen.shape[0] == 0:
            return
        d = shape(rows)[1]
        precision: Any = np.float32 if self.single else np.float64
        # SciPy's BLAS only: NumPy has another, and the threads of each spin on for a while and take the other's cores
        syrk, gemv = scipy.linalg.blas.get_blas_funcs(("syrk", "gemv"), dtype=precision)
        total = np.zeros((d, d), precision, order="F")
        block = np.empty((min(BLOCK, chosen.shape[0]), d), precision)
        for first in range(0, chosen.shape[0], BLOCK):
            part = block[: min(BLOCK, chosen.shape[0] - first)]
            scale = roots[first : first + BLOCK].astype(precision)
            scaled_rows(rows, chosen[first : first + BLOCK], scale, part)
            total = syrk(1.0, part.T, beta=1.0, c=total, lower=1, overwrite_c=1)
            squares[d, :d] += gemv(sign, part.T, scale)
        squares[:d, :d] += total if sign > 0.0 else -total
        squares[d, d] += sign * float(inner(roots, roots))


def _step_by_rows(
    problem: Problem, batch: Batch, inside: Vector, roots: Vector, g: Vector, g_b: float
) -> tuple[Vector, float]:
    """The same with one equation a row: z = A δ_w + s δ_b,  (I + AAᵀ/λ) z = s δ_b − A g/λ,  μ δ_b + sᵀz = −g_b.

    A are the rows times s = √(hᵢ/Σc).
    """
    lam = problem.lam
    A = np.empty((inside.shape[0], g.shape[0]))
    scaled_rows(batch.rows, inside, roots, A)
    factor = scipy.linalg.cho_factor(np.eye(A.shape[0]) + A @ A.T / lam, overwrite_a=True, check_finite=False)
    z = scipy.linalg.cho_solve(factor, -(A @ g) / lam, check_finite=False)
    step_b = 0.0
    if problem.intercept != "none":
        pulled = scipy.linalg.cho_solve(factor, roots, check_finite=False)
        mu = lam if problem.intercept == "penalized" else 0.0
        step_b = float((-g_b - roots @ z) / (mu + roots @ pulled))
        z = z + step_b * pulled
    return -(g + A.T @ z) / lam, step_b


@kernel
def densify(rows, chosen, scale, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k] = scale[k] · row chosen[k], as dense rows."""
    for k in range(chosen.shape[0]):
        line = out[k]
        line[:] = 0.0
        add(rows, np.uint64(chosen[k]), scale[k], line)


def scaled_rows(rows: Rows, chosen: Vector, scale: Vector, out: Vector) -> None:
    """out[k] = scale[k] · row chosen[k], whatever the rows are."""
    if isinstance(rows, Mixed):
        mix(rows.base.values[chosen] * scale[:, None], rows.mixing, out)
        return
    if isinstance(rows, Distant):
        rows, chosen = fetched(rows, chosen), np.arange(chosen.shape[0])
    densify(rows, chosen, scale, out)
