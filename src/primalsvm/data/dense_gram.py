"""Weighted sums of outer products of rows by BLAS, some rows at a time.

Only SciPy's BLAS is used: NumPy has another one, and the idle threads of each would keep cores busy for a while.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from primalsvm.data.blocks import Vector, inner

ROWS_AT_ONCE = 4096  # the number of rows that are made dense at a time
COLUMNS_BYTES = 2**27  # the bytes of columns that are multiplied at a time


def add_dense_gram(
    write_rows: Callable[[Vector, Vector, Vector], Any],
    d: int,
    chosen: Vector,
    roots: Vector,
    sign: float,
    single: bool,
    out: Vector,
) -> None:
    """out += sign · Σ rootᵢ² (xᵢ, 1)(xᵢ, 1)ᵀ over the chosen rows, the lower triangle.

    Parameters
    ----------
    write_rows : writes the rows with some numbers, times their scales, into a matrix
    d : the number of features
    single : sum in single precision
    """
    precision = np.dtype(np.float32 if single else np.float64)
    syrk, gemv = scipy.linalg.blas.get_blas_funcs(("syrk", "gemv"), dtype=precision)
    total = np.zeros((d, d), precision, order="F")
    block = np.empty((min(ROWS_AT_ONCE, chosen.shape[0]), d), precision)
    for first in range(0, chosen.shape[0], ROWS_AT_ONCE):
        part = block[: min(ROWS_AT_ONCE, chosen.shape[0] - first)]
        scale = roots[first : first + ROWS_AT_ONCE].astype(precision)
        write_rows(chosen[first : first + ROWS_AT_ONCE], scale, part)
        total = syrk(1.0, part.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        out[d, :d] += gemv(sign, part.T, scale)
    out[:d, :d] += total if sign > 0.0 else -total
    out[d, d] += sign * float(inner(roots, roots))


def dense_products(values: Vector, chosen: Vector) -> Vector:
    """⟨xᵢ, xⱼ⟩ of all pairs of the chosen rows, the lower triangle, in double precision; some columns at a time."""
    m, d = chosen.shape[0], values.shape[1]
    out = np.zeros((m, m), order="F")
    syrk = scipy.linalg.blas.get_blas_funcs("syrk", dtype=np.float64)
    width = max(1, COLUMNS_BYTES // (8 * max(m, 1)))
    for first in range(0, d if m else 0, width):  # BLAS does not take an empty matrix
        columns = values[:, first : first + width][chosen].astype(np.float64, order="C", copy=False)
        out = syrk(1.0, columns.T, trans=1, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out
