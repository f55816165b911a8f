"""Learning from streams: `partial_fit`, each row seen once, in constant memory."""

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from primalsvm.estimators.classifier import Classifier, label_codes, one_column
from primalsvm.estimators.detector import Detector, no_labels
from primalsvm.estimators.learner import Learner
from primalsvm.estimators.regressor import Regressor
from primalsvm.estimators.targets import Classes, Numbers, Targets
from primalsvm.inputs import as_batch, as_multiplicity, as_targets, as_weights, refuse_text_columns
from primalsvm.objective import ALONE, SIGNS, Problem
from primalsvm.objective import Targets as Sizes
from primalsvm.rows import Batch, Rows, Vector, join, sampled_squared_norms, shape, take_batch, widened
from primalsvm.solvers import stochastic
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.stochastic import StochasticState


def _has_lam(estimator: "Streaming") -> bool:
    if estimator.lam is None:
        raise AttributeError("partial_fit needs lam: C is relative to a number of rows that a stream does not tell")
    return True


class Block(NamedTuple):
    """Rows of a stream, with the labels of each problem."""

    batch: Batch
    labels: Vector  # a row for each problem

    def of(self, k: int) -> Batch:
        """The rows as problem k sees them."""
        return self.batch._replace(y=self.labels[k])


class Stream(NamedTuple):
    """What is kept between two batches."""

    states: list[StochasticState] | None = None  # one for each problem; None: before the first row
    first_rows: Block | None = None  # all rows so far, while they are too few to settle the length of the steps
    class_counts: Vector = np.zeros(0)
    tested: float = 0.0  # the weight of the rows that were tested before they were learnt
    missed: float = 0.0  # … and how far off they were, in all


