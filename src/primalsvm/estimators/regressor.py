"""Regressors: what numbers are to a learner."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from primalsvm.estimators.learner import Learner
from primalsvm.estimators.targets import Numbers
from primalsvm.inputs import as_rows, refuse_text_columns
from primalsvm.losses import EpsilonInsensitive, Huber, Loss, Pinball, SquaredEpsilonInsensitive
from primalsvm.options import check_choice
from primalsvm.rows import Batch
from primalsvm.sources.opening import is_source

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball")


class Regressor(RegressorMixin, Learner):
    """A regressor whose prediction is its score."""

    _y_checks: ClassVar[dict[str, bool]] = {"y_numeric": True}

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The target of every row.

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

    # ---- numbers as targets ------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        if not isinstance(self.loss, str):
            if getattr(self.loss, "of_signs", True):
                raise ValueError(f"{self.loss!r} is a loss of classes, not of numbers")
            loss: Loss = self.loss
            return loss
        check_choice("loss", self.loss, LOSSES, "or give a loss object")
        epsilon, tau = float(self.epsilon), float(self.quantile)
        by_name: dict[str, Loss] = {
            "epsilon_insensitive": EpsilonInsensitive(epsilon),
            "squared_epsilon_insensitive": SquaredEpsilonInsensitive(epsilon),
            "huber": Huber(epsilon),
            "pinball": Pinball(tau),
        }
        return by_name[self.loss]

    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Numbers:
        numbers = np.asarray(y, float)
        counted = numbers[np.broadcast_to(batch.weight.values, numbers.shape) > 0]
        if counted.size == 1:
            raise ValueError("1 sample of positive weight only: there is nothing to compare it with")
        if np.ptp(counted) == 0.0:
            raise ValueError(f"y is constant ({counted[0]:g}): there is nothing to learn")
        return Numbers.of(numbers, batch.weight.values, self._loss(), free=self._intercept() == "free")
