"""Weighted Gram matrices of rows: the matrices of second-order solvers.

    by features    Σᵢ rᵢ² (xᵢ, 1)(xᵢ, 1)ᵀ            d + 1 rows and columns
    by rows        Kᵢⱼ = rᵢ rⱼ ⟨xᵢ, xⱼ⟩               one row and one column for each of the chosen rows

Only the lower triangles are set. Dense rows are multiplied by BLAS, in blocks; sparse rows are added entry by entry as
long as that is less work. Nothing here copies all rows.
"""

from typing import Any

import numpy as np
import scipy.linalg

from primalsvm.compiled import kernel
from primalsvm.rows import (
    CSR,
    Distant,
    Gram,
    Mixed,
    Rows,
    Vector,
    add,
    dot,
    fetched,
    inner,
    mix,
    row_lengths,
    shape,
)

BLOCK = 4096  # rows that are made dense at a time
SCATTER_COST = 200.0  # time of adding one product of two sparse entries / time of one multiply-add in BLAS
COLUMNS_BYTES = 2**27  # of dense columns that are multiplied at a time


@kernel
def densify(rows, chosen, scale, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k] = scale[k] · row chosen[k], as dense rows."""
    for k in range(chosen.shape[0]):
        line = out[k]
        line[:] = 0.0
        add(rows, np.uint64(chosen[k]), scale[k], line)


def scaled_rows(rows: Rows, chosen: Vector, scale: Vector, out: Vector) -> None:
    """out[k] = scale[k] · row chosen[k], whatever the rows are."""
    if isinstance(rows, Mixed):
        mix(rows.base.values[chosen] * scale[:, None], rows.mixing, out)
        return
    if isinstance(rows, Distant):
        rows, chosen = fetched(rows, chosen), np.arange(chosen.shape[0])
    densify(rows, chosen, scale, out)


@kernel
def scatter_squares(rows, chosen, roots, sign, out):  # type: ignore[no-untyped-def]  # compiled
    """out += sign · Σ roots² (x, 1)(x, 1)ᵀ over the chosen sparse rows, the lower triangle."""
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


def add_squares(out: Vector, rows: Rows, chosen: Vector, roots: Vector, sign: float, precision: Any) -> None:
    """out += sign · Σ roots² (x, 1)(x, 1)ᵀ over the chosen rows, the lower triangle; BLAS sums in `precision`.

    Examples
    --------
    >>> from primalsvm.rows import Dense
    >>> out = np.zeros((2, 2))
    >>> add_squares(out, Dense(np.array([[3.0], [2.0]])), np.array([0, 1]), np.ones(2), 1.0, np.float64)
    >>> np.tril(out)
    array([[13.,  0.],
           [ 5.,  2.]])
    """
    if chosen.shape[0] == 0:
        return
    d = shape(rows)[1]
    if isinstance(rows, CSR) and SCATTER_COST * np.square(row_lengths(rows, chosen).astype(float)).mean() < d * d:
        scatter_squares(rows, chosen, roots, sign, out)
        return
    # SciPy's BLAS only: NumPy has another, and the threads of each spin on for a while and take the other's cores
    syrk, gemv = scipy.linalg.blas.get_blas_funcs(("syrk", "gemv"), dtype=precision)
    total = np.zeros((d, d), precision, order="F")
    block = np.empty((min(BLOCK, chosen.shape[0]), d), precision)
    for first in range(0, chosen.shape[0], BLOCK):
        part = block[: min(BLOCK, chosen.shape[0] - first)]
        scale = roots[first : first + BLOCK].astype(precision)
        scaled_rows(rows, chosen[first : first + BLOCK], scale, part)
        total = syrk(1.0, part.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        out[d, :d] += gemv(sign, part.T, scale)
    out[:d, :d] += total if sign > 0.0 else -total
    out[d, d] += sign * float(inner(roots, roots))


def dense_rows(rows: Rows, chosen: Vector) -> Vector:
    """The chosen rows as a matrix, in double precision."""
    out = np.empty((chosen.shape[0], shape(rows)[1]))
    scaled_rows(rows, chosen, np.ones(chosen.shape[0]), out)
    return out


@kernel
def sparse_products(rows, chosen, out):  # type: ignore[no-untyped-def]  # compiled
    """out[k, l] = ⟨x, x'⟩ of the chosen rows k ≥ l, through one dense row at a time."""
    line = np.zeros(rows.n_features)
    for k in range(chosen.shape[0]):
        i = np.uint64(chosen[k])
        add(rows, i, 1.0, line)
        for j in range(k + 1):
            out[k, j] = dot(rows, np.uint64(chosen[j]), line)
        for e in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
            line[rows.indices[e]] = 0.0


def row_products(rows: Rows, chosen: Vector) -> Vector:
    """⟨x, x'⟩ of all pairs of the chosen rows: the lower triangle, in double precision.

    Examples
    --------
    >>> from primalsvm.rows import Dense
    >>> np.tril(row_products(Dense(np.array([[1.0, 2.0], [3.0, 1.0]])), np.array([0, 1])))
    array([[ 5.,  0.],
           [ 5., 10.]])
    """
    n, d = chosen.shape[0], shape(rows)[1]
    out = np.zeros((n, n), order="F")
    if n == 0:
        return out
    if isinstance(rows, CSR):
        sparse_products(rows, chosen, out)
        return out
    if isinstance(rows, Distant | Mixed | Gram):
        length = max(1, min(BLOCK, COLUMNS_BYTES // (8 * d)))
        for low in range(0, n, length):
            left = dense_rows(rows, chosen[low : low + length])
            for first in range(0, low + 1, length):
                right = left if first == low else dense_rows(rows, chosen[first : first + length])
                out[low : low + length, first : first + length] = left @ right.T
        return out
    syrk = scipy.linalg.blas.get_blas_funcs("syrk", dtype=np.float64)
    width = max(1, COLUMNS_BYTES // (8 * max(n, 1)))
    for first in range(0, d, width):
        columns = rows.values[:, first : first + width][chosen].astype(np.float64, order="C", copy=False)
        out = syrk(1.0, columns.T, trans=1, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out


@kernel
def scatter_diagonal(rows, k, out):  # type: ignore[no-untyped-def]  # compiled
    """out += Σ kᵢ xᵢ², feature by feature, of sparse rows."""
    for i in range(np.uint64(k.shape[0])):
        for e in range(rows.indptr[i], rows.indptr[i + np.uint64(1)]):
            out[rows.indices[e]] += k[i] * np.float64(rows.data[e]) * np.float64(rows.data[e])


def add_diagonal(out: Vector, rows: Rows, k: Vector) -> None:
    """out += Σ kᵢ xᵢ², feature by feature.

    Examples
    --------
    >>> from primalsvm.rows import Dense
    >>> out = np.ones(2)
    >>> add_diagonal(out, Dense(np.array([[1.0, 2.0], [0.0, 3.0]])), np.array([1.0, 2.0]))
    >>> out
    array([ 2., 23.])
    """
    if isinstance(rows, CSR):
        scatter_diagonal(rows, k, out)
        return
    length = max(1, min(BLOCK, COLUMNS_BYTES // (8 * out.shape[0])))
    block = np.empty((min(length, k.shape[0]), out.shape[0]))
    for first in range(0, k.shape[0], length):
        chosen = np.arange(first, min(first + length, k.shape[0]))
        part = block[: chosen.shape[0]]
        scaled_rows(rows, chosen, np.sqrt(k[chosen]), part)
        out += np.einsum("ij,ij->j", part, part)
