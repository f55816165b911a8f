"""Regressions, solved by every solver: the optimum is that of independent methods, the certificate a proof of it."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

from primalsvm import (
    Asset,
    DualAscent,
    EpsilonInsensitive,
    Huber,
    Newton,
    Pegasos,
    Pinball,
    Problem,
    SquaredEpsilonInsensitive,
    solve,
)
from tests import helpers
from tests.losses.test_regression import formula

RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 4))
Y = X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.7 + RNG.standard_t(3, size=80)
WEIGHT = RNG.integers(0, 4, size=80).astype(float)
LOSSES = [EpsilonInsensitive(0.2), SquaredEpsilonInsensitive(0.1), Huber(0.8), Pinball(0.3), Pinball(0.5)]
INTERCEPTS = ["none", "penalized", "free"]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
each_intercept = pytest.mark.parametrize("intercept", INTERCEPTS)


def objective(problem, w, b, c=None):
    c = np.ones(len(Y)) if c is None else c
    norm = w @ w + (b * b if problem.intercept == "penalized" else 0.0)
    return problem.lam / 2 * norm + c @ formula(problem.loss, X @ w + b, Y) / c.sum()


def optimum(problem, c=None):
    """P* by SciPy on the dual: a smooth concave function of α = α⁺ − α⁻ in a box, with Σ cα = 0 if b is free."""
    m, loss = len(Y), problem.loss
    c = np.ones(m) if c is None else c
    Z = np.hstack([X, np.ones((m, 1))]) if problem.intercept == "penalized" else X
    # −ℓ*(−α) = αy − ε(α⁺ + α⁻) − κ/2 α²,  α⁺ ≤ top,  α⁻ ≤ bottom
    epsilon = getattr(loss, "epsilon", 0.0)
    bend = {SquaredEpsilonInsensitive: 0.5, Huber: 1.0}.get(type(loss), 0.0)
    top, bottom = {
        EpsilonInsensitive: (1.0, 1.0),
        SquaredEpsilonInsensitive: (100.0, 100.0),
        Huber: (getattr(loss, "delta", 0), getattr(loss, "delta", 0)),
        Pinball: (getattr(loss, "tau", 0), 1 - getattr(loss, "tau", 0)),
    }[type(loss)]

    def negative(both):
        a = both[:m] - both[m:]
        w = Z.T @ (c * a) / (problem.lam * c.sum())
        value = c @ (a * Y - epsilon * (both[:m] + both[m:]) - bend / 2 * a**2) / c.sum() - problem.lam / 2 * w @ w
        in_a = c * (Y - bend * a - Z @ w) / c.sum()
        return -value, -np.concatenate([in_a - epsilon * c / c.sum(), -in_a - epsilon * c / c.sum()])

    bounds = [(0, top)] * m + [(0, bottom)] * m
    constraints = [LinearConstraint(np.concatenate([c, -c]) / c.sum(), 0, 0)] if problem.intercept == "free" else []
    with threadpool_limits(1):  # matrices this small are no work for threads, which take minutes to find out
        found = minimize(
            negative, np.full(2 * m, 0.01), jac=True, bounds=bounds, constraints=constraints,
            method="SLSQP", options={"ftol": 1e-15, "maxiter": 2000},
        )  # fmt: skip
    return -found.fun


@each_loss
@each_intercept
@pytest.mark.parametrize("solver", [DualAscent(), Newton()], ids=["ascent", "newton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_precise_solvers_reach_the_optimum(loss, intercept, solver, weighted):
    problem, c = Problem(loss, 0.05, intercept), WEIGHT if weighted else None
    found = solve(problem, X, Y, sample_weight=c, solver=solver, max_iter=20_000)
    assert found.certificate.relative_gap <= 1e-9, found.message
    assert found.certificate.primal == pytest.approx(objective(problem, found.w, found.b, c), rel=1e-12)
    assert found.certificate.primal == pytest.approx(optimum(problem, c), rel=1e-6)


@each_loss
@each_intercept
@pytest.mark.parametrize("solver", [Pegasos(), Asset()], ids=["pegasos", "asset"])
def test_stochastic_solvers_come_near(loss, intercept, solver):
    problem = Problem(loss, 0.05, intercept)
    found = solve(problem, X, Y, solver=solver, tol=0.05, max_iter=3000)
    best = optimum(problem)
    assert found.certificate.relative_gap <= 0.05, found.message
    assert found.certificate.dual <= best * (1 + 1e-6) and objective(problem, found.w, found.b) <= 1.06 * best


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_epsilon_insensitive_is_libsvm_s(C):
    theirs = SVR(kernel="linear", C=C, epsilon=0.2, tol=1e-10).fit(X, Y)
    problem = Problem(EpsilonInsensitive(0.2), 1 / (C * len(Y)), "free")
    ours = solve(problem, X, Y)
    at_theirs = objective(problem, theirs.coef_.ravel(), float(theirs.intercept_[0]))
    assert ours.certificate.primal == pytest.approx(at_theirs, rel=1e-7)
    np.testing.assert_allclose(ours.w, theirs.coef_.ravel(), atol=1e-4)


@each_loss
def test_weights_are_repetitions(loss):
    problem = Problem(loss, 0.05, "free")
    times = WEIGHT.astype(int)
    repeated = solve(problem, np.repeat(X, times, axis=0), np.repeat(Y, times))
    weighted = solve(problem, X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-6)


@each_loss
@each_intercept
def test_the_ball_holds_the_optimum(loss, intercept):
    problem = Problem(loss, 1e-3, intercept)
    posed = helpers.objective(problem, X, Y)
    assert posed.bounds.at_zero == pytest.approx(float(np.mean(formula(loss, 0.0, Y))))
    assert np.linalg.norm(solve(problem, X, Y).w) <= posed.radius
    assert posed.bounds.largest == np.abs(Y).max()


@pytest.mark.parametrize("loss", [Pinball(0.3), Pinball(0.9), Huber(0.3), Huber(0.7)], ids=repr)
@pytest.mark.parametrize("kind", [Pegasos, Asset])
def test_means_of_slopes_in_single_precision_are_feasible(kind, loss):
    found = solve(Problem(loss, 0.05), X, Y, solver=kind(n_iter=20_000))
    assert np.isfinite(found.certificate.dual)


def test_a_pinball_s_constant_is_the_quantile():
    found = solve(Problem(Pinball(0.25), 1e6, "free"), X, Y)
    below = np.mean(found.b > Y)
    assert below <= 0.25 <= below + 0.02
    np.testing.assert_allclose(found.w, 0.0, atol=1e-5)


def test_validation_rows_are_judged_by_their_loss():
    problem = Problem(EpsilonInsensitive(0.2), 0.05, "free")
    found = solve(problem, X[:60], Y[:60], validation=(X[60:], Y[60:]))
    best = found.trace["validation_error"].min()
    assert best == pytest.approx(float(np.mean(formula(problem.loss, X[60:] @ found.w + found.b, Y[60:]))))