class Streaming(Learner):
    """A learner whose state between two batches is that of stochastic solvers."""

    n_samples_seen_: int

    def _partial_fit(
        self, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None
    ) -> Self:
        before = self.__dict__.copy()
        try:
            return self._learn(X, y, classes, sample_weight)
        except BaseException:  # nothing is lost: as if the call had not been made
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, X: Any, y: Any, classes: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> Self:
        self._stream: Stream | None
        begun: Stream | None = getattr(self, "_stream", None)
        first = begun is None
        stream = begun or Stream()
        refuse_text_columns(X)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=first, **self._y_checks
        )
        targets = self._stream_targets(as_targets(y), classes, first)
        if first:
            self._forget_fit()
        labels = np.stack([targets.labels(k) for k in range(targets.count)])
        batch = as_batch(X, labels[0])
        multiplicity = as_multiplicity(sample_weight, labels.shape[1])
        weights, stream = self._stream_weights(stream, targets, multiplicity)
        counting = np.flatnonzero(weights)
        if counting.shape[0] < weights.shape[0]:
            if not (counting.size or first):
                return self
            X, batch, weights, labels = X[counting], take_batch(batch, counting), weights[counting], labels[:, counting]
            multiplicity = None if multiplicity is None else multiplicity[counting]
        batch = batch._replace(weight=as_weights(weights, weights.shape[0]))
        problem, solver = targets.problem(self._problem(batch)), self._online_solver()
        if first:
            self._begin_features(X, batch, multiplicity)
        block = Block(batch._replace(rows=self._features_of(batch, self.n_samples_seen_)), labels)
        if not first:
            stream = self._tested(stream, block, multiplicity)
        stream = self._stepped(stream, problem, solver, block)
        assert stream.states is not None
        with np.errstate(all="ignore"):  # what is not finite is told below
            points = [stochastic.iterate(solver.plan, state) for state in stream.states]
        if not all(np.isfinite(w).all() and np.isfinite(b) for w, b in points):
            raise ValueError(
                "the steps diverge: these rows are longer or heavier than the first ones, and "
                f"{problem.loss!r} has no bounded slope; use a loss that has, or scale the weights"
            )
        self._stream = stream
        self.coef_, self.intercept_ = np.vstack([w for w, _ in points]), np.array([b for _, b in points])
        self.n_samples_seen_ += weights.shape[0]
        self.progressive_error_ = stream.missed / stream.tested if stream.tested else np.nan
        self.n_steps_, self.n_iter_, self.solver_ = sum(state.steps for state in stream.states), 1, solver
        self._after_batch()
        return self

    def _forget_fit(self) -> None:
        """A stream begins: what an earlier fit has told is no longer so."""
        self.n_samples_seen_ = 0
        self.certificate_ = None
        for name in ("history_", "status_", "layout_", "n_samples_fit_", "certificates_", "calibration_"):
            self.__dict__.pop(name, None)

    def _end_stream(self) -> None:
        """A fit has taken the stream's place."""
        self._stream = None
        for name in ("n_samples_seen_", "progressive_error_"):
            self.__dict__.pop(name, None)

    # ---- what a class that derives says of its targets ---------------------------------------------------------------

    @abstractmethod
    def _stream_targets(self, y: npt.NDArray[Any], classes: npt.ArrayLike | None, first: bool) -> Targets:
        """Check the parameters, and what comes with the rows; their targets."""

    @abstractmethod
    def _missed(self, scores: Vector, labels: Vector) -> Vector:
        """How far off each row's scores are."""

    def _stream_weights(self, stream: Stream, targets: Any, multiplicity: Vector | None) -> tuple[Vector, Stream]:
        """The weight of each row."""
        m = targets.labels(0).shape[0]
        return np.ones(m) if multiplicity is None else multiplicity, stream

    # ---- what a class that derives says of its features --------------------------------------------------------------

    @abstractmethod
    def _check_features(self) -> None:
        """Refuse parameters that make no features of a stream."""

    @abstractmethod
    def _begin_features(self, X: Any, batch: Batch, multiplicity: Vector | None) -> None:
        """What the first batch of a stream decides."""

    @abstractmethod
    def _features_of(self, batch: Batch, position: int) -> Rows:
        """The features of rows, the first of which is number `position` of the stream."""

    @abstractmethod
    def _unit_length(self) -> bool:
        """Whether ‖φ(x)‖² is 1 on average, whatever the rows are."""

    @abstractmethod
    def _default_online(self) -> Asset | Pegasos:
        """The solver of a stream if none is named."""

    @abstractmethod
    def _after_batch(self) -> None:
        """What else is known once `coef_` is."""

    # ---- the parts of partial_fit ------------------------------------------------------------------------------------

    def _tested(self, stream: Stream, block: Block, multiplicity: Vector | None) -> Stream:
        """Progressive validation: what the model says of these rows, before it learns from them."""
        scores = np.stack(
            [
                ALONE.scores(block.batch.rows, w) + b
                for w, b in zip(np.atleast_2d(self.coef_), self.intercept_, strict=True)
            ]
        )
        missed = self._missed(scores, block.labels)
        times = np.ones(missed.shape) if multiplicity is None else multiplicity
        return stream._replace(tested=stream.tested + float(times.sum()), missed=stream.missed + float(times @ missed))

    def _stepped(self, stream: Stream, problem: Problem, solver: Asset | Pegasos, block: Block) -> Stream:
        """Take the steps of every problem.

        Their length follows from the first rows, `solver.sample` of them. Until these have come, the steps over all
        rows so far are taken afresh in each call, so that what comes out does not depend on how they came.
        """
        states, unsettled = stream.states, None
        if states is None or stream.first_rows is not None:
            if stream.first_rows is not None:
                before = stream.first_rows
                block = Block(join(before.batch, block.batch), np.hstack([before.labels, block.labels]))
            unit, rows = self._unit_length(), shape(block.batch.rows)[0]
            at_once = unit and np.isfinite(problem.loss.slope_bound) and problem.loss.of_signs
            wanted = 1 if at_once else solver.sample
            typical = take_batch(block.batch, np.arange(min(wanted, rows)))
            norms = np.ones(1) if unit else sampled_squared_norms(typical.rows, wanted)
            heaviest = float(typical.weight.values.max())
            settings = solver.settings(sized(problem, typical), norms, heaviest=heaviest)
            states = [
                stochastic.begin(solver.plan, settings, problem, block.of(k)) for k in range(block.labels.shape[0])
            ]
            unsettled = block if rows < wanted else None
        else:
            states = copy.deepcopy(states)  # they are changed in place, and the call may fail or be interrupted
        with np.errstate(all="ignore"):  # what is not finite is told by the caller
            states = [stochastic.absorb(solver.plan, problem, block.of(k), state) for k, state in enumerate(states)]
        return stream._replace(states=states, first_rows=unsettled)

    def _online_solver(self) -> Asset | Pegasos:
        solver: Any = self.solver
        if isinstance(solver, str):
            solver = {"auto": self._default_online(), "asset": Asset(), "pegasos": Pegasos()}.get(solver, solver)
        if not isinstance(solver, Asset | Pegasos):
            raise ValueError(f"partial_fit needs a stochastic solver, Asset() or Pegasos(), not {solver!r}")
        if solver.plan.n_iter is not None:
            raise ValueError("n_iter has no meaning in a stream: it takes as many steps as it has rows")
        if solver.plan.average == "random":
            raise ValueError("average='random' needs to know the number of steps, which a stream does not tell")
        return solver


def sized(problem: Problem, typical: Batch) -> Problem:
    """The problem with the size of typical targets; at least that of signs, as those to come may be larger."""
    settled = problem.settled(typical)
    if problem.tilt:  # there are no targets
        return settled
    sizes = Sizes(*(max(pair) for pair in zip(settled.targets, SIGNS, strict=True)))
    return replace(settled, targets=sizes)


