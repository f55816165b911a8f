"""What scores are inner products with: the rows themselves, features that approximate a kernel, or the kernel matrix.

An estimator has one of two strategies, `LinearFeatures` or `KernelFeatures`:

    check_parameters(estimator)                  raises an error if its own parameters are not valid
    pairwise(estimator)                          whether X is a kernel matrix
    fit(estimator, rows, encoded, seed, before)  φ, which may be that of the fit before; without `encoded`, it does not
                                                 depend on the targets
    begin_stream(estimator, X, data, weight)     φ of a stream, given its first rows
    for_prediction(estimator, block, W, threads) rows and weights that give the scores of a fitted estimator
    reads_files                                  whether rows that take too much memory may stay in their files
    scalable                                     whether features of other sizes make the same problem easier
    stream_solver                                the solver of a stream if none is named

and φ is one of `LinearFeatures`, `MappedRows` and `KernelMatrixRows`:

    choose(estimator, rows, training, jointly)          the solver
    store(estimator, rows, training, reads, resources)  φ(x) of the training rows, in the form for a solver that reads
                                                        them in blocks, by their numbers or in passes (`Traits.rows`)
    attributes(W)                                       the fitted attributes that follow from w
    kept                                                what a warm start compares with, and may go on with
    of_stream(block, position), unit_length             φ(x) of rows of a stream; whether E‖φ(x)‖² = 1 for any rows
"""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from primalsvm.data import EQUAL_WEIGHTS, Block, Dataset, Dense, InMemory, KernelMatrix, Mapped, ThreadPool, Vector
from primalsvm.estimators.encoders import Encoded
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import draw_seed, memory_budget
from primalsvm.estimators.pilot import margin_landmark_weights
from primalsvm.estimators.transformers import (
    FourierFeatures,
    KernelParameters,
    Nystroem,
    components_of,
    gamma_of,
    is_precomputed,
    kernel_of,
    points_of,
)
from primalsvm.maps.features import mapped_dataset, stream_features
from primalsvm.maps.kernels import precision_for
from primalsvm.maps.nystroem import KernelValues
from primalsvm.memory import check_fits
from primalsvm.options import check_choice
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.costs import Size
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.policy import choose, choose_mapped, choose_out_of_core
from primalsvm.solvers.protocol import JointSolver
from primalsvm.solvers.several import Several
from primalsvm.sources.reader import out_of_core

VECTORS = 3  # of a double for each feature: no solver keeps fewer (measured: 3 to 9)
IN_DOUBLE = 2**22  # features (m·s) up to which they are kept in double precision: it costs nothing
INHERITED = ("kernel", "gamma", "degree", "coef0", "n_components")


# ---- the rows themselves ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearFeatures:
    """φ(x) = x: there is nothing to learn, so these are the features of every fit."""

    reads_files: bool = True
    scalable: ClassVar[bool] = True
    unit_length: ClassVar[bool] = False
    stream_solver: ClassVar[Any] = Pegasos()

    def check_parameters(self, estimator: Any) -> None:
        pass

    def pairwise(self, estimator: Any) -> bool:
        return False

    def fit(self, estimator: Any, rows: Rows, encoded: Encoded | None, seed: int, previous: Any) -> "LinearFeatures":
        d, count = rows.data.shape[1], 1 if encoded is None else encoded.count
        needed = VECTORS * 8 * d * count
        check_fits(needed, f"the weights of {d} features", "number the features that occur, or hash them")
        return self

    def begin_stream(self, estimator: Any, X: Any, data: InMemory, multiplicity: Vector | None) -> "LinearFeatures":
        return self

    def for_prediction(self, estimator: Any, block: Block, W: Vector, threads: ThreadPool) -> tuple[InMemory, Vector]:
        return InMemory(block, EQUAL_WEIGHTS, threads), W

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        solver = estimator.solver if training.solver is None else training.solver
        size = Size.of(training.data)
        if rows.cache is None or not self.reads_files:
            loss: Any = getattr(training.problem, "loss", None)  # a ranking has none, and no choice needs it
            return choose(solver, size, loss, count=training.count, jointly=jointly)
        return choose_out_of_core(solver, size, memory_budget(estimator))

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> Dataset:
        data = training.data
        if rows.cache is None or not self.reads_files:
            return data
        if reads == "passes":  # a mapping of the files serves them as well as any way does
            data.block.check()
            return data
        sharing = min(data.threads.size, training.count)  # threads, each with blocks of its own
        bytes_at_once, drop = int(memory_budget(estimator) / 2 / sharing), estimator.memory is not None
        found = resources.enter_context(
            out_of_core(rows.cache, bytes_at_once, drop=drop, weights=data.weights, threads=data.threads)
        )
        found.check()
        return found

    def of_stream(self, block: Block, position: int) -> Block:
        return block

    def attributes(self, W: Vector) -> dict[str, Any]:
        return {"coef_": W}

    @property
    def kept(self) -> Any:
        return self


