"""SVC, SVR and OneClassSVM in the place of scikit-learn's: the same parameters, attributes, shapes and numbers."""

import inspect
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import primalsvm
from primalsvm import SVC, SVR, FourierFeatures, LinearSVC, LinearSVR, Nystroem, OneClassSVM

TIGHT = 1e-10  # tol of scikit-learn's
TIGHTER = 1e-13  # of ours, as scores are within the root of the relative gap
RNG = np.random.default_rng(5)
X, CODES = make_classification(160, 6, n_informative=5, n_redundant=0, n_classes=3, flip_y=0.1, random_state=0)
X = np.round(8.0 * X) / 8.0  # LIBSVM keeps kernel values in single precision: inner products are exact in it
NAMES = np.array(["ant", "bee", "cat"])[CODES]
BINARY = np.where(CODES == 1, "yes", "no")
NUMBERS = 3.0 * np.sin(X[:, 0]) + X[:, 1] + 10.0
WEIGHT = RNG.uniform(0.2, 3.0, 160)
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 0.4, X, 0.0))
NOVEL = X + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 6.0])  # with the linear kernel, separable from the origin
TARGETS = {"binary": BINARY, "classes": NAMES, "numbers": NUMBERS, "novelty": None}
PAIRS = {
    "binary": (SVC, svm.SVC),
    "classes": (SVC, svm.SVC),
    "numbers": (SVR, svm.SVR),
    "novelty": (OneClassSVM, svm.OneClassSVM),
}
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "scale": {},
    "auto": {"gamma": "auto"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.125, "degree": 2, "coef0": 1.0},
    "function": {"kernel": rbf_kernel},
}
each_task = pytest.mark.parametrize("task", PAIRS)


def scores_of(model, rows):
    return getattr(model, "decision_function", model.predict)(rows)


def dense(values):
    return values.toarray() if sp.issparse(values) else np.asarray(values)


def both(task, rows, weight=None, **options):
    """Our machine and scikit-learn's, fitted to the same."""
    ours, theirs = PAIRS[task]
    models = ours(**{"tol": TIGHTER, **options}), theirs(**{"tol": TIGHT, **options})
    return (model.fit(rows, TARGETS[task], sample_weight=weight) for model in models)


