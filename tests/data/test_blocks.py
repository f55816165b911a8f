"""Blocks: every layout gives NumPy's numbers; an unknown kind is an error."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit
from numba.core.errors import TypingError

from primalsvm.data import CSR, Dense, Weights, as_block, as_weights, inner, squared_norms_of
from primalsvm.data.blocks import (
    combine_rows,
    prefetch_pointer,
    prefetch_row,
    product,
    scaled_rows_of,
    scores_of,
    squared_norm,
)
from primalsvm.data.kernel_rows import KernelRows
from primalsvm.data.pairs import Pairs
from primalsvm.data.vectors import combine_many, many_scores_of

M, D = 23, 7


def matrix(dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(M, D)) if np.dtype(dtype).kind == "i" else rng.integers(0, 4, size=(M, D))
    X = X + (rng.random((M, D)) if np.dtype(dtype).kind == "f" else 0)
    X[rng.random((M, D)) < 0.5] = 0
    X[3] = 0
    return X.astype(dtype)


def scores(block, w):
    out = np.empty(block.shape[0])
    scores_of(block, w, out)
    return out


def check_passes(X, truth):
    """The three passes over all rows against NumPy on `truth`."""
    rng = np.random.default_rng(1)
    block = as_block(X)
    m, d = truth.shape
    assert block.shape == (m, d)
    w, alpha, c = rng.normal(size=d), rng.normal(size=m), rng.uniform(0, 2, size=m)
    norms, combined = np.empty(m), np.zeros(d)
    squared_norms_of(block, np.arange(m), norms)
    combine_rows(block, as_weights(c, m), alpha, combined)
    np.testing.assert_allclose(scores(block, w), truth @ w, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(norms, (truth**2).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(combined, truth.T @ (c * alpha), rtol=1e-12, atol=1e-13)


DTYPES = [np.float64, np.float32, np.uint8, np.bool_, np.int8, np.int32, np.int64, np.uint16, np.float16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dense_passes(dtype):
    X = matrix(dtype)
    check_passes(X, X.astype(float))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.bool_, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_passes(dtype, index):
    X = sp.csr_matrix(matrix(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    check_passes(X, X.toarray().astype(float))


def test_csr_with_indices_and_pointers_of_different_width():
    X = sp.csr_matrix(matrix(np.float64))
    X.indptr = X.indptr.astype(np.int64)
    assert X.indices.dtype == np.int32
    check_passes(X, X.toarray())


@pytest.mark.parametrize("kind", [sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.lil_matrix])
def test_other_sparse_formats(kind):
    X = matrix(np.float64)
    check_passes(kind(X), X)


@pytest.mark.parametrize(
    "layout",
    [np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2], lambda X: X[::-1][::-1], lambda X: X.tolist()],
    ids=["fortran", "strided", "reversed twice", "lists"],
)
def test_dense_layouts(layout):
    X = matrix(np.float64)
    check_passes(layout(X), X)


def test_byte_swapped_values():
    X = matrix(np.float64)
    check_passes(X.astype(X.dtype.newbyteorder()), X)
    swapped = sp.csr_matrix(X)
    swapped.data = swapped.data.astype(swapped.data.dtype.newbyteorder())
    check_passes(swapped, X)


def test_read_only_arrays():
    X = matrix(np.float64)
    X.flags.writeable = False
    check_passes(X, X)
    S = sp.csr_matrix(X)
    for part in (S.data, S.indices, S.indptr):
        part.flags.writeable = False
    check_passes(S, X)


def test_csr_with_strided_parts():
    S = sp.csr_matrix(matrix(np.float64))
    truth = S.toarray()
    S.data, S.indices = np.repeat(S.data, 2)[::2], np.repeat(S.indices, 2)[::2]
    check_passes(S, truth)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_passes_over_part_of_the_rows(convert):
    X = matrix(np.float64)
    part = as_block(convert(X)).between(5, 9)
    assert part.shape == (4, D) and part.entries == (np.count_nonzero(X[5:9]) if part.sparse else 4 * D)
    np.testing.assert_allclose(scores(part, np.ones(D)), X[5:9].sum(axis=1))
    np.testing.assert_array_equal(part.matrix().toarray() if part.sparse else part.matrix(), X[5:9])


def test_single_precision_weights():
    X = matrix(np.float32)
    w = np.random.default_rng(2).normal(size=D).astype(np.float32)
    np.testing.assert_allclose(scores(as_block(X), w), X @ w, rtol=1e-5, atol=1e-5)


@given(arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0, -2.5, 1e-300, 1e150])))
def test_csr_and_dense_agree(X):
    w = np.array([0.3, -1.7, 2.0, 0.01])
    np.testing.assert_allclose(scores(as_block(sp.csr_matrix(X)), w), scores(as_block(X), w), rtol=1e-14)


def test_stored_zeros_count_as_entries():
    S = sp.csr_matrix((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 1, 2, 2])), shape=(3, 4))
    check_passes(S, S.toarray())
    assert as_block(S).entries == 2


def test_inner_sums_in_double_precision():
    x = np.full(100_001, np.float32(0.1))
    assert inner(x, x) == pytest.approx(x.size * float(np.float32(0.1)) ** 2, rel=1e-12)


def test_weights():
    each = Weights(np.array([1.0, 2.0, 4.0]), 1)
    assert each.total(3) == 7.0 and each.between(1, 3).total(2) == 6.0 and each.take(np.array([2, 2])).total(2) == 8.0
    equal = Weights(np.array([0.5]), 0)
    assert equal.total(4) == 2.0 and equal.between(1, 3) is equal and equal.take(np.array([0])) is equal
    np.testing.assert_array_equal(equal.array(3), [0.5, 0.5, 0.5])


# ---- rows of a block -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("chosen", [[5, 0, 5, M - 1], list(range(M)), []], ids=["some", "all", "none"])
def test_taken_rows_are_copies_of_those_chosen(convert, chosen):
    X = matrix(np.float32)
    chosen = np.array(chosen, dtype=np.int64)
    block = as_block(convert(X))
    taken = block.take(chosen)
    np.testing.assert_allclose(scores(taken, np.arange(1.0, D + 1)), X[chosen] @ np.arange(1.0, D + 1), rtol=1e-6)
    assert taken.shape == (chosen.size, D)
    assert taken.nbytes_of() == block.nbytes_of(chosen)


def test_bytes_are_those_of_values_and_indices():
    X = matrix(np.float32)
    assert as_block(X).nbytes_of() == X.nbytes
    assert as_block(sp.csr_matrix(X)).nbytes_of() == 8 * np.count_nonzero(X)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_joined_blocks_are_one_after_the_other(convert):
    X = matrix(np.float64)
    block = as_block(convert(X))
    joined = block.between(3, 9).join(block.take(np.array([20, 1])))
    expected = X[[3, 4, 5, 6, 7, 8, 20, 1]]
    np.testing.assert_allclose(scores(joined, np.ones(D)), expected.sum(axis=1))
    np.testing.assert_array_equal(joined.matrix().toarray() if joined.sparse else joined.matrix(), expected)
    with pytest.raises(ValueError, match="sparse and dense rows cannot be joined"):
        block.join(as_block(sp.csr_matrix(X) if not block.sparse else X))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_sizes_of_features(convert):
    X = np.array([[3.0, 0.0, 1.0], [4.0, 0.0, 0.0]])
    np.testing.assert_allclose(as_block(convert(X)).feature_sizes(), [np.sqrt(12.5), np.nan, 1.0])


def test_columns_in_order():
    """Two rows can only be compared if their columns rise."""
    S = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([3, 0, 2]), np.array([0, 2, 3])), shape=(2, 4))
    block = as_block(sp.vstack([S] * 2, format="csr"))
    assert block.in_order().indices.tolist() == [0, 3, 2] * 2 and block.indices.tolist() == [3, 0, 2] * 2
    np.testing.assert_array_equal(block.in_order().matrix().toarray(), block.matrix().toarray())
    sorted_block, dense = as_block(sp.csr_matrix(np.eye(3))), as_block(np.eye(3))
    assert sorted_block.in_order() is sorted_block and dense.in_order() is dense


def test_short_dense_rows_are_sparse_for_many_vectors():
    X = matrix(np.float64)
    block = as_block(X)
    assert block.for_many_vectors(D - 1) is block
    as_sparse = block.for_many_vectors(D)
    assert as_sparse.sparse and np.shares_memory(as_sparse.data, X)
    np.testing.assert_allclose(scores(as_sparse, np.ones(D)), X.sum(axis=1))
    sparse = as_block(sp.csr_matrix(X))
    assert sparse.for_many_vectors(1000) is sparse


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_checksums_change_with_the_rows(convert):
    X = matrix(np.float64)
    found = as_block(convert(X)).checksum()
    assert as_block(convert(X.copy())).checksum() == found
    X[7, 2] = -1.0
    assert as_block(convert(X)).checksum() != found


# ---- differences of rows, rows of a kernel matrix --------------------------------------------------------------------


@njit
def visit(rows, i, w):
    """All that kernels do with single rows."""
    prefetch_pointer(rows, i)
    prefetch_row(rows, i)
    return squared_norm(rows, i)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_pairs_are_differences(convert):
    truth = matrix(np.float64)
    block = as_block(convert(truth))
    high, low = np.array([4, 0, 9], np.uint64), np.array([1, 0, 22], np.uint64)
    pairs, differences = Pairs(block, high, low), truth[high] - truth[low]
    assert pairs.shape == (3, D)
    w, out = np.random.default_rng(6).normal(size=D), np.zeros(D)
    np.testing.assert_allclose(scores(pairs, w), differences @ w, rtol=1e-12, atol=1e-12)
    combine_rows(pairs, as_weights(None, 3), np.array([1.0, 2.0, -0.5]), out)
    np.testing.assert_allclose(out, [1.0, 2.0, -0.5] @ differences, rtol=1e-12, atol=1e-12)
    norms = [visit(pairs, np.uint64(k), w) for k in range(3)]
    np.testing.assert_allclose(norms, (differences**2).sum(axis=1), rtol=1e-12, atol=1e-12)


def test_kernel_rows_stand_for_features():
    """w = Σ wⱼ φ(xⱼ): ⟨w, φ(xᵢ)⟩ = (Kw)ᵢ, and adding a row changes one coefficient."""
    F = np.random.default_rng(7).normal(size=(6, 4))
    K = F @ F.T
    rows = KernelRows(K[[4, 1]], np.array([4, 1], np.uint64))
    w, out = np.arange(6.0), np.zeros(6)
    assert rows.shape == (2, 6) and rows.kernel_rows and not rows.sparse
    np.testing.assert_allclose(scores(rows, w), F[[4, 1]] @ (w @ F), rtol=1e-12)
    combine_rows(rows, as_weights(None, 2), np.array([2.0, -3.0]), out)
    np.testing.assert_array_equal(out, [0.0, -3.0, 0.0, 0.0, 2.0, 0.0])
    np.testing.assert_allclose([visit(rows, np.uint64(k), w) for k in range(2)], np.diag(K)[[4, 1]])
    np.testing.assert_allclose(rows.products(np.array([1, 0])), K[np.ix_([1, 4], [1, 4])])
    both = rows.join(rows.take(np.array([1]))).between(1, 3)
    np.testing.assert_array_equal(both.number, [1, 1])
    np.testing.assert_array_equal(both.values, K[[1, 1]])
    assert both.checksum() != rows.checksum()
    with pytest.raises(NotImplementedError, match="features of which are not known"):
        rows.add_diagonal(np.ones(2), np.zeros(6))


# ---- other kinds -----------------------------------------------------------------------------------------------------


class Strange(NamedTuple):
    """Has all the arrays of the kinds that are known, and is none of them."""

    values: Any
    data: Any
    indices: Any
    indptr: Any
    n_features: int
    number: Any
    rows: Any
    high: Any
    low: Any


STRANGE = Strange(
    values=np.eye(2),
    data=np.ones(2),
    indices=np.array([0, 1], np.uint32),
    indptr=np.array([0, 1, 2], np.uint32),
    n_features=2,
    number=np.array([0, 1], np.uint64),
    rows=Dense(np.eye(2)),
    high=np.array([0], np.uint64),
    low=np.array([1], np.uint64),
)
W, OUT = np.ones(2), np.zeros(2)


@njit
def products_of_first(rows):
    return product(rows, np.uint64(0), np.uint64(1))


@pytest.mark.parametrize(
    "work",
    [
        lambda rows: scores_of(rows, W, OUT),
        lambda rows: combine_rows(rows, as_weights(None, 2), W, OUT),
        lambda rows: squared_norms_of(rows, np.arange(2), OUT),
        lambda rows: scaled_rows_of(rows, np.arange(2), W, np.zeros((2, 2))),
        lambda rows: many_scores_of(rows, np.eye(2), 1.0, np.zeros((2, 2))),
        lambda rows: combine_many(rows, as_weights(None, 2), np.eye(2), np.eye(2)),
        lambda rows: visit(rows, np.uint64(0), W),
        products_of_first,
    ],
    ids=["scores", "combine", "norms", "scaled", "many scores", "combine many", "visit", "product"],
)
def test_an_unknown_kind_of_block_is_an_error(work):
    with pytest.raises(TypingError):
        work(STRANGE)
    work(Dense(np.eye(2)))
    work(CSR(STRANGE.data, STRANGE.indices, STRANGE.indptr, 2))
