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
from primalsvm.estimators.calibration import Isotonic, Sigmoid, folds_of, method_of, probabilities
from primalsvm.estimators.encoders import Classes, Encoded, Labels
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.loading import Rows
from primalsvm.estimators.parameters import intercept_of, lam_of
from primalsvm.labels import as_signs, class_signs, label_codes
from primalsvm.losses import Loss, by_name
from primalsvm.objective import Problem
from primalsvm.sources.opening import is_source


class Classification:
    """y holds classes, or in several columns 0 and 1, which rows have which labels."""

    checks: ClassVar = {"y_numeric": False, "multi_output": True}  # for scikit-learn's check of X and y
    labelled = True
    numeric = False

    def check_parameters(self, estimator: Any) -> None:
        self.loss(estimator)
        method_of(estimator.probability)

    def loss(self, estimator: Any) -> Loss:
        """The loss."""
        loss: Loss = by_name(estimator.loss)
        if not loss.is_classification:
            raise ValueError(f"{loss!r} is a loss of numbers, not of classes")
        return loss

    def problem(self, estimator: Any, total_weight: float) -> Problem:
        """Of each class against the rest, or of each label."""
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
        meaning = Classes(classes, codes)
        if isinstance(estimator.class_weight, str):  # "balanced" is about classes that are there
            meaning = meaning.with_positive_weight(given)
        meaning = meaning.with_class_weight(estimator.class_weight, given).with_positive_weight(given)
        if method_of(estimator.probability):
            folds_of(meaning.codes[meaning.row_weights(given) > 0], len(codes))  # refuses classes that are too small
        data = rows.data
        if meaning.weights is not None:
            data = data.with_weights(as_weights(meaning.row_weights(given), len(codes)))
        Y = class_signs(meaning.codes, len(meaning.classes))
        return Encoded(data, self.problem(estimator, data.total_weight), Y, meaning, meaning.codes)

    def _encode_labels(self, estimator: Any, rows: Rows, given: Vector) -> Encoded:
        if type_of_target(rows.y) != "multilabel-indicator" or not np.isin(rows.y, (0, 1)).all():
            raise ValueError("y has several columns: each must say with 0 and 1 which rows have its label")
        if estimator.class_weight is not None:
            raise ValueError("class_weight weighs rows by their class, and these have labels: use sample_weight")
        present = rows.y.astype(bool)
        meaning = Labels.of(present, given)
        Y = as_signs(present[:, meaning.varying])
        return Encoded(rows.data, self.problem(estimator, rows.data.total_weight), Y, meaning)

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
        # "balanced": the weight of all rows up to this one, over K times that of those of its class.
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
        # One more of each class, as if seen before: a class that has not come yet is not taken for infinitely rare.
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
    if hasattr(estimator, "coef_") and not hasattr(estimator, "calibration_"):
        raise AttributeError(
            "this model has no probabilities: they need a whole fit, not a stream or one cut by Ctrl-C"
        )
    return True


class Classifier(ClassifierMixin, Estimator):
    """A classifier by the sign of a score, or by the largest of one for each class; of labels, by the sign of each."""

    _task = Classification()

    classes_: npt.NDArray[Any]
    multilabel_: bool
    calibration_: list[Sigmoid | Isotonic]

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """A score for every row, positive means `classes_[1]`; of more than two classes, or of labels, one for each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return prediction.scores_of(self, X)

    def score(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """The share of rows whose class is predicted, or all of whose labels are.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
        y : array of shape (n_samples,) or (n_samples, n_labels); a source brings its own
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
        """The class of every row, or which labels it has.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)

        Returns
        -------
        ndarray of shape (n_samples,), or of 0 and 1 of shape (n_samples, n_labels)
        """
        return prediction.classes_of(self, self.decision_function(X))

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
        return probabilities(self.calibration_, prediction.scores_of(self, X), self.multilabel_)

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

    @available_if(streams.has_lam)
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
        Nyström landmarks come from the first batch). The map, λ and the solver are those of the first call. Rows are
        taken in the order in which they come: the solver's `sampling`, and the classifier's `tol`, `max_iter` and
        `early_stopping`, have no effect. `class_weight="balanced"` goes by the shares of the classes so far. The model
        is an average of steps, which lags behind data that change fast: `solver=Pegasos(average="last")` follows them
        sooner.

        Each batch is tested before it is learnt: `progressive_error_` is the share of rows that were predicted wrongly,
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
        streams.partial_fit(self, X, y, classes, sample_weight)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
