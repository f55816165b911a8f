"""Columns of a kernel matrix in single precision, for solvers that use those of few rows, some of them often."""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data.blocks import Block, Vector
from primalsvm.data.dense import Dense

# Columns are kept if at least this many fit into the memory for them.
LEAST_KEPT = 4096
# Columns of dense rows with few features, and of many rows, are computed again in each use: that takes less time than
# reading them.
FEW_FEATURES, MANY_ROWS = 64, 50_000
# Rows and points of a tile: its values stay in the cache while they are computed and used.
TILE_ROWS, TILE_POINTS = 256, 1024
# Where points are sparse they are made dense for a tile, up to this many entries and for this many rows.
SPARSE_ENTRIES, SPARSE_ROWS = 2**21, 4096


class KernelColumns:
    """Columns of a kernel matrix at the active rows, in single precision; the least recently used are dropped.

    Of a matrix that is small, all of it, in double precision. No column is kept where too few fit into the memory that
    they may take, and where they are cheap: they are computed again in each use.

    Parameters
    ----------
    matrix : the kernel matrix
    active : numbers of the rows at which columns are needed, in increasing order
    nbytes : memory for columns
    """

    def __init__(self, matrix: Any, active: Vector, nbytes: float) -> None:
        m = matrix.shape[0]
        self.matrix, self.active = matrix, active
        self.whole = matrix.whole
        if self.whole is not None:
            return
        capacity = int(nbytes / (4.0 * max(active.shape[0], 1)))
        capacity = min(active.shape[0], capacity) if capacity >= LEAST_KEPT and not is_cheap(matrix) else 0
        self.values = np.empty((capacity, active.shape[0]), np.float32)
        self.place = np.full(m, -1)  # of the column of row i in `values`; −1: it is not kept
        self.owner = np.full(capacity, -1)
        self.used = np.zeros(capacity, np.int64)  # the time of the last use
        self.time = 0
        kernel = matrix.kernel
        self.single = matrix.points.single(kernel.shift_invariant and not matrix.rows.sparse)
        self.kernel, self.points, self.rows = kernel.take(active), self.single, matrix.rows
        if active.shape[0] < m:
            self.points, self.rows = self.single.take(active), matrix.rows.take(active)

    @property
    def keeps(self) -> bool:
        """Whether columns are kept."""
        return self.whole is not None or self.values.shape[0] > 0

    def between(self, numbers: Vector) -> Vector:
        """k(xᵢ, xⱼ) of all pairs of some active rows."""
        if self.whole is not None:
            found: Vector = self.whole
            return found if numbers.shape[0] == found.shape[0] else found[np.ix_(numbers, numbers)]
        out = np.empty((numbers.shape[0], numbers.shape[0]))
        place = self.place[numbers]
        kept = np.flatnonzero(place >= 0)
        gather(self.values, place[kept], np.searchsorted(self.active, numbers), kept, out)
        others = np.flatnonzero(place < 0)
        if others.size:
            kernel, points = self.matrix.kernel.take(numbers), self.single.take(numbers)
            parts = [(part,) for part in np.array_split(others, self.matrix.threads.size)]

            def compute(part: Vector) -> None:
                rows = self._rows(numbers[part])
                for some in slices(0, numbers.shape[0], tile_points(points)):
                    out[part, some] = kernel.take(some).between(rows, points.take(some).dense())

            self._in_threads(compute, parts)
        return out

    def restrict(self, places: Vector) -> "KernelColumns":
        """The columns at some of the active rows only, given by their places, where no column is kept."""
        other = copy(self)
        other.active = self.active[places]
        other.kernel, other.points = self.matrix.kernel.take(other.active), self.single.take(other.active)
        other.rows = self.matrix.rows.take(other.active)
        return other

    def add(self, numbers: Vector, coefficients: Vector, out: Vector) -> None:
        """out[i] += Σⱼ coefficientⱼ k(xⱼ, xᵢ) at the active rows i, summed in double precision."""
        threads = self.matrix.threads
        if self.whole is not None:
            values, places = self.whole, numbers
        elif self.values.shape[0] >= 2 * numbers.shape[0]:
            values, places = self.values, self._places(numbers)
        else:
            self._add_computed(numbers, coefficients, out)
            return
        threads.run(
            lambda start, stop: add_lines(values, places, coefficients, start, stop, out),
            list(threads.ranges(out.shape[0])),
        )

    def add_all(self, coefficients: Vector, out: Vector) -> None:
        """`add` for all rows with a coefficient other than 0."""
        support = np.flatnonzero(coefficients)
        self.add(support, coefficients[support], out)

    def _places(self, numbers: Vector) -> Vector:
        """The places of some columns in `values`; those that are missing are computed."""
        self.time += 1
        place = self.place[numbers]
        self.used[place[place >= 0]] = self.time
        missing = numbers[place < 0]
        if missing.size:
            oldest = np.argpartition(self.used, missing.size - 1)[: missing.size]
            dropped = self.owner[oldest]
            self.place[dropped[dropped >= 0]] = -1
            self.owner[oldest], self.place[missing], self.used[oldest] = missing, oldest, self.time

            def keep(i: int, j: int, values: Vector) -> None:
                self.values[oldest[i : i + values.shape[0]], j : j + values.shape[1]] = values

            self._for_tiles(missing, keep)
        return self.place[numbers]

    def _add_computed(self, numbers: Vector, coefficients: Vector, out: Vector) -> None:

        def add(i: int, j: int, values: Vector) -> None:
            n, width = values.shape
            add_lines(values, np.arange(n), coefficients[i : i + n], 0, width, out[j : j + width])

        self._for_tiles(numbers, add)

    def _for_tiles(self, numbers: Vector, use: Callable[..., None]) -> None:
        """`use(i, j, values)` for the tiles of the columns of some rows; the threads share the active rows."""

        def work(start: int, stop: int) -> None:
            for lines in slices(0, numbers.shape[0], TILE_ROWS):
                rows = self._rows(numbers[lines])
                for some in slices(start, stop, TILE_POINTS):
                    use(lines.start, some.start, self.kernel.take(some).between(rows, self.points.take(some)))

        def work_sparse(start: int, stop: int) -> None:
            for lines in slices(0, numbers.shape[0], tile_points(self.single)):
                kernel, points = self.matrix.kernel.take(numbers[lines]), self.single.take(numbers[lines]).dense()
                for some in slices(start, stop, SPARSE_ROWS):
                    values = kernel.between(self.rows.between(some.start, some.stop), points)
                    use(lines.start, some.start, np.ascontiguousarray(values.T))

        ranges = list(self.matrix.threads.ranges(self.active.shape[0]))
        self._in_threads(work_sparse if self.single.sparse else work, ranges)

    def _rows(self, numbers: Vector) -> Block:
        """Some rows in single precision."""
        if self.single.shape[0] and not self.matrix.rows.sparse:
            return Dense(np.ascontiguousarray(self.single.columns[:, numbers].T))
        block: Block = self.matrix.rows.take(numbers)
        return block

    def _in_threads(self, work: Callable[..., None], parts: Any) -> None:
        threads = self.matrix.threads
        with threads.blas_limited(working=True):
            threads.run(work, parts)


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """A range in parts."""
    return (slice(i, min(i + step, stop)) for i in range(start, stop, step))


