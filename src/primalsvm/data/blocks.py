"""Blocks: rows in memory, which compiled kernels read in place.

`dot`, `add`, `squared_norm`, … are the operations of kernels on a row. Each kind of block (`csr`, `dense`,
`kernel_rows`, `pairs`) implements them, so a solver is written once. A block of an unknown kind is a compilation error.

The arrays are those of the caller, without copies: float32, float64 or uint8 values, 32- or 64-bit indices, read-only
or not. Indices are viewed as unsigned, because a signed index costs a wrap-around test at every access (measured: twice
the time).
"""

from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from primalsvm.compiled import kernel

Vector: TypeAlias = npt.NDArray[Any]

CACHE_LINE = 64  # bytes


class Block(Protocol):
    """Rows that kernels read; the class of each kind is a NamedTuple of arrays."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, d)."""

    @property
    def entries(self) -> int:
        """The number of stored entries."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the stored values."""

    @property
    def sparse(self) -> bool:
        """Whether only some entries of a row are stored; then K vectors of weights are stored feature by feature."""

    @property
    def kernel_rows(self) -> bool:
        """Whether the rows are rows of a kernel matrix: a vector of weights is one of coefficients."""

    def nbytes_of(self, chosen: Vector | None = None) -> int:
        """The bytes of the stored entries, of all rows or of the chosen ones."""

    def take(self, chosen: Vector) -> Self:
        """Copies of the chosen rows."""

    def between(self, start: int, stop: int) -> Self:
        """The rows start ≤ i < stop, in place."""

    def join(self, other: Any) -> Self:
        """These rows, followed by those of another block of the same kind."""

    def matrix(self) -> Any:
        """The rows as a NumPy array or a SciPy matrix, in place."""

    def check(self, first: int = 0) -> None:
        """Raise a ValueError that names the first row that is not valid; rows are counted from `first`."""

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        """out += sign · Σ rootᵢ² (xᵢ, 1)(xᵢ, 1)ᵀ over the chosen rows, the lower triangle."""

    def products(self, chosen: Vector) -> Vector:
        """⟨xᵢ, xⱼ⟩ of all pairs of the chosen rows, the lower triangle, in double precision."""

    def add_diagonal(self, k: Vector, out: Vector) -> None:
        """out += Σ kᵢ xᵢ², feature by feature."""

    def checksum(self) -> str:
        """A checksum of all rows."""


class Weights(NamedTuple):
    """Row weights cᵢ = values[i · stride]; stride 0 gives every row the same weight without storing it."""

    values: Vector
    stride: int

    def between(self, start: int, stop: int) -> "Weights":
        """The weights of the rows start ≤ i < stop."""
        return self if self.stride == 0 else Weights(self.values[start:stop], 1)

    def take(self, chosen: Vector) -> "Weights":
        """The weights of the chosen rows."""
        return self if self.stride == 0 else Weights(self.values[chosen], 1)

    def array(self, m: int) -> Vector:
        """One number for each of m rows."""
        return np.broadcast_to(self.values, (m,))

    def total(self, m: int) -> float:
        """Σc of m rows."""
        return float(self.values.sum()) if self.stride else float(self.values[0]) * m


EQUAL_WEIGHTS = Weights(np.ones(1), 0)


class Batch(NamedTuple):
    """A block with the targets and weights of its rows: the argument of kernels that visit rows one by one."""

    rows: Any
    y: Vector
    weight: Weights

    def take(self, chosen: Vector) -> "Batch":
        """Copies of the chosen rows."""
        return Batch(self.rows.take(chosen), self.y[chosen], self.weight.take(chosen))

    def join(self, other: "Batch") -> "Batch":
        """These rows, followed by others."""
        weights = [batch.weight.array(batch.y.shape[0]) for batch in (self, other)]
        y = np.concatenate([self.y, other.y])
        return Batch(self.rows.join(other.rows), y, Weights(np.concatenate(weights), 1))

    def widen(self, d: int) -> "Batch":
        """The same sparse rows with more columns, which are zero."""
        return self._replace(rows=self.rows.widen(d))


