"""Arrays become blocks and data sets: in place where that is possible; bad ones are refused in words."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from primalsvm.data import (
    CSR,
    Dense,
    as_block,
    as_dataset,
    as_multiplicity,
    as_numbers,
    as_targets,
    as_weights,
    check_columns,
    is_block,
    squared_norms_of,
)
from primalsvm.data.blocks import scores_of
from tests.data.test_blocks import D, M, matrix


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_no_copies(dtype):
    X = matrix(dtype)
    block = as_block(X)
    assert isinstance(block, Dense) and np.shares_memory(block.values, X) and block.dtype == dtype
    for index in (np.int32, np.int64):
        S = sp.csr_matrix(X)
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
        block = as_block(S)
        assert isinstance(block, CSR) and block.dtype == dtype
        assert all(np.shares_memory(getattr(block, part), getattr(S, part)) for part in ("data", "indices", "indptr"))
        back = block.matrix()
        assert (back != S).nnz == 0 and np.shares_memory(back.data, S.data)


def test_blocks_are_taken_as_they_are_after_a_check():
    for block in (as_block(np.eye(3)), as_block(sp.eye(3, format="csr"))):
        assert is_block(block) and as_block(block) is block
    assert not is_block(np.eye(3))
    with pytest.raises(ValueError, match="NaN or infinity"):
        as_block(Dense(np.full((2, 2), np.nan)))


def scores_and_norms(X):
    w = np.array([0.3, -1.7, 2.0, 0.01])
    block = as_block(X)
    scores, norms = np.empty(3), np.empty(3)
    scores_of(block, w, scores)
    squared_norms_of(block, np.arange(3), norms)
    return scores, norms


def assert_same(X, truth):
    for found, expected in zip(scores_and_norms(X), scores_and_norms(truth), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_unsorted_and_repeated_indices_mean_their_sum():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([3, 0, 0, 2, 1]), np.array([0, 3, 3, 5])
    S = sp.csr_matrix((data, indices, indptr), shape=(3, 4))
    assert_same(S, np.array([[5.0, 0, 0, 1], [0, 0, 0, 0], [0, 5, 4, 0]]))
    assert S.indices.tolist() == [3, 0, 0, 2, 1] and S.data.tolist() == [1, 2, 3, 4, 5]  # the caller's stay as they are


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_])
def test_repeated_indices_of_small_types_do_not_wrap(dtype):
    S = sp.csr_matrix(
        (np.array([200, 100, 1]).astype(dtype), np.array([1, 1, 0]), np.array([0, 2, 3, 3])), shape=(3, 4)
    )
    truth = np.zeros((3, 4))
    truth[0, 1], truth[1, 0] = (300 if dtype == np.uint8 else 2), 1
    assert (S @ np.eye(4) == truth).all()  # what such a matrix means to SciPy
    assert_same(S, truth)


def test_stored_zeros_count_as_zero():
    S = sp.csr_matrix((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 1, 2, 2])), shape=(3, 4))
    assert_same(S, S.toarray())


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_not_finite(bad, dtype, convert):
    X = np.ones((M, D), dtype)
    X[11, 4] = bad
    with pytest.raises(ValueError, match=r"X contains NaN or infinity.*row 11"):
        as_block(convert(X))


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
        as_block(broken(index=index, dtype=dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("pointer", [(0, 1), (1, 9), (2, -1), (3, 13), (3, 2**31 - 1), (0, -1)])
def test_pointers_out_of_order(pointer, dtype):
    with pytest.raises(ValueError, match="not a valid CSR matrix: its row pointers"):
        as_block(broken(pointer=pointer, dtype=dtype))


def test_wrong_number_of_pointers():
    with pytest.raises(ValueError, match="3 rows need 4 pointers, got 3"):
        as_block(broken(indptr=[0, 4, 12]))


def test_indices_of_another_width_are_refused():
    S = sp.csr_matrix(np.ones((3, 4)))
    S.indices = S.indices.astype(np.int16)
    with pytest.raises(ValueError, match="not a valid CSR matrix"):
        as_block(S)


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 2, 2)), 5.0], ids=["vector", "cube", "scalar"])
def test_not_a_matrix(X):
    with pytest.raises(ValueError, match="must be a matrix"):
        as_block(X)


def test_a_sparse_vector_is_not_a_matrix():
    with pytest.raises(ValueError, match="must be a matrix"):
        as_block(sp.coo_array(np.array([1.0, 0.0, 2.0])))


@pytest.mark.parametrize("X", [np.ones((2, 2), complex), np.array([["a", "b"]]), sp.csr_matrix(np.eye(2) * 1j)])
def test_not_real_numbers(X):
    with pytest.raises(ValueError, match="real numbers"):
        as_block(X)


@pytest.mark.parametrize("size", [(0, 3), (3, 0)])
@pytest.mark.parametrize("make", [np.zeros, sp.csr_matrix])
def test_empty(size, make):
    with pytest.raises(ValueError, match=f"X is empty: {size[0]} rows and {size[1]} features"):
        as_dataset(make(size))


@pytest.mark.parametrize("y", [np.ones(2), np.ones(4), np.ones((3, 1)), 1.0])
def test_mismatched_labels(y):
    with pytest.raises(ValueError, match="X has 3 rows but y has shape"):
        as_numbers(y, 3)


def test_labels_not_finite():
    with pytest.raises(ValueError, match="y contains NaN or infinity"):
        as_numbers([1.0, np.nan], 2)


def test_targets_may_be_sparse():
    assert as_targets(sp.csr_matrix([[0, 1]])).tolist() == [[0, 1]] and as_targets([1, 2]).tolist() == [1, 2]


def test_columns_of_text_are_named():
    frame = pd.DataFrame({"age": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueError, match=r"column 'colour' of X holds text or categories"):
        check_columns(frame)
    check_columns(frame[["age"]].astype(object))
    check_columns(np.eye(2))


# ---- weights ---------------------------------------------------------------------------------------------------------


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
        ([1, 1e308, 1], "so large that its sum overflows"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        as_dataset(np.eye(3), weight)


@pytest.mark.parametrize(("weight", "total"), [(None, 3.0), (2.0, 6.0), ([1, 0, 2.5], 3.5)])
def test_total_weight(weight, total):
    assert as_dataset(np.eye(3), weight).total_weight == total == as_weights(weight, 3).total(3)


def test_multiplicity():
    assert as_multiplicity(None, 3) is None
    np.testing.assert_array_equal(as_multiplicity(2.0, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(as_multiplicity([0, 0, 0], 3), [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="not be negative"):
        as_multiplicity([-1, 1, 1], 3)


def test_a_data_set_of_checked_rows_is_not_checked_again():
    block = Dense(np.full((2, 2), np.nan))
    assert as_dataset(block, checked=True).block is block
