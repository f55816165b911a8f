"""Streams of a LinearSVC: the paper's steps, the same bits however it is cut, balance and validation on the way."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from primalsvm import Asset, LinearSVC, Pegasos
from primalsvm.estimators.streams import widen_features
from tests.reference import noisy

LAM = 1e-2
X, y = noisy(2500, 7, seed=3)
SPARSE = sp.csr_matrix(np.where(np.random.default_rng(4).random(X.shape) < 0.5, X, 0.0))
SOLVERS = [Pegasos(), Pegasos(batch_size=7, projection=True, average="weighted"), Asset(), Asset(average_last=10, M=50)]


def streamed(rows, cuts, **options):
    clf = LinearSVC(**{"lam": LAM, **options})
    for a, b in itertools.pairwise([0, *cuts, rows.shape[0]]):
        clf.partial_fit(rows[a:b], y[a:b], classes=[-1, 1])
    return clf


def test_takes_the_steps_of_pegasos_in_the_order_of_the_stream():
    clf = streamed(X, [100, 1700], solver=Pegasos(average="last"), fit_intercept=False)
    w = np.zeros(X.shape[1])
    for t, (x, label) in enumerate(zip(X, y, strict=True), 1):
        w = (1 - 1 / t) * w + (label * (w @ x) < 1) * label * x / (LAM * t)
    np.testing.assert_allclose(clf.coef_[0], w, rtol=1e-9)
    assert clf.n_steps_ == clf.n_samples_seen_ == len(y)


@pytest.mark.parametrize("rows", [X, SPARSE, X.astype(np.float32)], ids=["dense", "CSR", "float32"])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_the_same_bits_however_the_stream_is_cut(rows, solver):
    for class_weight in (None, "balanced"):
        whole = streamed(rows, [], solver=solver, class_weight=class_weight)
        for cuts in ([1, 2, 3], [999, 1000, 1001], range(1, 60), [49, 50, 2499]):
            clf = streamed(rows, cuts, solver=solver, class_weight=class_weight)
            assert clf.coef_.tobytes() == whole.coef_.tobytes() and clf.intercept_ == whole.intercept_


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(1, 2499), max_size=8))
def test_any_cut_gives_the_same_bits(cuts):
    assert streamed(SPARSE, sorted(cuts)).coef_.tobytes() == streamed(SPARSE, []).coef_.tobytes()


def test_learns_as_well_as_a_fit_nearly():
    clf = LinearSVC(lam=1e-2).fit(X[:2000], y[:2000])
    online = LinearSVC(lam=1e-2).partial_fit(X[:2000], y[:2000])
    assert online.score(X[2000:], y[2000:]) > clf.score(X[2000:], y[2000:]) - 0.03


def test_each_batch_is_tested_before_it_is_learnt():
    clf = LinearSVC(lam=LAM)
    wrong, tested = 0, 0
    for a in range(0, 2500, 250):
        part, labels = X[a : a + 250], y[a : a + 250]
        if a:
            wrong, tested = wrong + int((clf.predict(part) != labels).sum()), tested + 250
        clf.partial_fit(part, labels)
        assert (wrong / tested if a else np.nan) == pytest.approx(clf.progressive_error_, nan_ok=True)


def test_balanced_weights_follow_the_shares_so_far():
    counts = {-1.0: 1.0, 1.0: 1.0}
    weight = np.empty(len(y))
    for i, label in enumerate(y):
        counts[label] += 1.0
        weight[i] = sum(counts.values()) / (2 * counts[label])
    by_hand = LinearSVC(lam=LAM)
    for a, b in itertools.pairwise([0, 10, 1500, 2500]):
        by_hand.partial_fit(X[a:b], y[a:b], classes=[-1, 1], sample_weight=weight[a:b])
    found = streamed(X, [10, 1500], class_weight="balanced")
    np.testing.assert_allclose(found.coef_, by_hand.coef_, rtol=1e-12)


def test_columns_may_come_later():
    late = sp.vstack([sp.csr_matrix((1200, 3)), SPARSE[1200:, :3]])
    wide = sp.hstack([SPARSE, late]).tocsr()
    clf = LinearSVC(lam=LAM, solver=Asset(batch_size=7))
    clf.partial_fit(wide[:400, :7], y[:400])
    widen_features(clf, 10)
    clf.partial_fit(wide[400:], y[400:])
    known = LinearSVC(lam=LAM, solver=Asset(batch_size=7)).partial_fit(wide, y)
    np.testing.assert_allclose(clf.coef_, known.coef_, rtol=1e-12)
    assert clf.predict(wide).shape == (2500,)


def test_a_stream_can_be_pickled_and_goes_on_to_the_same_bits():
    clf = streamed(X[:1500], [])
    again = pickle.loads(pickle.dumps(clf))
    for one in (clf, again):
        one.partial_fit(X[1500:], y[1500:])
    assert clf.coef_.tobytes() == again.coef_.tobytes()


def test_memory_does_not_grow_with_the_stream():
    clf = streamed(X, [])
    size = len(pickle.dumps(clf))
    for _ in range(5):
        clf.partial_fit(X, y)
    assert len(pickle.dumps(clf)) <= size + 200


def test_a_fit_ends_the_stream():
    clf = streamed(X, [])
    clf.fit(X, y)
    assert not hasattr(clf, "progressive_error_") and not hasattr(clf, "n_samples_seen_")
    assert clf.certificate_.relative_gap < 1e-3
    clf.partial_fit(X[:10], y[:10])
    assert clf.certificate_ is None and clf.n_steps_ == 10


def test_refusals():
    with pytest.raises(AttributeError) as caught:
        LinearSVC().partial_fit(X, y)
    assert "partial_fit needs lam" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="two classes or more are needed"):
        LinearSVC(lam=LAM).partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="stochastic solver"):
        LinearSVC(lam=LAM, solver="newton").partial_fit(X, y)
    with pytest.raises(ValueError, match="cannot be joined"):
        LinearSVC(lam=LAM).partial_fit(X[:10], y[:10]).partial_fit(SPARSE[:10], y[:10])
