"""`LinearSVC`: a linear support vector classifier with a certificate."""

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from primalsvm.estimators.progress import progress_bar
from primalsvm.losses import Loss, by_name
from primalsvm.objective import Problem, check_labels
from primalsvm.rows import Batch, as_batch, as_rows, as_weights, shape, total_weight
from primalsvm.solution import Certificate, Solution, Status
from primalsvm.solvers.drive import Stops, choose, drive
from primalsvm.solvers.protocol import Solver
from primalsvm.team import Team, team_size


class LinearSVC(ClassifierMixin, BaseEstimator):
    """Linear support vector classification to a proven accuracy.

    Minimises P(w, b) = λ/2 ‖w‖² + (1/Σc) Σ cᵢ ℓ(yᵢ, ⟨w, xᵢ⟩ + b) until the relative duality gap is at most `tol`.

    Parameters
    ----------
    C : float, default=1.0
        As in scikit-learn: λ = 1/(C Σc).
    lam : float or None, default=None
        λ itself; overrides `C`.
    loss : {"hinge", "squared_hinge", "smoothed_hinge", "logistic"} or a loss object, default="hinge"
    solver : {"auto", "dual_ascent", "newton", "pegasos"} or a solver object, default="auto"
    tol : float, default=1e-3
        Relative duality gap to reach, at least. Small problems are solved to 1e-10.
    max_iter : int, default=1000
        Epochs at most.
    max_seconds : float or None, default=None
        Seconds of solving at most.
    fit_intercept : bool, default=True
    penalize_intercept : bool, default=False
        Regularise the intercept with the weights, as LIBLINEAR does.
    class_weight : dict, "balanced" or None, default=None
    certify : bool, default=True
        Compute the certificate.
    warm_start : bool, default=False
        Go on from the previous fit where the data have the same shape.
    early_stopping : bool, default=False
        Hold out a share of the rows and keep the point with the lowest error there. (`C` is still translated with the
        weight of all rows.)
    validation_fraction : float, default=0.1
        The share held out with `early_stopping`.
    n_iter_no_change : int, default=5
        Evaluations without a lower held-out error after which `early_stopping` stops.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads: None is one, -1 all cores. The same `random_state` and `n_jobs` give the same bits.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    classes_ : ndarray of shape (2,)
    certificate_ : Certificate or None
        Proof of accuracy: D ≤ P* ≤ P.
    history_ : structured ndarray
        One row per evaluation: epoch, steps, seconds, primal, dual, gap, validation_error.
    status_ : Status
    solver_ : the solver object that was used
    n_iter_ : int
        Epochs.
    n_steps_ : int
        Updates.
    n_features_in_ : int
    feature_names_in_ : ndarray, if the input had names

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import LinearSVC
    >>> X, y = make_classification(200, 5, random_state=0)
    >>> clf = LinearSVC(lam=1e-2).fit(X, y)
    >>> clf.certificate_.relative_gap < 1e-9
    True
    >>> float(clf.score(X, y))
    0.95
    """

    _parameter_kinds: ClassVar[dict[str, tuple[type, ...]]] = {
        "C": (Real,),
        "lam": (Real, type(None)),
        "tol": (Real,),
        "max_iter": (Integral,),
        "max_seconds": (Real, type(None)),
        "n_iter_no_change": (Integral,),
        "validation_fraction": (Real,),
        "n_jobs": (Integral, type(None)),
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        lam: float | None = None,
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
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.lam = lam
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X, labels y (any two values) and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, 0 the same as no row.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, y_numeric=False)
        check_classification_targets(y)
        classes, codes = label_codes(np.asarray(y))
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes[0]!r}): at least two classes are needed")
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported so far; y holds {len(classes)} classes. "
                "Wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
            )
        batch = self._weigh(as_batch(X, 2.0 * codes - 1.0, sample_weight), classes, codes)
        check_labels(batch)
        problem = Problem(by_name(self.loss), self._lam(batch), self._intercept())
        stops = Stops(self.tol, self.max_iter, self.max_seconds, self.certify, self.n_iter_no_change)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        training, validation = self._hold_out(X, batch, seed) if self.early_stopping else (batch, None)
        start = getattr(self, "_solution", None) if self.warm_start else None
        with progress_bar(self.verbose, type(self).__name__) as watch:
            solution = drive(
                problem, training, choose(self.solver, *shape(training.rows)), stops,
                validation=validation, n_jobs=self.n_jobs, seed=seed, start=start, watch=watch,
            )  # fmt: skip
        self.classes_ = classes
        self._keep(solution)
        return self

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """⟨w, x⟩ + b for every row; positive means `classes_[1]`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=False)
        with Team(team_size(self.n_jobs)) as team:
            scores = team.scores(as_rows(X), self.coef_[0])
        scores += self.intercept_[0]
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        labels: npt.NDArray[Any] = self.classes_[(scores > 0).astype(np.intp)]
        return labels

    # ---- the parts of fit --------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, kinds in self._parameter_kinds.items():
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, kinds):
                kind = "an integer" if Integral in kinds else "a number"
                raise TypeError(f"{name} must be {kind}{' or None' if type(None) in kinds else ''}, got {given!r}")
        if self.lam is None and not 0 < self.C < np.inf:
            raise ValueError(f"C must be positive and finite, got {self.C!r}")
        if self.n_iter_no_change < 1:
            raise ValueError(f"n_iter_no_change must be at least 1, got {self.n_iter_no_change!r}")
        if self.early_stopping and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}")

    def _weigh(self, batch: Batch, classes: npt.NDArray[Any], codes: npt.NDArray[Any]) -> Batch:
        """Multiply sample weights with class weights."""
        if self.class_weight is None:
            return batch
        given = np.broadcast_to(batch.weight.values, codes.shape)
        per_class = compute_class_weight(self.class_weight, classes=classes, y=classes[codes], sample_weight=given)
        weights = per_class[codes] * given
        return batch._replace(weight=as_weights(weights, len(codes)))

    def _lam(self, batch: Batch) -> float:
        return float(self.lam) if self.lam is not None else 1.0 / (self.C * total_weight(batch))

    def _intercept(self) -> Literal["none", "penalized", "free"]:
        if not self.fit_intercept:
            return "none"
        return "penalized" if self.penalize_intercept else "free"

    def _hold_out(self, X: Any, batch: Batch, seed: int) -> tuple[Batch, Batch]:
        """Split the rows in two, keeping the share of the classes."""
        rows = np.arange(batch.y.shape[0])
        parts = train_test_split(rows, test_size=self.validation_fraction, random_state=seed, stratify=batch.y)
        weights = batch.weight.values if batch.weight.stride else None
        kept, held = (
            as_batch(X[part], batch.y[part], None if weights is None else weights[part]) for part in map(np.sort, parts)
        )
        check_labels(kept)
        return kept, held

    def _keep(self, solution: Solution) -> None:
        self.coef_ = solution.w.reshape(1, -1)
        self.intercept_ = np.array([solution.b])
        self.certificate_: Certificate | None = solution.certificate
        self.history_ = solution.trace
        self.status_: Status = solution.status
        self.solver_ = solution.solver
        self.n_iter_ = max(1, int(np.ceil(solution.n_epochs)))
        self.n_steps_ = solution.n_steps
        self._solution = solution if self.warm_start else None
        if solution.status.fell_short or (
            solution.status is Status.FINISHED
            and solution.certificate is not None
            and solution.certificate.relative_gap > self.tol
        ):
            warnings.warn(f"{type(self).__name__} {solution.message}", ConvergenceWarning, stacklevel=3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def label_codes(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The sorted classes and each row's index into them: `np.unique`, without its sort for two numbers.

    Examples
    --------
    >>> label_codes(np.array([3, 1, 3]))
    (array([1, 3]), array([1, 0, 1]))
    """
    if y.dtype.kind in "iuf" and y.size > 0:
        low, high = y.min(), y.max()
        upper = y == high
        if low < high and np.all(upper | (y == low)):
            return np.array([low, high]), upper.astype(np.intp)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes
