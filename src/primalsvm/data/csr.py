"""Compressed sparse rows."""

import zlib
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from primalsvm.compiled import implement, kernel
from primalsvm.data import blocks
from primalsvm.data.blocks import CACHE_LINE, Vector, add, dot, prefetch, prefetch_row
from primalsvm.data.dense_gram import add_dense_gram

# The results of a check.
GOOD, BAD_POINTERS, INDEX_OUT_OF_RANGE, NOT_FINITE, NOT_SORTED = range(5)
PROBLEMS = {
    BAD_POINTERS: "is not a valid CSR matrix: its row pointers are out of order",
    INDEX_OUT_OF_RANGE: "is not a valid CSR matrix: it has a column index outside the matrix",
    NOT_FINITE: "contains NaN or infinity",
    NOT_SORTED: "is not in order: a row's column indices must rise",
}
SCATTER_COST = 200.0  # time of adding one product of two sparse entries / time of one multiply-add in BLAS


class CSR(NamedTuple):
    """Compressed sparse rows."""

    data: Vector
    indices: Vector
    indptr: Vector
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.indptr.shape[0] - 1, self.n_features

    @property
    def entries(self) -> int:
        return int(self.indptr[-1] - self.indptr[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def sparse(self) -> bool:
        return True

    @property
    def kernel_rows(self) -> bool:
        return False

    def row_lengths(self, chosen: Vector) -> Vector:
        """The number of stored entries of each chosen row."""
        lengths: Vector = self.indptr[chosen + 1] - self.indptr[chosen]
        return lengths

    def nbytes_of(self, chosen: Vector | None = None) -> int:
        entries = self.entries if chosen is None else int(self.row_lengths(chosen).sum())
        return entries * (self.data.itemsize + self.indices.itemsize)

    def take(self, chosen: Vector) -> "CSR":
        indptr = np.zeros(chosen.shape[0] + 1, self.indptr.dtype)
        np.cumsum(self.row_lengths(chosen), out=indptr[1:])
        entries = int(indptr[-1])
        copy = CSR(np.empty(entries, self.data.dtype), np.empty(entries, self.indices.dtype), indptr, self.n_features)
        _copy_entries(self, chosen, copy)
        return copy

    def between(self, start: int, stop: int) -> "CSR":
        return self._replace(indptr=self.indptr[start : stop + 1])

    def join(self, other: Any) -> "CSR":
        if not isinstance(other, CSR):
            raise ValueError("sparse and dense rows cannot be joined")
        stops = np.concatenate([np.diff(self.indptr), np.diff(other.indptr)]).astype(np.uint64).cumsum()
        return CSR(
            np.concatenate([self._own(self.data), other._own(other.data)]),
            np.concatenate([self._own(self.indices), other._own(other.indices)]),
            np.concatenate([[np.uint64(0)], stops]),
            self.n_features,
        )

    def _own(self, values: Vector) -> Vector:
        """The entries of these rows."""
        return values[int(self.indptr[0]) : int(self.indptr[-1])]

    def widen(self, n_features: int) -> "CSR":
        """The same rows with more columns, which are zero."""
        return self._replace(n_features=n_features)

    def matrix(self) -> Any:
        """The rows as a SciPy matrix, in place."""
        parts = self._own(self.data), signed(self._own(self.indices)), signed(self.indptr - self.indptr[0])
        return sp.csr_matrix(parts, shape=self.shape, copy=False)

    def inspect(self) -> tuple[int, int]:
        """The first problem, and its row."""
        found, row = _inspect(self.data, self.indices, self.indptr, np.uint64(self.n_features))
        return int(found), int(row)

    def check(self, first: int = 0) -> None:
        found, row = self.inspect()
        if found != GOOD:
            raise ValueError(f"Input X {PROBLEMS[found]} (first seen in row {first + row})")

    def repeats(self) -> bool:
        """Whether a row names a column twice."""
        return bool(_repeats(self.indices, self.indptr, self.n_features))

    def in_order(self) -> "CSR":
        """The rows with increasing column indices; a copy if they are not sorted. For solvers that compare two rows."""
        if self.inspect()[0] != NOT_SORTED:
            return self
        ordered = sp.csr_array((self.data, signed(self.indices), signed(self.indptr)), shape=self.shape, copy=True)
        ordered.sort_indices()
        return CSR(ordered.data, unsigned(ordered.indices), unsigned(ordered.indptr), self.n_features)

    def feature_sizes(self) -> Vector:
        """The root mean square of each feature's entries that are not 0; NaN for a feature without any."""
        values, columns = self._own(self.data).astype(float), self._own(self.indices).astype(np.intp)
        counts = np.bincount(columns[values != 0.0], minlength=self.n_features)
        with np.errstate(invalid="ignore"):
            sizes: Vector = np.sqrt(np.bincount(columns, np.square(values), self.n_features) / counts)
        return sizes

    def for_many_vectors(self, count: int) -> "CSR":
        """The rows in the best format for `count` vectors at once."""
        return self

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        d = self.n_features
        if SCATTER_COST * np.square(self.row_lengths(chosen).astype(float)).mean() < d * d:
            _scatter_squares(self, chosen, roots, sign, out)
        else:
            add_dense_gram(partial(blocks.scaled_rows_of, self), d, chosen, roots, sign, single, out)

    def products(self, chosen: Vector) -> Vector:
        out = np.zeros((chosen.shape[0], chosen.shape[0]), order="F")
        _sparse_products(self, chosen, out)
        return out

    def add_diagonal(self, k: Vector, out: Vector) -> None:
        _scatter_diagonal(self, k, out)

    def checksum(self) -> str:
        return crc(self.data, self.indices, self.indptr)


def unsigned(indices: Vector) -> Vector:
    """Indices, viewed as unsigned."""
    return indices.view(np.uint64 if indices.itemsize == 8 else np.uint32)


def signed(indices: Vector) -> Vector:
    """The reverse of `unsigned`."""
    return indices.view(np.int64 if indices.itemsize == 8 else np.int32)


def crc(*arrays: Vector) -> str:
    """A checksum of arrays."""
    found = 0
    for array in arrays:
        values: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        found = zlib.crc32(memoryview(values), found) if values.size else found
    return f"{found:x}"


@implement(blocks.dot, CSR)
def _dot(rows, i, w):  # type: ignore[no-untyped-def]  # compiled
    s = w.dtype.type(0)
    for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
        s += w.dtype.type(rows.data[j]) * w[rows.indices[j]]
    return s


@implement(blocks.add, CSR)
def _add(rows, i, c, w):  # type: ignore[no-untyped-def]  # compiled
    c = w.dtype.type(c)
    for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
        w[rows.indices[j]] += c * w.dtype.type(rows.data[j])


@implement(blocks.squared_norm, CSR)
def _squared_norm(rows, i):  # type: ignore[no-untyped-def]  # compiled
    s = 0.0
    for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
        s += np.float64(rows.data[j]) * np.float64(rows.data[j])
    return s


@implement(blocks.product, CSR)
def _product(rows, i, j):  # type: ignore[no-untyped-def]  # compiled
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


@implement(blocks.prefetch_row, CSR)
def _prefetch_row(rows, i):  # type: ignore[no-untyped-def]  # compiled
    per_line = np.uint64(CACHE_LINE // 4)
    for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)], per_line):
        prefetch(rows.data, j)
        prefetch(rows.indices, j)


