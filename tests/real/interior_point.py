"""An independent solver: a primal-dual interior-point method for the hinge loss, in plain NumPy.

    min over β of  ½ ‖Aᵀβ‖²/λ − 1ᵀβ   subject to  0 ≤ β ≤ u,  yᵀβ = 0 with a free intercept
    A = diag(y) X,  u = c/Σc,  w = Aᵀβ/λ

Each step solves (D + AAᵀ/λ) Δβ + y Δb = r through d × d systems (Fine and Scheinberg 2001).
"""

# ruff: noqa: B023  -- the inner functions are used within the step that defines them

import numpy as np
import scipy.linalg


def solve_hinge(X, y, lam, weight, free_intercept, steps=80, accuracy=1e-9):
    """(P, D) of the solution, as two numbers within `accuracy` of each other, relatively."""
    keep = weight > 0
    X, y, u = X[keep], y[keep], weight[keep] / weight.sum()
    A = (X.multiply(y[:, None]).tocsr() if hasattr(X, "multiply") else X * y[:, None]) / np.sqrt(lam)
    beta, s, z = u / 2, np.full_like(u, 1.0), np.full_like(u, 1.0)
    b = 0.0
    best_primal, best_dual = np.inf, -np.inf
    for _ in range(steps):
        w = A.T @ beta
        margins = A @ w + b * y
        primal = 0.5 * w @ w + u @ np.maximum(0.0, 1.0 - margins)
        if not free_intercept or abs(y @ beta) < 1e-12:
            best_dual = max(best_dual, beta.sum() - 0.5 * w @ w)
        best_primal = min(best_primal, primal)
        if best_primal - best_dual <= accuracy * best_primal:
            break
        mu = (s @ beta + z @ (u - beta)) / (2 * len(u))
        residual = 1.0 - margins + s - z  # of the stationarity condition
        diagonal = s / beta + z / (u - beta)
        scaled = _scale(A, 1.0 / diagonal)
        system = np.eye(A.shape[1]) + _dense(A.T @ scaled)
        factor = scipy.linalg.cho_factor(system)

        def inverse(v, diagonal=diagonal, factor=factor):
            t = v / diagonal
            return t - (A @ scipy.linalg.cho_solve(factor, A.T @ t)) / diagonal

        inverse_y = inverse(y)

        def direction(target, correction_s=0.0, correction_z=0.0):
            right = residual + (target - correction_s) / beta - s - (target - correction_z) / (u - beta) + z
            db = 0.0
            step = inverse(right)
            if free_intercept:
                db = (y @ step + y @ beta) / (y @ inverse_y)
                step = step - db * inverse_y
            ds = (target - correction_s) / beta - s - s * step / beta
            dz = (target - correction_z) / (u - beta) - z + z * step / (u - beta)
            return step, db, ds, dz

        def longest(step, ds, dz):
            ratios = [_ratio(beta, step), _ratio(u - beta, -step), _ratio(s, ds), _ratio(z, dz)]
            return min(1.0, 0.995 * min(ratios))

        step, db, ds, dz = direction(0.0)
        t = longest(step, ds, dz)
        ahead = ((s + t * ds) @ (beta + t * step) + (z + t * dz) @ (u - beta - t * step)) / (2 * len(u))
        sigma = (ahead / mu) ** 3
        step, db, ds, dz = direction(sigma * mu, ds * step, -dz * step)
        t = longest(step, ds, dz)
        beta, b, s, z = beta + t * step, b + t * db, s + t * ds, z + t * dz
    return best_primal, best_dual


def _ratio(x, step):
    falling = step < 0
    return np.min(-x[falling] / step[falling], initial=np.inf)


def _scale(A, factors):
    return A.multiply(factors[:, None]).tocsr() if hasattr(A, "multiply") else A * factors[:, None]


def _dense(M):
    return M.toarray() if hasattr(M, "toarray") else M
