"""The one-class problem, solved by every solver: the optimum is that of independent methods."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import OneClassSVM

from primalsvm import Asset, DualAscent, Hinge, Newton, OneSided, Pegasos, Problem, Status, solve
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.stops import Stops
from primalsvm.sources.cache import CacheWriter
from primalsvm.sources.reader import out_of_core
from tests import helpers

RNG = np.random.default_rng(7)
X = RNG.normal(size=(60, 4)) + np.array([2.0, 1.0, 0.5, 0.0])
WEIGHT = RNG.integers(0, 4, size=60).astype(float)
NONE = np.zeros(60)
PRECISE = pytest.mark.parametrize("solver", [DualAscent(), Newton()], ids=["ascent", "newton"])
EACH_NU = pytest.mark.parametrize("nu", [0.05, 0.37, 1.0])


def one_class(nu, lam=None):
    return Problem(OneSided(), nu if lam is None else lam, "free", nu=nu)


def objective(nu, w, rho, rows=X, c=None):
    """Schölkopf et al.'s, times ν."""
    c = np.ones(len(rows)) if c is None else c
    return nu * (w @ w / 2 - rho) + c @ np.maximum(0, rho - rows @ w) / c.sum()


@functools.cache
def optimum(nu, weighted=False):
    """By SciPy, from the dual: −ν/2 times the least squared length of a mean of rows with shares up to c/(νΣc)."""
    c = WEIGHT if weighted else np.ones(len(X))
    if nu == 1.0:  # there is one such mean
        return -0.5 * np.sum((c @ X / c.sum()) ** 2)
    found = minimize(
        lambda p: (0.5 * np.sum((p @ X) ** 2), X @ (p @ X)), c / c.sum(), jac=True, method="SLSQP",
        bounds=[(0, top) for top in c / (nu * c.sum())], constraints=[LinearConstraint(np.ones(len(X)), 1, 1)],
        options={"ftol": 1e-14, "maxiter": 1000},
    )  # fmt: skip
    return -nu * found.fun


@PRECISE
@EACH_NU
@pytest.mark.parametrize("c", [None, WEIGHT], ids=["plain", "weighted"])
def test_precise_solvers_reach_the_optimum(solver, nu, c):
    found = solve(one_class(nu), X, NONE, sample_weight=c, solver=solver, max_iter=20_000)
    assert found.certificate.relative_gap <= 1e-9, found.message
    assert found.certificate.primal == pytest.approx(objective(nu, found.w, -found.b, c=c), rel=1e-12)
    assert found.certificate.primal == pytest.approx(optimum(nu, c is not None), rel=1e-6)


@EACH_NU
@pytest.mark.parametrize("solver", [Pegasos(), Pegasos(projection=True), Asset()], ids=["pegasos", "ball", "asset"])
def test_stochastic_solvers_come_near(nu, solver):
    found = solve(one_class(nu), X, NONE, solver=solver, tol=0.02, max_iter=3000)
    best = optimum(nu)
    assert found.certificate.relative_gap <= 0.02, found.message
    assert found.certificate.dual <= best * (1 - 1e-6) and best * (1 + 1e-6) <= objective(nu, found.w, -found.b)
    assert objective(nu, found.w, -found.b) <= 0.97 * best


def test_blocks_from_files(tmp_path):
    rows = np.tile(X, (50, 1))
    with CacheWriter(tmp_path / "rows", 4) as writer:
        writer.append(sp.csr_matrix(rows), np.zeros(3000))
    with out_of_core(tmp_path / "rows", 20_000) as data:
        found = helpers.solution_of(one_class(0.1).on(data, np.zeros(3000)), BlockAscent(), Stops(1e-4))
    assert found.certificate.relative_gap <= 1e-4, found.message
    assert found.certificate.primal == pytest.approx(optimum(0.1), rel=1e-4)


