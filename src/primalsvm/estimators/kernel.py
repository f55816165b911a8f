"""Kernel models: features φ that approximate a kernel, or the kernel matrix itself."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from primalsvm.estimators.learner import Examples
from primalsvm.estimators.pilot import towards_the_margin
from primalsvm.estimators.streaming import Streaming
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
from primalsvm.inputs import as_multiplicity
from primalsvm.maps.features import as_features, in_slots, scores, scores_of_many
from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.gram import KernelMatrix
from primalsvm.maps.kernels import precision_for
from primalsvm.maps.nystroem import KernelValues, NystroemMap
from primalsvm.memory import check_fits
from primalsvm.objective import Problem
from primalsvm.options import check_choice
from primalsvm.rows import CSR, Batch, Dense, Distant, Rows, Stored, Vector, in_memory, shape
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.policy import plan_features
from primalsvm.sources.opening import as_matrix
from primalsvm.team import team_for

IN_DOUBLE = 2**22  # features (m·s) up to which they are kept in double precision: it costs nothing
INHERITED = ("kernel", "gamma", "degree", "coef0", "n_components")


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


class KernelModel(Streaming):
    """A learner of w and b on features of a kernel; its parameters are those of the classes that derive."""

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        X, rows = self._enter(as_matrix(X) if isinstance(X, CSR | Dense) else X, y, sample_weight)
        problem = self._problem(rows.batch)
        seed = self._seed()
        if isinstance(self.approximation, str) and self.approximation == "exact":
            return self._fit_exact(problem, X, rows, seed, sample_weight)
        m, n = shape(rows.batch.rows)
        approximation = self._approximation()
        own_seed = getattr(self.approximation, "random_state", None)
        made_for = {"n_features": n, **approximation.get_params(), "random_state": own_seed}
        if not (self.warm_start and alike(getattr(self, "_map_made_for", {}), made_for)):
            double = m * components_of(approximation.n_components, m) <= IN_DOUBLE
            precision = np.dtype(np.float64 if double else np.float32)
            leaning = problem if rows.targets.count == 1 and problem.loss.of_signs else None
            self._build_map(approximation, X, rows.batch, precision, seed, sample_weight, leaning)
            self._map_made_for: dict[str, Any] = made_for
            self._solutions = None
        training, validation = self._hold_out(rows, seed, cache)
        solver, apart = plan_features(self.solver, m, self.feature_map_.n_components, problem)
        in_features = self._in_features(training, apart)
        if isinstance(in_features.batch.rows, Distant) and self.solver == "auto":
            solver = Newton()  # it needs no row twice, out of order
        if validation is not None:
            validation = self._in_features(validation)
        self._keep(self._solve(problem, in_features, validation, seed, solver), rows.targets)
        self._expand()
        self._end_stream()
        return self

    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """⟨w, φ(x)⟩ + b for every row."""
        feature_map, weights = self.feature_map_.scorer(self.coef_.T)
        with team_for(self.n_jobs) as team:
            if weights.shape[1] == 1:
                found = scores(feature_map, weights[:, 0], rows, team)
            else:
                found = scores_of_many(feature_map, weights.T, rows, team)
        found += self.intercept_
        return found

    # ---- the parts of fit and partial_fit ----------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.kernel, str) or callable(self.kernel)):
            raise TypeError(f"kernel must be a name or a function, got {self.kernel!r}")

    def _approximation(self) -> Nystroem | FourierFeatures:
        """The transformer, with the classifier's parameters where it has none of its own."""
        given = self.approximation
        if isinstance(given, str):
            kinds = {"nystroem": Nystroem, "fourier": FourierFeatures}
            check_choice("approximation", given, (*kinds, "exact"), "or give such an object")
            given = kinds[given]()
        if not isinstance(given, Nystroem | FourierFeatures):
            raise TypeError(f"approximation must be a name, a Nystroem or a FourierFeatures object, got {given!r}")
        approximation: Nystroem | FourierFeatures = clone(given)
        own = approximation.get_params(deep=False)
        inherited = {name: getattr(self, name) for name in INHERITED if own.get(name, 0) is None}
        approximation.set_params(**inherited)
        return approximation

    def _build_map(
        self,
        approximation: Nystroem | FourierFeatures,
        X: Any,
        batch: Batch,
        precision: np.dtype[Any],
        seed: int,
        sample_weight: npt.ArrayLike | None,
        problem: Problem | None = None,
    ) -> None:
        """Fix φ; given the problem, landmarks lean to its margin where nobody says otherwise."""
        weight = as_multiplicity(sample_weight, shape(batch.rows)[0])
        if not is_precomputed(approximation.kernel):
            approximation.set_params(gamma=gamma_of(approximation.gamma, X, weight))
        if approximation.random_state is not None:
            seed = int(check_random_state(approximation.random_state).randint(2**31 - 1))
        rows = in_memory(batch.rows)
        if isinstance(approximation, Nystroem):
            how = approximation.landmarks
            if problem is not None and (how is None or (isinstance(how, str) and how == "margin")):
                approximation.set_params(landmarks="kmeans")
                weight = towards_the_margin(approximation, problem, X, batch, seed, weight, self.n_jobs)
        self.feature_map_: Any
        self.feature_map_, landmarks = approximation.build(X, rows, precision, seed, weight)
        self._forget_map()
        self._precision = precision
        if isinstance(approximation, Nystroem):
            self.landmarks_ = landmarks

    def _forget_map(self) -> None:
        for name in ("landmarks_", "dual_coef_", "support_"):
            self.__dict__.pop(name, None)

    def _in_features(self, rows: Examples, apart: bool = False) -> Examples:
        with team_for(self.n_jobs) as team:
            plain = in_memory(rows.batch.rows)
            features = as_features(self.feature_map_, plain, team, self._precision, self._budget(), apart)
        return rows._replace(batch=rows.batch._replace(rows=features))

    def _check_features(self) -> None:
        if isinstance(self.approximation, str) and self.approximation == "exact":
            raise ValueError("approximation='exact' needs all rows at once: choose 'nystroem' or 'fourier'")

    def _begin_features(self, X: Any, batch: Batch, multiplicity: Vector | None) -> None:
        """The map; a stream has no pilot, and features in single precision."""
        self._map_made_for, self._solutions = {}, None
        self._build_map(self._approximation(), X, batch, np.dtype(np.float32), self._seed(), multiplicity)

    def _features_of(self, batch: Batch, position: int) -> Rows:
        return Dense(in_slots(self.feature_map_, in_memory(batch.rows), position))

    def _unit_length(self) -> bool:
        """E‖φ(x)‖² = k(x, x) = 1 for Fourier features."""
        return isinstance(self.feature_map_, FourierMap)

    def _default_online(self) -> Asset:
        return Asset()

    def _after_batch(self) -> None:
        self._expand()

    def _expand(self) -> None:
        """α_S."""
        if isinstance(self.feature_map_, NystroemMap):
            self.dual_coef_ = np.vstack([self.feature_map_.expansion(w) for w in self.coef_])

    def _fit_exact(
        self, problem: Problem, X: Any, rows: Examples, seed: int, sample_weight: npt.ArrayLike | None
    ) -> Self:
        """Kernelised Pegasos; the map that is kept is that of the kernel values at the support vectors."""
        solver = Pegasos() if isinstance(self.solver, str) and self.solver in ("auto", "pegasos") else self.solver
        if not isinstance(solver, Pegasos) or solver.w1 is not None:
            raise ValueError("approximation='exact' needs solver='pegasos' or a Pegasos object without w1")
        if self.early_stopping or problem.intercept == "penalized":
            raise ValueError("approximation='exact' knows neither early_stopping nor penalize_intercept")
        batch = rows.batch
        m, n = shape(batch.rows)
        weight = as_multiplicity(sample_weight, m)
        parameters = KernelParameters(self.kernel, self.gamma, self.degree, self.coef0)
        kernel = kernel_of(parameters, X, np.arange(m), weight)
        if is_precomputed(self.kernel) and m != n:
            raise ValueError(f"a precomputed kernel must be a square matrix, got {m} × {n}")
        precision = precision_for(in_memory(batch.rows))
        check_fits(8 * m * n, f"{m} points in {n} dimensions", "use an approximation")
        matrix = KernelMatrix(kernel, in_memory(batch.rows), points_of(X, kernel, precision), self._budget())
        as_expansion = rows._replace(batch=batch._replace(rows=matrix.as_rows()))
        made_for = {"exact": m}
        if not alike(getattr(self, "_map_made_for", {}), made_for):
            self._solutions = None
        solutions = self._solve(problem, as_expansion, None, seed, KernelPegasos(solver))
        self._forget_map()
        self.support_ = np.flatnonzero(np.any([solution.w for solution in solutions], axis=0))
        kept = kernel_of(parameters, X, self.support_, weight)
        self.feature_map_ = KernelValues(kept, points_of(X[self.support_], kept, precision))
        self._map_made_for = made_for
        self._keep(solutions, rows.targets, stacklevel=5)
        self.coef_ = self.coef_[:, self.support_]
        self.dual_coef_ = self.coef_
        self._end_stream()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = getattr(self.approximation, "kernel", None)
        tags.input_tags.pairwise = is_precomputed(self.kernel if own is None else own)
        return tags
