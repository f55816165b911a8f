"""Systems of second-order solvers against NumPy's dense solver."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Hinge, Problem
from primalsvm.data import as_dataset
from primalsvm.solvers.systems import bordered, by_features, by_rows, conjugate_gradients, factorise

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
K = RNG.uniform(0.0, 3.0, 40)
G, G_B, LAM = RNG.normal(size=6), 0.7, 0.2

each_intercept = pytest.mark.parametrize("intercept", ["none", "penalized", "free"])
each_kind = pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])


def matrix(intercept, data=X, k=K):
    """M, dense."""
    wide = np.hstack([data, np.ones((len(data), 1))])
    full = wide.T @ (k[:, None] * wide) + LAM * np.eye(data.shape[1] + 1)
    if intercept == "free":
        full[-1, -1] -= LAM
    if intercept == "none":
        full[-1], full[:, -1], full[-1, -1] = 0.0, 0.0, 1.0
    return full


@each_intercept
@each_kind
def test_product(intercept, convert):
    g_b = 0.0 if intercept == "none" else G_B
    v, v_b = bordered(Problem(Hinge(), LAM, intercept), as_dataset(convert(X)), K)(G, g_b)
    np.testing.assert_allclose(np.append(v, v_b), matrix(intercept) @ np.append(G, g_b), rtol=1e-12)


@each_intercept
@each_kind
def test_by_features_and_by_conjugate_gradients(intercept, convert):
    problem, data = Problem(Hinge(), LAM, intercept), as_dataset(convert(X))
    g_b = 0.0 if intercept == "none" else G_B
    expected = np.linalg.solve(matrix(intercept), np.append(G, g_b))
    direct = by_features(problem, data, K)
    np.testing.assert_allclose(np.append(*direct(G, g_b)), expected, rtol=1e-10, atol=1e-15)
    rough = by_features(problem, data, np.where(np.arange(40) < 20, K, 0.0))  # half of the rows are left out
    for factor in (rough, lambda g, g_b: (g, g_b)):
        found = conjugate_gradients(bordered(problem, data, K), factor, G, g_b, 1e-12, 50)
        np.testing.assert_allclose(np.append(*found), expected, rtol=1e-8, atol=1e-12)


@each_intercept
def test_by_rows(intercept):
    problem = Problem(Hinge(), LAM, intercept)
    few, k = X[:5], K[:5].copy()
    k[2] = 0.0
    r, g_b = RNG.normal(size=5), 0.3
    q, step_b = by_rows(problem, few @ few.T, k)(r, g_b)
    counted = k > 0
    held = q[counted] / k[counted] + (few @ few.T @ q / LAM + step_b)[counted]
    np.testing.assert_allclose(held, r[counted], rtol=1e-10)
    assert q[2] == 0.0
    if intercept == "none":
        assert step_b == 0.0
    else:
        assert q.sum() == pytest.approx(g_b + (LAM * step_b if intercept == "penalized" else 0.0), rel=1e-9)


@pytest.mark.parametrize("spread", [1.0, 1e8])
def test_features_in_other_units_do_no_harm(spread):
    scale = np.geomspace(1.0, spread, 6)
    full = (X * scale).T @ (X * scale)
    right = full @ np.ones(6)
    np.testing.assert_allclose(factorise(np.asfortranarray(full))(right), np.ones(6), rtol=1e-6)


def test_a_matrix_that_rounding_made_indefinite_gets_a_ridge():
    thin = RNG.normal(size=(2, 30))
    full = thin.T @ thin
    right = full @ RNG.normal(size=30)
    found = factorise(np.asfortranarray(full))(right)
    np.testing.assert_allclose(full @ found, right, rtol=1e-4, atol=1e-6)
    with pytest.raises(np.linalg.LinAlgError):
        factorise(np.asfortranarray([[1.0, 0.0], [2.0, 1.0]]))
