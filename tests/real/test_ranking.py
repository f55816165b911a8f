"""Ranking real queries: certified, and no worse than a regression on the relevances.

`python -m benchmarks.run --only ranking` has the figures, with more of the grid.
"""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GroupKFold
from sklearn.svm import LinearSVR

from primalsvm import LinearRanker
from tests.real import datasets

pytestmark = [
    pytest.mark.skipif(datasets.folder() is None, reason="PRIMALSVM_DATA names no folder of data sets"),
    pytest.mark.filterwarnings("ignore:.*one level of relevance only"),
]


def gains(y, scores, q):
    """NDCG@10 of every query with two levels of relevance."""
    parts = [q == k for k in np.unique(q)]
    return np.array([ndcg_score([y[i]], [scores[i]], k=10) for i in parts if np.ptp(y[i]) > 0])


def chosen(fit):
    """NDCG@10 of the test queries, with C from folds of the training queries."""
    (X, y, q), (X_test, y_test, q_test) = datasets.lambdarank("train"), datasets.lambdarank("test")
    folds = list(GroupKFold(5).split(X, y, q))
    by_c = {
        C: np.mean([gains(y[b], fit(C, X[a], y[a], q[a]).predict(X[b]), q[b]).mean() for a, b in folds])
        for C in (1e-3, 1e-2, 1e-1)
    }
    model = fit(max(by_c, key=by_c.get), X, y, q)
    return gains(y_test, model.predict(X_test), q_test), model


def test_ranks_no_worse_than_a_regression():
    ours, ranker = chosen(lambda C, X, y, q: LinearRanker(C=C).fit(X, y, qid=q))
    theirs, _ = chosen(lambda C, X, y, q: LinearSVR(C=C, max_iter=20_000, random_state=0).fit(X, y))
    assert ranker.certificate_.relative_gap <= 1e-3
    assert ours.mean() >= theirs.mean() > 0.7  # a random order has 0.66


def test_cutting_planes_agree_with_newton_on_the_pairs():
    X, y, q = datasets.lambdarank("train")
    found = [LinearRanker(solver=solver).fit(X, y, qid=q).certificate_ for solver in ("auto", "cutting_planes")]
    assert max(one.relative_gap for one in found) <= 1e-3
    assert max(one.dual for one in found) <= min(one.primal for one in found)
