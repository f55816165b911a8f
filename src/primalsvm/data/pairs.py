"""Differences of pairs of rows, for pairwise ranking. They are for kernels that visit rows; there are no passes."""

from typing import Any, NamedTuple

from primalsvm.compiled import implement
from primalsvm.data import blocks
from primalsvm.data.blocks import Vector, add, dot, prefetch_pointer, prefetch_row, product, squared_norm


class Pairs(NamedTuple):
    """Row k is x_high[k] − x_low[k]."""

    rows: Any  # sparse or dense
    high: Vector
    low: Vector

    @property
    def shape(self) -> tuple[int, int]:
        return self.high.shape[0], self.rows.shape[1]


@implement(blocks.dot, Pairs)
def _dot(rows, i, w):  # type: ignore[no-untyped-def]  # compiled
    return dot(rows.rows, rows.high[i], w) - dot(rows.rows, rows.low[i], w)


@implement(blocks.add, Pairs)
def _add(rows, i, c, w):  # type: ignore[no-untyped-def]  # compiled
    add(rows.rows, rows.high[i], c, w)
    add(rows.rows, rows.low[i], -c, w)


@implement(blocks.squared_norm, Pairs)
def _squared_norm(rows, i):  # type: ignore[no-untyped-def]  # compiled
    high, low = rows.high[i], rows.low[i]
    both = squared_norm(rows.rows, high) + squared_norm(rows.rows, low)
    return max(both - 2.0 * product(rows.rows, high, low), 0.0)


@implement(blocks.prefetch_row, Pairs)
def _prefetch_row(rows, i):  # type: ignore[no-untyped-def]  # compiled
    prefetch_row(rows.rows, rows.high[i])
    prefetch_row(rows.rows, rows.low[i])


@implement(blocks.prefetch_pointer, Pairs)
def _prefetch_pointer(rows, i):  # type: ignore[no-untyped-def]  # compiled
    prefetch_pointer(rows.rows, rows.high[i])
    prefetch_pointer(rows.rows, rows.low[i])
