"""Rows of a whole kernel matrix, which stand for φ(xᵢ): computed in tiles, and kept within a budget.

A vector of weights is one of coefficients β; only rows with a coefficient, the support vectors, are visited for scores.
`KeptRows` keeps the first rows that are read: for a solver that visits all rows again and again, keeping the latest
instead would drop a row before its next visit. `KernelColumns` keeps the latest, for solvers that visit few rows often.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights
from primalsvm.data.dataset import Handle
from primalsvm.data.dense import Dense
from primalsvm.data.kernel_columns import SPARSE_ROWS, TILE_ROWS, KernelColumns, gather, slices, tile_points
from primalsvm.data.kernel_rows import KernelRows, refuse_features
from primalsvm.data.reads import Computed
from primalsvm.data.threads import ALONE, ThreadPool

# A kernel matrix of at most this many rows is computed as a whole, in double precision: 200 MB.
WHOLE = 5_000
# Sparse rows are made dense if they have at least the inverse of this share of entries: BLAS multiplies so much faster.
DENSE_SHARE = 16
# Rows of a block on the diagonal, which has as many values as are needed times this.
DIAGONAL_ROWS = 64
# Support vectors of the scores that a checksum is of.
PROBED_ROWS = 64


class KernelMatrix(Computed):
    """k(xᵢ, xⱼ) for the rows of a training set.

    Parameters
    ----------
    kernel : has `between(rows, points)`, the matrix of k, and `take(numbers)`
    rows, points : the training set, as a block and as the kernel's points
    budget : bytes of rows that may be kept
    """

    def __init__(
        self, kernel: Any, rows: Block, points: Any, budget: float, weights: Weights, threads: ThreadPool
    ) -> None:
        m, n = rows.shape
        if rows.sparse and kernel.by_products and n * m <= DENSE_SHARE * rows.entries:
            rows = Dense(rows.matrix().toarray())
        super().__init__((m, m), points.dtype, weights, threads)
        self.kernel, self.rows, self.points, self.budget = kernel, rows, points, budget
        self.kept = KeptRows(m, self.dtype, budget)  # shared with `with_weights` and `with_threads`
        self._whole: Vector | None = None

    @property
    def kernel_rows(self) -> bool:
        return True

    @property
    def whole(self) -> Vector | None:
        """The matrix in double precision, if it is small."""
        m = self.shape[0]
        if self._whole is None and m <= WHOLE and 8.0 * m * m <= self.budget:
            out = np.empty((m, m))
            for_tiles(self.kernel, self.rows, self.points, self.threads, partial(_assign, out))
            self._whole = out
        return self._whole

    def scores(self, W: Vector) -> Handle:
        """Σⱼ βⱼ k(xⱼ, xᵢ) over the support vectors j, summed in double precision."""
        B = np.atleast_2d(W)
        support = np.flatnonzero(B.any(axis=0))
        coefficients = np.ascontiguousarray(B[:, support].T)
        if self._whole is not None:
            found = self._whole[:, support] @ coefficients
        else:
            found = np.zeros((self.shape[0], B.shape[0]))
            add_kernel_scores(
                self.kernel.take(support), self.rows, self.points.take(support), coefficients, self.threads, found
            )
        return found[:, 0] if W.ndim == 1 else np.asfortranarray(found)

    def _probe(self) -> Vector:
        """Coefficients of few rows: with them, scores see all rows at a small share of the matrix."""
        m = self.shape[0]
        out = np.zeros(m)
        some = np.linspace(0, m - 1, min(m, PROBED_ROWS)).astype(np.intp)
        out[some] = np.random.default_rng(0).normal(size=some.shape[0])
        return out

    def combine(self, alpha: Handle, weighted: bool = True) -> Vector:
        """The coefficients of Σ cᵢ αᵢ φ(xᵢ), for which no row is needed."""
        return self.weight_array() * alpha if weighted else np.array(alpha)

    def combine_many(self, alpha: Handle, count: int) -> Vector:
        return np.stack([self.combine(alpha[:, k]) for k in range(count)])

    def gram(self, h: Handle, single: bool = False, out: Vector | None = None) -> Vector:
        refuse_features()

    @property
    def nbytes_for_columns(self) -> float:
        return self.budget

    def kernel_columns(self, active: Vector, nbytes: float) -> "KernelColumns":
        return KernelColumns(self, active, nbytes)

    def restricted(self, numbers: Vector) -> "KernelMatrix":
        found = KernelMatrix(
            self.kernel.take(numbers), self.rows.take(numbers), self.points.take(numbers),
            self.budget / self.threads.size, self.weights.take(numbers), self.threads,
        )  # fmt: skip
        whole = self.whole
        if whole is not None:
            found._whole = np.empty((numbers.shape[0], numbers.shape[0]))
            gather(whole, numbers, numbers, np.arange(numbers.shape[0]), found._whole)
        return found

    def take(self, numbers: Vector) -> KernelRows:
        return KernelRows(self.values(numbers), numbers.astype(np.uint64))

    def values(self, numbers: Vector) -> Vector:
        """The rows of the matrix with these numbers."""
        out = np.empty((numbers.shape[0], self.shape[1]), self.dtype)
        missing = self.kept.read(numbers, out)
        if missing.any():
            new, inverse = np.unique(numbers[missing], return_inverse=True)
            found = np.empty((new.shape[0], self.shape[1]), self.dtype)
            for_tiles(self.kernel, self.rows.take(new), self.points, ALONE, partial(_assign, found))
            out[missing] = found[inverse]
            self.kept.add(new, found)
        return out

    def squared_norms_of(self, numbers: Vector) -> Vector:
        """k(xᵢ, xᵢ) of the rows with these numbers, without the rest of these rows."""
        out = np.empty(numbers.shape[0])
        for part in slices(0, numbers.shape[0], min(DIAGONAL_ROWS, tile_points(self.points))):
            some = numbers[part]
            points = self.points.take(some).dense()
            out[part] = np.diagonal(self.kernel.take(some).between(self.rows.take(some), points))
        return out


def for_tiles(kernel: Any, rows: Block, points: Any, threads: ThreadPool, use: Callable[..., None]) -> None:
    """`use(i, j, values)` for the tiles of the matrix k(rows, points), whose row i and column j are the first ones.

    The threads share the rows.
    """
    s, height = points.shape[1], SPARSE_ROWS if points.sparse else TILE_ROWS

    def work(start: int, stop: int) -> None:
        for some in slices(0, s, tile_points(points)):
            own, few = kernel.take(some), points.take(some).dense()
            for part in slices(start, stop, height):
                use(part.start, some.start, own.between(rows.between(part.start, part.stop), few))

    with threads.blas_limited(working=True):
        threads.run(work, list(threads.ranges(rows.shape[0])))


def add_kernel_scores(
    kernel: Any, rows: Block, points: Any, coefficients: Vector, threads: ThreadPool, out: Vector
) -> None:
    """out[i, k] += Σⱼ k(xᵢ, tⱼ) coefficients[j, k]."""

    def add(i: int, j: int, values: Vector) -> None:
        out[i : i + values.shape[0]] += values @ coefficients[j : j + values.shape[1]]

    for_tiles(kernel, rows, points, threads, add)


def _assign(out: Vector, i: int, j: int, values: Vector) -> None:
    out[i : i + values.shape[0], j : j + values.shape[1]] = values


class KeptRows:
    """The first rows of a matrix that were read; several threads may read at once."""

    def __init__(self, m: int, dtype: np.dtype[Any], budget: float) -> None:
        self.values = np.empty((min(m, int(budget / (m * dtype.itemsize))), m), dtype)
        self.place = np.full(m, -1)  # where row i is kept; −1: it is not
        self.count = 0
        self.lock = threading.Lock()

    def read(self, numbers: Vector, out: Vector) -> Vector:
        """Copy the rows that are kept; returns which are not."""
        with self.lock:
            place = self.place[numbers]
        known = place >= 0
        out[known] = self.values[place[known]]
        return ~known

    def add(self, numbers: Vector, values: Vector) -> None:
        """Keep as many of these rows as there is room for."""
        with self.lock:
            fresh = np.flatnonzero(self.place[numbers] < 0)[: self.values.shape[0] - self.count]
            self.values[self.count : self.count + fresh.shape[0]] = values[fresh]
            self.place[numbers[fresh]] = np.arange(self.count, self.count + fresh.shape[0])
            self.count += fresh.shape[0]
