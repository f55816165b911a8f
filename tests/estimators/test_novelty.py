"""LinearOneClassSVM and OneClassSVM: scikit-learn's optimum, the share of outliers that was asked for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import OneClassSVM as TheirOneClassSVM

import primalsvm
from primalsvm import LinearOneClassSVM, LinearSVR, Nystroem, OneClassSVM, OneSided, Pegasos, Status, load
from primalsvm.cli import models
from primalsvm.sources.svmlight import write_svmlight

RNG = np.random.default_rng(11)
X = RNG.normal(size=(201, 3)) + np.array([3.0, 2.0, 1.0])
WEIGHT = RNG.integers(0, 4, size=201).astype(float)
MODELS = [LinearOneClassSVM(nu=0.1), OneClassSVM(nu=0.1, gamma=0.3, random_state=0)]
each_model = pytest.mark.parametrize("model", MODELS, ids=["linear", "kernel"])


def again(model, **changes):
    return type(model)(**{**model.get_params(), **changes})


def objective(nu, scores, squared, rho):
    """Schölkopf et al.'s, times ν."""
    return nu * (squared / 2 - rho) + np.maximum(0, rho - scores).mean()


def theirs(nu, **parameters):
    """LIBSVM's scores and objective, in the units of our problem: its w is νm times as long."""
    model, unit = TheirOneClassSVM(nu=nu, tol=1e-10, **parameters).fit(X), nu * len(X)
    scores = model.score_samples(X) / unit
    squared = model.dual_coef_[0] / unit @ scores[model.support_]
    return scores, objective(nu, scores, squared, model.offset_[0] / unit)


@pytest.mark.parametrize("nu", [0.02, 0.2, 0.7])
def test_linear_is_libsvm_s(nu):
    ours = LinearOneClassSVM(nu=nu).fit(X)
    scores, best = theirs(nu, kernel="linear")
    proof = ours.certificate_
    assert proof.primal == pytest.approx(best, rel=1e-6) and proof.relative_gap <= 1e-9 and proof.dual <= best
    own = objective(nu, X @ ours.coef_[0], ours.coef_[0] @ ours.coef_[0], ours.offset_[0])
    assert proof.primal == pytest.approx(own, rel=1e-10)
    np.testing.assert_allclose(ours.score_samples(X), scores, atol=1e-5 * np.abs(scores).max())


@pytest.mark.parametrize("nu", [0.05, 0.5])
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_all_rows_as_landmarks_are_libsvm_s(nu, gamma):
    ours = OneClassSVM(nu=nu, gamma=gamma, approximation=Nystroem(landmarks=X), random_state=0).fit(X)
    scores, best = theirs(nu, gamma=gamma)
    assert ours.certificate_.primal == pytest.approx(best, rel=1e-6)
    unit = nu * len(X)  # fitted scores are LIBSVM's
    np.testing.assert_allclose(ours.score_samples(X), unit * scores, atol=1e-5 * unit * scores.max())


def test_the_whole_kernel_matrix():
    ours = OneClassSVM(nu=0.3, gamma=0.5, approximation="exact", tol=0.05, random_state=0).fit(X)
    _, best = theirs(0.3, gamma=0.5)
    assert ours.certificate_.dual <= best <= ours.certificate_.primal + 1e-9 and ours.status_ is Status.CONVERGED
    assert ours.certificate_.relative_gap <= 0.05


@each_model
@pytest.mark.parametrize("nu", [0.03, 0.25, 0.6])
@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_the_share_of_outliers_is_nu(model, nu, tol):
    """b is the best for its w, whatever `tol`: a quantile of the scores. So all but one row, but for ties."""
    rows = np.random.default_rng(2).normal(size=(3000, 40)) + 0.5
    model = again(model, gamma=0.01) if isinstance(model, OneClassSVM) else model
    found = again(model, nu=nu, tol=tol).fit(rows)
    assert abs(np.sum(found.predict(rows) == -1) - nu * 3000) <= 1.0 + 1e-9
    assert found.certificate_.relative_gap <= tol


@each_model
def test_scores_and_signs(model):
    found = again(model).fit(X)
    np.testing.assert_allclose(found.score_samples(X) - found.offset_, found.decision_function(X), atol=1e-14)
    clear = np.abs(found.decision_function(X)) > 1e-12  # on the boundary, rows are inliers up to rounding
    np.testing.assert_array_equal(found.predict(X)[clear], np.sign(found.decision_function(X))[clear])
    np.testing.assert_array_equal(again(model).fit_predict(X), found.predict(X))
    w = found.feature_coef_ if isinstance(found, OneClassSVM) else found.coef_
    assert found.offset_ == -found.intercept_ and w.shape[0] == 1 and found.history_["gap"][-1] >= -1e-12
    told = again(model).fit(X, np.arange(201))  # y says nothing
    np.testing.assert_array_equal(told.decision_function(X), found.decision_function(X))


