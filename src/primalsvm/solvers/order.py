"""The order in which rows are visited: random enough to converge, sequential enough for memory.

A uniformly random order costs a cache miss per row; visiting shuffled blocks of neighbours does not, but on a file
sorted by label it converges ten times worse. So rows are divided into short runs of neighbours, the runs are shuffled,
and the order takes one row of each of `STREAMS` runs in turn. Each run is read sequentially, and neighbours in the
order come from far-apart places.
"""

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Vector

# The number of rows in a run: about 10 KiB of text-like data, a few pages.
RUN = 32
# This many runs are read side by side: as many as hardware prefetchers follow.
STREAMS = 16
# The entries of a row are prefetched this many rows before their use.
PREFETCH_DISTANCE = 4
# The pointer and the numbers of a row are prefetched this many rows before their use.
POINTER_PREFETCH_DISTANCE = 24


def run_length(m: int) -> int:
    """Rows in a run: 1 (a plain permutation) for small data, where memory does not matter.

    Examples
    --------
    >>> run_length(100), run_length(10_000), run_length(1_000_000)
    (1, 9, 32)
    """
    return min(max(m // 1024, 1), RUN)


def shuffled_runs(rng: np.random.Generator, m: int) -> Vector:
    """The first rows of all runs, in random order."""
    length = run_length(m)
    return rng.permutation(-(-m // length)).astype(np.uint64) * np.uint64(length)


def empty_order(m: int) -> Vector:
    """An array for the order of m rows, as `interleave` writes it."""
    return np.empty(m, np.uint32 if m < 2**32 else np.uint64)


def write_order(rng: np.random.Generator, skip: Vector, out: Vector) -> int:
    """Write a fresh order of the active rows; returns how many there are. See `interleave`."""
    m = out.shape[0]
    return int(interleave(shuffled_runs(rng, m), run_length(m), m, skip, out))


@kernel
def interleave(starts, length, m, skip, out):  # type: ignore[no-untyped-def]  # compiled
    """Write the order of the active rows, those with skip = 0 (or all, if `skip` is empty); returns how many.

    For the others skip is reduced by 1.
    """
    n = 0
    for first in range(0, starts.shape[0], STREAMS):
        last = min(first + STREAMS, starts.shape[0])
        for offset in range(np.uint64(length)):
            for r in range(first, last):
                i = starts[r] + offset
                if i >= m:
                    continue
                if skip.shape[0] > 0 and skip[i] > 0:
                    skip[i] -= np.uint8(1)
                    continue
                out[n] = i
                n += 1
    return n
