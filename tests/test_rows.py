"""Rows: every layout gives NumPy's numbers, the caller's arrays are used in place, bad matrices are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from primalsvm.inputs import as_batch, as_rows, as_weights
from primalsvm.rows import (
    CSR,
    Batch,
    Dense,
    combine_rows,
    inner,
    sampled_squared_norms,
    scores_of,
    shape,
    squared_norms_of,
    stored,
    stored_bytes,
    take,
    total_weight,
    value_dtype,
)

M, D = 23, 7


def matrix(dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(M, D)) if np.dtype(dtype).kind == "i" else rng.integers(0, 4, size=(M, D))
    X = X + (rng.random((M, D)) if np.dtype(dtype).kind == "f" else 0)
    X[rng.random((M, D)) < 0.5] = 0
    X[3] = 0
    return X.astype(dtype)


def check_passes(X, truth):
    """The three passes over all rows against NumPy on `truth`."""
    rng = np.random.default_rng(1)
    rows = as_rows(X)
    m, d = truth.shape
    assert shape(rows) == (m, d)
    w, alpha, c = rng.normal(size=d), rng.normal(size=m), rng.uniform(0, 2, size=m)
    scores, norms, combined = np.empty(m), np.empty(m), np.zeros(d)
    scores_of(rows, w, 0, m, scores)
    squared_norms_of(rows, np.arange(m), norms)
    combine_rows(Batch(rows, np.ones(m), as_weights(c, m)), alpha, 0, m, combined)
    np.testing.assert_allclose(scores, truth @ w, rtol=1e-13, atol=1e-13)
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_no_copies(dtype):
    X = matrix(dtype)
    rows = as_rows(X)
    assert isinstance(rows, Dense) and np.shares_memory(rows.values, X) and value_dtype(rows) == dtype
    for index in (np.int32, np.int64):
        S = sp.csr_matrix(X)
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
        rows = as_rows(S)
        assert isinstance(rows, CSR)
        assert all(np.shares_memory(getattr(rows, part), getattr(S, part)) for part in ("data", "indices", "indptr"))


def test_passes_over_part_of_the_rows():
    X = matrix(np.float64)
    out = np.full(M, -1.0)
    scores_of(as_rows(X), np.ones(D), 5, 9, out)
    np.testing.assert_allclose(out[5:9], X[5:9].sum(axis=1))
    assert (out[:5] == -1).all() and (out[9:] == -1).all()


def test_single_precision_weights():
    X = matrix(np.float32)
    w = np.random.default_rng(2).normal(size=D).astype(np.float32)
    out = np.empty(M)
    scores_of(as_rows(X), w, 0, M, out)
    np.testing.assert_allclose(out, X @ w, rtol=1e-5, atol=1e-5)


@given(arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0, -2.5, 1e-300, 1e150])))
def test_csr_and_dense_agree(X):
    assert_same_scores(sp.csr_matrix(X), X)


def assert_same_scores(A, B):
    w = np.array([0.3, -1.7, 2.0, 0.01])
    outs = [np.empty(3), np.empty(3)]
    for X, out in zip((A, B), outs, strict=True):
        scores_of(as_rows(X), w, 0, 3, out)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-14)


def test_unsorted_and_repeated_indices_mean_their_sum():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([3, 0, 0, 2, 1]), np.array([0, 3, 3, 5])
    S = sp.csr_matrix((data, indices, indptr), shape=(3, 4))
    canonical = np.array([[5.0, 0, 0, 1], [0, 0, 0, 0], [0, 5, 4, 0]])
    assert_same_scores(S, canonical)
    out = np.empty(3)
    squared_norms_of(as_rows(S), np.arange(3), out)
    np.testing.assert_allclose(out, (canonical**2).sum(axis=1))
    assert S.indices.tolist() == [3, 0, 0, 2, 1] and S.data.tolist() == [1, 2, 3, 4, 5]  # the caller's stay as they are


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_repeated_indices_of_small_types_do_not_wrap(dtype):
    S = sp.csr_matrix(
        (np.array([200, 100, 1]).astype(dtype), np.array([1, 1, 0]), np.array([0, 2, 3, 3])), shape=(3, 4)
    )
    truth = np.zeros((3, 4))
    truth[0, 1], truth[1, 0] = (300 if dtype == np.uint8 else 2), 1
    assert (S @ np.eye(4) == truth).all()  # what such a matrix means to SciPy
    assert_same_scores(S, truth)


def stored_zero_csr():
    return sp.csr_matrix((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 1, 2, 2])), shape=(3, 4))


def test_stored_zeros_count_as_zero():
    assert_same_scores(stored_zero_csr(), stored_zero_csr().toarray())
    assert stored(as_rows(stored_zero_csr())) == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_not_finite(bad, dtype, convert):
    X = np.ones((M, D), dtype)
    X[11, 4] = bad
    with pytest.raises(ValueError, match=r"X contains NaN or infinity.*row 11"):
        as_rows(convert(X))


def broken(index=None, pointer=None, indptr=None, dtype=np.int32):
    """A 3 × 4 CSR matrix with one entry of `indices` or `indptr` overwritten behind SciPy's back."""
    S = sp.csr_matrix(np.ones((3, 4)))
    S.indices, S.indptr = S.indices.astype(dtype), S.indptr.astype(dtype)
    if index is not None:
        S.indices[5] = index
    if pointer is not None:
        S.indptr[pointer[0]] = pointer[1]
    if indptr is not None:
        S.indptr = np.array(indptr, dtype)
    return S


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("index", [4, 2**31 - 1, -1, -(2**31)])
def test_column_index_outside_the_matrix(index, dtype):
    with pytest.raises(ValueError, match=r"column index outside the matrix.*row 1"):
        as_rows(broken(index=index, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("pointer", [(0, 1), (1, 9), (2, -1), (3, 13), (3, 2**31 - 1), (0, -1)])
def test_pointers_out_of_order(pointer, dtype):
    with pytest.raises(ValueError, match="not a valid CSR matrix: its row pointers"):
        as_rows(broken(pointer=pointer, dtype=dtype))


def test_wrong_number_of_pointers():
    with pytest.raises(ValueError, match="3 rows need 4 pointers, got 3"):
        as_rows(broken(indptr=[0, 4, 12]))


def test_indices_of_another_width_are_refused():
    S = sp.csr_matrix(np.ones((3, 4)))
    S.indices = S.indices.astype(np.int16)
    with pytest.raises(ValueError, match="not a valid CSR matrix"):
        as_rows(S)


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), 5.0], ids=["vector", "cube", "scalar"])
def test_not_a_matrix(X):
    with pytest.raises(ValueError, match="must be a matrix"):
        as_rows(X)


