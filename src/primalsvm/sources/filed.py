"""Rows of a cache that stay in its files: read in runs when they are needed, for data larger than memory.

Plain reads into fresh arrays, rather than a mapping: the pages of a mapping would count as this process's memory, and a
page fault for each four kilobytes costs more than the copy.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.rows import CSR, Dense, Distant, Files, Stored, Vector, shape, stored, value_dtype
from primalsvm.sources.cache import CacheError, open_cache

INDEX = np.dtype(np.uint32)  # of column numbers in a cache


class Column:
    """A `.npy` file of which parts are read."""

    def __init__(self, path: Path, dtype: np.dtype[Any], width: int = 1) -> None:
        self.path, self.dtype = path, dtype
        self.row_bytes = dtype.itemsize * width
        self.file = path.open("rb", buffering=0)
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        read(self.file)
        self.offset = self.file.tell()

    def read(self, first: int, last: int, out: Vector) -> None:
        """The elements (or rows of `width` elements) first ≤ i < last, into `out`."""
        flat: Any = out.reshape(-1).view(np.uint8)
        view = memoryview(flat)
        at = self.offset + first * self.row_bytes
        while len(view):
            n = os.preadv(self.file.fileno(), [view], at)
            if n == 0:
                raise CacheError(f"{self.path} has become shorter while it was read")
            view, at = view[n:], at + n

    def expect(self, first: int, last: int) -> None:
        """Have the system read ahead."""
        if hasattr(os, "posix_fadvise"):
            begin, length = self.offset + first * self.row_bytes, (last - first) * self.row_bytes
            os.posix_fadvise(self.file.fileno(), begin, length, os.POSIX_FADV_WILLNEED)


class Reader:
    """Reads rows of a cache by their numbers; neighbours are read together."""

    def __init__(self, path: Path, rows: Stored) -> None:
        self.rows = rows
        self.columns: list[Column]
        if isinstance(rows, CSR):
            self.columns = [Column(path / "data.npy", rows.data.dtype), Column(path / "indices.npy", INDEX)]
        else:
            self.columns = [Column(path / "values.npy", rows.values.dtype, rows.values.shape[1])]

    def bring(self, chosen: Vector) -> Stored:
        """Copies of the rows with these numbers."""
        rows = self.rows
        if not isinstance(rows, CSR):
            values = np.empty((chosen.shape[0], rows.values.shape[1]), rows.values.dtype)
            at = 0
            for first, last in runs(chosen):
                self.columns[0].read(first, last, values[at : at + last - first])
                at += last - first
            return Dense(values)
        indptr = np.zeros(chosen.shape[0] + 1, rows.indptr.dtype)
        at = 0
        for first, last in runs(chosen):
            ends = rows.indptr[first : last + 1]
            indptr[at + 1 : at + 1 + last - first] = ends[1:] - ends[0] + indptr[at]
            at += last - first
        entries = int(indptr[-1])
        copy = CSR(np.empty(entries, rows.data.dtype), np.empty(entries, INDEX), indptr, rows.n_features)
        to = 0
        for first, last in self._entries(chosen):
            for column, out in zip(self.columns, (copy.data, copy.indices), strict=True):
                column.read(first, last, out[to : to + last - first])
            to += last - first
        return copy

    def expect(self, chosen: Vector) -> None:
        """These rows are going to be asked for next."""
        for first, last in self._entries(chosen) if isinstance(self.rows, CSR) else runs(chosen):
            for column in self.columns:
                column.expect(first, last)

    def _entries(self, chosen: Vector) -> Iterator[tuple[int, int]]:
        """Where the entries of each run of rows are."""
        assert isinstance(self.rows, CSR)
        for first, last in runs(chosen):
            yield int(self.rows.indptr[first]), int(self.rows.indptr[last])


def runs(chosen: Vector) -> Iterator[tuple[int, int]]:
    """The runs of neighbours in a list of rows, as first and last + 1.

    Examples
    --------
    >>> list(runs(np.array([4, 5, 6, 1, 2, 9])))
    [(4, 7), (1, 3), (9, 10)]
    """
    if not chosen.shape[0]:
        return
    ends = np.flatnonzero(np.diff(chosen.astype(np.int64)) != 1)
    firsts = np.concatenate([chosen[:1], chosen[ends + 1]]).tolist()
    lasts = np.concatenate([chosen[ends], chosen[-1:]]).tolist()
    for first, last in zip(firsts, lasts, strict=True):
        yield int(first), int(last) + 1


@contextmanager
def filed_rows(path: str | os.PathLike[str], at_once: int) -> Iterator[Distant]:
    """The rows of a cache, of which `at_once` bytes are held at a time; they are checked already (`inputs`)."""
    path = Path(path)
    rows, y, _ = open_cache(path)
    reader = Reader(path, rows)
    dtype = value_dtype(rows)
    each = dtype.itemsize + (INDEX.itemsize if isinstance(rows, CSR) else 0)
    files = Files(stored(rows), each, at_once, reader.expect, lambda m: room_beside(path, m))
    try:
        yield Distant(y.shape[0], shape(rows)[1], dtype, reader.bring, files=files)
    finally:
        for column in reader.columns:
            column.file.close()


def room_beside(path: Path, m: int) -> Vector:
    """m zeros in a file beside the cache, gone when they are: memory that is written out when it is short."""
    if m == 0:
        return np.zeros(0)
    folder = path.parent if os.access(path.parent, os.W_OK) else None
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a full disk shall be told now, not when the numbers are written
            os.posix_fallocate(file.fileno(), 0, 8 * m)
        else:
            file.truncate(8 * m)
        return np.asarray(np.memmap(file, np.float64, "r+", shape=(m,)))