# ---- features that approximate a kernel ------------------------------------------------------------------------------


class KernelFeatures:
    """Features of a kernel, or with approximation="exact" the kernel matrix."""

    reads_files = False
    scalable = False
    stream_solver = Asset()

    def check_parameters(self, estimator: Any) -> None:
        if not (isinstance(estimator.kernel, str) or callable(estimator.kernel)):
            raise TypeError(f"kernel must be a name or a function, got {estimator.kernel!r}")
        if is_exact(estimator):
            exact_solver(estimator)
            if getattr(estimator, "early_stopping", False) or getattr(estimator, "penalize_intercept", False):
                raise ValueError("approximation='exact' knows neither early_stopping nor penalize_intercept")

    def pairwise(self, estimator: Any) -> bool:
        own = getattr(estimator.approximation, "kernel", None)
        return is_precomputed(estimator.kernel if own is None else own)

    def fit(
        self, estimator: Any, rows: Rows, encoded: Encoded | None, seed: int, previous: Any
    ) -> "MappedRows | KernelMatrixRows":
        if is_exact(estimator):
            return kernel_matrix_rows(estimator, rows)
        approximation = approximation_of(estimator)
        m, n = rows.data.shape
        own_seed = getattr(estimator.approximation, "random_state", None)
        parameters = {"n_features": n, **approximation.get_params(), "random_state": own_seed}
        if isinstance(previous, MappedRows) and alike(previous.parameters, parameters):
            return previous
        double = m * components_of(getattr(approximation, "n_components", None), m) <= IN_DOUBLE
        precision = np.dtype(np.float64 if double else np.float32)
        return mapped_rows(
            approximation, parameters, rows.matrix, rows.data, precision, seed, rows.sample_weight, encoded
        )

    def begin_stream(self, estimator: Any, X: Any, data: InMemory, multiplicity: Vector | None) -> "MappedRows":
        if is_exact(estimator):
            raise ValueError("approximation='exact' needs all rows at once: choose 'nystroem' or 'fourier'")
        seed, single = draw_seed(estimator.random_state), np.dtype(np.float32)
        return mapped_rows(approximation_of(estimator), {}, X, data, single, seed, multiplicity)

    def for_prediction(self, estimator: Any, block: Block, W: Vector, threads: ThreadPool) -> tuple[Mapped, Vector]:
        feature_map = estimator.feature_map_
        if hasattr(feature_map, "scorer"):
            feature_map, alpha = feature_map.scorer(W.T)
            W = alpha.T
        return Mapped(feature_map, block, W.dtype, EQUAL_WEIGHTS, threads), W


@dataclass(frozen=True, eq=False)
class MappedRows:
    """φ of a map.

    Parameters
    ----------
    parameters : what the map was made for
    feature_map : the map
    landmarks : its points, if it has some
    precision : of the features
    """

    parameters: dict[str, Any]
    feature_map: Any
    landmarks: Any
    precision: np.dtype[Any]

    @property
    def unit_length(self) -> bool:
        return bool(getattr(self.feature_map, "unit_length", False))

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        m, d = training.data.shape[0], self.feature_map.n_components
        automatic = isinstance(estimator.solver, str) and estimator.solver == "auto"
        # Features that do not fit into memory are computed again in each pass; Newton needs no row out of order.
        if automatic and m * d * self.precision.itemsize > memory_budget(estimator):
            return Several(Newton())
        return choose_mapped(estimator.solver, rows.data.shape[0], d, training.problem, training.count, jointly)

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> Dataset:
        data, budget, passes = training.data, memory_budget(estimator), reads == "passes"
        return mapped_dataset(
            self.feature_map, data.block, data.weights, data.threads, self.precision, budget, passes_only=passes
        )

    def of_stream(self, block: Block, position: int) -> Any:
        return Dense(stream_features(self.feature_map, block, position))

    @property
    def kept(self) -> Any:
        return self

    def attributes(self, W: Vector) -> dict[str, Any]:
        found = {"feature_map_": self.feature_map, "coef_": W}
        if self.landmarks is not None:
            found["landmarks_"] = self.landmarks
        if hasattr(self.feature_map, "expansion"):
            found["dual_coef_"] = np.vstack([self.feature_map.expansion(w) for w in W])
        return found


