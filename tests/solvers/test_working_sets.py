"""Exact kernel machines: against the interior-point method, LIBSVM, and a transcription in NumPy."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sklearn.svm

from primalsvm.data import EQUAL_WEIGHTS, KernelMatrix, ThreadPool, Weights, as_block, as_dataset, kernel_matrix
from primalsvm.data import kernel_columns as columns_file
from primalsvm.losses import (
    EpsilonInsensitive,
    Hinge,
    OneSided,
    Pinball,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from primalsvm.maps.kernels import Gaussian, Linear, Polynomial, as_points
from primalsvm.nu_problem import NuProblem
from primalsvm.objective import Problem
from primalsvm.solution import Status
from primalsvm.solvers.drive import drive
from primalsvm.solvers.interior_point import InteriorPoint
from primalsvm.solvers.nu_working_sets import NuWorkingSets
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.several import Several, Single
from primalsvm.solvers.smo import pair_steps, single_steps
from primalsvm.solvers.stops import Stops
from primalsvm.solvers.working_sets import WorkingSets

M = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=(M, 6)) + 0.3
NUMBERS = X @ RNG.normal(size=6) + 0.5 * RNG.normal(size=M)
SIGNS = np.where(NUMBERS > 0, 1.0, -1.0)
SIGNS[::9] *= -1.0
WEIGHTS = Weights(RNG.integers(0, 4, M).astype(float), 1)
WEIGHTS.values[:2] = 1.0


def rows_of(kernel, rows=X, weights=EQUAL_WEIGHTS, threads=None, budget=1e9):
    points = as_points(np.asarray(rows, float))
    return KernelMatrix(kernel, as_block(rows), points, budget, weights, threads or ThreadPool(1))


def solve(problem, data, y, tol=1e-3, **options):
    (found,) = drive(Single(problem.on(data, y)), Several(WorkingSets(**options)), Stops(tol))
    return found


PROBLEMS = [
    *(Problem(loss, 1e-2, intercept) for loss in (Hinge(), SquaredHinge(), SmoothedHinge(0.5))
      for intercept in ("none", "penalized", "free")),
    *(Problem(loss, 1e-2, intercept) for loss in (EpsilonInsensitive(0.2), SquaredEpsilonInsensitive(0.2), Pinball(0.7))
      for intercept in ("none", "free")),
    Problem(OneSided(), 0.2, "free", 0.2),
]  # fmt: skip


@pytest.mark.parametrize("weights", [EQUAL_WEIGHTS, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_the_optimum_is_that_of_the_interior_point_method(problem, weights):
    y = SIGNS if problem.loss.is_classification else np.zeros(M) if problem.nu else NUMBERS
    rows = X + 3.0 if problem.nu else X  # off the origin
    (truth,) = drive(Single(problem.on(as_dataset(rows, weights.array(M)), y)), Several(InteriorPoint()), Stops(1e-9))
    found = solve(problem, rows_of(Linear(), rows, weights), y, 1e-9)
    assert found.certificate.relative_gap <= 1e-9 and truth.certificate.relative_gap <= 1e-9
    assert found.certificate.primal == pytest.approx(truth.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(rows.T @ found.w, truth.w, atol=1e-5)
    assert found.b == pytest.approx(truth.b, abs=1e-4)


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_scores_are_those_of_libsvm(C):
    found = solve(Problem(Hinge(), 1.0 / (C * M), "free"), rows_of(Gaussian(0.2)), SIGNS, 1e-9)
    peer = sklearn.svm.SVC(C=C, gamma=0.2, tol=1e-9).fit(X, SIGNS)
    scores = np.asarray(rows_of(Gaussian(0.2)).scores(found.w)) + found.b
    np.testing.assert_allclose(scores, peer.decision_function(X), atol=1e-5 * max(1.0, C**0.5))
    np.testing.assert_array_equal(np.flatnonzero(found.w), np.sort(peer.support_))


def in_columns(monkeypatch, kept):
    """Have no matrix computed as a whole; with `kept` false, have columns computed again in each use."""
    monkeypatch.setattr(kernel_matrix, "WHOLE", 0)
    monkeypatch.setattr(columns_file, "LEAST_KEPT", 64 if kept else 10**9)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("problem", [PROBLEMS[2], PROBLEMS[1], PROBLEMS[10], PROBLEMS[-1]], ids=repr)
def test_small_sets_and_columns_in_single_precision_reach_the_same_optimum(
    monkeypatch, problem, kept, shrinking, threads
):
    y = SIGNS if problem.loss.is_classification else np.zeros(M) if problem.nu else NUMBERS
    truth = solve(problem, rows_of(Gaussian(0.2)), y, 1e-9)
    in_columns(monkeypatch, kept)
    with ThreadPool(threads) as pool:
        data = rows_of(Gaussian(0.2), threads=pool)
        (found,) = drive(Single(problem.on(data, y)), Several(WorkingSets(size=32, shrinking=shrinking)), Stops(1e-7))
    assert found.certificate.relative_gap <= 1e-7
    assert found.certificate.dual <= truth.certificate.primal + 1e-9 * abs(truth.certificate.primal)
    assert found.certificate.primal == pytest.approx(truth.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("kept", [True, False])
def test_without_certificates_the_run_ends_at_the_same_accuracy(monkeypatch, kept):
    in_columns(monkeypatch, kept)
    data = rows_of(Gaussian(0.2))
    objective = Problem(Hinge(), 1e-3, "free").on(data, SIGNS)
    truth = solve(objective.problem, data, SIGNS, 1e-9).certificate.primal
    (found,) = drive(Single(objective), Several(WorkingSets(size=32)), Stops(1e-5, certify=False))
    assert found.certificate is None
    assert found.status is Status.FINISHED
    assert objective.value(found.w, found.b) == pytest.approx(truth, rel=1e-5)


def test_a_state_goes_on_after_pickling_to_the_same_bits(monkeypatch):
    in_columns(monkeypatch, True)
    objective = PROBLEMS[2].on(rows_of(Gaussian(0.2)), SIGNS)
    solver = WorkingSets(size=32)
    first = solver.start(objective, Run(1e-6, True, 100, 0))
    for _ in range(3):
        first = solver.advance(objective, first)
    second = pickle.loads(pickle.dumps(first))
    for _ in range(3):
        first, second = solver.advance(objective, first), solver.advance(objective, second)
    np.testing.assert_array_equal(first.a, second.a)
    assert first.estimate == second.estimate


def test_a_warm_start_takes_fewer_steps():
    data = rows_of(Gaussian(0.2))
    problem = Problem(Hinge(), 1e-3, "free")
    cold = solve(problem, data, SIGNS, 1e-6)
    (warm,) = drive(
        Single(replace(problem, lam=1.1e-3).on(data, SIGNS)),
        Several(WorkingSets()), Stops(1e-6), start=[cold.state],
    )  # fmt: skip
    assert warm.n_steps < cold.n_steps and warm.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("kept", [None, True, False])
@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive()], ids=repr)
def test_small_sets_of_nu_problems_reach_the_same_optimum(monkeypatch, loss, kept):
    problem, y = NuProblem(loss, 1e-2, 0.4), SIGNS if loss.is_classification else NUMBERS
    data = rows_of(Gaussian(0.2), weights=WEIGHTS)
    (truth,) = drive(Single(problem.on(data, y)), Several(NuWorkingSets()), Stops(1e-9))
    if kept is not None:
        in_columns(monkeypatch, kept)
    data = rows_of(Gaussian(0.2), weights=WEIGHTS)
    (found,) = drive(Single(problem.on(data, y)), Several(NuWorkingSets(size=32)), Stops(1e-7))
    assert 0.0 <= found.certificate.relative_gap <= 1e-7
    assert found.certificate.primal == pytest.approx(truth.certificate.primal, rel=2e-7)


@pytest.mark.parametrize("nu", [0.1, 0.8])
def test_a_warm_start_at_another_nu_is_feasible(nu):
    """Of a larger ν the bounds are lower, so the sum of the variables must grow again."""
    data, zero = rows_of(Gaussian(0.2)), np.zeros(M)
    before = solve(Problem(OneSided(), 0.3, "free", 0.3), data, zero, 1e-9)
    problem = Problem(OneSided(), nu, "free", nu)
    (warm,) = drive(Single(problem.on(data, zero)), Several(WorkingSets()), Stops(1e-9), start=[before.state])
    assert 0.0 <= warm.certificate.relative_gap <= 1e-9
    assert warm.w.sum() == pytest.approx(1.0)
    cold = solve(problem, data, zero, 1e-9)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("certify", [True, False])
def test_rows_around_the_origin_end_the_run(certify):
    rows = np.concatenate([X, -X])
    objective = Problem(OneSided(), 0.9, "free", 0.9).on(rows_of(Linear(), rows), np.zeros(2 * M))
    (found,) = drive(Single(objective), Several(WorkingSets()), Stops(1e-3, certify=certify))
    assert found.n_epochs < 50
    np.testing.assert_allclose(rows @ (rows.T @ found.w), 0.0, atol=1e-3)


def test_the_least_size_of_a_working_set():
    found = solve(PROBLEMS[2], rows_of(Gaussian(0.2)), SIGNS, 1e-3, size=4)
    assert found.certificate.relative_gap <= 1e-3
    with pytest.raises(ValueError, match="size must be at least 4"):
        WorkingSets(size=3)
    with pytest.raises(ValueError, match="size must be at least 8"):
        NuWorkingSets(size=7)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()])
def test_a_kernel_matrix_that_overflows_is_refused(loss):
    for intercept in ("none", "free"):
        with pytest.raises(ValueError, match="NaN or infinity"), np.errstate(all="ignore"):
            solve(Problem(loss, 1e-2, intercept), rows_of(Polynomial(300, 100.0, 1.0)), SIGNS)


def test_what_it_is_not_for_is_refused():
    from primalsvm.losses import Logistic

    with pytest.raises(ValueError, match="piecewise quadratic"):
        solve(Problem(Logistic(), 1e-2), rows_of(Linear()), SIGNS)
    with pytest.raises(ValueError, match="rows of a kernel matrix"):
        solve(Problem(Hinge(), 1e-2), as_dataset(X), SIGNS)


def plain_pair_steps(K, sign, upper, a, F, least, most):
    """`pair_steps` of the hinge, as in the paper."""
    a, F = a.copy(), F.copy()
    for step in range(most):
        up = np.where(np.where(sign > 0, a < upper, a > 0), F, -np.inf)
        down = np.where(np.where(sign > 0, a > 0, a < upper), F, np.inf)
        i = int(np.argmax(up))
        if up[i] - down.min() <= least:
            return a, F, step
        q = np.maximum(K[i, i] + np.diag(K) - 2.0 * K[i], 1e-12)
        gain = np.where(down < up[i], (up[i] - down) ** 2 / q, 0.0)
        j = int(np.argmax(gain))
        t = min(
            (F[i] - F[j]) / q[j], upper[i] - a[i] if sign[i] > 0 else a[i], a[j] if sign[j] > 0 else upper[j] - a[j]
        )
        a[i] += sign[i] * t
        a[j] -= sign[j] * t
        F -= t * (K[i] - K[j])
    return a, F, most


@pytest.mark.parametrize("upper", [0.5, 1e3])
def test_pair_steps_are_those_of_the_paper(upper):
    K = Gaussian(0.2).between(as_block(X[:60]), as_points(X[:60]))
    sign = SIGNS[:60]
    a, F = np.zeros(60), sign.copy()
    bound = np.full(60, upper)
    expected_a, expected_F, steps = plain_pair_steps(K, sign, bound, a, F, 1e-6, 10_000)
    taken = pair_steps(K, None, sign, np.zeros(60), bound, a, F, 1e-6, 10_000)
    assert abs(taken - steps) <= 0.05 * steps  # rounding may swap equal gains
    np.testing.assert_allclose(a, expected_a, atol=1e-4 * upper)
    np.testing.assert_allclose(F, expected_F, atol=1e-4)
    rows = np.arange(60)
    again = np.zeros(60)
    assert pair_steps(K, rows, sign, np.zeros(60), bound, again, sign.copy(), 1e-6, 10_000) == taken
    np.testing.assert_array_equal(again, a)


def plain_single_steps(K, sign, quadratic, upper, a, F, least, most):
    """`single_steps` by its docstring."""
    a, F = a.copy(), F.copy()
    for step in range(most):
        grows, falls = np.where(sign > 0, a < upper, a > 0), np.where(sign > 0, a > 0, a < upper)
        moves = ((F > 0) & grows) | ((F < 0) & falls)
        if not moves.any() or np.abs(F[moves]).max() <= least:
            return a, F, step
        curvature = np.diag(K) + quadratic
        i = int(np.argmax(np.where(moves, F**2 / curvature, -1.0)))
        before = a[i]
        a[i] = np.clip(before + sign[i] * F[i] / curvature[i], 0.0, upper[i])
        t = sign[i] * (a[i] - before)
        F[i] -= quadratic[i] * t
        F -= t * K[i]
    return a, F, most


@pytest.mark.parametrize("upper", [0.5, 1e3])
@pytest.mark.parametrize("curvature", [0.0, 0.3])
def test_single_steps_are_those_of_coordinate_ascent(upper, curvature):
    K = Gaussian(0.2).between(as_block(X[:60]), as_points(X[:60])) + 1.0
    sign, bound, quadratic = SIGNS[:60], np.full(60, upper), np.full(60, curvature)
    a, F = np.zeros(60), sign.copy()
    expected_a, expected_F, steps = plain_single_steps(K, sign, quadratic, bound, a, F, 1e-5, 20_000)
    taken = single_steps(K, None, sign, quadratic, bound, a, F, 1e-5, 20_000)
    assert taken < 20_000 and abs(taken - steps) <= 0.05 * steps  # rounding may swap equal gains
    np.testing.assert_allclose(a, expected_a, atol=1e-3 * upper)
    np.testing.assert_allclose(F, expected_F, atol=1e-3)
