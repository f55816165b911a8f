"""The storage of K vectors v₁ … v_K that are multiplied with the same rows.

For sparse rows the K numbers of a feature are stored side by side: V is d × K, with rows padded to whole cache lines.
For dense rows all features of a vector are stored side by side: V is K × d. `rows` is a block or a data set.
"""

from typing import Any

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data.blocks import CACHE_LINE, Vector, add_outer, dots, weight_of, width

TRANSPOSED_ROWS = 64  # the number of rows that are transposed at a time: some KiB


def zero_vectors(rows: Any, count: int, dtype: Any) -> Vector:
    """V = 0, for `count` vectors.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from primalsvm.data import as_block
    >>> zero_vectors(as_block(np.eye(3)), 5, float).shape, zero_vectors(as_block(sp.eye(3)), 5, float).shape
    ((5, 3), (3, 8))
    """
    d = rows.shape[1]
    if not rows.sparse:
        return np.zeros((count, d), dtype)
    lanes = CACHE_LINE // np.dtype(dtype).itemsize
    return np.zeros((d, -(-count // lanes) * lanes), dtype)


def stored_vectors(rows: Any, W: Vector) -> Vector:
    """V of the rows of W, which is K × d."""
    if not rows.sparse:
        return W
    V = zero_vectors(rows, W.shape[0], W.dtype)
    V[:, : W.shape[0]] = W.T
    return V


def vector_of(rows: Any, V: Vector, k: int) -> Vector:
    """v_k, in place."""
    found: Vector = V[:, k] if rows.sparse else V[k]
    return found


def selected_vectors(rows: Any, V: Vector, chosen: Vector) -> Vector:
    """The V of some of the vectors."""
    if not rows.sparse:
        return V[chosen]
    out = zero_vectors(rows, chosen.size, V.dtype)
    out[:, : chosen.size] = V[:, chosen]
    return out


def vector_rows(rows: Any, V: Vector, count: int) -> Vector:
    """The vectors as the rows of a K × d matrix, in double precision."""
    return transpose(V, count) if rows.sparse else V.astype(np.float64)


def transpose(values: Vector, count: int | None = None) -> Vector:
    """The transpose of the first columns, or of all, in double precision.

    Examples
    --------
    >>> transpose(np.array([[1, 2, 3]], np.float32), 2)
    array([[1.],
           [2.]])
    """
    out = np.empty((values.shape[1] if count is None else count, values.shape[0]))
    _transpose(values, out)
    return out


def squared_vector_norms(rows: Any, V: Vector, count: int) -> Vector:
    """‖v_k‖², summed in double precision."""
    out = np.zeros(count)
    _add_squares(V if rows.sparse else V.T, out)
    return out


@kernel
def _transpose(values, out):  # type: ignore[no-untyped-def]  # compiled
    """out ← valuesᵀ, some rows at a time, so that they stay in the cache."""
    for first in range(0, values.shape[0], TRANSPOSED_ROWS):
        for k in range(out.shape[0]):
            for j in range(first, min(first + TRANSPOSED_ROWS, values.shape[0])):
                out[k, j] = values[j, k]


@kernel
def _add_squares(V, out):  # type: ignore[no-untyped-def]  # compiled
    for j in range(V.shape[0]):
        for k in range(out.shape[0]):
            out[k] += np.float64(V[j, k]) * np.float64(V[j, k])


@kernel
def many_scores_of(rows, V, s, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i, k] ← s ⟨v_k, xᵢ⟩."""
    p = np.zeros(width(rows, V))
    for i in range(np.uint64(out.shape[0])):
        dots(rows, i, V, p)
        for k in range(np.uint64(out.shape[1])):
            out[i, k] = s * p[k]


@kernel
def combine_many(rows, weight, alpha, V):  # type: ignore[no-untyped-def]  # compiled
    """V += Σ cᵢ xᵢ (α_i1 … α_iK)."""
    scaled = np.zeros(width(rows, V), V.dtype)
    for i in range(np.uint64(alpha.shape[0])):
        c = weight_of(weight, i)
        some = False
        for k in range(np.uint64(alpha.shape[1])):
            scaled[k] = c * alpha[i, k]
            some |= scaled[k] != 0.0
        if some:
            add_outer(rows, i, scaled, V)
