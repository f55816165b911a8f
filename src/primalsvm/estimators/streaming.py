"""Classifiers that learn from streams: `partial_fit`, each row seen once, in constant memory."""

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from primalsvm.estimators.classifier import MarginClassifier, label_codes
from primalsvm.inputs import as_batch, as_multiplicity, as_weights, refuse_text_columns
from primalsvm.rows import Batch, Rows, Vector, shape, take_batch
from primalsvm.solvers import stochastic
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.stochastic import StochasticState


def _has_lam(estimator: "StreamingClassifier") -> bool:
    if estimator.lam is None:
        raise AttributeError("partial_fit needs lam: C is relative to a number of rows that a stream does not tell")
    return True


class StreamingClassifier(MarginClassifier):
    """A classifier whose state between two batches is a stochastic solver's."""

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
        however the stream is cut, if `gamma` is a number and the map needs no data (Fourier features; Nyström landmarks
        come from the first batch). The map and λ are those of the first call. Rows are taken in the order in which they
        come: the solver's `sampling`, and the classifier's `tol`, `max_iter` and `early_stopping`, have no say.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : the two classes; needed in the first call unless its y holds both
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 makes a step twice as long, 0 is the same as no row.

        Returns
        -------
        self
        """
        before = self.__dict__.copy()
        try:
            return self._learn(X, y, classes, sample_weight)
        except BaseException:  # nothing is lost: as if the call had not been made
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, X: Any, y: Any, classes: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None) -> Self:
        first = getattr(self, "_stream", None) is None
        refuse_text_columns(X)
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, y_numeric=False, reset=first
        )
        self._check_stream(np.asarray(y), classes, first)
        codes = (np.asarray(y) == self.classes_[1]).astype(np.intp)
        batch = as_batch(X, 2.0 * codes - 1.0)
        multiplicity = as_multiplicity(sample_weight, codes.shape[0])
        counting = np.flatnonzero(self._class_weights()[codes] * (1.0 if multiplicity is None else multiplicity))
        if counting.shape[0] < codes.shape[0]:
            if not (counting.size or first):
                return self
            X, batch, codes = X[counting], take_batch(batch, counting), codes[counting]
            multiplicity = None if multiplicity is None else multiplicity[counting]
        batch = self._weigh(batch._replace(weight=as_weights(multiplicity, codes.shape[0])), self.classes_, codes)
        problem, solver = self._problem(batch), self._online_solver()
        if first:
            self._begin_features(X, batch, multiplicity)
        in_features = batch._replace(rows=self._features_of(batch, self._stream_rows))
        if first:
            heaviest = float(batch.weight.values.max())
            settings = solver.settings(problem, self._first_norms(in_features), heaviest=heaviest)
            self._stream: StochasticState | None = stochastic.begin(solver.plan, settings, problem, in_features)
        state = copy.deepcopy(self._stream)  # it is changed in place, and the call may fail or be interrupted
        assert state is not None
        with np.errstate(all="ignore"):  # what is not finite is told below
            state = stochastic.absorb(solver.plan, problem, in_features, state)
            w, b = stochastic.iterate(solver.plan, state)
        if not (np.isfinite(w).all() and np.isfinite(b)):
            raise ValueError(
                "the steps diverge: these rows are longer or heavier than those of the first call, and "
                f"{problem.loss!r} has no bounded slope; use a loss that has, or scale the weights"
            )
        self._stream = state
        self._stream_rows += shape(batch.rows)[0]
        self.coef_, self.intercept_ = w.reshape(1, -1), np.array([b])
        self.n_steps_, self.n_iter_, self.solver_ = state.steps, 1, solver
        self._after_batch()
        return self

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
    def _first_norms(self, in_features: Batch) -> Vector:
        """‖x‖² of rows that the solver may take as typical."""

    @abstractmethod
    def _after_batch(self) -> None:
        """What else is known once `coef_` is."""

    # ---- the parts of partial_fit ------------------------------------------------------------------------------------

    def _check_stream(self, y: npt.NDArray[Any], classes: npt.ArrayLike | None, first: bool) -> None:
        """Check the parameters, and what comes with the rows. Sets `classes_`."""
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows at once: give the weights of the classes")
        self._check_features()
        if first:
            found, _ = label_codes(np.asarray(y if classes is None else classes))
            if len(found) != 2:
                raise ValueError(
                    f"two classes are needed, got {found.tolist()}: name them in the first call, "
                    "partial_fit(X, y, classes)"
                )
            self.classes_ = found
            self._stream_rows = 0
            self.certificate_ = None
            for name in ("history_", "status_"):  # of an earlier fit
                self.__dict__.pop(name, None)
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"this stream began with the classes {self.classes_.tolist()}, got {classes!r}")
        unknown = np.setdiff1d(y, self.classes_).tolist()
        if unknown:
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {self.classes_.tolist()}")

    def _class_weights(self) -> npt.NDArray[Any]:
        weights: npt.NDArray[Any] = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
        return weights

    def _online_solver(self) -> Asset | Pegasos:
        solver: Any = self.solver
        if isinstance(solver, str):
            solver = {"auto": Asset(), "asset": Asset(), "pegasos": Pegasos()}.get(solver, solver)
        if not isinstance(solver, Asset | Pegasos):
            raise ValueError(f"partial_fit needs a stochastic solver, Asset() or Pegasos(), not {solver!r}")
        if solver.plan.n_iter is not None:
            raise ValueError("n_iter has no meaning in a stream: it takes as many steps as it has rows")
        if solver.plan.average == "random":
            raise ValueError("average='random' needs to know the number of steps, which a stream does not tell")
        return solver
