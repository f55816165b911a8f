"""Independent truths: the formulas in plain NumPy, and generated problems."""

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from scipy.special import expit, xlogy

from primalsvm.losses import Hinge, Logistic, SmoothedHinge, SquaredHinge
from tests.real.interior_point import solve_hinge

LOSSES = [Hinge(), SquaredHinge(), SmoothedHinge(0.5), Logistic()]


def noisy(m, d, seed=0, flip=0.1):
    """A dense problem with two overlapping classes and unequal shares: (X, y)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d)) / np.sqrt(d)
    y = np.where(X @ rng.normal(size=d) + 0.3 > 0, 1.0, -1.0)
    y[rng.random(m) < flip] *= -1
    return X, y


def sparse_noisy(m, d, seed=0, density=0.3):
    """The same with CSR rows."""
    X, y = noisy(m, d, seed)
    X[np.random.default_rng(seed + 1).random(X.shape) >= density] = 0.0
    return sp.csr_matrix(X), y


def weights(m, seed=0):
    """Positive weights that are no round numbers, with one zero."""
    c = np.random.default_rng(seed).uniform(0.2, 3.0, size=m)
    c[m // 2] = 0.0
    return c


def loss_values(loss, p, y):
    z = y * p
    if isinstance(loss, Hinge):
        return np.maximum(0, 1 - z)
    if isinstance(loss, SquaredHinge):
        return np.maximum(0, 1 - z) ** 2
    if isinstance(loss, SmoothedHinge):
        g = loss.gamma
        return np.select([z >= 1, z > 1 - g], [0 * z, (1 - z) ** 2 / (2 * g)], 1 - z - g / 2)
    return np.logaddexp(0, -z)


def loss_slopes(loss, p, y):
    z = y * p
    if isinstance(loss, Hinge):
        return -y * (z < 1)
    if isinstance(loss, SquaredHinge):
        return -2 * y * np.maximum(0, 1 - z)
    if isinstance(loss, SmoothedHinge):
        return -y * np.clip((1 - z) / loss.gamma, 0, 1)
    return -y * expit(-z)


def dual_values(loss, alpha, y):
    """−ℓ*(−α) for feasible α = yθ."""
    theta = y * alpha
    if isinstance(loss, Hinge):
        return theta
    if isinstance(loss, SquaredHinge):
        return theta - theta**2 / 4
    if isinstance(loss, SmoothedHinge):
        return theta - loss.gamma * theta**2 / 2
    return -xlogy(theta, theta) - xlogy(1 - theta, 1 - theta)


def primal(problem, X, y, w, b=0.0, c=None):
    """P(w, b)."""
    c = np.ones(len(y)) if c is None else c
    norm = w @ w + (b * b if problem.intercept == "penalized" else 0.0)
    return problem.lam / 2 * norm + c @ loss_values(problem.loss, X @ w + b, y) / c.sum()


def subgradient(problem, X, y, w, b=0.0, c=None):
    """(∂P/∂w, ∂P/∂b)."""
    c = np.ones(len(y)) if c is None else c
    slopes = c * loss_slopes(problem.loss, X @ w + b, y) / c.sum()
    in_b = slopes.sum() + (problem.lam * b if problem.intercept == "penalized" else 0.0)
    return problem.lam * w + X.T @ slopes, 0.0 if problem.intercept == "none" else in_b


def dual(problem, X, y, alpha, c=None):
    """D(α); −inf where a free intercept forbids α."""
    c = np.ones(len(y)) if c is None else c
    w = X.T @ (c * alpha) / (problem.lam * c.sum())
    norm = w @ w
    if problem.intercept == "penalized":
        norm += (c @ alpha / (problem.lam * c.sum())) ** 2
    if problem.intercept == "free" and abs(c @ alpha) > 1e-9 * c.sum():
        return -np.inf
    return c @ dual_values(problem.loss, alpha, y) / c.sum() - problem.lam / 2 * norm


def minimum(problem, X, y, c=None):
    """P* of a smooth loss, by a quasi-Newton method on (w, b)."""
    d = X.shape[1]

    def both(point):
        in_w, in_b = subgradient(problem, X, y, point[:d], point[d], c)
        return primal(problem, X, y, point[:d], point[d], c), np.append(in_w, in_b)

    options = {"maxiter": 10_000, "ftol": 0.0, "gtol": 1e-11, "maxcor": 50}
    return scipy.optimize.minimize(both, np.zeros(d + 1), jac=True, method="L-BFGS-B", options=options).fun


# ---- rankings, pair by pair ------------------------------------------------------------------------------------------


def pairs(y, q, c, average="queries"):
    """(i, j, s_q cᵢ cⱼ) of all pairs of one query with yᵢ > yⱼ and a positive weight."""
    i, j = np.nonzero((y[:, None] > y[None, :]) & (q[:, None] == q[None, :]) & (np.outer(c, c) > 0))
    cc = c[i] * c[j]
    if average == "queries":
        cc = cc / np.bincount(q[i], cc)[q[i]] if cc.size else cc
    return i, j, cc


def ranking_primal(lam, X, y, q, c, w, average="queries"):
    """λ/2 ‖w‖² + the mean hinge over pairs, or over queries the mean of their pairs."""
    i, j, cc = pairs(y, q, c, average)
    return lam / 2 * w @ w + cc @ np.maximum(0, 1 - (X[i] - X[j]) @ w) / cc.sum()


def ranking_minimum(lam, X, y, q, c, average="queries"):
    """(D, P) on both sides of P*, within 1e-8 of each other: all pairs, by an interior-point method."""
    i, j, cc = pairs(y, q, c, average)
    upper, lower = solve_hinge(X[i] - X[j], np.ones(len(i)), lam, cc, free_intercept=False)
    assert upper - lower <= 1e-8 * upper
    return lower, upper


def relevant(m, d, queries, levels=5, seed=0):
    """A ranking problem with noise: (X, y, q); levels=None: all relevances differ."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, d))
    q = rng.integers(queries, size=m)
    z = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=m) + 0.3 * rng.normal(size=queries)[q]
    y = z if levels is None else np.digitize(z, np.quantile(z, np.arange(1, levels) / levels)).astype(float)
    return X, y, q
