"""How a kernel sees data: rows of a CSR or a dense matrix, read in place.

`dot`, `add`, `fetch` and `squared_norm` are all that a kernel may do with a row; each is one overload per kind of
rows, so a solver is written once. A `Batch` is rows with their labels and weights, which always travel together.

The arrays are the caller's own: float32, float64 or uint8 values, 32- or 64-bit indices, read-only or not. Indices are
viewed as unsigned, because a signed index costs a wrap-around test at every access (measured: twice the time).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from primalsvm.compiled import is_kind, kernel

Vector: TypeAlias = npt.NDArray[Any]

LINE = 64  # bytes in a cache line
COMPUTED_AT_ONCE = 2048  # rows


class CSR(NamedTuple):
    """Compressed sparse rows."""

    data: Vector
    indices: Vector
    indptr: Vector
    n_features: int


class Dense(NamedTuple):
    """Dense rows, C-contiguous."""

    values: Vector


class Gram(NamedTuple):
    """Rows of a kernel matrix, standing for rows φ(xᵢ): a w = Σ wⱼ φ(xⱼ) is the vector of its coefficients."""

    values: Vector
    number: Vector  # which rows they are


class Computed(NamedTuple):
    """Rows that are computed whenever they are needed, instead of being kept."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    compute: Callable[[Vector], Vector]  # the matrix of the rows with these numbers
    expansion: bool = False  # they are rows of a kernel matrix


Stored: TypeAlias = CSR | Dense | Gram
Rows: TypeAlias = Stored | Computed


class Weights(NamedTuple):
    """Row weights cᵢ = values[i · stride]; stride 0 gives every row the same weight without storing it."""

    values: Vector
    stride: int


class Batch(NamedTuple):
    """Rows, labels and weights."""

    rows: Rows
    y: Vector
    weight: Weights


# ---- what a kernel may do with a row ---------------------------------------------------------------------------------


def dot(rows: Any, i: Any, w: Any) -> Any:
    """⟨xᵢ, w⟩, summed in w's precision."""


def add(rows: Any, i: Any, c: Any, w: Any) -> None:
    """w ← w + c xᵢ."""


def squared_norm(rows: Any, i: Any) -> Any:
    """‖xᵢ‖², in double precision."""


def fetch(rows: Any, i: Any) -> None:
    """Start loading row i into the cache."""


def locate(rows: Any, i: Any) -> None:
    """Start loading what says where row i is, for a `fetch` that comes later."""


def weight_of(weight: Any, i: Any) -> Any:
    """cᵢ."""


