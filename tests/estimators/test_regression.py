"""LinearSVR and SVR: scikit-learn's optimum, in the units of the targets, with a certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVR as TheirSVR  # noqa: N811  # a class, not a constant
from sklearn.svm import LinearSVR as TheirLinearSVR

import primalsvm
from primalsvm import SVR, EpsilonInsensitive, Hinge, LinearSVC, LinearSVR, load
from tests.losses.test_regression import formula

RNG = np.random.default_rng(3)
X = RNG.normal(size=(150, 5))
Y = 2000.0 + 300.0 * (X @ np.array([1.0, -2.0, 0.5, 0.0, 1.0]) + RNG.standard_t(3, size=150))
WEIGHT = RNG.integers(0, 4, size=150).astype(float)


def objective(model, loss, lam, sample_weight=None):
    c = np.ones(len(Y)) if sample_weight is None else sample_weight
    w = np.ravel(model.coef_)
    return lam / 2 * w @ w + c @ formula(loss, X @ w + model.intercept_[0], Y) / c.sum()


@pytest.mark.parametrize("epsilon", [0.0, 50.0])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_optimum_is_libsvm_s(epsilon, C):
    ours = LinearSVR(C=C, epsilon=epsilon).fit(X, Y)
    theirs = TheirSVR(kernel="linear", C=C, epsilon=epsilon, tol=1e-8).fit(X, Y)
    lam, loss = 1 / (C * len(Y)), EpsilonInsensitive(epsilon)
    assert objective(ours, loss, lam) == pytest.approx(objective(theirs, loss, lam), rel=1e-6)
    assert ours.certificate_.primal == pytest.approx(objective(ours, loss, lam), rel=1e-10)
    assert ours.certificate_.relative_gap <= 1e-9


def test_squared_losses_are_liblinear_s():
    ours = LinearSVR(C=0.5, epsilon=20.0, loss="squared_epsilon_insensitive", penalize_intercept=True).fit(X, Y)
    theirs = TheirLinearSVR(
        C=0.5, epsilon=20.0, loss="squared_epsilon_insensitive", tol=1e-12, max_iter=10**6, dual=False
    ).fit(X, Y)  # fmt: skip
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball"])
@pytest.mark.parametrize("penalize", [False, True])
def test_units_do_not_matter(loss, penalize):
    """y in other units, with ε and λ in the same: the same model in these units."""
    s = 1e-3
    degree = 1 if loss in ("epsilon_insensitive", "pinball") else 2
    first = LinearSVR(lam=1e-4, epsilon=30.0, loss=loss, penalize_intercept=penalize).fit(X, Y)
    second = LinearSVR(lam=1e-4 * s ** (degree - 2), epsilon=30.0 * s, loss=loss, penalize_intercept=penalize)
    second.fit(X, s * Y)
    np.testing.assert_allclose(second.coef_, s * first.coef_, rtol=1e-4)
    assert second.certificate_.primal == pytest.approx(s**degree * first.certificate_.primal, rel=1e-6)


@pytest.mark.parametrize(
    "model", [LinearSVR(lam=1e-5, epsilon=10.0), SVR(lam=1e-5, gamma=0.1, random_state=0)], ids=repr
)
def test_weights_are_repetitions(model):
    times = WEIGHT.astype(int)
    if isinstance(model, SVR):
        model = SVR(**{**model.get_params(), "approximation": "fourier", "n_components": 60})
    repeated = type(model)(**model.get_params()).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    weighted = type(model)(**model.get_params()).fit(X, Y, sample_weight=WEIGHT)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_kernels_come_near_the_exact_ones():
    ours = SVR(gamma=0.1, C=1000.0, epsilon=10.0, n_components=150, random_state=0).fit(X, Y)
    theirs = TheirSVR(gamma=0.1, C=1000.0, epsilon=10.0, tol=1e-6).fit(X, Y)
    assert np.corrcoef(ours.predict(X), theirs.predict(X))[0, 1] > 0.999
    assert ours.certificate_.relative_gap <= 1e-3 and ours.landmark_coef_.shape == (1, 150)


def test_quantiles():
    for tau in (0.1, 0.5, 0.9):
        model = LinearSVR(loss="pinball", quantile=tau, C=100.0).fit(X, Y)
        assert np.mean(model.predict(X) > Y) == pytest.approx(tau, abs=0.05)


def test_streams_and_early_stopping():
    y = (Y - 2000) / 300
    model = LinearSVR(lam=0.05, random_state=0)
    for k in range(20):
        rows = slice(50 * (k % 3), 50 * (k % 3) + 50)
        model.partial_fit(X[rows], y[rows])
    assert model.score(X, y) > 0.6 and model.progressive_error_ < 2.0
    stopped = LinearSVR(early_stopping=True, random_state=0, solver="dual_ascent").fit(X, y)
    assert stopped.score(X, y) > 0.6


def test_saved_models_and_sources(tmp_path):
    model = LinearSVR(epsilon=5.0).fit(sp.csr_matrix(X), Y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))
    text = "\n".join(
        f"{y:.6f} " + " ".join(f"{j + 1}:{v:.9f}" for j, v in enumerate(x)) for x, y in zip(X, Y, strict=True)
    )
    (tmp_path / "rows.svm").write_text(text + "\n")
    source = primalsvm.open(tmp_path / "rows.svm")
    read = LinearSVR(epsilon=5.0).fit(source)
    np.testing.assert_allclose(read.coef_, model.coef_, rtol=1e-5)
    np.testing.assert_allclose(read.predict(source), model.predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (LinearSVR(epsilon=-1.0), Y, "epsilon must be finite and not negative"),
        (LinearSVR(loss="huber"), Y, "epsilon is δ.*must be positive"),
        (LinearSVR(loss="pinball", quantile=1.5), Y, "quantile must lie between 0 and 1"),
        (LinearSVR(loss="squared_epsilon_insensitive"), 1e200 * Y, "use other units"),
        (LinearSVR(loss="hinge"), Y, "loss"),
        (LinearSVR(loss=Hinge()), Y, "a loss of classes"),
        (LinearSVC(loss=EpsilonInsensitive()), np.sign(Y - 2000), "a loss of numbers"),
        (LinearSVR(), np.where(Y > 2000, np.nan, Y), "NaN"),
    ],
)
def test_refusals(model, y, said):
    with pytest.raises(ValueError, match=said):
        model.fit(X, y)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(TypeError, match="epsilon must be a number"):
        LinearSVR(epsilon=None).fit(X, Y)


def test_the_first_targets_of_a_stream_may_be_zero():
    """The ball is not that of a problem without targets."""
    y = np.where(np.arange(3000) < 1200, 0.0, 1.0) * np.sin(np.tile(X[:, 0], 20))
    model = SVR(approximation="fourier", n_components=100, gamma=0.5, lam=1e-4, random_state=0)
    rows = np.tile(X, (20, 1))
    for first in range(0, 3000, 500):
        model.partial_fit(rows[first : first + 500], y[first : first + 500])
    assert np.linalg.norm(model.feature_coef_) > 0.1


@pytest.mark.parametrize("loss", ["huber", "squared_epsilon_insensitive", "epsilon_insensitive"])
def test_a_warm_start_in_other_units_begins_anew(loss):
    warm = LinearSVR(loss=loss, epsilon=30.0, solver="dual_ascent", warm_start=True, lam=1e-3, random_state=0)
    warm.fit(X, Y).fit(X, 1e4 * Y)
    cold = LinearSVR(loss=loss, epsilon=30.0, solver="dual_ascent", lam=1e-3, random_state=0).fit(X, 1e4 * Y)
    np.testing.assert_array_equal(warm.coef_, cold.coef_)


def test_score_of_a_source_and_text_targets(tmp_path):
    rows = "\n".join(f"{y:.6f},{x[0]:.9f},{x[1]:.9f}" for x, y in zip(X, Y, strict=True))
    (tmp_path / "rows.csv").write_text("target,a,b\n" + rows + "\n")
    source = primalsvm.open(tmp_path / "rows.csv", target="target")
    model = LinearSVR(epsilon=5.0).fit(source)
    plain = LinearSVR(epsilon=5.0).fit(X[:, :2], Y)
    assert model.score(source) == pytest.approx(plain.score(X[:, :2], Y), abs=1e-6)
    (tmp_path / "text.csv").write_text("target,a\nlow,1\nhigh,2\nlow,3\n")
    text = primalsvm.open(tmp_path / "text.csv", target="target")
    untouched = LinearSVR()
    with pytest.raises(ValueError, match="numbers are needed"):
        untouched.fit(text)
    assert not hasattr(untouched, "coef_")


def test_held_out_rows_have_weight():
    model = LinearSVR(early_stopping=True, random_state=0, validation_fraction=0.3)
    model.fit(X, Y, sample_weight=np.r_[np.ones(10), np.zeros(140)])
    assert np.isfinite(model.coef_).all()
