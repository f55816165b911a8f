"""The Nyström map is equations (14) to (16); its error falls with s; its cost is that of §2.3.1."""

import itertools

import numpy as np
import pytest

from primalsvm.data import ALONE, as_block
from primalsvm.maps import kernels
from primalsvm.maps.features import feature_matrix
from primalsvm.maps.kernels import Gaussian, as_points
from primalsvm.maps.nystroem import fit_nystroem

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
KERNEL = Gaussian(0.3)
K = KERNEL.between(as_block(X), as_points(X))
DOUBLE = np.dtype(np.float64)


def nystroem(s, threshold=1e-13, d=None, kernel=KERNEL):
    return fit_nystroem(kernel, as_block(X[:s]), as_points(X[:s]), threshold, d)


def transcription(s, d):
    """V of eq. (16): K_{·S} Q D^{-1/2}, first d columns."""
    D, Q = np.linalg.eigh(K[:s, :s])
    D, Q = D[::-1][:d], Q[:, ::-1][:, :d]
    return K[:, :s] @ Q / np.sqrt(D)


@pytest.mark.parametrize(("s", "d"), [(20, 20), (50, 10), (50, 1)])
def test_equals_the_paper(s, d):
    V = nystroem(s, d=d).block(as_block(X))
    truth = transcription(s, d)
    np.testing.assert_allclose(V @ V.T, truth @ truth.T, rtol=1e-8, atol=1e-8)  # eigenvectors are unique up to sign
    np.testing.assert_allclose(np.abs(V), np.abs(truth), rtol=1e-6, atol=1e-8)


def test_the_landmarks_own_block_is_exact():
    V = nystroem(40).block(as_block(X[:40]))
    np.testing.assert_allclose(V @ V.T, K[:40, :40], atol=1e-7)


def test_all_rows_as_landmarks_give_the_kernel_matrix():
    V = nystroem(300).block(as_block(X))
    np.testing.assert_allclose(V @ V.T, K, atol=1e-6)


def test_gram_errors_fall_with_s_towards_the_best_rank():
    errors = []
    for s in (5, 10, 20, 40, 80, 160):
        V = nystroem(s).block(as_block(X))
        errors.append(np.linalg.norm(K - V @ V.T))
    assert all(later < 0.8 * earlier for earlier, later in itertools.pairwise(errors))
    eigenvalues = np.linalg.eigvalsh(K)[::-1]
    best = np.linalg.norm(eigenvalues[40:])  # of rank 40 (Eckart and Young)
    assert best <= errors[3] and errors[5] <= 2 * best  # Drineas and Mahoney: s > d landmarks come close to it


def test_the_landmarks_form_gives_the_same_scores():
    phi = nystroem(60, threshold=1e-8)
    gamma = RNG.normal(size=phi.n_components)
    direct = phi.block(as_block(X)) @ gamma
    kernel_values, alpha = phi.scorer(gamma)
    np.testing.assert_allclose(kernel_values.block(as_block(X)) @ alpha, direct, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(K[:, :60] @ phi.expansion(gamma), direct, rtol=1e-6, atol=1e-6)


def test_the_threshold_is_relative_to_the_largest_eigenvalue():
    eigenvalues = np.linalg.eigvalsh(K[:50, :50])
    for threshold in (1e-1, 1e-3):
        assert nystroem(50, threshold).n_components == np.sum(eigenvalues > threshold * eigenvalues.max())
    with pytest.raises(ValueError, match="no eigenvalue"):
        nystroem(50, 2.0)
    single = fit_nystroem(KERNEL, as_block(X[:50]), as_points(X[:50].astype(np.float32)), None, None)
    assert single.n_components == np.sum(eigenvalues > 10 * np.finfo(np.float32).eps * eigenvalues.max())


def test_repeated_landmarks_cost_a_dimension_each():
    twice = np.vstack([X[:20], X[:20]])
    phi = fit_nystroem(KERNEL, as_block(twice), as_points(twice), None, None)
    assert phi.n_components <= 20
    V = phi.block(as_block(X[:20]))
    np.testing.assert_allclose(V @ V.T, K[:20, :20], atol=1e-6)


def test_cost_is_that_of_the_paper(monkeypatch):
    """s² + sm kernel values, each of n multiplications, and one product m × s × d."""
    counted = []
    plain = kernels.products

    def counting(rows, points):
        counted.append(rows.shape[0] * points.columns.shape[1])
        return plain(rows, points)

    monkeypatch.setattr(kernels, "products", counting)
    s = 25
    phi = nystroem(s)
    assert sum(counted) == s * s
    feature_matrix(phi, as_block(X), ALONE, DOUBLE)
    assert sum(counted) == s * s + s * 300
    assert phi.whitening.shape == (s, phi.n_components)
