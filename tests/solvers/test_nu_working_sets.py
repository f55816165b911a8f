"""ν-problems: against LIBSVM, formulas in NumPy, and the equivalent problem with C or ε."""

import pickle

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st

from primalsvm.data import EQUAL_WEIGHTS, KernelMatrix, ThreadPool, Weights, as_block, kernel_matrix
from primalsvm.data import kernel_columns as columns_file
from primalsvm.losses import EpsilonInsensitive, Hinge, SquaredHinge
from primalsvm.maps.kernels import Gaussian, Linear, Precomputed, as_points
from primalsvm.nu_problem import NuProblem
from primalsvm.objective import Problem
from primalsvm.solution import Status
from primalsvm.solvers.drive import drive
from primalsvm.solvers.nu_smo import side_steps
from primalsvm.solvers.nu_working_sets import NuWorkingSets
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.several import Several, Single
from primalsvm.solvers.stops import Stops
from primalsvm.solvers.working_sets import WorkingSets

M = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 4))
NUMBERS = X[:, 0] + X[:, 1] ** 2 + 0.5 * RNG.normal(size=M)
MEDIAN = np.quantile(NUMBERS, 0.6)
SIGNS = np.where(NUMBERS > MEDIAN, 1.0, -1.0)
SIGNS[::9] *= -1.0
WEIGHTS = Weights(RNG.uniform(0.2, 2.0, M), 1)
WEIGHTS.values[::7] = 0.0
BOTH = [EQUAL_WEIGHTS, WEIGHTS]
IDS = ["equal", "weighted"]


# LIBSVM rounds kernel values to single precision, which moves the scores of a small ν by 1e-5: these are not rounded
ROUNDED = np.float32(Gaussian(0.5).between(as_block(X), as_points(X))).astype(float)


def rows_of(kernel, rows=X, weights=EQUAL_WEIGHTS, threads=None):
    return KernelMatrix(
        kernel, as_block(rows), as_points(np.asarray(rows, float)), 1e9, weights, threads or ThreadPool(1)
    )


def rounded_rows(weights):
    points = as_points(np.empty((M, 0)))
    return KernelMatrix(Precomputed(np.arange(M)), as_block(ROUNDED), points, 1e9, weights, ThreadPool(1))


def classification(nu=0.4):
    return NuProblem(Hinge(), 1.0, nu)


def regression(nu=0.4, C=2.0, total=float(M)):
    return NuProblem(EpsilonInsensitive(), 1.0 / (C * total), nu)


def solve(problem, data, y, tol=1e-9, **options):
    (found,) = drive(Single(problem.on(data, y)), Several(NuWorkingSets(**options)), Stops(tol))
    return found


def primal(problem, K, y, c, beta, b, offset):
    """P of a point with its ρ or ε, as in the paper."""
    scores = K @ beta + b
    if problem.loss.is_classification:  # the point that is divided by ρ
        losses, square, linear = np.maximum(0, 1 - y * scores), beta @ K @ beta, -1.0
        return problem.lam / 2 * offset**2 * square + offset * (linear * problem.nu + c @ losses / c.sum())
    losses = np.maximum(0, np.abs(y - scores) - offset)
    return problem.lam / 2 * beta @ K @ beta + problem.nu * offset + c @ losses / c.sum()


def random_dual(problem, y, c, rng):
    """A feasible α, drawn at random."""
    total = problem.nu * c.sum() / 2
    alpha = np.zeros(len(y))
    for sign in (1.0, -1.0):
        side = (y == sign) if problem.loss.is_classification else np.ones(len(y), bool)
        own = side * rng.random(len(y)) ** 4
        low, high = 0.0, 1e9  # of a factor before the clip
        for _ in range(200):
            factor = 0.5 * (low + high)
            low, high = (factor, high) if c @ np.minimum(factor * own, 1.0) < total else (low, factor)
        alpha += sign * np.minimum(low * own, 1.0)
    return alpha


def dual(problem, K, y, c, alpha):
    """D(α), as in the paper."""
    assert np.abs(alpha).max() <= 1.0 + 1e-12 and abs(c @ alpha) <= 1e-6 * c.sum()
    beta = c * alpha / (problem.lam * c.sum())
    linear = 0.0 if problem.loss.is_classification else c @ (alpha * y) / c.sum()
    return linear - problem.lam / 2 * beta @ K @ beta


@pytest.mark.parametrize("weights", BOTH, ids=IDS)
@pytest.mark.parametrize("nu", [0.2, 0.4, 0.6])
def test_classifiers_are_those_of_libsvm(nu, weights):
    c = weights.array(M).copy()
    found = solve(classification(nu), rounded_rows(weights), SIGNS, 1e-11)
    counted = np.flatnonzero(c > 0)  # with others, scikit-learn gives other support vectors than those of LIBSVM
    K = ROUNDED[:, counted]
    peer = sklearn.svm.NuSVC(nu=nu, kernel="precomputed", tol=1e-12).fit(K[counted], SIGNS[counted], c[counted])
    np.testing.assert_allclose(ROUNDED @ found.w + found.b, peer.decision_function(K), atol=1e-6)
    np.testing.assert_array_equal(np.flatnonzero(found.w), np.sort(counted[peer.support_]))


