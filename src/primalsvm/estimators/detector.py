"""Detectors of novelty: rows without labels, most of which are as they should be."""

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin
from sklearn.utils.validation import _num_samples

from primalsvm.estimators.learner import Examples, Learner
from primalsvm.estimators.targets import Numbers
from primalsvm.losses import OneSided
from primalsvm.objective import Problem, mean_row
from primalsvm.options import check_share
from primalsvm.rows import CSR, Batch, Dense, shape
from primalsvm.sources.opening import Held, is_source, unlabelled
from primalsvm.team import team_for

ROUNDING = 1e-13  # of a score, relative to ρ: support vectors lie on the boundary, and count as inliers


class Detector(OutlierMixin, Learner):
    """A detector by the sign of a score: the one-class problem, whose λ is ν."""

    _y_checks: ClassVar[dict[str, bool]] = {"y_numeric": True}
    _parameter_kinds: ClassVar[dict[str, tuple[type, ...]]] = {
        **{name: Learner._parameter_kinds[name] for name in ("tol", "max_iter", "max_seconds", "n_jobs", "memory")},
        "nu": (Real,),
    }
    # No labels, so nothing that held-out rows could be judged by.
    early_stopping: ClassVar[bool] = False
    n_iter_no_change: ClassVar[int] = 1

    @property
    def lam(self) -> float:
        """λ: the objective is that of Schölkopf et al. times ν."""
        return float(self.nu)

    @property
    def offset_(self) -> npt.NDArray[np.float64]:
        """ρ = −b."""
        offset: npt.NDArray[np.float64] = -self.intercept_
        return offset

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
            The kernel matrix if the kernel is "precomputed".
        y : ignored, as are the labels of a source
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, 0 the same as no row.

        Returns
        -------
        self
        """
        if is_source(X):
            return super().fit(unlabelled(X), None, sample_weight)
        return super().fit(X, no_labels(X), sample_weight)

    def score_samples(self, X: Any) -> npt.NDArray[np.float64]:
        """⟨w, φ(x)⟩ of every row: the lower, the more of an outlier.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self.decision_function(X) + self.offset_

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """`score_samples` − `offset_`: negative for outliers.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scored(X)

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """+1 for every row that is as it should be, −1 for an outlier.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= -ROUNDING * np.abs(self.offset_), 1, -1)

    # ---- rows without targets ----------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("nu", self.nu)

    def _loss(self) -> OneSided:
        return OneSided()

    def _problem(self, batch: Batch) -> Problem:
        return Problem(self._loss(), self.lam, "free", tilt=self.lam)

    def _brought_by(self, found: Held) -> Any:
        return np.zeros((shape(found.X) if isinstance(found.X, CSR | Dense) else found.X.shape)[0])

    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Numbers:
        return Numbers(y, 1.0, 0.0, self._loss().degree)

    def _in_units(self, rows: Examples) -> Examples:
        """Scores have the size of ⟨x, x'⟩: the unit is how far those of the mean row spread."""
        with team_for(self.n_jobs) as team:
            unit = mean_row(rows.batch, team).spread
        return rows._replace(targets=Numbers(rows.batch.y, unit, 0.0, self._loss().degree))


def no_labels(X: Any) -> npt.NDArray[np.float64]:
    """A label for every row, that says nothing."""
    return np.zeros(_num_samples(X))
