"""SVC: the exact kernel machine in the limit, certificates of the mapped problem, streams, and bad input."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV

from primalsvm import (
    SVC,
    Asset,
    DualAscent,
    FourierFeatures,
    Hinge,
    LinearSVC,
    Newton,
    Nystroem,
    Pegasos,
    Problem,
    solve,
)
from primalsvm.data import as_block
from primalsvm.estimators import features as module
from primalsvm.solvers.several import Several

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.where(X[:, 0] ** 2 + X[:, 1] + 0.4 * RNG.normal(size=300) > 0.7, "yes", "no")
SIGNS = np.where(Y == "yes", 1.0, -1.0)
FULL = Nystroem(300, landmarks="uniform", threshold=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kernel", "options"),
    [("rbf", {"gamma": 0.5}), ("poly", {"gamma": 0.5, "degree": 2, "coef0": 1.0}), ("linear", {})],
)
def test_all_rows_as_landmarks_equal_libsvm(kernel, options, weighted):
    c = RNG.uniform(0.5, 2.0, 300) if weighted else None
    ours = SVC(C=2.0, kernel=kernel, approximation=FULL, **options).fit(X, Y, c)
    theirs = svm.SVC(C=2.0, kernel=kernel, tol=1e-8, **options).fit(X, Y, c)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert ours.certificate_.relative_gap <= 1e-9


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_is_scikit_learns(gamma):
    ours = SVC(gamma=gamma, approximation=FULL).fit(X, Y)
    np.testing.assert_allclose(
        ours.decision_function(X), svm.SVC(gamma=gamma, tol=1e-8).fit(X, Y).decision_function(X), atol=1e-3
    )
    sparse = SVC(gamma=gamma, approximation=FULL).fit(sp.csr_matrix(X), Y)
    np.testing.assert_allclose(ours.decision_function(X), sparse.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kernel", [laplacian_kernel, "laplacian"])
def test_other_kernels_equal_libsvm_with_a_precomputed_matrix(kernel):
    K = laplacian_kernel(X, gamma=0.25)
    theirs = svm.SVC(kernel="precomputed", tol=1e-8).fit(K, Y)
    ours = SVC(kernel=kernel, gamma=0.25, approximation=FULL).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(K), atol=1e-3)
    given = SVC(kernel="precomputed", approximation=FULL).fit(K, Y)
    np.testing.assert_allclose(given.decision_function(K), theirs.decision_function(K), atol=1e-3)


def test_the_certificate_is_that_of_the_mapped_problem():
    clf = SVC(lam=1e-2, gamma=0.5, n_components=40, random_state=0).fit(X, Y)
    V = Nystroem(40, gamma=0.5, random_state=0).fit(X)
    features = clf.feature_map_.block(as_block(X))
    margins = SIGNS * (features @ clf.feature_coef_[0] + clf.intercept_[0])
    primal = 0.01 / 2 * clf.feature_coef_[0] @ clf.feature_coef_[0] + np.maximum(0, 1 - margins).mean()
    assert clf.certificate_.primal == pytest.approx(primal, rel=1e-9)
    best = solve(Problem(Hinge(), 1e-2, "free"), features, SIGNS, solver=DualAscent(), max_iter=10_000)
    assert abs(best.certificate.primal - primal) <= 1e-9
    assert V.map_.n_components == clf.feature_coef_.shape[1]


def test_the_score_is_a_sum_over_landmarks():
    clf = SVC(gamma=0.5, n_components=40, random_state=0).fit(X, Y)
    by_landmarks = rbf_kernel(X, clf.landmarks_, gamma=0.5) @ clf.landmark_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), by_landmarks, atol=1e-9)


@pytest.mark.parametrize(
    "solver",
    [
        "auto",
        "newton",
        "dual_ascent",
        Newton(),
        Pegasos(n_iter=60_000),
        Asset(n_iter=60_000),
        Asset(n_iter=60_000, average_last=100),
    ],
    ids=str,
)
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_every_solver_finds_the_same_classifier(solver, approximation):
    options = {"lam": 1e-2, "gamma": 0.5, "n_components": 60, "approximation": approximation, "random_state": 0}
    best = SVC(**options).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a run of n_iter steps ends above tol
        clf = SVC(solver=solver, **options).fit(X, Y)
    assert clf.certificate_.primal <= 1.05 * best.certificate_.primal
    assert clf.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["auto", Asset(n_iter=5000), Pegasos(n_iter=5000, batch_size=7)], ids=str)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_features_that_do_not_fit_are_computed_again_with_the_same_result(solver, convert):
    options = {"lam": 1e-2, "gamma": 0.5, "n_components": 30, "solver": solver, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        kept, computed = (SVC(memory=memory, **options).fit(convert(X), Y) for memory in (None, 0))
    assert computed.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=1e-8)
    assert computed.certificate_.dual == pytest.approx(kept.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(computed.decision_function(X), kept.decision_function(X), atol=1e-4)


def test_large_problems_keep_single_precision(monkeypatch):
    monkeypatch.setattr(module, "IN_DOUBLE", 100)
    clf = SVC(gamma=0.5, C=10.0, n_components=50, random_state=0).fit(X, Y)
    assert clf.feature_map_.block(as_block(X)).dtype == np.float32
    assert clf.certificate_.relative_gap <= 1e-3
    monkeypatch.undo()
    double = SVC(gamma=0.5, C=10.0, n_components=50, random_state=0).fit(X, Y)
    assert np.abs(clf.decision_function(X) - double.decision_function(X)).max() < 0.1


def test_exact_pegasos_with_a_function_as_kernel():
    clf = SVC(lam=1e-2, kernel=rbf_kernel, approximation="exact", solver="pegasos", tol=0.1, random_state=0).fit(X, Y)
    assert clf.certificate_.relative_gap <= 0.1


def test_a_fit_after_a_stream_makes_its_own_features():
    clf = SVC(lam=1e-2, gamma=1.0, n_components=10, warm_start=True, random_state=0).fit(X, Y)
    clf.partial_fit(X[:10] + 50, Y[:10], classes=["no", "yes"])
    assert np.abs(clf.fit(X, Y).landmarks_).max() < 10


def test_exact_pegasos():
    clf = SVC(lam=1e-2, gamma=0.5, approximation="exact", solver="pegasos", tol=1e-2, random_state=0).fit(X, Y)
    best = SVC(lam=1e-2, gamma=0.5, approximation=FULL).fit(X, Y)
    assert clf.certificate_.relative_gap <= 1e-2
    assert clf.certificate_.dual <= best.certificate_.primal * (1 + 1e-6)
    assert best.certificate_.dual <= clf.certificate_.primal * (1 + 1e-6)
    by_hand = rbf_kernel(X, X[clf.support_], gamma=0.5) @ clf.dual_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X), by_hand, atol=1e-9)
    K = rbf_kernel(X, gamma=0.5)
    options = {"approximation": "exact", "solver": "pegasos", "tol": 1e-2, "random_state": 0}
    given = SVC(lam=1e-2, kernel="precomputed", **options).fit(K, Y)
    np.testing.assert_allclose(given.decision_function(K), clf.decision_function(X), atol=1e-9)


def test_warm_start_keeps_the_features_and_takes_fewer_steps():
    clf = SVC(C=1.0, gamma=0.5, n_components=60, warm_start=True, random_state=0).fit(X, Y)
    landmarks, cold = clf.landmarks_.copy(), clf.n_steps_
    clf.set_params(C=1.1).fit(X, Y)
    np.testing.assert_array_equal(clf.landmarks_, landmarks)
    assert clf.n_steps_ < cold
    again = clf.set_params(gamma=2.0, n_components=50).fit(X, Y)  # other features: a cold start
    fresh = SVC(C=1.1, gamma=2.0, n_components=50, random_state=0).fit(X, Y)
    assert again.feature_coef_.shape == (1, again.feature_map_.n_components) and len(again.landmarks_) == 50
    assert again.certificate_.primal == pytest.approx(fresh.certificate_.primal, rel=0.2)


def test_class_weight_and_early_stopping_and_grid_search_and_pickle():
    heavy = SVC(gamma=0.5, class_weight={"yes": 5.0}, random_state=0).fit(X, Y)
    same = SVC(gamma=0.5, C=1.0, random_state=0).fit(X, Y, np.where(Y == "yes", 5.0, 1.0))
    np.testing.assert_allclose(heavy.decision_function(X), same.decision_function(X), atol=1e-6)
    early = SVC(gamma=0.5, early_stopping=True, random_state=0, solver="dual_ascent").fit(X, Y)
    assert early.score(X, Y) > 0.8
    grid = GridSearchCV(SVC(n_components=30, random_state=0), {"gamma": [0.1, 1.0], "C": [0.1, 10.0]}, cv=3).fit(X, Y)
    assert grid.best_score_ > 0.8
    again = pickle.loads(pickle.dumps(heavy))
    np.testing.assert_array_equal(again.decision_function(X), heavy.decision_function(X))


# ---- streams ---------------------------------------------------------------------------------------------------------

STREAM = {"lam": 1e-3, "gamma": 0.5, "approximation": FourierFeatures(64), "random_state": 0}


def streamed(cuts, convert=np.asarray, **options):
    clf = SVC(**{**STREAM, **options})
    for a, b in itertools.pairwise([0, *cuts, 300]):
        clf.partial_fit(convert(X[a:b]), Y[a:b], classes=["no", "yes"])
    return clf


@pytest.mark.parametrize(
    "solver", [Asset(), Asset(batch_size=7, average_last=10), Pegasos(batch_size=3), "pegasos"], ids=str
)
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_a_stream_gives_the_same_bits_however_it_is_cut(solver, convert):
    whole = streamed([], convert, solver=solver)
    for cuts in ([1, 2, 3], [150], [10, 100, 255, 257]):
        clf = streamed(cuts, convert, solver=solver)
        assert clf.feature_coef_.tobytes() == whole.feature_coef_.tobytes() and clf.intercept_ == whole.intercept_
    assert whole.score(X, Y) > 0.75


def test_memory_does_not_grow_with_the_stream():
    clf = streamed([])
    size = len(pickle.dumps(clf))
    for _ in range(20):
        clf.partial_fit(X, Y)
    assert len(pickle.dumps(clf)) <= size + 200


def test_a_stream_learns_with_nystroem_features_of_its_first_batch():
    clf = SVC(lam=1e-3, gamma=0.5, n_components=50, random_state=0)
    for _ in range(10):
        clf.partial_fit(X, Y)
    assert clf.score(X, Y) > 0.85 and clf.n_steps_ == 3000
    fresh = clf.fit(X, Y)  # a fit begins anew
    assert fresh.certificate_ is not None


def test_refusals_of_streams():
    with pytest.raises(AttributeError) as caught:
        SVC(gamma=0.5).partial_fit(X, Y)
    assert "partial_fit needs lam" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="name them in the first call"):
        SVC(**STREAM).partial_fit(X[:3], ["yes"] * 3)
    with pytest.raises(ValueError, match="not among the classes"):
        SVC(**STREAM).partial_fit(X, Y).partial_fit(X[:2], ["maybe", "yes"])
    with pytest.raises(ValueError, match="stochastic solver"):
        SVC(**STREAM, solver="newton").partial_fit(X, Y)
    with pytest.raises(ValueError, match="does not tell"):
        SVC(**STREAM, solver=Pegasos(average="random")).partial_fit(X, Y)
    with pytest.raises(ValueError, match="n_iter has no meaning"):
        SVC(**STREAM, solver=Asset(n_iter=10)).partial_fit(X, Y)
    with pytest.raises(ValueError, match="all rows at once"):
        SVC(**{**STREAM, "approximation": "exact"}).partial_fit(X, Y)
    with pytest.raises(ValueError, match="'margin'"):
        SVC(**{**STREAM, "approximation": Nystroem(10, landmarks="margin")}).partial_fit(X, Y)
    with pytest.raises(ValueError, match="began with the classes"):
        SVC(**STREAM).partial_fit(X, Y).partial_fit(X, Y, classes=["yes", "maybe"])
    with pytest.raises(ValueError, match="'even'"):
        SVC(**STREAM, class_weight="even").partial_fit(X, Y)
    with pytest.raises(ValueError, match="features"):
        SVC(**STREAM).partial_fit(X, Y).partial_fit(X[:, :2], Y)


def test_rows_of_weight_zero_take_no_step():
    c = np.where(np.arange(300) % 3 == 0, 0.0, 1.5)
    with_them = SVC(**STREAM).partial_fit(X, Y, sample_weight=c).partial_fit(X[:9], Y[:9], sample_weight=np.zeros(9))
    without = SVC(**STREAM).partial_fit(X[c > 0], Y[c > 0], sample_weight=c[c > 0])
    assert (
        with_them.feature_coef_.tobytes() == without.feature_coef_.tobytes()
        and with_them.n_steps_ == without.n_steps_ == 200
    )


@pytest.mark.parametrize("begun", [False, True])
def test_a_call_that_fails_leaves_the_classifier_as_it_was(begun):
    clf = SVC(**STREAM).partial_fit(X, Y) if begun else SVC(**STREAM).fit(X, Y)
    before, scores = set(clf.__dict__), clf.decision_function(X)
    bad = X[:, :3].copy()
    bad[0] = np.nan
    for rows, labels, message in (
        (bad, Y, "features|NaN"),
        (X, ["maybe"] * 300, "classes"),
        (X, Y[:5], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.partial_fit(rows, labels)
        assert set(clf.__dict__) == before
        np.testing.assert_array_equal(clf.decision_function(X), scores)


def test_a_stream_that_would_diverge_says_so_and_keeps_what_it_has():
    clf = SVC(**STREAM, loss="squared_hinge", solver=Pegasos())
    for _ in range(4):  # enough to settle the length of the steps
        clf.partial_fit(X, Y)
    w = clf.feature_coef_.copy()
    with pytest.raises(ValueError, match="diverge"):
        clf.partial_fit(X, Y, sample_weight=np.full(300, 1e200))
    np.testing.assert_array_equal(clf.feature_coef_, w)
    heavy = SVC(**STREAM, loss="squared_hinge", solver=Pegasos()).partial_fit(X, Y, sample_weight=np.full(300, 1e6))
    assert np.isfinite(heavy.feature_coef_).all()


def test_a_new_stream_leaves_nothing_of_an_earlier_fit():
    clf = SVC(**{**STREAM, "approximation": "nystroem"}).fit(X, Y)
    clf.set_params(approximation=FourierFeatures(16)).partial_fit(X, Y)
    assert not {"landmarks_", "landmark_coef_", "history_", "status_"} & set(vars(clf)) and clf.certificate_ is None
    clf.set_params(approximation="exact", tol=0.5).fit(X, Y)
    assert hasattr(clf, "support_") and not hasattr(clf.set_params(approximation="nystroem").fit(X, Y), "support_")


def test_a_kernel_function_sees_only_rows_of_the_stream():
    def cosine(A, B):
        assert np.linalg.norm(A, axis=1).min() > 0
        return (A / np.linalg.norm(A, axis=1)[:, None]) @ (B / np.linalg.norm(B, axis=1)[:, None]).T

    clf = SVC(lam=1e-3, kernel=cosine, n_components=20, random_state=0)
    for a in range(0, 300, 70):
        clf.partial_fit(X[a : a + 70], Y[a : a + 70])
    assert clf.n_steps_ == 300


# ---- what a map's parameters mean ------------------------------------------------------------------------------------


def test_warm_start_notices_other_landmarks_among_many():
    points = RNG.normal(size=(300, 4))
    clf = SVC(gamma=0.5, approximation=Nystroem(landmarks=points), warm_start=True).fit(X, Y)
    points[150] += 1.0
    clf.set_params(approximation=Nystroem(landmarks=points)).fit(X, Y)
    np.testing.assert_array_equal(clf.landmarks_, points)


def test_a_map_given_with_a_seed_keeps_to_it():
    def landmarks(own, seed):
        return SVC(approximation=Nystroem(20, random_state=own), random_state=seed).fit(X, Y).landmarks_

    np.testing.assert_array_equal(landmarks(5, 0), landmarks(5, 1))
    assert (landmarks(None, 0) != landmarks(None, 1)).any()


def test_pairwise_is_what_the_map_says():
    given = SVC(approximation=Nystroem(kernel="precomputed"))
    assert given.__sklearn_tags__().input_tags.pairwise and not SVC().__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 1e3), (np.float64, 1e3), (np.float64, 1e7)])
def test_distances_far_from_the_origin_survive_single_precision(monkeypatch, dtype, offset):
    monkeypatch.setattr(module, "IN_DOUBLE", 100)
    near = SVC(gamma=0.5, approximation=FULL).fit(X, Y)
    moved = (X + offset).astype(dtype)
    far = SVC(gamma=0.5, n_components=300, random_state=0).fit(moved, Y)
    assert far.feature_map_.points.centre is not None
    assert np.mean(far.predict(moved) == near.predict(X)) > 0.99


@pytest.mark.parametrize("estimator", [SVC, LinearSVC])
@pytest.mark.parametrize("solver", ["newton", Asset(), Pegasos()], ids=str)
def test_a_warm_start_without_intercept_forgets_the_intercept(estimator, solver):
    options = {"lam": 1e-2, "tol": 0.1, "solver": solver, "random_state": 0}
    clf = estimator(warm_start=True, **options).fit(X + 1, Y)
    clf.set_params(fit_intercept=False).fit(X + 1, Y)
    fresh = estimator(fit_intercept=False, **{**options, "solver": "newton"}).fit(X + 1, Y)
    assert clf.intercept_ == 0.0 and clf.certificate_.gap >= -1e-12
    assert clf.certificate_.primal >= fresh.certificate_.dual * (1 - 1e-9)


def test_a_fit_that_fails_loses_neither_the_map_nor_the_stream():
    clf = SVC(lam=1e-3, gamma=2.0, n_components=30, warm_start=True, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="gamma"):
        clf.set_params(gamma=-1.0).fit(X, Y)
    assert len(clf.set_params(gamma=2.0).fit(X, Y).landmarks_) == 30
    stream = SVC(**STREAM).partial_fit(X, Y)
    with pytest.raises(ValueError, match="one class"):
        stream.fit(X, ["yes"] * 300)
    assert stream.partial_fit(X, Y).n_steps_ == 600


def test_class_weights_of_zero_in_a_stream():
    clf = SVC(**STREAM, class_weight={"no": 0.0}).partial_fit(X, Y)
    before = clf.feature_coef_.copy()
    np.testing.assert_array_equal(clf.partial_fit(X[Y == "no"], Y[Y == "no"]).feature_coef_, before)
    with pytest.raises(ValueError, match="sample_weight has shape"):
        clf.partial_fit(X, Y, sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match="NaN"):
        clf.partial_fit(np.full((2, 4), np.nan), ["no", "no"], sample_weight=[0, 0])


def test_features_that_are_not_kept_go_to_newton(monkeypatch):
    monkeypatch.setattr(module, "choose_mapped", lambda *arguments: Several(DualAscent()))
    options, data = {"n_components": 20, "random_state": 0, "tol": 1e-2}, (np.tile(X, (40, 1)), np.tile(Y, 40))
    assert isinstance(SVC(**options).fit(*data).solver_, DualAscent)
    clf = SVC(memory=0, **options).fit(*data)
    assert isinstance(clf.solver_, Newton) and clf.certificate_.relative_gap <= 1e-2


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": -0.5}, "gamma must be positive"),
        ({"kernel": "spline"}, "not known"),
        ({"approximation": "poly"}, "approximation="),
        ({"approximation": Nystroem(threshold=3.0)}, "no eigenvalue"),
        ({"approximation": "exact", "solver": "newton"}, "exact"),
        ({"approximation": "exact", "early_stopping": True}, "exact"),
        ({"kernel": "precomputed"}, "square"),
        ({"lam": -1.0}, "lam"),
        ({"C": 0.0}, "C must be positive"),
        ({"memory": -1}, "memory"),
        ({"solver": Asset(strongly_convex=True)}, "no free intercept"),
        ({"solver": "dual_ascent", "memory": 0}, "kept in memory"),
        ({"approximation": "rff"}, "'nystroem', 'fourier', 'exact'"),
        ({"approximation": Nystroem(landmarks=5)}, "landmarks must be"),
        ({"approximation": Nystroem(landmarks=[1.0, 2.0])}, "landmarks must be"),
        ({"approximation": Nystroem(landmarks=[[np.nan] * 4])}, "landmarks contain NaN"),
        ({"approximation": Nystroem(landmarks=[[1.0]])}, "landmarks have 1 features"),
        ({"approximation": Nystroem(rank=0)}, "rank must be at least 1"),
        ({"approximation": "fourier", "kernel": "poly"}, "'rbf', 'laplacian'"),
        ({"kernel": "poly", "degree": 0}, "degree must be at least 1"),
        ({"solver": "sgd"}, "'auto', 'asset'"),
    ],
    ids=str,
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(X, Y)


def test_bad_types():
    with pytest.raises(TypeError, match="approximation must be"):
        SVC(approximation=3).fit(X, Y)
    for options, name in (
        ({"gamma": [1]}, "gamma"),
        ({"kernel": ["rbf"]}, "kernel"),
        ({"kernel": "poly", "degree": 2.5}, "degree"),
        ({"kernel": "poly", "coef0": "1"}, "coef0"),
        ({"memory": "1 GB"}, "memory"),
        ({"approximation": Nystroem(rank=2.5)}, "rank"),
        ({"approximation": Nystroem(threshold="small")}, "threshold"),
    ):
        with pytest.raises(TypeError, match=f"{name} must be"):
            SVC(**options).fit(X, Y)


def test_bad_data():
    bad = X.copy()
    bad[0, 0] = np.inf
    with pytest.raises(ValueError, match="NaN or infinity"):
        SVC().fit(bad, Y)
    with pytest.raises(ValueError, match="one class only"):
        SVC().fit(X, ["yes"] * 300)
