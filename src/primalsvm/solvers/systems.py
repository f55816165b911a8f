"""Linear systems of second-order solvers, in (w, b).

    M (δ, δ_b) = (g, g_b),    M = λI + Σ kᵢ (xᵢ, 1)(xᵢ, 1)ᵀ,    kᵢ ≥ 0

A penalised b has λ on the diagonal, a free one 0. `by_features` solves them through a Cholesky factor of M, `by_rows`
through that of a matrix with one equation a row. A factor of M is rounded, and may leave out rows that add very little:
`conjugate_gradients` corrects its solutions by passes over the rows instead of the matrix. It also solves systems that
are too large for a factor.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy.linalg

from primalsvm.data import Dataset, Handle, Vector, inner
from primalsvm.objective import Problem

# A solution with one equation a row is refined this many times. Each costs a product, far less than the factorisation.
REFINEMENTS = 2
# The diagonal of ones is raised by n times the first of these with which the factorisation succeeds.
RIDGES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)

Operator: TypeAlias = Callable[[Vector, float], tuple[Vector, float]]  # (g, g_b) ↦ (v, v_b)


def bordered(problem: Problem, data: Dataset, k: Handle) -> Operator:
    """M as a function that multiplies by it, in two passes over the rows."""

    def product(v: Vector, v_b: float) -> tuple[Vector, float]:
        coefficients = data.scores(v)
        total = float(data.reduce(partial(_weigh, v_b), k, coefficients))
        out = problem.lam * v + data.combine(coefficients, weighted=False)
        if problem.intercept == "none":
            return out, v_b
        return out, total + (problem.lam * v_b if problem.intercept == "penalized" else 0.0)

    return product


def _weigh(b: float, k: Vector, scores: Vector) -> float:
    """scores ← kᵢ (scoreᵢ + b); their sum."""
    scores += b
    scores *= k
    return float(scores.sum())


def conjugate_gradients(
    product: Operator, precondition: Operator, g: Vector, g_b: float, accuracy: float, most: int
) -> tuple[Vector, float]:
    """(v, v_b) with M (v, v_b) = (g, g_b), until the preconditioned residual is `accuracy` times as long as at first.

    Examples
    --------
    >>> from primalsvm import Hinge
    >>> from primalsvm.data import as_dataset
    >>> product = bordered(Problem(Hinge(), 1.0), as_dataset(np.eye(2)), np.array([1.0, 3.0]))
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


def by_features(problem: Problem, data: Dataset, k: Handle) -> Operator:
    """M⁻¹ by d + 1 equations."""
    d = data.shape[1]
    matrix = data.gram(k)
    matrix[np.arange(d), np.arange(d)] += problem.lam
    if problem.intercept == "none":
        matrix[d, :], matrix[d, d] = 0.0, 1.0
    elif problem.intercept == "penalized":
        matrix[d, d] += problem.lam
    inverse = factorise(matrix)

    def bordered_inverse(g: Vector, g_b: float) -> tuple[Vector, float]:
        found = inverse(np.append(g, g_b))
        return found[:d], float(found[d])

    return bordered_inverse


def by_rows(problem: Problem, products: Vector, k: Vector) -> Operator:
    """(r, g_b) ↦ (q, δ_b) by one equation a row, for the coefficients q with Σ qᵢ xᵢ = λ δ.

        q/k + K q/λ + δ_b = r,    Σ qᵢ = g_b  (of a penalised b: λ δ_b + g_b),    Kᵢⱼ = ⟨xᵢ, xⱼ⟩

    With q = S z and S = diag(√k) the matrix is I + S K S/λ. Rows with kᵢ = 0 have qᵢ = 0. `products` is the lower
    triangle of K.
    """
    lam, roots = problem.lam, np.sqrt(k)
    n = roots.shape[0]
    matrix = products * (roots[:, None] / lam)
    matrix *= roots
    matrix[np.arange(n), np.arange(n)] += 1.0
    inverse = factorise(matrix)

    def refined(right: Vector) -> Vector:
        """inverse(right), corrected."""
        z = inverse(right)
        for _ in range(REFINEMENTS):
            product = z + roots * scipy.linalg.blas.dsymv(1.0 / lam, products, roots * z, lower=1)
            z = z + inverse(right - product)
        return z

    from_b = refined(roots) if problem.intercept != "none" else roots

    def row_inverse(r: Vector, g_b: float) -> tuple[Vector, float]:
        z = refined(roots * r)
        if problem.intercept == "none":
            return roots * z, 0.0
        own = lam if problem.intercept == "penalized" else 0.0
        step_b = (float(inner(roots, z)) - g_b) / (own + float(inner(roots, from_b)))
        return roots * (z - step_b * from_b), step_b

    return row_inverse


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

    def inverse(x: Vector) -> Vector:
        found: Vector = scale * scipy.linalg.lapack.dpotrs(factor, scale * x, lower=1)[0]
        return found

    return inverse
