"""More than two classes: each against the rest, as if each were fitted alone; exact kernel machines pair by pair."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC as TheirLinearSVC

from primalsvm import SVC, Checkpoint, LinearSVC, load
from primalsvm.solution import Certificate

X, CODES = make_classification(300, 8, n_informative=6, n_classes=4, random_state=0)
Y = np.array(["ant", "bee", "cat", "dog"])[CODES]
WEIGHT = np.random.default_rng(0).integers(0, 4, size=300).astype(float)
EXACT = SVC(lam=0.01, gamma=0.1, tol=1e-12, random_state=0)
FOURIER = SVC(lam=0.01, gamma=0.1, approximation="fourier", n_components=40, random_state=0)
each_kind = pytest.mark.parametrize("model", [LinearSVC(lam=0.01), EXACT, FOURIER], ids=repr)


def coefficients(model):
    """w of each problem."""
    return model.feature_coef_ if isinstance(model, SVC) else model.coef_


def test_each_class_is_fitted_as_if_alone():
    together = LinearSVC(C=0.5).fit(X, Y)
    assert together.coef_.shape == (4, 8) and together.intercept_.shape == (4,)
    for k, name in enumerate(together.classes_):
        alone = LinearSVC(C=0.5).fit(X, name == Y)
        np.testing.assert_allclose(together.coef_[k], alone.coef_[0], atol=1e-9)
        assert together.intercept_[k] == pytest.approx(alone.intercept_[0], abs=1e-9)
        assert together.certificates_[k].primal == pytest.approx(alone.certificate_.primal)


def test_the_class_of_the_largest_score_is_predicted():
    model = LinearSVC().fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, Y) == np.mean(model.predict(X) == Y)


def test_the_optimum_is_liblinear_s():
    ours = LinearSVC(C=0.1, penalize_intercept=True).fit(X, Y)
    theirs = TheirLinearSVC(C=0.1, loss="hinge", tol=1e-10, max_iter=10**6, random_state=0).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_the_combined_certificate_is_of_the_sums():
    model = LinearSVC().fit(X, Y)
    assert len(model.certificates_) == 4
    assert model.certificate_.primal == pytest.approx(sum(one.primal for one in model.certificates_))
    assert model.certificate_.dual == pytest.approx(sum(one.dual for one in model.certificates_))
    assert isinstance(model.certificate_, Certificate) and model.certificate_.relative_gap <= 1e-9


@each_kind
def test_threads_do_not_change_the_result(model):
    first, second = (type(model)(**{**model.get_params(), "n_jobs": n}).fit(X, Y) for n in (1, 2))
    np.testing.assert_allclose(first.decision_function(X), second.decision_function(X), atol=1e-6)
    again = type(model)(**{**model.get_params(), "n_jobs": 2}).fit(X, Y)
    np.testing.assert_array_equal(coefficients(second), coefficients(again))


@each_kind
def test_weights_are_repetitions(model):
    times = WEIGHT.astype(int)
    model = clone(model).set_params(tol=1e-9)  # repeated rows may be too many to be solved to that by default
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    weighted = clone(model).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)


def test_class_weights_are_repetitions():
    """Of the rows of a class, in every problem (LIBLINEAR weighs them in their own problem only)."""
    times = {"ant": 1, "bee": 2, "cat": 3, "dog": 0.5}
    by_class = LinearSVC(lam=0.01, class_weight=times).fit(X, Y)
    by_row = LinearSVC(lam=0.01).fit(X, Y, sample_weight=[times[name] for name in Y])
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, atol=1e-9)
    balanced = LinearSVC(lam=0.01, class_weight="balanced").fit(X, Y)
    shares = {name: len(Y) / (4 * np.sum(name == Y)) for name in times}
    np.testing.assert_allclose(balanced.coef_, LinearSVC(lam=0.01, class_weight=shares).fit(X, Y).coef_, atol=1e-9)


@each_kind
@pytest.mark.parametrize("unwanted", [["bee"], ["ant", "dog"]])
def test_a_class_without_weight_is_as_if_absent(model, unwanted):
    wanted = ~np.isin(Y, unwanted)
    absent = type(model)(**model.get_params()).fit(X[wanted], Y[wanted])
    by_row = type(model)(**model.get_params()).fit(X, Y, sample_weight=wanted.astype(float))
    weights = {name: float(name not in unwanted) for name in np.unique(Y)}
    by_class = type(model)(**{**model.get_params(), "class_weight": weights}).fit(X, Y)
    for found in (by_row, by_class):
        np.testing.assert_array_equal(found.classes_, absent.classes_)
        np.testing.assert_allclose(found.decision_function(X), absent.decision_function(X), atol=1e-6)
    stopped = LinearSVC(lam=0.01, class_weight=weights, early_stopping=True, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(stopped.classes_, absent.classes_)


def test_kernels_map_once_and_agree_with_one_against_the_rest():
    model = SVC(gamma=0.1, C=1.0, approximation="fourier", n_components=64, random_state=0)
    together = model.fit(X, Y)
    alone = OneVsRestClassifier(SVC(gamma=0.1, C=1.0, approximation="fourier", n_components=64, random_state=0)).fit(
        X, Y
    )
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X), atol=1e-6)
    assert together.feature_coef_.shape == (4, 64)


def test_exact_pegasos_is_one_against_the_rest():
    model = SVC(gamma=0.1, C=1.0, approximation="exact", solver="pegasos", tol=0.05, random_state=0)
    model.fit(X[:120], Y[:120])
    assert model.dual_coef_.shape == (4, model.support_.size) and model.score(X[:120], Y[:120]) > 0.8


@each_kind
def test_streams(model):
    if isinstance(model, SVC) and model.approximation == "auto":
        model = SVC(**{**model.get_params(), "approximation": "nystroem"})
    model = type(model)(**model.get_params())
    for first in range(0, 300, 50):
        model.partial_fit(X[first : first + 50], Y[first : first + 50], classes=np.unique(Y))
    assert coefficients(model).shape[0] == 4 and 0 < model.progressive_error_ < 0.75
    whole = type(model)(**model.get_params()).partial_fit(X, Y, classes=np.unique(Y))
    if isinstance(model, LinearSVC):
        np.testing.assert_array_equal(whole.coef_, model.coef_)


@each_kind
def test_saved_models(model, tmp_path):
    model = type(model)(**model.get_params()).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.certificates_ == model.certificates_


def test_early_stopping_warm_starts_and_sparse_rows():
    stopped = LinearSVC(early_stopping=True, random_state=0).fit(X, Y)
    assert stopped.coef_.shape == (4, 8)
    warm = LinearSVC(warm_start=True).fit(sp.csr_matrix(X), Y)
    before = warm.coef_.copy()
    np.testing.assert_allclose(warm.fit(sp.csr_matrix(X), Y).coef_, before, atol=1e-7)


def test_a_fit_that_falls_short_says_how_many_problems_do():
    with pytest.warns(ConvergenceWarning, match="of 4 problems"):
        LinearSVC(solver="pegasos", max_iter=1, random_state=0).fit(X, Y)


@pytest.mark.parametrize("solver", ["auto", "dual_ascent", "newton", "pegasos"])
def test_a_checkpoint_of_several_classes_goes_on_to_the_same_bits(solver, tmp_path):
    options = {"lam": 1e-2, "solver": solver, "tol": 0.1 if solver == "pegasos" else 1e-4, "random_state": 0}
    rows, y = np.tile(X, (50, 1)) + np.random.default_rng(1).normal(size=(15_000, 8)), np.tile(Y, 50)
    whole = LinearSVC(**options).fit(rows, y)
    with pytest.warns(ConvergenceWarning, match="stopped after 1e-09 seconds"):
        LinearSVC(**options, max_seconds=1e-9, checkpoint=Checkpoint(tmp_path / "run")).fit(rows, y)
    resumed = LinearSVC(**options, checkpoint=Checkpoint(tmp_path / "run", resume=True)).fit(rows, y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes() and resumed.certificates_ == whole.certificates_
    assert resumed.n_steps_ == whole.n_steps_


def test_refusals():
    with pytest.raises(ValueError, match="one class only has rows of positive weight"):
        LinearSVC().fit(X, Y, sample_weight=(Y == "dog").astype(float))
    with pytest.raises(ValueError, match="class_weight must not be negative"):
        LinearSVC(class_weight={"ant": 1, "bee": 1, "cat": 1, "dog": -1}).fit(X, Y)


def test_numbers_are_no_classes_of_a_stream():
    with pytest.raises(ValueError, match="continuous"):
        LinearSVC(lam=0.01).partial_fit(X, X[:, 0])


def test_the_history_says_whose_it_is():
    clf = LinearSVC().fit(*load_iris(return_X_y=True))
    assert sorted(set(clf.history_["problem"])) == [0, 1, 2]
    for k in range(3):
        own = clf.history_[clf.history_["problem"] == k]
        assert own["primal"].min() == pytest.approx(clf.certificates_[k].primal)
