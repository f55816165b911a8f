"""Rows that stay in the files of a cache: the same numbers as in memory, and room that needs none."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from primalsvm.rows import CSR, readable, sampled_squared_norms, shape, stored, stored_bytes
from primalsvm.sources import filed
from primalsvm.sources.cache import CacheError, CacheWriter
from primalsvm.sources.filed import filed_rows, room_beside, runs
from primalsvm.team import Team
from tests.reference import sparse_noisy

SPARSE, Y = sparse_noisy(200, 13)
MATRICES = {
    "CSR": SPARSE,
    "CSR, single": SPARSE.astype(np.float32),
    "dense": SPARSE.toarray(),
    "bytes": (9 * np.abs(SPARSE.toarray())).astype(np.uint8),
}


@pytest.fixture(params=MATRICES)
def cached(request, tmp_path):
    matrix = MATRICES[request.param]
    with CacheWriter(tmp_path / "rows", 13, sp.issparse(matrix), matrix.dtype) as writer:
        writer.append(matrix, Y)
    return tmp_path / "rows", matrix.toarray() if sp.issparse(matrix) else matrix


def values(rows):
    if isinstance(rows, CSR):
        return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=shape(rows)).toarray()
    return rows.values


@pytest.mark.parametrize("drop", [False, True])
def test_brings_the_rows_that_are_asked_for(cached, drop, monkeypatch):
    path, matrix = cached
    monkeypatch.setattr(filed, "TOGETHER", 1000)
    rng = np.random.default_rng(0)
    with filed_rows(path, 1000, drop, n_jobs=2) as rows:
        for chosen in (np.arange(200), np.arange(5, 9), np.array([199, 0, 1, 2, 77]), rng.permutation(200)):
            np.testing.assert_array_equal(values(rows.bring(chosen)), matrix[chosen])
        assert shape(rows) == (200, 13) and rows.dtype == matrix.dtype
        assert stored(rows) == (SPARSE.nnz if rows.files.entry_bytes > matrix.itemsize else matrix.size)
        np.testing.assert_allclose(sampled_squared_norms(rows, 200), (matrix.astype(float) ** 2).sum(axis=1), rtol=1e-6)


def test_passes_over_all_rows(cached, monkeypatch):
    path, matrix = cached
    monkeypatch.setattr("primalsvm.rows.BROUGHT_AT_ONCE", 700)
    w, alpha = np.random.default_rng(1).normal(size=13), np.random.default_rng(2).normal(size=200)
    with filed_rows(path, 1000) as rows, Team(2) as team:
        assert len(list(readable(rows, 0, 200))) > 3
        batch = filed_batch(rows)
        np.testing.assert_allclose(team.scores(rows, w), matrix @ w, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(team.combine(batch, alpha), matrix.T @ alpha, rtol=1e-6, atol=1e-6)
        scores, combined = team.scores_and_combine(batch, w, alpha)
        np.testing.assert_allclose(scores, matrix @ w, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(combined, matrix.T @ alpha, rtol=1e-6, atol=1e-6)


def filed_batch(rows):
    from primalsvm.rows import Batch, Weights

    return Batch(rows, Y, Weights(np.ones(1), 0))


def test_a_file_that_is_cut_meanwhile_is_told(cached):
    path, _ = cached
    with filed_rows(path, 1000) as rows:
        for name in ("data.npy", "values.npy"):
            if (path / name).exists():
                os.truncate(path / name, 200)
        with pytest.raises(CacheError, match="has become shorter"):
            rows.bring(np.arange(200))


def test_pointers_out_of_order_are_refused_before_anything_is_read(cached):
    path, _ = cached
    if (path / "indptr.npy").exists():
        pointers = np.lib.format.open_memmap(path / "indptr.npy", mode="r+")
        pointers[100] = 2**40
        pointers.flush()
        with pytest.raises(CacheError, match="row pointers are out of order"), filed_rows(path, 1000):
            pass


def test_room_is_a_file_that_nobody_sees(tmp_path):
    room = room_beside(tmp_path / "rows", 1000)
    room[:] = np.arange(1000.0)
    assert room.sum() == 499_500 and list(tmp_path.iterdir()) == []
    assert room_beside(tmp_path / "rows", 0).shape == (0,)


@given(st.lists(st.integers(0, 50), unique=True))
def test_runs_cover_what_is_chosen(chosen):
    found = [i for first, last in runs(np.array(chosen, np.int64)) for i in range(first, last)]
    assert found == chosen


def test_bytes_are_counted(cached):
    path, _ = cached
    with filed_rows(path, 1000) as rows:
        assert stored_bytes(rows) == stored(rows) * rows.files.entry_bytes
        assert stored_bytes(rows, np.arange(100)) == pytest.approx(stored_bytes(rows) / 2, abs=1)
