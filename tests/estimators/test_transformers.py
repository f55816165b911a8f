"""Nystroem and FourierFeatures as scikit-learn transformers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem as Peer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from primalsvm import FourierFeatures, LinearSVC, Nystroem
from primalsvm import memory as memory_module

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
Y = (X[:, 0] ** 2 + X[:, 1] > 0.5).astype(int)
both = pytest.mark.parametrize("make", [Nystroem, FourierFeatures])


def test_all_rows_as_landmarks_give_the_kernel_and_scikit_learns_features_up_to_rotation():
    V = Nystroem(120, landmarks="uniform", gamma=0.2).fit_transform(X)
    np.testing.assert_allclose(V @ V.T, rbf_kernel(X, gamma=0.2), atol=1e-8)
    U = Peer(n_components=120, gamma=0.2, random_state=0).fit_transform(X)
    np.testing.assert_allclose(V @ V.T, U @ U.T, atol=1e-6)


@both
def test_the_same_seed_gives_the_same_features_and_csr_too(make):
    first, second = (make(20, gamma=0.1, random_state=0).fit(X) for _ in range(2))
    assert first.transform(X).tobytes() == second.transform(X).tobytes()
    np.testing.assert_allclose(first.transform(sp.csr_matrix(X)), first.transform(X), rtol=1e-10, atol=1e-12)
    sparse = make(20, gamma=0.1, random_state=0).fit(sp.csr_matrix(X))
    assert sparse.transform(X).shape == (120, 20)


@both
def test_names_and_frames(make):
    frame = pd.DataFrame(X, columns=list("abcde"))
    out = make(8, random_state=0).set_output(transform="pandas").fit(frame).transform(frame)
    name = make.__name__.lower()
    assert list(out.columns) == [f"{name}{k}" for k in range(8)]


@both
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_single_precision_and_threads(make, n_jobs):
    double = make(16, gamma=0.3, random_state=0, n_jobs=n_jobs).fit(X)
    single = make(16, gamma=0.3, random_state=0, n_jobs=n_jobs).fit(X.astype(np.float32))
    out = single.transform(X.astype(np.float32))
    assert out.dtype == np.float32 and double.transform(X).dtype == np.float64
    np.testing.assert_allclose(np.abs(out @ out.T), np.abs(double.transform(X) @ double.transform(X).T), atol=2e-3)


def test_given_landmarks_rank_and_threshold():
    points = X[:10]
    V = Nystroem(landmarks=points, gamma=0.2).fit(X)
    np.testing.assert_array_equal(V.landmarks_, points)
    assert V.map_.n_components == 10
    assert Nystroem(30, gamma=0.2, rank=7, random_state=0).fit_transform(X).shape == (120, 7)
    assert Nystroem(30, gamma=0.2, threshold=0.1, random_state=0).fit(X).eigenvalues_.min() > 0.0


def test_precomputed():
    K = rbf_kernel(X, gamma=0.2)
    V = Nystroem(120, kernel="precomputed", random_state=0).fit(K)
    np.testing.assert_allclose(V.transform(K) @ V.transform(K).T, K, atol=1e-8)
    with pytest.raises(ValueError, match="square"):
        Nystroem(5, kernel="precomputed").fit(K[:50])


def test_in_a_pipeline():
    model = make_pipeline(Nystroem(40, gamma=0.3, random_state=0), LinearSVC(C=10.0)).fit(X, Y)
    assert model.score(X, Y) > 0.95


def test_more_components_than_rows_are_all_rows():
    with pytest.warns(UserWarning, match="n_components=121 is more than the 120 rows"):
        many = Nystroem(121, gamma=0.3, random_state=0).fit(X)
    np.testing.assert_array_equal(many.landmarks_, Nystroem(120, gamma=0.3, random_state=0).fit(X).landmarks_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": -1.0}, "gamma must be positive"),
        ({"gamma": "wide"}, "gamma="),
        ({"n_components": 0}, "at least 1"),
        ({"kernel": "spline"}, "not known"),
        ({"landmarks": "nearest"}, "landmarks="),
        ({"landmarks": np.ones((3, 4))}, "features"),
        ({"threshold": 2.0}, "no eigenvalue"),
        ({"rank": 0}, "rank"),
        ({"kernel": lambda a, b: np.full((a.shape[0], b.shape[0]), np.nan)}, "NaN"),
    ],
)
def test_bad_parameters_of_nystroem(options, message):
    with pytest.raises(ValueError, match=message):
        Nystroem(**{"n_components": 10, **options}).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.0}, "gamma must be positive"),
        ({"kernel": "poly"}, "'rbf', 'laplacian'"),
        ({"form": "sine"}, "form="),
        ({"frequencies": "grid"}, "frequencies="),
    ],
)
def test_bad_parameters_of_fourier_features(options, message):
    with pytest.raises(ValueError, match=message):
        FourierFeatures(**{"n_components": 8, **options}).fit(X)


@both
def test_bad_input(make):
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make(8).fit(bad)
    with pytest.raises(TypeError, match="n_components"):
        make(2.5).fit(X)


@both
def test_what_cannot_fit_in_memory_is_refused_before_it_is_allocated(make, monkeypatch):
    fitted = make(8, random_state=0).fit(X)
    monkeypatch.setattr(memory_module, "available", lambda: 5000)
    with pytest.raises(MemoryError, match="more than the"):
        fitted.transform(X)
    with pytest.raises(MemoryError, match="fewer components"):
        make(80).fit(X)
