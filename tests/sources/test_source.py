"""What all sources have in common: rows for estimators, within a budget; and the same rows as a model sees them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from primalsvm.sources import source as source_module
from primalsvm.sources.arrays import ArrayFile
from primalsvm.sources.cache import CacheError
from primalsvm.sources.layout import SvmlightLayout
from primalsvm.sources.opening import KINDS, is_source
from primalsvm.sources.opening import open as open_source
from primalsvm.sources.source import CacheFolder, LoadedRows, Source
from primalsvm.sources.svmlight import write_svmlight
from primalsvm.sources.svmlight_file import SvmlightFile
from primalsvm.sources.tables import TableFile
from tests.reference import sparse_noisy

X, Y = sparse_noisy(80, 6)
QID = np.arange(80) // 8


@pytest.fixture(params=["text", "table", "array", "text cache", "table cache"])
def source(request, tmp_path):
    """A source of each kind with the rows X and labels Y, or "good" and "bad"."""
    kind = request.param
    if kind.startswith("text"):
        write_svmlight(tmp_path / "rows.svm", X, Y, qid=QID)
        found = open_source(tmp_path / "rows.svm")
    elif kind.startswith("table"):
        frame = pd.DataFrame(X.toarray(), columns=[f"x{j}" for j in range(6)])
        frame["label"] = np.where(Y > 0, "good", "bad")
        frame.to_parquet(tmp_path / "rows.parquet")
        found = open_source(tmp_path / "rows.parquet", target="label")
    else:
        np.save(tmp_path / "rows.npy", np.column_stack([X.toarray(), Y]))
        found = open_source(tmp_path / "rows.npy", target=-1)
    return found.to_cache(tmp_path / "rows.cache") if kind.endswith("cache") else found


def matrix_of(X):
    X = X.matrix() if hasattr(X, "matrix") else X
    return X.toarray() if sp.issparse(X) else X


def assert_rows(rows):
    np.testing.assert_array_equal(matrix_of(rows.X), X.toarray())
    labels = rows.y if rows.names is None else rows.names[rows.y.astype(int)]
    expected = np.where(Y > 0, "good", "bad") if labels.dtype.kind in "OU" else Y
    np.testing.assert_array_equal(labels, expected)


def test_all_rows_in_memory(source):
    rows = source.load()
    assert_rows(rows)
    assert rows.path == source.path and rows.cache is None and is_source(rows) and rows.load() is rows
    assert rows.layout == source.layout_used or isinstance(rows.layout, SvmlightLayout)
    if isinstance(source, SvmlightFile):
        np.testing.assert_array_equal(rows.qid, QID)
        assert source.layout_used is None and rows.layout == rows.layout_used == SvmlightLayout(False)
    with rows.rows_within(0) as again:
        assert again is rows
    (blocks,) = rows.blocks(1)
    assert blocks[0] is rows.X and rows.to_arrays()[1] is rows.y


@pytest.mark.parametrize("budget", [0, 10**9])
def test_rows_within_a_budget(source, budget, monkeypatch):
    monkeypatch.setattr(source_module, "BLOCK_BYTES", 500)
    before = sorted(source.path.parent.iterdir())
    with source.rows_within(budget) as rows:
        assert_rows(rows)
        assert (rows.cache is None) == (budget > 0)
        if budget == 0:
            assert hasattr(rows.X, "nbytes_of") and (rows.cache / "header.json").is_file()
        if "rows.svm" in str(before):
            np.testing.assert_array_equal(rows.qid, QID)
    assert sorted(source.path.parent.iterdir()) == before


def test_nothing_is_left_after_an_error(source):
    before = sorted(source.path.parent.iterdir())
    with pytest.raises(KeyError), source.rows_within(0):
        raise KeyError
    assert sorted(source.path.parent.iterdir()) == before


def test_a_cache_is_not_converted_again(source, tmp_path):
    cache = source if isinstance(source, CacheFolder) else source.to_cache(tmp_path / "new.cache")
    np.testing.assert_array_equal(matrix_of(cache.to_arrays()[0]), X.toarray())
    with pytest.raises(CacheError, match="is a cache already"):
        cache.to_cache(tmp_path / "again")


def test_the_source_as_a_model_sees_it(source):
    seen = source.for_model(source.load().layout, 6)
    np.testing.assert_array_equal(matrix_of(seen.to_arrays()[0]), X.toarray())
    if isinstance(source, SvmlightFile):
        assert (seen.n_features, seen.zero_based) == (6, False)
        assert source.for_model(SvmlightLayout(True), 9).zero_based is True
    if isinstance(source, TableFile):
        assert seen.layout == source.layout_used and seen.target is None
        assert source.for_model(source.layout_used, 6, labelled=False).to_arrays()[1] is None
        with pytest.raises(ValueError, match="the model was not made from one"):
            source.for_model(None, 6)
    if isinstance(source, CacheFolder):
        assert seen is source and source.for_model(None, 6) is source
        with pytest.raises(ValueError, match="not those that the model was made from"):
            source.for_model(SvmlightLayout(zero_based=True), 6)


def test_rows_without_labels(source):
    seen = source.unlabelled()
    assert seen == source  # it says where the labels are
    if isinstance(source, ArrayFile):
        plain = ArrayFile(source.path)
        assert plain.unlabelled().to_arrays()[1] is None and plain.unlabelled().to_arrays()[0].shape == (80, 7)
        assert plain.for_model(None, 7).to_arrays()[0].shape == (80, 7)


def test_every_kind_says_what_it_is(tmp_path):
    assert len({kind.kind for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert issubclass(kind, Source) and kind.matches.__func__ is not Source.matches.__func__
    for name, kind in {"a.csv": TableFile, "a.txt": SvmlightFile, "a.npz": ArrayFile, "a.svm.gz": SvmlightFile}.items():
        assert next(one for one in KINDS if one.matches(tmp_path / name, {})) is kind
    assert next(one for one in KINDS if one.matches(tmp_path / "a.txt", {"delimiter": ","})) is TableFile
    assert next(one for one in KINDS if one.matches(tmp_path, {})) is CacheFolder
    assert not is_source(X) and not is_source("rows.svm") and is_source(LoadedRows(X, Y))
