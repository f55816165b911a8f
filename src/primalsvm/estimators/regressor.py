"""Regressors: what numbers are to a learner."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from primalsvm.estimators.learner import Learner
from primalsvm.estimators.targets import Numbers
from primalsvm.losses import EpsilonInsensitive, Huber, Loss, Pinball, SquaredEpsilonInsensitive
from primalsvm.options import check_choice
from primalsvm.rows import Batch

LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball")


class Regressor(RegressorMixin, Learner):
    """A regressor whose prediction is its score."""

    _y_checks: ClassVar[dict[str, bool]] = {"y_numeric": True}
    _parameter_kinds: ClassVar[dict[str, tuple[type, ...]]] = {
        **Learner._parameter_kinds,
        "epsilon": (Real,),
        "quantile": (Real,),
    }

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The target of every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scored(X)

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """R²: the share of the targets' variance that is foretold.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,); a source brings its own
        sample_weight : array of shape (n_samples,), optional; not with a source

        Returns
        -------
        float
        """
        if not self._scores_a_source(X, y, sample_weight):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self, "coef_")
        foretold, there = [], []
        for scores, targets in self.judged(X):
            if targets is None:
                raise ValueError(f"{X.path} has no targets to compare with")
            foretold.append(scores)
            there.append(np.asarray(targets, float))
        if not there:
            raise ValueError(f"{X.path} holds no rows")
        truth = np.concatenate(there)
        return 1.0 - float(np.square(np.concatenate(foretold) - truth).sum() / np.square(truth - truth.mean()).sum())

    # ---- numbers as targets ------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        if not isinstance(self.loss, str):
            if getattr(self.loss, "of_signs", True):
                raise ValueError(f"{self.loss!r} is a loss of classes, not of numbers")
            loss: Loss = self.loss
            return loss
        check_choice("loss", self.loss, LOSSES, "or give a loss object")
        epsilon, tau = float(self.epsilon), float(self.quantile)
        if self.loss == "huber" and not epsilon > 0.0:
            raise ValueError(
                f"with loss='huber' epsilon is δ, from which errors count linearly; it must be positive: {epsilon:g}"
            )
        if not 0.0 < tau < 1.0:
            raise ValueError(f"quantile must lie between 0 and 1, got {tau:g}")
        by_name: dict[str, Loss] = {
            "epsilon_insensitive": EpsilonInsensitive(epsilon),
            "squared_epsilon_insensitive": SquaredEpsilonInsensitive(epsilon),
            "huber": Huber(epsilon),
            "pinball": Pinball(tau),
        }
        return by_name[self.loss]

    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Numbers:
        try:
            numbers = np.asarray(y, float)
        except ValueError:
            raise ValueError(f"y holds {y.tolist()[0]!r}, which is no number: numbers are needed") from None
        counted = numbers[np.broadcast_to(batch.weight.values, numbers.shape) > 0]
        if counted.size == 1:
            raise ValueError("1 sample of positive weight only: there is nothing to compare it with")
        free = self._intercept() == "free"
        if free and np.ptp(counted) == 0.0:
            raise ValueError(f"y is constant ({counted[0]:g}): there is nothing to learn")
        found = Numbers.of(numbers, batch.weight.values, self._loss(), free)
        before: Numbers | None = getattr(self, "_solved_in", None)
        if before is not None and not found.near(before):
            self._solutions = None  # in other units, a previous solution is no place to start from
        self._solved_in = replace(found, y=numbers[:0])
        return found
