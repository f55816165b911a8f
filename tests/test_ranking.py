"""Rankings: values and sub-gradients without pairs, against all pairs in plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from primalsvm import Hinge, Problem
from primalsvm.inputs import as_batch
from primalsvm.ranking import Ranking, formed, judged, queries_of
from primalsvm.team import Team
from tests import reference

ALONE = Team(1)
each_average = pytest.mark.parametrize("average", ["queries", "pairs"])


def ranked(X, y, q, c=None):
    return as_batch(X, np.zeros(len(y)), c)._replace(y=judged(q, y))


@st.composite
def rankings(draw):
    """Scores on a grid, so that there are ties and margins of exactly 1; weights with zeros; few or many levels."""
    m = draw(st.integers(2, 40))
    rows = st.lists(st.tuples(*[st.integers(-8, 8)] * 2, st.integers(0, 3)), min_size=m, max_size=m)
    values = np.array(draw(rows))
    y = draw(st.lists(st.integers(0, draw(st.integers(1, 30))), min_size=m, max_size=m))
    c = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.25]), min_size=m, max_size=m))
    return 0.25 * values[:, :2], np.array(y, float), values[:, 2], np.array(c)


@each_average
@given(problem=rankings())
def test_values_and_subgradients_are_those_of_all_pairs(problem, average):
    X, y, q, c = problem
    i, j, cc = reference.pairs(y, q, c, average)
    assume(c.max() > 0)
    batch = ranked(X, y, q, c)
    if not cc.size:
        with pytest.raises(ValueError, match="no query has rows of two levels"):
            Ranking(0.1, average).settled(batch)
        return
    w = np.array([1.0, -0.5])
    ranking = Ranking(0.1, average).settled(batch)
    violated = (X[i] - X[j]) @ w < 1
    h, r = ranking.plane_at(X @ w, ALONE)
    expected = -((cc * violated)[:, None] * (X[i] - X[j])).sum(axis=0) / cc.sum()
    assert h == pytest.approx((cc * violated).sum() / cc.sum(), abs=1e-14)
    np.testing.assert_allclose(ranking.combined(batch, r, ALONE), expected, atol=1e-12)
    expected = reference.ranking_primal(0.1, X, y, q, c, w, average)
    assert ranking.value(batch, w, ALONE) == pytest.approx(expected, abs=1e-12)
    assert ranking.queries.total == pytest.approx(cc.sum()) and ranking.queries.n_pairs == len(i)


@pytest.mark.parametrize("levels", [2, 5, None])
@pytest.mark.parametrize("queries", [1, 7])
@pytest.mark.parametrize("threads", [1, 3])
def test_long_queries_and_threads(levels, queries, threads):
    X, y, q = reference.relevant(700, 4, queries, levels)
    c, w = reference.weights(700), np.array([1.0, -1.0, 0.5, 2.0])
    batch = ranked(X, y, q, c)
    with Team(threads) as team:
        found = Ranking(0.1).settled(batch).value(batch, w, team)
    assert found == pytest.approx(reference.ranking_primal(0.1, X, y, q, c, w), rel=1e-12)


@each_average
def test_a_weight_is_a_number_of_copies_and_zero_is_none(average):
    X, y, q = reference.relevant(60, 3, 4)
    c = np.random.default_rng(1).integers(0, 4, 60)
    twice = np.repeat(np.arange(60), c)
    w = np.array([0.5, 1.0, -1.0])
    values = [
        Ranking(0.1, average).settled(batch).value(batch, w, ALONE)
        for batch in (ranked(X, y, q, c.astype(float)), ranked(X[twice], y[twice], q[twice]))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-14)


@each_average
@pytest.mark.parametrize("convert", [np.asarray, lambda X: X.astype(np.float32), sp.csr_matrix])
def test_formed_pairs_are_the_same_problem(convert, average):
    X, y, q = reference.relevant(80, 5, 6)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32).astype(float)
    c, w = reference.weights(80), np.linspace(-1, 1, 5)
    batch = ranked(convert(X), y, q, c)
    pairs = formed(batch, queries_of(batch, average))
    expected = reference.ranking_primal(0.1, X, y, q, c, w, average)
    assert Problem(Hinge(), 0.1).value(pairs, w, 0.0) == pytest.approx(expected, rel=1e-12)


def test_queries_without_pairs_are_counted():
    batch = ranked(np.eye(5), np.array([1.0, 0, 2, 2, 3]), np.array([5, 5, 8, 8, 1]))
    queries = queries_of(batch)
    assert queries.idle == 2 and queries.n_pairs == 1 and sorted(queries.row) == [0, 1]


def test_held_out_rows_have_queries_of_their_own():
    X, y, q = reference.relevant(50, 3, 3)
    others = reference.relevant(40, 3, 5, seed=1)
    w = np.ones(3)
    ranking = Ranking(0.1).settled(ranked(X, y, q))
    expected = reference.ranking_primal(0.1, *others, np.ones(40), w) - 0.15
    assert ranking.held_out_error(ranked(*others), w, 0.0, ALONE) == pytest.approx(expected, rel=1e-12)


def test_averages_have_names():
    with pytest.raises(ValueError, match="average='rows'"):
        Ranking(0.1, "rows")


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_lam_must_be_positive(lam):
    with pytest.raises(ValueError, match="lam must be a positive number"):
        Ranking(lam)
