"""What is said of features' sizes on tables as they are: nothing, unless the solver suffers."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from primalsvm import LinearSVC, LinearSVR
from tests.real import datasets

pytestmark = pytest.mark.skipif(datasets.folder() is None, reason="PRIMALSVM_DATA names no folder of data sets")


@pytest.mark.parametrize("name", ["a9a", "ijcnn1", "newsgroups"])
def test_ordinary_data(name):
    X, y = getattr(datasets, name)()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC(solver="dual_ascent", random_state=0).fit(X, y)


def test_house_prices_have_sizes_from_1_to_thousands():
    X, y = datasets.housing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVR(random_state=0).fit(X, y)  # Newton does not mind
    with pytest.warns(ConvergenceWarning, match="The features differ in size by a factor of 3.4e.03"):
        LinearSVR(solver="dual_ascent", max_iter=100, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = make_pipeline(StandardScaler(), LinearSVR(solver="dual_ascent", random_state=0)).fit(X, y)
    assert scaled[-1].certificate_.relative_gap <= 1e-3 and np.isfinite(scaled.score(X, y))
