"""What the classifiers share: the door, the weights, the solve, and what is kept of it."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import primalsvm
from primalsvm.checkpoints import Checkpoint, Keeper, identity
from primalsvm.estimators.progress import progress_bar
from primalsvm.inputs import as_batch, as_rows, as_weights, refuse_text_columns
from primalsvm.losses import by_name
from primalsvm.memory import available
from primalsvm.objective import Problem, check_labels
from primalsvm.options import check_number
from primalsvm.rows import CSR, Batch, Dense, Stored, shape, take_batch, total_weight
from primalsvm.solution import Certificate, Solution, Status
from primalsvm.solvers.drive import Stops, drive
from primalsvm.solvers.protocol import Solver
from primalsvm.sources.layout import Layout, TableLayout
from primalsvm.sources.opening import AT_ONCE, AnySource, held, is_source, seen_by


class MarginClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of two classes by the sign of a score; the parameters are those of the classes that derive."""

    classes_: npt.NDArray[Any]

    _parameter_kinds: ClassVar[dict[str, tuple[type, ...]]] = {
        "C": (Real,),
        "lam": (Real, type(None)),
        "tol": (Real,),
        "max_iter": (Integral,),
        "max_seconds": (Real, type(None)),
        "n_iter_no_change": (Integral,),
        "validation_fraction": (Real,),
        "n_jobs": (Integral, type(None)),
        "memory": (Real, type(None)),
    }

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X, labels y (any two values) and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
            The kernel matrix if the kernel is "precomputed".
        y : array of shape (n_samples,); a source brings its own
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, 0 the same as no row.

        Returns
        -------
        self
        """
        if isinstance(X, str | os.PathLike):
            raise TypeError(f"X is a path: fit(primalsvm.open({os.fspath(X)!r})) reads it")
        if not is_source(X):
            return self._fit(X, y, sample_weight, None)
        if y is not None:
            raise ValueError("a source brings its own labels: y must not be given")
        self._check_parameters()
        with held(X, self._budget()) as found:
            if found.y is None:
                raise ValueError("the source has no labels: there is nothing to learn from")
            if not len(found.y):
                raise ValueError(f"{X.path} holds no rows")
            self._fit(found.X, found.y, sample_weight, found.cache)
            if found.names is not None:
                self.classes_ = found.names[self.classes_.astype(np.intp)]
        self.layout_: Layout | None = found.layout
        if isinstance(found.layout, TableLayout):
            self.feature_names_in_ = np.array(found.layout.feature_names, object)
        return self

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        """Fit to arrays, or to rows of a cache; its path is given if they are too many for memory."""

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """A score for every row; positive means `classes_[1]`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "coef_")
        if is_source(X):
            return np.concatenate([np.zeros(0), *(scores for scores, _ in self.judged(X, labelled=False))])
        refuse_text_columns(X)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=False)
        return self._scores(as_rows(X))

    @abstractmethod
    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """A score for every row."""

    def judged(self, source: AnySource, labelled: bool = True) -> Iterator[tuple[npt.NDArray[np.float64], Any]]:
        """Scores and labels of the rows of a source, a block at a time; the labels are None where it has none.

        Without `labelled`, labels are not looked at.
        """
        n = self.n_features_in_
        for X, y in seen_by(source, getattr(self, "layout_", None), n, labelled).blocks(AT_ONCE):
            if X.shape[1] != n:
                raise ValueError(f"{source.path} has {X.shape[1]} features, but the model has {n}")
            yield self._scores(as_rows(X)), y

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of rows whose class is foretold.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,); a source brings its own
        sample_weight : array of shape (n_samples,), optional; not with a source

        Returns
        -------
        float
        """
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        if y is not None or sample_weight is not None:
            raise ValueError("a source brings its own labels: neither y nor sample_weight must be given")
        rows, wrong = self.count_errors(X)
        return (rows - wrong) / rows

    def count_errors(self, source: AnySource) -> tuple[int, int]:
        """How many rows a source has, and how many of them are not foretold."""
        check_is_fitted(self, "coef_")
        rows = wrong = 0
        for scores, labels in self.judged(source):
            if labels is None:
                raise ValueError(f"{source.path} has no labels to compare with")
            unknown = np.setdiff1d(labels, self.classes_).tolist()
            if unknown:
                known = self.classes_.tolist()
                raise ValueError(
                    f"{source.path} has the label {unknown[0]!r}; the model knows {known[0]!r}, {known[1]!r}"
                )
            rows += scores.shape[0]
            wrong += int(np.count_nonzero(self._named(scores) != labels))
        if not rows:
            raise ValueError(f"{source.path} holds no rows")
        return rows, wrong

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._named(self.decision_function(X))

    def _named(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """The class that each score means."""
        labels: npt.NDArray[Any] = self.classes_[(scores > 0).astype(np.intp)]
        return labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier into a model file (safetensors), which `primalsvm.load` reads.

        Parameters
        ----------
        path : the file; what is there already is replaced once the new one is whole
        """
        from primalsvm.estimators.files import save_estimator  # which knows all estimators, this one included

        save_estimator(self, path)

    # ---- the parts of fit --------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, kinds in self._parameter_kinds.items():
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, kinds):
                kind = "an integer" if Integral in kinds else "a number"
                raise TypeError(f"{name} must be {kind}{' or None' if type(None) in kinds else ''}, got {given!r}")
        if not isinstance(self.checkpoint, Checkpoint | None):
            raise TypeError(f"checkpoint must be a Checkpoint object or None, got {self.checkpoint!r}")
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError("a checkpoint needs random_state, a number: a run that begins otherwise cannot go on")
        if self.lam is None and not 0 < self.C < np.inf:
            raise ValueError(f"C must be positive and finite, got {self.C!r}")
        if self.n_iter_no_change < 1:
            raise ValueError(f"n_iter_no_change must be at least 1, got {self.n_iter_no_change!r}")
        if self.early_stopping and not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}")

    def _enter(
        self, X: Any, y: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None, rows_checked: bool = False
    ) -> tuple[Any, Batch]:
        """Check everything once; the rows with labels −1 and +1 and all weights. Sets `classes_`.

        `rows_checked` leaves the check of rows in a cache to the caller.
        """
        self._check_parameters()
        if isinstance(X, CSR | Dense):  # of a cache: they are checked below
            self.n_features_in_ = shape(X)[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            refuse_text_columns(X)
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, y_numeric=False
            )
        self.__dict__.pop("layout_", None)
        check_classification_targets(y)
        classes, codes = label_codes(np.asarray(y))
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): at least two classes are needed")
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported so far; y holds {len(classes)} classes. "
                "Wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
            )
        signs = np.where(codes, 1.0, -1.0)
        batch = self._weigh(as_batch(X, signs, sample_weight, rows_checked=rows_checked), classes, codes)
        check_labels(batch)
        self.classes_ = classes
        self.n_samples_fit_ = int(codes.shape[0])
        return X, batch

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

    def _problem(self, batch: Batch) -> Problem:
        return Problem(by_name(self.loss), self._lam(batch), self._intercept())

    def _budget(self) -> float:
        """Bytes that rows, or features, may take."""
        if self.memory is None:
            return 0.5 * available()
        check_number("memory", self.memory, 0.0)
        return float(self.memory)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _solve(
        self, problem: Problem, training: Batch, validation: Batch | None, seed: int, solver: Solver
    ) -> Solution:
        """Run the solver."""
        stops = Stops(self.tol, self.max_iter, self.max_seconds, self.certify, self.n_iter_no_change)
        start = getattr(self, "_solution", None) if self.warm_start else None
        keep = resume = None
        if self.checkpoint is not None:
            keep = Keeper(self.checkpoint, identity(problem, training, solver, stops, seed), primalsvm.__version__)
            resume = keep.resumed()
        with progress_bar(self.verbose, type(self).__name__) as watch:
            return drive(
                problem, training, solver, stops, validation=validation, n_jobs=self.n_jobs, seed=seed,
                start=start, watch=watch, keep=keep, resume=resume,
            )  # fmt: skip

    def _hold_out(self, batch: Batch, seed: int, cache: Path | None = None) -> tuple[Batch, Batch | None]:
        """The rows to train on, and with early stopping those held out; the share of the classes is the same."""
        if not self.early_stopping:
            return batch, None
        if cache is not None:
            raise ValueError("early_stopping needs the rows in memory, and those of this source are too many")
        from sklearn.model_selection import train_test_split  # brings half of scikit-learn with it

        rows = np.arange(batch.y.shape[0])
        parts = train_test_split(rows, test_size=self.validation_fraction, random_state=seed, stratify=batch.y)
        kept, held = (take_batch(batch, np.sort(part)) for part in parts)
        check_labels(kept)
        return kept, held

    def _keep(self, solution: Solution, stacklevel: int = 4) -> None:
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
            warnings.warn(f"{type(self).__name__} {solution.message}", ConvergenceWarning, stacklevel=stacklevel)

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
