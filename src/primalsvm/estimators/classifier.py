"""Classifiers: what classes are to a learner."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from primalsvm.estimators.learner import Learner
from primalsvm.estimators.targets import Classes
from primalsvm.inputs import as_weights
from primalsvm.losses import Loss, by_name
from primalsvm.rows import Batch
from primalsvm.sources.opening import AnySource


class Classifier(ClassifierMixin, Learner):
    """A classifier by the sign of a score, or by the largest of one score for each class."""

    classes_: npt.NDArray[Any]
    _y_checks: ClassVar[dict[str, bool]] = {"y_numeric": False}

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """A score for every row, positive means `classes_[1]`; with more than two classes one score for each of them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._scored(X)

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
        if not self._scores_a_source(X, y, sample_weight):
            return float(super().score(X, y, sample_weight))
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
                    f"{source.path} has the label {unknown[0]!r}; the model knows {', '.join(map(repr, known))}"
                )
            rows += scores.shape[0]
            wrong += int(np.count_nonzero(self.named(scores) != labels))
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
        return self.named(self.decision_function(X))

    def named(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """The class that each score, or each row of them, means."""
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[codes]
        return labels

    # ---- classes as targets ------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        loss = by_name(self.loss)
        if not loss.of_signs:
            raise ValueError(f"{loss!r} is a loss of numbers, not of classes")
        return loss

    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Classes:
        check_classification_targets(y)
        classes, codes = label_codes(y)
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): at least two classes are needed")
        targets = Classes(classes, codes)
        targets.check(batch)
        self.classes_ = classes
        return targets

    def _weigh(self, batch: Batch, targets: Classes) -> Batch:
        """Multiply sample weights with class weights."""
        if self.class_weight is None:
            return batch
        classes, codes = targets.classes, targets.codes
        given = np.broadcast_to(batch.weight.values, codes.shape)
        per_class = compute_class_weight(self.class_weight, classes=classes, y=classes[codes], sample_weight=given)
        weighted = batch._replace(weight=as_weights(per_class[codes] * given, len(codes)))
        targets.check(weighted)
        return weighted

    def _check_names(self, names: npt.NDArray[Any] | None) -> None:
        pass

    def _name(self, names: npt.NDArray[Any] | None) -> None:
        if names is not None:
            self.classes_ = names[self.classes_.astype(np.intp)]


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
