"""What all estimators share: the door, the parameters, the solves, and what is kept of them."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

import primalsvm
from primalsvm.checkpoints import Checkpoint, Keeper, identity
from primalsvm.estimators.progress import progress_bar
from primalsvm.estimators.targets import Targets
from primalsvm.inputs import as_batch, as_rows, as_targets, refuse_text_columns
from primalsvm.losses import Loss
from primalsvm.memory import available
from primalsvm.objective import Problem
from primalsvm.options import check_number
from primalsvm.rows import CSR, Batch, Dense, Stored, shape, take_batch, total_weight
from primalsvm.solution import Certificate, Solution, Status
from primalsvm.solvers.drive import Stops, drive
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.sequence import present
from primalsvm.solvers.together import drive_together
from primalsvm.sources.layout import Layout, TableLayout
from primalsvm.sources.opening import AT_ONCE, AnySource, Held, held, is_source, seen_by


class Examples(NamedTuple):
    """Rows with what their targets are: the batch's own y is that of the first problem."""

    batch: Batch
    targets: Targets

    def take(self, rows: npt.NDArray[Any]) -> "Examples":
        """Some of them."""
        targets = self.targets.take(rows)
        return Examples(take_batch(self.batch, rows)._replace(y=targets.labels(0)), targets)

    def of(self, k: int) -> Batch:
        """The batch of problem k."""
        return self.batch._replace(y=self.targets.labels(k))


