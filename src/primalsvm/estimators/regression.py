"""Regression: the task, and the public methods of regressors."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from primalsvm.data import Dataset, Vector
from primalsvm.estimators import prediction, streams
from primalsvm.estimators.encoders import Encoded, Units
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import intercept_of, lam_of
from primalsvm.losses import RegressionLoss
from primalsvm.losses.registry import named_losses, regression_loss
from primalsvm.objective import Problem
from primalsvm.options import check_choice
from primalsvm.sources.opening import is_source


class Regression:
    """y holds numbers; the problem is solved in units in which they have a size of about 1."""

    checks: ClassVar = {"y_numeric": True}
    labelled: ClassVar = True
    numeric: ClassVar = True

    def check_parameters(self, estimator: Any) -> None:
        self.loss(estimator)

    def loss(self, estimator: Any) -> RegressionLoss:
        """The loss function."""
        if not isinstance(estimator.loss, str):
            if getattr(estimator.loss, "is_classification", True):
                raise ValueError(f"{estimator.loss!r} is a loss of classes, not of numbers")
            missing = [name for name in ("degree", "scaled") if not hasattr(estimator.loss, name)]
            if missing:
                raise ValueError(f"{estimator.loss!r} has no {' and no '.join(missing)}, which regressors need")
            loss: RegressionLoss = estimator.loss
            return loss
        check_choice("loss", estimator.loss, tuple(named_losses(is_classification=False)), "or give a loss object")
        epsilon, tau = float(estimator.epsilon), float(estimator.quantile)
        if estimator.loss == "huber" and not epsilon > 0.0:
            raise ValueError(
                f"with loss='huber' epsilon is δ, from which errors count linearly; it must be positive: {epsilon:g}"
            )
        if not 0.0 < tau < 1.0:
            raise ValueError(f"quantile must lie between 0 and 1, got {tau:g}")
        found: RegressionLoss = regression_loss(estimator.loss, epsilon, tau)
        return found

    def problem(self, estimator: Any, total_weight: float) -> Problem:
        """The problem in the units of y."""
        return Problem(self.loss(estimator), lam_of(estimator, total_weight), intercept_of(estimator))

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        y, data = as_floats(rows.y, "numbers"), rows.data
        counted = y[data.weight_array() > 0]
        if counted.size == 1:
            raise ValueError("1 sample of positive weight only: there is nothing to compare it with")
        problem = self.problem(estimator, data.total_weight)
        return Encoded(data, problem, y[:, None])

    def units(self, encoded: Encoded, data: Dataset) -> Units:
        problem, y = encoded.problem, encoded.Y[:, 0]
        return Units.of(y, encoded.data.weight_array(), problem.loss.degree, problem.intercept == "free")

    # ---- streams -----------------------------------------------------------------------------------------------------

    def encode_stream(self, y: npt.NDArray[Any], named: Any, known: Any) -> tuple[Vector, None]:
        return np.asarray(y, float)[:, None], None

    def stream_weights(
        self, estimator: Any, classes: None, Y: Vector, given: Vector, so_far: Vector
    ) -> tuple[Vector, Vector]:
        return given, so_far

    def stream_errors(self, scores: Vector, Y: Vector) -> Vector:
        distance: Vector = np.abs(scores[:, 0] - Y[:, 0])
        return distance


def as_floats(y: npt.NDArray[Any], what: str) -> npt.NDArray[np.float64]:
    """Targets as numbers.

    Examples
    --------
    >>> as_floats(np.array([1, 2]), "numbers")
    array([1., 2.])
    """
    try:
        return np.asarray(y, float)
    except ValueError:
        raise ValueError(f"y holds {y.tolist()[0]!r}, which is no number: {what} are needed") from None


class Regressor(RegressorMixin, Estimator):
    """Base class of regressors: the prediction is the score."""

    _task = Regression()

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predicted target of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return prediction.scores_of(self, X)

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Coefficient of determination R².

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,); not with a source
        sample_weight : array of shape (n_samples,), optional; not with a source

        Returns
        -------
        float
        """
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        prediction.check_source_alone(y, sample_weight)
        check_is_fitted(self, "intercept_")
        predicted, there = [], []
        for scores, targets in prediction.scores_by_block(self, X):
            if targets is None:
                raise ValueError(f"{X.path} has no targets to compare with")
            predicted.append(scores)
            there.append(np.asarray(targets, float))
        if not there:
            raise ValueError(f"{X.path} holds no rows")
        truth = np.concatenate(there)
        return 1.0 - float(np.square(np.concatenate(predicted) - truth).sum() / np.square(truth - truth.mean()).sum())

    @available_if(streams.has_lam)
    def partial_fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, visiting each row once, in constant memory.

        As `partial_fit` of classifiers. The units of y are not changed: targets should have a size of about 1.
        `progressive_error_` is the mean absolute error of the rows before they were learnt.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        streams.partial_fit(self, X, y, None, sample_weight)
        return self
