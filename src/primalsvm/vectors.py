"""Several vectors v₁ … v_K that meet the same rows: how they lie in memory, and what a kernel may do with them.

Sparse rows name their features one by one, so the K numbers of a feature lie side by side: V is d × K, each row of it
padded to whole cache lines. Dense rows meet all features of one vector after the other: V is K × d.
"""

from typing import Any

import numpy as np
from numba.extending import overload

from primalsvm.compiled import is_kind
from primalsvm.rows import CSR, Rows, Vector, add, dot, shape

LINE = 64  # bytes


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


def squared_norms(rows: Rows, V: Vector, count: int) -> Vector:
    """‖v_k‖², summed in double precision."""
    found: Vector = np.einsum("jk,jk->k" if isinstance(rows, CSR) else "kj,kj->k", V, V, dtype=np.float64)
    return found[:count]


# ---- what a kernel may do --------------------------------------------------------------------------------------------


def dots(rows: Any, i: Any, V: Any, out: Any) -> None:
    """out[k] ← ⟨xᵢ, v_k⟩ for all k, in V's precision; `out` may be as long as V is wide."""


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
            for j in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
                x = V.dtype.type(rows.data[j])
                row = V[rows.indices[j]]
                for k in range(np.uint64(out.shape[0])):
                    out[k] += x * row[k]

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
