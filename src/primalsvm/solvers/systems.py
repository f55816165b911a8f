"""Linear systems of second-order solvers, in (w, b).

    M (δ, δ_b) = (g, g_b),    M = λI + Σ kᵢ (xᵢ, 1)(xᵢ, 1)ᵀ,    kᵢ ≥ 0

A penalised b has λ on the diagonal, a free one 0. `by_features` solves them through a Cholesky factor of M, `RowSystem`
through that of a matrix with one equation a row. A factor of M is rounded, and may leave out rows that add very little:
`conjugate_gradients` corrects its solutions by passes over the rows instead of the matrix. It also solves systems that
are too large for a factor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from primalsvm.data import Dataset, Handle, Vector, inner
from primalsvm.objective import Problem

# A solution with one equation a row is refined this many times. Each costs a product, far less than the factorisation.
REFINEMENTS = 2
# The diagonal of ones is raised by n times the first of these with which the factorisation succeeds.
RIDGES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)

Solve = Callable[[Vector, float], tuple[Vector, float]]


@dataclass(frozen=True)
class Bordered:
    """M as a function that multiplies by it, in two passes over the rows. k is a handle."""

    problem: Problem
    data: Dataset
    k: Handle

    def __call__(self, v: Vector, v_b: float) -> tuple[Vector, float]:
        """M (v, v_b)."""
        lam, coefficients = self.problem.lam, self.data.scores(v)
        total = float(self.data.reduce(partial(_weigh, v_b), self.k, coefficients))
        out = lam * v + self.data.combine(coefficients, weighted=False)
        if self.problem.intercept == "none":
            return out, v_b
        return out, total + (lam * v_b if self.problem.intercept == "penalized" else 0.0)


def _weigh(b: float, k: Vector, scores: Vector) -> float:
    """scores ← kᵢ (scoreᵢ + b); their sum."""
    scores += b
    scores *= k
    return float(scores.sum())


def conjugate_gradients(
    product: Bordered, precondition: Solve, g: Vector, g_b: float, accuracy: float, most: int
) -> tuple[Vector, float]:
    """(v, v_b) with M (v, v_b) = (g, g_b), until the preconditioned residual is `accuracy` times as long as at first.

    Examples
    --------
    >>> from primalsvm import Hinge
    >>> from primalsvm.data import as_dataset
    >>> product = Bordered(Problem(Hinge(), 1.0), as_dataset(np.eye(2)), np.array([1.0, 3.0]))
    >>> conjugate_gradients(product, lambda g, g_b: (g, g_b), np.array([2.0, 8.0]), 0.0, 1e-12, 9)[0]
    array([1., 2.])
    """
    v, v_b = np.zeros_like(g), 0.0
    r, r_b = g, g_b
    z, z_b = precondition(r, r_b)
    p, p_b = z, z_b
    size = first = float(inner(r, z)) + r_b * z_b
    for _ in range(most):
        if not size > accuracy * accuracy * first:
            break
        q, q_b = product(p, p_b)
        curvature = float(inner(p, q)) + p_b * q_b
        if not curvature > 0.0:
            break
        t = size / curvature
        v, v_b = v + t * p, v_b + t * p_b
        r, r_b = r - t * q, r_b - t * q_b
        z, z_b = precondition(r, r_b)
        last, size = size, float(inner(r, z)) + r_b * z_b
        p, p_b = z + (size / last) * p, z_b + (size / last) * p_b
    return v, v_b


def by_features(problem: Problem, data: Dataset, k: Handle) -> Solve:
    """M⁻¹ by d + 1 equations."""
    d = data.shape[1]
    matrix = data.gram(k)
    matrix[np.arange(d), np.arange(d)] += problem.lam
    if problem.intercept == "none":
        matrix[d, :], matrix[d, d] = 0.0, 1.0
    elif problem.intercept == "penalized":
        matrix[d, d] += problem.lam
    inverse = factorise(matrix)

    def solve(g: Vector, g_b: float) -> tuple[Vector, float]:
        found = inverse(np.append(g, g_b))
        return found[:d], float(found[d])

    return solve


@dataclass(frozen=True)
class RowSystem:
    """One equation a row, for the coefficients q with Σ qᵢ xᵢ = λ δ.

        q/k + K q/λ + δ_b = r,    Σ qᵢ = g_b  (of a penalised b: λ δ_b + g_b),    Kᵢⱼ = ⟨xᵢ, xⱼ⟩

    With q = S z and S = diag(√k) the matrix is I + S K S/λ. Rows with kᵢ = 0 have qᵢ = 0.
    """

    problem: Problem
    products: Vector  # K, the lower triangle
    k: Vector

    def solver(self) -> Callable[[Vector, float], tuple[Vector, float]]:
        """(r, g_b) ↦ (q, δ_b)."""
        lam, roots = self.problem.lam, np.sqrt(self.k)
        n = roots.shape[0]
        matrix = self.products * (roots[:, None] / lam)
        matrix *= roots
        matrix[np.arange(n), np.arange(n)] += 1.0
        inverse = factorise(matrix)

        def product(z: Vector) -> Vector:
            found: Vector = z + roots * scipy.linalg.blas.dsymv(1.0 / lam, self.products, roots * z, lower=1)
            return found

        def exact(right: Vector) -> Vector:
            """inverse(right), corrected."""
            z = inverse(right)
            for _ in range(REFINEMENTS):
                z = z + inverse(right - product(z))
            return z

        from_b = exact(roots) if self.problem.intercept != "none" else roots

        def solve(r: Vector, g_b: float) -> tuple[Vector, float]:
            z = exact(roots * r)
            if self.problem.intercept == "none":
                return roots * z, 0.0
            own = lam if self.problem.intercept == "penalized" else 0.0
            step_b = (float(inner(roots, z)) - g_b) / (own + float(inner(roots, from_b)))
            return roots * (z - step_b * from_b), step_b

        return solve


def factorise(matrix: Vector) -> Callable[[Vector], Vector]:
    """x ↦ matrix⁻¹ x, of a positive definite matrix whose lower triangle is given; it is overwritten.

    The diagonal is scaled to ones first, so that the units of features do not matter; then it gets the smallest
    ridge with which the factorisation succeeds.

    Examples
    --------
    >>> factorise(np.array([[4.0, 0.0], [0.0, 1e-20]]))(np.array([4.0, 1e-20])).round(9)
    array([1., 1.])
    """
    n = matrix.shape[0]
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    matrix *= scale[:, None]
    matrix *= scale
    for ridge in RIDGES:
        matrix[np.arange(n), np.arange(n)] = 1.0 + ridge * n
        factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
        if not failed:
            break
    else:
        raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(x: Vector) -> Vector:
        found: Vector = scale * scipy.linalg.lapack.dpotrs(factor, scale * x, lower=1)[0]
        return found

    return solve
