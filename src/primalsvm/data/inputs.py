"""Validate the user's arrays, once and before any work, and make data sets of them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.data.blocks import EQUAL_WEIGHTS, Vector, Weights
from primalsvm.data.csr import CSR, GOOD, NOT_SORTED, unsigned
from primalsvm.data.dense import Dense
from primalsvm.data.in_memory import InMemory
from primalsvm.data.threads import ALONE, ThreadPool

# The names of dtypes of text and categories in pandas and Polars.
TEXT_KINDS = ("str", "large_string", "category", "categorical", "enum", "dictionary")


def _native(values: Vector) -> Vector:
    """Values in a dtype that kernels read directly; only integers wider than a byte and odd floats are copied."""
    if values.dtype in (np.float64, np.float32, np.uint8):
        return values
    if values.dtype == np.bool_:
        return values.view(np.uint8)
    if values.dtype in (np.float16, np.int8, np.int16, np.uint16):
        return values.astype(np.float32)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    raise ValueError(f"X must hold real numbers, not {values.dtype}")


def check_columns(X: Any) -> None:
    """Raise a ValueError that names the first column of text or categories, if X is a frame (pandas, Polars) with one.

    Examples
    --------
    >>> check_columns(np.eye(2))
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for k, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        kind = str(dtype).lower()
        # a column of objects may hold numbers; it is refused only if it has texts
        if kind.startswith(TEXT_KINDS) or (kind == "object" and any(isinstance(v, str) for v in X.iloc[:, k])):
            raise ValueError(
                f"column {name!r} of X holds text or categories ({dtype}), not numbers: make numbers of it, as "
                "sklearn.preprocessing.OneHotEncoder does, or leave it out"
            )


def as_block(X: Any) -> Any:
    """A matrix as a block of rows, after one pass that checks it.

    Parameters
    ----------
    X : ndarray of shape (m, d), SciPy sparse matrix or array, or a block
        C-contiguous arrays and CSR matrices are used in place; where indices repeat within a row, they are summed in a
        copy (where there are more columns than entries, any that are not sorted are put in order).

    Raises
    ------
    ValueError
        For NaN or infinity, indices out of range, pointers out of order, or anything that is not a matrix of numbers.

    Examples
    --------
    >>> as_block(np.eye(2)).shape
    (2, 2)
    """
    if is_block(X):
        X.check()
        return X
    sparse = bool(sp.issparse(X))
    dimensions = len(X.shape) if sparse else np.ndim(X)
    if dimensions != 2:
        raise ValueError(f"X must be a matrix, got an array of {dimensions} dimension(s)")
    if sparse:
        return _csr_block(X)
    block = Dense(np.ascontiguousarray(_native(np.asarray(X))))
    block.check()
    return block


def is_block(X: Any) -> bool:
    """Whether X is a block of rows already."""
    return isinstance(X, CSR | Dense)


def _csr_block(X: Any) -> CSR:
    X = X.tocsr()
    m, d = X.shape
    data = np.ascontiguousarray(_native(X.data))
    indices, indptr = (np.ascontiguousarray(unsigned(part)) for part in (X.indices, X.indptr))
    if indptr.shape[0] != m + 1:
        raise ValueError(f"X is not a valid CSR matrix: {m} rows need {m + 1} pointers, got {indptr.shape[0]}")
    block = CSR(data, indices, indptr, int(d))
    found, _ = block.inspect()
    if found == NOT_SORTED and (d > indices.shape[0] or block.repeats()):
        ordered = sp.csr_array(
            (data if data.dtype != np.uint8 else data.astype(np.float32), indices.view(X.indices.dtype), X.indptr),
            shape=X.shape,
            copy=True,
        )
        ordered.sum_duplicates()
        return _csr_block(ordered)
    if found not in (GOOD, NOT_SORTED):  # unsorted indices are accepted
        block.check()  # raises
    return block


def as_targets(y: Any) -> npt.NDArray[Any]:
    """Targets as an array; sparse ones are made dense.

    Examples
    --------
    >>> as_targets(sp.csr_matrix([[0, 1]]))
    array([[0, 1]])
    """
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y)


def checked_weights(weight: npt.ArrayLike, m: int) -> Vector:
    """Validate row weights, or one weight for all rows: finite, not negative, with a finite sum."""
    values = np.asarray(weight, dtype=np.float64)
    if values.shape not in ((), (m,)):
        raise ValueError(f"sample_weight has shape {values.shape}, expected ({m},)")
    if not np.isfinite(values).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if np.abs(values).max() > np.finfo(float).max / max(m, 1):
        raise ValueError("sample_weight is so large that its sum overflows: divide it by a constant")
    if values.min() < 0:
        raise ValueError(f"sample_weight must not be negative; row {values.argmin()} has {values.min():g}")
    return values


def as_multiplicity(weight: npt.ArrayLike | None, m: int) -> Vector | None:
    """How many times each row counts; None: once each."""
    return None if weight is None else np.broadcast_to(checked_weights(weight, m), (m,))


def as_weights(weight: npt.ArrayLike | None, m: int) -> Weights:
    """Validate row weights; None gives every row the weight 1."""
    if weight is None:
        return EQUAL_WEIGHTS
    values = checked_weights(weight, m)
    if values.max() == 0:
        raise ValueError("sample_weight is zero for every row: nothing to learn from")
    return Weights(np.ascontiguousarray(values).reshape(-1), values.ndim)


def as_dataset(
    X: Any, sample_weight: npt.ArrayLike | None = None, *, threads: ThreadPool = ALONE, checked: bool = False
) -> InMemory:
    """Validate rows (unless they are `checked`) and weights, and make a data set of them.

    Examples
    --------
    >>> as_dataset(np.eye(2)).total_weight
    2.0
    """
    block = X if checked else as_block(X)
    m, d = block.shape
    if m == 0 or d == 0:
        raise ValueError(f"X is empty: {m} rows and {d} features")
    return InMemory(block, as_weights(sample_weight, m), threads)


def as_numbers(y: npt.ArrayLike, m: int) -> Vector:
    """Validate the targets of m rows: finite numbers."""
    numbers = np.ascontiguousarray(y, dtype=np.float64)
    if numbers.shape != (m,):
        raise ValueError(f"X has {m} rows but y has shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity")
    return numbers