@each_model
def test_weights_are_repetitions(model):
    if isinstance(model, OneClassSVM):  # a map that does not depend on the rows
        model = again(model, approximation="fourier", n_components=60)
    weighted = again(model).fit(X, sample_weight=WEIGHT)
    repeated = again(model).fit(np.repeat(X, WEIGHT.astype(int), axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_units_do_not_matter(size):
    plain, other = LinearOneClassSVM(nu=0.1).fit(X), LinearOneClassSVM(nu=0.1).fit(size * X)
    np.testing.assert_allclose(other.coef_, size * plain.coef_, rtol=1e-5)
    assert other.certificate_.primal == pytest.approx(size**2 * plain.certificate_.primal, rel=1e-6)
    assert other.n_iter_ <= 2 * plain.n_iter_


@each_model
def test_streams(model):
    rows = np.random.default_rng(4).normal(size=(6000, 3)) + np.array([3.0, 2.0, 1.0])
    if isinstance(model, OneClassSVM):
        model = again(model, approximation="fourier", n_components=100)
    stream, whole = again(model), again(model).fit(rows)
    for first in range(0, 6000, 1000):
        stream.partial_fit(rows[first : first + 1000])
    assert stream.n_samples_seen_ == 6000 and stream.progressive_error_ == pytest.approx(0.1, abs=0.05)
    agree = np.mean(stream.predict(rows) == whole.predict(rows))
    assert agree > 0.95


@each_model
def test_saved_models_and_sources(model, tmp_path):
    labels = np.where(np.arange(201) % 2, 1.0, -1.0)
    write_svmlight(tmp_path / "rows.svm", sp.csr_matrix(X), labels)
    source = primalsvm.open(tmp_path / "rows.svm")
    read, plain = again(model).fit(source), again(model).fit(X)
    np.testing.assert_allclose(read.decision_function(source), plain.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(read.fit_predict(source), plain.predict(X))
    read.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), read.predict(X))
    with pytest.raises(ValueError, match="knows no labels"):
        models.evaluation_of(load(tmp_path / "model"), tmp_path / "rows.svm", None)


def test_sources_without_labels_or_with_text(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    unlabelled = LinearOneClassSVM(nu=0.1).fit(primalsvm.open(tmp_path / "rows.npy"))
    np.testing.assert_allclose(unlabelled.coef_, LinearOneClassSVM(nu=0.1).fit(X).coef_, rtol=1e-9)
    lines = [f"{'ab'[k % 2]},{x[0]!r},{x[1]!r}" for k, x in enumerate(X.tolist())]
    (tmp_path / "rows.csv").write_text("kind,u,v\n" + "\n".join(lines) + "\n")
    named = LinearOneClassSVM(nu=0.1).fit(primalsvm.open(tmp_path / "rows.csv", target="kind"))
    np.testing.assert_allclose(named.coef_, LinearOneClassSVM(nu=0.1).fit(X[:, :2]).coef_, rtol=1e-6)


def test_a_source_larger_than_memory(tmp_path):
    rows = np.tile(X, (20, 1))
    write_svmlight(tmp_path / "rows.svm", sp.csr_matrix(rows), np.ones(4020))
    cache = primalsvm.open(tmp_path / "rows.svm").to_cache(tmp_path / "rows.cache")
    found = LinearOneClassSVM(nu=0.1, memory=20_000, solver="dual_ascent", random_state=0).fit(cache)
    assert type(found.solver_).__name__ == "BlockAscent" and found.certificate_.relative_gap <= 1e-3
    assert found.certificate_.primal == pytest.approx(theirs(0.1, kernel="linear")[1], rel=1e-3)


def test_centred_rows_are_warned_about():
    model = LinearOneClassSVM(nu=0.1)
    with pytest.warns(ConvergenceWarning, match="the rows surround the origin.*use a kernel"):
        model.fit(X - X.mean(axis=0))
    assert model.status_ is Status.STALLED and not model.coef_.any() and model.n_iter_ < 100
    assert OneClassSVM(nu=0.1, random_state=0).fit(X - X.mean(axis=0)).certificate_.relative_gap < 1e-3


def test_a_run_that_is_too_short_says_so():
    short = LinearOneClassSVM(nu=0.1, solver=Pegasos(), max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter, scale the features$"):
        short.fit(X)


@each_model
@pytest.mark.parametrize("nu", [0.0, -0.1, 1.1, np.nan, np.inf])
def test_nu_outside_its_range_is_refused(model, nu):
    with pytest.raises(ValueError, match=r"nu must lie in \(0, 1\]"):
        again(model, nu=nu).fit(X)


def test_other_refusals():
    with pytest.raises(TypeError, match="nu must be a number"):
        LinearOneClassSVM(nu="few").fit(X)
    with pytest.raises(ValueError, match="the one-class problem has"):
        LinearSVR(loss=OneSided()).fit(X, X[:, 0])