# ---- operations of kernels on a row ----------------------------------------------------------------------------------


def dot(rows: Any, i: Any, w: Any) -> Any:
    """⟨xᵢ, w⟩, summed in w's precision."""


def add(rows: Any, i: Any, c: Any, w: Any) -> None:
    """w ← w + c xᵢ."""


def squared_norm(rows: Any, i: Any) -> Any:
    """‖xᵢ‖², in double precision."""


def product(rows: Any, i: Any, j: Any) -> Any:
    """⟨xᵢ, xⱼ⟩, in double precision."""


def prefetch_row(rows: Any, i: Any) -> None:
    """Start loading row i into the cache."""


def prefetch_pointer(rows: Any, i: Any) -> None:
    """Start loading the pointer to row i, for a later `prefetch_row`."""


def weight_of(weight: Any, i: Any) -> Any:
    """cᵢ."""


# Of K vectors v₁ … v_K at once, stored as `vectors` describes:


def dots(rows: Any, i: Any, V: Any, out: Any) -> None:
    """out[k] ← ⟨xᵢ, v_k⟩ for all k, summed in out's precision (dense rows: in V's); `width` is its length."""


def add_outer(rows: Any, i: Any, c: Any, V: Any) -> None:
    """v_k ← v_k + c[k] xᵢ for all k; c is as long as `dots`' out."""


def width(rows: Any, V: Any) -> Any:
    """The length of `out` and c: K, with the padding."""


@intrinsic
def prefetch(context: Any, array: Any, index: Any) -> Any:
    """Start loading array[index] into the cache."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(ctx, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        i32 = ir.IntType(32)
        signature_ = ir.FunctionType(ir.VoidType(), [pointer.type, i32, i32, i32])
        prefetch = cgutils.get_or_insert_function(builder.module, signature_, "llvm.prefetch.p0")
        builder.call(prefetch, [pointer, i32(0), i32(3), i32(1)])  # read, keep in all levels, data
        return ctx.get_dummy_value()

    return types.void(array, index), codegen


@overload(weight_of)
def _weight_of(weight: Any, i: Any) -> Any:
    def strided(weight: Any, i: Any) -> Any:
        return weight.values[i * np.uint64(weight.stride)]

    return strided


# ---- passes over the rows of a block ---------------------------------------------------------------------------------


@kernel
def scores_of(rows, w, out):  # type: ignore[no-untyped-def]  # compiled: types come from the arguments
    """out[i] = ⟨xᵢ, w⟩."""
    for i in range(np.uint64(out.shape[0])):
        out[i] = dot(rows, i, w)


@kernel
def combine_rows(rows, weight, alpha, out):  # type: ignore[no-untyped-def]  # as above
    """out += Σ cᵢ αᵢ xᵢ."""
    for i in range(np.uint64(alpha.shape[0])):
        coefficient = weight_of(weight, i) * alpha[i]
        if coefficient != 0.0:
            add(rows, i, coefficient, out)


@kernel
def squared_norms_of(rows, chosen, out):  # type: ignore[no-untyped-def]  # as above
    """out[k] = ‖x‖² of row chosen[k]."""
    for k in range(chosen.shape[0]):
        out[k] = squared_norm(rows, np.uint64(chosen[k]))


@kernel
def scaled_rows_of(rows, chosen, scale, out):  # type: ignore[no-untyped-def]  # as above
    """out[k] = scale[k] · row chosen[k], as dense rows."""
    for k in range(chosen.shape[0]):
        line = out[k]
        line[:] = 0.0
        add(rows, np.uint64(chosen[k]), scale[k], line)


@kernel
def inner(x, y):  # type: ignore[no-untyped-def]  # as above
    """⟨x, y⟩ in double precision."""  # not BLAS: its threads spin for a while and take the cores of the thread pool
    total = 0.0
    for j in range(x.shape[0]):
        total += np.float64(x[j]) * np.float64(y[j])
    return total
