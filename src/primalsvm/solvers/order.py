"""In which order to visit rows: random enough to converge, sequential enough for memory.

A uniformly random order costs a cache miss per row; visiting shuffled blocks of neighbours does not, but on a file
sorted by label it converges ten times worse. So: rows are cut into short runs of neighbours, the runs are shuffled,
and a working block takes one row of each of `STREAMS` runs in turn. Each run is read sequentially, and neighbours in
the visiting order come from far-apart places.
"""

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.rows import Vector

RUN = 32  # rows in a run: about 10 KiB of text-like data, a few pages
STREAMS = 16  # runs read side by side: as many as hardware prefetchers follow
AHEAD = 4  # rows between a prefetch of a row's entries and their use
FAR_AHEAD = 24  # rows between a prefetch of what is kept per row, its place in memory included, and their use


def run_length(m: int) -> int:
    """Rows in a run: 1 (a plain permutation) for small data, where memory does not matter.

    Examples
    --------
    >>> run_length(100), run_length(10_000), run_length(1_000_000)
    (1, 9, 32)
    """
    return int(np.clip(m // 1024, 1, RUN))


def shuffled_runs(rng: np.random.Generator, m: int) -> Vector:
    """The first rows of all runs, in random order."""
    length = run_length(m)
    return rng.permutation(-(-m // length)).astype(np.uint64) * np.uint64(length)


def room_for_order(m: int) -> Vector:
    """An array that `interleave` can write the order of m rows into."""
    return np.empty(m, np.uint32 if m < 2**32 else np.uint64)


@kernel
def interleave(starts, length, m, sleep, out):  # type: ignore[no-untyped-def]  # compiled
    """Write the visiting order of the rows that are awake; returns how many. The others sleep one sweep less."""
    n = 0
    for first in range(0, starts.shape[0], STREAMS):
        last = min(first + STREAMS, starts.shape[0])
        for offset in range(np.uint64(length)):
            for r in range(first, last):
                i = starts[r] + offset
                if i >= m:
                    continue
                if sleep.shape[0] > 0 and sleep[i] > 0:
                    sleep[i] -= np.uint8(1)
                    continue
                out[n] = i
                n += 1
    return n
