"""Rows of a kernel matrix, which stand for rows φ(xᵢ): w = Σ wⱼ φ(xⱼ) is the vector of its coefficients."""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from primalsvm.compiled import implement
from primalsvm.data import blocks, dense
from primalsvm.data.blocks import Vector
from primalsvm.data.csr import crc
from primalsvm.data.dense import Dense


class KernelRows(NamedTuple):
    """Rows k(xᵢ, ·) of a kernel matrix."""

    values: Vector
    number: Vector  # which rows of the matrix they are

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
        return True

    def nbytes_of(self, chosen: Vector | None = None) -> int:
        m = self.values.shape[0] if chosen is None else chosen.shape[0]
        return int(m * self.values.shape[1] * self.values.itemsize)

    def take(self, chosen: Vector) -> "KernelRows":
        return KernelRows(self.values[chosen], self.number[chosen])

    def between(self, start: int, stop: int) -> "KernelRows":
        return KernelRows(self.values[start:stop], self.number[start:stop])

    def join(self, other: Any) -> "KernelRows":
        return KernelRows(np.concatenate([self.values, other.values]), np.concatenate([self.number, other.number]))

    def matrix(self) -> Any:
        return self.values

    def check(self, first: int = 0) -> None:
        Dense(self.values).check(first)

    def products(self, chosen: Vector) -> Vector:
        found: Vector = self.values[np.ix_(chosen, self.number[chosen])].astype(np.float64)
        return found

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        refuse_features()

    def add_diagonal(self, k: Vector, out: Vector) -> None:
        refuse_features()

    def checksum(self) -> str:
        return crc(self.values)


def refuse_features() -> NoReturn:
    """Raise an error: what needs features is not possible with rows of a kernel matrix."""
    raise NotImplementedError("rows of a kernel matrix stand for φ(x), the features of which are not known")


implement(blocks.dot, KernelRows)(dense.dot_row)
implement(blocks.prefetch_row, KernelRows)(dense.prefetch_values)
implement(blocks.prefetch_pointer, KernelRows)(dense.prefetch_nothing)


@implement(blocks.add, KernelRows)
def _add(rows, i, c, w):  # type: ignore[no-untyped-def]  # compiled
    w[rows.number[i]] += w.dtype.type(c)


@implement(blocks.squared_norm, KernelRows)
def _squared_norm(rows, i):  # type: ignore[no-untyped-def]  # compiled
    return np.float64(rows.values[i, rows.number[i]])
