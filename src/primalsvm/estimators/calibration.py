"""Probabilities from scores, by scikit-learn's calibration.

    Sigmoid    p(s) = 1 / (1 + exp(a s + b))         Platt (1999): a and b by maximum likelihood
    Isotonic   p(s) = the non-decreasing piecewise linear function of least squared error

There is a function for each class against the rest, or each label. It is fitted by cross-validation: each fold of the
rows is scored by a model fitted to the other folds. The final model is fitted to all rows. With more than two classes,
the probabilities are divided by their sum.

Sample weights count in all fits, and rows of weight 0 are left out. Class weights count in the fits of models only, so
that probabilities are those of the rows as they occur. A row of weight 2 lies in one fold while two equal rows may lie
in two, so the probabilities differ slightly.
"""

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from primalsvm.data import Vector
from primalsvm.estimators.prediction import Scores
from primalsvm.solution import Status

FOLDS = 5
METHODS = ("sigmoid", "isotonic")


class Sigmoid(NamedTuple):
    """Platt's sigmoid, a decreasing function of a s + b.

    Examples
    --------
    >>> Sigmoid(a=-2.0, b=0.0)(np.array([0.0, 9.0])).round(6)
    array([0.5, 1. ])
    """

    a: float
    b: float

    def __call__(self, scores: Scores) -> Scores:
        p: Scores = expit(-(self.a * scores + self.b))
        return p


class Isotonic(NamedTuple):
    """A non-decreasing piecewise linear function, constant outside of its knots.

    Examples
    --------
    >>> Isotonic(np.array([-1.0, 1.0]), np.array([0.2, 0.6]))(np.array([-9.0, 0.0]))
    array([0.2, 0.4])
    """

    scores: Vector
    probabilities: Vector

    def __call__(self, scores: Scores) -> Scores:
        p: Scores = np.interp(scores, self.scores, self.probabilities)
        return p


def method_of(probability: Any) -> Literal["sigmoid", "isotonic"] | None:
    """The method that the parameter `probability` means; None: no probabilities.

    Examples
    --------
    >>> method_of(True), method_of("isotonic"), method_of(False)
    ('sigmoid', 'isotonic', None)
    """
    if isinstance(probability, str) and probability == "deprecated":  # the default of scikit-learn 1.9
        return None
    if probability is None or isinstance(probability, bool | np.bool_):
        return "sigmoid" if probability else None
    if not (isinstance(probability, str) and probability in METHODS):
        raise ValueError(f"probability must be 'sigmoid', 'isotonic', True or False, got {probability!r}")
    return "sigmoid" if probability == "sigmoid" else "isotonic"


def fold_count(strata: Vector | None, rows: int) -> int:
    """The number of folds: five, or the number of rows of the smallest class.

    Examples
    --------
    >>> fold_count(np.array([0, 0, 0, 1, 1, 1, 1]), 7)
    3
    """
    fewest = rows if strata is None else int(np.unique(strata, return_counts=True)[1].min())
    if fewest < 2:
        what = "rows" if strata is None else "rows of each class"
        raise ValueError(f"probabilities are fitted to rows that were held out: at least two {what} are needed")
    return min(FOLDS, fewest)


def calibration_of(
    estimator: Any, X: Any, y: npt.NDArray[Any], weight: Vector | None, classes: npt.NDArray[Any], multilabel: bool
) -> list[Sigmoid | Isotonic] | None:
    """The probabilities of each problem, from the scores of held-out rows; None after Ctrl-C."""
    y = y if multilabel else y.reshape(-1)
    present = y > 0 if multilabel else y[:, None] == classes
    counting = np.ones(len(y), bool) if weight is None else weight > 0
    if not multilabel:
        counting &= present.any(axis=1)  # rows of a class of weight 0 are left out
    rows = np.flatnonzero(counting)
    strata = None if multilabel else present[rows].argmax(axis=1)
    once: dict[str, Any] = {"probability": False, "warm_start": False, "checkpoint": None}
    once["decision_function_shape"] = "ovr"  # there is a function for each class
    model = clone(estimator)
    model.set_params(**{name: one for name, one in once.items() if name in model.get_params(deep=False)})
    if isinstance(model.class_weight, dict):
        known = set(classes.tolist())
        model.set_params(class_weight={name: one for name, one in model.class_weight.items() if name in known})
    scores = held_out_scores(model, X, y, weight, rows, strata, estimator.random_state)
    if scores is None:
        return None
    columns = present[rows, 1:] if scores.shape[1] == 1 else present[rows]
    heavy = None if weight is None else weight[rows]
    return [fit_probability(estimator.probability, scores[:, k], columns[:, k], heavy) for k in range(scores.shape[1])]