@intrinsic
def prefetch(context: Any, array: Any, index: Any) -> Any:
    """Start loading array[index] into the cache."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(ctx, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        prefetch = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        builder.call(prefetch, [pointer, i32(0), i32(3), i32(1)])  # read, keep in all levels, data
        return ctx.get_dummy_value()

    return types.void(array, index), codegen


@overload(dot)
def _dot(rows: Any, i: Any, w: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any, w: Any) -> Any:
            s = w.dtype.type(0)
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                s += w.dtype.type(rows.data[j]) * w[rows.indices[j]]
            return s

        return csr

    def dense(rows: Any, i: Any, w: Any) -> Any:
        x = rows.values[i]
        s = w.dtype.type(0)
        for j in range(x.shape[0]):
            s += w.dtype.type(x[j]) * w[j]
        return s

    return dense


@overload(add)
def _add(rows: Any, i: Any, c: Any, w: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any, c: Any, w: Any) -> Any:
            c = w.dtype.type(c)
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                w[rows.indices[j]] += c * w.dtype.type(rows.data[j])

        return csr

    if is_kind(rows, Gram):

        def gram(rows: Any, i: Any, c: Any, w: Any) -> Any:
            w[rows.number[i]] += w.dtype.type(c)

        return gram

    def dense(rows: Any, i: Any, c: Any, w: Any) -> Any:
        x = rows.values[i]
        c = w.dtype.type(c)
        for j in range(x.shape[0]):
            w[j] += c * w.dtype.type(x[j])

    return dense


@overload(squared_norm)
def _squared_norm(rows: Any, i: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any) -> Any:
            s = 0.0
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                s += np.float64(rows.data[j]) * np.float64(rows.data[j])
            return s

        return csr

    if is_kind(rows, Gram):

        def gram(rows: Any, i: Any) -> Any:
            return np.float64(rows.values[i, rows.number[i]])

        return gram

    def dense(rows: Any, i: Any) -> Any:
        x = rows.values[i]
        s = 0.0
        for j in range(x.shape[0]):
            s += np.float64(x[j]) * np.float64(x[j])
        return s

    return dense


@overload(fetch)
def _fetch(rows: Any, i: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any) -> Any:
            per_line = np.uint64(LINE // 4)
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)], per_line):
                prefetch(rows.data, j)
                prefetch(rows.indices, j)

        return csr

    def dense(rows: Any, i: Any) -> Any:
        d = np.uint64(rows.values.shape[1])
        for j in range(i * d, (i + np.uint64(1)) * d, np.uint64(LINE // rows.values.itemsize)):
            prefetch(rows.values, j)

    return dense


@overload(locate)
def _locate(rows: Any, i: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any) -> Any:
            prefetch(rows.indptr, i)

        return csr

    def dense(rows: Any, i: Any) -> Any:
        pass

    return dense


@overload(weight_of)
def _weight_of(weight: Any, i: Any) -> Any:
    def strided(weight: Any, i: Any) -> Any:
        return weight.values[i * np.uint64(weight.stride)]

    return strided


# ---- from arrays to rows ---------------------------------------------------------------------------------------------

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


def as_rows(X: Any) -> Stored:
    """See a matrix as rows, after one pass that checks it.

    Parameters
    ----------
    X : ndarray of shape (m, d), or SciPy sparse matrix or array
        C-contiguous arrays and CSR matrices with sorted indices are used in place. Unsorted or repeated indices are put
        in order (repeated ones summed) in a copy.

    Raises
    ------
    ValueError
        For NaN or infinity, indices out of range, pointers out of order, or anything that is not a matrix of numbers.

    Examples
    --------
    >>> as_rows(np.eye(2)).values.shape
    (2, 2)
    """
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
    if found == NOT_SORTED:
        ordered = sp.csr_array(
            (data if data.dtype != np.uint8 else data.astype(np.float32), indices.view(X.indices.dtype), X.indptr),
            shape=X.shape,
            copy=True,
        )
        ordered.sum_duplicates()
        return _csr_rows(ordered)
    _refuse(found, row)
    return CSR(data, indices, indptr, int(d))


def _refuse(found: int, row: int) -> None:
    if found == GOOD:
        return
    problem = {
        BAD_POINTERS: "is not a valid CSR matrix: its row pointers are out of order",
        INDEX_OUT_OF_RANGE: "is not a valid CSR matrix: it has a column index outside the matrix",
        NOT_FINITE: "contains NaN or infinity",
    }[found]
    raise ValueError(f"Input X {problem} (first seen in row {row})")


def shape(rows: Rows) -> tuple[int, int]:
    """(m, d)."""
    if isinstance(rows, CSR):
        return rows.indptr.shape[0] - 1, rows.n_features
    if isinstance(rows, Computed):
        return rows.n_rows, rows.n_features
    return rows.values.shape[0], rows.values.shape[1]


def in_memory(rows: Rows) -> Stored:
    """The rows, unless they are not kept: for those who read them one by one, out of order."""
    if isinstance(rows, Computed):
        raise ValueError("this solver reads rows one by one, out of order: they have to be kept in memory")
    return rows


def stored(rows: Rows) -> int:
    """The number of stored entries: the work of one pass."""
    m, d = shape(rows)
    return int(rows.indptr[-1] - rows.indptr[0]) if isinstance(rows, CSR) else m * d


def stored_bytes(rows: Rows, chosen: Vector | None = None) -> int:
    """The bytes of the stored entries, of all rows or of the chosen ones."""
    m, d = shape(rows)
    if not isinstance(rows, CSR):
        return (m if chosen is None else chosen.shape[0]) * d * value_dtype(rows).itemsize
    entries = stored(rows) if chosen is None else int(row_lengths(rows, chosen).sum())
    return entries * (rows.data.itemsize + rows.indices.itemsize)


def row_lengths(rows: CSR, chosen: Vector) -> Vector:
    """The number of stored entries of each chosen row."""
    lengths: Vector = rows.indptr[chosen + 1] - rows.indptr[chosen]
    return lengths


def value_dtype(rows: Rows) -> np.dtype[Any]:
    """The dtype of the stored values."""
    if isinstance(rows, Computed):
        return rows.dtype
    return rows.data.dtype if isinstance(rows, CSR) else rows.values.dtype


def as_weights(weight: npt.ArrayLike | None, m: int) -> Weights:
    """Check row weights; None weighs every row 1."""
    if weight is None:
        return Weights(np.ones(1), 0)
    values = np.asarray(weight, dtype=np.float64)
    stride = 1 if values.ndim else 0
    if values.ndim == 0:
        values = values.reshape(1)
    elif values.shape != (m,):
        raise ValueError(f"sample_weight has shape {values.shape}, expected ({m},)")
    if not np.isfinite(values).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if np.abs(values).max() > np.finfo(float).max / max(m, 1):
        raise ValueError("sample_weight is so large that its sum overflows: divide it by a constant")
    if values.min() < 0:
        raise ValueError(f"sample_weight must not be negative; row {values.argmin()} has {values.min():g}")
    if values.max() == 0:
        raise ValueError("sample_weight is zero for every row: nothing to learn from")
    return Weights(np.ascontiguousarray(values), stride)


def total_weight(batch: Batch) -> float:
    """Σc."""
    weight = batch.weight
    return float(weight.values.sum()) if weight.stride else float(weight.values[0]) * shape(batch.rows)[0]


def as_batch(X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Batch:
    """Check rows, labels and weights, and put them together.

    Examples
    --------
    >>> as_batch(np.eye(2), [1, -1]).y
    array([ 1., -1.])
    """
    rows = as_rows(X)
    m, d = shape(rows)
    if m == 0 or d == 0:
        raise ValueError(f"X is empty: {m} rows and {d} features")
    labels = np.ascontiguousarray(y, dtype=np.float64)
    if labels.shape != (m,):
        raise ValueError(f"X has {m} rows but y has shape {labels.shape}")
    if not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity")
    return Batch(rows, labels, as_weights(sample_weight, m))


@kernel
def _copy_entries(rows, chosen, copy):  # type: ignore[no-untyped-def]  # compiled
    n = chosen.shape[0]
    for k in range(n):
        if k + 4 < n:
            fetch(rows, np.uint64(chosen[k + 4]))
        source = rows.indptr[chosen[k]] - copy.indptr[k]
        for j in range(copy.indptr[k], copy.indptr[k + 1]):
            copy.data[j] = rows.data[source + j]
            copy.indices[j] = rows.indices[source + j]


def take(rows: Stored, chosen: Vector) -> Stored:
    """Copies of the chosen rows, side by side.

    Examples
    --------
    >>> take(as_rows(np.eye(3)), np.array([2, 0])).values
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    if not isinstance(rows, CSR):
        return rows._replace(values=rows.values[chosen])
    indptr = np.zeros(chosen.shape[0] + 1, rows.indptr.dtype)
    np.cumsum(row_lengths(rows, chosen), out=indptr[1:])
    entries = int(indptr[-1])
    copy = CSR(np.empty(entries, rows.data.dtype), np.empty(entries, rows.indices.dtype), indptr, rows.n_features)
    _copy_entries(rows, chosen, copy)
    return copy