def assert_same(ours, theirs, rows, unique=True):
    """The fitted attributes of two machines agree; where the solution is not `unique`, its scores."""
    size = np.abs(scores_of(theirs, rows)).max()
    np.testing.assert_allclose(scores_of(ours, rows), scores_of(theirs, rows), atol=1e-6 * size)
    if not is_regressor(ours):
        clear = np.abs(scores_of(theirs, rows)) > 1e-6 * size  # one-class support vectors are on the boundary
        clear = clear.reshape(len(clear), -1).all(axis=1)
        np.testing.assert_array_equal(ours.predict(rows)[clear], theirs.predict(rows)[clear])
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6 * size)
    assert ours.intercept_.shape == theirs.intercept_.shape
    assert ours.shape_fit_ == theirs.shape_fit_ and ours.fit_status_ == theirs.fit_status_ == 0
    if hasattr(theirs, "class_weight_"):
        np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
        np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert type(ours.n_iter_) is type(theirs.n_iter_) and np.shape(ours.n_iter_) == np.shape(theirs.n_iter_)
    if not unique:
        return
    if sp.issparse(rows) and not hasattr(theirs, "classes_"):  # scikit-learn has the number of features there
        theirs._n_support = np.array([len(theirs.support_)], np.int32)
    for name in ("support_", "n_support_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype
    assert sp.issparse(ours.dual_coef_) == sp.issparse(theirs.dual_coef_)
    assert sp.issparse(ours.support_vectors_) == sp.issparse(theirs.support_vectors_)
    np.testing.assert_array_equal(dense(ours.support_vectors_), dense(theirs.support_vectors_))
    largest = np.abs(dense(theirs.dual_coef_)).max()
    np.testing.assert_allclose(dense(ours.dual_coef_), dense(theirs.dual_coef_), atol=1e-5 * largest)
    assert hasattr(ours, "coef_") == hasattr(theirs, "coef_")
    if hasattr(ours, "coef_"):
        size = np.abs(dense(theirs.coef_)).max()
        np.testing.assert_allclose(dense(ours.coef_), dense(theirs.coef_), atol=1e-6 * size)
        assert sp.issparse(ours.coef_) == sp.issparse(theirs.coef_)


@each_task
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_the_attributes_are_scikit_learns(task, kernel, weight):
    if kernel == "scale" and weight is not None:
        pytest.skip("the variance of X is weighted, so that weights are repetitions; scikit-learn's is not")
    rows = NOVEL if task == "novelty" and kernel == "linear" else X
    ours, theirs = both(task, rows, weight, **KERNELS[kernel])
    if callable(ours.kernel):  # scikit-learn keeps no vectors then
        theirs.support_vectors_ = rows[theirs.support_]
    assert ours.approximation_ == "exact"
    if kernel in ("rbf", "scale", "auto", "poly"):
        assert ours.gamma_ == pytest.approx(theirs._gamma)
    assert_same(ours, theirs, rows)


@each_task
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_rows(task, kernel):
    rows = sp.csr_matrix(NOVEL) if task == "novelty" and kernel == "linear" else SPARSE
    ours, theirs = both(task, rows, WEIGHT, **KERNELS[kernel])
    assert_same(ours, theirs, rows)


@each_task
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_many_sparse_features(task, kernel, tmp_path):
    rows = sp.random(X.shape[0], 500, density=0.02, random_state=0)
    rows.data = np.round(8.0 * rows.data) / 8.0
    rows = sp.csr_matrix(sp.hstack([np.ones((X.shape[0], 1)), rows]))  # with ones, separable from the origin
    ours, theirs = both(task, rows, WEIGHT, **KERNELS[kernel])
    assert ours.feature_map_.points.sparse
    assert_same(ours, theirs, rows)
    ours.save(tmp_path / "model")
    again = primalsvm.load(tmp_path / "model")
    assert again.feature_map_.points.sparse
    np.testing.assert_array_equal(again.predict(rows), ours.predict(rows))
    np.testing.assert_array_equal(again.dual_coef_.toarray(), ours.dual_coef_.toarray())


@each_task
def test_a_precomputed_kernel(task):
    K = laplacian_kernel(X, gamma=0.2)
    ours, theirs = both(task, K, kernel="precomputed")
    assert_same(ours, theirs, K)
    assert ours.support_vectors_.shape == (0, 0) and not hasattr(ours, "gamma_")


@pytest.mark.parametrize("task", ["binary", "classes"])
@pytest.mark.parametrize("class_weight", ["balanced", "by name"])
def test_class_weights(task, class_weight):
    names = np.unique(TARGETS[task])
    given = class_weight if class_weight == "balanced" else dict(zip(names, [0.5, 2.0, 1.0], strict=False))
    ours, theirs = both(task, X, class_weight=given)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("C", [1e-2, 30.0])
@pytest.mark.parametrize("task", ["binary", "classes", "numbers"])
def test_other_strengths_of_regularisation(task, C):
    ours, theirs = both(task, X, C=C, gamma=0.3)
    assert_same(ours, theirs, X)


@pytest.mark.parametrize("nu", [0.05, 0.3, 0.9])
def test_one_class_scores_have_libsvms_units(nu):
    ours, theirs = both("novelty", X, WEIGHT, nu=nu, gamma=0.3)
    assert_same(ours, theirs, X)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    assert ours.dual_coef_.sum() == pytest.approx(nu * WEIGHT.sum())
    near = OneClassSVM(nu=nu, gamma=0.3, approximation=Nystroem(landmarks=X), tol=TIGHT).fit(X, sample_weight=WEIGHT)
    np.testing.assert_allclose(near.score_samples(X), theirs.score_samples(X), rtol=1e-3)


# ---- parameters ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ours", "theirs"), [(SVC, svm.SVC), (SVR, svm.SVR), (OneClassSVM, svm.OneClassSVM)])
def test_every_parameter_of_scikit_learn_is_accepted(ours, theirs):
    y = {SVC: NAMES, SVR: NUMBERS}.get(ours)
    given = theirs().get_params()
    missing = set(given) - set(ours().get_params())
    assert missing == set()
    model = clone(ours(**given)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), ours().fit(X, y).predict(X))
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize("break_ties", [False, True])
def test_shapes_of_decision_functions(break_ties):
    rows, y = load_iris(return_X_y=True)
    new = RNG.uniform(rows.min(axis=0), rows.max(axis=0), (500, 4))
    for shape in ("ovr", "ovo"):
        options = {"C": 0.3, "gamma": 5.0, "tol": TIGHT, "decision_function_shape": shape}
        ours, theirs = (kind(break_ties=break_ties, **options).fit(rows, y) for kind in (SVC, svm.SVC))
        np.testing.assert_allclose(ours.decision_function(new), theirs.decision_function(new), atol=1e-6)
        if shape == "ovo" and break_ties:
            with pytest.raises(ValueError, match="break_ties must be False"):
                ours.predict(new)
        else:
            np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    with pytest.raises(ValueError, match="decision_function_shape="):
        SVC(decision_function_shape="one").fit(X, NAMES)


