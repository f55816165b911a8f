"""Rows of the whole kernel matrix, computed in blocks and kept within a budget.

Which rows are kept: the first ones that are asked for. A solver that goes through all rows again and again gains
nothing from keeping the latest instead (by the time a row comes up again it would be gone).
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from primalsvm.maps.kernels import Kernel, Matrix, Points
from primalsvm.rows import Distant, Gram, Stored, Vector, shape, take


@dataclass(eq=False)
class KernelMatrix:
    """k(xᵢ, xⱼ) for the rows of a training set."""

    kernel: Kernel
    rows: Stored
    points: Points  # the same rows
    budget: float  # bytes
    kept: Matrix = field(init=False)
    place: Vector = field(init=False)  # where row i is kept; −1: it is not
    n_kept: int = field(init=False, default=0)
    lock: Any = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        m = shape(self.rows)[0]
        itemsize = self.points.columns.dtype.itemsize
        self.kept = np.empty((min(m, int(self.budget / (m * itemsize))), m), self.points.columns.dtype)
        self.place = np.full(m, -1)

    def block(self, chosen: Vector) -> Matrix:
        """The chosen rows of the matrix."""
        out = np.empty((chosen.shape[0], self.place.shape[0]), self.kept.dtype)
        with self.lock:  # members of a team may ask at once
            place = self.place[chosen]
        known = place >= 0
        out[known] = self.kept[place[known]]
        if known.all():
            return out
        missing, inverse = np.unique(chosen[~known], return_inverse=True)
        found = self.kernel.between(take(self.rows, missing), self.points)
        out[~known] = found[inverse]
        with self.lock:
            fresh = np.flatnonzero(self.place[missing] < 0)[: self.kept.shape[0] - self.n_kept]
            self.kept[self.n_kept : self.n_kept + fresh.shape[0]] = found[fresh]
            self.place[missing[fresh]] = np.arange(self.n_kept, self.n_kept + fresh.shape[0])
            self.n_kept += fresh.shape[0]
        return out

    def as_rows(self) -> Distant:
        """The matrix as rows that stand for φ(xᵢ)."""
        m = self.place.shape[0]
        return Distant(m, m, self.kept.dtype, self._bring, expansion=True)

    def _bring(self, chosen: Vector) -> Gram:
        return Gram(self.block(chosen), chosen.astype(np.uint64))
