"""Several labels a row: each label is fitted as if alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import accuracy_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC as TheirLinearSVC

from primalsvm import SVC, LinearSVC, load
from primalsvm import open as open_source

X, Y = make_multilabel_classification(200, 6, n_classes=4, n_labels=2, random_state=0)
X = scale(X)
WEIGHT = np.random.default_rng(0).integers(0, 3, size=200).astype(float)
FOURIER = SVC(lam=0.01, gamma=0.1, approximation="fourier", n_components=32, random_state=0)
each_kind = pytest.mark.parametrize("model", [LinearSVC(lam=0.01), FOURIER], ids=["LinearSVC", "SVC"])


def fresh(model, **changed):
    return type(model)(**{**model.get_params(), **changed})


@each_kind
def test_each_label_is_fitted_as_if_alone(model):
    together = fresh(model).fit(X, Y)
    one_by_one = OneVsRestClassifier(fresh(model)).fit(X, Y)
    np.testing.assert_allclose(together.decision_function(X), one_by_one.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(together.predict(X), one_by_one.predict(X))
    np.testing.assert_array_equal(together.classes_, one_by_one.classes_)
    assert together.predict(X).dtype == Y.dtype and together.multilabel_
    assert together.score(X, Y) == accuracy_score(Y, one_by_one.predict(X))
    assert together.score(X, Y) == np.mean((together.predict(X) == Y).all(axis=1))  # all of a row's labels


def test_the_optimum_is_liblinear_s():
    ours = LinearSVC(C=0.1, penalize_intercept=True).fit(X, Y)
    for k in range(4):
        theirs = TheirLinearSVC(C=0.1, loss="hinge", tol=1e-10, max_iter=10**6, random_state=0).fit(X, Y[:, k])
        np.testing.assert_allclose(ours.coef_[k], theirs.coef_[0], atol=1e-4)
    assert len(ours.certificates_) == 4 and ours.certificate_.relative_gap <= 1e-9
    assert ours.certificate_.primal == pytest.approx(sum(one.primal for one in ours.certificates_))


def test_y_may_be_of_any_kind():
    dense = LinearSVC().fit(X, Y)
    for y in (sp.csr_matrix(Y), sp.csc_array(Y), Y.tolist(), Y.astype(float), Y.astype(bool)):
        again = LinearSVC().fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(again.coef_, dense.coef_, atol=1e-8)
        assert again.score(X, y) == dense.score(X, Y)
    assert LinearSVC().fit(X, Y[:, :2]).decision_function(X).shape == (200, 2)  # two labels are not two classes


@each_kind
def test_weights_are_repetitions(model):
    times = WEIGHT.astype(int)
    repeated = fresh(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times, axis=0))
    weighted = fresh(model).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


@each_kind
def test_a_constant_label_is_predicted_as_it_is(model, tmp_path):
    padded = np.column_stack([np.zeros(200, int), Y[:, :2], np.ones(200, int)])
    with pytest.warns(UserWarning, match=r"label 0 is at none of the rows \(and 1 more are as constant\)") as caught:
        found = fresh(model).fit(X, padded)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found.predict(X)[:, [0, 3]], padded[:, [0, 3]])
    np.testing.assert_array_equal(found.decision_function(X)[:, [0, 3]], [[-1.0, 1.0]] * 200)
    alone = fresh(model).fit(X, padded[:, 1:3])
    np.testing.assert_allclose(found.decision_function(X)[:, 1:3], alone.decision_function(X), atol=1e-9)
    assert found.certificates_ == [None, *alone.certificates_, None] and found.certificate_ == alone.certificate_
    found.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), found.predict(X))


def test_rows_without_weight_do_not_keep_a_label_from_being_constant():
    with pytest.warns(UserWarning, match="label 1 is at all rows: it is always predicted"):
        found = LinearSVC().fit(X, Y, sample_weight=Y[:, 1])
    assert found.predict(X)[:, 1].all()
    with pytest.warns(UserWarning, match="label 1 is at all rows"):
        one_varies = LinearSVC().fit(X, Y[:, :2], sample_weight=Y[:, 1])
    np.testing.assert_allclose(one_varies.decision_function(X), found.decision_function(X)[:, :2])


def test_exact_kernels_threads_early_stopping_and_warm_starts():
    exact = SVC(gamma=0.1, approximation="exact", tol=0.1, random_state=0).fit(X[:80], Y[:80])
    assert exact.predict(X).shape == Y.shape and exact.score(X[:80], Y[:80]) > 0.3
    threads = LinearSVC(n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(threads.coef_, LinearSVC().fit(X, Y).coef_, atol=1e-8)
    assert LinearSVC(early_stopping=True, random_state=0).fit(X, Y).predict(X).shape == Y.shape
    warm = LinearSVC(warm_start=True).fit(X, Y)
    before = warm.coef_.copy()
    np.testing.assert_allclose(warm.fit(X, Y).coef_, before, atol=1e-7)


@each_kind
def test_saved_models(model, tmp_path):
    found = fresh(model).fit(X, Y[:, :2])
    found.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
    assert loaded.multilabel_ and loaded.certificates_ == found.certificates_


def test_classes_after_labels_and_streams():
    model = LinearSVC(lam=0.01).fit(X, Y)
    assert model.fit(X, Y[:, 0]).predict(X).ndim == 1
    model.fit(X, Y).partial_fit(X, Y[:, 0], classes=[0, 1])
    assert model.predict(X).ndim == 1 and not model.multilabel_


def test_the_command_line_tells_labels(tmp_path):
    from typer.testing import CliRunner

    from primalsvm.cli import app

    model = LinearSVC().fit(X, Y[:, :2])
    model.save(tmp_path / "model")
    np.save(tmp_path / "rows.npy", X)
    told = CliRunner().invoke(app, ["predict", str(tmp_path / "model"), str(tmp_path / "rows.npy")]).stdout.splitlines()
    assert told[0] == "label 0,label 1,score 0,score 1"
    found = np.array([line.split(",") for line in told[1:]], float)
    np.testing.assert_allclose(found, np.hstack([model.predict(X), model.decision_function(X)]))
    with pytest.raises(ValueError, match="has one class a row, but the model predicts labels"):
        model.score(open_source(tmp_path / "rows.npy"))


def test_refusals():
    with pytest.raises(ValueError, match="each must say with 0 and 1"):
        LinearSVC().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="each must say with 0 and 1"):
        LinearSVC().fit(X, Y + np.arange(4))
    with pytest.raises(ValueError, match="use sample_weight"):
        LinearSVC(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="there is nothing to learn"):
        LinearSVC().fit(X, np.zeros_like(Y))
    for y in (Y, sp.csr_matrix(Y)):
        with pytest.raises(ValueError, match="partial_fit learns one class a row"):
            LinearSVC(lam=0.01).partial_fit(X, y)
    rare = np.column_stack([Y[:, 0], np.arange(200) == 0])
    stopping = LinearSVC(early_stopping=True, validation_fraction=0.9, random_state=0)  # row 0 is among the 180
    with pytest.raises(ValueError, match="label 1 is at all of the rows left to train on, or at none"):
        stopping.fit(X, rare)
