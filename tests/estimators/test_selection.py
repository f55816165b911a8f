"""`LinearSVCCV` and `SVCCV`: the tables of scikit-learn's GridSearchCV, row for row."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.utils.class_weight import compute_class_weight

import primalsvm
from primalsvm import SVC, SVCCV, DualAscent, LinearSVC, LinearSVCCV, Nystroem

CS = np.geomspace(1e-2, 10.0, 4)
BINARY = make_classification(150, 6, flip_y=0.2, weights=[0.7], random_state=0)
MOONS = make_moons(120, noise=0.3, random_state=0)


def table(search):
    """(n_folds, n_candidates)."""
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)])


@pytest.mark.parametrize("data", [BINARY, load_iris(return_X_y=True)], ids=["two", "three"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "logistic", "penalize_intercept": True},
    ],
    ids=str,
)
def test_the_table_is_that_of_a_grid_search(data, options):
    X, y = data
    clf = LinearSVCCV(Cs=CS, cv=4, **options).fit(X, y)
    search = GridSearchCV(LinearSVC(**options), {"C": CS}, cv=4).fit(X, y)
    np.testing.assert_allclose(clf.scores_, table(search))
    assert search.best_params_["C"] == clf.C_ and clf.best_score_ == pytest.approx(search.best_score_)
    best = search.best_estimator_
    np.testing.assert_allclose(clf.coef_, best.coef_, atol=1e-4)
    assert clf.certificate_.primal == pytest.approx(best.certificate_.primal, rel=1e-8)
    assert np.array_equal(clf.predict(X), best.predict(X))


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0}], ids=str)
def test_class_weights_count_in_training_and_in_scoring(class_weight):
    X, y = BINARY
    clf = LinearSVCCV(Cs=CS, cv=4, class_weight=class_weight).fit(X, y)
    for k, (train, held) in enumerate(StratifiedKFold(4).split(X, y)):
        if class_weight == "balanced":
            weights = compute_class_weight("balanced", classes=np.unique(y), y=y[train])
        else:
            weights = np.where(np.unique(y) == 0, 3.0, 1.0)
        by_row = weights[np.searchsorted(np.unique(y), y[held])]
        for C, score in zip(CS, clf.scores_[k], strict=True):
            plain = LinearSVC(C=C, class_weight=class_weight).fit(X[train], y[train])
            assert score == pytest.approx(plain.score(X[held], y[held], by_row))


def test_the_table_of_dual_ascent():
    X, y = BINARY
    options = {"solver": DualAscent(), "fit_intercept": False, "max_iter": 20_000, "random_state": 0}
    clf = LinearSVCCV(Cs=CS, cv=4, **options).fit(X, y)
    np.testing.assert_allclose(clf.scores_, table(GridSearchCV(LinearSVC(**options), {"C": CS}, cv=4).fit(X, y)))


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "f1", "neg_log_loss_of_mine"], ids=["by scores", "by predictions", "a function of one's own"]
)
def test_scoring(scoring):
    X, y = BINARY
    if scoring == "neg_log_loss_of_mine":

        def scoring(model, X_held, y_held):
            assert X_held.shape[1] == X.shape[1]
            return balanced_accuracy_score(y_held, model.predict(X_held))

    clf = LinearSVCCV(Cs=CS, cv=3, scoring=scoring).fit(X, y)
    search = GridSearchCV(LinearSVC(), {"C": CS}, cv=3, scoring=scoring).fit(X, y)
    np.testing.assert_allclose(clf.scores_, table(search))


def test_splitters_sparse_rows_and_threads():
    X, y = BINARY
    folds = KFold(5, shuffle=True, random_state=1)
    plain = LinearSVCCV(Cs=CS, cv=folds).fit(X, y)
    search = GridSearchCV(LinearSVC(), {"C": CS}, cv=folds).fit(X, y)
    np.testing.assert_allclose(plain.scores_, table(search))
    for other in (
        LinearSVCCV(Cs=CS, cv=folds, n_jobs=2).fit(X, y),
        LinearSVCCV(Cs=CS, cv=folds).fit(sp.csr_matrix(X), y),
    ):
        np.testing.assert_allclose(other.scores_, plain.scores_)
    listed = LinearSVCCV(Cs=CS, cv=list(folds.split(X, y))).fit(X, y)
    assert np.array_equal(listed.scores_, plain.scores_)


def test_weights_are_repetitions_in_training_and_in_scoring():
    X, y = BINARY
    c = np.arange(len(y)) % 3
    folds = list(StratifiedKFold(3).split(X, y))
    position = np.repeat(np.arange(len(y)), c)
    repeated_folds = [tuple(np.flatnonzero(np.isin(position, part)) for part in fold) for fold in folds]
    weighted = LinearSVCCV(Cs=CS, cv=folds).fit(X, y, sample_weight=c)
    repeated = LinearSVCCV(Cs=CS, cv=repeated_folds).fit(X[position], y[position])
    np.testing.assert_allclose(weighted.scores_, repeated.scores_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    without = LinearSVCCV(Cs=CS, cv=3).fit(X[c > 0], y[c > 0], sample_weight=c[c > 0])
    np.testing.assert_allclose(LinearSVCCV(Cs=CS, cv=3).fit(X, y, sample_weight=c).scores_, without.scores_)


def test_the_order_of_the_cs_is_kept_and_ties_go_to_the_smallest():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 3)
    y = np.sign(X[:, 0])
    clf = LinearSVCCV(Cs=[10.0, 0.1, 1.0], cv=3).fit(X, y)
    assert clf.Cs_.tolist() == [10.0, 0.1, 1.0] and (clf.scores_ == 1.0).all() and clf.C_ == 0.1


def test_the_grid_spans_four_decades_from_a_simple_solution():
    X, y = BINARY
    clf = LinearSVCCV(Cs=5, cv=2, fit_intercept=False).fit(X, y)
    signs = np.where(y > 0, 1.0, -1.0)
    lam_max = np.abs(X @ (X.T @ signs)).max() / len(y)
    np.testing.assert_allclose(clf.Cs_, np.geomspace(1, 1e4, 5) / (lam_max * len(y)))


def test_without_refit_there_is_a_choice_and_no_model():
    X, y = BINARY
    clf = LinearSVCCV(Cs=CS, cv=3, refit=False).fit(X, y)
    assert clf.C_ in CS
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_a_saved_model_is_the_plain_classifier(tmp_path):
    X, y = BINARY
    for clf, kind in (
        (LinearSVCCV(Cs=CS, cv=3), LinearSVC),
        (SVCCV(Cs=2, gammas=2, cv=2, n_components=20, random_state=0), SVC),
    ):
        clf.fit(X, y).save(tmp_path / "model")
        loaded = primalsvm.load(tmp_path / "model")
        assert type(loaded) is kind and loaded.C == clf.C_
        assert np.array_equal(loaded.decision_function(X), clf.decision_function(X))


def test_kernel_tables_are_those_of_a_grid_search():
    X, y = MOONS
    gammas = [0.1, 1.0, 10.0]
    same = Nystroem(landmarks=X[::3])
    clf = SVCCV(Cs=CS, gammas=gammas, cv=3, approximation=same, random_state=0).fit(X, y)
    search = GridSearchCV(SVC(approximation=same, random_state=0), {"gamma": gammas, "C": CS}, cv=3).fit(X, y)
    expected = table(search).reshape(3, len(CS), len(gammas)).transpose(2, 0, 1)
    np.testing.assert_allclose(clf.scores_, expected)
    assert clf.best_score_ == pytest.approx(search.best_score_)
    best = np.argwhere(np.isclose(clf.scores_.mean(axis=1), clf.best_score_))
    assert CS[best[:, 1].min()] == clf.C_ and clf.gammas_.tolist() == gammas and clf.gamma_ in gammas
    model = SVC(C=clf.C_, gamma=clf.gamma_, approximation=same, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), model.decision_function(X), atol=1e-6)


def test_gammas_around_scale():
    X, y = MOONS
    clf = SVCCV(Cs=2, gammas=3, cv=2, n_components=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(clf.gammas_, np.array([0.1, 1.0, 10.0]) / (2 * X.var()))
    assert clf.scores_.shape == (3, 2, 2)


def test_a_short_fit_in_a_fold_is_told():
    X, y = BINARY
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        LinearSVCCV(Cs=[1e4], cv=2, max_iter=1, solver="dual_ascent").fit(X, y)
    assert any("2 of 2 fits in folds fell short" in str(one.message) for one in told)


def test_progress_is_shown(capsys):
    LinearSVCCV(Cs=2, cv=2, verbose=1).fit(*BINARY)
    assert "4/4" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"Cs": []}, ValueError, "Cs must be a vector of at least one number"),
        ({"Cs": 0}, ValueError, "Cs must be at least 1"),
        ({"Cs": [1.0, -1.0]}, ValueError, "Cs must be positive and finite, got -1.0"),
        ({"Cs": "many"}, TypeError, "Cs must be a vector of numbers"),
        ({"cv": 1}, ValueError, "n_splits|k-fold"),
        ({"cv": "five"}, ValueError, "cv"),
        ({"cv": []}, ValueError, "makes no folds"),
        ({"scoring": "beauty"}, ValueError, "scoring"),
        ({"tol": -1.0}, ValueError, "tol must be positive"),
        ({"cv": [(np.arange(100), np.arange(0))]}, ValueError, "nothing to score"),
        ({"cv": [(np.flatnonzero(BINARY[1] == 0), np.arange(9))]}, ValueError, "no rows of the class 1 to train on"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_with_a_sentence(options, error, sentence):
    with pytest.raises(error, match=sentence):
        LinearSVCCV(**options).fit(*BINARY)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"gammas": [0.0]}, "gammas must be positive"),
        ({"gammas": 0}, "gammas must be at least 1"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"approximation": "exact"}, "exact"),
        ({"approximation": Nystroem(gamma=1.0)}, "gamma of its own"),
    ],
)
def test_kernels_that_cannot_be_chosen_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SVCCV(**options).fit(*MOONS)


def test_labels_and_sources_are_refused(rows_file):
    with pytest.raises(ValueError, match="several columns"):
        LinearSVCCV().fit(BINARY[0], np.stack([BINARY[1], 1 - BINARY[1]], axis=1))
    with pytest.raises(TypeError, match="to_arrays"):
        LinearSVCCV().fit(primalsvm.open(rows_file))
    assert not hasattr(LinearSVCCV(), "partial_fit") and clone(SVCCV(Cs=3)).Cs == 3


def test_scorers_of_ones_own_know_no_weights_and_probabilities_are_not_there():
    X, y = BINARY
    own = LinearSVCCV(Cs=CS, cv=3, scoring=lambda model, X, y: float(np.mean(model.predict(X) == y)))
    plain = LinearSVCCV(Cs=CS, cv=3)
    np.testing.assert_allclose(own.fit(X, y, np.ones(len(y))).scores_, plain.fit(X, y).scores_)
    with pytest.raises(ValueError, match="scoring needs probabilities"):
        LinearSVCCV(Cs=CS, cv=3, scoring="neg_log_loss").fit(X, y)
    with pytest.raises(ValueError, match="cv needs groups: give the splits"):
        LinearSVCCV(Cs=CS, cv=GroupKFold(3)).fit(X, y)
