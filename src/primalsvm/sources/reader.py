"""Rows of a cache that stay in its files, for data larger than memory.

Rows are read into the same buffers each time and not mapped: the pages of a mapping count as memory of the process, and
page faults cost more than the copy.
"""

import json
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.data import ALONE, CSR, EQUAL_WEIGHTS, Block, Dense, OutOfCore, ThreadPool, Vector, Weights
from primalsvm.sources.cache import CacheError, open_cache, read_header

INDEX = np.dtype(np.uint32)  # of the indices in a cache
POINTERS = 2**20  # that are checked at a time
SHARED_BYTES = 2**24  # from which on threads share the reading


class ColumnReader:
    """Reads parts of a `.npy` file, as a flat array."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path, self.dtype = path, dtype
        self.file = path.open("rb", buffering=0)
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        read(self.file)
        self.offset = self.file.tell()

    def read(self, first: int, last: int, out: Vector, drop: bool) -> None:
        """Read the elements first ≤ i < last into `out`; with `drop` the system may free its cached pages."""
        flat: Any = out.view(np.uint8)
        view = memoryview(flat)
        at = self.offset + first * self.dtype.itemsize
        while len(view):
            n = os.preadv(self.file.fileno(), [view], at)
            if n == 0:
                raise CacheError(f"{self.path} has become shorter while it was read")
            view, at = view[n:], at + n
        if drop:
            self.advise(first, last, "POSIX_FADV_DONTNEED")

    def advise(self, first: int, last: int, what: str) -> None:
        """Advise the system what to do with the cached pages of some elements."""
        if hasattr(os, what):  # on Linux
            begin, length = self.offset + first * self.dtype.itemsize, (last - first) * self.dtype.itemsize
            os.posix_fadvise(self.file.fileno(), begin, length, getattr(os, what))


class CacheReader(ABC):
    """Reads rows of a cache by their indices, neighbours together. See `primalsvm.data.Reader`.

    Parameters
    ----------
    path : the cache
    columns : the names of the files that hold the entries, and their dtypes
    bytes_at_once : of rows in memory, at most
    drop : whether the system may free its cached pages of rows that have been read
    threads : a pool for the reader only, which shares the reading of many bytes
    """

    def __init__(
        self,
        path: Path,
        block: Block,
        columns: dict[str, np.dtype[Any]],
        bytes_at_once: int,
        drop: bool,
        threads: ThreadPool,
    ) -> None:
        self.path, self.bytes_at_once, self.drop, self.threads = path, bytes_at_once, drop, threads
        self.shape, self.entries, self.dtype, self.sparse = block.shape, block.entries, block.dtype, block.sparse
        self.entry_bytes = sum(dtype.itemsize for dtype in columns.values())
        self.checksum = json.dumps(read_header(path)["files"], sort_keys=True)
        self.columns = [ColumnReader(path / name, dtype) for name, dtype in columns.items()]
        self.buffers = threading.local()
        self.prefetcher = ThreadPoolExecutor(1, thread_name_prefix="primalsvm-prefetch")

    @abstractmethod
    def read(self, numbers: Vector) -> Block:
        """Copies of the rows with these indices, valid until the same thread reads others."""

    @abstractmethod
    def entries_of(self, first: int, last: int) -> tuple[int, int]:
        """The range of the entries of the rows first ≤ i < last in the columns."""

    def prefetch(self, numbers: Vector) -> None:
        """Let the system read these rows in the background."""

        def advise() -> None:
            for rows in runs(numbers):
                for column in self.columns:
                    column.advise(*self.entries_of(*rows), "POSIX_FADV_WILLNEED")

        self.prefetcher.submit(advise)

    def allocate(self, m: int) -> Vector:
        """m zeros in a file beside the cache."""
        return zeros_in_file(self.path.parent, m)

    def close(self) -> None:
        """Close the files."""
        self.prefetcher.shutdown()  # before the files are closed
        for column in self.columns:
            column.file.close()

    def _read_columns(self, numbers: Vector, n: int) -> list[Vector]:
        """The n entries of some rows, from each column."""
        outs = self._buffers(n)
        parts: list[tuple[Any, ...]] = []
        at = 0
        for rows in runs(numbers):
            first, last = self.entries_of(*rows)
            for column, out in zip(self.columns, outs, strict=True):
                parts.append((column, first, last, out[at : at + last - first]))
            at += last - first

        def read(column: ColumnReader, first: int, last: int, out: Vector) -> None:
            column.read(first, last, out, self.drop)

        if sum(out.nbytes for out in outs) >= SHARED_BYTES:
            self.threads.run(read, parts)
        else:
            for part in parts:
                read(*part)
        return outs

    def _buffers(self, n: int) -> list[Vector]:
        """An array of n elements for each column, reused as fresh memory costs as much as reading."""
        found: list[Vector] = getattr(self.buffers, "arrays", [])
        if not found or found[0].shape[0] < n:
            found = self.buffers.arrays = [np.empty(n + n // 8, column.dtype) for column in self.columns]
        return [array[:n] for array in found]


class SparseReader(CacheReader):
    """Reads compressed sparse rows; the pointers stay mapped."""

    def __init__(self, path: Path, block: CSR, *options: Any) -> None:
        super().__init__(path, block, {"data.npy": block.dtype, "indices.npy": INDEX}, *options)
        self.indptr = block.indptr

    def entries_of(self, first: int, last: int) -> tuple[int, int]:
        return int(self.indptr[first]), int(self.indptr[last])

    def read(self, numbers: Vector) -> CSR:
        indptr = np.zeros(numbers.shape[0] + 1, self.indptr.dtype)
        at = 0
        for first, last in runs(numbers):
            ends = self.indptr[first : last + 1]
            indptr[at + 1 : at + 1 + last - first] = ends[1:] - ends[0] + indptr[at]
            at += last - first
        data, indices = self._read_columns(numbers, int(indptr[-1]))
        return CSR(data, indices, indptr, self.shape[1])


class DenseReader(CacheReader):
    """Reads dense rows."""

    def __init__(self, path: Path, block: Dense, *options: Any) -> None:
        super().__init__(path, block, {"values.npy": block.dtype}, *options)

    def entries_of(self, first: int, last: int) -> tuple[int, int]:
        return first * self.shape[1], last * self.shape[1]

    def read(self, numbers: Vector) -> Dense:
        d = self.shape[1]
        (values,) = self._read_columns(numbers, numbers.shape[0] * d)
        return Dense(values.reshape(-1, d))


def runs(numbers: Vector) -> Iterator[tuple[int, int]]:
    """The runs of consecutive indices in a list of rows, as first and last + 1.

    Examples
    --------
    >>> list(runs(np.array([4, 5, 6, 1, 2, 9])))
    [(4, 7), (1, 3), (9, 10)]
    """
    if not numbers.shape[0]:
        return
    ends = np.flatnonzero(np.diff(numbers.astype(np.int64)) != 1)
    firsts = np.concatenate([numbers[:1], numbers[ends + 1]]).tolist()
    lasts = np.concatenate([numbers[ends], numbers[-1:]]).tolist()
    for first, last in zip(firsts, lasts, strict=True):
        yield int(first), int(last) + 1


@contextmanager
def out_of_core(
    path: str | os.PathLike[str],
    bytes_at_once: int,
    *,
    drop: bool = False,
    weights: Weights = EQUAL_WEIGHTS,
    threads: ThreadPool = ALONE,
) -> Iterator[OutOfCore]:
    """The rows of a cache as a data set that leaves them in its files; `OutOfCore.check` checks them.

    Parameters
    ----------
    path : the cache
    bytes_at_once : of rows in memory, at most
    drop : whether the system may free its cached pages of rows that have been read
    weights : of the rows
    threads : that work on the rows; as many others read them
    """
    path = Path(path)
    block: Any = open_cache(path).block
    if block.sparse:
        _check_pointers(path, block.indptr)
    with ExitStack() as stack:
        readers = stack.enter_context(ThreadPool(threads.size))
        reader = (SparseReader if block.sparse else DenseReader)(path, block, bytes_at_once, drop, readers)
        stack.callback(reader.close)
        yield OutOfCore(reader, weights, threads)


def _check_pointers(path: Path, indptr: Vector) -> None:
    """Raise a CacheError if the row pointers decrease, as they determine what is read."""
    for first in range(0, indptr.shape[0], POINTERS):
        part = indptr[first : first + POINTERS + 1]
        if np.any(part[1:] < part[:-1]):
            raise CacheError(f"{path / 'indptr.npy'} is damaged: its row pointers are out of order")


def zeros_in_file(folder: Path, m: int) -> Vector:
    """m zeros mapped from an unnamed file, to which the system can write them if memory is short."""
    if m == 0:
        return np.zeros(0)
    with tempfile.TemporaryFile(dir=folder if os.access(folder, os.W_OK) else None) as file:
        if hasattr(os, "posix_fallocate"):  # raises now if the disk is full
            os.posix_fallocate(file.fileno(), 0, 8 * m)
        else:
            file.truncate(8 * m)
        return np.asarray(np.memmap(file, np.float64, "r+", shape=(m,)))
