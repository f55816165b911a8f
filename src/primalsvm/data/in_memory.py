"""Rows in memory, or mapped into it from files."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights, squared_norms_of
from primalsvm.data.local import LocalDataset
from primalsvm.data.threads import ALONE, ThreadPool


class InMemory(LocalDataset):
    """One block."""

    def __init__(self, block: Block, weights: Weights, threads: ThreadPool = ALONE) -> None:
        super().__init__(block.shape, block.entries, block.nbytes_of(), block.dtype, block.sparse, weights, threads)
        self._block = block
        self._block_for: dict[int, Any] = {}

    @property
    def block(self) -> Block:
        return self._block

    @property
    def kernel_rows(self) -> bool:
        return self._block.kernel_rows

    def block_for(self, count: int) -> Any:
        if count not in self._block_for:
            block: Any = self._block
            self._block_for[count] = block.for_many_vectors(count)
        return self._block_for[count]

    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, Block]]:
        whole = start == 0 and stop == self.shape[0]
        yield start, stop, self._block if whole else self._block.between(start, stop)

    def take(self, numbers: Vector) -> Block:
        return self._block.take(numbers)

    def squared_norms_of(self, numbers: Vector) -> Vector:
        norms = np.empty(numbers.shape[0])
        squared_norms_of(self._block, numbers, norms)
        return norms

    def products(self, numbers: Vector) -> Vector:
        return self._block.products(numbers)

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        self._block.add_gram(chosen, roots, sign, single, out)

    def checksum(self) -> str:
        return self._block.checksum()
