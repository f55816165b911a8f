"""Classifiers: what classes are to a learner."""

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from primalsvm.estimators.calibration import Isotonic, Sigmoid, calibrated, folds_of, method_of, probabilities
from primalsvm.estimators.learner import Learner
from primalsvm.estimators.targets import Classes, Labels, Targets
from primalsvm.inputs import as_targets, as_weights
from primalsvm.losses import Loss, by_name
from primalsvm.rows import CSR, Batch, Dense
from primalsvm.solution import Solution, Status
from primalsvm.sources.opening import AnySource, as_matrix


def _gives_probabilities(estimator: "Classifier") -> bool:
    if not method_of(estimator.probability):
        raise AttributeError("probabilities are computed only if asked for: probability='sigmoid', or 'isotonic'")
    if hasattr(estimator, "coef_") and not hasattr(estimator, "calibration_"):
        raise AttributeError(
            "this model has no probabilities: they need a whole fit, not a stream or one cut by Ctrl-C"
        )
    return True


class Classifier(ClassifierMixin, Learner):
    """A classifier by the sign of a score, or by the largest of one for each class; of labels, by the sign of each."""

    classes_: npt.NDArray[Any]
    multilabel_: bool
    calibration_: list[Sigmoid | Isotonic]
    _y_checks: ClassVar[dict[str, bool]] = {"y_numeric": False, "multi_output": True}

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """A score for every row, positive means `classes_[1]`; of more than two classes, or of labels, one for each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._scored(X)

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of rows whose class is foretold, or all of whose labels are.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,) or (n_samples, n_labels); a source brings its own
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
        if self.multilabel_:
            raise ValueError(f"{source.path} has one class a row, but the model tells labels")
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
        """The class of every row, or which labels it has.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,), or of 0 and 1 of shape (n_samples, n_labels)
        """
        return self.named(self.decision_function(X))

    def named(self, scores: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """The class that each score, or each row of them, means; or the labels."""
        if self.multilabel_:
            return (scores > 0).astype(int)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, or of each label, where the parameter `probability` asks for it.

        It rises with the score; but where it is near ½, or several classes are near, the class that `predict` names
        need not be the most probable one: that is the class of the largest score.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); rows sum to 1, unless they are of labels
        """
        check_is_fitted(self, "coef_")
        return probabilities(self.calibration_, self._scored(X), self.multilabel_)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The logarithms of `predict_proba`; −∞ where it is 0.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            found: npt.NDArray[np.float64] = np.log(self.predict_proba(X))
        return found

    # ---- classes as targets ------------------------------------------------------------------------------------------

    def _loss(self) -> Loss:
        loss = by_name(self.loss)
        if not loss.of_signs:
            raise ValueError(f"{loss!r} is a loss of numbers, not of classes")
        return loss

    def _targets_of(self, y: npt.NDArray[Any], batch: Batch) -> Classes | Labels:
        check_classification_targets(y)
        self.multilabel_ = y.ndim == 2 and y.shape[1] > 1
        if self.multilabel_:
            return self._labels_of(y, batch)
        classes, codes = label_codes(one_column(y))
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): at least two classes are needed")
        given = np.broadcast_to(batch.weight.values, codes.shape)
        targets = Classes(classes, codes)
        if isinstance(self.class_weight, str):  # "balanced" is about classes that are there
            targets = targets.that_count(given)
        targets = replace(targets, weights=self._class_weights(targets, given)).that_count(given)
        if method_of(self.probability):
            folds_of(targets.codes[targets.row_weights(given) > 0], len(codes))  # or it is refused
        self.classes_ = targets.classes
        return targets

    def _class_weights(self, targets: Classes, given: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        if self.class_weight is None:
            return None
        classes, codes = targets.classes, targets.codes
        weights: npt.NDArray[Any] = compute_class_weight(
            self.class_weight, classes=classes, y=classes[codes], sample_weight=given
        )
        if not np.isfinite(weights).all():
            raise ValueError("class_weight contains NaN or infinity")
        if weights.min() < 0.0:
            raise ValueError(f"class_weight must not be negative, got {self.class_weight!r}")
        return weights

    def _labels_of(self, y: npt.NDArray[Any], batch: Batch) -> Labels:
        if type_of_target(y) != "multilabel-indicator" or not np.isin(y, (0, 1)).all():
            raise ValueError("y has several columns: each must say with 0 and 1 which rows have its label")
        if self.class_weight is not None:
            raise ValueError("class_weight weighs rows by their class, and these have labels: use sample_weight")
        targets = Labels.of(y.astype(bool), batch.weight.values)
        self.classes_ = np.arange(y.shape[1])
        return targets

    def _weigh(self, batch: Batch, targets: Classes | Labels) -> Batch:
        """Multiply sample weights with class weights."""
        if isinstance(targets, Labels) or targets.weights is None:
            return batch
        weights = targets.row_weights(batch.weight.values)
        return batch._replace(weight=as_weights(weights, len(weights)))

    def _keep(self, found: list[Solution], targets: Targets, stacklevel: int = 4) -> None:
        super()._keep(found, targets, stacklevel + 1)
        if isinstance(targets, Labels) and targets.constants:
            self._keep_constants(targets, stacklevel + 1)

    def _keep_constants(self, targets: Labels, stacklevel: int) -> None:
        """A label that all rows agree on is foretold as it is: w = 0 and b = ±1. Nothing is solved, or certified."""
        constants, varying = targets.constants, targets.varying
        certificates = dict(zip(varying.tolist(), self.certificates_, strict=True))
        self.certificates_ = [certificates.get(k) for k in self.classes_.tolist()]
        coef, intercept = np.zeros((len(self.classes_), self.coef_.shape[1])), np.zeros(len(self.classes_))
        coef[varying], intercept[varying] = self.coef_, self.intercept_
        intercept[list(constants)] = [1.0 if everywhere else -1.0 for everywhere in constants.values()]
        self.coef_, self.intercept_ = coef, intercept
        k, everywhere = next(iter(constants.items()))
        more = f" (and {len(constants) - 1} more are as constant)" if len(constants) > 1 else ""
        where = "all rows" if everywhere else "none of the rows"
        warnings.warn(f"label {k} is at {where}{more}: it will be foretold so", UserWarning, stacklevel=stacklevel)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        method_of(self.probability)

    def _check_larger_than_memory(self) -> None:
        if method_of(self.probability):
            raise ValueError("probability needs the rows in memory, and those of this source are too many")

    def _calibrate(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> None:
        self.__dict__.pop("calibration_", None)
        if not method_of(self.probability) or self.status_ is Status.INTERRUPTED:
            return
        if isinstance(X, CSR | Dense):
            X = as_matrix(X)
        else:
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=False, **self._y_checks
            )
        y = as_targets(y)
        found = calibrated(self, X, y if self.multilabel_ else y.reshape(-1), sample_weight)
        if found is not None:
            self.calibration_ = found
        else:
            warnings.warn(
                f"{type(self).__name__} was interrupted before its probabilities were fitted: it has none",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _check_names(self, names: npt.NDArray[Any] | None) -> None:
        pass

    def _name(self, names: npt.NDArray[Any] | None) -> None:
        if names is not None:
            self.classes_ = names[self.classes_.astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def one_column(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A y of one class a row, as a vector; a matrix of one column is warned about, as scikit-learn does."""
    column: npt.NDArray[Any] = column_or_1d(y, warn=True)
    return column


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