def mapped_rows(
    approximation: Any,
    parameters: dict[str, Any],
    X: Any,
    data: InMemory,
    precision: np.dtype[Any],
    seed: int,
    weight: Vector | None,
    encoded: Encoded | None = None,
) -> MappedRows:
    """Features of an approximation; given the problem, landmarks lie near its margin unless the parameters say else."""
    own = approximation.get_params(deep=False)
    if "gamma" in own and not is_precomputed(own.get("kernel")):
        approximation.set_params(gamma=gamma_of(own["gamma"], X, weight))
    if own.get("random_state") is not None:
        seed = draw_seed(own["random_state"])
    how = own.get("landmarks", "kmeans")
    near_margin = how is None or (isinstance(how, str) and how == "margin")
    if near_margin and encoded is not None and encoded.count == 1 and encoded.problem.loss.is_classification:
        approximation.set_params(landmarks="kmeans")
        weight = margin_landmark_weights(approximation, encoded.problem, X, encoded.data, encoded.Y[:, 0], seed, weight)
    feature_map, landmarks = approximation.build(X, data.block, precision, seed, weight)
    return MappedRows(parameters, feature_map, landmarks, precision)


def approximation_of(estimator: Any) -> Any:
    """The transformer, with the estimator's parameters where it has none of its own."""
    given = estimator.approximation
    if isinstance(given, str):
        kinds = {"nystroem": Nystroem, "fourier": FourierFeatures}
        check_choice("approximation", given, (*kinds, "exact"), "or give such an object")
        given = kinds[given]()
    if isinstance(given, type) or not hasattr(given, "build"):
        raise TypeError(f"approximation must be a name, a Nystroem or a FourierFeatures object, got {given!r}")
    approximation = clone(given)
    own = approximation.get_params(deep=False)
    inherited = {name: getattr(estimator, name) for name in INHERITED if own.get(name, 0) is None}
    approximation.set_params(**inherited)
    return approximation


def alike(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two sets of parameters are the same, arrays by their entries.

    Examples
    --------
    >>> alike({"landmarks": np.zeros((9, 9))}, {"landmarks": np.ones((9, 9))})
    False
    """
    if first.keys() != second.keys():
        return False
    for name, one in first.items():
        other = second[name]
        if hasattr(one, "tocsr") and hasattr(other, "tocsr"):
            if one.shape != other.shape or (one != other).nnz:
                return False
        elif not (one is other or np.array_equal(one, other)):
            return False
    return True


# ---- the kernel matrix -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelMatrixRows:
    """φ of the kernel itself; w is known by the coefficients of the training rows.

    Parameters
    ----------
    parameters : of the kernel
    X, weight : the training rows
    kernel, points : k, and the training rows as its points
    """

    parameters: KernelParameters
    X: Any
    weight: Vector | None
    kernel: Any
    points: Any

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        return Several(KernelPegasos(exact_solver(estimator)))

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> KernelMatrix:
        data, budget = training.data, memory_budget(estimator)
        return KernelMatrix(self.kernel, data.block, self.points, budget, data.weights, data.threads)

    @property
    def kept(self) -> Any:
        return "exact", self.X.shape[0]

    def attributes(self, W: Vector) -> dict[str, Any]:
        support = np.flatnonzero(np.any(W, axis=0))
        kernel = kernel_of(self.parameters, self.X, support, self.weight)
        feature_map = KernelValues(kernel, points_of(self.X[support], kernel, self.points.columns.dtype))
        coefficients = W[:, support]
        return {"feature_map_": feature_map, "support_": support, "coef_": coefficients, "dual_coef_": coefficients}


def kernel_matrix_rows(estimator: Any, rows: Rows) -> KernelMatrixRows:
    """The kernel with the training rows as its points."""
    m, n = rows.data.shape
    if is_precomputed(estimator.kernel) and m != n:
        raise ValueError(f"a precomputed kernel must be a square matrix, got {m} × {n}")
    check_fits(8 * m * n, f"{m} points in {n} dimensions", "use an approximation")
    parameters = KernelParameters(estimator.kernel, estimator.gamma, estimator.degree, estimator.coef0)
    kernel = kernel_of(parameters, rows.matrix, np.arange(m), rows.sample_weight)
    points = points_of(rows.matrix, kernel, precision_for(rows.data.block))
    return KernelMatrixRows(parameters, rows.matrix, rows.sample_weight, kernel, points)


def is_exact(estimator: Any) -> bool:
    """Whether the kernel matrix itself is asked for."""
    return isinstance(estimator.approximation, str) and estimator.approximation == "exact"


def exact_solver(estimator: Any) -> Pegasos:
    """The options of kernelised Pegasos."""
    given = estimator.solver
    solver = Pegasos() if isinstance(given, str) and given in ("auto", "pegasos") else given
    if not isinstance(solver, Pegasos) or solver.w1 is not None:
        raise ValueError("approximation='exact' needs solver='pegasos' or a Pegasos object without w1")
    return solver