@pytest.mark.parametrize("weights", BOTH, ids=IDS)
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_regressors_are_those_of_libsvm(nu, weights):
    c = weights.array(M).copy()
    found = solve(regression(nu, 2.0, c.sum()), rounded_rows(weights), NUMBERS, 1e-11)
    counted = np.flatnonzero(c > 0)
    K = ROUNDED[:, counted]
    peer = sklearn.svm.NuSVR(nu=nu, C=2.0, kernel="precomputed", tol=1e-12)
    peer.fit(K[counted], NUMBERS[counted], c[counted])
    np.testing.assert_allclose(ROUNDED @ found.w + found.b, peer.predict(K), atol=1e-6)


@pytest.mark.parametrize("weights", BOTH, ids=IDS)
def test_a_classifier_solves_the_problem_with_c_that_its_margin_gives(weights):
    c, K = weights.array(M), rows_of(Gaussian(0.5)).whole
    problem = classification()
    found = solve(problem, rows_of(Gaussian(0.5), X, weights), SIGNS, 1e-11)
    hinge = c @ np.maximum(0, 1 - SIGNS * (K @ found.w + found.b)) / c.sum()
    rho = (problem.nu - hinge) / (found.w @ K @ found.w)
    (same,) = drive(
        Single(Problem(Hinge(), rho, "free").on(rows_of(Gaussian(0.5), X, weights), SIGNS)),
        Several(WorkingSets()), Stops(1e-11),
    )  # fmt: skip
    np.testing.assert_allclose(found.w, same.w, atol=1e-5 * np.abs(same.w).max())
    assert found.b == pytest.approx(same.b, abs=1e-5)


@pytest.mark.parametrize("weights", BOTH, ids=IDS)
def test_a_regressor_solves_the_problem_with_epsilon_that_nu_gives(weights):
    data = rows_of(Gaussian(0.5), X, weights)
    problem = regression(0.3, 2.0, data.total_weight)
    found = solve(problem, data, NUMBERS, 1e-11)
    epsilon = problem.on(data, NUMBERS).best_epsilon(data.scores(found.w), found.b)
    (same,) = drive(
        Single(Problem(EpsilonInsensitive(epsilon), problem.lam, "free").on(data, NUMBERS)),
        Several(WorkingSets()), Stops(1e-11),
    )  # fmt: skip
    np.testing.assert_allclose(data.scores(found.w) + found.b, data.scores(same.w) + same.b, atol=1e-5)


@pytest.mark.parametrize("weights", BOTH, ids=IDS)
@pytest.mark.parametrize("classes", [True, False])
def test_the_certificate_is_that_of_the_formulas(classes, weights):
    c, K, y = weights.array(M), rows_of(Gaussian(0.5)).whole, SIGNS if classes else NUMBERS
    problem = classification() if classes else regression(total=c.sum())
    found = solve(problem, rows_of(Gaussian(0.5), X, weights), y)
    # P is quadratic in ρ, and linear in ε between the errors
    offsets = np.linspace(0.0, 0.01, 20_001) if classes else np.abs(y - K @ found.w - found.b)
    values = [primal(problem, K, y, c, found.w, found.b, offset) for offset in offsets]
    assert found.certificate.primal == pytest.approx(min(values), rel=1e-6 if classes else 1e-12)
    assert not classes or 0 < np.argmin(values) < 20_000
    rng = np.random.default_rng(1)
    for _ in range(5):
        assert dual(problem, K, y, c, random_dual(problem, y, c, rng)) <= found.certificate.primal
    assert found.certificate.relative_gap <= 1e-9


@pytest.mark.parametrize("classes", [True, False])
def test_nu_bounds_the_shares_of_errors_and_of_support_vectors(classes):
    y, nu = SIGNS if classes else NUMBERS, 0.3
    data = rows_of(Gaussian(0.5))
    problem = classification(nu) if classes else regression(nu)
    found = solve(problem, data, y)
    scores = data.scores(found.w) + found.b
    if classes:
        errors = np.mean(y * scores < 1.0 - 1e-6)
    else:
        epsilon = problem.on(data, y).best_epsilon(data.scores(found.w), found.b)
        errors = np.mean(np.abs(y - scores) > epsilon + 1e-6)
    assert errors <= nu <= np.mean(found.w != 0.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.02, 1.0), st.floats(-3.0, 3.0))
