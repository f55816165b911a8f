"""Kernelised Pegasos: linear Pegasos under the linear kernel; problem (4), Proposition 1 and eq. (12) of ASSET."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from primalsvm import Hinge, Logistic, Pegasos, Problem, solve
from primalsvm.data import ALONE, KernelMatrix, as_block, as_weights
from primalsvm.maps.kernels import Gaussian, Linear, as_points
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stops import Stops
from tests.helpers import objective, solution_of
from tests.reference import noisy, weights

M, D, LAM = 60, 4, 0.05
X, Y = noisy(M, D)
X[:, 0] += 0.5


def matrix_of(kernel, c=None, budget=1e9):
    return KernelMatrix(kernel, as_block(X), as_points(X), budget, as_weights(c, M), ALONE)


def kernel_pegasos(problem, kernel, options, c=None, budget=1e9, certify=True, **stops):
    solver, stops = KernelPegasos(Pegasos(**options)), Stops(certify=certify, **stops)
    return solution_of(problem.on(matrix_of(kernel, c, budget), Y), solver, stops, seed=3)


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize(
    "options",
    [
        {"average": "last"},
        {"average": "suffix"},
        {"average": "weighted", "batch_size": 5},
        {"average": "uniform", "projection": True, "sampling": "epochs"},
        {"average": "last", "sampling": "distinct", "batch_size": 7, "tries": 2},
    ],
    ids=str,
)
def test_equals_linear_pegasos_under_the_linear_kernel(options, intercept):
    problem, c = Problem(Hinge(), LAM, intercept), weights(M)
    linear = solve(problem, X, Y, sample_weight=c, solver=Pegasos(n_iter=500, **options), random_state=3)
    kernel = kernel_pegasos(problem, Linear(), {"n_iter": 500, **options}, c)
    np.testing.assert_allclose(X.T @ kernel.w, linear.w, rtol=1e-8, atol=1e-9)  # eq. (3): w = Σ βᵢ xᵢ
    assert kernel.b == pytest.approx(linear.b, abs=1e-9)
    assert kernel.certificate.primal == pytest.approx(linear.certificate.primal, rel=1e-9)
    assert kernel.certificate.dual == pytest.approx(linear.certificate.dual, rel=1e-7, abs=1e-9)


def test_coefficients_are_counts_of_violations():
    found = kernel_pegasos(Problem(Hinge(), LAM), Gaussian(0.5), {"n_iter": 300, "average": "last"}, certify=False)
    counts = LAM * 300 * found.w * Y
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    assert counts.round().min() >= 0 and counts.round().sum() <= 300


@pytest.mark.parametrize("budget", [0.0, 8 * M * 10, 1e9])
def test_the_byte_budget_changes_nothing_but_speed(budget):
    problem, options = Problem(Hinge(), LAM, "free"), {"n_iter": 400}
    all_kept, some_kept = (kernel_pegasos(problem, Gaussian(0.5), options, budget=b) for b in (1e9, budget))
    np.testing.assert_allclose(some_kept.w, all_kept.w, rtol=1e-10, atol=1e-12)
    matrix = matrix_of(Gaussian(0.5), budget=budget)
    truth = Gaussian(0.5).between(as_block(X), as_points(X))
    for chosen in ([3, 3, 8], list(range(M)), [59, 3]):
        np.testing.assert_allclose(matrix.values(np.array(chosen)), truth[chosen], rtol=1e-12)
    assert matrix.kept.values.nbytes <= budget and matrix.kept.count == min(M, int(budget / (8 * M)))


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=["hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_converges_to_the_exact_kernel_machine(loss, intercept):
    problem = Problem(loss, LAM, intercept)
    K = Gaussian(0.5).between(as_block(X), as_points(X))
    features = np.linalg.cholesky(K + 1e-12 * np.eye(M))  # rows with the same inner products
    best = solve(problem, features, Y).certificate
    found = kernel_pegasos(problem, Gaussian(0.5), {}, tol=2e-2, max_iter=5000)
    assert found.status.value == "converged"
    assert found.certificate.dual <= best.primal * (1 + 1e-9) and best.dual <= found.certificate.primal * (1 + 1e-9)


def test_of_several_tries_the_best_by_the_objective_in_beta_is_kept():
    problem, kernel = Problem(Hinge(), LAM, "free"), Gaussian(0.5)
    options = {"n_iter": 40, "sampling": "iid", "average": "random"}
    several = kernel_pegasos(problem, kernel, {**options, "n_iter": 200, "tries": 5})
    K = kernel.between(as_block(X), as_points(X))
    value, beta, b = several.state.best_try
    by_hand = LAM / 2 * beta @ K @ beta + np.maximum(0, 1 - Y * (K @ beta + b)).mean()
    assert value == pytest.approx(by_hand, rel=1e-9) and value == pytest.approx(several.certificate.primal, rel=1e-9)


def test_a_warm_start_with_another_kernel_knows_the_norm():
    problem = Problem(Hinge(), 1e-3)
    first = kernel_pegasos(problem, Gaussian(0.5), {"n_iter": 300, "projection": True})
    solver = KernelPegasos(Pegasos(n_iter=300, projection=True))
    state = solver.start(problem.on(matrix_of(Linear()), Y), Run(1e-3, True, 100, 0), first.state)
    w = state.iterate.a * X.T @ state.v.astype(float)
    assert state.iterate.square == pytest.approx(w @ w, rel=1e-6)


# ---- ASSET §2.1 and §2.2 ---------------------------------------------------------------------------------------------


def problem_4(Psi, y, lam):
    """min over α, b of λ/2 αᵀΨα + mean max(0, 1 − Ψ_i·α − yᵢ b), as a linear program's quadratic cousin, by SLSQP."""
    m = len(y)

    def value(z):
        return lam / 2 * z[:m] @ Psi @ z[:m] + z[m + 1 :].mean()

    def gradient(z):
        return np.concatenate([lam * Psi @ z[:m], [0.0], np.full(m, 1 / m)])

    rows = np.hstack([Psi, y[:, None], np.eye(m)])
    found = scipy.optimize.minimize(
        value,
        np.concatenate([np.zeros(m + 1), np.ones(m)]),
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: rows @ z - 1, "jac": lambda z: rows},
        bounds=[(None, None)] * (m + 1) + [(0, None)] * m,
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    return found.x[:m], found.x[m], found.fun


