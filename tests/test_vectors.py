"""Several vectors that meet the same rows: every operation against NumPy, for sparse and dense rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

from primalsvm.inputs import as_rows
from primalsvm.vectors import add_outer, dots, room_for, selected, squared_norms, unpacked, vector_of, width

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 5)) * (RNG.random((7, 5)) < 0.6)
ROWS = {"csr": as_rows(sp.csr_matrix(X)), "dense": as_rows(X)}
VECTORS = RNG.normal(size=(3, 5))
each_kind = pytest.mark.parametrize("kind", ROWS)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def laid(rows, dtype):
    V = room_for(rows, 3, dtype)
    for k in range(3):
        vector_of(rows, V, k)[:] = VECTORS[k]
    return V


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
    rows = ROWS[kind]
    V = laid(rows, dtype)
    for i in range(7):
        found = all_dots(rows, np.uint64(i), V)
        np.testing.assert_allclose(found[:3], VECTORS @ X[i], rtol=20 * np.finfo(dtype).eps, atol=1e-6)
        assert not found[3:].any()


@each_kind
@each_dtype
def test_add_outer_adds_to_each(kind, dtype):
    rows, c = ROWS[kind], np.array([0.5, 0.0, -2.0])
    V = laid(rows, dtype)
    one_add(rows, np.uint64(2), c, V)
    for k in range(3):
        np.testing.assert_allclose(vector_of(rows, V, k), VECTORS[k] + c[k] * X[2], rtol=1e-5)


@each_kind
def test_selected_ones_and_their_norms(kind):
    rows = ROWS[kind]
    V = selected(rows, laid(rows, np.float64), np.array([2, 0]))
    np.testing.assert_array_equal(vector_of(rows, V, 0), VECTORS[2])
    np.testing.assert_array_equal(vector_of(rows, V, 1), VECTORS[0])
    np.testing.assert_array_equal(unpacked(rows, V, 2), VECTORS[[2, 0]])
    np.testing.assert_allclose(squared_norms(rows, V, 2), (VECTORS[[2, 0]] ** 2).sum(axis=1))
