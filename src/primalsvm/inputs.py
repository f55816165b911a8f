"""From arrays to rows: everything that a user hands over is checked here, once, in one pass, before any work."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.compiled import kernel
from primalsvm.rows import CSR, Batch, Dense, Rows, Stored, Vector, Weights, shape

# How pandas and Polars call columns of text and categories.
TEXT_KINDS = ("str", "large_string", "category", "categorical", "enum", "dictionary")

# What an inspection may find.
GOOD, BAD_POINTERS, INDEX_OUT_OF_RANGE, NOT_FINITE, NOT_SORTED = range(5)


@kernel
def _inspect_csr(data, indices, indptr, n_features):  # type: ignore[no-untyped-def]  # compiled
    """One pass over a CSR matrix: pointers in order, indices in range and increasing, values finite."""
    m = indptr.shape[0] - 1
    if indptr[0] != 0 or indptr[m] > indices.shape[0] or indptr[m] > data.shape[0]:
        return BAD_POINTERS, 0
    for i in range(m):
        if indptr[i + 1] < indptr[i]:
            return BAD_POINTERS, i
    unsorted = -1
    for i in range(m):
        start, stop = indptr[i], indptr[i + 1]
        largest = np.uint64(0)
        total = data.dtype.type(0)
        for j in range(start, stop):
            largest = max(largest, np.uint64(indices[j]))
            total += data[j] * data.dtype.type(0)  # NaN as soon as one value is NaN or infinite
        if stop > start and largest >= n_features:
            return INDEX_OUT_OF_RANGE, i
        if total != 0:  # NaN too
            return NOT_FINITE, i
        out_of_order = 0
        for j in range(start + np.uint64(1), stop):
            out_of_order += indices[j] <= indices[j - np.uint64(1)]
        if out_of_order > 0 and unsorted < 0:
            unsorted = i
    return (GOOD, 0) if unsorted < 0 else (NOT_SORTED, unsorted)


@kernel
def _repeats(indices, indptr, n_features):  # type: ignore[no-untyped-def]  # compiled
    """Whether a row names a column twice."""
    last = np.full(n_features, np.uint64(0xFFFFFFFFFFFFFFFF))  # the row that named each column last
    for i in range(np.uint64(indptr.shape[0] - 1)):
        for j in range(indptr[i], indptr[i + np.uint64(1)]):
            if last[indices[j]] == i:
                return True
            last[indices[j]] = i
    return False


@kernel
def _inspect_dense(values):  # type: ignore[no-untyped-def]  # compiled
    for i in range(values.shape[0]):
        x = values[i]
        total = values.dtype.type(0)
        for j in range(x.shape[0]):
            total += x[j] * values.dtype.type(0)
        if total != 0:  # NaN too
            return NOT_FINITE, i
    return GOOD, 0


def _unsigned(indices: Vector) -> Vector:
    return indices.view(np.uint64 if indices.itemsize == 8 else np.uint32)


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


def refuse_text_columns(X: Any) -> None:
    """Raise a ValueError that names the first column of text or categories, if X is a frame (pandas, Polars) with one.

    Examples
    --------
    >>> refuse_text_columns(np.eye(2))
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for k, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        kind = str(dtype).lower()
        # a column of objects may hold numbers, and is refused for the texts in it only
        if kind.startswith(TEXT_KINDS) or (kind == "object" and any(isinstance(v, str) for v in X.iloc[:, k])):
            raise ValueError(
                f"column {name!r} of X holds text or categories ({dtype}), not numbers: make numbers of it, as "
                "sklearn.preprocessing.OneHotEncoder does, or leave it out"
            )


def as_rows(X: Any) -> Stored:
    """See a matrix as rows, after one pass that checks it.

    Parameters
    ----------
    X : ndarray of shape (m, d), SciPy sparse matrix or array, or rows
        C-contiguous arrays and CSR matrices are used in place; where indices repeat within a row, they are summed in a
        copy (where there are more columns than entries, any that are not sorted are put in order).

    Raises
    ------
    ValueError
        For NaN or infinity, indices out of range, pointers out of order, or anything that is not a matrix of numbers.

    Examples
    --------
    >>> as_rows(np.eye(2)).values.shape
    (2, 2)
    """
    if isinstance(X, CSR | Dense):
        inspect(X)
        return X
    sparse = bool(sp.issparse(X))
    dimensions = len(X.shape) if sparse else np.ndim(X)
    if dimensions != 2:
        raise ValueError(f"X must be a matrix, got an array of {dimensions} dimension(s)")
    if sparse:
        return _csr_rows(X)
    values = np.asarray(X)
    values = np.ascontiguousarray(_native(values))
    if values.dtype != np.uint8:
        _refuse(*_inspect_dense(values))
    return Dense(values)


