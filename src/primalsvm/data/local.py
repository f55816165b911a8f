"""Data sets whose rows this process reads: handles are NumPy arrays, in memory or in a file."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from functools import reduce as fold
from typing import Any, Self

import numpy as np

from primalsvm.data.blocks import Block, Vector, Weights, scaled_rows_of, squared_norms_of
from primalsvm.data.dataset import SAMPLED_ROWS, Dataset, Handle, add_results, add_weighted_gram
from primalsvm.data.dense_gram import add_dense_gram
from primalsvm.data.threads import ThreadPool

# With at least this many rows the threads share functions of handles: fewer take less time than starting threads.
SHARED_ROWS = 2**17


class LocalDataset(Dataset):
    """Rows that are divided into a range for each thread, and read in blocks.

    Subclasses define the blocks, and how rows are taken by their numbers.
    """

    weights: Weights

    def __init__(
        self, shape: tuple[int, int], entries: int, nbytes: int, dtype: Any, sparse: bool, weights: Weights,
        threads: ThreadPool,
    ) -> None:  # fmt: skip
        self.shape, self.entries, self.nbytes, self.dtype, self.sparse = shape, entries, nbytes, np.dtype(dtype), sparse
        self.weights, self.threads = weights, threads
        self.total_weight = weights.total(shape[0])

    @abstractmethod
    def blocks(self, start: int, stop: int) -> Iterator[tuple[int, int, Block]]:
        """The rows start ≤ i < stop as (first, last, block)."""

    def with_weights(self, weights: Weights) -> Self:
        """The same rows with other weights."""
        other = copy(self)
        other.weights, other.total_weight = weights, weights.total(self.shape[0])
        return other

    def with_threads(self, threads: ThreadPool) -> Self:
        """The same rows with other threads."""
        other = copy(self)
        other.threads = threads
        return other

    # ---- functions of pieces -----------------------------------------------------------------------------------------

    def map(self, function: Callable[..., Any], *handles: Handle, rows: bool = False, columns: int = 0) -> Handle:
        out = self.allocate(columns)
        if rows or self._shares_handles:
            self._run(function, (*handles, out), rows, None)
        else:
            function(*handles, out)
        return out

    def reduce(
        self,
        function: Callable[..., Any],
        *handles: Handle,
        rows: bool = False,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        return (
            self._run(function, handles, rows, merge or add_results)
            if rows or self._shares_handles
            else function(*handles)
        )

    @property
    def _shares_handles(self) -> bool:
        """Whether the threads share functions of handles; if not, a handle is one piece."""
        return self.threads.size > 1 and self.shape[0] >= SHARED_ROWS

    def _run(self, function: Callable[..., Any], handles: Any, rows: bool, merge: Any) -> Any:
        """The merged results of the function on the pieces of each block, or of each thread's range."""
        m = self.shape[0]

        def work(start: int, stop: int) -> Any:
            if not rows:
                return function(*[slice_of(handle, start, stop) for handle in handles])
            results = (
                function(block, *[slice_of(handle, first, last) for handle in handles])
                for first, last, block in self.blocks(start, stop)
            )
            if merge is None:
                for _ in results:
                    pass
                return None
            return fold(merge, results)

        ranges = [(start, stop) for start, stop in self.threads.ranges(m) if start < stop]
        results = self.threads.run(work, ranges or [(0, m)])
        return None if merge is None else fold(merge, results)

    def allocate(self, columns: int = 0) -> Vector:
        """An array for a new handle; each of several columns is contiguous."""
        return np.zeros((self.shape[0], columns), order="F") if columns else np.zeros(self.shape[0])

    def zeros(self) -> Handle:
        return self.allocate()

    def from_array(self, values: Vector) -> Handle:
        return values

    def to_array(self, handle: Handle) -> Vector:
        values: Vector = handle
        return values

    def weight_array(self) -> Vector:
        return self.weights.array(self.shape[0])

    # ---- rows by their numbers ---------------------------------------------------------------------------------------

    @property
    def numbered(self) -> bool:
        return True

    @abstractmethod
    def take(self, numbers: Vector) -> Block: ...

    def subset(self, numbers: Vector) -> "LocalDataset":
        from primalsvm.data.in_memory import InMemory  # which imports this module

        return InMemory(self.take(numbers), self.weights.take(numbers), self.threads)

    def find(self, handle: Handle) -> Vector:
        return np.flatnonzero(handle)

    def get(self, handle: Handle, numbers: Vector) -> Any:
        return handle.take(numbers) if isinstance(handle, Weights) else handle[numbers]

    def put(self, numbers: Vector, values: Vector) -> Handle:
        out = self.allocate()
        out[numbers] = values
        return out

    def products(self, numbers: Vector) -> Vector:
        return self.take(numbers).products(np.arange(numbers.shape[0]))

    def squared_norms(self, n: int = SAMPLED_ROWS) -> Vector:
        m = self.shape[0]
        return self.squared_norms_of(np.linspace(0, m - 1, min(m, n)).astype(np.int64))

    def squared_norms_of(self, numbers: Vector) -> Vector:
        """‖x‖² of the rows with these numbers."""
        norms = np.empty(numbers.shape[0])
        squared_norms_of(self.take(numbers), np.arange(numbers.shape[0]), norms)
        return norms

    def gram(self, h: Handle, single: bool = False, out: Vector | None = None) -> Vector:
        d = self.shape[1]
        out = np.zeros((d + 1, d + 1), order="F") if out is None else out
        add_weighted_gram(self.add_gram, h, single, out)
        return out

    def add_gram(self, chosen: Vector, roots: Vector, sign: float, single: bool, out: Vector) -> None:
        """out += sign · Σ rootᵢ² (xᵢ, 1)(xᵢ, 1)ᵀ over the chosen rows, the lower triangle."""
        add_dense_gram(self.write_scaled, self.shape[1], chosen, roots, sign, single, out)

    def write_scaled(self, chosen: Vector, scale: Vector, out: Vector) -> None:
        """out[k] = scale[k] · row chosen[k]."""
        scaled_rows_of(self.take(chosen), np.arange(chosen.shape[0]), scale, out)


def slice_of(handle: Any, start: int, stop: int) -> Any:
    """The part of a handle that belongs to the rows start ≤ i < stop."""
    return handle.between(start, stop) if isinstance(handle, Weights) else handle[start:stop]
