"""Rows of a cache that stay in its files: read in runs when they are needed, for data larger than memory.

Plain reads into the same arrays each time, rather than a mapping: the pages of a mapping would count as this process's
memory, and a page fault for each four kilobytes costs more than the copy.
"""

import json
import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.inputs import inspect
from primalsvm.rows import CSR, Dense, Distant, Files, Stored, Vector, readable, shape, stored, value_dtype
from primalsvm.sources.cache import CacheError, open_cache, read_header
from primalsvm.team import Team, team_for

INDEX = np.dtype(np.uint32)  # of column numbers in a cache
POINTERS = 2**20  # that are checked at a time
TOGETHER = 2**24  # bytes from which the threads read side by side


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

    def read(self, first: int, last: int, out: Vector, drop: bool) -> None:
        """The elements (or rows of `width` elements) first ≤ i < last; the system may `drop` its own copy of them."""
        flat: Any = out.reshape(-1).view(np.uint8)
        view = memoryview(flat)
        at = self.offset + first * self.row_bytes
        while len(view):
            n = os.preadv(self.file.fileno(), [view], at)
            if n == 0:
                raise CacheError(f"{self.path} has become shorter while it was read")
            view, at = view[n:], at + n
        if drop:
            self.advise(first, last, "POSIX_FADV_DONTNEED")

    def advise(self, first: int, last: int, what: str) -> None:
        """Tell the system what to do with its own copy of a part."""
        if hasattr(os, what):  # not everywhere
            begin, length = self.offset + first * self.row_bytes, (last - first) * self.row_bytes
            os.posix_fadvise(self.file.fileno(), begin, length, getattr(os, what))


class Reader:
    """Reads rows of a cache by their numbers; neighbours are read together.

    Parameters
    ----------
    path : the cache
    rows : the same, mapped: of these only the pointers are used
    drop : whether the system may forget what has been read, so that it does not take memory
    team : reads many bytes side by side
    """

    def __init__(self, path: Path, rows: Stored, drop: bool, team: Team) -> None:
        self.rows, self.drop, self.team = rows, drop, team
        self.kept = threading.local()
        self.ahead = ThreadPoolExecutor(1, thread_name_prefix="primalsvm-ahead")
        self.columns: list[Column]
        if isinstance(rows, CSR):
            self.columns = [Column(path / "data.npy", rows.data.dtype), Column(path / "indices.npy", INDEX)]
        else:
            self.columns = [Column(path / "values.npy", rows.values.dtype, rows.values.shape[1])]

    def bring(self, chosen: Vector) -> Stored:
        """Copies of the rows with these numbers, good until the same thread asks for others."""
        rows = self.rows
        if not isinstance(rows, CSR):
            width = rows.values.shape[1]
            (values,) = self._rooms(chosen.shape[0] * width)
            values = values.reshape(-1, width)
            self._read(chosen, [values])
            return Dense(values)
        indptr = np.zeros(chosen.shape[0] + 1, rows.indptr.dtype)
        at = 0
        for first, last in runs(chosen):
            ends = rows.indptr[first : last + 1]
            indptr[at + 1 : at + 1 + last - first] = ends[1:] - ends[0] + indptr[at]
            at += last - first
        data, indices = self._rooms(int(indptr[-1]))
        self._read(chosen, [data, indices])
        return CSR(data, indices, indptr, rows.n_features)

    def expect(self, chosen: Vector) -> None:
        """Have the system read these rows while others are worked on."""

        def advise() -> None:
            for first, last in self._places(chosen):
                for column in self.columns:
                    column.advise(first, last, "POSIX_FADV_WILLNEED")

        self.ahead.submit(advise)

    def _rooms(self, n: int) -> list[Vector]:
        """Arrays of n elements for each column, the same each time: fresh memory costs as much as reading."""
        rooms: list[Vector] = getattr(self.kept, "rooms", [])
        if not rooms or rooms[0].shape[0] < n:
            rooms = self.kept.rooms = [np.empty(n + n // 8, column.dtype) for column in self.columns]
        return [room[:n] for room in rooms]

    def _read(self, chosen: Vector, outs: list[Vector]) -> None:
        """Fill an array for each column with the chosen rows' entries."""
        parts: list[tuple[Any, ...]] = []
        at = 0
        for first, last in self._places(chosen):
            for column, out in zip(self.columns, outs, strict=True):
                parts.append((column, first, last, out[at : at + last - first]))
            at += last - first

        def read(column: Column, first: int, last: int, out: Vector) -> None:
            column.read(first, last, out, self.drop)

        if sum(out.nbytes for out in outs) >= TOGETHER:
            self.team.run(read, parts)
        else:
            for part in parts:
                read(*part)

    def _places(self, chosen: Vector) -> Iterator[tuple[int, int]]:
        """Where each run of rows is in the columns."""
        for first, last in runs(chosen):
            if isinstance(self.rows, CSR):
                yield int(self.rows.indptr[first]), int(self.rows.indptr[last])
            else:
                yield first, last


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
def filed_rows(
    path: str | os.PathLike[str], at_once: int, drop: bool = False, n_jobs: int | None = None
) -> Iterator[Distant]:
    """The rows of a cache, in its files; `inspect_filed` checks them.

    Parameters
    ----------
    path : the cache
    at_once : bytes of rows that may be held at a time
    drop : whether the system may forget what has been read, so that it does not take memory
    n_jobs : threads that read
    """
    path = Path(path)
    rows, y, _ = open_cache(path)
    if isinstance(rows, CSR):
        _check_pointers(path, rows.indptr)
    with ExitStack() as stack:
        team = team_for(n_jobs)
        reader = Reader(path, rows, drop, team)
        for column in reader.columns:
            stack.enter_context(column.file)
        stack.enter_context(reader.ahead)  # threads end before the files are closed
        stack.enter_context(team)
        dtype = value_dtype(rows)
        each = dtype.itemsize + (INDEX.itemsize if isinstance(rows, CSR) else 0)
        checksum = json.dumps(read_header(path)["files"], sort_keys=True)
        files = Files(stored(rows), each, at_once, checksum, reader.expect, lambda m: room_beside(path, m))
        yield Distant(y.shape[0], shape(rows)[1], dtype, reader.bring, files=files)


def _check_pointers(path: Path, indptr: Vector) -> None:
    """Refuse pointers that do not rise: they say how much is read."""
    for first in range(0, indptr.shape[0], POINTERS):
        part = indptr[first : first + POINTERS + 1]
        if np.any(part[1:] < part[:-1]):
            raise CacheError(f"{path / 'indptr.npy'} is damaged: its row pointers are out of order")


def inspect_filed(rows: Distant, n_jobs: int | None) -> None:
    """Check all rows, a block at a time."""

    def part(start: int, stop: int) -> None:
        for first, here, _, _ in readable(rows, start, stop):
            assert isinstance(here, CSR | Dense)
            inspect(here, first)

    with team_for(n_jobs) as team:
        team.run(part, list(team.ranges(rows.n_rows)))


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
