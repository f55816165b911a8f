"""Rows that stay in files because they do not fit in memory."""

from typing import Any, Protocol

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights
from primalsvm.data.in_memory import InMemory
from primalsvm.data.reads import ReadInBlocks
from primalsvm.data.threads import ThreadPool


class Reader(Protocol):
    """Reads rows from files; see `primalsvm.sources.reader`."""

    shape: tuple[int, int]
    entries: int
    entry_bytes: int  # of each entry
    dtype: np.dtype[Any]
    sparse: bool
    bytes_at_once: int  # of rows that may be held at a time
    checksum: str  # of all rows

    def read(self, numbers: Vector) -> Block:
        """Copies of the rows with these numbers, valid until the same thread reads others."""

    def prefetch(self, numbers: Vector) -> None:
        """Let the system read these rows in the background."""

    def allocate(self, m: int) -> Vector:
        """m zeros that are stored in a file instead of memory."""


class OutOfCore(ReadInBlocks):
    """Rows in files; handles are in files as well, as there may be many rows."""

    def __init__(self, reader: Reader, weights: Weights, threads: ThreadPool) -> None:
        nbytes = reader.entries * reader.entry_bytes
        super().__init__(reader.shape, reader.entries, nbytes, reader.dtype, reader.sparse, weights, threads)
        self.reader = reader

    @property
    def bytes_at_once(self) -> float:
        return self.reader.bytes_at_once

    def prefetch(self, numbers: Vector) -> None:
        self.reader.prefetch(numbers)

    def take(self, numbers: Vector) -> Block:
        return self.reader.read(numbers)

    def subset(self, numbers: Vector) -> InMemory:
        copies = self.take(numbers).take(np.arange(numbers.shape[0]))  # because the reader reuses its arrays
        return InMemory(copies, self.weights.take(numbers), self.threads)

    def allocate(self, columns: int = 0) -> Vector:
        if not columns:
            return self.reader.allocate(self.shape[0])
        return self.reader.allocate(self.shape[0] * columns).reshape(columns, -1).T

    def check(self) -> None:
        """Raise a ValueError that names the first row that is not valid, by one pass over all rows."""

        def check(start: int, stop: int) -> None:
            for first, _, block in self.blocks(start, stop):
                block.check(first)

        self.threads.run(check, list(self.threads.ranges(self.shape[0])))

    def checksum(self) -> str:
        return self.reader.checksum
