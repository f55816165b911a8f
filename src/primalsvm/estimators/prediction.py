"""Scores of rows from arrays or a source, and the classes that they mean."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from primalsvm.data import as_block, thread_pool
from primalsvm.estimators.expansion import one_vs_rest_scores, pair_votes
from primalsvm.estimators.loading import check_matrix
from primalsvm.one_vs_one import class_pairs
from primalsvm.sources.opening import is_source
from primalsvm.sources.source import BLOCK_BYTES

Scores = npt.NDArray[np.float64]


def scores_of(estimator: Any, X: Any) -> Scores:
    """The scores of the rows of an array or a source, of shape (n_samples,) or (n_samples, n_problems)."""
    check_is_fitted(estimator, "intercept_")
    if is_source(X):
        problems = len(estimator.intercept_)
        nothing = np.zeros((0, problems) if problems > 1 else 0)
        return np.concatenate([nothing, *(scores for scores, _ in scores_by_block(estimator, X, labelled=False))])
    return block_scores(estimator, as_block(check_matrix(estimator, X, reset=False)))


def scores_by_block(estimator: Any, source: Any, labelled: bool = True) -> Iterator[tuple[Scores, Any]]:
    """Scores and labels of the rows of a source, block by block; labels are None if missing or not `labelled`."""
    n = estimator.n_features_in_
    for X, y in source.for_model(getattr(estimator, "layout_", None), n, labelled).blocks(BLOCK_BYTES):
        if X.shape[1] != n:
            raise ValueError(f"{source.path} has {X.shape[1]} features, but the model has {n}")
        yield block_scores(estimator, as_block(X)), y


def block_scores(estimator: Any, block: Any) -> Scores:
    """⟨w, φ(x)⟩ + b of the rows of a block, for each w."""
    with thread_pool(estimator.n_jobs) as threads:
        found: Scores = estimator._features.scores(estimator, block, threads)
    found += estimator.intercept_
    return found


def check_source_alone(y: Any, sample_weight: Any) -> None:
    """Raise a ValueError if labels or weights are given beside a source."""
    if y is not None or sample_weight is not None:
        raise ValueError("a source brings its own labels: neither y nor sample_weight must be given")


# ---- classes ---------------------------------------------------------------------------------------------------------


def class_scores(classifier: Any, scores: Scores) -> Scores:
    """A score for each class, or for one of two; of one-vs-one problems, from their scores."""
    if not is_one_vs_one(classifier):
        return scores
    count = len(classifier.classes_)
    return one_vs_rest_scores(scores, class_pairs(count), count)


def pair_scores(classifier: Any, scores: Scores) -> Scores:
    """A score for each pair of more than two classes; of one-vs-rest problems, the difference of the two scores."""
    if is_one_vs_one(classifier) or scores.ndim == 1 or classifier.multilabel_:
        return scores
    return np.stack([scores[:, i] - scores[:, j] for i, j in class_pairs(scores.shape[1])], axis=1)


def is_one_vs_one(classifier: Any) -> bool:
    """Whether there is a problem for each pair of classes."""
    return getattr(classifier, "multiclass_", "ovr") == "ovo"


def classes_of(classifier: Any, scores: Scores) -> npt.NDArray[Any]:
    """The class that each score, or each row of scores, means; or the indicator matrix of labels."""
    if classifier.multilabel_:
        return (scores > 0).astype(int)
    if is_one_vs_one(classifier):
        if getattr(classifier, "break_ties", False):
            scores = class_scores(classifier, scores)
        else:  # as in LIBSVM a score of 0 is a vote for the second class, unlike in the scores of classes
            count = len(classifier.classes_)
            scores = pair_votes(scores > 0.0, class_pairs(count), count)
    codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    classes: npt.NDArray[Any] = classifier.classes_[codes]
    return classes


def count_errors(classifier: Any, source: Any) -> tuple[int, int]:
    """The number of rows of a source, and the number of those whose class is predicted wrongly."""
    check_is_fitted(classifier, "intercept_")
    if classifier.multilabel_:
        raise ValueError(f"{source.path} has one class a row, but the model predicts labels")
    rows = wrong = 0
    for scores, labels in scores_by_block(classifier, source):
        if labels is None:
            raise ValueError(f"{source.path} has no labels to compare with")
        unknown = np.setdiff1d(labels, classifier.classes_).tolist()
        if unknown:
            known = ", ".join(map(repr, classifier.classes_.tolist()))
            raise ValueError(f"{source.path} has the label {unknown[0]!r}; the model knows {known}")
        rows += scores.shape[0]
        wrong += int(np.count_nonzero(classes_of(classifier, scores) != labels))
    if not rows:
        raise ValueError(f"{source.path} holds no rows")
    return rows, wrong
