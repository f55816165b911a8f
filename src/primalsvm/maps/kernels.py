"""Kernels k(s, t) between rows and points, a block of rows at a time.

    Gaussian      exp(−γ ‖s − t‖²)
    Laplacian     exp(−γ ‖s − t‖₁)
    ChiSquared    exp(−γ Σ (sⱼ − tⱼ)²/(sⱼ + tⱼ)),  s, t ≥ 0
    Polynomial    (γ ⟨s, t⟩ + c₀)^p
    Tangent       tanh(γ ⟨s, t⟩ + c₀), which is not positive definite
    Linear        ⟨s, t⟩
    Callable      a function of two matrices given by the user
    Precomputed   the rows are rows of the kernel matrix

The first five are functions of a sum over features of term(sⱼ, tⱼ). For CSR rows only the stored entries are visited:
the sum for a row of zeros is computed once, and each entry adds term(sⱼ, tⱼ) − term(0, tⱼ). BLAS computes the inner
products of dense rows.
"""

from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from primalsvm.compiled import implement, kernel
from primalsvm.data import CSR, Block, Dense, Vector, squared_norms_of
from primalsvm.options import check_integer, check_number

Matrix: TypeAlias = npt.NDArray[Any]

FAR = 10.0  # ‖mean‖²/variance above which points are far from the origin


class Points(NamedTuple):
    """The second arguments t of a kernel, as columns."""

    columns: Matrix  # n × s, C-contiguous, float32 or float64
    squared_norms: Vector  # ‖t‖²
    centre: Vector | None = None  # that is subtracted from the columns, and from rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of features and of points."""
        n, s = self.columns.shape
        return n, s

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of kernel values."""
        return self.columns.dtype

    @property
    def sparse(self) -> bool:
        """False."""
        return False

    @property
    def matrix(self) -> Matrix:
        """The points as rows."""
        found: Matrix = self.columns.T
        return found

    def take(self, chosen: Any) -> "Points":
        """Some of the points."""
        columns = self.columns[:, chosen] if isinstance(chosen, slice) else np.take(self.columns, chosen, axis=1)
        return Points(columns, self.squared_norms[chosen], self.centre)

    def dense(self) -> "Points":
        """The points themselves."""
        return self

    def single(self, centred: bool) -> "Points":
        """The points in single precision, moved to their mean if `centred`: for less rounding."""
        columns = np.empty(self.shape, np.float32)
        for j in range(columns.shape[0]):
            centre = self.columns[j].mean() if centred else 0.0
            np.subtract(self.columns[j], centre, out=columns[j], casting="same_kind")
        return as_points(columns.T, columns.dtype)


class SparsePoints(NamedTuple):
    """Points with many features of which most are 0, as rows; a few at a time are made dense for a kernel."""

    matrix: Any  # s × n, a CSR matrix of SciPy
    squared_norms: Vector

    @property
    def shape(self) -> tuple[int, int]:
        """The number of features and of points."""
        return int(self.matrix.shape[1]), int(self.matrix.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision of kernel values."""
        found: np.dtype[Any] = self.matrix.dtype
        return found

    @property
    def sparse(self) -> bool:
        """True."""
        return True

    def take(self, chosen: Any) -> "SparsePoints":
        """Some of the points."""
        return SparsePoints(self.matrix[chosen], self.squared_norms[chosen])

    def dense(self) -> Points:
        """The points as columns."""
        return Points(self.matrix.T.toarray(order="C"), self.squared_norms)

    def single(self, centred: bool) -> "SparsePoints":
        """The points in single precision; their mean stays where it is."""
        return sparse_points(self.matrix, np.dtype(np.float32))


def sparse_points(matrix: Any, precision: np.dtype[Any]) -> SparsePoints:
    """Points from the rows of a sparse matrix."""
    matrix = matrix.tocsr().astype(precision)
    return SparsePoints(matrix, np.asarray(matrix.multiply(matrix).sum(axis=1), np.float64).ravel())


def as_points(values: Matrix, precision: np.dtype[Any] | None = None, centred: bool = False) -> Points:
    """Points from the rows of a matrix, in the given precision (None: that of the matrix).

    With `centred`, the origin is moved to points in single precision that are far from it, as ‖s‖² − 2⟨s, t⟩ + ‖t‖²
    would be a small difference of large numbers.
    """
    values = np.asarray(values)
    precision = values.dtype if precision is None else precision
    if centred and precision == np.float32 and values.shape[1] > 0:
        centre = values.mean(axis=0, dtype=np.float64).astype(np.float32)  # rows of either precision subtract the same
        shifted = values - centre
        spread = float(np.einsum("sj,sj->", shifted, shifted, dtype=np.float64)) / values.shape[0]
        if float(np.einsum("j,j->", centre, centre, dtype=np.float64)) > FAR * spread:
            return as_points(shifted, precision)._replace(centre=centre)
    columns = np.ascontiguousarray(values.T.astype(precision, copy=False))
    return Points(columns, np.einsum("js,js->s", columns, columns, dtype=np.float64))