def test_a_sparse_vector_is_not_a_matrix():
    with pytest.raises(ValueError, match="must be a matrix"):
        as_rows(sp.coo_array(np.array([1.0, 0.0, 2.0])))


@pytest.mark.parametrize("X", [np.ones((2, 2), complex), np.array([["a", "b"]]), sp.csr_matrix(np.eye(2) * 1j)])
def test_not_real_numbers(X):
    with pytest.raises(ValueError, match="real numbers"):
        as_rows(X)


@pytest.mark.parametrize("size", [(0, 3), (3, 0)])
@pytest.mark.parametrize("make", [np.zeros, sp.csr_matrix])
def test_empty(size, make):
    with pytest.raises(ValueError, match=f"X is empty: {size[0]} rows and {size[1]} features"):
        as_batch(make(size), np.ones(size[0]))


@pytest.mark.parametrize("y", [np.ones(2), np.ones(4), np.ones((3, 1)), 1.0])
def test_mismatched_labels(y):
    with pytest.raises(ValueError, match="X has 3 rows but y has shape"):
        as_batch(np.eye(3), y)


def test_labels_not_finite():
    with pytest.raises(ValueError, match="y contains NaN or infinity"):
        as_batch(np.eye(2), [1.0, np.nan])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, -0.5, 1], "must not be negative; row 1 has -0.5"),
        ([0, 0, 0], "zero for every row"),
        (0.0, "zero for every row"),
        ([1, np.nan, 1], "sample_weight contains NaN or infinity"),
        ([1, np.inf, 1], "sample_weight contains NaN or infinity"),
        ([1, 1], r"sample_weight has shape \(2,\), expected \(3,\)"),
        (np.ones((3, 1)), r"sample_weight has shape \(3, 1\)"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        as_batch(np.eye(3), [1, -1, 1], weight)


@pytest.mark.parametrize(("weight", "total"), [(None, 3.0), (2.0, 6.0), ([1, 0, 2.5], 3.5)])
def test_total_weight(weight, total):
    assert total_weight(as_batch(np.eye(3), [1, -1, 1], weight)) == total


def test_inner_sums_in_double_precision():
    x = np.full(100_001, np.float32(0.1))
    assert inner(x, x) == pytest.approx(x.size * float(np.float32(0.1)) ** 2, rel=1e-12)


def test_sampled_norms_are_those_of_evenly_spaced_rows():
    X = np.random.default_rng(0).normal(size=(101, 3))
    norms = (X**2).sum(axis=1)
    np.testing.assert_allclose(sampled_squared_norms(as_rows(X)), norms)
    np.testing.assert_allclose(sampled_squared_norms(as_rows(X), 11), norms[::10])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("chosen", [[5, 0, 5, M - 1], list(range(M)), []], ids=["some", "all", "none"])
def test_taken_rows_are_copies_of_those_chosen(convert, chosen):
    X = matrix(np.float32)
    chosen = np.array(chosen, dtype=np.int64)
    rows = as_rows(convert(X))
    taken = take(rows, chosen)
    scores = np.empty(chosen.size)
    scores_of(taken, np.arange(1.0, D + 1), 0, chosen.size, scores)
    np.testing.assert_allclose(scores, X[chosen] @ np.arange(1.0, D + 1), rtol=1e-6)
    assert shape(taken) == (chosen.size, D)
    assert stored_bytes(taken) == stored_bytes(rows, chosen)


def test_stored_bytes_are_those_of_values_and_indices():
    X = matrix(np.float32)
    assert stored_bytes(as_rows(X)) == X.nbytes
    assert stored_bytes(as_rows(sp.csr_matrix(X))) == 8 * np.count_nonzero(X)
