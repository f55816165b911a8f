"""Pegasos on pairs: pairs are drawn by their weight, steps are those of the paper, and it comes near P*."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Pegasos, Status
from primalsvm.data import ALONE, EQUAL_WEIGHTS, Dense, Whitened, as_dataset, squared_norms_of
from primalsvm.ranking import Ranking, ranking_targets
from primalsvm.solvers.pair_pegasos import Draw, PairPegasos, pairs_of
from primalsvm.solvers.protocol import Run
from tests import reference
from tests.helpers import solution_of
from tests.test_ranking import ranking

LAM = 1e-2


def test_pairs_are_drawn_by_their_weight():
    _, y, q = reference.relevant(12, 2, 2, levels=3)
    c = reference.weights(12)
    high, low = Draw(ranking(Ranking(LAM), np.zeros((12, 2)), y, q, c).queries, np.random.default_rng(0))(200_000)
    i, j, cc = reference.pairs(y, q, c)
    share = np.zeros((12, 12))
    share[i, j] = cc / cc.sum()
    found = np.zeros((12, 12))
    np.add.at(found, (high, low), 1 / 200_000)
    assert np.all(found[share == 0] == 0)
    assert np.all(np.abs(found - share) <= 5 * np.sqrt(share / 200_000))  # five standard deviations


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("k", "projection"), [(1, False), (3, True)])
def test_steps_are_those_of_the_paper(convert, k, projection):
    X, y, q = reference.relevant(40, 5, 4)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    solver = PairPegasos(Pegasos(n_iter=50, batch_size=k, projection=projection, average="last"))
    objective = ranking(Ranking(LAM), convert(X), y, q)
    state = solver.start(objective, Run(1e-3, True, 100, 7))
    draw = Draw(objective.queries, np.random.default_rng(7))
    draw(Pegasos.sample)  # the pairs that the solver has looked at to begin with
    w = np.zeros(5)
    t = 0
    while not state.finished:
        before = state.steps
        state = solver.advance(objective, state)
        high, low = draw((state.steps - before) * k)
        for first in range(0, len(high), k):
            t += 1
            delta = X[high[first : first + k]] - X[low[first : first + k]]
            w = (1 - 1 / t) * w + (delta @ w < 1) @ delta / (LAM * t * k)
            if projection:
                w *= min(1.0, 1 / (np.sqrt(LAM) * max(np.linalg.norm(w), 1e-300)))
    assert t == 50
    np.testing.assert_allclose(solver.iterate(objective, state)[0], w, rtol=1e-10)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_norms_of_differences(convert):
    X = np.where(np.random.default_rng(0).random((9, 6)) > 0.5, np.arange(54.0).reshape(9, 6), 0.0)
    high, low = np.array([3, 8, 0, 5], np.uint64), np.array([1, 2, 7, 5], np.uint64)
    norms = np.empty(4)
    squared_norms_of(pairs_of(as_dataset(convert(X)), high, low).rows, np.arange(4), norms)
    np.testing.assert_allclose(norms, np.square(X[high] - X[low]).sum(axis=1), rtol=1e-12)


def test_pairs_of_rows_that_are_copied():
    X, y, q = reference.relevant(200, 4, 20)
    rows = Whitened(Dense(X), np.eye(4), EQUAL_WEIGHTS, ALONE)
    found = [
        solution_of(objective, PairPegasos(Pegasos(n_iter=3000)), seed=1).w
        for objective in (ranking(Ranking(LAM), X, y, q), Ranking(LAM).on(rows, ranking_targets(q, y)))
    ]
    np.testing.assert_array_equal(*found)


def test_an_evaluation_leaves_the_state_as_it_is_and_is_kept_by_observe():
    objective, solver = ranking(Ranking(1e-3), *reference.relevant(2000, 10, 100)), PairPegasos()
    state = solver.start(objective, Run(1e-6, True, 100, 7))
    while not state.worth_evaluating or state.epoch < 4:
        state = solver.advance(objective, state)
    before = pickle.dumps(state)
    found = [solver.evaluate(objective, state) for _ in range(2)]
    assert pickle.dumps(state) == before
    assert found[0].primal == found[1].primal and found[0].dual == found[1].dual
    solver.observe(objective, state, found[0])
    assert state.proof.planes.count > 1 and solver.evaluate(objective, state).dual >= found[0].dual


@pytest.mark.parametrize("weighted", [False, True])
def test_comes_near_the_optimum(weighted):
    X, y, q = reference.relevant(200, 4, 20)
    c = reference.weights(200) if weighted else np.ones(200)
    dual, primal = reference.ranking_minimum(LAM, X, y, q, c)
    solver = PairPegasos(Pegasos(n_iter=50_000))
    solution = solution_of(ranking(Ranking(LAM), X, y, q, c), solver, seed=1)
    value = reference.ranking_primal(LAM, X, y, q, c, solution.w)
    assert solution.status is Status.FINISHED and solution.n_steps == 50_000
    assert dual * (1 - 1e-12) <= value <= 1.005 * primal
    assert solution.certificate.primal == pytest.approx(value, rel=1e-12)
    assert 0 < solution.certificate.dual <= primal * (1 + 1e-12)


def test_with_a_goal_it_is_certified_to_it_and_repeatable():
    X, y, q = reference.relevant(2000, 10, 100)
    objective = ranking(Ranking(1e-3), X, y, q)
    found = [solution_of(objective, PairPegasos(), seed=3) for _ in range(2)]
    assert found[0].status is Status.CONVERGED and found[0].certificate.relative_gap <= 1e-3
    np.testing.assert_array_equal(found[0].w, found[1].w)
    again = solution_of(objective, PairPegasos(), seed=3, start=found[0])
    assert again.state.stream.iterate.t == found[0].n_steps + again.n_steps


@pytest.mark.parametrize(
    "options", [{"n_iter": "theory", "epsilon": 0.1}, {"n_iter": 10, "tries": 2}, {"average": "random"}]
)
def test_what_pairs_do_not_have(options):
    with pytest.raises(ValueError, match="neither n_iter='theory' nor"):
        PairPegasos(Pegasos(**options))