class Kernel(Protocol):
    """A kernel function k."""

    def between(self, rows: Block, points: Points) -> Matrix:
        """k(xᵢ, tⱼ) for every row and point, in the precision of the points."""

    def take(self, chosen: Any) -> "Kernel":
        """The kernel for some of the points."""


class OfPoints:
    """A kernel that does not depend on which points it is for."""

    by_products: ClassVar[bool] = False  # whether it is a function of inner products, which BLAS computes
    shift_invariant: ClassVar[bool] = False  # whether k(s + c, t + c) = k(s, t); then rounding is less near the origin

    def take(self, chosen: Any) -> Any:
        """The kernel for some of the points: the same."""
        return self


# ---- sums over features ----------------------------------------------------------------------------------------------


class Product(NamedTuple):
    """sⱼ tⱼ."""

    unused: int = 0  # Numba cannot overload on a tuple without fields


class Distance(NamedTuple):
    """|sⱼ − tⱼ|."""

    unused: int = 0


class RelativeSquare(NamedTuple):
    """(sⱼ − tⱼ)²/(sⱼ + tⱼ)."""

    unused: int = 0


def term_difference(term: Any, s: Any, t: Any) -> Any:
    """term(s, t) − term(0, t)."""


@implement(term_difference, Product)
def _difference_product(term, s, t):  # type: ignore[no-untyped-def]  # compiled
    return s * t


@implement(term_difference, Distance)
def _difference_distance(term, s, t):  # type: ignore[no-untyped-def]  # compiled
    return abs(s - t) - abs(t)


@implement(term_difference, RelativeSquare)
def _difference_relative_square(term, s, t):  # type: ignore[no-untyped-def]  # compiled
    return ((s - t) * (s - t) / (s + t) if s + t > 0 else s * 0) - t


def entries(rows: Any, i: Any, dense_indices: Any) -> Any:
    """Indices and values of the stored entries of row i; `dense_indices` are the indices of a dense row."""


@implement(entries, CSR)
def _csr_entries(rows, i, dense_indices):  # type: ignore[no-untyped-def]  # compiled
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    return rows.indices[start:stop], rows.data[start:stop]


@implement(entries, Dense)
def _dense_entries(rows, i, dense_indices):  # type: ignore[no-untyped-def]  # compiled
    return dense_indices, rows.values[i]


@kernel
def add_differences(term, rows, columns, dense_indices, out):  # type: ignore[no-untyped-def]  # compiled
    """out[i, l] += Σⱼ term(xᵢⱼ, tₗⱼ) − term(0, tₗⱼ)."""
    for i in range(out.shape[0]):
        line = out[i]
        indices, values = entries(rows, i, dense_indices)
        for k in range(indices.shape[0]):
            t = columns[indices[k]]
            s = columns.dtype.type(values[k])
            for j in range(t.shape[0]):
                line[j] += term_difference(term, s, t[j])


def sums(term: Any, rows: Block, points: Points, at_zero: Vector | float) -> Matrix:
    """Σⱼ term(xᵢⱼ, tₗⱼ), given the sums for a row of zeros."""
    columns = points.columns
    n, s = columns.shape
    out = np.empty((rows.shape[0], s), columns.dtype)
    out[:] = at_zero
    dense_indices = np.arange(0 if rows.sparse else n, dtype=np.uint32)
    add_differences(term, rows, columns, dense_indices, out)
    return out


def products(rows: Block, points: Points) -> Matrix:
    """⟨xᵢ, tₗ⟩."""
    if rows.sparse:
        return sums(Product(), rows, points, 0.0)
    found: Matrix = rows.matrix().astype(points.columns.dtype, copy=False) @ points.columns
    return found


def exponential(found: Matrix, gamma: float) -> Matrix:
    """exp(−γ d) for distances d, in place; rounding errors below 0 count as 0."""
    found *= -gamma
    np.minimum(found, 0, out=found)
    return np.exp(found, out=found)


# ---- kernels ---------------------------------------------------------------------------------------------------------


@kernel
def gaussian_exponents(inner_products, of_rows, of_points, gamma):  # type: ignore[no-untyped-def]  # compiled
    """Inner products → −γ ‖s − t‖², in place."""
    for i in range(inner_products.shape[0]):
        line = inner_products[i]
        for j in range(line.shape[0]):
            line[j] = min(gamma * (line[j] + line[j] - of_rows[i] - of_points[j]), 0)


