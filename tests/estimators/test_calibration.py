"""Probabilities: the numbers of scikit-learn's calibration, beside a model that is fitted to all rows."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier

import primalsvm
from primalsvm import SVC, LinearSVC, load
from primalsvm.estimators import pipeline
from primalsvm.estimators.calibration import Isotonic, Sigmoid, probabilities
from primalsvm.persistence import ModelError
from primalsvm.solution import Status
from primalsvm.solvers.drive import drive
from primalsvm.sources.svmlight import write_svmlight

X, CODES = make_classification(240, 6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)
NAMES = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.where(CODES == 1, "yes", "no")
WEIGHT = np.random.default_rng(0).uniform(0.2, 3.0, size=240)
LINEAR = LinearSVC(C=0.1, random_state=0)
FOURIER = SVC(C=1.0, gamma=0.1, approximation="fourier", n_components=32, random_state=0)
each_kind = pytest.mark.parametrize("model", [LINEAR, FOURIER], ids=["LinearSVC", "SVC"])
each_method = pytest.mark.parametrize("method", ["sigmoid", "isotonic"])


def fresh(model, **changed):
    return type(model)(**{**model.get_params(), **changed})


def theirs(model, method, y, weight=None, folds=5, rows=X):
    """scikit-learn's own way, which fits the model once more."""
    cv = StratifiedKFold(folds, shuffle=True, random_state=0)
    return CalibratedClassifierCV(fresh(model), method=method, cv=cv, ensemble=False).fit(rows, y, sample_weight=weight)


@each_kind
@each_method
@pytest.mark.parametrize("y", [BINARY, NAMES, CODES], ids=["two", "names", "numbers"])
def test_the_numbers_are_scikit_learn_s(model, method, y):
    ours = fresh(model, probability=method).fit(X, y)
    expected = theirs(model, method, y).predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(ours.predict_log_proba(X), np.log(expected), atol=1e-6)


@each_method
def test_sample_and_class_weights_count(method):
    model = fresh(LINEAR, class_weight={0: 2.0, 1: 1.0, 2: 0.5})
    ours = fresh(model, probability=method).fit(X, CODES, sample_weight=WEIGHT)
    np.testing.assert_allclose(ours.predict_proba(X), theirs(model, method, CODES, WEIGHT).predict_proba(X), atol=1e-8)
    without = fresh(LINEAR, probability=method).fit(X, CODES)
    assert np.abs(without.predict_proba(X) - ours.predict_proba(X)).max() > 1e-3


@pytest.mark.parametrize("class_weight", [None, "balanced", {"bee": 2.0}])
def test_rows_and_classes_without_weight_are_as_if_absent(class_weight):
    kept = (np.arange(240) % 5 > 0) & (NAMES != "cat")
    model = fresh(LINEAR, probability=True, class_weight=class_weight)
    absent = fresh(model).fit(X[kept], NAMES[kept])
    np.testing.assert_allclose(
        fresh(model).fit(X, NAMES, sample_weight=kept.astype(float)).predict_proba(X),
        absent.predict_proba(X),
        atol=1e-9,
    )
    if isinstance(class_weight, dict):
        no_cats = fresh(model, class_weight={**class_weight, "cat": 0.0})
        rest = (np.arange(240) % 5 > 0).astype(float)
        np.testing.assert_allclose(
            no_cats.fit(X, NAMES, sample_weight=rest).predict_proba(X), absent.predict_proba(X), atol=1e-9
        )


@each_method
def test_the_model_stays_that_of_all_rows(method):
    plain, asked = fresh(LINEAR).fit(X, NAMES), fresh(LINEAR, probability=method).fit(X, NAMES)
    np.testing.assert_array_equal(plain.coef_, asked.coef_)
    np.testing.assert_array_equal(plain.predict(X), asked.predict(X))
    assert plain.certificates_ == asked.certificates_
    again = fresh(LINEAR, probability=method).fit(X, NAMES)
    np.testing.assert_array_equal(again.predict_proba(X), asked.predict_proba(X))
    sparse = fresh(LINEAR, probability=method).fit(sp.csr_matrix(X), NAMES)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)), asked.predict_proba(X), atol=1e-6)


@each_kind
@each_method
def test_probabilities_of_unseen_rows_are_better_than_a_constant(model, method):
    rows, y = make_classification(1000, 6, n_informative=4, flip_y=0.1, random_state=1)
    found = fresh(model, probability=method).fit(rows[:500], y[:500])
    p = found.predict_proba(rows[500:])[:, 1]
    constant = np.full(500, y[:500].mean())
    assert brier_score_loss(y[500:], p) < 0.8 * brier_score_loss(y[500:], constant)
    order = np.argsort(found.decision_function(rows[500:]))
    assert np.all(np.diff(p[order]) >= 0.0)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.floats(-9, -1e-3), st.floats(-9, 9))
def test_probabilities_are_monotone_and_sum_to_one(scores, a, b):
    ordered = np.sort(scores)
    knots = Isotonic(np.array([-1.0, 0.0, 2.0]), np.array([0.0, 0.5, 0.5]))
    for one in (Sigmoid(a, b), knots):
        p = probabilities([one], ordered, multilabel=False)
        assert np.all(np.diff(p[:, 1]) >= 0.0) and np.all((p >= 0.0) & (p <= 1.0))
    many = probabilities([knots, knots, Sigmoid(a, b)], np.column_stack([ordered] * 3), multilabel=False)
    np.testing.assert_allclose(many.sum(axis=1), 1.0)
    none = probabilities([knots] * 4, np.full((2, 4), -9.0), multilabel=False)
    np.testing.assert_array_equal(none, np.full((2, 4), 0.25))  # all are impossible: none is likelier


