"""Several vectors that meet the same rows: every operation against NumPy, for sparse and dense rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from primalsvm.data import Weights, as_block
from primalsvm.data.blocks import CACHE_LINE, add_outer, dots, width
from primalsvm.data.vectors import (
    combine_many,
    many_scores_of,
    selected_vectors,
    squared_vector_norms,
    stored_vectors,
    transpose,
    vector_rows,
    zero_vectors,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 5)) * (RNG.random((7, 5)) < 0.6)
BLOCKS = {"csr": as_block(sp.csr_matrix(X)), "dense": as_block(X)}
VECTORS = RNG.normal(size=(3, 5))
each_kind = pytest.mark.parametrize("kind", BLOCKS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@njit
def all_dots(rows, i, V):
    out = np.ones(width(rows, V), V.dtype)
    dots(rows, i, V, out)
    return out


@njit
def one_add(rows, i, c, V):
    padded = np.zeros(width(rows, V), V.dtype)
    padded[: c.shape[0]] = c
    add_outer(rows, i, padded, V)


@each_kind
@each_dtype
def test_dots_are_products(kind, dtype):
    block = BLOCKS[kind]
    V = stored_vectors(block, VECTORS.astype(dtype))
    assert V.dtype == dtype and (not block.sparse or V.strides[0] % CACHE_LINE == 0)
    for i in range(7):
        found = all_dots(block, np.uint64(i), V)
        np.testing.assert_allclose(found[:3], VECTORS @ X[i], rtol=20 * np.finfo(dtype).eps, atol=1e-6)
        assert not found[3:].any()


@each_kind
@each_dtype
def test_add_outer_adds_to_each(kind, dtype):
    block, c = BLOCKS[kind], np.array([0.5, 0.0, -2.0])
    V = stored_vectors(block, VECTORS.astype(dtype))
    one_add(block, np.uint64(2), c, V)
    np.testing.assert_allclose(vector_rows(block, V, 3), VECTORS + np.outer(c, X[2]), rtol=1e-5)


@each_kind
def test_selected_ones_and_their_norms(kind):
    block = BLOCKS[kind]
    V = selected_vectors(block, stored_vectors(block, VECTORS), np.array([2, 0]))
    np.testing.assert_array_equal(vector_rows(block, V, 2), VECTORS[[2, 0]])
    np.testing.assert_allclose(squared_vector_norms(block, V, 2), (VECTORS[[2, 0]] ** 2).sum(axis=1))


@each_kind
@pytest.mark.parametrize("order", ["C", "F"])
def test_passes_of_many_vectors(kind, order):
    block = BLOCKS[kind]
    out = np.empty((7, 3), order=order)
    many_scores_of(block, stored_vectors(block, VECTORS), 0.5, out)
    np.testing.assert_allclose(out, 0.5 * X @ VECTORS.T, rtol=1e-12, atol=1e-12)
    alpha, c = np.asarray(RNG.normal(size=(7, 3)), order=order), RNG.random(7)
    alpha[4] = 0.0
    V = zero_vectors(block, 3, float)
    combine_many(block, Weights(c, 1), alpha, V)
    np.testing.assert_allclose(vector_rows(block, V, 3), (c[:, None] * alpha).T @ X, rtol=1e-12, atol=1e-12)


def test_transposed():
    values = RNG.normal(size=(150, 4)).astype(np.float32)
    np.testing.assert_array_equal(transpose(values), values.T.astype(float))
    np.testing.assert_array_equal(transpose(values, 2), values[:, :2].T.astype(float))
