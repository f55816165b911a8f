"""Rankings: values and sub-gradients without pairs, against all pairs in plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from primalsvm.data import ALONE, as_dataset, thread_pool
from primalsvm.ranking import Ranking, queries_of, ranking_targets
from tests import reference

each_average = pytest.mark.parametrize("average", ["queries", "pairs"])


def ranking(problem, X, y, q, c=None, threads=ALONE):
    return problem.on(as_dataset(X, c, threads=threads), ranking_targets(q, y))


def long_indices(X):
    """CSR rows with indices of 64 bits."""
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


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
    if not cc.size:
        with pytest.raises(ValueError, match="no query has rows of two levels"):
            ranking(Ranking(0.1, average), X, y, q, c)
        return
    w = np.array([1.0, -0.5])
    objective = ranking(Ranking(0.1, average), X, y, q, c)
    violated = (X[i] - X[j]) @ w < 1
    h, r = objective.plane_at(X @ w)
    expected = -((cc * violated)[:, None] * (X[i] - X[j])).sum(axis=0) / cc.sum()
    assert h == pytest.approx((cc * violated).sum() / cc.sum(), abs=1e-14)
    np.testing.assert_allclose(objective.combine(r), expected, atol=1e-12)
    expected = reference.ranking_primal(0.1, X, y, q, c, w, average)
    assert objective.value(w) == pytest.approx(expected, abs=1e-12)
    assert objective.queries.total == pytest.approx(cc.sum()) and objective.queries.n_pairs == len(i)


@pytest.mark.parametrize("levels", [2, 5, None])
@pytest.mark.parametrize("queries", [1, 7])
@pytest.mark.parametrize("threads", [1, 3])
def test_long_queries_and_threads(levels, queries, threads):
    X, y, q = reference.relevant(700, 4, queries, levels)
    c, w = reference.weights(700), np.array([1.0, -1.0, 0.5, 2.0])
    with thread_pool(threads) as pool:
        found = ranking(Ranking(0.1), X, y, q, c, pool).value(w)
    assert found == pytest.approx(reference.ranking_primal(0.1, X, y, q, c, w), rel=1e-12)


@each_average
def test_a_weight_is_a_number_of_copies_and_zero_is_none(average):
    X, y, q = reference.relevant(60, 3, 4)
    c = np.random.default_rng(1).integers(0, 4, 60)
    twice = np.repeat(np.arange(60), c)
    w = np.array([0.5, 1.0, -1.0])
    problem = Ranking(0.1, average)
    weighted, repeated = ranking(problem, X, y, q, c.astype(float)), ranking(problem, X[twice], y[twice], q[twice])
    values = [objective.value(w) for objective in (weighted, repeated)]
    assert values[0] == pytest.approx(values[1], rel=1e-14)


@each_average
@pytest.mark.parametrize("convert", [np.asarray, lambda X: X.astype(np.float32), sp.csr_matrix, long_indices])
def test_pairs_as_rows_are_the_same_problem(convert, average):
    X, y, q = reference.relevant(80, 5, 6)
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32).astype(float)
    c, w = reference.weights(80), np.linspace(-1, 1, 5)
    pairs = ranking(Ranking(0.1, average), convert(X), y, q, c).as_classification()
    expected = reference.ranking_primal(0.1, X, y, q, c, w, average)
    assert pairs.value(w, 0.0) == pytest.approx(expected, rel=1e-12)


def test_queries_without_pairs_are_counted():
    y = ranking_targets(np.array([5, 5, 8, 8, 1]), np.array([1.0, 0, 2, 2, 3]))
    queries = queries_of(as_dataset(np.eye(5)), y)
    assert queries.without_pairs == 2 and queries.n_pairs == 1 and sorted(queries.row) == [0, 1]


def test_the_held_out_error_is_the_mean_over_pairs():
    others = reference.relevant(40, 3, 5, seed=1)
    w = np.ones(3)
    expected = reference.ranking_primal(0.1, *others, np.ones(40), w) - 0.15
    assert ranking(Ranking(0.1), *others).held_out_error(w, 0.0) == pytest.approx(expected, rel=1e-12)


def test_averages_have_names():
    with pytest.raises(ValueError, match="average='rows'"):
        Ranking(0.1, "rows")


@pytest.mark.parametrize("lam", [0.0, -1.0, np.nan, np.inf])
def test_lam_must_be_positive(lam):
    with pytest.raises(ValueError, match="lam must be a positive number"):
        Ranking(lam)