@each_method
def test_labels_have_probabilities_of_their_own(method):
    rows, y = make_multilabel_classification(150, 5, n_classes=3, random_state=0)
    ours = fresh(LINEAR, probability=method).fit(rows, y)
    cv = KFold(5, shuffle=True, random_state=0)
    alone = OneVsRestClassifier(CalibratedClassifierCV(fresh(LINEAR), method=method, cv=cv, ensemble=False))
    np.testing.assert_allclose(ours.predict_proba(rows), alone.fit(rows, y).predict_proba(rows), atol=1e-6)
    with pytest.warns(UserWarning, match="label 1 is at all rows"):
        constant = fresh(LINEAR, probability=method).fit(rows, np.column_stack([y[:, 0], np.ones(150, int)]))
    np.testing.assert_array_equal(constant.predict_proba(rows)[:, 1], 1.0)


def test_a_precomputed_kernel_is_cut_both_ways():
    gram = np.exp(-0.1 * np.square(X[:, None] - X).sum(axis=2))
    model = SVC(kernel="precomputed", n_components=40, random_state=0)
    ours = fresh(model, probability=True).fit(gram, BINARY)
    np.testing.assert_allclose(
        ours.predict_proba(gram), theirs(model, "sigmoid", BINARY, rows=gram).predict_proba(gram), atol=1e-9
    )


def test_small_classes_have_fewer_folds():
    rare = np.where(np.arange(240) < 3, "rare", BINARY)
    ours = fresh(LINEAR, probability=True).fit(X, rare)
    np.testing.assert_allclose(
        ours.predict_proba(X), theirs(LINEAR, "sigmoid", rare, folds=3).predict_proba(X), atol=1e-9
    )
    with pytest.raises(ValueError, match="at least two rows of each class are needed"):
        fresh(LINEAR, probability=True).fit(X, np.where(np.arange(240) < 1, "rare", BINARY))
    with pytest.raises(ValueError, match="at least two rows of each class are needed"):
        fresh(LINEAR, probability=True).fit(X, rare, sample_weight=np.arange(240.0) // 2)


@each_kind
@each_method
def test_saved_models(model, method, tmp_path):
    found = fresh(model, probability=method).fit(X, NAMES)
    found.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), found.predict_proba(X))
    for damaged in ([], [Sigmoid(1.0, np.inf)] * 3, [Sigmoid(1, 1.0)] * 3, found.calibration_[:2], [0.5] * 3,
                    [Isotonic(np.zeros(0), np.zeros(0))] * 3, [Isotonic(np.zeros(2), np.zeros(1))] * 3,
                    [Isotonic(1.0, 1.0)] * 3):  # fmt: skip
        loaded.calibration_ = damaged
        loaded.save(tmp_path / "damaged")
        with pytest.raises(ModelError, match="is damaged"):
            load(tmp_path / "damaged")


def test_sources(tmp_path):
    write_svmlight(tmp_path / "rows.svm", sp.csr_matrix(X), CODES)
    source = primalsvm.open(tmp_path / "rows.svm")
    found = fresh(LINEAR, probability=True).fit(source)
    expected = fresh(LINEAR, probability=True).fit(sp.csr_matrix(X), CODES)
    np.testing.assert_allclose(found.predict_proba(source), expected.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match="probability needs the rows in memory"):
        fresh(LINEAR, probability=True, memory=1000).fit(source.to_cache(tmp_path / "rows.cache"))


def test_they_are_there_only_if_asked_for():
    for model in (LINEAR, fresh(LINEAR, probability=None), fresh(LINEAR).fit(X, NAMES)):
        assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError) as raised:
        LINEAR.predict_proba(X)
    assert "only if asked for: probability='sigmoid'" in str(raised.value.__cause__)
    asked = fresh(LINEAR, lam=0.01, probability=True)
    assert hasattr(asked, "predict_proba")
    asked.partial_fit(X, NAMES)
    with pytest.raises(AttributeError) as raised:
        asked.predict_proba(X)
    assert "they need a whole fit, not a stream" in str(raised.value.__cause__)
    with pytest.raises(ValueError, match="probability must be 'sigmoid', 'isotonic', True or False, got 'platt'"):
        fresh(LINEAR, probability="platt").fit(X, NAMES)


@pytest.mark.parametrize("fits", [1, 3])
def test_ctrl_c_leaves_the_model_without(monkeypatch, fits):
    """In the fit itself, or in that of a fold: nothing further is begun."""
    begun = []

    def cut_short(*arguments, **options):
        (solution,) = drive(*arguments, **options)
        begun.append(solution)
        return [replace(solution, status=Status.INTERRUPTED) if len(begun) == fits else solution]

    monkeypatch.setattr(pipeline, "drive", cut_short)
    model = fresh(LINEAR, probability=True)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, BINARY)
    assert len(begun) == fits and model.predict(X).shape == (240,) and not hasattr(model, "predict_proba")


def test_metadata_routing_makes_no_difference():
    expected = fresh(LINEAR, probability=True).fit(X, NAMES, sample_weight=WEIGHT).predict_proba(X)
    with sklearn.config_context(enable_metadata_routing=True):
        found = fresh(LINEAR, probability=True).fit(X, NAMES, sample_weight=WEIGHT).predict_proba(X)
    np.testing.assert_array_equal(found, expected)


def test_nothing_is_imported_if_they_are_not_asked_for():
    program = (
        "import sys, numpy as np; from primalsvm import LinearSVC;"
        "LinearSVC().fit(np.eye(4), [0, 1, 0, 1]); print('sklearn.calibration' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
