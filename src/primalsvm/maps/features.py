"""φ of many rows, kept in memory or computed again in each pass."""

from typing import Any

import numpy as np

from primalsvm.data import (
    Block,
    Dense,
    FeatureMap,
    InMemory,
    LocalDataset,
    Mapped,
    ThreadPool,
    Weights,
    Whitened,
)
from primalsvm.maps.kernels import Matrix
from primalsvm.maps.nystroem import NystroemMap

ROWS_AT_ONCE = 512  # with 1,024 features in single precision they take 2 MB, which stay in the cache
ROWS_PER_LANDMARK = 200  # from which on whitening all rows costs more than whitening those that are needed
SLOTS = 256  # rows of a stream that are mapped together


def feature_matrix(feature_map: FeatureMap, block: Block, threads: ThreadPool, dtype: np.dtype[Any]) -> Matrix:
    """φ(x) of every row."""
    m = block.shape[0]
    out = np.empty((m, feature_map.n_components), dtype)

    def write(start: int, stop: int) -> None:
        for first in range(start, stop, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, stop)
            out[first:last] = feature_map.block(block.between(first, last))

    with threads.blas_limited(working=True):
        threads.run(write, list(threads.ranges(m)))
    return out


def mapped_dataset(
    feature_map: FeatureMap,
    block: Block,
    weights: Weights,
    threads: ThreadPool,
    dtype: np.dtype[Any],
    budget: float,
    passes_only: bool = False,
) -> LocalDataset:
    """The data set of φ(x) for weighted rows.

    Features that take more bytes than the budget are computed again in each pass. If the solver makes passes over all
    rows only, k(S, x) of many rows is kept without the whitening.
    """
    m, size = block.shape[0], dtype.itemsize
    if passes_only and isinstance(feature_map, NystroemMap):
        values = feature_map.kernel_values
        if m >= ROWS_PER_LANDMARK * values.n_components and m * values.n_components * size <= budget:
            kept = Dense(feature_matrix(values, block, threads, dtype))
            return Whitened(kept, feature_map.whitening, weights, threads)
    if m * feature_map.n_components * size <= budget:
        return InMemory(Dense(feature_matrix(feature_map, block, threads, dtype)), weights, threads)
    return Mapped(feature_map, block, dtype, weights, threads)


def stream_features(feature_map: FeatureMap, block: Block, position: int) -> Matrix:
    """φ of a batch of a stream whose first row is number `position`; the same bits for every division into batches.

    BLAS rounds differently for matrices of other shapes. Therefore each row is put into a block of fixed shape, at the
    place that follows from its number.
    """
    m = block.shape[0]
    parts = []
    first = 0
    while first < m:
        slot = (position + first) % SLOTS
        n = min(SLOTS - slot, m - first)
        around = first + np.clip(np.arange(SLOTS) - slot, 0, n - 1)  # fill up with rows of the stream, as others
        parts.append(feature_map.block(block.take(around))[slot : slot + n])  # may be outside the kernel's domain
        first += n
    return np.concatenate(parts)