def test_every_dual_point_is_below_every_primal_point(seed, classes, nu, log_lam):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(4, 12))
    rows, c = rng.normal(size=(m, 2)), rng.uniform(0.1, 2.0, m)
    y = np.where(np.arange(m) % 2 == 0, 1.0, -1.0) if classes else rng.normal(size=m)
    if classes:
        nu *= 2.0 * min(c[y > 0].sum(), c[y < 0].sum()) / c.sum()
    problem = NuProblem(Hinge() if classes else EpsilonInsensitive(), 10.0**log_lam, min(nu, 0.99))
    data = rows_of(Gaussian(1.0), rows, Weights(c, 1))
    objective, K = problem.on(data, y), rows_of(Gaussian(1.0), rows).whole
    w, b = rng.normal(size=m), float(rng.normal())
    value = objective.value(w, b)
    bound = dual(problem, K, y, c, random_dual(problem, y, c, rng))
    assert bound <= value + 1e-12 * max(abs(bound), abs(value))
    assert value <= primal(problem, K, y, c, w, b, rng.exponential()) + 1e-12 * abs(value)
    # the best intercept and ρ or ε for w: none nearby is better
    levels = objective.best_levels(K @ w)
    point, _, best = objective.point(w, K @ w, levels)
    if classes and not point.any():
        return
    least = primal(problem, K, y, c, w, levels.b, levels.offset) if not classes else objective.value(point, best)
    for shift in (-1e-3, 1e-3):
        assert least <= objective.value(point, best + shift) + 1e-9 * abs(least)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("classes", [True, False])
def test_small_sets_and_columns_in_single_precision_reach_the_same_optimum(monkeypatch, classes, threads, kept):
    y, problem = (SIGNS, classification()) if classes else (NUMBERS, regression())
    truth = solve(problem, rows_of(Gaussian(0.5)), y)
    monkeypatch.setattr(kernel_matrix, "WHOLE", 0)
    monkeypatch.setattr(columns_file, "LEAST_KEPT", 64 if kept else 10**9)
    with ThreadPool(threads) as pool:
        found = solve(problem, rows_of(Gaussian(0.5), threads=pool), y, 1e-7, size=32)
    assert found.certificate.relative_gap <= 1e-7
    assert found.certificate.dual <= truth.certificate.primal + 1e-9 * abs(truth.certificate.primal)
    assert found.certificate.primal == pytest.approx(truth.certificate.primal, rel=2e-7)


def test_a_state_goes_on_after_pickling_to_the_same_bits():
    objective, solver = regression().on(rows_of(Gaussian(0.5)), NUMBERS), NuWorkingSets(size=32)
    first = solver.start(objective, Run(1e-6, True, 100, 0))
    for _ in range(3):
        first = solver.advance(objective, first)
    second = pickle.loads(pickle.dumps(first))
    for _ in range(3):
        first, second = solver.advance(objective, first), solver.advance(objective, second)
    np.testing.assert_array_equal(first.a, second.a)


def test_steps_keep_the_sum_of_each_side_and_end_at_the_optimum():
    K = Gaussian(0.5).between(as_block(X[:80]), as_points(X[:80]))
    sign = np.where(np.arange(80) < 30, 1.0, -1.0)
    upper, a = np.ones(80), np.zeros(80)
    a[:10] = a[30:40] = 1.0
    F = -K @ (sign * a)
    taken = side_steps(K, None, sign, upper, a, F, 1e-9, 100_000)
    assert 0 < taken < 100_000
    np.testing.assert_allclose([a[:30].sum(), a[30:].sum()], 10.0, rtol=1e-12)
    np.testing.assert_allclose(F, -K @ (sign * a), atol=1e-10)
    for side in (sign > 0, sign < 0):  # the conditions of Chang and Lin 2001
        grows = side & np.where(sign > 0, a < 1, a > 0)
        falls = side & np.where(sign > 0, a > 0, a < 1)
        assert F[grows].max() - F[falls].min() <= 2e-9


def test_an_infeasible_nu_is_refused():
    smaller = min(np.mean(SIGNS > 0), np.mean(SIGNS < 0))
    solve(classification(2 * smaller), rows_of(Gaussian(0.5)), SIGNS)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        solve(classification(2 * smaller + 1e-6), rows_of(Gaussian(0.5)), SIGNS)


def test_classes_that_overlap_too_much_for_nu_have_the_solution_zero():
    rows = np.repeat(X[:50], 2, axis=0)
    found = solve(classification(0.5), rows_of(Linear(), rows), np.tile([1.0, -1.0], 50))
    assert found.status is Status.STALLED and "w = 0 is the solution" in found.message
    assert not found.w.any() and found.certificate.primal == 0.0


def test_other_problems_are_refused():
    with pytest.raises(ValueError, match="has the loss"):
        NuProblem(SquaredHinge(), 1.0, 0.5)
    with pytest.raises(ValueError, match="NuSVC and NuSVR"):
        solve(Problem(Hinge(), 1.0, "free"), rows_of(Linear()), SIGNS)
