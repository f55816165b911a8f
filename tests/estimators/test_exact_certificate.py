"""Certificates of Nyström machines in the problem of the kernel itself, against exact machines."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from primalsvm import SVC

X, Y = make_moons(240, noise=0.25, random_state=0)
THREE = np.where(X[:, 0] > 0.8, 2, Y)
WEIGHTS = np.random.default_rng(0).uniform(0.2, 2.0, Y.shape[0])
LABELS = np.column_stack([Y, X[:, 1] > 0.4, np.ones(Y.shape[0])]).astype(int)


def nystroem(**given):
    return SVC(gamma=2.0, approximation="nystroem", n_components=25, random_state=0, **given)


def optimum(y, weight=None, **given):
    """P* of the exact problem."""
    clf = SVC(gamma=2.0, approximation="exact", tol=1e-10, **given).fit(X, y, weight)
    return clf.certificate_.primal


@pytest.mark.parametrize(
    ("given", "weight"),
    [
        ({}, None),
        ({"C": 30.0, "class_weight": "balanced"}, WEIGHTS),
        ({"loss": "squared_hinge"}, None),
        ({"fit_intercept": False}, WEIGHTS),
        ({"penalize_intercept": True}, None),
    ],
)
def test_the_bounds_hold_the_optimum_of_the_exact_problem(given, weight):
    clf = nystroem(**given).fit(X, Y, weight)
    truth = optimum(Y, weight, **given)
    loose, tight = clf.exact_certificate(X, Y, weight), clf.exact_certificate(X, Y, weight, tol=1e-6)
    assert loose.primal == tight.primal == pytest.approx(clf.certificate_.primal, rel=1e-9)
    assert 0.0 < loose.dual <= tight.dual <= truth * (1 + 1e-9)
    assert tight.dual == pytest.approx(truth, rel=2e-6)
    assert truth <= tight.primal


def test_several_classes_and_labels_have_the_sum_of_their_problems():
    by_class = sum(optimum(k == THREE, lam=1e-2) for k in range(3))
    found = nystroem(lam=1e-2).fit(X, THREE).exact_certificate(X, THREE, tol=1e-6)
    assert found.dual == pytest.approx(by_class, rel=2e-6)
    assert found.primal >= by_class
    with pytest.warns(UserWarning, match="label"):
        clf = nystroem(lam=1e-2).fit(X, LABELS)
    by_label = sum(optimum(LABELS[:, k], lam=1e-2) for k in range(2))
    found = clf.exact_certificate(X, LABELS, tol=1e-6)
    assert found.dual == pytest.approx(by_label, rel=2e-6)
    assert found.primal == pytest.approx(clf.certificate_.primal, rel=1e-9)


def test_sparse_rows_and_a_precomputed_kernel_have_the_same_bounds():
    dense = nystroem().fit(X, Y).exact_certificate(X, Y, tol=1e-6)
    sparse = nystroem().fit(sp.csr_matrix(X), Y).exact_certificate(sp.csr_matrix(X), Y, tol=1e-6)
    np.testing.assert_allclose(sparse[:2], dense[:2], rtol=1e-5)
    K = rbf_kernel(X, gamma=2.0)
    clf = SVC(kernel="precomputed", approximation="nystroem", n_components=25, random_state=0).fit(K, Y)
    found = clf.exact_certificate(K, Y, tol=1e-6)
    assert found.primal == pytest.approx(clf.certificate_.primal, rel=1e-9)
    assert found.dual == pytest.approx(optimum(Y), rel=2e-6)


def test_single_precision_features_have_bounds_in_double_precision():
    rows = np.random.default_rng(1).normal(size=(45_000, 3)).astype(np.float32) + 30.0
    y = np.where(rows[:, 0] * rows[:, 1] > 900.0, 1, 0)
    clf = SVC(gamma=0.1, approximation="nystroem", n_components=100, random_state=0, loss="squared_hinge").fit(rows, y)
    assert clf.feature_map_.points.columns.dtype == np.float32
    found = clf.exact_certificate(rows, y)
    assert found.primal == pytest.approx(clf.certificate_.primal, rel=1e-3)
    assert found.dual < found.primal


def test_an_exact_machine_has_its_own():
    clf = SVC(gamma=2.0).fit(X, Y)
    assert clf.approximation_ == "exact"
    assert clf.exact_certificate(X, Y) is clf.certificate_


def test_what_cannot_be_certified_is_refused():
    with pytest.raises(ValueError, match="only the w of Nyström features lies in the space of the kernel"):
        SVC(gamma=2.0, approximation="fourier", random_state=0).fit(X, Y).exact_certificate(X, Y)
    clf = nystroem().fit(X, Y)
    with pytest.raises(ValueError, match="fitted to 240 rows, but X has 239"):
        clf.exact_certificate(X[1:], Y[1:])
    with pytest.raises(ValueError, match="other classes"):
        clf.exact_certificate(X, np.where(Y, "a", "b"))
    with pytest.raises(ValueError, match="certify=False"):
        SVC(gamma=2.0, certify=False).fit(X, Y).exact_certificate(X, Y)
    for given in ({"kernel": "sigmoid", "coef0": -1.0}, {"kernel": "poly", "coef0": -1.0}):
        clf = SVC(approximation="nystroem", n_components=25, random_state=0, **given).fit(X, Y)
        with pytest.raises(ValueError, match="not positive definite"):
            clf.exact_certificate(X, Y)