@implement(blocks.prefetch_pointer, CSR)
def _prefetch_pointer(rows, i):  # type: ignore[no-untyped-def]  # compiled
    prefetch(rows.indptr, i)


@implement(blocks.width, CSR)
def _width(rows, V):  # type: ignore[no-untyped-def]  # compiled
    return V.shape[1]


@implement(blocks.dots, CSR)
def _dots(rows, i, V, out):  # type: ignore[no-untyped-def]  # compiled
    out[:] = 0
    j, stop, one = rows.indptr[i], rows.indptr[i + np.uint64(1)], np.uint64(1)
    while j + one < stop:  # two at a time, so that `out` is read and written half as often
        x, z = out.dtype.type(rows.data[j]), out.dtype.type(rows.data[j + one])
        at_x, at_z = V[rows.indices[j]], V[rows.indices[j + one]]
        for k in range(np.uint64(out.shape[0])):
            out[k] += x * out.dtype.type(at_x[k]) + z * out.dtype.type(at_z[k])
        j += np.uint64(2)
    if j < stop:
        x, at_x = out.dtype.type(rows.data[j]), V[rows.indices[j]]
        for k in range(np.uint64(out.shape[0])):
            out[k] += x * out.dtype.type(at_x[k])


@implement(blocks.add_outer, CSR)
def _add_outer(rows, i, c, V):  # type: ignore[no-untyped-def]  # compiled
    for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
        x = V.dtype.type(rows.data[j])
        row = V[rows.indices[j]]
        for k in range(np.uint64(c.shape[0])):
            row[k] += x * c[k]


@kernel
def _copy_entries(rows, chosen, copy):  # type: ignore[no-untyped-def]  # compiled
    n = chosen.shape[0]
    for k in range(n):
        if k + 4 < n:
            prefetch_row(rows, np.uint64(chosen[k + 4]))
        source = rows.indptr[chosen[k]] - copy.indptr[k]
        for j in range(copy.indptr[k], copy.indptr[k + 1]):
            copy.data[j] = rows.data[source + j]
            copy.indices[j] = rows.indices[source + j]


@kernel
def _inspect(data, indices, indptr, n_features):  # type: ignore[no-untyped-def]  # compiled
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
def _scatter_squares(rows, chosen, roots, sign, out):  # type: ignore[no-untyped-def]  # compiled
    """out += sign · Σ roots² (x, 1)(x, 1)ᵀ over the chosen rows, the lower triangle."""
    d = np.uint64(out.shape[0] - 1)
    for k in range(chosen.shape[0]):
        i = np.uint64(chosen[k])
        c = sign * roots[k] * roots[k]
        start, stop = rows.indptr[i], rows.indptr[i + np.uint64(1)]
        for e in range(start, stop):
            j, x = rows.indices[e], c * np.float64(rows.data[e])
            out[d, j] += x
            for f in range(start, stop):
                if rows.indices[f] <= j:
                    out[j, rows.indices[f]] += x * np.float64(rows.data[f])
        out[d, d] += c


@kernel
def _sparse_products(rows, chosen, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k, l] = ⟨x, x'⟩ of the chosen rows k ≥ l, through one dense row at a time."""
    line = np.zeros(rows.n_features)
    for k in range(chosen.shape[0]):
        i = np.uint64(chosen[k])
        add(rows, i, 1.0, line)
        for j in range(k + 1):
            out[k, j] = dot(rows, np.uint64(chosen[j]), line)
        for e in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
            line[rows.indices[e]] = 0.0


@kernel
def _scatter_diagonal(rows, k, out):  # type: ignore[no-untyped-def]  # compiled
    """out += Σ kᵢ xᵢ², feature by feature."""
    for i in range(np.uint64(k.shape[0])):
        for e in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
            out[rows.indices[e]] += k[i] * np.float64(rows.data[e]) * np.float64(rows.data[e])
