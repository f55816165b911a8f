"""Several vectors v₁ … v_K that meet the same rows: how they lie in memory, and what a kernel may do with them.

Sparse rows name their features one by one, so the K numbers of a feature lie side by side: V is d × K, each row of it
padded to whole cache lines. Dense rows meet all features of one vector after the other: V is K × d.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from primalsvm.compiled import is_kind, kernel
from primalsvm.rows import CSR, Rows, Vector, add, dot, shape

LINE = 64  # bytes
AT_ONCE = 64  # rows: some KiB


def room_for(rows: Rows, count: int, dtype: Any) -> Vector:
    """V = 0, for so many vectors.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from primalsvm.inputs import as_rows
    >>> room_for(as_rows(np.eye(3)), 5, np.float64).shape, room_for(as_rows(sp.eye(3)), 5, np.float64).shape
    ((5, 3), (3, 8))
    """
    d = shape(rows)[1]
    if not isinstance(rows, CSR):
        return np.zeros((count, d), dtype)
    lanes = LINE // np.dtype(dtype).itemsize
    return np.zeros((d, -(-count // lanes) * lanes), dtype)


def vector_of(rows: Rows, V: Vector, k: int) -> Vector:
    """v_k, as it lies in V."""
    found: Vector = V[:, k] if isinstance(rows, CSR) else V[k]
    return found


def selected(rows: Rows, V: Vector, those: Vector) -> Vector:
    """Some of the vectors, in a V of their own."""
    if not isinstance(rows, CSR):
        return V[those]
    out = room_for(rows, those.size, V.dtype)
    out[:, : those.size] = V[:, those]
    return out


def unpacked(rows: Rows, V: Vector, count: int) -> Vector:
    """The vectors one below the other, in double precision."""
    return transposed(V, count) if isinstance(rows, CSR) else V.astype(np.float64)


def transposed(values: Vector, count: int | None = None) -> Vector:
    """The transpose of the first columns, or of all, in double precision.

    Examples
    --------
    >>> transposed(np.array([[1, 2, 3]], np.float32), 2)
    array([[1.],
           [2.]])
    """
    out = np.empty((values.shape[1] if count is None else count, values.shape[0]))
    _transpose(values, out)
    return out


def squared_norms(rows: Rows, V: Vector, count: int) -> Vector:
    """‖v_k‖², summed in double precision."""
    out = np.zeros(count)
    _add_squares(V if isinstance(rows, CSR) else V.T, out)
    return out


@kernel
def _transpose(values, out):  # type: ignore[no-untyped-def]  # compiled
    """out ← valuesᵀ, some rows at a time, which stay in the cache."""
    for first in range(0, values.shape[0], AT_ONCE):
        for k in range(out.shape[0]):
            for j in range(first, min(first + AT_ONCE, values.shape[0])):
                out[k, j] = values[j, k]


@kernel
def _add_squares(V, out):  # type: ignore[no-untyped-def]  # compiled
    for j in range(V.shape[0]):
        for k in range(out.shape[0]):
            out[k] += np.float64(V[j, k]) * np.float64(V[j, k])


# ---- what a kernel may do --------------------------------------------------------------------------------------------


def dots(rows: Any, i: Any, V: Any, out: Any) -> None:
    """out[k] ← ⟨xᵢ, v_k⟩ for all k, summed in out's precision (dense rows: in V's); `width` tells its length."""


def add_outer(rows: Any, i: Any, c: Any, V: Any) -> None:
    """v_k ← v_k + c[k] xᵢ for all k; c is as long as `dots`' out."""


def width(rows: Any, V: Any) -> Any:
    """How long `out` and c are: K, with the padding."""


@overload(width)
def _width(rows: Any, V: Any) -> Any:
    axis = 1 if is_kind(rows, CSR) else 0

    def along(rows: Any, V: Any) -> Any:
        return V.shape[axis]

    return along


@overload(dots)
def _dots(rows: Any, i: Any, V: Any, out: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any, V: Any, out: Any) -> Any:
            out[:] = 0
            j, stop, one = rows.indptr[i], rows.indptr[i + np.uint64(1)], np.uint64(1)
            while j + one < stop:  # two at a time: half as often to and from `out`
                x, z = out.dtype.type(rows.data[j]), out.dtype.type(rows.data[j + one])
                at_x, at_z = V[rows.indices[j]], V[rows.indices[j + one]]
                for k in range(np.uint64(out.shape[0])):
                    out[k] += x * out.dtype.type(at_x[k]) + z * out.dtype.type(at_z[k])
                j += np.uint64(2)
            if j < stop:
                x, at_x = out.dtype.type(rows.data[j]), V[rows.indices[j]]
                for k in range(np.uint64(out.shape[0])):
                    out[k] += x * out.dtype.type(at_x[k])

        return csr

    def dense(rows: Any, i: Any, V: Any, out: Any) -> Any:
        for k in range(np.uint64(out.shape[0])):
            out[k] = dot(rows, i, V[k])

    return dense


@overload(add_outer)
def _add_outer(rows: Any, i: Any, c: Any, V: Any) -> Any:
    if is_kind(rows, CSR):

        def csr(rows: Any, i: Any, c: Any, V: Any) -> Any:
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                x = V.dtype.type(rows.data[j])
                row = V[rows.indices[j]]
                for k in range(np.uint64(c.shape[0])):
                    row[k] += x * c[k]

        return csr

    def dense(rows: Any, i: Any, c: Any, V: Any) -> Any:
        for k in range(np.uint64(c.shape[0])):
            if c[k] != 0:
                add(rows, i, c[k], V[k])

    return dense
