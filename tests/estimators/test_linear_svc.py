"""LinearSVC: scikit-learn's habits, a certificate, and errors that name the problem."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from primalsvm import DualAscent, Hinge, LinearSVC, Pegasos, Problem, SmoothedHinge, Status, solve
from tests import reference
from tests.reference import noisy, sparse_noisy, weights

M, D = 200, 5
X, Y = noisy(M, D)
BIG_X, BIG_Y = noisy(12_000, 10, seed=2)  # m·d ≥ 10⁵: not solved to 1e-10 whatever tol says


def assert_same(one, two, atol=1e-5):
    np.testing.assert_allclose(one.coef_, two.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, two.intercept_, atol=10 * atol)


# ---- what it solves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [None, weights(M)], ids=["plain", "weighted"])
def test_c_means_what_scikit_learn_means(c):
    ours = LinearSVC(C=0.3).fit(X, Y, c)
    theirs = SVC(kernel="linear", C=0.3, tol=1e-6).fit(X, Y, c)
    assert_same(ours, theirs, atol=1e-4)
    ours = LinearSVC(C=0.3, penalize_intercept=True, loss="squared_hinge").fit(X, Y, c)
    theirs = Liblinear(C=0.3, tol=1e-10, max_iter=10**6).fit(X, Y, c)
    assert_same(ours, theirs)
    ours = LinearSVC(C=0.3, fit_intercept=False).fit(X, Y, c)
    theirs = Liblinear(C=0.3, tol=1e-10, max_iter=10**6, loss="hinge", fit_intercept=False).fit(X, Y, c)
    assert_same(ours, theirs, atol=1e-4)


def test_lam_overrides_c():
    assert_same(LinearSVC(lam=0.02, C=77.0).fit(X, Y), LinearSVC(C=1 / (0.02 * M)).fit(X, Y))
    c = weights(M)
    assert_same(LinearSVC(lam=0.02).fit(X, Y, c), LinearSVC(C=1 / (0.02 * c.sum())).fit(X, Y, c))


@pytest.mark.parametrize(
    "options", [{}, {"penalize_intercept": True}, {"fit_intercept": False}, {"loss": SmoothedHinge(0.3)}]
)
def test_the_certificate_is_of_the_returned_hyperplane(options):
    clf = LinearSVC(lam=0.01, **options).fit(X, Y)
    kind = "none" if not clf.fit_intercept else "penalized" if clf.penalize_intercept else "free"
    problem = Problem(options.get("loss", Hinge()), 0.01, kind)
    primal = reference.primal(problem, X, Y, clf.coef_[0], clf.intercept_[0])
    assert clf.certificate_.primal == pytest.approx(primal, rel=1e-12)
    assert 0 <= clf.certificate_.relative_gap + 1e-12 <= 1e-10 + 1e-12
    assert clf.certificate_.exact


def test_the_layer_below_gives_the_same():
    clf = LinearSVC(lam=0.01, random_state=0).fit(X, Y)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))  # what scikit-learn makes of random_state=0
    below = solve(Problem(Hinge(), 0.01, "free"), X, Y, random_state=seed)
    assert clf.coef_[0].tobytes() == below.w.tobytes() and clf.intercept_[0] == below.b


@pytest.mark.parametrize("solver", ["auto", "dual_ascent", "newton", DualAscent(shrinking=False)])
def test_solvers_agree(solver):
    clf = LinearSVC(lam=0.01, solver=solver, max_iter=100_000).fit(X, Y)
    assert_same(clf, LinearSVC(lam=0.01).fit(X, Y), atol=1e-4)
    assert clf.solver_ is solver or isinstance(solver, str)


def test_pegasos_runs_its_steps():
    options = {"batch_size": 1, "n_iter": 20_000, "projection": True, "average": "weighted"}
    clf = LinearSVC(lam=0.01, solver=Pegasos(**options), tol=0.1).fit(X, Y)
    assert clf.n_steps_ == 20_000 and clf.n_iter_ == 20_000 // M and isinstance(clf.solver_, Pegasos)
    best = LinearSVC(lam=0.01).fit(X, Y).certificate_.primal
    assert clf.certificate_.dual <= best * (1 + 1e-9) and clf.certificate_.primal <= 1.1 * best


# ---- labels and weights ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [("no", "yes"), (0, 1), (-1, 1), (3, 7), (False, True), (2.0, 5.0), (np.str_("a"), np.str_("b"))], ids=str
)
def test_any_two_labels(names):
    labels = np.where(Y > 0, names[1], names[0])
    clf = LinearSVC().fit(X, labels)
    assert list(clf.classes_) == list(names)
    assert_same(clf, LinearSVC().fit(X, Y))
    assert set(clf.predict(X)) == set(names) and clf.score(X, labels) > 0.7
    assert np.array_equal(clf.predict(X) == names[1], clf.decision_function(X) > 0)


def test_strings_in_lists_and_object_arrays():
    labels = ["spam" if y > 0 else "ham" for y in Y]
    for given in (labels, np.array(labels, dtype=object), pd.Series(labels)):
        assert_same(LinearSVC().fit(X, given), LinearSVC().fit(X, Y))


def test_class_weight_is_a_sample_weight():
    c = np.where(Y > 0, 3.0, 0.5)
    assert_same(LinearSVC(class_weight={-1: 0.5, 1: 3.0}).fit(X, Y), LinearSVC().fit(X, Y, c))
    c = np.where(Y > 0, M / (2 * (Y > 0).sum()), M / (2 * (Y < 0).sum()))
    assert_same(LinearSVC(class_weight="balanced").fit(X, Y), LinearSVC().fit(X, Y, c))
    given = weights(M)
    assert_same(
        LinearSVC(class_weight={-1: 0.5, 1: 3.0}).fit(X, Y, given),
        LinearSVC().fit(X, Y, given * np.where(Y > 0, 3, 0.5)),
    )


def test_class_weight_by_name():
    labels = np.where(Y > 0, "yes", "no")
    assert_same(LinearSVC(class_weight={"yes": 2.0}).fit(X, labels), LinearSVC().fit(X, Y, np.where(Y > 0, 2.0, 1.0)))


def test_balanced_classes_under_strong_regularisation_do_not_favour_one():
    """With w ≈ 0 every b in [−1, 1] is as good: the middle must be taken although the weights cancel only roughly."""
    y = np.repeat([1.0, -1.0], [49, 10])
    clf = LinearSVC(C=1e-9, class_weight="balanced").fit(np.random.default_rng(0).normal(size=(59, 3)), y)
    assert abs(clf.intercept_[0]) < 1e-3


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"penalize_intercept": True}, {"loss": "logistic"}])
def test_weight_2_is_the_row_twice_and_0_is_no_row(options):
    times = np.random.default_rng(5).integers(0, 3, size=M)
    weighted = LinearSVC(**options).fit(X, Y, sample_weight=times)
    repeated = LinearSVC(**options).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert_same(weighted, repeated)


# ---- kinds of input --------------------------------------------------------------------------------------------------


def test_sparse_equals_dense():
    S, y = sparse_noisy(M, D)
    sparse, dense = LinearSVC().fit(S, y), LinearSVC().fit(S.toarray(), y)
    assert_same(sparse, dense)
    np.testing.assert_allclose(dense.decision_function(S), dense.decision_function(S.toarray()), rtol=1e-12, atol=1e-13)
    assert np.array_equal(dense.predict(S.tocsc()), dense.predict(S.toarray()))


def test_more_features_than_there_is_memory_for_are_refused(monkeypatch):
    X = sp.csr_matrix(([1.0, 1.0], ([0, 1], [0, 99_999])), shape=(2, 100_000))
    assert LinearSVC().fit(X, [1, -1]).score(X, [1, -1]) == 1.0
    monkeypatch.setattr("primalsvm.memory.available", lambda: 10**6)
    with pytest.raises(MemoryError, match="the weights of 100000 features would take"):
        LinearSVC().fit(X, [1, -1])


def test_int64_indices_are_accepted():
    S, y = sparse_noisy(M, D)
    wide = S.copy()
    wide.indices, wide.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    assert_same(LinearSVC().fit(wide, y), LinearSVC().fit(S, y))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.bool_, np.int32])
def test_dtypes(dtype):
    data = (10 * X).astype(dtype) if dtype != np.uint8 else (10 * np.abs(X)).astype(dtype)
    clf = LinearSVC(C=0.1).fit(data, Y)
    assert_same(clf, LinearSVC(C=0.1).fit(data.astype(float), Y))
    np.testing.assert_allclose(
        clf.decision_function(data), data.astype(float) @ clf.coef_[0] + clf.intercept_, atol=1e-9
    )


def test_read_only_and_fortran_input():
    frozen = X.copy()
    frozen.flags.writeable = False
    assert_same(LinearSVC().fit(frozen, Y), LinearSVC().fit(X, Y))
    assert_same(LinearSVC().fit(np.asfortranarray(X), Y), LinearSVC().fit(X, Y))


def test_the_callers_arrays_are_left_alone():
    S, y = sparse_noisy(M, D)
    before = S.copy(), y.copy(), X.copy()
    LinearSVC().fit(S, y, weights(M))
    LinearSVC().fit(X, y)
    assert (before[0] != S).nnz == 0 and (y == before[1]).all() and (before[2] == X).all()


def test_pandas_names_are_kept_and_checked():
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = LinearSVC().fit(frame, Y)
    assert clf.feature_names_in_.tolist() == list("abcde") and clf.n_features_in_ == D
    assert_same(clf, LinearSVC().fit(X, Y))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[list("edcba")])


# ---- what it reports -------------------------------------------------------------------------------------------------


def test_attributes():
    clf = LinearSVC(lam=0.01).fit(X, Y)
    assert clf.coef_.shape == (1, D) and clf.intercept_.shape == (1,)
    assert clf.status_ is Status.CONVERGED
    assert isinstance(clf.n_iter_, int) and clf.n_iter_ >= 1 and clf.n_steps_ >= clf.n_iter_
    history = pd.DataFrame(clf.history_)
    assert list(history.columns)[:6] == ["epoch", "steps", "seconds", "primal", "dual", "gap"]
    assert history.primal.min() == clf.certificate_.primal and history.steps.iloc[-1] == clf.n_steps_


def test_a_fit_that_falls_short_warns_with_its_gap():
    with pytest.warns(
        ConvergenceWarning, match=r"LinearSVC stopped after 2 epochs at a relative gap of .* > tol 1.0e-12"
    ) as seen:
        clf = LinearSVC(lam=1e-5, solver="dual_ascent", tol=1e-12, max_iter=2).fit(BIG_X, BIG_Y)
    assert clf.status_ is Status.MAX_ITER and clf.n_iter_ == 2
    assert f"{clf.certificate_.relative_gap:.1e}" in str(seen[0].message)
    assert seen[0].filename == __file__  # it points at the caller


def test_a_time_budget_warns_too():
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1e-09 seconds.*raise max_seconds"):
        clf = LinearSVC(lam=1e-5, solver="dual_ascent", tol=1e-12, max_seconds=1e-9).fit(BIG_X, BIG_Y)
    assert clf.status_ is Status.MAX_SECONDS


def test_pegasos_that_ends_short_of_tol_warns():
    with pytest.warns(ConvergenceWarning, match="finished after 0.5 epochs at a relative gap"):
        LinearSVC(lam=1e-3, solver=Pegasos(n_iter=M // 2)).fit(X, Y)


def test_without_certificate():
    clf = LinearSVC(lam=0.1, solver=Pegasos(n_iter=1000), certify=False).fit(X, Y)
    assert clf.certificate_ is None and clf.status_ is Status.FINISHED


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", ["auto", "dual_ascent", "pegasos"])
def test_same_random_state_and_threads_same_bits(solver, n_jobs):
    options = {"lam": 1e-3, "solver": solver, "n_jobs": n_jobs, "random_state": 5, "tol": 2e-2}
    one, two = (LinearSVC(**options).fit(BIG_X, BIG_Y) for _ in range(2))
    assert one.coef_.tobytes() == two.coef_.tobytes() and one.intercept_.tobytes() == two.intercept_.tobytes()
    assert one.certificate_ == two.certificate_


def test_different_threads_stay_within_the_certified_distance():
    lam = 1e-3
    one, two = (LinearSVC(lam=lam, solver="dual_ascent", n_jobs=n, random_state=5).fit(BIG_X, BIG_Y) for n in (1, 2))
    reach = sum(np.sqrt(2 * clf.certificate_.gap / lam) for clf in (one, two))
    assert np.linalg.norm(one.coef_ - two.coef_) <= reach


def test_verbose_draws_on_standard_error(capfd):
    LinearSVC(verbose=1, lam=0.01).fit(X, Y)
    printed = capfd.readouterr()
    assert printed.out == "" and "LinearSVC" in printed.err and "gap" in printed.err and "epoch" in printed.err
    LinearSVC(lam=0.01).fit(X, Y)
    assert capfd.readouterr() == ("", "")


# ---- habits ----------------------------------------------------------------------------------------------------------


def test_warm_start_goes_on():
    clf = LinearSVC(lam=1e-3, solver="dual_ascent", warm_start=True, random_state=0).fit(BIG_X, BIG_Y)
    first = clf.n_steps_
    clf.fit(BIG_X, BIG_Y)
    assert clf.n_steps_ < first
    clf.set_params(lam=0.9e-3).fit(BIG_X, BIG_Y)
    cold = LinearSVC(lam=0.9e-3, solver="dual_ascent", random_state=0).fit(BIG_X, BIG_Y)
    assert clf.n_steps_ < cold.n_steps_ and clf.certificate_.relative_gap <= 1e-3


def test_without_warm_start_a_fit_forgets():
    clf = LinearSVC(lam=1e-3, solver="dual_ascent", random_state=0).fit(BIG_X, BIG_Y)
    before = clf.coef_.tobytes()
    assert clf.fit(BIG_X, BIG_Y).coef_.tobytes() == before


def test_warm_start_with_other_data_starts_over():
    clf = LinearSVC(warm_start=True).fit(X, Y)
    clf.fit(X[:100, :3], Y[:100])
    assert_same(clf, LinearSVC().fit(X[:100, :3], Y[:100]))


def test_early_stopping_holds_rows_out():
    clf = LinearSVC(
        lam=1e-6,
        early_stopping=True,
        validation_fraction=0.25,
        n_iter_no_change=3,
        solver="dual_ascent",
        tol=1e-9,
        random_state=0,
    )
    clf.fit(BIG_X, BIG_Y)
    assert clf.status_ is Status.EARLY_STOPPING
    errors = clf.history_["validation_error"]
    assert np.isfinite(errors).all() and (errors[-3:] >= errors.min()).all()
    held = round(12_000 * 0.25)
    assert np.allclose(errors * held, np.round(errors * held))  # errors are shares of the 3000 rows held out
    assert 1 - clf.score(BIG_X, BIG_Y) == pytest.approx(errors.min(), abs=0.02)  # the best point there was kept


def test_early_stopping_keeps_both_classes_and_weights():
    y = np.where(np.arange(M) < 20, 1.0, -1.0)
    clf = LinearSVC(early_stopping=True, random_state=0).fit(sp.csr_matrix(X), y, weights(M))
    assert clf.classes_.tolist() == [-1, 1]


def test_pickle():
    clf = LinearSVC(warm_start=True).fit(X, Y)
    again = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(again.decision_function(X), clf.decision_function(X))
    assert again.certificate_ == clf.certificate_ and again.status_ is clf.status_


def test_clone_and_set_params():
    clf = LinearSVC(lam=0.1)
    copy = clone(clf.set_params(loss="logistic", solver=Pegasos(n_iter=50), max_iter=7))
    assert copy.get_params()["loss"] == "logistic" and copy.get_params()["max_iter"] == 7
    assert copy.solver.n_iter == 50 and not hasattr(copy, "coef_")
    with pytest.raises(ValueError, match="Invalid parameter 'lambda'"):
        clf.set_params(**{"lambda": 1})


def test_grid_search_and_pipeline():
    pipeline = make_pipeline(StandardScaler(), LinearSVC())
    search = GridSearchCV(pipeline, {"linearsvc__C": [1e-4, 1.0], "linearsvc__loss": ["hinge", "logistic"]}, cv=3)
    search.fit(100 * X, Y)
    assert search.best_params_["linearsvc__C"] == 1.0 and search.best_score_ > 0.75


def test_nested_threads():
    search = GridSearchCV(LinearSVC(n_jobs=2), {"C": [0.1, 1.0]}, cv=2, n_jobs=2)
    alone = GridSearchCV(LinearSVC(n_jobs=2), {"C": [0.1, 1.0]}, cv=2)
    assert_same(search.fit(X, Y).best_estimator_, alone.fit(X, Y).best_estimator_)


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lam": 0.0}, "lam must be a positive number"),
        ({"lam": -1.0}, "lam must be a positive number"),
        ({"lam": np.nan}, "lam must be a positive number"),
        ({"lam": np.inf}, "lam must be a positive number"),
        ({"C": 0.0}, "C must be positive"),
        ({"C": -1.0}, "C must be positive"),
        ({"C": np.nan}, "C must be positive"),
        ({"C": np.inf}, "C must be"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"tol": -1e-3}, "tol must be positive"),
        ({"tol": np.nan}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be at least 1"),
        ({"max_seconds": -1.0}, "max_seconds must be positive"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"n_iter_no_change": 0, "early_stopping": True}, "n_iter_no_change"),
        ({"validation_fraction": 1.0, "early_stopping": True}, "validation_fraction must lie between 0 and 1"),
        ({"loss": "huber"}, "loss='huber' is not known"),
        ({"solver": "simplex"}, "solver='simplex': choose 'auto'"),
        ({"class_weight": {-1: -1.0, 1: 1.0}}, "weight.*must not be negative"),
        ({"class_weight": {-1: np.nan, 1: 1.0}}, "weight.*NaN"),
        ({"class_weight": "even"}, "class_weight"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(X, Y)


@pytest.mark.parametrize("name", ["lam", "C", "tol", "max_iter", "max_seconds", "n_jobs"])
def test_a_parameter_of_the_wrong_type_is_named(name):
    with pytest.raises(TypeError, match=f"{name} must be (a number|an integer)"):
        LinearSVC(**{name: "many"}).fit(X, Y)


def with_value(bad):
    data = X.copy()
    data[7, 2] = bad
    return data


def with_index(bad):
    data = sp.csr_matrix(X)
    data.indices[8] = bad
    return data


@pytest.mark.parametrize(
    ("data", "labels", "weight", "message"),
    [
        (with_value(np.nan), Y, None, "NaN or infinity"),
        (with_value(np.inf), Y, None, "NaN or infinity"),
        (sp.csr_matrix(with_value(np.nan)), Y, None, "NaN or infinity"),
        (with_index(D), Y, None, "column index outside the matrix"),
        (with_index(-1), Y, None, "column index outside the matrix"),
        (X, np.ones(M), None, "one class only"),
        (X, np.full(M, "ham"), None, "one class only.*ham"),
        (X, np.linspace(0, 1, M), None, "continuous"),
        (X, np.where(Y > 0, 1, np.nan), None, "NaN"),
        (X, Y[:-1], None, "inconsistent numbers of samples"),
        (X[:0], Y[:0], None, "0 sample"),
        (X[:, :0], Y, None, "0 feature"),
        (X[0], Y, None, "1D array"),
        (X, Y, -np.ones(M), "sample_weight must not be negative"),
        (X, Y, np.zeros(M), "sample_weight is zero for every row"),
        (X, Y, np.ones(M - 1), "sample_weight has shape"),
        (X, Y, np.full(M, np.nan), "sample_weight contains NaN"),
        (X + 1j, Y, None, "[Cc]omplex"),
    ],
)  # fmt: skip
def test_bad_input_is_named(data, labels, weight, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(data, labels, weight)


def test_one_class_left_by_the_weights_is_named():
    with pytest.raises(ValueError, match="class"):
        LinearSVC().fit(X, Y, (Y > 0).astype(float))


def test_predicting_too_early_or_with_other_features():
    with pytest.raises(NotFittedError):
        LinearSVC().predict(X)
    clf = LinearSVC().fit(X, Y)
    with pytest.raises(ValueError, match="X has 4 features, but LinearSVC is expecting 5"):
        clf.predict(X[:, :4])
    with pytest.raises(ValueError, match="NaN or infinity"):
        clf.predict(with_value(np.nan))
    with pytest.raises(ValueError, match="column index outside"):
        clf.decision_function(with_index(99))


def test_a_failed_fit_leaves_no_fitted_estimator():
    clf = LinearSVC()
    with pytest.raises(ValueError, match="one class"):
        clf.fit(X, np.ones(M))
    with pytest.raises(NotFittedError):
        clf.predict(X)


def test_one_weight_for_all_rows_is_that_weight_for_each():
    one, each = (LinearSVC(class_weight={0: 1, 1: 3}).fit(X, Y > 0, c) for c in (5.0, np.full(M, 5.0)))
    assert_same(one, each)


@pytest.mark.parametrize("options", [{"n_iter": 1e4}, {"batch_size": 2.0}])
def test_pegasos_counts_in_integers(options):
    with pytest.raises(TypeError, match="must be an integer"):
        Pegasos(**options)


@pytest.mark.parametrize("name", ["fit_intercept", "penalize_intercept", "certify", "warm_start", "early_stopping"])
def test_switches_are_true_or_false(name):
    with pytest.raises(TypeError, match=f"{name} must be True or False, got 'no'"):
        LinearSVC(**{name: "no"}).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("loss", [None, 3, Hinge])
def test_a_loss_is_a_name_or_an_object(loss):
    with pytest.raises(TypeError, match="loss must be a name or a loss object"):
        LinearSVC(loss=loss).fit([[0.0], [1.0]], [0, 1])