def take_batch(batch: Batch, chosen: Vector) -> Batch:
    """Copies of the chosen rows, with their labels and weights."""
    weight = batch.weight if batch.weight.stride == 0 else Weights(batch.weight.values[chosen], 1)
    return Batch(fetched(batch.rows, chosen), batch.y[chosen], weight)


def fetched(rows: Rows, chosen: Vector) -> Stored:
    """Copies of the chosen rows that kernels can read, computed where they have to be."""
    if not isinstance(rows, Computed):
        return take(rows, chosen)
    values = rows.compute(chosen)
    return Gram(values, chosen.astype(np.uint64)) if rows.expansion else Dense(values)


def between(rows: Stored, start: int, stop: int) -> Stored:
    """The rows start ≤ i < stop, in place."""
    if not isinstance(rows, CSR):
        return rows._replace(values=rows.values[start:stop])
    return rows._replace(indptr=rows.indptr[start : stop + 1])


def join(first: Batch, second: Batch) -> Batch:
    """The rows of two batches, one after the other."""
    m1, m2 = first.y.shape[0], second.y.shape[0]
    a, b = first.rows, second.rows
    if isinstance(a, CSR) and isinstance(b, CSR):
        stops = np.concatenate([np.diff(a.indptr), np.diff(b.indptr)]).astype(np.uint64).cumsum()
        rows: Rows = CSR(
            np.concatenate([_entries_of(part, part.data) for part in (a, b)]),
            np.concatenate([_entries_of(part, part.indices) for part in (a, b)]),
            np.concatenate([[np.uint64(0)], stops]),
            a.n_features,
        )
    elif isinstance(a, Dense) and isinstance(b, Dense):
        rows = Dense(np.concatenate([a.values, b.values]))
    else:
        raise ValueError("sparse and dense rows cannot be joined")
    weights = [np.broadcast_to(part.weight.values, part.y.shape) for part in (first, second)]
    return Batch(rows, np.concatenate([first.y, second.y]), as_weights(np.concatenate(weights), m1 + m2))


