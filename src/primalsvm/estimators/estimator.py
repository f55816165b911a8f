"""The base class of all estimators."""

import os
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator

from primalsvm.estimators import pipeline
from primalsvm.estimators.protocols import Features, Task


class Estimator(BaseEstimator):
    """Base class: `fit` by the pipeline, and model files. A derived class names its task and its features."""

    _task: Task
    _features: Features
    _coef_is_vector = False  # coef_ has one dimension, as in some of scikit-learn's estimators
    _n_iter_is_array = False  # n_iter_ is that of each problem, as in some of scikit-learn's estimators
    _previous: pipeline.Previous | None = None  # what a warm start may continue from
    _stream: Any = None  # `streams.Stream` between two calls of `partial_fit`

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X, targets y and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
            The kernel matrix if the kernel is "precomputed".
        y : array of shape (n_samples,); not with a source
            For a classifier also an indicator matrix of shape (n_samples, n_labels), dense or sparse. A novelty
            detector ignores y, and the labels of a source.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is equivalent to repeating the row, 0 to leaving it out.

        Returns
        -------
        self
        """
        pipeline.fit(self, X, y, sample_weight)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a model file (safetensors), which `primalsvm.load` reads.

        Parameters
        ----------
        path : the file; an existing one is replaced once the new one is complete
        """
        from primalsvm.estimators.model_files import save_estimator  # imports all estimators

        save_estimator(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._features.pairwise(self)
        return tags
