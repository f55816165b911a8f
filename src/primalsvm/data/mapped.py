"""Features φ(x) of rows by a feature map, computed again in each pass because they do not fit in memory."""

from typing import Any, Protocol

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights
from primalsvm.data.dense import Dense
from primalsvm.data.reads import Computed
from primalsvm.data.threads import ThreadPool


class FeatureMap(Protocol):
    """φ."""

    @property
    def n_components(self) -> int:
        """The number of features."""

    def block(self, rows: Any) -> Vector:
        """φ(x) for each row of a block."""


class Mapped(Computed):
    """φ(x) of the rows of a block."""

    block_bytes = 2**22  # so that features are still in the cache when they are used (a fifth faster than 2**23)

    def __init__(
        self, feature_map: FeatureMap, block: Block, dtype: Any, weights: Weights, threads: ThreadPool
    ) -> None:
        m, d = block.shape[0], feature_map.n_components
        super().__init__((m, d), np.dtype(dtype), weights, threads)
        self.feature_map, self.rows = feature_map, block

    def take(self, numbers: Vector) -> Dense:
        return Dense(self.feature_map.block(self.rows.take(numbers)))
