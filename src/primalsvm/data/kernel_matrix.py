"""Rows of a whole kernel matrix, which stand for φ(xᵢ): computed in blocks, and kept within a budget.

The first rows that are read are kept. Keeping the latest rows instead would not help a solver that visits all rows
again and again: a row would be dropped before its next visit.
"""

import threading
from typing import Any

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights
from primalsvm.data.dataset import Handle
from primalsvm.data.kernel_rows import KernelRows, refuse_features
from primalsvm.data.reads import Computed
from primalsvm.data.threads import ThreadPool


class KernelMatrix(Computed):
    """k(xᵢ, xⱼ) for the rows of a training set.

    Parameters
    ----------
    kernel : has `between(rows, points)`, the matrix of k
    rows, points : the training set, as a block and as the kernel's points
    budget : bytes of rows that may be kept
    """

    def __init__(
        self, kernel: Any, rows: Block, points: Any, budget: float, weights: Weights, threads: ThreadPool
    ) -> None:
        m = rows.shape[0]
        super().__init__((m, m), points.columns.dtype, weights, threads)
        self.kernel, self.rows, self.points = kernel, rows, points
        self.kept = KeptRows(m, self.dtype, budget)  # shared with `with_weights` and `with_threads`

    @property
    def kernel_rows(self) -> bool:
        return True

    def combine(self, alpha: Handle, weighted: bool = True) -> Vector:
        """The coefficients of Σ cᵢ αᵢ φ(xᵢ), for which no row is needed."""
        return self.weight_array() * alpha if weighted else np.array(alpha)

    def combine_many(self, alpha: Handle, count: int) -> Vector:
        return np.stack([self.combine(alpha[:, k]) for k in range(count)])

    def gram(self, h: Handle, single: bool = False, out: Vector | None = None) -> Vector:
        refuse_features()

    def take(self, numbers: Vector) -> KernelRows:
        return KernelRows(self.values(numbers), numbers.astype(np.uint64))

    def values(self, numbers: Vector) -> Vector:
        """The rows of the matrix with these numbers."""
        out = np.empty((numbers.shape[0], self.shape[1]), self.dtype)
        missing = self.kept.read(numbers, out)
        if missing.any():
            new, inverse = np.unique(numbers[missing], return_inverse=True)
            found = self.kernel.between(self.rows.take(new), self.points)
            out[missing] = found[inverse]
            self.kept.add(new, found)
        return out


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
