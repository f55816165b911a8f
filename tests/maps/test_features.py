"""Features of many rows: mapped a block at a time, each row once; kept where they fit."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.data import ALONE, EQUAL_WEIGHTS, InMemory, Mapped, ThreadPool, Whitened, as_block, as_weights
from primalsvm.maps import features
from primalsvm.maps.features import feature_matrix, mapped_dataset, stream_features
from primalsvm.maps.fourier import fourier_map
from primalsvm.maps.kernels import Gaussian, as_points
from primalsvm.maps.nystroem import fit_nystroem

DOUBLE = np.dtype(np.float64)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1300, 4))
BLOCK = as_block(X)
FOURIER = fourier_map(Gaussian(0.5), 4, 20, RNG, DOUBLE)
NYSTROEM = fit_nystroem(Gaussian(0.3), as_block(X[:30]), as_points(X[:30]), 1e-13, None)
PHI = NYSTROEM.block(BLOCK)


class Counted:
    """A map that counts the rows that it is given."""

    n_components = 20

    def __init__(self):
        self.rows = []

    def block(self, part):
        self.rows.append(part.shape[0])
        return FOURIER.block(part)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("K", [0, 1, 3])
def test_scores_map_each_row_once(threads, K):
    W = np.random.default_rng(1).normal(size=(K, 20) if K else 20)
    counted = Counted()
    with ThreadPool(threads) as pool:
        found = Mapped(counted, BLOCK, DOUBLE, EQUAL_WEIGHTS, pool).scores(W)
    assert sum(counted.rows) == 1300
    assert found.shape == ((1300, K) if K else (1300,)) and found.dtype == np.float64
    np.testing.assert_allclose(found, FOURIER.block(BLOCK) @ W.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_matrix_of_features(threads, convert):
    with ThreadPool(threads) as pool:
        found = feature_matrix(FOURIER, as_block(convert(X)), pool, np.dtype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, FOURIER.block(BLOCK), rtol=1e-5, atol=1e-6)


def dataset(budget, passes_only=False, weights=EQUAL_WEIGHTS, threads=ALONE, feature_map=NYSTROEM):
    return mapped_dataset(feature_map, BLOCK, weights, threads, DOUBLE, budget, passes_only)


def test_features_that_do_not_fit_are_computed_in_blocks():
    size = 1300 * 30 * 8
    kept, not_kept = dataset(size), dataset(size - 1)
    assert type(kept) is InMemory and type(not_kept) is Mapped
    np.testing.assert_allclose(not_kept.take(np.arange(7, 30)).values, kept.block.values[7:30], rtol=1e-12, atol=1e-12)
    w = RNG.normal(size=30)
    np.testing.assert_allclose(not_kept.scores(w), kept.block.values @ w, rtol=1e-10, atol=1e-10)


def test_features_of_many_rows_are_kept_without_the_whitening(monkeypatch):
    """Where all rows are looked at together; and if k(S, x) fits."""
    size = 1300 * 30 * 8
    assert type(dataset(size, passes_only=True)) is InMemory  # of few rows
    monkeypatch.setattr(features, "ROWS_PER_LANDMARK", 40)
    found = dataset(size, passes_only=True)
    assert type(found) is Whitened and type(dataset(size)) is InMemory
    w = RNG.normal(size=30)
    np.testing.assert_allclose(found.scores(w), PHI @ w, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.combine(X[:, 0]), PHI.T @ X[:, 0], rtol=1e-8, atol=1e-8)
    assert type(dataset(size - 1, passes_only=True)) is Mapped
    assert type(dataset(1300 * 20 * 8, passes_only=True, feature_map=FOURIER)) is InMemory  # it has no whitening


@pytest.mark.parametrize("budget", [0, 10**9])
def test_weights_and_threads_stay_with_the_rows(budget):
    c = RNG.uniform(size=1300)
    with ThreadPool(2) as threads:
        data = dataset(budget, weights=as_weights(c, 1300), threads=threads)
        assert data.threads is threads and data.total_weight == pytest.approx(c.sum())
        np.testing.assert_allclose(data.combine(X[:, 1]), PHI.T @ (c * X[:, 1]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [100], [256], [17, 255, 258]])
def test_a_stream_is_mapped_to_the_same_bits_however_it_is_cut(cuts):
    whole = stream_features(NYSTROEM, as_block(X[:300]), 0)
    edges = [0, *cuts, 300]
    parts = [stream_features(NYSTROEM, as_block(X[a:b]), a) for a, b in itertools.pairwise(edges)]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    np.testing.assert_allclose(whole, PHI[:300], rtol=1e-10, atol=1e-10)
