"""Rows that stay in the files of a cache: the same numbers as in memory; files in the place of memory."""

import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from primalsvm.data import ThreadPool, as_weights
from primalsvm.data.reads import ReadInBlocks
from primalsvm.sources import reader
from primalsvm.sources.cache import CacheError, CacheWriter
from primalsvm.sources.reader import out_of_core, runs, zeros_in_file
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


def values(block):
    return block.matrix().toarray() if block.sparse else block.values


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("shared", [1000, 2**24])
def test_reads_the_rows_that_are_asked_for(cached, drop, shared, monkeypatch):
    path, matrix = cached
    monkeypatch.setattr(reader, "SHARED_BYTES", shared)
    rng = np.random.default_rng(0)
    with ThreadPool(2) as threads, out_of_core(path, 1000, drop=drop, threads=threads) as data:
        for chosen in (np.arange(200), np.arange(5, 9), np.array([199, 0, 1, 2, 77]), rng.permutation(200)):
            data.prefetch(chosen)
            np.testing.assert_array_equal(values(data.take(chosen)), matrix[chosen])
        assert data.shape == (200, 13) and data.dtype == matrix.dtype and data.bytes_at_once == 1000
        assert data.entries == (SPARSE.nnz if data.sparse else matrix.size)
        np.testing.assert_allclose(data.squared_norms(200), (matrix.astype(float) ** 2).sum(axis=1), rtol=1e-6)


def test_passes_over_all_rows(cached, monkeypatch):
    path, matrix = cached
    monkeypatch.setattr(ReadInBlocks, "block_bytes", 700)
    w, alpha, c = (np.random.default_rng(seed).uniform(size=size) for seed, size in ((1, 13), (2, 200), (3, 200)))
    with ThreadPool(2) as threads, out_of_core(path, 1000, weights=as_weights(c, 200), threads=threads) as data:
        assert len(list(data.blocks(0, 200))) > 3
        np.testing.assert_allclose(data.scores(w), matrix @ w, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(data.combine(alpha), matrix.T @ (c * alpha), rtol=1e-6, atol=1e-6)


def test_numbers_of_rows_are_in_files(cached):
    path, _ = cached
    with out_of_core(path, 1000) as data:
        for handle in (data.zeros(), data.scores(np.ones(13)), data.scores(np.ones((3, 13))).T.reshape(-1)):
            while handle.base is not None and not isinstance(handle, np.memmap):
                handle = handle.base
            assert isinstance(handle, np.memmap)


def test_threads_read_into_buffers_of_their_own(cached):
    path, matrix = cached
    both = threading.Barrier(2)

    def read(first):
        block = data.take(np.arange(first, first + 50))
        both.wait()
        return values(block).copy()

    with ThreadPool(2) as threads, out_of_core(path, 1000, threads=threads) as data:
        for first, found in zip((0, 100), threads.run(read, [(0,), (100,)]), strict=True):
            np.testing.assert_array_equal(found, matrix[first : first + 50])


def test_a_file_that_is_cut_meanwhile_is_told(cached):
    path, _ = cached
    with out_of_core(path, 1000) as data:
        for name in ("data.npy", "values.npy"):
            if (path / name).exists():
                os.truncate(path / name, 200)
        with pytest.raises(CacheError, match="has become shorter"):
            data.take(np.arange(200))


def test_pointers_out_of_order_are_refused_before_anything_is_read(cached):
    path, _ = cached
    if (path / "indptr.npy").exists():
        pointers = np.lib.format.open_memmap(path / "indptr.npy", mode="r+")
        pointers[100] = 2**40
        pointers.flush()
        with pytest.raises(CacheError, match="row pointers are out of order"), out_of_core(path, 1000):
            pass


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_checked_block_by_block(cached, threads, monkeypatch):
    path, matrix = cached
    monkeypatch.setattr(ReadInBlocks, "block_bytes", 700)
    with ThreadPool(threads) as pool, out_of_core(path, 1000, threads=pool) as data:
        data.check()
        if data.sparse:
            column = np.lib.format.open_memmap(path / "indices.npy", mode="r+")
            column[int(SPARSE.indptr[150])] = 13
            message = r"column index outside the matrix \(first seen in row 150\)"
        elif matrix.dtype == np.uint8:
            return
        else:
            column = np.lib.format.open_memmap(path / "values.npy", mode="r+")
            column[150, 3] = np.nan
            message = r"NaN or infinity \(first seen in row 150\)"
        column.flush()
        with pytest.raises(ValueError, match=message):
            data.check()


def test_zeros_in_a_file_that_has_no_name(tmp_path):
    found = zeros_in_file(tmp_path, 1000)
    assert not found.any()
    found[:] = np.arange(1000.0)
    assert found.sum() == 499_500 and list(tmp_path.iterdir()) == []
    assert zeros_in_file(tmp_path, 0).shape == (0,)


@given(st.lists(st.integers(0, 50), unique=True))
def test_runs_cover_what_is_chosen(chosen):
    found = [i for first, last in runs(np.array(chosen, np.int64)) for i in range(first, last)]
    assert found == chosen


def test_bytes_are_counted(cached):
    path, matrix = cached
    with out_of_core(path, 1000) as data:
        assert (
            data.nbytes == data.entries * (matrix.itemsize + 4 * data.sparse) == data.take(np.arange(200)).nbytes_of()
        )