def tile_points(points: Any) -> int:
    """The number of points of a tile."""
    return max(16, min(TILE_POINTS, SPARSE_ENTRIES // points.shape[0])) if points.sparse else TILE_POINTS


def is_cheap(matrix: Any) -> bool:
    """Whether columns take less time to compute than to read."""
    dense = matrix.kernel.by_products and not matrix.rows.sparse
    return dense and matrix.points.shape[0] <= FEW_FEATURES and matrix.shape[0] > MANY_ROWS


@kernel
def gather(values, places, positions, lines, out):  # type: ignore[no-untyped-def]  # compiled
    """out[lines[a], b] = values[places[a], positions[b]]."""
    for a in range(places.shape[0]):
        source = values[places[a]]
        target = out[lines[a]]
        for b in range(positions.shape[0]):
            target[b] = source[positions[b]]


@kernel
def add_lines(values, places, coefficients, start, stop, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i] += Σⱼ coefficientⱼ · values[placeⱼ, i] for start ≤ i < stop, in double precision."""
    for first in range(start, stop, 1024):
        last = min(first + 1024, stop)
        part = out[first:last]
        for j in range(places.shape[0]):
            c = coefficients[j]
            line = values[places[j], first:last]
            for i in range(part.shape[0]):
                part[i] += c * line[i]
