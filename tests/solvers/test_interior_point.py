"""The interior-point method: the optimum that other solvers find, where these crawl too."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    InteriorPoint,
    Logistic,
    Newton,
    Nystroem,
    Pinball,
    Problem,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    Status,
    solve,
)
from primalsvm.losses import OneSided
from primalsvm.solvers import costs
from primalsvm.solvers import interior_point as module
from tests import reference
from tests.helpers import objective, solution_of
from tests.real.interior_point import solve_hinge
from tests.reference import noisy, sparse_noisy
from tests.solvers.test_dual_ascent import LAM, X, Y, best_value, each_intercept, each_weight

REGRESSIONS = [EpsilonInsensitive(0.1), SquaredEpsilonInsensitive(0.1), Huber(0.3), Pinball(0.8)]


@each_intercept
@each_weight
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), SmoothedHinge(0.5)])
def test_reaches_the_optimum_of_other_solvers(loss, intercept, c):
    problem = Problem(loss, LAM, intercept)
    best = best_value(problem, c)
    found = solve(problem, X, Y, sample_weight=c, solver=InteriorPoint())
    primal = reference.primal(problem, X, Y, found.w, found.b, c)
    assert found.status is Status.CONVERGED and found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(primal, rel=1e-13)
    assert found.certificate.dual <= best * (1 + 1e-12)
    assert best * (1 - 1e-6) <= primal <= best * (1 + 1e-9)


@each_intercept
@pytest.mark.parametrize("loss", REGRESSIONS)
@pytest.mark.parametrize("shape", [(80, 6), (30, 60)])
def test_regressions(loss, intercept, shape):
    rng = np.random.default_rng(0)
    data = rng.normal(size=shape)
    y = data[:, 0] - 0.5 * data[:, 1] + 0.3 * rng.standard_t(2, size=shape[0])
    problem = Problem(loss, LAM, intercept)
    found = solve(problem, data, y, solver=InteriorPoint())
    other = solve(problem, data, y, solver=Newton())
    assert found.certificate.relative_gap <= 1e-9, found.message
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_one_class(nu):
    data = 3.0 + np.random.default_rng(0).normal(size=(200, 4))
    rows = objective(Problem(OneSided(), nu, "free", nu=nu), data, np.zeros(200))
    found, other = (solution_of(rows, solver) for solver in (InteriorPoint(), Newton()))
    assert found.certificate.relative_gap <= 1e-9, found.message
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


@each_intercept
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_more_features_than_rows(intercept, convert):
    S, y = sparse_noisy(30, 80)
    problem = Problem(Hinge(), LAM, intercept)
    found = solve(problem, convert(S.toarray()), y, solver=InteriorPoint())
    other = solve(problem, S, y, solver=Newton())
    assert found.certificate.relative_gap <= 1e-10
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e2, 1e4])
@pytest.mark.parametrize(("m", "d"), [(600, 300), (300, 600)])
def test_columns_of_very_different_sizes(strength, m, d):
    """Where the others stop at relative gaps of 1 after a thousand sweeps or steps."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(m, d))
    y = np.sign(data @ rng.normal(size=d) + 0.5 * np.sqrt(d) * rng.normal(size=m))
    data *= 10.0 ** rng.uniform(-2, 2, d)
    found = solve(Problem(Hinge(), 1 / (strength * m), "free"), data, y, solver=InteriorPoint())
    assert found.status is Status.CONVERGED and found.n_steps <= 60, found.message


@pytest.mark.parametrize("strength", [1.0, 1e4])
def test_the_truth_of_an_independent_implementation(strength):
    data, y = noisy(300, 20)
    lam = 1 / (strength * 300)
    primal, dual = solve_hinge(data, y, lam, np.ones(300), free_intercept=True)
    found = solve(Problem(Hinge(), lam, "free"), data, y, solver=InteriorPoint())
    assert dual * (1 - 1e-8) <= found.certificate.primal <= primal * (1 + 1e-8)


