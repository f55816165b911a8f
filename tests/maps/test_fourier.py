"""Fourier features: unbiased, with the variance that theory says, fixed by the seed alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.data import as_block
from primalsvm.maps.fourier import fourier_map, orthogonal_normals
from primalsvm.maps.kernels import Gaussian, Laplacian, Linear, as_points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 5))
ROWS = as_block(X)
DOUBLE = np.dtype(np.float64)
KERNELS = [Gaussian(0.2), Laplacian(0.1)]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=["gaussian", "laplacian"])
each_form = pytest.mark.parametrize("form", ["pair", "offset"])
each_draw = pytest.mark.parametrize("frequencies", ["iid", "orthogonal"])


def gram(kernel, d, seed, frequencies, form):
    V = fourier_map(kernel, 5, d, np.random.default_rng(seed), DOUBLE, frequencies, form).block(ROWS)
    assert V.shape == (12, d)
    return V @ V.T


@each_kernel
@each_form
@each_draw
@pytest.mark.parametrize("d", [1, 2, 3, 100])
def test_inner_products_are_unbiased(kernel, form, frequencies, d):
    truth = kernel.between(ROWS, as_points(X))
    runs = np.array([gram(kernel, d, seed, frequencies, form) for seed in range(200)])
    error = np.abs(runs.mean(axis=0) - truth)
    assert np.all(error <= 4.5 * runs.std(axis=0) / np.sqrt(200) + 1e-12)


@each_form
@each_kernel
def test_errors_fall_as_one_over_root_d(kernel, form):
    truth = kernel.between(ROWS, as_points(X))
    sizes = [
        np.sqrt(np.mean([np.mean((gram(kernel, d, s, "iid", form) - truth) ** 2) for s in range(30)]))
        for d in (64, 1024)
    ]
    assert sizes[0] / sizes[1] == pytest.approx(4.0, rel=0.25)


@each_form
def test_orthogonal_frequencies_have_less_variance(form):
    kernel = Gaussian(0.2)
    spread = {
        how: np.var([gram(kernel, 10, seed, how, form) for seed in range(400)], axis=0) for how in ("iid", "orthogonal")
    }
    off_diagonal = ~np.eye(12, dtype=bool)
    assert spread["orthogonal"][off_diagonal].mean() < 0.9 * spread["iid"][off_diagonal].mean()


def test_pairs_have_length_one():
    V = fourier_map(Gaussian(1.0), 5, 64, np.random.default_rng(0), DOUBLE).block(ROWS)
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0)


def test_the_seed_is_all_that_matters_and_csr_is_read_too():
    first, second = (fourier_map(Gaussian(1.0), 5, 32, np.random.default_rng(3), DOUBLE) for _ in range(2))
    assert first.block(ROWS).tobytes() == second.block(ROWS).tobytes()
    np.testing.assert_allclose(first.block(as_block(sp.csr_matrix(X))), first.block(ROWS), rtol=1e-12, atol=1e-12)


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="Gaussian and the Laplacian"):
        fourier_map(Linear(), 5, 10, rng, DOUBLE)


def test_orthogonal_frequencies_of_many_features_stay_small():
    """n × n directions would take 80 GB here."""
    found = orthogonal_normals(100_000, 6, np.random.default_rng(0))
    products = found.T @ found
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0.0, atol=1e-6)
    np.testing.assert_allclose(np.diag(products) / 100_000, 1.0, atol=0.03)
