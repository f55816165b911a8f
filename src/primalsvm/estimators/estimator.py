"""What all estimators share: a fit by the pipeline, and model files."""

import os
from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator

from primalsvm.estimators import pipeline


class Estimator(BaseEstimator):
    """Parameters, fitted attributes and public methods; what happens in a fit is in `pipeline`.

    A class that derives names its task (what y is) and its features (what scores are inner products with).
    """

    _task: Any
    _features: Any
    _coef_is_vector = False  # coef_ has one dimension, as those of some of scikit-learn's estimators
    _previous: Any = None  # what a warm start may begin with
    _stream: Any = None  # what is kept between two batches of a stream

    def fit(self, X: Any, y: npt.ArrayLike | None = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit to rows X, targets y and weights.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or a source (`primalsvm.open`)
            The kernel matrix if the kernel is "precomputed".
        y : array of shape (n_samples,); a source brings its own
            Of a classifier also 0 and 1 of shape (n_samples, n_labels), sparse or not: which rows have which labels.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 is the same as the row twice, 0 the same as no row.

        Returns
        -------
        self
        """
        pipeline.fit(self, X, y, sample_weight)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator into a model file (safetensors), which `primalsvm.load` reads.

        Parameters
        ----------
        path : the file; it is replaced once the new one is complete
        """
        from primalsvm.estimators.model_files import save_estimator  # which imports all estimators

        save_estimator(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._features.pairwise(self)
        return tags