def test_rows_may_be_left_out_of_the_factor(monkeypatch):
    problem = Problem(Hinge(), 1e-5, "free")
    data, y = noisy(2000, 60)
    exact = solve(problem, data, y, solver=InteriorPoint())
    monkeypatch.setattr(module, "LEFT_OUT", 1e5)
    counts = []

    def counted(*arguments, given=module.significant):
        k = given(*arguments)
        counts.append(np.count_nonzero(k))
        return k

    monkeypatch.setattr(module, "significant", counted)
    rough = solve(problem, data, y, solver=InteriorPoint())
    assert rough.status is Status.CONVERGED and min(counts) < 1000
    assert abs(rough.n_steps - exact.n_steps) <= 3  # the directions are as good


def test_a_cycle_of_corrected_steps_is_left():
    """With rows held out as in cross-validation, Mehrotra's corrected steps repeat themselves in fours."""
    rows = np.random.RandomState(0).uniform(size=(10, 3))
    features = Nystroem(gamma=0.4246421332499832, random_state=1).fit_transform(rows)[[3, 4, 7, 8, 9]]
    y = np.array([-1.0, -1.0, 1.0, 1.0, 1.0])
    solution = solve(Problem(Hinge(), 1.9594e-5, "free"), features, y, solver=InteriorPoint(), tol=1e-10)
    assert solution.certificate.relative_gap <= 1e-10 and solution.n_epochs <= 40


def test_products_of_variables_that_grow_at_first_are_no_stall():
    rows = np.random.default_rng(11).normal(size=(201, 3)) + np.array([3.0, 2.0, 1.0])
    features = Nystroem(gamma=0.1, landmarks=rows).fit_transform(rows)
    problem = Problem(OneSided(), 0.5, "free", 0.5)
    solution = solve(problem, features / 0.1066585581170305, np.zeros(201), solver=InteriorPoint(), tol=1e-9)
    assert solution.certificate.relative_gap <= 1e-9


def test_rows_of_zeros_and_features_of_zeros():
    empty = X.copy()
    empty[::2] = 0.0
    empty[:, 3] = 0.0
    found = solve(Problem(Hinge(), LAM, "free"), empty, Y, solver=InteriorPoint())
    assert found.certificate.relative_gap <= 1e-9 and found.w[3] == 0.0


def test_more_rows_and_features_than_a_factor_may_have_are_refused(monkeypatch):
    monkeypatch.setattr(costs, "LARGEST_FACTOR", 20)
    with pytest.raises(ValueError, match="fewer than 20 rows or features, not 60 × 40"):
        solve(Problem(Hinge(), LAM), *noisy(60, 40), solver=InteriorPoint())
    assert solve(Problem(Hinge(), LAM), *noisy(60, 10), solver=InteriorPoint()).status is Status.CONVERGED


def test_a_solution_does_not_hold_the_products_of_all_rows():
    found = solve(Problem(Hinge(), LAM), *noisy(30, 80), solver=InteriorPoint())
    assert found.state.products is None


def test_a_loss_that_is_not_piecewise_quadratic_is_refused():
    with pytest.raises(ValueError, match="piecewise quadratic loss, not Logistic"):
        solve(Problem(Logistic(), LAM), X, Y, solver=InteriorPoint())


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), SmoothedHinge(0.5), OneSided(), *REGRESSIONS])
def test_pieces_are_the_loss(loss):
    """max over 0 ≤ a ≤ u of a (t − σ p) − κ/2 a², on a grid of a."""
    a = np.concatenate([np.linspace(0.0, 1.0, 2001), np.linspace(1.0, 20.0, 20_001)])
    for y in (-1.0, 1.0):
        for p in (-2.0, -0.7, 0.0, 0.4, 1.3, 3.0):
            total = 0.0
            for sign, target, upper, quadratic in loss.quadratic_pieces(y):
                inside = np.append(a[a <= upper], upper) if np.isfinite(upper) else a
                total += np.max(inside * (target - sign * p) - quadratic / 2 * inside**2)
            assert total == pytest.approx(loss.value(p, y), abs=1e-3)
