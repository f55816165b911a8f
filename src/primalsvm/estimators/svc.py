"""`SVC`: a kernel support vector classifier by low-dimensional features, with a certificate."""

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import check_random_state

from primalsvm.checkpoints import Checkpoint
from primalsvm.estimators.pilot import towards_the_margin
from primalsvm.estimators.streaming import StreamingClassifier
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
from primalsvm.losses import Loss
from primalsvm.maps.features import as_features, in_slots, scores
from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.gram import KernelMatrix
from primalsvm.maps.kernels import precision_for
from primalsvm.maps.nystroem import KernelValues, NystroemMap
from primalsvm.memory import check_fits
from primalsvm.objective import Problem
from primalsvm.options import check_choice
from primalsvm.rows import CSR, Batch, Dense, Distant, Rows, Stored, Vector, in_memory, shape
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.drive import choose
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Solver
from primalsvm.sources.opening import as_matrix
from primalsvm.team import team_for

IN_DOUBLE = 2**22  # features (m·s) up to which they are kept in double precision: it costs nothing
NEWTON_FEATURES = 4096  # up to which a Newton step's d × d system is cheap beside the passes over the rows
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


class SVC(StreamingClassifier):
    """Kernel support vector classification through features that approximate the kernel.

    Maps rows to d features φ(x) with ⟨φ(s), φ(t)⟩ ≈ k(s, t) and minimises
    P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, φ(xᵢ)⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`. Needed by `partial_fit`.
    kernel : {"rbf", "laplacian", "chi2", "poly", "linear", "precomputed"} or function, default="rbf"
    gamma : {"scale", "auto"} or float, default="scale"
        γ of the kernel; "scale" is 1/(n_features · Var X), in a stream of its first batch.
    degree : int, default=3
    coef0 : float, default=0.0
    approximation : {"nystroem", "fourier", "exact"} or a Nystroem or FourierFeatures object, default="nystroem"
        The features. Parameters that such an object leaves None are the classifier's. "exact" is no approximation:
        kernelised Pegasos over the whole kernel matrix.
    n_components : int or None, default=None
        Landmarks or Fourier features; None: 512, or the number of rows if there are fewer.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
    solver : {"auto", "newton", "dual_ascent", "asset", "pegasos"} or a solver object, default="auto"
        With "exact", "pegasos" or a `Pegasos` object.
    tol : float, default=1e-3
        Relative duality gap of the mapped problem to reach, at least. Small problems are solved to 1e-10.
    max_iter : int, default=1000
        Epochs at most.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights.
    class_weight : dict, "balanced" or None, default=None
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Keep the features of the previous fit and go on from its solution where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest error there.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=5
    checkpoint : Checkpoint or None, default=None
        Where to keep the state of the fit, to go on from there after a crash (`primalsvm.Checkpoint`). The features
        are made anew.
    memory : float or None, default=None
        Bytes that the features (with "exact": the kept rows of the kernel matrix) may take; None is half of what is
        available. Where they do not fit, they are computed again, block by block, in each pass.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one (and BLAS's own), -1 all cores.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    feature_map_ : the map φ
    coef_ : ndarray of shape (1, d)
        w, in the space of the features; with "exact", the coefficients of the support vectors.
    intercept_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, s), with Nyström features and with "exact"
        α_S: the score is Σ α_l k(t_l, x) + b over the landmarks or support vectors.
    landmarks_ : array of shape (s, n_features), with Nyström features
    support_ : ndarray, with "exact"
        Which rows are support vectors.
    classes_, certificate_, history_, status_, solver_, n_iter_, n_steps_, n_features_in_, n_samples_fit_, layout_
        As in `LinearSVC`; the certificate is that of the mapped problem.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from primalsvm import SVC
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> clf = SVC(gamma=2.0, C=10.0, random_state=0).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-3, clf.score(X, y) > 0.95
    (True, True)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        approximation: Any = "nystroem",
        n_components: int | None = None,
        loss: str | Loss = "hinge",
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_seconds: float | None = None,
        fit_intercept: bool = True,
        penalize_intercept: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        certify: bool = True,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Checkpoint | None = None,
        memory: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approximation = approximation
        self.n_components = n_components
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.certify = certify
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.memory = memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        X, batch = self._enter(as_matrix(X) if isinstance(X, CSR | Dense) else X, y, sample_weight)
        problem = self._problem(batch)
        seed = self._seed()
        if isinstance(self.approximation, str) and self.approximation == "exact":
            return self._fit_exact(problem, X, batch, seed, sample_weight)
        m, n = shape(batch.rows)
        approximation = self._approximation()
        own_seed = getattr(self.approximation, "random_state", None)
        made_for = {"n_features": n, **approximation.get_params(), "random_state": own_seed}
        if not (self.warm_start and alike(getattr(self, "_map_made_for", {}), made_for)):
            double = m * components_of(approximation.n_components, m) <= IN_DOUBLE
            precision = np.dtype(np.float64 if double else np.float32)
            self._build_map(approximation, X, batch, precision, seed, sample_weight, problem)
            self._map_made_for: dict[str, Any] = made_for
            self._solution = None
        training, validation = self._hold_out(batch, seed, cache)
        solver = choose(self.solver, m, self.feature_map_.n_components, NEWTON_FEATURES)
        in_features = self._in_features(training, apart=isinstance(solver, Newton))
        if isinstance(in_features.rows, Distant) and self.solver == "auto":
            solver = Newton()  # it needs no row twice, out of order
        if validation is not None:
            validation = self._in_features(validation)
        self._keep(self._solve(problem, in_features, validation, seed, solver))
        self._expand()
        self._end_stream()
        return self

    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """⟨w, φ(x)⟩ + b for every row."""
        with team_for(self.n_jobs) as team:
            feature_map, w = self.feature_map_.scorer(self.coef_[0])
            found = scores(feature_map, w, rows, team)
        found += self.intercept_[0]
        return found

    # ---- the parts of fit and partial_fit ----------------------------------------------------------------------------

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

    def _in_features(self, batch: Batch, apart: bool = False) -> Batch:
        with team_for(self.n_jobs) as team:
            rows = in_memory(batch.rows)
            features = as_features(self.feature_map_, rows, team, self._precision, self._budget(), apart)
        return batch._replace(rows=features)

    def _check_features(self) -> None:
        if isinstance(self.approximation, str) and self.approximation == "exact":
            raise ValueError("approximation='exact' needs all rows at once: choose 'nystroem' or 'fourier'")

    def _begin_features(self, X: Any, batch: Batch, multiplicity: Vector | None) -> None:
        """The map; a stream has no pilot, and features in single precision."""
        self._map_made_for, self._solution = {}, None
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
            self.dual_coef_ = self.feature_map_.expansion(self.coef_[0]).reshape(1, -1)

    def _fit_exact(
        self, problem: Problem, X: Any, batch: Batch, seed: int, sample_weight: npt.ArrayLike | None
    ) -> Self:
        """Kernelised Pegasos; the map that is kept is that of the kernel values at the support vectors."""
        solver = Pegasos() if isinstance(self.solver, str) and self.solver in ("auto", "pegasos") else self.solver
        if not isinstance(solver, Pegasos) or solver.w1 is not None:
            raise ValueError("approximation='exact' needs solver='pegasos' or a Pegasos object without w1")
        if self.early_stopping or problem.intercept == "penalized":
            raise ValueError("approximation='exact' knows neither early_stopping nor penalize_intercept")
        m, n = shape(batch.rows)
        weight = as_multiplicity(sample_weight, shape(batch.rows)[0])
        parameters = KernelParameters(self.kernel, self.gamma, self.degree, self.coef0)
        kernel = kernel_of(parameters, X, np.arange(m), weight)
        if is_precomputed(self.kernel) and m != n:
            raise ValueError(f"a precomputed kernel must be a square matrix, got {m} × {n}")
        precision = precision_for(in_memory(batch.rows))
        check_fits(8 * m * n, f"{m} points in {n} dimensions", "use an approximation")
        matrix = KernelMatrix(kernel, in_memory(batch.rows), points_of(X, kernel, precision), self._budget())
        as_expansion = batch._replace(rows=matrix.as_rows())
        made_for = {"exact": m}
        if not alike(getattr(self, "_map_made_for", {}), made_for):
            self._solution = None
        solution = self._solve(problem, as_expansion, None, seed, KernelPegasos(solver))
        self._forget_map()
        self.support_ = np.flatnonzero(solution.w)
        kept = kernel_of(parameters, X, self.support_, weight)
        self.feature_map_ = KernelValues(kept, points_of(X[self.support_], kept, precision))
        self._map_made_for = made_for
        self._keep(solution, stacklevel=5)
        self.coef_ = self.coef_[:, self.support_]
        self.dual_coef_ = self.coef_
        self._end_stream()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = getattr(self.approximation, "kernel", None)
        tags.input_tags.pairwise = is_precomputed(self.kernel if own is None else own)
        return tags