class Learner(BaseEstimator):
    """An estimator whose scores are ⟨w, φ(x)⟩ + b; the parameters are those of the classes that derive."""

    _parameter_kinds: ClassVar[dict[str, tuple[type, ...]]] = {
        "C": (Real,),
        "lam": (Real, type(None)),
        "tol": (Real,),
        "max_iter": (Integral, type(None)),
        "max_seconds": (Real, type(None)),
        "n_iter_no_change": (Integral,),
        "validation_fraction": (Real,),
        "n_jobs": (Integral, type(None)),
        "memory": (Real, type(None)),
    }

    _switches: ClassVar[tuple[str, ...]] = (
        "fit_intercept", "penalize_intercept", "certify", "warm_start", "early_stopping",
    )  # fmt: skip

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X, targets y and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
            The kernel matrix if the kernel is "precomputed".
        y : array of shape (n_samples,); a source brings its own
            Of a classifier also 0 and 1 of shape (n_samples, n_labels), sparse or not: which rows have which labels.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, 0 the same as no row.

        Returns
        -------
        self
        """
        with self._given(X, y) as found:
            self._fit(found.X, found.y, sample_weight, found.cache)
            self._calibrate(found.X, found.y, sample_weight)
        return self

    @contextmanager
    def _given(self, X: Any, y: npt.ArrayLike | None) -> Iterator[Held]:
        """What `fit` was given, arrays or a source, while it is fitted to; of a source layout and names are kept."""
        if isinstance(X, str | os.PathLike):
            raise TypeError(f"X is a path: fit(primalsvm.open({os.fspath(X)!r})) reads it")
        if not is_source(X):
            yield Held(X, y, None)
            return
        if y is not None:
            raise ValueError("a source brings its own labels: y must not be given")
        self._check_parameters()
        with held(X, self._budget()) as found:
            labels = self._brought_by(found)
            if not len(labels):
                raise ValueError(f"{X.path} holds no rows")
            if found.cache is not None:
                self._check_larger_than_memory()
            yield found._replace(y=labels)
            self._name(found.names)
        self.layout_: Layout | None = found.layout
        if isinstance(found.layout, TableLayout):
            self.feature_names_in_ = np.array(found.layout.feature_names, object)

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, cache: Path | None) -> Self:
        """Fit to arrays, or to rows of a cache; its path is given if they are too many for memory."""

    # ---- what a class that derives says of its targets and features -----------------------------------------------

    _y_checks: ClassVar[dict[str, Any]] = {}  # for scikit-learn's check of X and y

    @abstractmethod
    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Targets:
        """What is solved for, from a checked y."""

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss."""

    @abstractmethod
    def _scores(self, rows: Stored) -> npt.NDArray[np.float64]:
        """A score for every row; with several problems, a row of scores."""

    def _weigh(self, batch: Batch, targets: Any) -> Batch:
        """The rows with all their weights."""
        return batch

    def _check_larger_than_memory(self) -> None:
        """Refuse what cannot be done with rows that do not fit into memory."""

    def _calibrate(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> None:
        """What is learnt of the scores after a fit."""

    def _brought_by(self, found: Held) -> Any:
        """The labels that a source brings."""
        if found.y is None:
            raise ValueError("the source has no labels: there is nothing to learn from")
        self._check_names(found.names)
        return found.y

    def _check_names(self, names: npt.NDArray[Any] | None) -> None:
        """Refuse text where numbers are needed."""
        if names is not None:
            raise ValueError(f"the targets of this source are text, such as {names.tolist()[0]!r}: numbers are needed")

    def _name(self, names: npt.NDArray[Any] | None) -> None:
        """Take the names of the numbers that a source has in the place of text."""

    def _scored(self, X: Any) -> npt.NDArray[np.float64]:
        """The scores of arrays or of a source, checked."""
        check_is_fitted(self, "coef_")
        if is_source(X):
            problems = np.atleast_2d(self.coef_).shape[0]
            nothing = np.zeros((0, problems) if problems > 1 else 0)
            return np.concatenate([nothing, *(scores for scores, _ in self.judged(X, labelled=False))])
        refuse_text_columns(X)
        X = validate_data(self, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=False)
        return self._scores(as_rows(X))

    # ---- sources -----------------------------------------------------------------------------------------------------

    def _scores_a_source(self, X: Any, y: Any, sample_weight: Any) -> bool:
        """Whether `score` is asked about a source, which then comes alone."""
        if is_source(X) and (y is not None or sample_weight is not None):
            raise ValueError("a source brings its own labels: neither y nor sample_weight must be given")
        return is_source(X)

    def judged(self, source: AnySource, labelled: bool = True) -> Iterator[tuple[npt.NDArray[np.float64], Any]]:
        """Scores and labels of the rows of a source, a block at a time; the labels are None where it has none.

        Without `labelled`, labels are not looked at.
        """
        n = self.n_features_in_
        for X, y in seen_by(source, getattr(self, "layout_", None), n, labelled).blocks(AT_ONCE):
            if X.shape[1] != n:
                raise ValueError(f"{source.path} has {X.shape[1]} features, but the model has {n}")
            yield self._scores(as_rows(X)), y

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator into a model file (safetensors), which `primalsvm.load` reads.

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
        for name in self._switches:
            given = getattr(self, name, False)
            if not isinstance(given, bool | np.bool_):
                raise TypeError(f"{name} must be True or False, got {given!r}")
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
    ) -> tuple[Any, Examples]:
        """Check everything once; the rows with their targets and all weights."""
        X, given, batch = self._enter_arrays(X, y, sample_weight, rows_checked)
        targets = self._targets_of(given, batch)
        return X, Examples(self._weigh(batch._replace(y=targets.labels(0)), targets), targets)

    def _enter_arrays(
        self, X: Any, y: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None, rows_checked: bool = False
    ) -> tuple[Any, npt.NDArray[Any], Batch]:
        """Check X, y and the weights; y comes back as it is, and the batch without it.

        `rows_checked` leaves the check of rows in a cache to the caller.
        """
        self._check_parameters()
        if isinstance(X, CSR | Dense):  # of a cache: they are checked below
            self.n_features_in_ = shape(X)[1]
            self.__dict__.pop("feature_names_in_", None)
        else:
            refuse_text_columns(X)
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **self._y_checks
            )
        self.__dict__.pop("layout_", None)
        given = as_targets(y)
        batch = as_batch(X, np.zeros(given.shape[:1]), sample_weight, rows_checked=rows_checked)
        self.n_samples_fit_ = int(given.shape[0])
        return X, given, batch

    def _lam(self, batch: Batch) -> float:
        return float(self.lam) if self.lam is not None else 1.0 / (self.C * total_weight(batch))

    def _intercept(self) -> Literal["none", "penalized", "free"]:
        if not self.fit_intercept:
            return "none"
        return "penalized" if self.penalize_intercept else "free"

    def _problem(self, batch: Batch) -> Problem:
        return Problem(self._loss(), self._lam(batch), self._intercept())

    def _in_units(self, rows: Examples) -> Examples:
        """The rows, with targets in units that suit their features."""
        return rows

    def _budget(self) -> float:
        """Bytes that rows, or features, may take."""
        if self.memory is None:
            return 0.5 * available()
        check_number("memory", self.memory, 0.0)
        return float(self.memory)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _solve(
        self,
        problem: Problem,
        training: Examples,
        validation: Examples | None,
        seed: int,
        solver: Solver,
    ) -> list[Solution]:
        """Solve every problem, in units that suit it; several of them side by side."""
        training = self._in_units(training)
        problem, restored = training.targets.problem(problem), training.targets.restored
        stops = Stops(self.tol, self.max_iter, self.max_seconds, self.certify, self.n_iter_no_change)
        count = training.targets.count
        before: list[Solution] = (getattr(self, "_solutions", None) or []) if self.warm_start else []
        start = before if len(before) == count else None
        if count > 1:
            if self.checkpoint is not None:
                raise ValueError("a checkpoint is of one problem: it cannot be kept of several classes")
            with progress_bar(self.verbose, type(self).__name__) as watch:
                solutions = drive_together(
                    problem, [training.of(k) for k in range(count)], solver, stops,
                    validation=None if validation is None else [validation.of(k) for k in range(count)],
                    n_jobs=self.n_jobs, seed=seed, start=start, watch=watch,
                )  # fmt: skip
            return [restored(solution) for solution in solutions]
        keep = resume = None
        if self.checkpoint is not None:
            run = identity(problem, training.batch, solver, stops, seed)
            keep = Keeper(self.checkpoint, run, primalsvm.__version__)
            resume = keep.resumed()
        with progress_bar(self.verbose, type(self).__name__) as watch:
            solution = drive(
                problem, training.batch, solver, stops, validation=None if validation is None else validation.batch,
                n_jobs=self.n_jobs, seed=seed, start=None if start is None else start[0],
                watch=watch, keep=keep, resume=resume,
            )  # fmt: skip
        return [restored(solution)]

    def _hold_out(self, rows: Examples, seed: int, cache: Path | None = None) -> tuple[Examples, Examples | None]:
        """The rows to train on, and with early stopping those held out; the share of the classes is the same."""
        if not self.early_stopping:
            return rows, None
        if cache is not None:
            raise ValueError("early_stopping needs the rows in memory, and those of this source are too many")
        from sklearn.model_selection import train_test_split  # brings half of scikit-learn with it

        weight = np.broadcast_to(rows.batch.weight.values, rows.batch.y.shape)
        every = np.flatnonzero(weight > 0)
        strata = None if rows.targets.strata is None else rows.targets.strata[every]
        parts = train_test_split(every, test_size=self.validation_fraction, random_state=seed, stratify=strata)
        kept, held = (rows.take(np.sort(part)) for part in parts)
        kept.targets.check(kept.batch)
        return kept, held

    def _keep(self, found: list[Solution], targets: Targets, stacklevel: int = 4) -> None:
        """What is learnt."""
        self._solutions = found if self.warm_start else None
        self._record(found, stacklevel + 1)

    def _record(self, found: list[Solution], stacklevel: int) -> None:
        """What a fit leaves behind; a warning if it fell short."""
        self.coef_ = np.vstack([solution.w for solution in found])
        self.intercept_ = np.array([solution.b for solution in found])
        self.certificates_ = [solution.certificate for solution in found]
        self.certificate_ = combined(self.certificates_)
        self.history_ = found[0].trace if len(found) == 1 else joined([solution.trace for solution in found])
        worst = max(found, key=lambda one: (one.status is Status.INTERRUPTED, one.status.fell_short))
        self.status_: Status = worst.status
        self.solver_, _ = present(found[0].solver, found[0].state)
        self.n_iter_ = max(1, *(int(np.ceil(solution.n_epochs)) for solution in found))
        self.n_steps_ = sum(solution.n_steps for solution in found)
        short = [solution for solution in found if self._falls_short(solution)]
        if short:
            which = "" if len(found) == 1 else f"({len(short)} of {len(found)} problems) "
            warnings.warn(f"{type(self).__name__} {which}{short[0].message}", ConvergenceWarning, stacklevel=stacklevel)

    def _falls_short(self, solution: Solution) -> bool:
        proof = solution.certificate
        finished_short = solution.status is Status.FINISHED and proof is not None and proof.relative_gap > self.tol
        return solution.status.fell_short or finished_short

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def joined(traces: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The traces of several problems one below the other, with a column that says whose each row is.

    Examples
    --------
    >>> from primalsvm.solution import Trace
    >>> trace = Trace()
    >>> trace.append(1.0, 10, 0.1, 0.5, 0.4, np.nan)
    >>> joined([trace.array(), trace.array()])["problem"]
    array([0, 1])
    """
    out = np.empty(sum(map(len, traces)), [("problem", np.int64), *traces[0].dtype.descr])
    out["problem"] = np.repeat(np.arange(len(traces)), [len(trace) for trace in traces])
    for name in traces[0].dtype.names or ():
        out[name] = np.concatenate([trace[name] for trace in traces])
    return out


def keep_parameters(estimator: Any, given: dict[str, Any]) -> None:
    """Store what `__init__` was given, as scikit-learn wants it: under its name, untouched."""
    for name, value in given.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


def combined(certificates: list[Certificate | None]) -> Certificate | None:
    """The certificate of all problems together: ΣD ≤ ΣP* ≤ ΣP.

    Examples
    --------
    >>> combined([Certificate.of(2.0, 1.0), Certificate.of(3.0, 3.0)]).gap
    1.0
    """
    known = [certificate for certificate in certificates if certificate is not None]
    if len(known) < len(certificates):
        return None
    if len(known) == 1:
        return known[0]
    return Certificate.of(sum(one.primal for one in known), sum(one.dual for one in known))
