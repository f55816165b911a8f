"""What scores are inner products with: the rows themselves, features that approximate a kernel, or the kernel matrix.

See `Features` and `FittedFeatures` in `protocols`.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from primalsvm.data import EQUAL_WEIGHTS, Block, Dataset, Dense, InMemory, KernelMatrix, Mapped, ThreadPool, Vector
from primalsvm.estimators.encoders import Classes, Encoded, Labels
from primalsvm.estimators.expansion import expansion_scores, pair_coefficients
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import cache_bytes, draw_seed, memory_budget
from primalsvm.estimators.pilot import margin_landmark_weights
from primalsvm.estimators.transformers import (
    FourierFeatures,
    Nystroem,
    components_of,
    exact_points,
    gamma_of,
    is_precomputed,
    kernel_of,
)
from primalsvm.maps.features import mapped_dataset, stream_features
from primalsvm.maps.kernels import Precomputed, is_positive_definite
from primalsvm.maps.nystroem import KernelValues
from primalsvm.memory import check_fits
from primalsvm.one_vs_one import class_pairs
from primalsvm.options import check_choice
from primalsvm.solvers import costs
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.costs import Size
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.policy import choose, choose_mapped, choose_out_of_core
from primalsvm.solvers.protocol import JointSolver
from primalsvm.solvers.several import Several
from primalsvm.solvers.working_sets import WorkingSets
from primalsvm.sources.reader import out_of_core

VECTORS = 3  # of the size of w in double precision: no solver keeps fewer (measured: 3 to 9)
ROW_VECTORS = 50  # of m numbers that an exact machine needs besides points (measured: 49)
IN_DOUBLE = 2**22  # entries m·s up to which features are kept in double precision, at no measurable cost
# "auto" uses the kernel matrix itself up to this many operations (`costs`), about a minute.
EXACT_OPERATIONS = 5e10
INHERITED = ("kernel", "gamma", "degree", "coef0", "n_components")


# ---- the rows themselves ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearFeatures:
    """φ(x) = x, before and after a fit: there is nothing to learn."""

    reads_files: bool = True
    scalable: ClassVar[bool] = True
    certifies: ClassVar[bool] = True
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

    def scores(self, estimator: Any, block: Block, threads: ThreadPool) -> Vector:
        W, data = estimator.coef_, InMemory(block, EQUAL_WEIGHTS, threads)
        return data.to_array(data.scores(W if W.ndim == 2 and W.shape[0] > 1 else W.reshape(-1)))

    def weights(self, estimator: Any) -> Vector:
        W: Vector = estimator.coef_
        return W

    def arrange(self, estimator: Any, training: Encoded) -> Encoded:
        return training

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
        if reads == "passes":  # mapped files are read in order as fast as in any other way
            data.block.check()
            return data
        sharing = min(data.threads.size, training.count)  # threads with blocks of their own
        bytes_at_once, drop = int(memory_budget(estimator) / 2 / sharing), estimator.memory is not None
        found = resources.enter_context(
            out_of_core(rows.cache, bytes_at_once, drop=drop, weights=data.weights, threads=data.threads)
        )
        found.check()
        return found

    def of_stream(self, block: Block, position: int) -> Block:
        return block

    def attributes(self, vectors: Sequence[Vector], encoded: Encoded | None = None) -> dict[str, Any]:
        return {"coef_": np.vstack(vectors)}

    @property
    def kept(self) -> Any:
        return self


# ---- features that approximate a kernel ------------------------------------------------------------------------------


class KernelFeatures:
    """Features that approximate a kernel, or the kernel matrix itself, as `approximation` says."""

    reads_files = False
    scalable = False
    stream_solver = Asset()

    def check_parameters(self, estimator: Any) -> None:
        if not (isinstance(estimator.kernel, str) or callable(estimator.kernel)):
            raise TypeError(f"kernel must be a name or a function, got {estimator.kernel!r}")
        if is_exact(estimator):
            exact_solver(estimator)
            if getattr(estimator, "early_stopping", False):
                raise ValueError("approximation='exact' has no early_stopping")

    def pairwise(self, estimator: Any) -> bool:
        own = getattr(estimator.approximation, "kernel", None)
        return is_precomputed(estimator.kernel if own is None else own)

    def fit(
        self, estimator: Any, rows: Rows, encoded: Encoded | None, seed: int, previous: Any
    ) -> "MappedRows | KernelMatrixRows":
        m, n = rows.data.shape
        if is_exact(estimator) or (is_automatic(estimator) and suits_exact(estimator, rows, encoded)):
            if is_precomputed(estimator.kernel) and m != n:
                raise ValueError(f"a precomputed kernel must be a square matrix, got {m} × {n}")
            if is_precomputed(estimator.kernel) and hasattr(rows.matrix, "tocsr"):
                raise TypeError("Sparse precomputed kernels are not supported: K must be a dense matrix")
            check_fits(
                8 * (rows.data.entries + ROW_VECTORS * m), f"an exact machine of {m} rows", "use an approximation"
            )
            order = order_by_class(estimator, encoded)
            kernel = kernel_of(estimator, rows.matrix, np.arange(m) if order is None else order, rows.sample_weight)
            points = exact_points(rows.matrix, kernel)
            return KernelMatrixRows(rows.matrix, kernel, points if order is None else points.take(order), order)
        approximation = approximation_of(estimator)
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

    def scores(self, estimator: Any, block: Block, threads: ThreadPool) -> Vector:
        feature_map, W = estimator.feature_map_, estimator.feature_coef_
        if isinstance(feature_map, KernelValues):
            pairs = class_pairs(len(estimator.classes_)) if getattr(estimator, "multiclass_", "") == "ovo" else None
            found = expansion_scores(feature_map, W, block, threads, pairs, getattr(estimator, "n_support_", None))
            return found if found.shape[1] > 1 else found[:, 0]
        if hasattr(feature_map, "scorer"):
            feature_map, alpha = feature_map.scorer(W.T)
            W = alpha.T
        data = Mapped(feature_map, block, W.dtype, EQUAL_WEIGHTS, threads)
        return data.to_array(data.scores(W if W.shape[0] > 1 else W[0]))


@dataclass(frozen=True, eq=False)
class MappedRows:
    """φ of a feature map."""

    parameters: dict[str, Any]  # that the map was made with
    feature_map: Any
    landmarks: Any  # of the map, or None
    gamma: float | None  # of the kernel; None: it has none
    precision: np.dtype[Any]  # of the features
    certifies: ClassVar[bool] = True  # features are of a kernel without negative eigenvalues, if need be another one

    @property
    def unit_length(self) -> bool:
        return bool(getattr(self.feature_map, "unit_length", False))

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        m, d = training.data.shape[0], self.feature_map.n_components
        automatic = isinstance(estimator.solver, str) and estimator.solver == "auto"
        # Features that do not fit into memory are computed again in each pass, which suits Newton.
        if automatic and m * d * self.precision.itemsize > memory_budget(estimator):
            return Several(Newton())
        return choose_mapped(estimator.solver, rows.data.shape[0], d, training.problem, training.count, jointly)

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> Dataset:
        data, budget = training.data, memory_budget(estimator)
        passes_only = reads == "passes"
        return mapped_dataset(
            self.feature_map, data.block, data.weights, data.threads, self.precision, budget, passes_only
        )

    def arrange(self, estimator: Any, training: Encoded) -> Encoded:
        return training

    def weights(self, estimator: Any) -> Vector:
        W: Vector = estimator.feature_coef_
        return W

    def of_stream(self, block: Block, position: int) -> Any:
        return Dense(stream_features(self.feature_map, block, position))

    @property
    def kept(self) -> Any:
        return self

    def attributes(self, vectors: Sequence[Vector], encoded: Encoded | None = None) -> dict[str, Any]:
        found = {"feature_map_": self.feature_map, "feature_coef_": np.vstack(vectors)}
        if self.landmarks is not None:
            found["landmarks_"] = self.landmarks
        if self.gamma is not None:
            found["gamma_"] = self.gamma
        if hasattr(self.feature_map, "expansion"):
            found["landmark_coef_"] = np.vstack([self.feature_map.expansion(w) for w in vectors])
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
    """Features of an approximation; with `encoded`, landmarks lie near the margin unless parameters say otherwise."""
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
    gamma = approximation.get_params(deep=False).get("gamma")
    kernel = getattr(feature_map, "kernel", None)
    gamma = getattr(kernel, "gamma", None) if kernel is not None else gamma
    return MappedRows(parameters, feature_map, landmarks, gamma, precision)


def approximation_of(estimator: Any) -> Any:
    """The transformer, whose parameters that are None are taken from the estimator."""
    given = estimator.approximation
    if isinstance(given, str):
        kinds = {"auto": Nystroem, "nystroem": Nystroem, "fourier": FourierFeatures}
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
    """Whether two sets of parameters are equal, comparing arrays entry by entry.

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
    """φ of the kernel itself, where w is given by the coefficients of the training rows."""

    X: Any  # the training rows
    kernel: Any
    points: Any  # the training rows as points of the kernel, in the order below
    order: Vector | None  # of the rows class by class, one-vs-one; None: as they are

    @property
    def certifies(self) -> bool:
        return is_positive_definite(self.kernel)

    def choose(self, estimator: Any, rows: Rows, training: Encoded, jointly: bool = False) -> JointSolver:
        return Several(exact_solver(estimator) if training.solver is None else training.solver)

    def store(self, estimator: Any, rows: Rows, training: Encoded, reads: str, resources: ExitStack) -> KernelMatrix:
        data, budget = training.data, memory_budget(estimator)
        return KernelMatrix(self.kernel, data.block, self.points, budget, data.weights, data.threads)

    @property
    def kept(self) -> Any:
        return "exact", self.X.shape[0], None if self.order is None else self.order.tobytes()

    def arrange(self, estimator: Any, training: Encoded) -> Encoded:
        """Several classes one-vs-one, as LIBSVM; kernelised Pegasos one-vs-rest."""
        classes = training.decoder
        if self.order is None or not isinstance(classes, Classes):
            return training
        pairs, count = class_pairs(len(classes.classes)), len(classes.classes)
        totals = np.bincount(classes.codes + 1, training.data.weight_array(), count + 1)[1:]
        problems = [estimator._task.problem(estimator, float(totals[i] + totals[j])) for i, j in pairs]
        decoder = replace(classes, codes=classes.codes[self.order])
        return replace(training.subset(self.order), pairs=pairs, problem=problems, decoder=decoder)

    def attributes(self, vectors: Sequence[Vector], encoded: Encoded | None = None) -> dict[str, Any]:
        m = self.X.shape[0]
        codes = encoded.decoder.codes if encoded is not None and isinstance(encoded.decoder, Classes) else np.zeros(m)
        if encoded is None or encoded.pairs is None:
            W = np.vstack(vectors)
        else:
            W = pair_coefficients(vectors, codes, encoded.pairs)
        found_at = np.flatnonzero(np.any(W, axis=0))
        found_at = found_at[np.argsort(codes[found_at], kind="stable")]  # class by class, as LIBSVM
        support = found_at if self.order is None else self.order[found_at]
        kernel = Precomputed(support) if isinstance(self.kernel, Precomputed) else self.kernel
        feature_map = KernelValues(kernel, self.points.take(found_at))
        counts = np.bincount(codes[found_at].astype(np.intp), minlength=int(codes.max()) + 1)
        found = {
            "feature_map_": feature_map,
            "feature_coef_": W[:, found_at],
            "support_": support.astype(np.int32),
            "n_support_": counts.astype(np.int32),
            "sparse_fit_": hasattr(self.X, "tocsr"),
        }
        if hasattr(kernel, "gamma"):
            found["gamma_"] = kernel.gamma
        if encoded is not None and encoded.pairs is not None:
            found["multiclass_"] = "ovo"
        return found


