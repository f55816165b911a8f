"""Cutting planes: P* of all pairs, by an interior-point method, is within the certified gap, which is at most `tol`."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Status
from primalsvm.ranking import Ranking
from primalsvm.solvers.cutting_planes import CuttingPlanes
from primalsvm.solvers.drive import Stops, drive
from primalsvm.solvers.protocol import Run
from primalsvm.team import Team
from tests import reference
from tests.test_ranking import ranked

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
        solution = drive(Ranking(lam), ranked(X, y, q, c), CuttingPlanes(), Stops(tol=tol))
        proof = solution.certificate
        assert solution.status is Status.CONVERGED and proof.relative_gap <= tol
        assert proof.dual <= primal * (1 + 1e-12) and dual <= proof.primal * (1 + 1e-12)
        assert proof.primal == pytest.approx(reference.ranking_primal(lam, X, y, q, c, solution.w), rel=1e-12)


def test_sparse_rows_and_threads_give_the_same_optimum():
    X, y, q = reference.relevant(300, 20, 30)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    found = [
        drive(Ranking(1e-3), ranked(rows, y, q), CuttingPlanes(), Stops(tol=1e-4), n_jobs=n_jobs).certificate
        for rows, n_jobs in ((X, None), (sp.csr_matrix(X), None), (X, 2))
    ]
    assert all(one.relative_gap <= 1e-4 for one in found)
    assert max(one.dual for one in found) <= min(one.primal for one in found)


def test_a_pickled_state_goes_on_to_the_same_bits():
    X, y, q = reference.relevant(200, 10, 15)
    batch, solver, team = ranked(X, y, q), CuttingPlanes(), Team(1)
    problem = Ranking(1e-4).settled(batch)
    state = solver.start(problem, batch, Run(1e-3, True, 100, 0), team)
    for _ in range(6):
        state = solver.advance(problem, batch, state, team)
    copy = pickle.loads(pickle.dumps(state))
    for _ in range(6):
        state, copy = (solver.advance(problem, batch, one, team) for one in (state, copy))
    assert state.bound == copy.bound and state.primal == copy.primal
    np.testing.assert_array_equal(state.w, copy.w)


def test_stops_and_history():
    X, y, q = reference.relevant(200, 20, 20)
    batch = ranked(X, y, q)
    short = drive(Ranking(1e-4), batch, CuttingPlanes(), Stops(max_iter=3))
    assert short.status is Status.MAX_ITER and short.n_steps == 3 and len(short.trace) == 3
    assert short.certificate.relative_gap > 1e-3
    assert drive(Ranking(1e-4), batch, CuttingPlanes(), Stops(max_seconds=1e-9)).status is Status.MAX_SECONDS
    full = drive(Ranking(1e-4), batch, CuttingPlanes(), Stops())
    assert np.all(np.diff(full.trace["primal"]) <= 0) and np.all(np.diff(full.trace["dual"]) >= 0)
    again = drive(Ranking(1e-4), batch, CuttingPlanes(), Stops(), start=full)
    assert again.status is Status.CONVERGED and again.n_steps < full.n_steps
    unsure = drive(Ranking(1e-4), batch, CuttingPlanes(), Stops(certify=False))
    assert unsure.certificate is None and unsure.status is Status.FINISHED
    np.testing.assert_array_equal(unsure.w, full.w)


def test_rounding_ends_a_run_that_asks_for_too_much():
    X, y, q = reference.relevant(30, 3, 3)
    solution = drive(Ranking(1e-2), ranked(X, y, q), CuttingPlanes(), Stops(tol=1e-17))
    assert solution.status in (Status.STALLED, Status.CONVERGED)
    assert solution.certificate.relative_gap <= 1e-6


def test_rows_that_say_nothing():
    _, y, q = reference.relevant(30, 3, 3)
    solution = drive(Ranking(1e-2), ranked(np.ones((30, 2)), y, q), CuttingPlanes(), Stops())
    assert solution.status is Status.CONVERGED and solution.certificate.gap == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_array_equal(solution.w, 0.0)
