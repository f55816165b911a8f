"""Rows of a kernel matrix: computed once if they fit the budget, whoever asks for them."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.data import (
    ALONE,
    EQUAL_WEIGHTS,
    KernelMatrix,
    ThreadPool,
    Weights,
    as_block,
    kernel_columns,
    kernel_matrix,
)
from primalsvm.maps.kernels import Gaussian, Laplacian, Polynomial, as_points, sparse_points

M = 40
X = np.random.default_rng(0).normal(size=(M, 3))
KERNEL = Gaussian(0.5)
K = KERNEL.between(as_block(X), as_points(X))
ROW = 8 * M  # bytes


class Counted:
    """A kernel that counts the rows it is asked for."""

    by_products = shift_invariant = False

    def __init__(self):
        self.rows = 0

    def take(self, chosen):
        return self

    def between(self, rows, points):
        self.rows += rows.shape[0]
        return KERNEL.between(rows, points)


def matrix(budget, threads=ALONE):
    kernel = Counted()
    return kernel, KernelMatrix(kernel, as_block(X), as_points(X), budget, EQUAL_WEIGHTS, threads)


@pytest.mark.parametrize(("kept", "computed"), [(0, 2 * M), (10, 2 * M - 10), (M, M), (10 * M, M)])
def test_rows_within_the_budget_are_computed_once(kept, computed):
    kernel, data = matrix(kept * ROW)
    for _ in range(2):
        np.testing.assert_allclose(data.take(np.arange(M)).values, K, rtol=1e-12)
    assert kernel.rows == computed


def test_parts_share_the_memory():
    with ThreadPool(2) as threads:
        assert matrix(10 * ROW, threads)[1].restricted(np.arange(5)).nbytes_for_columns == 5 * ROW


def test_scores_visit_the_support_vectors_alone():
    asked = []

    class Kernel(Counted):
        def between(self, rows, points):
            asked.append(points.columns.shape[1])
            return super().between(rows, points)

    data = KernelMatrix(Kernel(), as_block(X), as_points(X), 0.0, EQUAL_WEIGHTS, ALONE)
    w = np.zeros(M)
    w[[3, 8]] = 1.0, -2.0
    np.testing.assert_allclose(data.scores(w), K[:, 3] - 2.0 * K[:, 8], rtol=1e-12, atol=1e-14)
    assert set(asked) == {2}


def test_a_checksum_sees_every_row_by_few_columns(monkeypatch):
    monkeypatch.setattr(kernel_matrix, "PROBED_ROWS", 3)
    data = matrix(0.0)[1]
    assert np.count_nonzero(data._probe()) == 3
    assert data.checksum() == matrix(0.0)[1].checksum()
    for i in range(M):
        other = X.copy()
        other[i] += 0.1
        changed = KernelMatrix(KERNEL, as_block(other), as_points(other), 0.0, EQUAL_WEIGHTS, ALONE)
        assert changed.checksum() != data.checksum()


def test_a_small_matrix_is_computed_once_as_a_whole():
    kernel, data = matrix(M * ROW)
    np.testing.assert_allclose(data.whole, K, rtol=1e-12)
    few = np.array([5, 1, 30])
    part = data.restricted(few)
    np.testing.assert_allclose(part.whole, K[np.ix_(few, few)], rtol=1e-12)
    np.testing.assert_allclose(
        part.scores(np.array([1.0, 0.0, 2.0])), K[np.ix_(few, few)] @ [1.0, 0.0, 2.0], rtol=1e-12
    )
    assert kernel.rows == M
    assert matrix(M * ROW - 1)[1].whole is None  # beyond the budget


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(0.3), Polynomial(3, 0.2, 1.0)])
def test_sparse_points_give_the_same_values(monkeypatch, kernel, threads):
    monkeypatch.setattr(kernel_columns, "SPARSE_ENTRIES", 16 * 200)  # several tiles
    monkeypatch.setattr(kernel_columns, "SPARSE_ROWS", 7)
    monkeypatch.setattr(kernel_matrix, "SPARSE_ROWS", 7)
    rows = sp.random(60, 200, density=0.02, format="csr", random_state=1)
    truth = kernel.between(as_block(rows.toarray()), as_points(rows.toarray()))
    numbers = np.array([3, 40, 41, 59])
    beta = np.zeros(60)
    beta[numbers] = [1.0, -2.0, 0.5, 3.0]
    active = np.arange(5, 60, 2)
    with ThreadPool(threads) as pool:
        points = sparse_points(rows, np.dtype(np.float64))
        data = KernelMatrix(kernel, as_block(rows), points, 0.0, EQUAL_WEIGHTS, pool)
        np.testing.assert_allclose(data.values(numbers), truth[numbers], rtol=1e-12)
        np.testing.assert_allclose(data.scores(beta), truth @ beta, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(data.squared_norms(), np.diagonal(truth), rtol=1e-12)
        columns = data.kernel_columns(active, 0.0)
        np.testing.assert_allclose(columns.between(active), truth[np.ix_(active, active)], rtol=1e-5)
        found = np.zeros(active.shape[0])
        columns.add(numbers[1:], beta[numbers[1:]], found)
        np.testing.assert_allclose(found, truth[np.ix_(active, numbers[1:])] @ beta[numbers[1:]], rtol=1e-5, atol=1e-6)
        fewer = columns.restrict(np.arange(0, active.shape[0], 3))
        found = np.zeros(fewer.active.shape[0])
        fewer.add(numbers, beta[numbers], found)
        np.testing.assert_allclose(found, truth[np.ix_(fewer.active, numbers)] @ beta[numbers], rtol=1e-5, atol=1e-6)


def test_the_first_rows_that_were_asked_for_are_kept():
    kernel, data = matrix(3 * ROW)
    data.take(np.array([7, 3, 7]))
    assert kernel.rows == 2  # each once, however often it is asked for
    data.take(np.array([9, 11, 3]))
    assert kernel.rows == 4
    np.testing.assert_allclose(data.take(np.array([9, 7, 3])).values, K[[9, 7, 3]], rtol=1e-12)
    assert kernel.rows == 4
    np.testing.assert_allclose(data.take(np.array([11, 11])).values, K[[11, 11]], rtol=1e-12)
    assert kernel.rows == 5  # 11 was one too many


def test_other_weights_and_threads_share_what_is_kept():
    kernel, data = matrix(M * ROW)
    data.take(np.arange(M))
    weighted = data.with_weights(Weights(np.arange(1.0, M + 1), 1))
    assert weighted.total_weight == M * (M + 1) / 2
    with ThreadPool(2) as threads:
        np.testing.assert_allclose(weighted.with_threads(threads).take(np.arange(M)).values, K, rtol=1e-12)
    assert kernel.rows == M


def test_combinations_need_no_rows():
    kernel, data = matrix(0)
    alpha = np.arange(float(M))
    np.testing.assert_array_equal(data.combine(alpha), alpha)
    np.testing.assert_array_equal(data.combine_many(np.stack([alpha, -alpha], axis=1), 2), [alpha, -alpha])
    assert kernel.rows == 0


def test_several_threads_at_once():
    _, data = matrix(15 * ROW)

    def ask(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            numbers = rng.integers(0, M, size=rng.integers(1, 12))
            np.testing.assert_allclose(data.take(numbers).values, K[numbers], rtol=1e-12)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))
    places = data.kept.place[data.kept.place >= 0]
    assert data.kept.count == 15 and sorted(places) == list(range(15))