def order_by_class(estimator: Any, encoded: Encoded | None) -> Vector | None:
    """The rows class by class if they are solved one-vs-one, as those of a pair of classes are then near each other."""
    if encoded is None or encoded.count == 1 or not isinstance(encoded.decoder, Classes):
        return None
    if isinstance(exact_solver(estimator), KernelPegasos):
        return None
    return np.argsort(encoded.decoder.codes, kind="stable")


def is_exact(estimator: Any) -> bool:
    """Whether the estimator is told to use the kernel matrix itself."""
    return isinstance(estimator.approximation, str) and estimator.approximation == "exact"


def is_automatic(estimator: Any) -> bool:
    """Whether the estimator chooses between the kernel matrix and an approximation."""
    return isinstance(estimator.approximation, str) and estimator.approximation == "auto"


def suits_exact(estimator: Any, rows: Rows, encoded: Encoded | None) -> bool:
    """Whether "auto" means the kernel matrix itself: it costs at most `EXACT_OPERATIONS`, and all parameters fit it.

    Another solver, a number of components, early stopping, labels, and a loss that is not piecewise quadratic mean an
    approximation.
    """
    solver = estimator.solver
    fits = isinstance(solver, WorkingSets) or (isinstance(solver, str) and solver in ("auto", "working_sets"))
    if encoded is None or not fits or estimator.n_components is not None or getattr(estimator, "early_stopping", False):
        return False
    if isinstance(encoded.decoder, Labels) or not hasattr(encoded.problem.loss, "quadratic_pieces"):
        return False
    size = Size.of(rows.data)
    if is_precomputed(estimator.kernel):
        size = size._replace(d=0)
    return costs.kernel_machine(size) <= EXACT_OPERATIONS


def exact_solver(estimator: Any) -> WorkingSets | KernelPegasos:
    """The solver of an exact kernel machine."""
    given = estimator.solver
    if isinstance(given, str) and given in ("auto", "working_sets"):
        return WorkingSets(cache_bytes=cache_bytes(estimator), shrinking=bool(estimator.shrinking))
    if isinstance(given, WorkingSets):
        return given
    solver = Pegasos() if isinstance(given, str) and given == "pegasos" else given
    if not isinstance(solver, Pegasos) or solver.w1 is not None:
        raise ValueError(
            "approximation='exact' needs solver='auto', 'working_sets' or 'pegasos', or a WorkingSets object or a "
            "Pegasos object without w1"
        )
    return KernelPegasos(solver)