def _csr_rows(X: Any) -> CSR:
    X = X.tocsr()
    m, d = X.shape
    data = np.ascontiguousarray(_native(X.data))
    indices, indptr = (np.ascontiguousarray(_unsigned(part)) for part in (X.indices, X.indptr))
    if indptr.shape[0] != m + 1:
        raise ValueError(f"X is not a valid CSR matrix: {m} rows need {m + 1} pointers, got {indptr.shape[0]}")
    found, row = _inspect_csr(data, indices, indptr, np.uint64(d))
    if found == NOT_SORTED and (d > indices.shape[0] or _repeats(indices, indptr, d)):
        ordered = sp.csr_array(
            (data if data.dtype != np.uint8 else data.astype(np.float32), indices.view(X.indices.dtype), X.indptr),
            shape=X.shape,
            copy=True,
        )
        ordered.sum_duplicates()
        return _csr_rows(ordered)
    if found != NOT_SORTED:  # no solver minds
        _refuse(found, row)
    return CSR(data, indices, indptr, int(d))


def in_order(rows: Rows) -> Rows:
    """The rows, each with its column indices rising; a copy if they are not. For those who compare two rows.

    Examples
    --------
    >>> in_order(as_rows(sp.csr_matrix(([1.0, 2.0], [1, 0], [0, 2]), shape=(1, 2)))).indices
    array([0, 1], dtype=uint32)
    """
    if not isinstance(rows, CSR) or _inspect_csr(*rows[:3], np.uint64(rows.n_features))[0] != NOT_SORTED:
        return rows
    signed = (part.view(part.dtype.str.replace("u", "i")) for part in (rows.indices, rows.indptr))
    ordered = sp.csr_array((rows.data, *signed), shape=shape(rows), copy=True)
    ordered.sort_indices()
    return CSR(ordered.data, _unsigned(ordered.indices), _unsigned(ordered.indptr), rows.n_features)


def inspect(rows: CSR | Dense, first: int = 0) -> None:
    """Check rows, the first of which is called number `first` where they are refused."""
    if isinstance(rows, CSR):
        found, row = _inspect_csr(*rows[:3], np.uint64(rows.n_features))
    elif rows.values.dtype != np.uint8:
        found, row = _inspect_dense(rows.values)
    else:
        return
    _refuse(found, row, first)


def _refuse(found: int, row: int, first: int = 0) -> None:
    if found == GOOD:
        return
    problem = {
        BAD_POINTERS: "is not a valid CSR matrix: its row pointers are out of order",
        INDEX_OUT_OF_RANGE: "is not a valid CSR matrix: it has a column index outside the matrix",
        NOT_FINITE: "contains NaN or infinity",
        NOT_SORTED: "is not in order: a row's column indices must rise",
    }[found]
    raise ValueError(f"Input X {problem} (first seen in row {first + row})")


def as_targets(y: Any) -> npt.NDArray[Any]:
    """A y as an array, also if it is sparse.

    Examples
    --------
    >>> as_targets(sp.csr_matrix([[0, 1]]))
    array([[0, 1]])
    """
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y)


def checked_weights(weight: npt.ArrayLike, m: int) -> Vector:
    """Row weights, or one for all, as an array: finite, not negative, not so large that their sum overflows."""
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
    """Check row weights; None weighs every row 1."""
    if weight is None:
        return Weights(np.ones(1), 0)
    values = checked_weights(weight, m)
    if values.max() == 0:
        raise ValueError("sample_weight is zero for every row: nothing to learn from")
    return Weights(np.ascontiguousarray(values).reshape(-1), values.ndim)


def as_batch(
    X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, *, rows_checked: bool = False
) -> Batch:
    """Check rows (unless somebody else does), labels and weights, and put them together.

    Examples
    --------
    >>> as_batch(np.eye(2), [1, -1]).y
    array([ 1., -1.])
    """
    rows = X if rows_checked else as_rows(X)
    m, d = shape(rows)
    if m == 0 or d == 0:
        raise ValueError(f"X is empty: {m} rows and {d} features")
    labels = np.ascontiguousarray(y, dtype=np.float64)
    if labels.shape != (m,):
        raise ValueError(f"X has {m} rows but y has shape {labels.shape}")
    if not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    return Batch(rows, labels, as_weights(sample_weight, m))
