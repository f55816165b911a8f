"""Dual ascent over rows in files: the optimum of other solvers, whatever the blocks."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Hinge, Problem, Status
from primalsvm.data import as_weights, thread_pool
from primalsvm.solvers import block_ascent
from primalsvm.solvers.block_ascent import BlockAscent, rows_in_run, rows_of
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stops import Stops
from primalsvm.sources.cache import CacheWriter
from primalsvm.sources.reader import out_of_core
from tests import reference
from tests.helpers import objective, solution_of
from tests.reference import sparse_noisy
from tests.solvers.test_dual_ascent import LAM, M, X, Y, best_value, each_intercept, each_loss, each_weight


def cache(path, rows, labels):
    with CacheWriter(path, rows.shape[1], sp.issparse(rows), rows.dtype) as writer:
        writer.append(rows, labels)
    return path


def ascend(path, problem, labels, c=None, at_once=4000, n_jobs=None, start=None, **stops):
    with (
        thread_pool(n_jobs) as threads,
        out_of_core(path, at_once, weights=as_weights(c, len(labels)), threads=threads) as data,
    ):
        return solution_of(problem.on(data, labels), BlockAscent(), Stops(**stops), start=start)


@each_loss
@each_intercept
@each_weight
def test_reaches_the_optimum_of_other_solvers(loss, intercept, c, tmp_path):
    problem = Problem(loss, LAM, intercept)
    found = ascend(cache(tmp_path / "rows", X, Y), problem, Y, c, tol=1e-6, max_iter=20_000)
    best = best_value(problem, c)
    primal, dual, *_ = found.certificate
    assert found.status is Status.CONVERGED and primal == pytest.approx(best, rel=2e-6)
    assert dual <= best * (1 + 1e-9)
    assert primal == pytest.approx(reference.primal(problem, X, Y, found.w, found.b, c), rel=1e-12)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_sparse_rows_sorted_by_label(n_jobs, intercept, tmp_path, monkeypatch):
    monkeypatch.setattr(block_ascent, "RUNS", 8)
    rows, labels = sparse_noisy(4000, 60, seed=5)
    order = np.argsort(labels, kind="stable")
    rows, labels = rows[order], labels[order]
    path = cache(tmp_path / "rows", rows.astype(np.float32), labels)
    problem = Problem(Hinge(), 1e-3, intercept)
    found = ascend(path, problem, labels, at_once=60_000, n_jobs=n_jobs, tol=1e-3)
    assert found.status is Status.CONVERGED and found.n_epochs <= 30
    again = ascend(path, problem, labels, at_once=60_000, n_jobs=n_jobs, tol=1e-3)
    assert found.w.tobytes() == again.w.tobytes() and found.b == again.b


def test_the_dual_variables_are_those_of_w(tmp_path):
    problem = Problem(Hinge(), LAM)
    path = cache(tmp_path / "rows", X, Y)
    found = ascend(path, problem, Y, tol=1e-9, max_iter=20_000)
    state = found.state
    np.testing.assert_allclose(state.v, X.T @ state.alpha, rtol=1e-10, atol=1e-10)
    assert (Y * state.alpha >= 0).all() and (Y * state.alpha <= 1).all()
    assert found.certificate.dual == pytest.approx(reference.dual(problem, X, Y, state.alpha), rel=1e-9)
    assert ascend(path, problem, Y, start=found, tol=1e-6).n_epochs <= 2


def test_rows_in_memory_are_taken_in_blocks_too():
    problem = Problem(Hinge(), LAM, "free")
    found = solution_of(objective(problem, X, Y), BlockAscent(), Stops(tol=1e-6))
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(reference.primal(problem, X, Y, found.w, found.b), rel=1e-12)


@each_intercept
@pytest.mark.parametrize("target", [1e-3, 1e-9])
def test_an_evaluation_changes_nothing(target, intercept):
    solver, given = BlockAscent(), objective(Problem(Hinge(), LAM, intercept), X, Y)
    state = solver.start(given, Run(target, True, 100, 0))
    for _ in range(3):
        state = solver.advance(given, state)
    before = pickle.dumps(state)
    found = solver.evaluate(given, state)
    assert pickle.dumps(state) == before
    assert found.primal == pytest.approx(given.value(found.w, found.b), rel=1e-13)
    assert found.dual == pytest.approx(given.lower_bound(state.alpha), rel=1e-9)


def test_blocks_are_made_of_far_apart_runs(tmp_path):
    at_once = block_ascent.RUNS * 8 * X.shape[1] * 2
    with out_of_core(cache(tmp_path / "rows", X, Y), at_once) as data:
        assert rows_in_run(data) == 2
    chosen = rows_of(np.array([5, 0, 7]), 40, M)
    assert chosen.tolist() == [*range(40), *range(200, 240), *range(280, 300)]
