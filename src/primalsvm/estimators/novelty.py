"""Novelty detection: the task, and the public methods of detectors."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from primalsvm.data import Dataset, Vector
from primalsvm.estimators import prediction, streams
from primalsvm.estimators.encoders import Encoded, Units
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.loading import Rows
from primalsvm.losses import OneSided
from primalsvm.objective import Problem, mean_row
from primalsvm.options import check_share

# Rows whose scores are as near to ρ as this, relative to it, are on the boundary, and count as inliers.
ON_BOUNDARY = 1e-13
# Many support vectors of an exact machine are on the boundary, up to the accuracy of the solver: some 1e-10 where the
# problem is small. With a threshold below that, rounding would decide which of them are outliers.
ON_EXACT_BOUNDARY = 1e-8


@dataclass(frozen=True)
class Novelty:
    """The one-class problem, which has no y; its λ is ν.

    Scores have the size of ⟨x, x'⟩; the problem is solved in units of the spread of the scores of the mean row.

    Parameters
    ----------
    summed : whether fitted scores are sums over the rows, as LIBSVM's are, ν Σc times as large as those of the problem
    """

    summed: bool = False
    checks: ClassVar[dict[str, Any]] = {}
    labelled: ClassVar = False
    numeric: ClassVar = True

    def check_parameters(self, estimator: Any) -> None:
        check_share("nu", estimator.nu)

    def problem(self, estimator: Any, total_weight: float) -> Problem:
        """The objective of Schölkopf et al. times ν."""
        nu = float(estimator.nu)
        return Problem(OneSided(), nu, "free", nu)

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        data = rows.data
        problem = self.problem(estimator, data.total_weight)
        unit = problem.nu * data.total_weight if self.summed else 1.0
        return Encoded(data, problem, np.zeros((data.shape[0], 1)), score_unit=unit)

    def units(self, encoded: Encoded, data: Dataset) -> Units:
        return Units(mean_row(data).spread, 0.0, encoded.problem.loss.degree)

    # ---- streams -----------------------------------------------------------------------------------------------------

    def encode_stream(self, y: Any, named: Any, known: Any) -> tuple[Vector, None]:
        return np.zeros((y.shape[0], 1)), None

    def stream_weights(
        self, estimator: Any, classes: None, Y: Vector, given: Vector, so_far: Vector
    ) -> tuple[Vector, Vector]:
        return given, so_far

    def stream_errors(self, scores: Vector, Y: Vector) -> Vector:
        outside: Vector = (scores[:, 0] < 0.0).astype(float)
        return outside


class Detector(OutlierMixin, Estimator):
    """Base class of novelty detectors: outliers have negative scores."""

    _task = Novelty()

    @property
    def offset_(self) -> npt.NDArray[np.float64]:
        """ρ = −b."""
        offset: npt.NDArray[np.float64] = -self.intercept_
        return offset

    def score_samples(self, X: Any) -> npt.NDArray[np.float64]:
        """⟨w, φ(x)⟩ of every row; lower values are more abnormal.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """`score_samples` − `offset_`: negative for outliers, 0 on the boundary up to rounding.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = prediction.scores_of(self, X)
        near = ON_EXACT_BOUNDARY if getattr(self, "approximation_", "") == "exact" else ON_BOUNDARY
        scores[np.abs(scores) <= near * np.abs(self.offset_)] = 0.0
        return scores

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """+1 for inliers, −1 for outliers.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn from the next rows of a stream, visiting each row once, in constant memory.

        As `partial_fit` of classifiers. `progressive_error_` is the share of rows that were predicted as outliers
        before they were learnt; it approaches `nu`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        streams.partial_fit(self, X, None, None, sample_weight)
        return self
