"""φ of many rows: a block at a time, by a team, into memory or recomputed whenever needed."""

from typing import Any, Protocol

import numpy as np

from primalsvm.maps.kernels import Matrix
from primalsvm.maps.nystroem import NystroemMap
from primalsvm.rows import Dense, Distant, Mixed, Rows, Stored, Vector, between, shape, take
from primalsvm.team import Team

BLOCK = 512  # rows: with 1,024 features 2 MB in single precision, which stays in the cache
APART = 200  # rows per landmark from which whitening all of them costs more than whitening those that need it
SLOTS = 256  # rows of a stream that are mapped together


class FeatureMap(Protocol):
    """φ."""

    @property
    def n_components(self) -> int:
        """d."""

    def block(self, rows: Stored) -> Matrix:
        """φ(x) for each of a block of rows."""


def mapped(feature_map: FeatureMap, rows: Stored, team: Team, precision: np.dtype[Any]) -> Matrix:
    """φ(x) for every row, as a matrix."""
    m = shape(rows)[0]
    out = np.empty((m, feature_map.n_components), precision)

    def part(start: int, stop: int) -> None:
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            out[first:last] = feature_map.block(between(rows, first, last))

    with team.blas_limited(working=True):
        team.run(part, list(team.ranges(m)))
    return out


def as_features(
    feature_map: FeatureMap, rows: Stored, team: Team, precision: np.dtype[Any], budget: float, apart: bool = False
) -> Rows:
    """φ(x) of every row, kept if it fits the budget (in bytes), else computed again in each pass.

    `apart`: of many rows keep k(S, x) and the whitening apart; for solvers that mostly look at all rows at once.
    """
    m, size = shape(rows)[0], precision.itemsize
    if apart and isinstance(feature_map, NystroemMap):
        values = feature_map.simpler
        if m >= APART * values.n_components and m * values.n_components * size <= budget:
            return Mixed(Dense(mapped(values, rows, team, precision)), feature_map.whitening)
    if m * feature_map.n_components * size <= budget:
        return Dense(mapped(feature_map, rows, team, precision))
    return computed(feature_map, rows, precision)


def computed(feature_map: FeatureMap, rows: Stored, precision: np.dtype[Any]) -> Distant:
    """φ(x) of every row, computed whenever it is needed."""
    m, d = shape(rows)[0], feature_map.n_components
    return Distant(m, d, precision, lambda chosen: Dense(feature_map.block(take(rows, chosen))))


def in_slots(feature_map: FeatureMap, rows: Stored, position: int) -> Matrix:
    """φ of rows of a stream, the first of which is its row number `position`: the same bits however it is cut.

    BLAS may round differently for matrices of another shape. So each row is put into the slot that its number says, in
    a block of fixed shape.
    """
    m = shape(rows)[0]
    parts = []
    first = 0
    while first < m:
        slot = (position + first) % SLOTS
        n = min(SLOTS - slot, m - first)
        around = first + np.clip(np.arange(SLOTS) - slot, 0, n - 1)  # fill up with rows of the stream: any others may
        parts.append(feature_map.block(take(rows, around))[slot : slot + n])  # be beyond what the kernel is made for
        first += n
    return np.concatenate(parts)


def scores(feature_map: FeatureMap, w: Vector, rows: Stored, team: Team) -> Vector:
    """⟨w, φ(x)⟩ for every row, without keeping any features."""
    return team.scores(computed(feature_map, rows, w.dtype), w)


def scores_of_many(feature_map: FeatureMap, W: Matrix, rows: Stored, team: Team) -> Matrix:
    """⟨w_k, φ(x)⟩ for every row and every w_k, a row of W: each row is mapped once, and no features are kept."""
    m = shape(rows)[0]
    out = np.empty((m, W.shape[0]))

    def part(start: int, stop: int) -> None:
        for first in range(start, stop, BLOCK):
            last = min(first + BLOCK, stop)
            np.matmul(feature_map.block(between(rows, first, last)).astype(W.dtype), W.T, out=out[first:last])

    with team.blas_limited(working=True):
        team.run(part, list(team.ranges(m)))
    return out
