"""Every data set agrees with plain NumPy, whatever its rows are, wherever they are, with any number of threads."""

import tempfile
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from primalsvm.data import (
    ALONE,
    Dataset,
    Dense,
    InMemory,
    KernelMatrix,
    Mapped,
    ThreadPool,
    Whitened,
    as_block,
    as_dataset,
    as_weights,
    local,
)
from primalsvm.data.reads import ReadInBlocks
from primalsvm.maps.kernels import Gaussian, as_points
from primalsvm.sources.cache import CacheWriter
from primalsvm.sources.reader import out_of_core


@pytest.fixture(autouse=True, scope="module")
def small_blocks():
    """Blocks of few rows, and handles that the threads share however short they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadInBlocks, "block_bytes", 200)
        patch.setattr(Mapped, "block_bytes", 200)
        patch.setattr(local, "SHARED_ROWS", 1)
        yield


class Squares(NamedTuple):
    """φ(x) = (x, x²)."""

    n_features: int

    @property
    def n_components(self):
        return 2 * self.n_features

    def block(self, rows):
        x = values_of(rows)
        return np.hstack([x, x * x])


class Case(NamedTuple):
    """A data set, and what it should be: the rows and the weights."""

    data: Any
    X: np.ndarray
    c: np.ndarray
    rng: np.random.Generator
    tolerance: float


class Problem(NamedTuple):
    """What Hypothesis draws."""

    m: int
    d: int
    single: bool
    weighted: bool
    density: float
    seed: int


problems = st.builds(
    Problem,
    m=st.integers(1, 60),
    d=st.integers(1, 6),
    single=st.booleans(),
    weighted=st.booleans(),
    density=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**32),
)


def values_of(block):
    matrix = block.matrix()
    return matrix.toarray() if block.sparse else matrix


@contextmanager
def cached(X, weights, threads):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        with CacheWriter(path, X.shape[1], sp.issparse(X), X.dtype) as writer:
            writer.append(X, np.zeros(X.shape[0]))
        with out_of_core(path, 1000, weights=weights, threads=threads) as data:
            yield data


def in_memory(convert):
    return lambda X, rng, weights, threads: (InMemory(as_block(convert(X)), weights, threads), X)


def mapped(convert):
    def build(X, rng, weights, threads):
        phi = Squares(X.shape[1])
        return Mapped(phi, as_block(convert(X)), X.dtype, weights, threads), phi.block(Dense(X))

    return build


def whitened(X, rng, weights, threads):
    M = rng.normal(size=(X.shape[1], 3)).astype(X.dtype)
    return Whitened(Dense(X), M, weights, threads), X.astype(float) @ M


def in_files(convert):
    return lambda X, rng, weights, threads: (cached(convert(X), weights, threads), X)


KINDS = {
    "in memory, dense": in_memory(np.asarray),
    "in memory, sparse": in_memory(sp.csr_matrix),
    "whitened": whitened,
    "mapped, dense": mapped(np.asarray),
    "mapped, sparse": mapped(sp.csr_matrix),
    "in files, dense": in_files(np.asarray),
    "in files, sparse": in_files(sp.csr_matrix),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_size = pytest.mark.parametrize("threads", [1, 3])
some = settings(max_examples=15)


@contextmanager
def case_of(kind, problem, size):
    rng = np.random.default_rng(problem.seed)
    X = rng.normal(size=(problem.m, problem.d)) * (rng.random((problem.m, problem.d)) < problem.density)
    X = X.astype(np.float32) if problem.single else X
    given = np.append(rng.uniform(0.0, 2.0, problem.m - 1), 1.0) * (rng.random(problem.m) < 0.9)
    given[-1] = 1.0
    weights = as_weights(given if problem.weighted else None, problem.m)
    c = given if problem.weighted else np.ones(problem.m)
    with ThreadPool(size) as threads:
        found, truth = KINDS[kind](X, rng, weights, threads)
        with nullcontext(found) if isinstance(found, Dataset) else found as data:
            yield Case(data, truth.astype(float), c, rng, 1e-4 if problem.single else 1e-10)


def assert_close(case, found, expected):
    np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)


# ---- passes over the rows --------------------------------------------------------------------------------------------


@each_kind
@each_size
@some
@given(problem=problems)
def test_what_is_known_of_the_rows(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X = case.data, case.X
        assert data.shape == X.shape and data.sparse == ("sparse" in kind and "mapped" not in kind)
        assert data.total_weight == pytest.approx(case.c.sum())
        assert data.entries == (np.count_nonzero(X) if data.sparse else X.size)
        assert data.dtype == (np.float32 if problem.single else np.float64)
        assert data.nbytes == data.entries * (data.dtype.itemsize + 4 * data.sparse)
        assert data.numbered and not data.kernel_rows and (data.block is not None) == ("memory" in kind)


@each_kind
@each_size
@some
@given(problem=problems)
def test_scores(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X = case.data, case.X
        W = case.rng.normal(size=(4, X.shape[1]))
        assert_close(case, data.to_array(data.scores(W[0])), X @ W[0])
        for K in (1, 4):
            found = data.to_array(data.scores(W[:K]))
            assert found.shape == (problem.m, K)
            assert_close(case, found, X @ W[:K].T)


@each_kind
@each_size
@some
@given(problem=problems)
def test_combinations(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X = case.data, case.X
        alpha = case.rng.normal(size=(problem.m, 4)) * (case.rng.random((problem.m, 4)) < 0.7)
        one = data.from_array(np.ascontiguousarray(alpha[:, 0]))
        assert_close(case, data.combine(one), X.T @ (case.c * alpha[:, 0]))
        assert_close(case, data.combine(one, weighted=False), X.T @ alpha[:, 0])
        for K in (1, 4):
            many = data.from_array(np.asfortranarray(alpha[:, :K]))
            assert_close(case, data.combine_many(many, K), (case.c[:, None] * alpha[:, :K]).T @ X)


@each_kind
@each_size
@some
@given(problem=problems)
def test_gram_and_diagonal(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X = case.data, case.X
        h = case.rng.normal(size=problem.m) * (case.rng.random(problem.m) < 0.8)
        wide = np.hstack([X, np.ones((problem.m, 1))])
        expected = np.tril((wide.T * h) @ wide)
        assert_close(case, np.tril(data.gram(data.from_array(h))), expected)
        np.testing.assert_allclose(np.tril(data.gram(data.from_array(h), single=True)), expected, rtol=1e-3, atol=1e-3)
        assert_close(case, data.diagonal(data.from_array(h)), h @ X**2)


@each_kind
@each_size
@some
@given(problem=problems)
def test_squared_norms(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        norms = (case.X**2).sum(axis=1)
        assert_close(case, case.data.squared_norms(), norms)
        assert_close(case, case.data.squared_norms(1), norms[:1])


# ---- rows by their numbers -------------------------------------------------------------------------------------------


@each_kind
@each_size
@some
@given(problem=problems)
def test_rows_by_their_numbers(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X = case.data, case.X
        numbers = case.rng.integers(0, problem.m, size=case.rng.integers(1, 2 * problem.m + 1))
        for chosen in (numbers, np.arange(problem.m), np.sort(numbers)):
            assert_close(case, values_of(data.take(chosen)), X[chosen])
            part = data.subset(chosen)
            assert part.shape == (chosen.size, X.shape[1])
            assert part.total_weight == pytest.approx(case.c[chosen].sum())
            alpha = case.rng.normal(size=chosen.size)
            assert_close(case, part.combine(alpha), X[chosen].T @ (case.c[chosen] * alpha))
        products = data.products(numbers)
        assert_close(case, np.tril(products), np.tril(X[numbers] @ X[numbers].T))


@each_kind
@each_size
@some
@given(problem=problems)
def test_entries_by_their_numbers(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, m = case.data, problem.m
        values = case.rng.normal(size=m) * (case.rng.random(m) < 0.5)
        handle = data.from_array(values)
        numbers = np.flatnonzero(values)
        np.testing.assert_array_equal(data.find(handle), numbers)
        np.testing.assert_array_equal(data.get(handle, numbers), values[numbers])
        np.testing.assert_array_equal(data.get(data.weights, numbers).array(numbers.size), case.c[numbers])
        np.testing.assert_array_equal(data.to_array(data.put(numbers, values[numbers])), values)


# ---- functions of pieces ---------------------------------------------------------------------------------------------


def weighted_sum(factor, weight, first, second, out):
    out[:] = first + factor * weight.array(first.shape[0]) * second


def row_sums(block, first, out):
    out[:] = values_of(block).sum(axis=1) + first


def powers(first, out):
    out[:] = first[:, None] ** np.arange(out.shape[1])


def double(first, second):
    first *= 2.0
    second += first


def moments(values):
    return float(values.size), np.array([values.sum(), np.square(values).sum()])


def total_of_rows(block, weight, values):
    return values_of(block).sum() + weight.array(values.size) @ values


def extremes(values):
    return values.min(), -values.max()


def least(first, second):
    return tuple(map(min, first, second))


@each_kind
@each_size
@some
@given(problem=problems)
def test_map_update_and_reduce(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X, c, m = case.data, case.X, case.c, problem.m
        a, b = case.rng.normal(size=(2, m))
        first, second = data.from_array(a.copy()), data.from_array(b.copy())
        assert not data.to_array(data.zeros()).any()
        found = data.map(partial(weighted_sum, 0.5), data.weights, first, second)
        np.testing.assert_allclose(data.to_array(found), a + 0.5 * c * b, rtol=1e-14)
        assert_close(case, data.to_array(data.map(row_sums, first, rows=True)), X.sum(axis=1) + a)
        np.testing.assert_allclose(data.to_array(data.map(powers, first, columns=3)), a[:, None] ** np.arange(3))
        count, sums = data.reduce(moments, first)
        assert count == m
        np.testing.assert_allclose(sums, [a.sum(), (a**2).sum()], rtol=1e-12, atol=1e-12)
        assert_close(case, data.reduce(total_of_rows, data.weights, first, rows=True), X.sum() + c @ a)
        assert data.reduce(extremes, first, merge=least) == (a.min(), -a.max())
        data.update(double, first, second)
        np.testing.assert_allclose(data.to_array(first), 2.0 * a)
        np.testing.assert_allclose(data.to_array(second), b + 2.0 * a)


@each_kind
@each_size
@some
@given(problem=problems)
def test_other_weights_and_threads(kind, threads, problem):
    with case_of(kind, problem, threads) as case:
        data, X, m = case.data, case.X, problem.m
        alpha, c = case.rng.normal(size=(2, m))
        c = c**2
        before = data.combine(alpha)
        other = data.with_weights(as_weights(c, m))
        assert type(other) is type(data) and other.total_weight == pytest.approx(c.sum())
        assert_close(case, other.combine(alpha), X.T @ (c * alpha))
        with ThreadPool(2) as two:
            assert other.with_threads(two).threads is two
            assert_close(case, other.with_threads(two).combine(alpha), X.T @ (c * alpha))
            assert_close(case, other.with_threads(two).scores(alpha[:1] * X[0]), X @ (alpha[0] * X[0]))
        np.testing.assert_array_equal(data.combine(alpha), before)
        assert data.checksum() == other.checksum() == data.with_threads(ALONE).checksum()


@each_kind
def test_checksums_change_with_the_rows(kind):
    problem = Problem(20, 4, False, False, 1.0, 0)
    with case_of(kind, problem, 1) as case, case_of(kind, problem._replace(seed=1), 1) as other:
        assert case.data.checksum() != other.data.checksum()


@each_kind
@each_size
def test_the_same_threads_give_the_same_bits(kind, threads):
    found = []
    for _ in range(2):
        with case_of(kind, Problem(60, 6, True, True, 0.5, 3), threads) as case:
            alpha = case.rng.normal(size=60)
            found.append((case.data.combine(alpha).tobytes(), case.data.gram(alpha).tobytes()))
    assert found[0] == found[1]


def test_norms_of_few_rows_are_those_of_evenly_spaced_ones():
    X = np.random.default_rng(0).normal(size=(101, 3))
    norms = (X**2).sum(axis=1)
    np.testing.assert_allclose(as_dataset(X).squared_norms(), norms)
    np.testing.assert_allclose(as_dataset(X).squared_norms(11), norms[::10])


def test_more_threads_than_rows():
    X = np.random.default_rng(0).normal(size=(3, 5))
    with ThreadPool(7) as threads:
        data = as_dataset(X, threads=threads)
        np.testing.assert_allclose(data.combine(np.ones(3)), X.sum(axis=0), rtol=1e-13)
        empty = data.subset(np.zeros(0, np.int64))
        assert not empty.combine(np.zeros(0)).any() and empty.scores(np.ones(5)).shape == (0,)


# ---- rows of a kernel matrix -----------------------------------------------------------------------------------------


@each_size
@some
@given(problem=problems, share=st.sampled_from([0.0, 0.4, 1.0]), sparse=st.booleans())
def test_kernel_matrix(threads, problem, share, sparse):
    """w is the vector of the coefficients of Σ wⱼ φ(xⱼ)."""
    rng, m = np.random.default_rng(problem.seed), problem.m
    X = rng.normal(size=(m, problem.d)) * (rng.random((m, problem.d)) < problem.density)
    dtype = np.dtype(np.float32 if problem.single else np.float64)
    kernel, block, points = Gaussian(0.3), as_block(sp.csr_matrix(X) if sparse else X), as_points(X.astype(dtype))
    K = kernel.between(block, as_points(X))
    c = np.append(rng.uniform(0.1, 2.0, m - 1), 1.0) if problem.weighted else np.ones(m)
    weights = as_weights(c if problem.weighted else None, m)
    W, alpha = rng.normal(size=(4, m)), rng.normal(size=(m, 4))
    with ThreadPool(threads) as pool:
        data = KernelMatrix(kernel, block, points, share * m * m * dtype.itemsize, weights, pool)
        case = Case(data, K, c, rng, 1e-4 if problem.single else 1e-10)
        assert data.shape == (m, m) and data.kernel_rows and data.numbered and data.block is None and not data.sparse
        for _ in range(2):  # computed, then kept
            assert_close(case, data.scores(W[0]), K @ W[0])
            for count in (1, 4):
                assert_close(case, data.scores(W[:count]), K @ W[:count].T)
        assert_close(case, data.combine(alpha[:, 0]), c * alpha[:, 0])
        assert_close(case, data.combine(alpha[:, 0], weighted=False), alpha[:, 0])
        assert_close(case, Dataset.combine(data, alpha[:, 0]), c * alpha[:, 0])  # by passing over the rows
        for count in (1, 4):
            assert_close(case, data.combine_many(alpha[:, :count], count), (c[:, None] * alpha[:, :count]).T)
        assert_close(case, data.squared_norms(), np.diag(K))
        numbers = rng.integers(0, m, size=5)
        taken = data.take(numbers)
        np.testing.assert_array_equal(taken.number, numbers)
        assert_close(case, taken.values, K[numbers])
        assert_close(case, data.products(numbers), K[np.ix_(numbers, numbers)])
        assert_close(case, data.subset(numbers).scores(W[0]), K[numbers] @ W[0])
        np.testing.assert_array_equal(data.find(data.put(np.array([m - 1]), np.ones(1))), [m - 1])
        assert_close(case, data.reduce(total_of_rows, data.weights, alpha[:, 0], rows=True), K.sum() + c @ alpha[:, 0])
        for refused in (data.gram, data.diagonal, data.subset(numbers).gram):
            with pytest.raises(NotImplementedError, match="features of which are not known"):
                refused(np.ones(m))