def test_problem_4_and_proposition_1():
    """A solution of (4) gives, by (3), a solution of (1)."""
    few = slice(0, 25)
    V = X[few] * Y[few, None]
    alpha, b, value = problem_4(V @ V.T, Y[few], LAM)
    w = V.T @ alpha  # eq. (3)
    best = solve(Problem(Hinge(), LAM, "free"), X[few], Y[few])
    assert value == pytest.approx(best.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(w, best.w, atol=2e-3)
    found = objective(Problem(Hinge(), LAM, "free"), X[few], Y[few]).value(w, b)
    assert found == pytest.approx(best.certificate.primal, rel=1e-6)


def test_recovery_of_alpha_from_12():
    """γ = Vᵀα: the minimum-norm α solves (11), and so does one with at most d non-zeros."""
    problem = Problem(Hinge(), LAM, "free")
    best = solve(problem, X, Y)
    V = X * Y[:, None]
    gamma, b = best.w, best.b
    smallest = np.linalg.lstsq(V.T, gamma, rcond=None)[0]
    columns = scipy.linalg.qr(V.T, pivoting=True)[2][:D]
    sparse = np.zeros(M)
    sparse[columns] = np.linalg.solve(V[columns].T, gamma)
    for alpha in (smallest, sparse):
        np.testing.assert_allclose(V.T @ alpha, gamma, rtol=1e-8, atol=1e-9)
        Psi = V @ V.T
        value = LAM / 2 * alpha @ Psi @ alpha + np.maximum(0, 1 - Psi @ alpha - Y * b).mean()  # eq. (11)
        assert value == pytest.approx(best.certificate.primal, rel=1e-8)
    assert np.count_nonzero(sparse) <= D < np.count_nonzero(smallest)