def _entries_of(rows: CSR, values: Vector) -> Vector:
    return values[int(rows.indptr[0]) : int(rows.indptr[-1])]


def readable(rows: Rows, start: int, stop: int) -> Iterator[tuple[int, Stored, int, int]]:
    """The rows start ≤ i < stop in parts that kernels can read: (first, part, a, b), where part[k] is row first + k.

    Stored rows are one part as they are; computed rows come in blocks.
    """
    if not isinstance(rows, Computed):
        yield 0, rows, start, stop
        return
    for first in range(start, stop, COMPUTED_AT_ONCE):
        n = min(COMPUTED_AT_ONCE, stop - first)
        yield first, Dense(rows.compute(np.arange(first, first + n))), 0, n


# ---- the two passes over all rows ------------------------------------------------------------------------------------


@kernel
def scores_of(rows, w, start, stop, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i] = ⟨xᵢ, w⟩ for start ≤ i < stop."""
    for i in range(np.uint64(start), np.uint64(stop)):
        out[i] = dot(rows, i, w)


@kernel
def combine_rows(batch, alpha, start, stop, out):  # type: ignore[no-untyped-def]  # compiled
    """out += Σ cᵢ αᵢ xᵢ over start ≤ i < stop."""
    for i in range(np.uint64(start), np.uint64(stop)):
        coefficient = weight_of(batch.weight, i) * alpha[i]
        if coefficient != 0.0:
            add(batch.rows, i, coefficient, out)


@kernel
def squared_norms_of(rows, chosen, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k] = ‖x‖² of row chosen[k]."""
    for k in range(chosen.shape[0]):
        out[k] = squared_norm(rows, np.uint64(chosen[k]))


def sampled_squared_norms(rows: Rows, n: int = 1000) -> Vector:
    """‖xᵢ‖² of at most n rows, evenly spaced."""
    m, _ = shape(rows)
    chosen = np.linspace(0, m - 1, min(m, n)).astype(np.int64)
    norms = np.empty(chosen.shape[0])
    if isinstance(rows, Computed):
        squared_norms_of(fetched(rows, chosen), np.arange(chosen.shape[0]), norms)
    else:
        squared_norms_of(rows, chosen, norms)
    return norms


@kernel
def inner(x, y):  # type: ignore[no-untyped-def]  # compiled
    """⟨x, y⟩ in double precision."""  # not BLAS: its threads go on spinning and take the cores of a team
    total = 0.0
    for j in range(x.shape[0]):
        total += np.float64(x[j]) * np.float64(y[j])
    return total
