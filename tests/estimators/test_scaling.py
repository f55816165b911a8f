"""A fit that falls short because of its features' sizes says so, and what it says helps."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from primalsvm import DualAscent, LinearSVC, LinearSVR, Pegasos
from primalsvm.data import as_block, as_dataset
from primalsvm.estimators.scaling import advice
from tests.reference import noisy, sparse_noisy

DENSE, Y = noisy(2000, 60)
SPARSE, Y_SPARSE = sparse_noisy(2000, 60)


def grown(X, column, factor):
    """X with one column in another unit."""
    factors = np.ones(X.shape[1])
    factors[column] = factor
    return sp.csr_matrix(X @ sp.diags_array(factors)) if sp.issparse(X) else X * factors


@pytest.mark.parametrize(
    "model", [LinearSVC(solver="dual_ascent", max_iter=1000), LinearSVR(solver="dual_ascent", max_iter=3000)]
)
@pytest.mark.parametrize(("X", "y", "scaler"), [(DENSE, Y, StandardScaler()), (SPARSE, Y_SPARSE, MaxAbsScaler())])
def test_it_is_said_and_the_remedy_helps(model, X, y, scaler):
    model.set_params(random_state=0)
    large = grown(X, 3, 1e4)
    kind = type(model).__name__
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(large, y)
    said = str(caught[0].message)
    assert "The features differ in size by a factor of" in said and "(feature 3 and feature" in said
    assert f"make_pipeline({type(scaler).__name__}(), {kind}(…))" in said
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled = make_pipeline(scaler, model).fit(large, y)
    assert scaled[-1].certificate_.relative_gap <= 1e-3


def test_newton_suffers_later_and_says_so_then():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearSVC(solver="newton", random_state=0).fit(grown(DENSE, 3, 1e3), Y)
    with pytest.warns(ConvergenceWarning, match="The features differ in size by a factor of 1.*e.08"):
        LinearSVC(solver="newton", random_state=0, max_iter=1000).fit(grown(DENSE, 3, 1e8), Y)


def test_features_are_called_by_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(grown(DENSE[:, :3], 1, 1e6), columns=["a", "seconds", "c"])
    with pytest.warns(ConvergenceWarning, match=r"\('seconds' and '[ac]'\)"):
        LinearSVC(solver=DualAscent(), random_state=0, max_iter=5).fit(frame, Y)


def test_several_problems_say_it_once():
    y = np.digitize(DENSE[:, 0], np.quantile(DENSE[:, 0], [0.3, 0.6]))
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVC(solver="dual_ascent", max_iter=20, random_state=0).fit(grown(DENSE, 3, 1e4), y)
    assert len(caught) == 1 and str(caught[0].message).startswith("LinearSVC (3 of 3 problems) stopped")
    assert str(caught[0].message).count("differ in size") == 1


@pytest.mark.parametrize(
    "X",
    [
        DENSE,
        SPARSE,
        grown(DENSE, 3, 1e-8),  # a small feature does no harm
        grown(DENSE, slice(0, 14), 1e-8),  # nor do some
        grown(DENSE, 3, 30.0),
        # words that are rare, or frequent: the entries are alike in size
        sp.csr_matrix(np.where(np.random.default_rng(0).random((2000, 60)) < np.geomspace(1e-3, 1, 60), 0.3, 0.0)),
    ],
)
def test_other_reasons_are_not_blamed_on_the_features(X):
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVC(solver=Pegasos(n_iter=100), random_state=0).fit(X, Y)
    assert "differ in size" not in str(caught[0].message)


def test_rows_without_weight_have_no_say():
    X = DENSE.copy()
    X[:50, 3] = 1e6
    weight = (np.arange(2000) >= 50).astype(float)
    assert "feature 3" in advice(as_dataset(X), None, "LinearSVC")
    assert advice(as_dataset(X, weight), None, "LinearSVC") == ""
    assert advice(as_dataset(np.zeros((5, 2))), None, "LinearSVC") == ""


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.9))
def test_sizes_are_root_mean_squares_of_what_is_not_zero(seed, empty):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 5)) * 10.0 ** rng.integers(-6, 6, size=5)
    X[rng.random(X.shape) < empty] = 0.0
    expected = [np.sqrt(np.mean(column[column != 0] ** 2)) if column.any() else np.nan for column in X.T]
    for rows in (X, sp.csr_matrix(X)):
        np.testing.assert_allclose(as_block(rows).feature_sizes(), expected)
