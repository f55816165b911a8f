"""Dense rows."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from primalsvm.compiled import implement, kernel
from primalsvm.data import blocks
from primalsvm.data.blocks import CACHE_LINE, Vector, add, dot, prefetch
from primalsvm.data.csr import CSR, crc
from primalsvm.data.dense_gram import add_dense_gram, dense_products


class Dense(NamedTuple):
    """Dense rows, C-contiguous."""

    values: Vector

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def entries(self) -> int:
        return int(self.values.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    @property
    def sparse(self) -> bool:
        return False

    @property
    def kernel_rows(self) -> bool:
        return False

    def nbytes_of(self, chosen: Vector | None = None) -> int:
        m = self.values.shape[0] if chosen is None else chosen.shape[0]
        return int(m * self.values.shape[1] * self.values.itemsize)

    def take(self, chosen: Vector) -> "Dense":
        return Dense(self.values[chosen])

    def between(self, start: int, stop: int) -> "Dense":
        return Dense(self.values[start:stop])

    def join(self, other: Any) -> "Dense":
        if not isinstance(other, Dense):
            raise ValueError("sparse and dense rows cannot be joined")
        return Dense(np.concatenate([self.values, other.values]))

    def matrix(self) -> Any:
        """The rows as a NumPy array, in place."""
        return self.values

    def check(self, first: int = 0) -> None:
        row = -1 if self.values.dtype == np.uint8 else _first_not_finite(self.values)
        if row >= 0:
            raise ValueError(f"Input X contains NaN or infinity (first seen in row {first + row})")

    def in_order(self) -> "Dense":
        """The rows themselves: their columns are always in order."""
        return self

    def feature_sizes(self) -> Vector:
        """The root mean square of each feature's entries that are not 0; NaN for a feature without any."""
        values = self.values.astype(float)
        with np.errstate(invalid="ignore"):
            sizes: Vector = np.sqrt(np.square(values).sum(axis=0) / np.count_nonzero(values, axis=0))
        return sizes

    def for_many_vectors(self, count: int) -> "Dense | CSR":
        """The rows in the best format for `count` vectors at once: sparse, if these are more than the features.

        Loops over so few features are mostly overhead; loops over all vectors are long enough.
        """
        m, d = self.values.shape
        if d > count:
            return self
        indices = np.broadcast_to(np.arange(d, dtype=np.uint32), (m, d)).reshape(-1)
        return CSR(self.values.reshape(-1), indices, np.arange(m + 1, dtype=np.uint64) * np.uint64(d), d)

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        d = self.values.shape[1]
        add_dense_gram(partial(blocks.scaled_rows_of, self), d, chosen, roots, sign, single, out)

    def products(self, chosen: Vector) -> Vector:
        return dense_products(self.values, chosen)

    def add_diagonal(self, k: Vector, out: Vector) -> None:
        _add_diagonal(self.values, k, out)

    def checksum(self) -> str:
        return crc(self.values)


@implement(blocks.dot, Dense)
def dot_row(rows, i, w):  # type: ignore[no-untyped-def]  # compiled
    """⟨xᵢ, w⟩."""
    x = rows.values[i]
    s = w.dtype.type(0)
    for j in range(x.shape[0]):
        s += w.dtype.type(x[j]) * w[j]
    return s


@implement(blocks.add, Dense)
def _add(rows, i, c, w):  # type: ignore[no-untyped-def]  # compiled
    x = rows.values[i]
    c = w.dtype.type(c)
    for j in range(x.shape[0]):
        w[j] += c * w.dtype.type(x[j])


@implement(blocks.squared_norm, Dense)
def _squared_norm(rows, i):  # type: ignore[no-untyped-def]  # compiled
    x = rows.values[i]
    s = 0.0
    for j in range(x.shape[0]):
        s += np.float64(x[j]) * np.float64(x[j])
    return s


@implement(blocks.product, Dense)
def _product(rows, i, j):  # type: ignore[no-untyped-def]  # compiled
    x, z = rows.values[i], rows.values[j]
    s = 0.0
    for k in range(x.shape[0]):
        s += np.float64(x[k]) * np.float64(z[k])
    return s


@implement(blocks.prefetch_row, Dense)
def prefetch_values(rows, i):  # type: ignore[no-untyped-def]  # compiled
    """Start loading row i."""
    d = np.uint64(rows.values.shape[1])
    for j in range(i * d, (i + np.uint64(1)) * d, np.uint64(CACHE_LINE // rows.values.itemsize)):
        prefetch(rows.values, j)


@implement(blocks.prefetch_pointer, Dense)
def prefetch_nothing(rows, i):  # type: ignore[no-untyped-def]  # compiled
    """Where row i is follows from i."""


@implement(blocks.width, Dense)
def _width(rows, V):  # type: ignore[no-untyped-def]  # compiled
    return V.shape[0]


@implement(blocks.dots, Dense)
def _dots(rows, i, V, out):  # type: ignore[no-untyped-def]  # compiled
    for k in range(np.uint64(out.shape[0])):
        out[k] = dot(rows, i, V[k])


@implement(blocks.add_outer, Dense)
def _add_outer(rows, i, c, V):  # type: ignore[no-untyped-def]  # compiled
    for k in range(np.uint64(c.shape[0])):
        if c[k] != 0:
            add(rows, i, c[k], V[k])


@kernel
def _first_not_finite(values):  # type: ignore[no-untyped-def]  # compiled
    """The first row with NaN or infinity; −1: none."""
    for i in range(values.shape[0]):
        x = values[i]
        total = values.dtype.type(0)
        for j in range(x.shape[0]):
            total += x[j] * values.dtype.type(0)
        if total != 0:  # NaN too
            return i
    return -1


@kernel
def _add_diagonal(values, k, out):  # type: ignore[no-untyped-def]  # compiled
    """out += Σ kᵢ xᵢ², feature by feature."""
    for i in range(np.uint64(k.shape[0])):
        x = values[i]
        for j in range(x.shape[0]):
            out[j] += k[i] * np.float64(x[j]) * np.float64(x[j])
