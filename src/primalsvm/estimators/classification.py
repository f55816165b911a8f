"""Classification: the task, and the public methods of classifiers."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d

from primalsvm.data import Dataset, Vector, as_weights
from primalsvm.estimators import prediction, streams
from primalsvm.estimators.calibration import Isotonic, Sigmoid, fold_count, method_of, probabilities
from primalsvm.estimators.encoders import Classes, Encoded, Labels
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import intercept_of, lam_of
from primalsvm.labels import as_signs, class_signs, label_codes
from primalsvm.losses import Loss, by_name
from primalsvm.objective import Problem
from primalsvm.sources.opening import is_source


class Classification:
    """y holds classes, or is an indicator matrix of labels."""

    checks: ClassVar = {"y_numeric": False, "multi_output": True}
    labelled: ClassVar = True
    numeric: ClassVar = False

    def check_parameters(self, estimator: Any) -> None:
        self.loss(estimator)
        method_of(estimator.probability)

    def loss(self, estimator: Any) -> Loss:
        """The loss function."""
        loss: Loss = by_name(estimator.loss)
        if not loss.is_classification:
            raise ValueError(f"{loss!r} is a loss of numbers, not of classes")
        return loss

    def problem(self, estimator: Any, total_weight: float) -> Problem:
        """The problem of each class against the rest, or of each label."""
        return Problem(self.loss(estimator), lam_of(estimator, total_weight), intercept_of(estimator))

    def encode(self, estimator: Any, rows: Rows) -> Encoded:
        if rows.cache is not None and method_of(estimator.probability):
            raise ValueError("probability needs the rows in memory, and those of this source are too many")
        check_classification_targets(rows.y)
        given = rows.data.weight_array()
        if rows.y.ndim == 2 and rows.y.shape[1] > 1:
            return self._encode_labels(estimator, rows, given)
        classes, codes = label_codes(column_or_1d(rows.y, warn=True))
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): at least two classes are needed")
        decoder = Classes(classes, codes)
        if isinstance(estimator.class_weight, str):  # "balanced" counts classes of positive weight only
            decoder = decoder.with_positive_weight(given)
        decoder = decoder.with_class_weight(estimator.class_weight, given).with_positive_weight(given)
        if method_of(estimator.probability):
            fold_count(decoder.codes[decoder.row_weights(given) > 0], len(codes))  # raises if a class is too small
        data = rows.data
        if decoder.weights is not None:
            data = data.with_weights(as_weights(decoder.row_weights(given), len(codes)))
        Y = class_signs(decoder.codes, len(decoder.classes))
        return Encoded(data, self.problem(estimator, data.total_weight), Y, decoder, decoder.codes)

    def _encode_labels(self, estimator: Any, rows: Rows, given: Vector) -> Encoded:
        if type_of_target(rows.y) != "multilabel-indicator" or not np.isin(rows.y, (0, 1)).all():
            raise ValueError("y has several columns: each must say with 0 and 1 which rows have its label")
        if estimator.class_weight is not None:
            raise ValueError("class_weight weighs rows by their class, and these have labels: use sample_weight")
        present = rows.y.astype(bool)
        decoder = Labels.of(present, given)
        Y = as_signs(present[:, decoder.varying])
        return Encoded(rows.data, self.problem(estimator, rows.data.total_weight), Y, decoder)

    def units(self, encoded: Encoded, data: Dataset) -> None:
        return None

    # ---- streams -----------------------------------------------------------------------------------------------------

    def encode_stream(
        self, y: npt.NDArray[Any], named: npt.ArrayLike | None, known: npt.NDArray[Any] | None
    ) -> tuple[Vector, npt.NDArray[Any]]:
        if y.ndim == 2 and y.shape[1] > 1:
            raise ValueError("partial_fit learns one class a row; labels, a y of several columns, need fit")
        y = column_or_1d(y, warn=True)
        if known is None:
            check_classification_targets(y)
            known, _ = label_codes(np.asarray(y if named is None else named))
            if len(known) < 2:
                raise ValueError(
                    f"two classes or more are needed, got {known.tolist()}: name them in the first call, "
                    "partial_fit(X, y, classes)"
                )
        elif named is not None and not np.array_equal(np.unique(np.asarray(named)), known):
            raise ValueError(f"this stream began with the classes {known.tolist()}, got {named!r}")
        unknown = np.setdiff1d(y, known).tolist()
        if unknown:
            raise ValueError(f"y holds {unknown[0]!r}, which is not among the classes {known.tolist()}")
        return class_signs(np.searchsorted(known, y), len(known)), known

    def stream_weights(
        self, estimator: Any, classes: npt.NDArray[Any], Y: Vector, given: Vector, so_far: Vector
    ) -> tuple[Vector, Vector]:
        # "balanced": Σc of all rows up to this one, divided by K times that of the rows of its class.
        n = len(classes)
        codes = (Y[:, 0] > 0).astype(np.intp) if n == 2 else Y.argmax(axis=1)
        if not isinstance(estimator.class_weight, str):
            fixed = compute_class_weight(estimator.class_weight, classes=classes, y=classes)
            return fixed[codes] * given, so_far
        if estimator.class_weight != "balanced":
            raise ValueError(f"class_weight must be a dictionary, 'balanced' or None, got {estimator.class_weight!r}")
        sums = np.empty((n, codes.shape[0] + 1))
        sums[:, 0] = so_far if so_far.size else 0.0
        for code in range(n):
            sums[code, 1:] = np.where(codes == code, given, 0.0)
        sums = np.cumsum(sums, axis=1)
        # Each class counts one more row than seen, so that the weight of the first row of a class is finite.
        own = sums[codes, np.arange(1, codes.shape[0] + 1)]
        balance = (sums[:, 1:].sum(axis=0) + n) / (n * (own + 1.0))
        return balance * given, sums[:, -1]

    def stream_errors(self, scores: Vector, Y: Vector) -> Vector:
        one = Y.shape[1] == 1
        wrong: Vector = (scores[:, 0] > 0) != (Y[:, 0] > 0) if one else scores.argmax(axis=1) != Y.argmax(axis=1)
        return wrong.astype(float)


def _gives_probabilities(estimator: Any) -> bool:
    if not method_of(estimator.probability):
        raise AttributeError("probabilities are computed only if asked for: probability='sigmoid', or 'isotonic'")
    if hasattr(estimator, "intercept_") and not hasattr(estimator, "calibration_"):
        raise AttributeError(
            "this model has no probabilities: they need a whole fit, not a stream or one cut by Ctrl-C"
        )
    return True


class Classifier(ClassifierMixin, Estimator):
    """Base class of classifiers: the class is given by the sign of a score, or by the largest of several."""

    _task = Classification()

    classes_: npt.NDArray[Any]
    multilabel_: bool
    decision_function_shape: str
    calibration_: list[Sigmoid | Isotonic]

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Scores of rows: a positive one means `classes_[1]`; with more classes or with labels there is one for each.

        With `decision_function_shape="ovo"` there is one for each pair of classes i < j, positive for class i.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes (n_classes − 1)/2)
        """
        scores = prediction.scores_of(self, X)
        if getattr(self, "decision_function_shape", "ovr") == "ovo":
            return prediction.pair_scores(self, scores)
        return prediction.class_scores(self, scores)

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Accuracy: the share of rows whose class, or all of whose labels, are predicted correctly.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,) or (n_samples, n_labels); not with a source
        sample_weight : array of shape (n_samples,), optional; not with a source

        Returns
        -------
        float
        """
        if not is_source(X):
            return float(super().score(X, y, sample_weight))
        prediction.check_source_alone(y, sample_weight)
        rows, wrong = prediction.count_errors(self, X)
        return (rows - wrong) / rows

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of every row, or the indicator matrix of labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        if getattr(self, "break_ties", False) and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        return prediction.classes_of(self, prediction.scores_of(self, X))

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of classes or labels; available if the parameter `probability` is set.

        They increase with the score. `predict` returns the class of the largest score, which need not be the most
        probable one if the largest probabilities are close.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); rows sum to 1 except with labels
        """
        check_is_fitted(self, "intercept_")
        scores = prediction.class_scores(self, prediction.scores_of(self, X))
        return probabilities(self.calibration_, scores, self.multilabel_)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithms of `predict_proba`; −∞ where it is 0.

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

    @available_if(streams.has_lam)
    def partial_fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from the next rows of a stream, visiting each row once, in constant memory.

        The first call begins a stream and discards an earlier `fit`; a `fit` ends the stream. The map, λ and the solver
        are those of the first call. Rows are visited in the given order: `tol`, `max_iter`, `early_stopping` and the
        `sampling` of the solver have no effect. `class_weight="balanced"` uses the class frequencies so far. The same
        rows give the same bits however they are divided into batches (with a kernel, if `gamma` is a number and the
        features are Fourier features; Nyström landmarks are taken from the first batch). The model averages its
        iterates; `solver=Pegasos(average="last")` follows data that change fast more closely.

        Each batch is tested before it is learnt: `progressive_error_` is the error rate so far, `n_samples_seen_` the
        number of rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array of all classes, optional
            Required in the first call unless its y holds them all.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 doubles the length of a step, 0 is equivalent to leaving the row out.

        Returns
        -------
        self
        """
        streams.partial_fit(self, X, y, classes, sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
