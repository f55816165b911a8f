"""The interface between solvers and data: rows xᵢ with weights cᵢ, wherever they are.

Everything that is a sum over rows (P, D, gradients, Hessians, certificates, predictions) goes through a `Dataset`, so
it runs where the rows are. Numbers that belong to rows (targets, scores, α) are *handles*: NumPy arrays in this
process, other objects where rows are elsewhere. Code outside this package does no arithmetic on handles; it passes
functions of pieces of them to `map`, `update` and `reduce`:

    map      function(*pieces, out)                a new handle; `out` is its piece, to be filled
    update   function(*pieces)                     changes its pieces in place
    reduce   function(*pieces) → numbers, arrays   summed over all pieces

With ``rows=True`` the function gets the block of the rows as its first argument. Functions are module-level functions
or `functools.partial` of them, so that they can be sent elsewhere. A data set must have `map` and `reduce` only;
the rest follows from them, and is overridden where there is a faster way.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from primalsvm.data.blocks import EQUAL_WEIGHTS, Block, Vector, combine_rows, scores_of, squared_norms_of
from primalsvm.data.threads import ThreadPool
from primalsvm.data.vectors import combine_many, many_scores_of, stored_vectors, vector_rows, zero_vectors

Handle: TypeAlias = Any

SAMPLED_ROWS = 1000  # the default number of rows for norms


class Dataset(ABC):
    """Rows with their weights.

    Attributes
    ----------
    shape : (m, d)
    weights : handle of the weights cᵢ; its pieces are `Weights`
    total_weight : Σc
    entries : the number of stored entries, which is the work of one pass
    nbytes : bytes of all rows
    dtype : of the stored values
    sparse : whether only some entries of a row are stored
    threads : the threads that work on the rows
    """

    shape: tuple[int, int]
    weights: Handle
    total_weight: float
    entries: int
    nbytes: int
    dtype: np.dtype[Any]
    sparse: bool
    threads: ThreadPool

    # ---- what a data set must have -----------------------------------------------------------------------------------

    @abstractmethod
    def map(self, function: Callable[..., Any], *handles: Handle, rows: bool = False, columns: int = 0) -> Handle:
        """A new handle that the function fills: one number for each row, or `columns` numbers."""

    @abstractmethod
    def reduce(
        self,
        function: Callable[..., Any],
        *handles: Handle,
        rows: bool = False,
        merge: Callable[[Any, Any], Any] | None = None,
    ) -> Any:
        """The function's results for all pieces, added up or merged; a tuple is merged entry by entry."""

    # ---- properties for solvers --------------------------------------------------------------------------------------

    @property
    def block(self) -> Block | None:
        """All rows as one block, if kernels can visit them in any order."""
        return None

    def block_for(self, count: int) -> Any:
        """All rows as one block in the best form for `count` vectors at once (`vectors`)."""
        return self.block

    @property
    def bytes_at_once(self) -> float:
        """The most bytes of rows to `take` at a time, if memory is short."""
        return math.inf

    def prefetch(self, numbers: Vector) -> None:  # noqa: B027  # most have nothing to do
        """Start reading rows for a later `take`, if they are in files."""

    @property
    def numbered(self) -> bool:
        """Whether rows can be taken by their numbers: `take`, `find`, `get`, `put`."""
        return False

    @property
    def kernel_rows(self) -> bool:
        """Whether the rows are rows of a kernel matrix: a vector of weights is one of coefficients."""
        return False

    @property
    def nbytes_for_columns(self) -> float:
        """The most bytes for `kernel_columns`."""
        return math.inf

    def kernel_columns(self, active: Vector, nbytes: float) -> Any:
        """Columns of the kernel matrix at the active rows, kept in at most `nbytes` bytes."""
        raise NotImplementedError(f"{type(self).__name__} has no kernel matrix")

    def with_threads(self, threads: ThreadPool) -> "Dataset":
        """The same rows with other threads of this process, if it uses any."""
        return self

    # ---- handles -----------------------------------------------------------------------------------------------------

    def update(self, function: Callable[..., Any], *handles: Handle) -> None:
        """Change the pieces of the handles in place by the function."""
        self.reduce(partial(_in_place, function), *handles)

    def zeros(self) -> Handle:
        """A handle with a zero for each row."""
        return self.map(_fill_with_zero)

    def from_array(self, values: Vector) -> Handle:
        """A handle with the values of an array that has a number, or a row of numbers, for each row."""
        raise NotImplementedError(f"{type(self).__name__} makes no handles from arrays")

    def to_array(self, handle: Handle) -> Vector:
        """The values of a handle."""
        found: Vector = self.reduce(_copy, handle, merge=_append)
        return found

    def weight_array(self) -> Vector:
        """The weight of each row."""
        return self.to_array(self.map(_weights, self.weights))

    # ---- passes over the rows ----------------------------------------------------------------------------------------

    def scores(self, W: Vector) -> Handle:
        """⟨w, xᵢ⟩ of a vector w of shape (d,), or of the K rows of a matrix W: K columns."""
        if W.ndim == 1:
            return self.map(partial(_scores, W), rows=True)
        return self.map(partial(_many_scores, stored_vectors(self, W)), rows=True, columns=W.shape[0])

    def combine(self, alpha: Handle, weighted: bool = True) -> Vector:
        """Σ cᵢ αᵢ xᵢ, of shape (d,); with `weighted` false without the weights."""
        d = self.shape[1]
        if weighted:
            return self._sum_over_rows(partial(_combination, d), self.weights, alpha)
        return self._sum_over_rows(partial(_plain_combination, d), alpha)

    def combine_many(self, alpha: Handle, count: int) -> Vector:
        """Σ cᵢ α_ik xᵢ for each of K columns, of shape (K, d)."""
        return self._sum_over_rows(partial(_combinations, count), self.weights, alpha)

    def gram(self, h: Handle, single: bool = False, out: Vector | None = None) -> Vector:
        """Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ: d + 1 rows and columns, the lower triangle.

        With `single` it is summed in single precision, with `out` added to that matrix.
        """
        found = self._sum_over_rows(partial(_gram, single), h)
        return found if out is None else np.add(out, found, out=out)

    def diagonal(self, k: Handle) -> Vector:
        """Σ kᵢ xᵢ², feature by feature."""
        return self._sum_over_rows(_diagonal, k)

    def squared_norms(self, n: int = SAMPLED_ROWS) -> Vector:
        """‖xᵢ‖² of at least min(m, n) rows, evenly spaced."""
        return self.to_array(self.map(_squared_norms, rows=True))

    def _sum_over_rows(self, function: Callable[..., Any], *handles: Handle) -> Vector:
        found: Vector = self.reduce(function, *handles, rows=True)
        return found

    # ---- rows by their numbers, if they have numbers -----------------------------------------------------------------

    def take(self, numbers: Vector) -> Block:
        """Copies of the rows with these numbers."""
        raise NotImplementedError(f"the rows of {type(self).__name__} cannot be taken one by one")

    def subset(self, numbers: Vector) -> "Dataset":
        """The rows with these numbers, in memory, with their weights."""
        raise NotImplementedError(f"the rows of {type(self).__name__} cannot be taken one by one")

    def restricted(self, numbers: Vector) -> "Dataset":
        """The rows with these numbers as a training set of their own: of a kernel matrix, their columns only.

        The threads share such sets, and each set has its share of the memory.
        """
        return self.subset(numbers)

    def find(self, handle: Handle) -> Vector:
        """The numbers of the rows whose entry is not zero."""
        raise NotImplementedError(f"the rows of {type(self).__name__} have no numbers")

    def get(self, handle: Handle, numbers: Vector) -> Any:
        """The entries of some rows; of the weights, `Weights`."""
        raise NotImplementedError(f"the rows of {type(self).__name__} have no numbers")

    def put(self, numbers: Vector, values: Vector) -> Handle:
        """A handle with these entries, and zeros elsewhere."""
        raise NotImplementedError(f"the rows of {type(self).__name__} have no numbers")

    def products(self, numbers: Vector) -> Vector:
        """⟨xᵢ, xⱼ⟩ of all pairs of these rows, the lower triangle, in double precision."""
        raise NotImplementedError(f"the rows of {type(self).__name__} cannot be taken one by one")

    def checksum(self) -> str:
        """A checksum of all rows that does not depend on rounding."""
        total, squares = self.reduce(_moments, self.scores(self._probe()))
        return f"{total:.6e} {squares:.6e}"

    def _probe(self) -> Vector:
        """A random vector, the same in each process."""
        return np.random.default_rng(0).normal(size=self.shape[1])


