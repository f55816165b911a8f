"""How a kernel sees data: rows of a CSR, a dense or a kernel matrix, read in place.

`dot`, `add`, `fetch` and `squared_norm` are all that a kernel may do with a row; each is one overload per kind of
rows, so a solver is written once. A `Batch` is rows with their labels and weights, which always travel together.

Two more kinds are not read one by one: `Distant` rows, computed or read from files whenever they are needed, and
`Mixed` rows, kept apart from the matrix that they are all to be multiplied with.

The arrays are the caller's own: float32, float64 or uint8 values, 32- or 64-bit indices, read-only or not. Indices are
viewed as unsigned, because a signed index costs a wrap-around test at every access (measured: twice the time).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from primalsvm.compiled import is_kind, kernel

Vector: TypeAlias = npt.NDArray[Any]

LINE = 64  # bytes in a cache line
BROUGHT_AT_ONCE = 2**23  # bytes
MIXED_AT_ONCE = 2048  # rows


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


class Pairs(NamedTuple):
    """Differences of rows: row k is x_high[k] − x_low[k]. Kernels read them; there are no passes over all of them."""

    rows: "CSR | Dense"
    high: Vector
    low: Vector


class Files(NamedTuple):
    """What there is to know of rows in files."""

    entries: int  # stored, of all rows
    entry_bytes: int  # of each
    at_once: int  # bytes of rows that may be held at a time
    checksum: str  # of all rows
    expect: Callable[[Vector], None]  # have the system read the rows with these numbers, meanwhile
    room: Callable[[int], Vector]  # so many zeros that need no memory: they live in a file


class Distant(NamedTuple):
    """Rows that are not at hand: they are computed, or read from files, whenever they are needed."""

    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    bring: Callable[[Vector], "Stored"]  # the rows with these numbers, good until the next are asked for
    expansion: bool = False  # they are rows of a kernel matrix
    files: Files | None = None  # they are in files


class Mixed(NamedTuple):
    """Rows xᵢ = Mᵀ zᵢ that are kept as the zᵢ: ⟨xᵢ, w⟩ = ⟨zᵢ, Mw⟩ and Σ aᵢ xᵢ = Mᵀ Σ aᵢ zᵢ need no product a row."""

    base: Dense
    mixing: Vector


Stored: TypeAlias = CSR | Dense | Gram
Rows: TypeAlias = Stored | Distant | Mixed


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


def product(rows: Any, i: Any, j: Any) -> Any:
    """⟨xᵢ, xⱼ⟩ of stored rows, in double precision."""


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
    if is_kind(rows, Pairs):

        def pairs(rows: Any, i: Any, w: Any) -> Any:
            return dot(rows.rows, rows.high[i], w) - dot(rows.rows, rows.low[i], w)

        return pairs

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
    if is_kind(rows, Pairs):

        def pairs(rows: Any, i: Any, c: Any, w: Any) -> Any:
            add(rows.rows, rows.high[i], c, w)
            add(rows.rows, rows.low[i], -c, w)

        return pairs

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
    if is_kind(rows, Pairs):

        def pairs(rows: Any, i: Any) -> Any:
            high, low = rows.high[i], rows.low[i]
            both = squared_norm(rows.rows, high) + squared_norm(rows.rows, low)
            return max(both - 2.0 * product(rows.rows, high, low), 0.0)

        return pairs

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


@overload(product)
def _product(rows: Any, i: Any, j: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any, j: Any) -> Any:
            a, b = rows.indptr[i], rows.indptr[j]
            end_a, end_b = rows.indptr[i + np.uint64(1)], rows.indptr[j + np.uint64(1)]
            s = 0.0
            while a < end_a and b < end_b:
                at_a, at_b = rows.indices[a], rows.indices[b]
                if at_a == at_b:
                    s += np.float64(rows.data[a]) * np.float64(rows.data[b])
                a += np.uint64(at_a <= at_b)
                b += np.uint64(at_b <= at_a)
            return s

        return csr

    def dense(rows: Any, i: Any, j: Any) -> Any:
        x, z = rows.values[i], rows.values[j]
        s = 0.0
        for k in range(x.shape[0]):
            s += np.float64(x[k]) * np.float64(z[k])
        return s

    return dense


@overload(fetch)
def _fetch(rows: Any, i: Any) -> Any:
    if is_kind(rows, Pairs):

        def pairs(rows: Any, i: Any) -> Any:
            fetch(rows.rows, rows.high[i])
            fetch(rows.rows, rows.low[i])

        return pairs

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
    if is_kind(rows, Pairs):

        def pairs(rows: Any, i: Any) -> Any:
            locate(rows.rows, rows.high[i])
            locate(rows.rows, rows.low[i])

        return pairs

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


# ---- rows as a whole -------------------------------------------------------------------------------------------------


def shape(rows: Rows) -> tuple[int, int]:
    """(m, d)."""
    if isinstance(rows, CSR):
        return rows.indptr.shape[0] - 1, rows.n_features
    if isinstance(rows, Distant):
        return rows.n_rows, rows.n_features
    if isinstance(rows, Mixed):
        return rows.base.values.shape[0], rows.mixing.shape[1]
    return rows.values.shape[0], rows.values.shape[1]


def in_memory(rows: Rows) -> Stored:
    """The rows, unless they are not kept: for those who read them one by one, out of order."""
    if isinstance(rows, Distant | Mixed):
        raise ValueError(
            "this solver reads rows one by one, out of order, so they have to be kept in memory: raise the budget for "
            "them, or use solver='newton'"
        )
    return rows


def stored(rows: Rows) -> int:
    """The number of stored entries: the work of one pass."""
    if isinstance(rows, Distant) and rows.files is not None:
        return rows.files.entries
    m, d = shape(rows)
    return int(rows.indptr[-1] - rows.indptr[0]) if isinstance(rows, CSR) else m * d


def stored_bytes(rows: Rows, chosen: Vector | None = None) -> int:
    """The bytes of the stored entries, of all rows or of the chosen ones (in files: about)."""
    m, d = shape(rows)
    if isinstance(rows, Distant) and rows.files is not None:
        return rows.files.entries * rows.files.entry_bytes * (m if chosen is None else chosen.shape[0]) // m
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
    if isinstance(rows, Distant):
        return rows.dtype
    if isinstance(rows, Mixed):
        return rows.base.values.dtype
    return rows.data.dtype if isinstance(rows, CSR) else rows.values.dtype


def total_weight(batch: Batch) -> float:
    """Σc."""
    weight = batch.weight
    return float(weight.values.sum()) if weight.stride else float(weight.values[0]) * shape(batch.rows)[0]


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
    >>> take(Dense(np.eye(3)), np.array([2, 0])).values
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
    """Copies of the chosen rows that kernels can read, brought from where they are."""
    if isinstance(rows, Mixed):
        out = np.empty((chosen.shape[0], rows.mixing.shape[1]), rows.mixing.dtype)
        for first in range(0, chosen.shape[0], MIXED_AT_ONCE):
            last = first + MIXED_AT_ONCE
            mix(rows.base.values[chosen[first:last]], rows.mixing, out[first:last])
        return Dense(out)
    if not isinstance(rows, Distant):
        return take(rows, chosen)
    return rows.bring(chosen)


def mix(base: Vector, mixing: Vector, out: Vector) -> None:
    """out = base · mixing, by SciPy's BLAS: solvers call it before and after, and NumPy's own spins on for a while."""
    if base.dtype == mixing.dtype == out.dtype:
        gemm = scipy.linalg.blas.get_blas_funcs("gemm", dtype=out.dtype)
        gemm(1.0, mixing.T, base.T, c=out.T, overwrite_c=1)
    else:
        np.matmul(base, mixing, out=out)


def between(rows: Stored, start: int, stop: int) -> Stored:
    """The rows start ≤ i < stop, in place."""
    if not isinstance(rows, CSR):
        return rows._replace(values=rows.values[start:stop])
    return rows._replace(indptr=rows.indptr[start : stop + 1])


def join(first: Batch, second: Batch) -> Batch:
    """The rows of two batches, one after the other."""
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
    return Batch(rows, np.concatenate([first.y, second.y]), Weights(np.concatenate(weights), 1))


def widened(batch: Batch, n_features: int) -> Batch:
    """The same sparse rows with more columns, which are zero."""
    assert isinstance(batch.rows, CSR)
    return batch._replace(rows=batch.rows._replace(n_features=n_features))


def _entries_of(rows: CSR, values: Vector) -> Vector:
    return values[int(rows.indptr[0]) : int(rows.indptr[-1])]


def readable(rows: Stored | Distant, start: int, stop: int) -> Iterator[tuple[int, Stored, int, int]]:
    """The rows start ≤ i < stop in parts that kernels can read: (first, part, a, b), where part[k] is row first + k.

    Stored rows are one part as they are; distant rows come in blocks.
    """
    if not isinstance(rows, Distant):
        yield 0, rows, start, stop
        return
    at_once = max(1, BROUGHT_AT_ONCE * rows.n_rows // max(stored_bytes(rows), 1))
    for first in range(start, stop, at_once):
        last = min(first + at_once, stop)
        part = rows.bring(np.arange(first, last))
        yield first, Dense(part.values) if isinstance(part, Gram) else part, 0, last - first


def room_for(rows: Rows, m: int) -> Vector:
    """m zeros to be filled, one a row: in a file if the rows are, as they may be many."""
    return rows.files.room(m) if isinstance(rows, Distant) and rows.files is not None else np.zeros(m)


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
    if isinstance(rows, Distant | Mixed):
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
