"""φ of many rows: a data set of features, kept in memory or computed again in each pass; scores without keeping any."""

from typing import Any

import numpy as np

from primalsvm.data import (
    EQUAL_WEIGHTS,
    Block,
    Dense,
    FeatureMap,
    InMemory,
    LocalDataset,
    Mapped,
    ThreadPool,
    Vector,
    Weights,
    Whitened,
)
from primalsvm.maps.kernels import Matrix
from primalsvm.maps.nystroem import NystroemMap

ROWS_AT_ONCE = 512  # with 1,024 features 2 MB in single precision, which stays in the cache
ROWS_PER_LANDMARK = 200  # from which on whitening all rows costs more than whitening those that need it
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
    """The data set of the features of some rows.

    Parameters
    ----------
    feature_map, block, weights : φ, and the rows with their weights
    threads : compute the features now, and work on the data set later
    dtype : of the features
    budget : bytes that may be kept; features that take more are computed again in each pass
    passes_only : whether the solver looks at all rows at once. Then k(S, x) of many rows is kept, without the whitening
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


def scores(feature_map: FeatureMap, W: Vector, block: Block, threads: ThreadPool) -> Vector:
    """⟨w, φ(x)⟩ of every row and a vector w, or each row w_k of a matrix; each row is mapped once, and none is kept."""
    found: Vector = Mapped(feature_map, block, W.dtype, EQUAL_WEIGHTS, threads).scores(W)
    return found


def stream_features(feature_map: FeatureMap, block: Block, position: int) -> Matrix:
    """φ of rows of a stream, the first of which is its row number `position`: the same bits however the stream is cut.

    BLAS may round differently for matrices of another shape. So each row is put into the slot that its number says, in
    a block of fixed shape.
    """
    m = block.shape[0]
    parts = []
    first = 0
    while first < m:
        slot = (position + first) % SLOTS
        n = min(SLOTS - slot, m - first)
        around = first + np.clip(np.arange(SLOTS) - slot, 0, n - 1)  # fill up with rows of the stream: any others may
        parts.append(feature_map.block(block.take(around))[slot : slot + n])  # be beyond what the kernel is made for
        first += n
    return np.concatenate(parts)