def add_results(first: Any, second: Any) -> Any:
    """The sum of two results of a function, entry by entry of tuples; arrays are added in place.

    Examples
    --------
    >>> add_results((1.0, np.ones(2)), (2.0, np.ones(2)))
    (3.0, array([2., 2.]))
    """
    if isinstance(first, tuple):
        return tuple(add_results(*pair) for pair in zip(first, second, strict=True))
    if isinstance(first, np.ndarray):
        first += second
        return first
    return first + second


def _in_place(function: Callable[..., Any], *pieces: Any) -> float:
    function(*pieces)
    return 0.0


def _fill_with_zero(out: Vector) -> None:
    out[...] = 0.0


def _weights(weight: Any, out: Vector) -> None:
    out[:] = weight.array(out.shape[0])


def _copy(values: Vector) -> Vector:
    return np.array(values)


def _append(first: Vector, second: Vector) -> Vector:
    return np.concatenate([first, second])


def _scores(w: Vector, block: Block, out: Vector) -> None:
    scores_of(block, w, out)


def _many_scores(V: Vector, block: Block, out: Vector) -> None:
    many_scores_of(block, V, 1.0, out)


def _combination(d: int, block: Block, weight: Any, alpha: Vector) -> Vector:
    out = np.zeros(d)
    combine_rows(block, weight, alpha, out)
    return out


def _plain_combination(d: int, block: Block, alpha: Vector) -> Vector:
    return _combination(d, block, EQUAL_WEIGHTS, alpha)


def _combinations(count: int, block: Block, weight: Any, alpha: Vector) -> Vector:
    V = zero_vectors(block, count, np.float64)
    combine_many(block, weight, alpha, V)
    return vector_rows(block, V, count)


def _gram(single: bool, block: Block, h: Vector) -> Vector:
    d = block.shape[1]
    out = np.zeros((d + 1, d + 1), order="F")
    add_weighted_gram(block.add_gram, h, single, out)
    return out


def add_weighted_gram(add_gram: Callable[..., None], h: Vector, single: bool, out: Vector) -> None:
    """out += Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ, given a function for hᵢ of one sign."""
    for sign in (1.0, -1.0):
        chosen = np.flatnonzero(h > 0.0 if sign > 0.0 else h < 0.0)
        if chosen.size:
            add_gram(chosen, np.sqrt(np.abs(h[chosen])), sign, single, out)


def _diagonal(block: Block, k: Vector) -> Vector:
    out = np.zeros(block.shape[1])
    block.add_diagonal(k, out)
    return out


def _squared_norms(block: Block, out: Vector) -> None:
    squared_norms_of(block, np.arange(out.shape[0]), out)


def _moments(scores: Vector) -> tuple[float, float]:
    return float(scores.sum()), float(np.square(scores).sum())
