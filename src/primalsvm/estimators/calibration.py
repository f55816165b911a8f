"""Probabilities from scores, by scikit-learn's calibration.

    Sigmoid    p(s) = 1 / (1 + exp(a s + b))         Platt's, a and b of maximum likelihood
    Isotonic   p(s) = the non-decreasing step-wise linear function of least squared error

of a class against the rest, or of a label. They are fitted to scores of rows that were held out: the rows are cut into
folds, and each fold is scored by a model of the others. The model itself is that of all rows. Those of more than two
classes are divided by their sum.

Weights of rows count in all of it, and rows of weight 0 are not there; those of classes count in the fits only, so that
probabilities are those of rows as they occur. But a row of weight 2 lies in one fold, and the same row
twice may lie in two: of probabilities it is nearly, not exactly, the same.
"""

import warnings
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from primalsvm.data import Vector
from primalsvm.solution import Status

FOLDS = 5
METHODS = ("sigmoid", "isotonic")

Scores = npt.NDArray[np.float64]


class Sigmoid(NamedTuple):
    """Platt's sigmoid, falling in a s + b.

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
    """A non-decreasing function between its knots; constant beyond them.

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
    """What `probability` asks for.

    Examples
    --------
    >>> method_of(True), method_of("isotonic"), method_of(False)
    ('sigmoid', 'isotonic', None)
    """
    if probability is None or isinstance(probability, bool | np.bool_):
        return "sigmoid" if probability else None
    if not (isinstance(probability, str) and probability in METHODS):
        raise ValueError(f"probability must be 'sigmoid', 'isotonic', True or False, got {probability!r}")
    method: Literal["sigmoid", "isotonic"] = "sigmoid" if probability == "sigmoid" else "isotonic"
    return method


def folds_of(strata: Vector | None, rows: int) -> int:
    """How many folds: five, or as many as the smallest class has rows.

    Examples
    --------
    >>> folds_of(np.array([0, 0, 0, 1, 1, 1, 1]), 7)
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
    """A probability for each problem, from the scores of rows that other estimators like this one hold out.

    None after Ctrl-C.
    """
    y = y if multilabel else y.reshape(-1)
    present = y > 0 if multilabel else y[:, None] == classes
    counting = np.ones(len(y), bool) if weight is None else weight > 0
    if not multilabel:
        counting &= present.any(axis=1)  # a class of weight 0 is none
    rows = np.flatnonzero(counting)
    strata = None if multilabel else present[rows].argmax(axis=1)
    model = clone(estimator).set_params(probability=False, warm_start=False, checkpoint=None)
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
    """The scores of some rows, each by the model when it is fitted to other rows."""
    from sklearn.model_selection import KFold, StratifiedKFold  # brings half of scikit-learn with it

    how = {"n_splits": folds_of(strata, len(rows)), "shuffle": True, "random_state": random_state}
    folds = KFold(**how) if strata is None else StratifiedKFold(**how)
    pairwise = model.__sklearn_tags__().input_tags.pairwise
    scores = None
    for train, test in folds.split(rows, strata):
        seen, unseen = rows[train], rows[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what there is to say was said of the fit to all rows
            model.fit(X[seen][:, seen] if pairwise else X[seen], y[seen], None if weight is None else weight[seen])
        if model.status_ is Status.INTERRUPTED:
            return None
        found = model.decision_function(X[unseen][:, seen] if pairwise else X[unseen]).reshape(len(test), -1)
        scores = np.zeros((len(rows), found.shape[1])) if scores is None else scores
        scores[test] = found
    return scores


class _AsGiven(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are scores already: what scikit-learn's calibration is left to do is to fit to them."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "_AsGiven":
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> Any:
        return (X[:, 0] > 0).astype(int)

    def decision_function(self, X: Any) -> Any:
        return X[:, 0]


def fit_probability(probability: Any, scores: Scores, present: Vector, weight: Vector | None) -> Sigmoid | Isotonic:
    """The probability that scikit-learn fits to scores of held-out rows; 0 or 1 for a label that all rows agree on."""
    if present.all() or not present.any():
        return Isotonic(np.zeros(1), present[:1].astype(float))
    from sklearn import config_context
    from sklearn.calibration import CalibratedClassifierCV

    method, every = method_of(probability), np.arange(len(scores))
    model = CalibratedClassifierCV(_AsGiven(), method=method, cv=[(every, every)], ensemble=False)
    with config_context(enable_metadata_routing=False):  # the weights are for the calibration
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