@pytest.mark.parametrize("approximation", ["exact", "nystroem", "fourier"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_shapes_do_not_depend_on_the_approximation(approximation, count):
    y = np.arange(160) % count
    for shape, columns in (("ovr", count), ("ovo", count * (count - 1) // 2)):
        model = SVC(approximation=approximation, decision_function_shape=shape, random_state=0).fit(X, y)
        scores = model.decision_function(X)
        assert scores.shape == ((160,) if count == 2 else (160, columns))
        if shape == "ovr" and count > 2 and approximation != "exact":
            by_class, predicted = scores, model.predict(X)
    if count > 2 and approximation != "exact":
        pairs = itertools.combinations(range(count), 2)
        np.testing.assert_array_equal(scores, np.stack([by_class[:, i] - by_class[:, j] for i, j in pairs], axis=1))
        np.testing.assert_array_equal(predicted, by_class.argmax(axis=1))


@pytest.mark.parametrize("approximation", ["exact", "nystroem"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_probabilities_do_not_depend_on_the_shape_of_scores(approximation, count):
    y = np.digitize(X[:, 0], np.quantile(X[:, 0], np.linspace(0.0, 1.0, count + 1)[1:-1]))
    options = {"approximation": approximation, "probability": True, "random_state": 0}
    by_class, by_pair = (SVC(decision_function_shape=shape, **options).fit(X, y) for shape in ("ovr", "ovo"))
    np.testing.assert_array_equal(by_pair.predict_proba(X), by_class.predict_proba(X))
    assert np.mean(by_pair.predict_proba(X).argmax(axis=1) == y) > 0.8


@pytest.mark.parametrize("changes", [{"shrinking": False}, {"cache_size": 1}, {"cache_size": 300.0}, {"max_iter": -1}])
def test_parameters_of_the_solver_do_not_change_the_solution(changes):
    plain = SVC(tol=TIGHT).fit(X, NAMES)
    np.testing.assert_allclose(SVC(tol=TIGHT, **changes).fit(X, NAMES).dual_coef_, plain.dual_coef_, atol=1e-6)
    solver = SVC(tol=TIGHT, **changes).fit(X, NAMES).solver_
    assert solver.shrinking == changes.get("shrinking", True)
    assert solver.cache_bytes == (changes["cache_size"] * 2**20 if "cache_size" in changes else None)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shrinking": "yes"}, TypeError, "shrinking must be True or False"),
        ({"cache_size": 0}, ValueError, "cache_size must be positive"),
        ({"cache_size": "large"}, TypeError, "cache_size must be a number or None"),
        ({"break_ties": 1}, TypeError, "break_ties must be True or False"),
        ({"max_iter": -2}, ValueError, "max_iter must be at least 1"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        SVC(**options).fit(X, NAMES)


@each_task
@pytest.mark.parametrize("gamma", [0.02, 0.3])
@pytest.mark.parametrize("coef0", [0.0, 0.5])
def test_the_sigmoid_kernel_has_no_certificate(task, gamma, coef0):
    rows = NOVEL / 3
    ours, theirs = both(task, rows, kernel="sigmoid", gamma=gamma, coef0=coef0)
    assert ours.certificate_ is None and set(ours.certificates_) == {None} and ours.gamma_ == gamma
    size = np.abs(scores_of(theirs, rows)).max()
    np.testing.assert_allclose(scores_of(ours, rows), scores_of(theirs, rows), atol=1e-4 * size)
    assert SVC(kernel="poly", coef0=-1.0).fit(X, NAMES).certificate_ is None


def test_more_components_than_rows_are_all_rows():
    with pytest.warns(UserWarning, match="n_components=200 is more than the 160 rows"):
        clf = SVC(n_components=200, random_state=0).fit(X, NAMES)
    assert clf.landmarks_.shape == (160, 6)


def test_constant_targets_are_predicted():
    y = np.full(160, 7.25)
    losses = ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball")
    models = [kind(loss=loss, epsilon=0.5) for kind in (LinearSVR, SVR) for loss in losses]
    models += [SVR(approximation="nystroem"), LinearSVR(solver="pegasos"), LinearSVR(warm_start=True)]
    for model in models:
        for weight in (None, WEIGHT):
            model.fit(X, y, sample_weight=weight)
            np.testing.assert_array_equal(model.predict(X), y)
            assert model.certificate_.primal == model.certificate_.dual == 0.0 and model.n_iter_ == 1
        assert np.abs(model.fit(X, NUMBERS).predict(X) - y).max() > 1.0
    exact, theirs = SVR().fit(X, y), svm.SVR().fit(X, y)
    assert exact.support_.shape == theirs.support_.shape == (0,) and exact.dual_coef_.shape == theirs.dual_coef_.shape
    assert exact.support_vectors_.shape == theirs.support_vectors_.shape
    only = (np.arange(160) % 3 == 0).astype(float)  # rows without weight do not count
    np.testing.assert_array_equal(SVR().fit(X, np.where(only, 2.0, X[:, 0]), sample_weight=only).predict(X), 2.0)


def test_an_empty_machine_is_saved(tmp_path):
    for rows in (X, SPARSE):
        SVR().fit(rows, np.full(160, 3.0)).save(tmp_path / "model")
        np.testing.assert_array_equal(primalsvm.load(tmp_path / "model").predict(rows), 3.0)


@pytest.mark.parametrize(("ours", "theirs"), [(LinearSVC, svm.LinearSVC), (LinearSVR, svm.LinearSVR)])
def test_parameters_of_the_linear_estimators(ours, theirs):
    y = NAMES if ours is LinearSVC else NUMBERS
    given = theirs().get_params()
    assert set(given) - set(ours().get_params()) == set()
    model = clone(ours(**given | {"penalize_intercept": True})).fit(X, y)
    theirs = theirs(**given | {"tol": 1e-10, "max_iter": 10**6, "random_state": 0}).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, rtol=1e-3, atol=1e-4)
    for dual in (True, False, "auto"):
        np.testing.assert_array_equal(ours(dual=dual).fit(X, y).coef_, ours().fit(X, y).coef_)
    np.testing.assert_array_equal(ours(intercept_scaling=10.0).fit(X, y).coef_, ours().fit(X, y).coef_)
    ours(intercept_scaling=10.0, penalize_intercept=True, fit_intercept=False).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (LinearSVC, {"penalty": "l1"}, "penalty='l1'"),
        (LinearSVC, {"multi_class": "crammer_singer"}, "multi_class='crammer_singer'"),
        (LinearSVC, {"dual": "never"}, "dual must be True, False or 'auto'"),
        (LinearSVR, {"dual": None}, "dual must be True, False or 'auto'"),
        (LinearSVC, {"intercept_scaling": 0.0}, "intercept_scaling must be positive"),
        (LinearSVR, {"intercept_scaling": 2.0, "penalize_intercept": True}, "the constant feature is 1"),
    ],
)
def test_what_the_linear_estimators_refuse_by_name(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options).fit(X, NAMES if kind is LinearSVC else NUMBERS)


# ---- attributes that do not apply ------------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["nystroem", "fourier", FourierFeatures(20)])
def test_approximate_machines_have_no_support_vectors(approximation):
    clf = SVC(approximation=approximation, random_state=0).fit(X, NAMES)
    assert clf.approximation_ == ("nystroem" if approximation == "nystroem" else "fourier")
    for name in ("dual_coef_", "support_vectors_"):
        with pytest.raises(AttributeError, match=f"has no {name}.*approximation='exact' has"):
            getattr(clf, name)
    assert not any(hasattr(clf, name) for name in ("support_", "n_support_", "coef_"))
    assert clf.gamma_ == pytest.approx(svm.SVC().fit(X, NAMES)._gamma)
    clf.set_params(approximation="exact").fit(X, NAMES)
    assert clf.approximation_ == "exact" and clf.support_.size == clf.n_support_.sum()


def test_the_linear_kernel_of_nystroem_features_has_its_w():
    for y, lines in ((BINARY, 1), (NAMES, 3)):
        clf = SVC(kernel="linear", approximation="nystroem", random_state=0).fit(X, y)
        assert clf.coef_.shape == (lines, 6)
        scores = X @ clf.coef_.T + clf.intercept_
        np.testing.assert_allclose(scores if lines > 1 else scores[:, 0], clf.decision_function(X), atol=1e-8)
    with pytest.raises(ValueError, match="read-only"):
        clf.coef_[0, 0] = 1.0


@pytest.mark.parametrize("kind", [SVC, SVR, OneClassSVM])
def test_nothing_is_there_before_a_fit(kind):
    properties = inspect.getmembers_static(kind, lambda one: isinstance(one, property))
    names = [name for name, _ in properties if name.endswith("_") and not name.startswith("_")]
    assert {"dual_coef_", "coef_", "support_vectors_", "approximation_", "fit_status_", "shape_fit_"} <= set(names)
    for name in (*names, "support_", "n_support_", "gamma_"):
        assert not hasattr(kind(kernel="linear"), name), name


def test_a_fit_that_falls_short_has_status_one():
    with pytest.warns(UserWarning, match="stopped after"):
        clf = SVC(C=1e4, gamma=0.3, tol=1e-9, max_iter=1, approximation="exact").fit(X, NAMES)
    assert clf.fit_status_ == 1 and clf.n_iter_.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", [SVC, primalsvm.NuSVC])
@pytest.mark.parametrize("certify", [True, False])
def test_pairs_of_classes_that_time_does_not_suffice_for(kind, certify):
    with pytest.warns(UserWarning, match="stopped after"):
        clf = kind(max_seconds=1e-9, certify=certify, gamma=0.3).fit(X, NAMES)
    assert clf.fit_status_ == 1 and clf.decision_function(X).shape == (160, 3)
    with pytest.warns(UserWarning, match="stopped after"):
        SVC(max_seconds=1e-9, certify=certify, fit_intercept=False).fit(X, NAMES)


# ---- in scikit-learn's company ---------------------------------------------------------------------------------------


def test_selection_of_features():
    for select in (RFE(SVC(kernel="linear"), n_features_to_select=2), SelectFromModel(SVC(kernel="linear"))):
        theirs = clone(select).set_params(estimator=svm.SVC(kernel="linear", tol=1e-8))
        np.testing.assert_array_equal(select.fit(X, NAMES).get_support(), theirs.fit(X, NAMES).get_support())
        assert select.fit(SPARSE, NAMES).get_support().any()
    with pytest.raises(ValueError, match="coef_"):
        RFE(SVC(), n_features_to_select=2).fit(X, NAMES)


def test_pipelines_grids_calibration_and_pickles():
    grid = {"svc__C": [0.1, 1.0], "svc__gamma": [0.1, 1.0], "svc__decision_function_shape": ["ovr", "ovo"]}
    found = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(X, NAMES)
    theirs = GridSearchCV(make_pipeline(StandardScaler(), svm.SVC(tol=1e-8)), grid, cv=3).fit(X, NAMES)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    calibrated = CalibratedClassifierCV(SVC(), ensemble=False, cv=3).fit(X, NAMES)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))


@each_task
@pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
def test_model_files_keep_the_attributes(task, rows, tmp_path):
    rows = rows + sp.csr_matrix(NOVEL - X) if sp.issparse(rows) else NOVEL
    model = PAIRS[task][0](kernel="linear").fit(rows, TARGETS[task])
    model.save(tmp_path / "model")
    loaded = primalsvm.load(tmp_path / "model")
    for name in ("dual_coef_", "support_vectors_", "coef_", "support_", "n_support_", "n_iter_", "intercept_"):
        np.testing.assert_array_equal(dense(getattr(loaded, name)), dense(getattr(model, name)))
    np.testing.assert_array_equal(scores_of(loaded, rows), scores_of(model, rows))
