"""Kernels: scikit-learn's numbers, for every layout and precision."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba.core.errors import TypingError
from sklearn.metrics import pairwise

from primalsvm.data import as_block
from primalsvm.data.kernel_rows import KernelRows
from primalsvm.maps.kernels import (
    Callable,
    ChiSquared,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    as_points,
    precision_for,
)
from primalsvm.maps.registry import kernel_by_name

RNG = np.random.default_rng(0)
X = RNG.random((30, 7)) * (RNG.random((30, 7)) < 0.6)
T = RNG.random((11, 7)) * (RNG.random((11, 7)) < 0.8)
X[4] = 0.0
T[2] = 0.0

PAIRS = [
    (Gaussian(0.7), lambda a, b: pairwise.rbf_kernel(a, b, 0.7)),
    (Laplacian(0.7), lambda a, b: pairwise.laplacian_kernel(a, b, 0.7)),
    (ChiSquared(0.7), lambda a, b: pairwise.chi2_kernel(a, b, 0.7)),
    (Polynomial(3, 0.7, 1.5), lambda a, b: pairwise.polynomial_kernel(a, b, 3, 0.7, 1.5)),
    (Linear(), pairwise.linear_kernel),
    (Callable(pairwise.cosine_similarity), pairwise.cosine_similarity),
]
each_kernel = pytest.mark.parametrize(("kernel", "truth"), PAIRS, ids=[type(pair[0]).__name__ for pair in PAIRS])


@each_kernel
@pytest.mark.parametrize("precision", [np.float64, np.float32])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_equals_scikit_learn(kernel, truth, convert, precision):
    found = kernel.between(as_block(convert(X.astype(precision))), as_points(T.astype(precision)))
    assert found.dtype == precision
    tolerance = 1e-12 if precision == np.float64 else 1e-5
    np.testing.assert_allclose(found, truth(X, T), rtol=tolerance, atol=tolerance)


@each_kernel
def test_bytes_are_read_as_numbers(kernel, truth):
    whole = (X * 200).astype(np.uint8)
    found = kernel.between(as_block(whole), as_points(T))
    np.testing.assert_allclose(found, truth(whole.astype(float), T), rtol=1e-12, atol=1e-13)


@each_kernel
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_a_block_of_rows(kernel, truth, convert):
    found = kernel.between(as_block(convert(X)).between(5, 12), as_points(T))
    np.testing.assert_allclose(found, truth(X[5:12], T), rtol=1e-12, atol=1e-13)


def test_far_away_points_do_not_overflow():
    far = np.array([[1e4, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(Gaussian(1.0).between(as_block(far), as_points(far)), np.eye(2))


def test_precomputed_takes_columns():
    K = RNG.random((5, 9))
    found = Precomputed(np.array([7, 2])).between(as_block(K), as_points(np.empty((2, 0))))
    np.testing.assert_array_equal(found, K[:, [7, 2]])
    with pytest.raises(ValueError, match="dense"):
        Precomputed(np.array([0])).between(as_block(sp.csr_matrix(K)), as_points(np.empty((1, 0))))


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", [Gaussian, Laplacian, ChiSquared])
def test_bad_gamma(kind, gamma):
    with pytest.raises(ValueError, match="gamma must be positive"):
        kind(gamma)


def test_bad_kernels():
    with pytest.raises(ValueError, match="not known"):
        kernel_by_name("spline", 1.0, 3, 0.0)
    with pytest.raises(ValueError, match="degree"):
        Polynomial(0, 1.0, 0.0)
    with pytest.raises(ValueError, match="degree must be finite"):
        Polynomial(10**400, 1.0, 0.0)
    with pytest.raises(ValueError, match="not negative"):
        ChiSquared(1.0).between(as_block(-X - 1), as_points(T))
    with pytest.raises(ValueError, match="returned shape"):
        Callable(lambda a, b: np.ones((2, 2))).between(as_block(X), as_points(T))
    with pytest.raises(ValueError, match="NaN"):
        Callable(lambda a, b: np.full((len(a), len(b)), np.nan)).between(as_block(X), as_points(T))


def test_only_the_rows_of_a_block_are_looked_at():
    """A block of CSR rows shares its arrays with the rows around it."""
    mixed = np.vstack([-X - 1, X])
    part = as_block(sp.csr_matrix(mixed)).between(30, 60)
    found = ChiSquared(0.7).between(part, as_points(T))
    np.testing.assert_allclose(found, pairwise.chi2_kernel(X, T, 0.7), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kernel", [Laplacian(0.5), ChiSquared(0.5)], ids=["laplacian", "chi2"])
def test_an_unknown_kind_of_block_is_an_error(kernel):
    with pytest.raises(TypingError):
        kernel.between(KernelRows(X, np.arange(30)), as_points(T))


def test_precision_follows_the_data():
    assert precision_for(as_block(X)) == np.float64
    assert precision_for(as_block(X.astype(np.float32))) == precision_for(as_block(X.astype(np.uint8))) == np.float32
