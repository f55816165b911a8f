"""The cache: what was written comes back, mapped; what is not whole is refused by name."""

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm.rows import CSR, Dense
from primalsvm.sources.cache import CacheError, CacheWriter, open_cache, verify

X = sp.random(40, 9, 0.3, "csr", random_state=0)
Y = np.random.default_rng(0).normal(size=40)
QID = np.arange(40) // 7


def written(path, matrix, queries=True, cuts=(0, 11, 11, 40)):
    sparse = sp.issparse(matrix)
    with CacheWriter(path, 9, sparse, matrix.dtype, queries) as writer:
        for a, b in itertools.pairwise(cuts):
            writer.append(matrix[a:b], Y[a:b], QID[a:b])
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("queries", [False, True])
def test_sparse_rows_come_back(tmp_path, dtype, queries):
    matrix = X.astype(dtype)
    rows, y, qid = open_cache(written(tmp_path / "a.cache", matrix, queries))
    assert isinstance(rows, CSR) and rows.data.dtype == dtype and not rows.data.flags.owndata
    again = sp.csr_matrix((rows.data, rows.indices.view(np.int32), rows.indptr.view(np.int64)), shape=(40, 9))
    assert (again != matrix).nnz == 0
    np.testing.assert_array_equal(y, Y)
    assert (qid is None) if not queries else (qid == QID).all()
    verify(tmp_path / "a.cache")


def test_dense_rows_come_back(tmp_path):
    rows, y, _ = open_cache(written(tmp_path / "a.cache", X.toarray()))
    assert isinstance(rows, Dense)
    np.testing.assert_array_equal(rows.values, X.toarray())
    np.testing.assert_array_equal(y, Y)


def test_an_error_while_writing_leaves_what_was_there(tmp_path):
    path = written(tmp_path / "a.cache", X)
    with pytest.raises(ValueError, match="could not convert"), CacheWriter(path, 9, True, float, False) as writer:
        writer.append(X, ["label"] * 40)
    verify(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.cache"]
    assert len(open_cache(written(path, X, cuts=(0, 5))).y) == 5  # and a whole one replaces it


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(CacheError, match="left alone"):
        CacheWriter(tmp_path / "mine", 9, True, float, False)
    with pytest.raises(CacheError, match="is not a cache"):
        open_cache(tmp_path / "mine")


def spoil(path, change):
    header = json.loads((path / "header.json").read_text())
    change(header)
    (path / "header.json").write_text(json.dumps(header))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.update(version=2), "version 2 of the cache format; this library reads version 1"),
        (lambda h: h.update(format="zip"), "not the header"),
        (lambda h: h.pop("rows"), "nothing sensible of 'rows'"),
        (lambda h: h.update(rows=39), "expected"),
        (lambda h: h.update(sparse=False), "other files"),
        (lambda h: h["files"].update({"../x.npy": {}}), "other files"),
        (lambda h: h["files"]["y.npy"].update(bytes=3), "not as its header says"),
    ],
)
def test_headers_that_lie(tmp_path, change, message):
    path = written(tmp_path / "a.cache", X)
    spoil(path, change)
    with pytest.raises(CacheError, match=message):
        open_cache(path)


def test_damaged_files(tmp_path):
    path = written(tmp_path / "a.cache", X)
    content = bytearray((path / "data.npy").read_bytes())
    content[-1] ^= 1
    (path / "data.npy").write_bytes(content)
    with pytest.raises(CacheError, match="checksum"):
        verify(path)
    (path / "data.npy").write_bytes(content[:-8])
    with pytest.raises(CacheError, match="bytes long"):
        open_cache(path)
    (path / "data.npy").unlink()
    with pytest.raises(CacheError, match=r"data\.npy is missing"):
        open_cache(path)
    (path / "header.json").write_text("{")
    with pytest.raises(CacheError, match="damaged"):
        open_cache(path)
    written(path, X)
    content = (path / "y.npy").read_bytes()
    (path / "y.npy").write_bytes(b"x" * len(content))
    with pytest.raises(CacheError, match=r"y\.npy is damaged"):
        open_cache(path)
