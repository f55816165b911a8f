"""Rows that are not in memory: they are read, or computed, in blocks in each pass."""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights
from primalsvm.data.dataset import Handle
from primalsvm.data.local import LocalDataset
from primalsvm.data.threads import ThreadPool


class ReadInBlocks(LocalDataset):
    """A data set whose passes read one block of rows after the other."""

    block_bytes: ClassVar[int] = 2**23  # the bytes of a block in a pass, for each thread

    def __init__(
        self, shape: tuple[int, int], entries: int, nbytes: int, dtype: Any, sparse: bool, weights: Weights,
        threads: ThreadPool,
    ) -> None:  # fmt: skip
        super().__init__(shape, entries, nbytes, dtype, sparse, weights, threads)
        self.rows_at_once = max(1, self.block_bytes * shape[0] // max(nbytes, 1))

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, Block]]:
        for first in range(start, stop, self.rows_at_once):
            last = min(first + self.rows_at_once, stop)
            yield first, last, self.take(np.arange(first, last))


class Computed(ReadInBlocks):
    """A data set of dense rows that are computed in each pass."""

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], weights: Weights, threads: ThreadPool) -> None:
        m, d = shape
        super().__init__(shape, m * d, m * d * dtype.itemsize, dtype, False, weights, threads)

    def _run(self, function: Any, handles: Any, rows: bool, merge: Any) -> Any:
        with self.threads.blas_limited(working=True) if rows else nullcontext():
            return super()._run(function, handles, rows, merge)

    def scores(self, W: Vector) -> Handle:
        if W.ndim == 1:
            return super().scores(W)
        return self.map(partial(_product, W), rows=True, columns=W.shape[0])


def _product(W: Vector, block: Any, out: Vector) -> None:
    np.matmul(block.values.astype(W.dtype, copy=False), W.T, out=out)
