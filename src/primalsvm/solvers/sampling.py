"""The choice of the rows that a stochastic solver visits.

    iid        independent draws
    distinct   k distinct rows each step
    epochs     a fresh permutation of all rows each epoch
    blocks     shuffled blocks of neighbours (`order`): nearly as random as epochs, and read sequentially

A `Sampler` is part of its solver's state, so a run can be interrupted and resumed with bit-identical results.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Vector
from primalsvm.solvers.order import STREAMS, interleave, run_length, shuffled_runs

Sampling = Literal["iid", "distinct", "epochs", "blocks"]
SAMPLINGS = ("blocks", "epochs", "iid", "distinct")

BLOCK = 65_536  # the number of rows that are shuffled at a time
_ALL_ACTIVE = np.zeros(0, np.uint8)


@kernel
def draw_distinct(pool, uniform, k, out):  # type: ignore[no-untyped-def]  # compiled
    """k distinct rows for every step: the first k places of a Fisher-Yates shuffle of `pool`."""
    m = pool.shape[0]
    for first in range(0, out.shape[0], k):
        for j in range(k):
            other = j + int(uniform[first + j] * (m - j))
            pool[j], pool[other] = pool[other], pool[j]
            out[first + j] = pool[j]


def _no_rows() -> Vector:
    return np.zeros(0, np.uint64)


@dataclass
class Sampler:
    """An endless stream of rows out of m, in steps of k; the generator is part of it.

    Examples
    --------
    >>> rows = Sampler("epochs", m=4, k=1, rng=np.random.default_rng(0)).draw(8)
    >>> sorted(rows[:4].tolist()), sorted(rows[4:].tolist())
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """

    kind: Sampling
    m: int
    k: int
    rng: np.random.Generator
    pool: Vector = field(default_factory=_no_rows)  # all rows, to draw distinct ones from
    pending: Vector = field(default_factory=_no_rows)  # rows already drawn and not handed out yet
    starts: Vector = field(default_factory=_no_rows)  # runs of the present epoch that have not been visited

    def __post_init__(self) -> None:
        if self.kind == "distinct" and self.k > self.m:
            raise ValueError(f"batch_size={self.k} is more than the {self.m} rows to draw distinct ones from")
        if self.kind == "distinct" and not self.pool.size:
            self.pool = np.arange(self.m, dtype=np.uint64)

    def draw(self, n: int) -> Vector:
        """The next n rows, a multiple of k."""
        if self.kind == "iid":
            return self.rng.integers(self.m, size=n, dtype=np.uint64)
        if self.kind == "distinct":
            rows = np.empty(n, np.uint64)
            draw_distinct(self.pool, self.rng.random(n), self.k, rows)
            return rows
        parts, missing = [self.pending], n - self.pending.shape[0]
        while missing > 0:
            part = self.rng.permutation(self.m).astype(np.uint64) if self.kind == "epochs" else self._block()
            parts.append(part)
            missing -= part.shape[0]
        rows = np.concatenate(parts)
        self.pending = rows[n:]
        return rows[:n]

    def _block(self) -> Vector:
        """The rows of the next few runs, shuffled; each epoch visits every run once."""
        if self.starts.shape[0] == 0:
            self.starts = shuffled_runs(self.rng, self.m)
        length = run_length(self.m)
        taken = max(STREAMS, BLOCK // length)
        rows = np.empty(min(taken, self.starts.shape[0]) * length, np.uint64)
        n = interleave(self.starts[:taken], length, self.m, _ALL_ACTIVE, rows)
        self.starts = self.starts[taken:]
        return rows[:n]