class StreamingClassifier(Classifier, Streaming):
    """A classifier that learns from streams."""

    @available_if(_has_lam)
    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from the next rows of a stream, each seen once, in constant memory.

        The first call begins a stream, and forgets an earlier `fit`; a `fit` ends it. The same rows give the same bits
        however the stream is cut (with a kernel: if `gamma` is a number and the map needs no data, as Fourier features;
        Nyström landmarks come from the first batch). The map and λ are those of the first call. Rows are taken in the
        order in which they come: the solver's `sampling`, and the classifier's `tol`, `max_iter` and `early_stopping`,
        have no say. `class_weight="balanced"` goes by the shares of the classes so far. The model is an average of
        steps, which lags behind a world that changes fast: `solver=Pegasos(average="last")` follows it sooner.

        Each batch is tested before it is learnt: `progressive_error_` is the share of rows that were not foretold,
        `n_samples_seen_` the number of rows so far.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : all classes; needed in the first call unless its y holds them all
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 makes a step twice as long, 0 is the same as no row.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, classes, sample_weight)

    def _stream_targets(self, y: npt.NDArray[Any], classes: npt.ArrayLike | None, first: bool) -> Classes:
        self._check_parameters()
        self._check_features()
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError("partial_fit learns one class a row; labels, a y of several columns, need fit")
        y = one_column(y)
        if first:
            check_classification_targets(y)
            found, _ = label_codes(np.asarray(y if classes is None else classes))
            if len(found) < 2:
                raise ValueError(
                    f"two classes or more are needed, got {found.tolist()}: name them in the first call, "
                    "partial_fit(X, y, classes)"
                )
            self.classes_, self.multilabel_ = found, False
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"this stream began with the classes {self.classes_.tolist()}, got {classes!r}")
        unknown = np.setdiff1d(y, self.classes_).tolist()
        if unknown:
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {self.classes_.tolist()}")
        return Classes(self.classes_, np.searchsorted(self.classes_, y))

    def _missed(self, scores: Vector, labels: Vector) -> Vector:
        one = scores.shape[0] == 1
        wrong: Vector = (scores[0] > 0) != (labels[0] > 0) if one else scores.argmax(axis=0) != labels.argmax(axis=0)
        return wrong.astype(float)

    def _stream_weights(self, stream: Stream, targets: Classes, multiplicity: Vector | None) -> tuple[Vector, Stream]:
        """The weight of each row. "balanced": all that came up to this row, against K times what came of its class."""
        codes, n = targets.codes, len(self.classes_)
        times = np.ones(codes.shape[0]) if multiplicity is None else multiplicity
        if not isinstance(self.class_weight, str):
            fixed = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
            return fixed[codes] * times, stream
        if self.class_weight != "balanced":
            raise ValueError(f"class_weight must be a dictionary, 'balanced' or None, got {self.class_weight!r}")
        so_far = np.empty((n, codes.shape[0] + 1))
        so_far[:, 0] = stream.class_counts if stream.class_counts.size else 0.0
        for code in range(n):
            so_far[code, 1:] = np.where(codes == code, times, 0.0)
        so_far = np.cumsum(so_far, axis=1)
        # One more of each class, as if seen before: a class that has not come yet is not taken for infinitely rare.
        own = so_far[codes, np.arange(1, codes.shape[0] + 1)]
        balance = (so_far[:, 1:].sum(axis=0) + n) / (n * (own + 1.0))
        return balance * times, stream._replace(class_counts=so_far[:, -1])


class StreamingRegressor(Regressor, Streaming):
    """A regressor that learns from streams."""

    @available_if(_has_lam)
    def partial_fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, each seen once, in constant memory.

        As a classifier's, but for the units: targets are taken as they are, and should be about 1 in size.
        `progressive_error_` is the mean absolute error of each batch before it is learnt.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, None, sample_weight)

    def _stream_targets(self, y: npt.NDArray[Any], classes: npt.ArrayLike | None, first: bool) -> Numbers:
        self._check_parameters()
        self._check_features()
        return Numbers(np.asarray(y, float), 1.0, 0.0, 1)

    def _missed(self, scores: Vector, labels: Vector) -> Vector:
        distance: Vector = np.abs(scores[0] - labels[0])
        return distance


class StreamingDetector(Detector, Streaming):
    """A detector that learns from streams."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, each seen once, in constant memory.

        As a classifier's. `progressive_error_` is the share of rows that were taken for outliers before they were
        learnt; it comes near `nu`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self._partial_fit(X, no_labels(X), None, sample_weight)

    def _stream_targets(self, y: npt.NDArray[Any], classes: npt.ArrayLike | None, first: bool) -> Numbers:
        self._check_parameters()
        self._check_features()
        return Numbers(y, 1.0, 0.0, 1)

    def _missed(self, scores: Vector, labels: Vector) -> Vector:
        outside: Vector = (scores[0] < 0.0).astype(float)
        return outside


def widen(estimator: Any, n_features: int) -> None:
    """Let the next rows of a linear stream have more columns: those that came before had zeros there."""
    more = n_features - estimator.n_features_in_
    stream: Stream = estimator._stream
    assert stream.states is not None
    before = stream.first_rows
    first_rows = None if before is None else before._replace(batch=widened(before.batch, n_features))
    states = [stochastic.widened(state, n_features) for state in stream.states]
    estimator._stream = stream._replace(states=states, first_rows=first_rows)
    estimator.coef_ = np.concatenate([estimator.coef_, np.zeros((*estimator.coef_.shape[:-1], more))], axis=-1)
    estimator.n_features_in_ = n_features
