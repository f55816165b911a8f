"""The cache: what was written comes back, mapped; what is not whole is refused by name."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import primalsvm
from primalsvm.data import CSR, Dense, as_block
from primalsvm.sources.cache import CacheError, CacheWriter, open_cache, verify
from primalsvm.sources.layout import SvmlightLayout
from primalsvm.sources.reader import out_of_core
from tests.fixtures import make_fixtures
from tests.sources.fuzz_caches import fuzz, npy

X = sp.random(40, 9, 0.3, "csr", random_state=0)
Y = np.random.default_rng(0).normal(size=40)
QID = np.arange(40) // 7


def written(path, matrix, queries=True, cuts=(0, 11, 11, 40)):
    sparse = sp.issparse(matrix)
    with CacheWriter(path, 9, sparse, matrix.dtype) as writer:
        for a, b in itertools.pairwise(cuts):
            writer.append(matrix[a:b], Y[a:b], QID[a:b] if queries else None)
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


BEFORE = Path(__file__).parent.parent / "fixtures" / "version_0_1_0"


def test_caches_that_earlier_versions_wrote():
    sparse = primalsvm.open(BEFORE / "sparse.cache")
    verify(sparse.path)
    X, y = sparse.to_arrays()
    assert (X != make_fixtures.SPARSE).nnz == 0 and sparse.layout_used == SvmlightLayout(zero_based=False)
    np.testing.assert_array_equal(y, make_fixtures.BINARY == "yes")
    np.testing.assert_array_equal(open_cache(sparse.path).qid, make_fixtures.QUERIES)
    with out_of_core(sparse.path, 1000) as data:
        np.testing.assert_array_equal(data.take(np.arange(60)).matrix().toarray(), make_fixtures.SPARSE.toarray())
    dense = primalsvm.open(BEFORE / "dense.cache")
    verify(dense.path)
    X, y = dense.to_arrays()
    np.testing.assert_array_equal(X, make_fixtures.X)
    np.testing.assert_array_equal(y, make_fixtures.BINARY)
    assert dense.layout_used.feature_names == ("u", "v", "w") and dense.layout_used.target == "kind"


def test_an_error_while_writing_leaves_what_was_there(tmp_path):
    path = written(tmp_path / "a.cache", X)
    with pytest.raises(ValueError, match="could not convert"), CacheWriter(path, 9) as writer:
        writer.append(X, ["label"] * 40)
    verify(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.cache"]
    assert len(open_cache(written(path, X, cuts=(0, 5))).y) == 5  # and a whole one replaces it


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(CacheError, match="left alone"):
        CacheWriter(tmp_path / "mine", 9)
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
        (lambda h: h.update(version="long" * 5000), "version '.{,50}' of the cache format"),
        (lambda h: h.update(features=-1), "nothing sensible of 'features'"),
        (lambda h: h.update(features=2**31), "nothing sensible of 'features'"),
        (lambda h: h.update(features=10**400), "nothing sensible of 'features'"),
        (lambda h: h.update(rows=True), "nothing sensible of 'rows'"),
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


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000])
def test_headers_that_json_refuses_in_other_ways(tmp_path, text):
    path = written(tmp_path / "a.cache", X)
    (path / "header.json").write_text(text)
    with pytest.raises(CacheError, match=r"header\.json is damaged"):
        open_cache(path)


def put(path, name, data):
    """Another file, of which the header knows the size."""
    (path / name).write_bytes(data)
    spoil(path, lambda header: header["files"][name].update(bytes=len(data)))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("y.npy", npy(Y, shape=(40, 2**62))),
        ("y.npy", npy(Y, shape=(2**64,))),
        ("y.npy", npy(Y, shape=(-1,))),
        ("y.npy", npy(Y, shape=(400,))),
        ("y.npy", npy(Y, fortran_order=2)),
        ("y.npy", npy(Y, descr="|O")),
        ("y.npy", npy(Y, descr=">f8")),
        ("y.npy", npy(Y, descr="<i8")),
        ("y.npy", npy(Y).replace(b"}", b" ")),
        ("y.npy", b"PK\x03\x04" + npy(Y)),
        ("y.npy", b"\x80\x04" + npy(Y)),
        ("qid.npy", npy(QID.astype(np.int32))),
        ("indices.npy", npy(X.indices.astype(np.int64))),
        ("indices.npy", npy(X.indices, descr=">i4")),
        ("indptr.npy", npy(X.indptr.astype(np.int32))),
        ("indptr.npy", npy(X.indptr.astype(np.int64) + 1)),
        ("indptr.npy", npy(X.indptr.astype(np.int64) * 2)),
        ("data.npy", npy(X.data.astype(np.float16))),
        ("data.npy", npy(X.data, descr=">f8")),
    ],
)  # fmt: skip
def test_columns_that_are_not_what_they_should_be(tmp_path, name, data):
    path = written(tmp_path / "a.cache", X)
    put(path, name, data)
    with pytest.raises(CacheError, match=rf"{name} is damaged: \S"):
        open_cache(path)
    with pytest.raises(CacheError, match=rf"{name} is damaged: \S"):
        verify(path)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("indices", 7, 9, "column index outside"),
        ("indices", 7, -1, "column index outside"),
        ("indices", 7, 2**31 - 1, "column index outside"),
        ("indptr", 5, -1, "pointers are out of order"),
        ("indptr", 5, 2**62, "pointers are out of order"),
        ("indptr", 5, 0, "pointers are out of order"),
    ],
)
def test_indices_that_lead_outside_are_refused_before_they_are_used(tmp_path, name, place, value, message):
    path = written(tmp_path / "a.cache", X)
    column = np.array(np.load(path / f"{name}.npy"))
    column[place] = value
    put(path, f"{name}.npy", npy(column))
    with pytest.raises(CacheError, match="checksum"):
        verify(path)
    rows, y = primalsvm.open(path).to_arrays()
    with pytest.raises(ValueError, match=message):
        as_block(rows)
    with pytest.raises(ValueError, match=message):
        primalsvm.LinearSVC().fit(rows, y > 0)


def test_caches_changed_at_random_are_refused_by_name_or_used():
    assert fuzz(600.0, most=600) >= (600, 60)
