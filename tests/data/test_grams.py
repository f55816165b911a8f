"""Gram matrices against NumPy: of every kind of block and data set, sparse rows in both ways."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.data import ALONE, EQUAL_WEIGHTS, Dataset, Dense, InMemory, Mapped, Whitened, as_block, csr, dense_gram
from primalsvm.data import whitened as whitened_module
from primalsvm.data.threads import ThreadPool

RNG = np.random.default_rng(0)
DATA = np.where(RNG.random((50, 7)) < 0.4, RNG.normal(size=(50, 7)), 0.0)
WHITENING = RNG.normal(size=(7, 5))
CHOSEN = np.sort(RNG.choice(50, 30, replace=False))
ROOTS = RNG.uniform(0.1, 2.0, 30)


class Doubled(NamedTuple):
    """φ(x) = 2x."""

    n_components: int = 7

    def block(self, rows):
        return 2.0 * rows.values


def mapped():
    data = Mapped(Doubled(), Dense(DATA), np.float64, EQUAL_WEIGHTS, ALONE)
    data.rows_at_once = 8
    return data


BLOCKS = {
    "dense": (as_block(DATA), DATA),
    "single": (as_block(DATA.astype(np.float32)), DATA.astype(np.float32).astype(float)),
    "sparse": (as_block(sp.csr_matrix(DATA)), DATA),
}
SETS = {name: (InMemory(block, EQUAL_WEIGHTS), data) for name, (block, data) in BLOCKS.items()} | {
    "mapped": (mapped(), 2.0 * DATA),
    "whitened": (Whitened(Dense(DATA), WHITENING, EQUAL_WEIGHTS, ALONE), DATA @ WHITENING),
}
each_block = pytest.mark.parametrize(("block", "data"), BLOCKS.values(), ids=BLOCKS.keys())
each_set = pytest.mark.parametrize(("rows", "data"), SETS.values(), ids=SETS.keys())


@pytest.fixture(autouse=True)
def few_rows_at_once(monkeypatch):
    monkeypatch.setattr(dense_gram, "ROWS_AT_ONCE", 8)
    monkeypatch.setattr(whitened_module, "ROWS_AT_ONCE", 8)
    monkeypatch.setattr(dense_gram, "COLUMNS_BYTES", 8 * 30 * 3)


@pytest.fixture(params=[0.0, np.inf], ids=["dense sums", "scattered sums"])
def scatter(request, monkeypatch):
    monkeypatch.setattr(csr, "SCATTER_COST", request.param)


def wide_gram(data, h):
    """Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ."""
    wide = np.hstack([data, np.ones((len(data), 1))])
    return wide.T @ (h[:, None] * wide)


def assert_triangle(found, expected, rtol=1e-6, atol=1e-12):
    np.testing.assert_allclose(np.tril(found), np.tril(expected), rtol=rtol, atol=atol)


def handle(signs):
    h = np.zeros(50)
    h[CHOSEN] = signs * ROOTS**2
    return h


# ---- blocks ----------------------------------------------------------------------------------------------------------


@each_block
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_squares_of_a_block(block, data, sign, scatter):
    out = np.zeros((8, 8), order="F")
    block.add_gram(CHOSEN, ROOTS, sign, False, out)
    assert_triangle(out, sign * wide_gram(data[CHOSEN], ROOTS**2))


@each_block
def test_products_of_rows_of_a_block(block, data):
    assert_triangle(block.products(CHOSEN), data[CHOSEN] @ data[CHOSEN].T)


@each_block
def test_diagonal_of_a_block(block, data):
    k = RNG.uniform(size=50)
    out = np.full(7, 2.0)
    block.add_diagonal(k, out)
    np.testing.assert_allclose(out, 2.0 + k @ np.square(data), rtol=1e-6)


# ---- data sets -------------------------------------------------------------------------------------------------------


@each_set
@pytest.mark.parametrize("signs", [1.0, -1.0, np.resize([1.0, -1.0, -1.0], 30)], ids=["plus", "minus", "both"])
@pytest.mark.parametrize("gram", [lambda rows, *given: rows.gram(*given), Dataset.gram], ids=["own", "by reduce"])
def test_squares(rows, data, signs, gram, scatter):
    h = handle(signs)
    expected = wide_gram(data, h)
    assert_triangle(gram(rows, h), expected)
    assert_triangle(gram(rows, h, True), expected, rtol=1e-4, atol=1e-4)
    before = RNG.normal(size=expected.shape)
    out = np.asfortranarray(before)
    assert gram(rows, h, False, out) is out
    assert_triangle(out, before + expected)


@each_set
def test_threads_add_up_to_the_same(rows, data):
    h = handle(np.resize([1.0, -1.0], 30))
    with ThreadPool(3) as threads:
        shared = rows.with_threads(threads)
        assert_triangle(shared.gram(h), wide_gram(data, h))
        assert_triangle(Dataset.gram(shared, h), wide_gram(data, h))
        np.testing.assert_allclose(shared.diagonal(h), h @ np.square(data), rtol=1e-6, atol=1e-12)


@each_set
def test_products_of_rows(rows, data):
    assert_triangle(rows.products(CHOSEN), data[CHOSEN] @ data[CHOSEN].T)
    few = rows.subset(CHOSEN)
    assert_triangle(few.products(np.arange(30)), data[CHOSEN] @ data[CHOSEN].T)


@each_set
def test_diagonal(rows, data):
    k = RNG.uniform(size=50)
    np.testing.assert_allclose(rows.diagonal(k), k @ np.square(data), rtol=1e-6)


@each_set
def test_nothing_chosen(rows, data):
    assert not rows.gram(np.zeros(50)).any() and rows.products(CHOSEN[:0]).shape == (0, 0)
