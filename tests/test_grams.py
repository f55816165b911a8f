"""Gram matrices against NumPy, for every kind of rows and both ways of summing sparse ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import grams
from primalsvm.grams import add_diagonal, add_squares, row_products
from primalsvm.inputs import as_rows
from primalsvm.rows import Dense, Distant, Mixed, take

RNG = np.random.default_rng(0)
DATA = np.where(RNG.random((50, 7)) < 0.4, RNG.normal(size=(50, 7)), 0.0)
MIXING = RNG.normal(size=(7, 5))
CHOSEN = np.sort(RNG.choice(50, 30, replace=False))
ROOTS = RNG.uniform(0.1, 2.0, 30)


def distant(data):
    rows = Dense(data)
    return Distant(*data.shape, data.dtype, lambda chosen: take(rows, chosen))


KINDS = {
    "dense": (as_rows(DATA), DATA),
    "single": (as_rows(DATA.astype(np.float32)), DATA.astype(np.float32).astype(float)),
    "sparse": (as_rows(sp.csr_matrix(DATA)), DATA),
    "distant": (distant(DATA), DATA),
    "mixed": (Mixed(Dense(DATA), MIXING), DATA @ MIXING),
}
each_kind = pytest.mark.parametrize(("rows", "data"), KINDS.values(), ids=KINDS.keys())


@each_kind
@pytest.mark.parametrize("scatter", [0.0, np.inf])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_squares(rows, data, scatter, sign, monkeypatch):
    monkeypatch.setattr(grams, "SCATTER_COST", scatter)
    monkeypatch.setattr(grams, "BLOCK", 8)
    wide = np.hstack([data, np.ones((50, 1))])[CHOSEN] * ROOTS[:, None]
    out = np.zeros((data.shape[1] + 1,) * 2, order="F")
    add_squares(out, rows, CHOSEN, ROOTS, sign, np.float64)
    np.testing.assert_allclose(np.tril(out), np.tril(sign * wide.T @ wide), rtol=1e-6, atol=1e-12)


@each_kind
def test_products_of_rows(rows, data, monkeypatch):
    monkeypatch.setattr(grams, "BLOCK", 8)
    monkeypatch.setattr(grams, "COLUMNS_BYTES", 8 * 30 * 3)
    found = row_products(rows, CHOSEN)
    np.testing.assert_allclose(np.tril(found), np.tril(data[CHOSEN] @ data[CHOSEN].T), rtol=1e-6, atol=1e-12)


@each_kind
def test_diagonal(rows, data, monkeypatch):
    monkeypatch.setattr(grams, "BLOCK", 8)
    k = RNG.uniform(size=50)
    out = np.full(data.shape[1], 2.0)
    add_diagonal(out, rows, k)
    np.testing.assert_allclose(out, 2.0 + k @ np.square(data), rtol=1e-6)


def test_nothing_chosen():
    out = np.zeros((8, 8))
    add_squares(out, KINDS["sparse"][0], CHOSEN[:0], ROOTS[:0], 1.0, np.float64)
    assert not out.any() and row_products(KINDS["dense"][0], CHOSEN[:0]).shape == (0, 0)
