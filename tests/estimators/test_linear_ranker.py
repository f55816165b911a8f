"""LinearRanker: the optimum of all pairs, weights as copies, metrics of others, and sentences for bad input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import ndcg_score, roc_auc_score

import primalsvm
from primalsvm import CuttingPlanes, LinearRanker, Newton, Pegasos
from primalsvm.sources.svmlight import write_svmlight
from tests import reference

X, Y, Q = reference.relevant(150, 5, 12)


@pytest.mark.parametrize("solver", ["auto", "cutting_planes"])
@pytest.mark.parametrize("c", [None, reference.weights(150)])
def test_finds_the_optimum_of_all_pairs(solver, c):
    ranker = LinearRanker(C=2.0, solver=solver).fit(X, Y, c, qid=Q)
    weights = np.ones(150) if c is None else c
    lam = 1 / (2.0 * weights.sum())
    dual, primal = reference.ranking_minimum(lam, X, Y, Q, weights)
    value = reference.ranking_primal(lam, X, Y, Q, weights, ranker.coef_)
    proof = ranker.certificate_
    assert proof.relative_gap <= (1e-10 if solver == "auto" else 1e-3)
    assert proof.primal == pytest.approx(value, rel=1e-10)
    assert proof.dual <= primal * (1 + 1e-12) and dual <= value * (1 + 1e-12)
    assert isinstance(ranker.solver_, Newton if solver == "auto" else CuttingPlanes)
    assert ranker.coef_.shape == (5,) and ranker.intercept_ == [0.0] and ranker.n_iter_ >= 1


def test_weights_are_copies():
    c = np.random.default_rng(0).integers(0, 3, 150)
    copies = np.repeat(np.arange(150), c)
    weighted = LinearRanker().fit(X, Y, c.astype(float), qid=Q)
    repeated = LinearRanker().fit(X[copies], Y[copies], qid=Q[copies])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)


def test_queries_may_be_text_in_any_order_and_one_without_qid():
    names = np.array([f"query {k}" for k in range(12)])[Q]
    order = np.random.default_rng(0).permutation(150)
    ranker = LinearRanker().fit(X, Y, qid=Q)
    np.testing.assert_allclose(LinearRanker().fit(X, Y, qid=names).coef_, ranker.coef_)
    np.testing.assert_allclose(LinearRanker().fit(X[order], Y[order], qid=Q[order]).coef_, ranker.coef_, rtol=1e-6)
    one = LinearRanker().fit(X, Y)
    np.testing.assert_array_equal(one.coef_, LinearRanker().fit(X, Y, qid=np.full(150, "all")).coef_)
    assert np.abs(one.coef_ - ranker.coef_).max() > 1e-3


def test_two_levels_without_queries_rank_by_auc():
    rows, y, _ = reference.relevant(2000, 10, 1, levels=2)
    ranker = LinearRanker(lam=1e-3).fit(rows[:1000], y[:1000])
    assert roc_auc_score(y[1000:], ranker.predict(rows[1000:])) > 0.9
    assert ranker.certificate_.relative_gap <= 1e-3


def test_scores_are_the_means_of_others_metrics():
    ranker = LinearRanker().fit(X, Y, qid=Q)
    scores = ranker.predict(X)
    np.testing.assert_allclose(scores, X @ ranker.coef_, rtol=1e-12)
    by_query = [(Y[k == Q], scores[k == Q]) for k in range(12)]
    taus = [scipy.stats.kendalltau(relevance, score).statistic for relevance, score in by_query]
    assert ranker.score(X, Y, qid=Q) == pytest.approx(np.mean(taus))
    gains = [ndcg_score([relevance], [score], k=3) for relevance, score in by_query]
    assert ranker.ndcg(X, Y, qid=Q, k=3) == pytest.approx(np.mean(gains))
    assert ranker.score(X, Y) == pytest.approx(scipy.stats.kendalltau(Y, scores).statistic)
    ranker.coef_ = np.zeros(5)
    assert ranker.score(X, Y, qid=Q) == 0.0


def test_pegasos_and_other_solver_objects():
    near = LinearRanker(lam=1e-2, solver=Pegasos(n_iter=20_000), tol=0.5, random_state=0).fit(X, Y, qid=Q)
    exact = LinearRanker(lam=1e-2).fit(X, Y, qid=Q)
    assert near.n_steps_ == 20_000
    assert exact.certificate_.dual <= near.certificate_.primal <= 1.01 * exact.certificate_.primal
    goal = LinearRanker(lam=1e-2, solver="pegasos", random_state=0).fit(X, Y, qid=Q)
    assert goal.certificate_.relative_gap <= 1e-3
    assert isinstance(LinearRanker(solver=CuttingPlanes()).fit(X, Y, qid=Q).solver_, CuttingPlanes)


def test_warm_starts_go_on():
    ranker = LinearRanker(solver="cutting_planes", warm_start=True).fit(X, Y, qid=Q)
    steps = ranker.n_steps_
    assert ranker.fit(X, Y, qid=Q).n_steps_ < steps


def test_a_fit_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match=r"LinearRanker stopped after 2 epochs .* > tol"):
        LinearRanker(solver="cutting_planes", max_iter=2).fit(X, Y, qid=Q)


def test_queries_of_one_level_warn_and_are_left_out():
    y = np.where(Q < 3, 1.0, Y)
    with pytest.warns(UserWarning, match=r"3 of 12 queries have one level of relevance only"):
        ranker = LinearRanker(lam=0.01).fit(X, y, qid=Q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without = LinearRanker(lam=0.01).fit(X[Q >= 3], y[Q >= 3], qid=Q[Q >= 3])
    np.testing.assert_allclose(ranker.coef_, without.coef_, rtol=1e-6)
    assert ranker.score(X, y, qid=Q) == pytest.approx(without.score(X[Q >= 3], y[Q >= 3], qid=Q[Q >= 3]))


@pytest.mark.parametrize(
    ("y", "qid", "sentence"),
    [
        (Y, Q[:-1], r"qid has shape \(149,\), but there are 150 rows"),
        (Y, Q[:, None], r"qid has shape \(150, 1\)"),
        (Y, np.where(Q == 1, np.nan, Q), "qid contains NaN"),
        (Y, np.array([*Q[:-1], "x"], object), "numbers, or texts, not both"),
        (np.ones(150), Q, "no query has rows of two levels of relevance"),
        (Q.astype(float), Q, "no query has rows of two levels of relevance"),
        (np.where(Y == 1, np.nan, Y), Q, "NaN"),
        (np.full(150, "good"), Q, "[Nn]umber|numeric|convert"),
    ],
)
def test_bad_relevances_and_queries_are_refused(y, qid, sentence):
    with pytest.raises(ValueError, match=sentence):
        LinearRanker().fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"solver": "newton"}, "solver='newton': choose 'auto', 'cutting_planes', 'pegasos' or give"),
        ({"C": 0.0}, "C must be positive"),
        ({"lam": -1.0}, "lam must be a positive number"),
        ({"tol": 0.0}, "tol must be positive"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        LinearRanker(**options).fit(X, Y, qid=Q)


def test_bad_questions_are_refused():
    ranker = LinearRanker().fit(X, Y, qid=Q)
    with pytest.raises(ValueError, match="k must be at least 1"):
        ranker.ndcg(X, Y, qid=Q, k=0)
    with pytest.raises(ValueError, match="nothing to rank"):
        ranker.score(X, np.ones(150), qid=Q)
    with pytest.raises(ValueError, match="inconsistent"):
        ranker.score(X, Y[:-1])


@pytest.mark.parametrize("cached", [False, True])
def test_a_file_brings_its_queries(tmp_path, cached):
    rows = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    write_svmlight(tmp_path / "train.svm", rows, Y, qid=Q)
    source = primalsvm.open(tmp_path / "train.svm")
    source = source.to_cache(tmp_path / "cache") if cached else source
    ranker = LinearRanker(memory=0.0 if cached else None).fit(source)
    direct = LinearRanker().fit(rows, Y, qid=Q)
    np.testing.assert_allclose(ranker.coef_, direct.coef_, rtol=1e-9)
    assert ranker.score(source) == pytest.approx(direct.score(rows, Y, qid=Q))
    assert ranker.ndcg(source) == pytest.approx(direct.ndcg(rows, Y, qid=Q))
    np.testing.assert_allclose(ranker.predict(source), direct.predict(rows), rtol=1e-9)
    np.testing.assert_allclose(LinearRanker().fit(source, qid=np.zeros(150)).coef_, LinearRanker().fit(rows, Y).coef_)


@pytest.mark.parametrize("solver", ["auto", "cutting_planes", Pegasos(n_iter=5_000)])
def test_a_model_file_scores_the_same(tmp_path, solver):
    ranker = LinearRanker(lam=0.01, solver=solver, tol=1.0, random_state=0).fit(X, Y, qid=Q)
    ranker.save(tmp_path / "ranker")
    again = primalsvm.load(tmp_path / "ranker")
    np.testing.assert_array_equal(again.predict(X), ranker.predict(X))
    assert again.certificate_ == ranker.certificate_ and repr(again.solver_) == repr(ranker.solver_)