@PRECISE
def test_threads_take_part(solver):
    rows = np.random.default_rng(1).normal(size=(40_000, 6)) + 1.0
    alone, together = (solve(one_class(0.1), rows, np.zeros(40_000), solver=solver, n_jobs=n, tol=1e-4) for n in (1, 2))
    assert together.certificate.relative_gap <= 1e-4
    assert together.certificate.primal == pytest.approx(alone.certificate.primal, rel=2e-4)


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_the_optimum_is_libsvm_s(nu):
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-12).fit(X)
    unit = nu * len(X)  # the length of its w, in ours
    ours = solve(one_class(nu), X, NONE)
    at_theirs = objective(nu, theirs.coef_[0] / unit, theirs.offset_[0] / unit)
    assert ours.certificate.primal == pytest.approx(at_theirs, rel=1e-6) and ours.certificate.dual <= at_theirs
    np.testing.assert_allclose(ours.w, theirs.coef_[0] / unit, atol=1e-6)


def test_weights_are_repetitions():
    times = WEIGHT.astype(int)
    weighted = solve(one_class(0.2), X, NONE, sample_weight=WEIGHT)
    repeated = solve(one_class(0.2), np.repeat(X, times, axis=0), np.zeros(times.sum()))
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-7)
    assert weighted.b == pytest.approx(repeated.b, abs=1e-7)


@EACH_NU
@pytest.mark.parametrize("s", [0.01, 1.0, 30.0])
def test_the_ball_holds_the_optimum(nu, s):
    """In any unit s of the scores: λ = νs, w/s."""
    problem = one_class(nu, nu * s)
    posed, found = helpers.objective(problem, X, NONE), solve(problem, X, NONE)
    assert s * posed.radius == pytest.approx(np.linalg.norm(X.mean(axis=0)), rel=1e-12)
    assert np.linalg.norm(found.w) <= posed.radius * (1 + 1e-6)
    assert abs(found.b) <= np.linalg.norm(X, axis=1).max() * posed.radius * (1 + 1e-9)
    assert s * found.certificate.primal == pytest.approx(optimum(nu), rel=1e-6)


@settings(max_examples=50)
@given(scores=st.lists(st.floats(-5, 5), min_size=1, max_size=30), nu=st.floats(0.01, 1.0))
def test_the_best_intercept_is_a_quantile(scores, nu):
    s = np.array(scores)
    b = helpers.objective(one_class(nu), np.zeros((s.size, 1)), np.zeros(s.size)).best_intercept(s)
    outside, out_or_on = np.mean(s + b < -1e-9), np.mean(s + b <= 1e-9)
    assert outside <= nu * (1 + 1e-12) and nu * (1 - 1e-12) <= out_or_on
    assert abs(b) <= np.abs(s).max() + 1e-9


@pytest.mark.parametrize("nu", [0.05, 0.37, 1.0])
def test_any_alpha_gives_a_lower_bound(nu):
    posed, best = helpers.objective(one_class(nu), X, NONE, WEIGHT), optimum(nu, weighted=True)
    for seed in range(5):
        alpha = np.random.default_rng(seed).uniform(-0.5, 1.5, size=60)
        allowed = posed.balance_alpha(posed.clip_alpha(alpha))
        assert allowed.min() >= 0.0 and allowed.max() <= 1.0
        assert WEIGHT @ allowed == pytest.approx(nu * WEIGHT.sum(), rel=1e-12)
        assert posed.lower_bound(alpha) <= best + 1e-9


@PRECISE
def test_rows_around_the_origin_end_with_a_sentence(solver):
    rows = np.vstack([X, -X])
    found = solve(one_class(0.3), rows, np.zeros(120), solver=solver)
    assert found.status is Status.STALLED and found.n_epochs < 100 and "surround the origin" in found.message
    assert not found.w.any() and found.b == 0.0 and found.certificate.primal == 0.0


def test_rows_that_are_all_zero():
    found = solve(one_class(0.3), np.zeros((9, 2)), np.zeros(9))
    assert not found.w.any() and found.certificate.primal == found.certificate.dual == 0.0


@pytest.mark.parametrize(
    "parts", [
        {"loss": OneSided(), "intercept": "free"},
        {"loss": OneSided(), "intercept": "none", "nu": 0.1},
        {"loss": OneSided(), "intercept": "free", "nu": 1.5},
        {"loss": OneSided(), "intercept": "free", "nu": -0.1},
        {"loss": Hinge(), "intercept": "free", "nu": 0.1},
    ],
)  # fmt: skip
def test_parts_that_do_not_go_together_are_refused(parts):
    with pytest.raises(ValueError, match="the one-class problem has"):
        Problem(lam=0.1, **parts)