def held_out_scores(
    model: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: Vector | None,
    rows: npt.NDArray[np.intp],
    strata: npt.NDArray[Any] | None,
    random_state: Any,
) -> Scores | None:
    """The scores of some rows by cross-validation; None after Ctrl-C."""
    from sklearn.model_selection import KFold, StratifiedKFold  # slow to import

    how = {"n_splits": fold_count(strata, len(rows)), "shuffle": True, "random_state": random_state}
    folds = KFold(**how) if strata is None else StratifiedKFold(**how)
    pairwise = model.__sklearn_tags__().input_tags.pairwise
    scores = None
    for train, test in folds.split(rows, strata):
        seen, unseen = rows[train], rows[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has warned already
            model.fit(X[seen][:, seen] if pairwise else X[seen], y[seen], None if weight is None else weight[seen])
        if model.status_ is Status.INTERRUPTED:
            return None
        found = model.decision_function(X[unseen][:, seen] if pairwise else X[unseen]).reshape(len(test), -1)
        scores = np.zeros((len(rows), found.shape[1])) if scores is None else scores
        scores[test] = found
    return scores


class KnownScores(ClassifierMixin, BaseEstimator):
    """A classifier of rows whose scores are known."""

    def __init__(self, classes: Any, scores: Any) -> None:
        self.classes, self.scores = classes, scores
        self.classes_ = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KnownScores":
        return self

    def decision_function(self, X: Any) -> Any:
        return self.scores

    def predict(self, X: Any) -> Any:
        scores = self.scores
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


def fit_probability(probability: Any, scores: Scores, present: Vector, weight: Vector | None) -> Sigmoid | Isotonic:
    """The probability that scikit-learn fits to scores of held-out rows; 0 or 1 for a constant label."""
    if present.all() or not present.any():
        return Isotonic(np.zeros(1), present[:1].astype(float))
    from sklearn import config_context
    from sklearn.calibration import CalibratedClassifierCV

    method, every = method_of(probability), np.arange(len(scores))
    known = KnownScores(np.array([0, 1]), scores)
    model = CalibratedClassifierCV(known, method=method, cv=[(every, every)], ensemble=False)
    with config_context(enable_metadata_routing=False):  # the weights are those of the calibration
        model.fit(scores[:, None], present.astype(int), sample_weight=weight)
    (found,) = model.calibrated_classifiers_[0].calibrators
    if method == "sigmoid":
        return Sigmoid(float(found.a_), float(found.b_))
    return Isotonic(np.asarray(found.X_thresholds_, float), np.asarray(found.y_thresholds_, float))


def probabilities(calibration: list[Sigmoid | Isotonic], scores: Scores, multilabel: bool) -> Scores:
    """The probability of each class, or of each label."""
    columns = scores.reshape(len(scores), -1)
    p = np.stack([one(column) for one, column in zip(calibration, columns.T, strict=True)], axis=1)
    if multilabel:
        return p
    if p.shape[1] == 1:
        return np.hstack([1.0 - p, p])
    total = p.sum(axis=1, keepdims=True)
    shares: Scores = np.full_like(p, 1.0 / p.shape[1])  # where all are 0
    np.divide(p, total, out=shares, where=total != 0.0)
    return shares
