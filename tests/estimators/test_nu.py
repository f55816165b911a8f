"""NuSVC and NuSVR in the place of scikit-learn's, with certificates of their own problems."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import primalsvm
from primalsvm import SVC, NuSVC, NuSVR
from tests.estimators.test_drop_in import (
    BINARY,
    KERNELS,
    NAMES,
    NUMBERS,
    SPARSE,
    TIGHT,
    TIGHTER,
    WEIGHT,
    X,
    assert_same,
    dense,
    scores_of,
)

MACHINES = {
    "binary": (NuSVC, svm.NuSVC, BINARY, 0.5),
    "classes": (NuSVC, svm.NuSVC, NAMES, 0.6),
    "numbers": (NuSVR, svm.NuSVR, NUMBERS, 0.4),
}
each_machine = pytest.mark.parametrize("machine", MACHINES)


def both(machine, rows, weight=None, **options):
    ours, theirs, y, nu = MACHINES[machine]
    models = ours(**{"nu": nu, "tol": TIGHTER, **options}), theirs(**{"nu": nu, "tol": TIGHT, **options})
    return (model.fit(rows, y, sample_weight=weight) for model in models)


@each_machine
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weights"])
def test_the_attributes_are_scikit_learns(machine, kernel, weight):
    if kernel == "scale" and weight is not None:
        pytest.skip("the variance of X is weighted, so that weights are repetitions; scikit-learn's is not")
    ours, theirs = both(machine, X, weight, **KERNELS[kernel])
    if callable(ours.kernel):  # scikit-learn keeps no vectors then
        theirs.support_vectors_ = X[theirs.support_]
    assert_same(ours, theirs, X)
    assert all(one.relative_gap <= TIGHTER for one in ours.certificates_)


@each_machine
@pytest.mark.parametrize("nu", [0.15, 0.65])
def test_other_shares(machine, nu):
    ours, theirs = both(machine, X, gamma=0.125, nu=nu)
    assert_same(ours, theirs, X)


@each_machine
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_rows(machine, kernel):
    ours, theirs = both(machine, SPARSE, WEIGHT, **KERNELS[kernel] | {"nu": 0.65})
    assert_same(ours, theirs, SPARSE)


@each_machine
def test_a_precomputed_kernel(machine):
    K = np.float32(laplacian_kernel(X, gamma=0.2)).astype(float)
    ours, theirs = both(machine, K, kernel="precomputed")
    assert_same(ours, theirs, K)


@pytest.mark.parametrize("C", [2.0**-7, 30.0])
def test_other_strengths_of_regularisation(C):
    # ν C is exact: else LIBSVM takes a coefficient of 1e-17 for a free one, and its b is one end of an interval
    ours, theirs = both("numbers", X, C=C, gamma=0.3, nu=0.375)
    assert_same(ours, theirs, X)


@each_machine
@pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
def test_weights_are_repetitions(machine, rows):
    kind, _, y, _ = MACHINES[machine]
    times = np.arange(160) % 3
    weighted = kind(nu=0.4, tol=TIGHTER).fit(rows, y, sample_weight=times)
    many = np.repeat(np.arange(160), times)
    repeated = kind(nu=0.4, tol=TIGHTER).fit(rows[many], y[many])
    np.testing.assert_allclose(scores_of(weighted, rows), scores_of(repeated, rows), atol=1e-6)


def test_class_weights_are_weights_of_rows():
    given = {"ant": 0.5, "bee": 2.0, "cat": 1.0}
    weight = np.array([given[name] for name in NAMES])
    ours = NuSVC(nu=0.3, gamma=0.3, tol=TIGHTER, class_weight=given).fit(X, NAMES)
    theirs = svm.NuSVC(nu=0.3, gamma=0.3, tol=TIGHT).fit(X, NAMES, sample_weight=weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-6)
    np.testing.assert_array_equal(ours.class_weight_, [0.5, 2.0, 1.0])


def test_balanced_classes_make_every_nu_feasible():
    few = np.flatnonzero((NAMES == "ant") | (np.arange(160) % 5 == 0))
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.9).fit(X[few], NAMES[few])
    NuSVC(nu=0.9, class_weight="balanced").fit(X[few], NAMES[few])


def test_the_certificates_of_pairs_are_those_of_their_problems():
    """P = −(ν − h)²/(2 ‖w‖²) with the mean hinge h of the pair, D ≤ P by the given tolerance."""
    clf = NuSVC(nu=0.6, kernel="linear", decision_function_shape="ovo", tol=1e-4).fit(X, NAMES)
    scores = clf.decision_function(X)
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.isin(NAMES, clf.classes_[[i, j]])
        y = np.where(NAMES[rows] == clf.classes_[i], 1.0, -1.0)
        hinge = np.maximum(0.0, 1.0 - y * scores[rows, k]).mean()
        expected = -((0.6 - hinge) ** 2) / (2.0 * clf.coef_[k] @ clf.coef_[k])
        assert clf.certificates_[k].primal == pytest.approx(expected, rel=1e-9)
        assert clf.certificates_[k].dual <= expected and clf.certificates_[k].relative_gap <= 1e-4


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_certificate_of_a_regressor_is_in_the_units_of_y(scale):
    y, C = scale * (NUMBERS + 1e3), 2.0 * scale
    reg = NuSVR(nu=0.4, kernel="linear", C=C).fit(X, y)
    error = np.abs(y - reg.predict(X))
    epsilon = np.sort(error)[-64]  # 0.4 of 160 rows; P is linear between two errors
    expected = reg.coef_[0] @ reg.coef_[0] / (2 * 160 * C) + 0.4 * epsilon + np.maximum(0, error - epsilon).mean()
    assert reg.certificate_.primal == pytest.approx(expected, rel=1e-9)
    alpha = reg.dual_coef_[0] / C
    assert np.abs(alpha).max() <= 1 + 1e-9 and abs(alpha.sum()) <= 1e-8 and np.abs(alpha).sum() <= 0.4 * 160 + 1e-8
    dual = alpha @ y[reg.support_] / 160 - reg.coef_[0] @ reg.coef_[0] / (2 * 160 * C)
    assert reg.certificate_.dual == pytest.approx(dual, rel=1e-6)


def test_constant_targets_are_predicted():
    reg, theirs = NuSVR().fit(X, np.full(160, 7.25)), svm.NuSVR().fit(X, np.full(160, 7.25))
    np.testing.assert_array_equal(reg.predict(X), 7.25)
    assert reg.support_.shape == theirs.support_.shape == (0,)


# ---- parameters ------------------------------------------------------------------------------------------------------


@each_machine
def test_every_parameter_of_scikit_learn_is_accepted(machine):
    ours, theirs, y, _ = MACHINES[machine]
    given = theirs().get_params()
    assert set(given) - set(ours().get_params()) == set()
    model = clone(ours(**given)).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), ours().fit(X, y).predict(X))
    assert not hasattr(model, "partial_fit") and not hasattr(model, "predict_proba")


@pytest.mark.parametrize("machine", ["binary", "classes"])
def test_an_infeasible_nu_is_refused(machine):
    y = MACHINES[machine][2]
    for model in (NuSVC(nu=0.95), svm.NuSVC(nu=0.95)):
        with pytest.raises(ValueError, match="specified nu is infeasible"):
            model.fit(X[:50], y[:50])


@pytest.mark.parametrize("kind", [NuSVC, NuSVR])
@pytest.mark.parametrize("nu", [0.0, -1.0, 1.5, np.nan])
def test_nu_is_a_share(kind, nu):
    with pytest.raises(ValueError, match="nu must lie in"):
        kind(nu=nu).fit(X, np.arange(160) % 2)


@pytest.mark.parametrize("y", [BINARY, NAMES], ids=["binary", "classes"])
def test_classes_that_overlap_too_much_for_nu_are_warned_of(y):
    with pytest.warns(ConvergenceWarning, match="two classes overlap, so that w = 0 is the solution.*a larger nu"):
        clf = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert clf.fit_status_ == 1 and np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize("changes", [{"shrinking": False}, {"cache_size": 1}, {"max_iter": -1}, {"n_jobs": 2}])
@each_machine
def test_parameters_of_the_solver_do_not_change_the_solution(machine, changes):
    kind, _, y, nu = MACHINES[machine]
    plain = kind(nu=nu, tol=TIGHT).fit(X, y)
    np.testing.assert_allclose(kind(nu=nu, tol=TIGHT, **changes).fit(X, y).dual_coef_, plain.dual_coef_, atol=1e-6)


@each_machine
def test_without_a_certificate_it_ends_at_its_own_estimate(machine):
    kind, _, y, nu = MACHINES[machine]
    model, proven = (kind(nu=nu, tol=1e-6, certify=certify).fit(X, y) for certify in (False, True))
    assert model.certificate_ is None and np.max(model.n_iter_) < 50
    np.testing.assert_allclose(scores_of(model, X), scores_of(proven, X), atol=2e-3)


def test_labels_have_a_problem_each():
    labels = np.stack([NAMES == "ant", NUMBERS > 10.0], axis=1).astype(int)
    clf = NuSVC(nu=0.4, gamma=0.3).fit(X, labels)
    for k in (0, 1):
        np.testing.assert_array_equal(clf.predict(X)[:, k], NuSVC(nu=0.4, gamma=0.3).fit(X, labels[:, k]).predict(X))


def test_probabilities():
    clf = NuSVC(nu=0.4, gamma=0.3, probability=True, random_state=0).fit(X, NAMES)
    p = clf.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(clf.classes_[p.argmax(axis=1)] == clf.predict(X)) > 0.9


def test_it_is_the_classifier_of_the_margin_that_nu_gives():
    """The dual coefficients of a NuSVC are at most 1/(ρ Σc) in size: its C as an SVC."""
    clf = NuSVC(nu=0.5, gamma=0.3, tol=TIGHTER).fit(X, BINARY)
    same = SVC(C=np.abs(clf.dual_coef_).max(), gamma=0.3, tol=TIGHTER).fit(X, BINARY)
    np.testing.assert_allclose(clf.decision_function(X), same.decision_function(X), atol=1e-5)


# ---- in scikit-learn's company ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("machine", "nu"), [("classes", 0.9), ("numbers", 0.4)])
def test_selection_of_features(machine, nu):
    kind, peer, y, _ = MACHINES[machine]
    model = kind(nu=nu, kernel="linear")
    for select in (RFE(model, n_features_to_select=3), SelectFromModel(model)):
        expected = clone(select).set_params(estimator=peer(nu=nu, kernel="linear", tol=1e-8)).fit(X, y)
        np.testing.assert_array_equal(select.fit(X, y).get_support(), expected.get_support())


def test_pipelines_grids_calibration_and_pickles():
    grid = {"nusvc__nu": [0.4, 0.6], "nusvc__gamma": [0.1, 1.0]}
    found = GridSearchCV(make_pipeline(StandardScaler(), NuSVC()), grid, cv=3).fit(X, NAMES)
    theirs = GridSearchCV(make_pipeline(StandardScaler(), svm.NuSVC(tol=1e-8)), grid, cv=3).fit(X, NAMES)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    calibrated = CalibratedClassifierCV(NuSVC(), ensemble=False, cv=3).fit(X, NAMES)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))


@each_machine
@pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
def test_model_files_keep_the_attributes(machine, rows, tmp_path):
    kind, _, y, _ = MACHINES[machine]
    model = kind(nu=0.65, kernel="linear").fit(rows, y)
    model.save(tmp_path / "model")
    loaded = primalsvm.load(tmp_path / "model")
    assert loaded.get_params() == model.get_params() and loaded.certificate_ == model.certificate_
    for name in ("dual_coef_", "support_vectors_", "coef_", "support_", "n_support_", "n_iter_", "intercept_"):
        np.testing.assert_array_equal(dense(getattr(loaded, name)), dense(getattr(model, name)))
    np.testing.assert_array_equal(scores_of(loaded, rows), scores_of(model, rows))


@pytest.mark.parametrize("kind", [NuSVC, NuSVR])
def test_rows_from_a_file(kind, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    y = np.arange(160) % 2
    sp.save_npz(tmp_path / "rows.npz", sp.csr_matrix(X))
    model = kind(gamma=0.3).fit(X, y)
    np.testing.assert_array_equal(scores_of(model, primalsvm.open(tmp_path / "rows.npy")), scores_of(model, X))
