"""Rows xᵢ = Mᵀ zᵢ that are stored as zᵢ: ⟨xᵢ, w⟩ = ⟨zᵢ, Mw⟩ and Σ aᵢ xᵢ = Mᵀ Σ aᵢ zᵢ need no product for each row.

With hundreds of thousands of rows, multiplying all of them with the whitening matrix M of a map costs more than the
whole of Newton's method.
"""

import numpy as np
import scipy.linalg

from primalsvm.data.blocks import EQUAL_WEIGHTS, Vector, Weights, combine_rows, scores_of
from primalsvm.data.csr import crc
from primalsvm.data.dataset import Handle
from primalsvm.data.dense import Dense
from primalsvm.data.in_memory import InMemory
from primalsvm.data.reads import Computed
from primalsvm.data.threads import ThreadPool

ROWS_AT_ONCE = 2048  # the number of rows that are multiplied with M at a time


class Whitened(Computed):
    """Rows Mᵀ zᵢ."""

    def __init__(self, base: Dense, whitening: Vector, weights: Weights, threads: ThreadPool) -> None:
        m, d = base.shape[0], whitening.shape[1]
        super().__init__((m, d), base.dtype, weights, threads)
        self.z, self.whitening = base, whitening

    @property
    def base(self) -> InMemory:
        """The zᵢ."""
        return InMemory(self.z, self.weights, self.threads)

    def scores(self, W: Vector) -> Handle:
        if W.ndim == 2:
            return self.base.scores(np.stack([self._multiply_whitening(w) for w in W]))
        return self.base.scores(self._multiply_whitening(W))

    def _multiply_whitening(self, w: Vector) -> Vector:
        """M w."""
        out = np.empty(self.whitening.shape[0])
        scores_of(Dense(self.whitening), w, out)
        return out

    def combine(self, alpha: Handle, weighted: bool = True) -> Vector:
        return self._whitened_sum(self.base.combine(alpha, weighted))

    def combine_many(self, alpha: Handle, count: int) -> Vector:
        return np.stack([self._whitened_sum(total) for total in self.base.combine_many(alpha, count)])

    def _whitened_sum(self, total: Vector) -> Vector:
        """Mᵀ Σ aᵢ zᵢ."""
        out = np.zeros(self.shape[1])
        combine_rows(Dense(self.whitening), EQUAL_WEIGHTS, total, out)
        return out

    def take(self, numbers: Vector) -> Dense:
        out = np.empty((numbers.shape[0], self.shape[1]), self.whitening.dtype)
        for first in range(0, numbers.shape[0], ROWS_AT_ONCE):
            last = first + ROWS_AT_ONCE
            multiply(self.z.values[numbers[first:last]], self.whitening, out[first:last])
        return Dense(out)

    def write_scaled(self, chosen: Vector, scale: Vector, out: Vector) -> None:
        multiply(self.z.values[chosen] * scale[:, None], self.whitening, out)

    def checksum(self) -> str:
        return crc(self.z.values, self.whitening)


def multiply(base: Vector, whitening: Vector, out: Vector) -> None:
    """out = base · whitening by SciPy's BLAS, as in solvers: idle threads of NumPy's would keep cores busy."""
    if base.dtype == whitening.dtype == out.dtype:
        gemm = scipy.linalg.blas.get_blas_funcs("gemm", dtype=out.dtype)
        gemm(1.0, whitening.T, base.T, c=out.T, overwrite_c=1)
    else:
        np.matmul(base, whitening, out=out)