@dataclass(frozen=True)
class Gaussian(OfPoints):
    """exp(−γ ‖s − t‖²), eq. (18) of ASSET with γ = 1/(2σ²).

    Examples
    --------
    >>> from primalsvm.data import as_block
    >>> Gaussian(0.5).between(as_block(np.eye(2)), as_points(np.eye(2))).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    gamma: float
    by_products: ClassVar[bool] = True
    shift_invariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, open_low=True)

    def between(self, rows: Block, points: Points) -> Matrix:
        """exp(γ (2⟨s, t⟩ − ‖s‖² − ‖t‖²)), the exponent at most 0."""
        if points.centre is not None:
            values = rows.matrix().toarray() if rows.sparse else rows.matrix()
            rows = Dense((values - points.centre).astype(points.columns.dtype, copy=False))
        found = products(rows, points)
        precision = found.dtype.type
        squared_norms = np.empty(rows.shape[0])
        squared_norms_of(rows, np.arange(rows.shape[0]), squared_norms)
        of_rows, of_points = squared_norms.astype(precision), points.squared_norms.astype(precision)
        gaussian_exponents(found, of_rows, of_points, precision(self.gamma))
        return np.exp(found, out=found)


@dataclass(frozen=True)
class Laplacian(OfPoints):
    """exp(−γ ‖s − t‖₁)."""

    gamma: float

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, open_low=True)

    def between(self, rows: Block, points: Points) -> Matrix:
        """The exponential of −γ times the sum of distances."""
        return exponential(sums(Distance(), rows, points, np.abs(points.columns).sum(axis=0)), self.gamma)


@dataclass(frozen=True)
class ChiSquared(OfPoints):
    """exp(−γ Σ (sⱼ − tⱼ)²/(sⱼ + tⱼ)) for nonnegative features."""

    gamma: float

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, open_low=True)

    def between(self, rows: Block, points: Points) -> Matrix:
        """The exponential of −γ times the sum of relative squares."""
        values = rows.matrix().data if rows.sparse else rows.matrix()
        if values.size and values.min() < 0:
            raise ValueError("the chi2 kernel needs features that are not negative")
        return exponential(sums(RelativeSquare(), rows, points, points.columns.sum(axis=0)), self.gamma)


@dataclass(frozen=True)
class Polynomial(OfPoints):
    """(γ ⟨s, t⟩ + c₀)^degree."""

    degree: int
    gamma: float
    coef0: float
    by_products: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, open_low=True)
        check_integer("degree", self.degree)
        check_number("degree", self.degree)  # raises if it is too large for a double
        check_number("coef0", self.coef0)

    def between(self, rows: Block, points: Points) -> Matrix:
        """The power of the inner products."""
        found = products(rows, points)
        found *= self.gamma
        found += self.coef0
        return np.power(found, self.degree, out=found)


@dataclass(frozen=True)
class Tangent(OfPoints):
    """tanh(γ ⟨s, t⟩ + c₀), the sigmoid kernel; its matrices may have negative eigenvalues."""

    gamma: float
    coef0: float
    by_products: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, 0.0, open_low=True)
        check_number("coef0", self.coef0)

    def between(self, rows: Block, points: Points) -> Matrix:
        """The hyperbolic tangent of the inner products."""
        found = products(rows, points)
        found *= self.gamma
        found += self.coef0
        return np.tanh(found, out=found)


@dataclass(frozen=True)
class Linear(OfPoints):
    """⟨s, t⟩."""

    by_products: ClassVar[bool] = True

    def between(self, rows: Block, points: Points) -> Matrix:
        """Inner products."""
        return products(rows, points)


@dataclass(frozen=True)
class Callable(OfPoints):
    """A function of two matrices that returns the matrix of k(x, y) of their rows, as in scikit-learn's SVC."""

    function: Function[[Any, Any], Any]

    def between(self, rows: Block, points: Points) -> Matrix:
        """The validated result of the function."""
        returned: Any = self.function(rows.matrix(), points.columns.T)
        if hasattr(returned, "toarray"):
            returned = returned.toarray()
        found = np.asarray(returned, points.columns.dtype)
        expected = (rows.shape[0], points.columns.shape[1])
        if found.shape != expected:
            raise ValueError(f"the kernel function returned shape {found.shape}, expected {expected}")
        if not np.isfinite(found).all():
            raise ValueError("the kernel function returned NaN or infinity")
        return found


@dataclass(frozen=True, eq=False)
class Precomputed(OfPoints):
    """The rows are rows of the kernel matrix; the points are given by the indices of its columns."""

    columns: Vector

    def between(self, rows: Block, points: Points) -> Matrix:
        """The columns of the points."""
        if rows.sparse:
            raise ValueError("a precomputed kernel must be a dense matrix")
        found: Matrix = rows.matrix()[:, self.columns].astype(points.columns.dtype, copy=False)
        return found

    def take(self, chosen: Any) -> "Precomputed":
        """The columns of some of the points."""
        return Precomputed(self.columns[chosen])


def is_positive_definite(kernel: Kernel) -> bool:
    """Whether no matrix of this kernel has negative eigenvalues; of callable and precomputed ones this is assumed."""
    if isinstance(kernel, Polynomial):
        return kernel.coef0 >= 0.0
    return not isinstance(kernel, Tangent)


def precision_for(rows: Block) -> np.dtype[Any]:
    """The precision in which kernels of these rows are computed: double for double, else single."""
    return np.dtype(np.float64 if rows.dtype == np.float64 else np.float32)
