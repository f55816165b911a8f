"""Cutting planes: P* of all pairs, by an interior-point method, is within the certified gap, which is at most `tol`."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Status
from primalsvm.data import thread_pool
from primalsvm.ranking import Ranking
from primalsvm.solvers.cutting_planes import CuttingPlanes
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stops import Stops
from tests import reference
from tests.helpers import solution_of
from tests.test_ranking import ranking


def solved(objective, start=None, **stops):
    return solution_of(objective, CuttingPlanes(), Stops(**stops), start=start)


PROBLEMS = {
    "queries": (reference.relevant(60, 4, 8), 1e-2),
    "AUC": (reference.relevant(40, 3, 1, levels=2), 1e-2),
    "all differ": (reference.relevant(25, 3, 1, levels=None), 1e-1),
    "separable": (reference.relevant(20, 40, 3), 1e-2),
    "weak": (reference.relevant(60, 4, 8, seed=1), 1e-4),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_optimum_of_all_pairs_lies_within_the_gap(name, weighted):
    (X, y, q), lam = PROBLEMS[name]
    c = reference.weights(len(y)) if weighted else np.ones(len(y))
    dual, primal = reference.ranking_minimum(lam, X, y, q, c)
    for tol in (1e-3, 1e-6):
        solution = solved(ranking(Ranking(lam), X, y, q, c), tol=tol)
        proof = solution.certificate
        assert solution.status is Status.CONVERGED and proof.relative_gap <= tol
        assert proof.dual <= primal * (1 + 1e-12) and dual <= proof.primal * (1 + 1e-12)
        assert proof.primal == pytest.approx(reference.ranking_primal(lam, X, y, q, c, solution.w), rel=1e-12)


def test_sparse_rows_and_threads_give_the_same_optimum():
    X, y, q = reference.relevant(300, 20, 30)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    found = []
    for rows, n_jobs in ((X, None), (sp.csr_matrix(X), None), (X, 2)):
        with thread_pool(n_jobs) as threads:
            found.append(solved(ranking(Ranking(1e-3), rows, y, q, threads=threads), tol=1e-4).certificate)
    assert all(one.relative_gap <= 1e-4 for one in found)
    assert max(one.dual for one in found) <= min(one.primal for one in found)


def test_a_pickled_state_goes_on_to_the_same_bits():
    X, y, q = reference.relevant(200, 10, 15)
    objective, solver = ranking(Ranking(1e-4), X, y, q), CuttingPlanes()
    state = solver.start(objective, Run(1e-3, True, 100, 0))
    for _ in range(6):
        state = solver.advance(objective, state)
    copy = pickle.loads(pickle.dumps(state))
    for _ in range(6):
        state, copy = (solver.advance(objective, one) for one in (state, copy))
    assert state.bound == copy.bound and state.primal == copy.primal
    np.testing.assert_array_equal(state.w, copy.w)


def test_stops_and_history():
    X, y, q = reference.relevant(200, 20, 20)
    objective = ranking(Ranking(1e-4), X, y, q)
    short = solved(objective, max_iter=3)
    assert short.status is Status.MAX_ITER and short.n_steps == 3 and len(short.trace) == 3
    assert short.certificate.relative_gap > 1e-3
    assert solved(objective, max_seconds=1e-9).status is Status.MAX_SECONDS
    full = solved(objective)
    assert np.all(np.diff(full.trace["primal"]) <= 0) and np.all(np.diff(full.trace["dual"]) >= 0)
    again = solved(objective, start=full)
    assert again.status is Status.CONVERGED and again.n_steps < full.n_steps
    unsure = solved(objective, certify=False)
    assert unsure.certificate is None and unsure.status is Status.FINISHED
    np.testing.assert_array_equal(unsure.w, full.w)


def test_held_out_queries_have_pairs_of_their_own():
    others = reference.relevant(40, 5, 5, seed=1)
    objective, held_out = ranking(Ranking(1e-2), *reference.relevant(50, 5, 3)), ranking(Ranking(1e-2), *others)
    solution = solution_of(objective, CuttingPlanes(), validation=held_out)
    w, best = solution.w, solution.trace["validation_error"].min()
    assert best == pytest.approx(reference.ranking_primal(1e-2, *others, np.ones(40), w) - 5e-3 * w @ w, rel=1e-12)


def test_rounding_ends_a_run_that_asks_for_too_much():
    X, y, q = reference.relevant(30, 3, 3)
    solution = solved(ranking(Ranking(1e-2), X, y, q), tol=1e-17)
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.certificate.relative_gap <= 1e-6


def test_rows_that_say_nothing():
    _, y, q = reference.relevant(30, 3, 3)
    solution = solved(ranking(Ranking(1e-2), np.ones((30, 2)), y, q))
    assert solution.status is Status.CONVERGED and solution.certificate.gap == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(solution.w, 0.0)
