"""Sources: the same fit from arrays, from text and from a cache."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import primalsvm
from primalsvm import SVC, LinearSVC, Newton, Pegasos
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.sources import source as source_module
from primalsvm.sources import svmlight, svmlight_file
from primalsvm.sources.cache import CacheError, open_cache, verify
from primalsvm.sources.layout import SvmlightLayout
from primalsvm.sources.texts import FormatError
from tests.reference import sparse_noisy

X, Y = sparse_noisy(300, 40)


@pytest.mark.parametrize(
    "estimator", [LinearSVC(lam=1e-2), SVC(lam=1e-2, gamma=0.1, random_state=0)], ids=["linear", "kernel"]
)
def test_the_same_fit_from_every_source(tmp_path, rows_file, estimator):
    source = primalsvm.open(rows_file, n_features=40)
    cache = source.to_cache(tmp_path / "rows.cache")
    expected = estimator.fit(X, Y).decision_function(X)
    for from_where in (source, cache, primalsvm.open(tmp_path / "rows.cache")):
        np.testing.assert_array_equal(estimator.fit(from_where).decision_function(X), expected)


def test_to_arrays(tmp_path, rows_file):
    matrix, y = primalsvm.open(rows_file, n_features=40, dtype=np.float32).to_arrays()
    assert (matrix != X.astype(np.float32)).nnz == 0 and (y == Y).all()
    mapped, y = primalsvm.open(rows_file, n_features=40).to_cache(tmp_path / "c").to_arrays()
    assert sp.issparse(mapped) and not mapped.data.flags.owndata and (mapped != X).nnz == 0 and (y == Y).all()


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("n_bytes", [1, 300, 1 << 20])
def test_blocks_and_caches_are_the_same_rows(tmp_path, monkeypatch, zero_based, n_bytes):
    monkeypatch.setattr(svmlight_file, "BLOCK_BYTES", n_bytes)
    path = tmp_path / "rows.svm.gz"
    svmlight.write_svmlight(path, X, Y, qid=np.arange(300) // 7, zero_based=zero_based)
    whole, y = primalsvm.open(path).to_arrays()
    blocks = list(primalsvm.open(path, zero_based=zero_based).blocks(n_bytes))
    assert [part.shape[1] for part, _ in blocks] == sorted(part.shape[1] for part, _ in blocks)
    for part, _ in blocks:
        part.resize(part.shape[0], whole.shape[1])
    assert (sp.vstack([part for part, _ in blocks]) != whole).nnz == 0
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), y)
    cache = primalsvm.open(path).to_cache(tmp_path / "c")
    verify(cache.path)
    mapped, labels = cache.to_arrays()
    assert mapped.shape == whole.shape and (mapped != whole).nnz == 0 and (labels == y).all()
    assert cache.layout_used == SvmlightLayout(zero_based)
    np.testing.assert_array_equal(open_cache(cache.path).qid, np.arange(300) // 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n\n-1 x:1\n", "line 3, column 4: expected index:value"),
        ("1 1:1\n\n-1 2:1 2:1\n", "row 2 has the feature 2 twice"),
        ("1 qid:1 1:1\n-1 1:1\n", "some rows have a qid"),
    ],
)
def test_errors_in_later_blocks_name_the_right_place(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(svmlight_file, "BLOCK_BYTES", 5)
    (tmp_path / "bad.svm").write_text(text)
    with pytest.raises(ValueError, match=message):
        primalsvm.open(tmp_path / "bad.svm").to_cache(tmp_path / "c")
    assert not (tmp_path / "c").exists() and len(list(tmp_path.iterdir())) == 1


def test_an_index_0_after_the_first_block_is_told(tmp_path):
    (tmp_path / "late.svm").write_text("1 1:1\n-1 0:1\n")
    with pytest.raises(FormatError, match="has the index 0, but began"):
        list(primalsvm.open(tmp_path / "late.svm").blocks(3))


@pytest.mark.parametrize("name", ["text", "text.gz", "cache", "csv", "parquet"])
@pytest.mark.parametrize("solver", ["dual_ascent", Pegasos(), "newton"], ids=str)
def test_sources_larger_than_the_budget(tmp_path, name, solver, monkeypatch):
    """The same accuracy as in memory, and nothing left behind."""
    rows, labels = sparse_noisy(1500, 20, seed=3)
    path, options = tmp_path / f"rows.{name}", {}
    if name.startswith("text"):
        svmlight.write_svmlight(path, rows, labels)
    elif name == "cache":
        svmlight.write_svmlight(tmp_path / "t", rows, labels)
        primalsvm.open(tmp_path / "t").to_cache(path)
    else:
        frame = pd.DataFrame(rows.toarray(), columns=[f"x{j}" for j in range(20)])
        frame["label"] = np.where(labels > 0, "good", "bad")
        options = {"target": "label"}
        frame.to_csv(path, index=False) if name == "csv" else frame.to_parquet(path)
    before = sorted(tmp_path.iterdir())
    for module in (source_module, svmlight_file):
        monkeypatch.setattr(module, "BLOCK_BYTES", 10_000)
    tol = 5e-2 if isinstance(solver, Pegasos) else 1e-3
    clf = LinearSVC(lam=1e-2, memory=20_000, solver=solver, tol=tol, random_state=0)
    clf.fit(primalsvm.open(path, **options))
    kind = {"dual_ascent": BlockAscent, "newton": Newton}.get(solver, Pegasos) if isinstance(solver, str) else Pegasos
    assert isinstance(clf.solver_, kind)
    whole = LinearSVC(lam=1e-2, solver="newton").fit(rows, labels)
    assert clf.certificate_.relative_gap <= tol and clf.certificate_.exact
    assert clf.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1.1 * tol)
    assert sorted(tmp_path.iterdir()) == before
    assert clf.score(primalsvm.open(path, **options)) == pytest.approx(whole.score(rows, labels), abs=0.03)
    if options:
        assert clf.classes_.tolist() == ["bad", "good"] and clf.feature_names_in_[3] == "x3"


def test_a_model_sees_other_files_as_the_one_it_was_made_from(tmp_path):
    """The file to predict has no index 0, and would be taken for one that counts from 1."""
    svmlight.write_svmlight(tmp_path / "train.svm", X, Y, zero_based=True)
    later = X[:, 1:].tocsr()
    zero = sp.csr_matrix((300, 1))
    svmlight.write_svmlight(tmp_path / "test.svm", sp.hstack([zero, later]).tocsr(), Y, zero_based=True)
    clf = LinearSVC(lam=1e-2).fit(primalsvm.open(tmp_path / "train.svm"))
    clf.save(tmp_path / "model")
    for one in (clf, primalsvm.load(tmp_path / "model")):
        expected = one.decision_function(sp.hstack([zero, later]).tocsr())
        np.testing.assert_array_equal(one.decision_function(primalsvm.open(tmp_path / "test.svm")), expected)


def test_a_table_is_seen_with_the_categories_of_the_training(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=400), "colour": rng.choice(["blue", "green", "red"], 400)})
    frame["y"] = np.where(frame["age"] + (frame["colour"] == "red") > 0.3, "yes", "no")
    frame.to_csv(tmp_path / "train.csv", index=False)
    other = frame.iloc[:50][["colour", "age"]]
    other = other[other["colour"] != "green"]
    other.to_csv(tmp_path / "new.csv", index=False)
    clf = LinearSVC(lam=1e-3).fit(primalsvm.open(tmp_path / "train.csv", target="y"))
    clf.save(tmp_path / "model")
    clf = primalsvm.load(tmp_path / "model")
    by_hand = clf.coef_[0, 0] * other["age"] + clf.intercept_[0]
    by_hand += np.array([clf.coef_[0, 1 + ["blue", "green", "red"].index(c)] for c in other["colour"]])
    np.testing.assert_allclose(clf.decision_function(primalsvm.open(tmp_path / "new.csv")), by_hand, rtol=1e-12)
    cache = primalsvm.open(tmp_path / "train.csv", target="y").to_cache(tmp_path / "c")
    again = LinearSVC(lam=1e-3).fit(cache)
    np.testing.assert_array_equal(again.coef_, clf.coef_)
    assert again.classes_.tolist() == ["no", "yes"] and again.score(cache) == clf.score(cache)
    with pytest.raises(ValueError, match="has no labels"):
        clf.score(primalsvm.open(tmp_path / "new.csv"))
    with pytest.raises(ValueError, match="not made from one"):
        LinearSVC(lam=1e-3).fit(X[:, :4], Y).predict(primalsvm.open(tmp_path / "new.csv"))


def test_array_files(tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([X.toarray(), Y]))
    clf = LinearSVC(lam=1e-2).fit(primalsvm.open(tmp_path / "rows.npy", target=-1))
    np.testing.assert_array_equal(clf.coef_, LinearSVC(lam=1e-2).fit(X.toarray(), Y).coef_)


def test_labels_of_a_cache_without_a_class_are_refused(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0] * 20, "l": ["a", "b"] * 20})
    frame.to_csv(tmp_path / "a.csv", index=False)
    cache = primalsvm.open(tmp_path / "a.csv", target="l").to_cache(tmp_path / "c")
    for wrong in (2.0, -1.0):
        y = np.lib.format.open_memmap(tmp_path / "c" / "y.npy", mode="r+")
        y[0] = wrong
        y.flush()
        with pytest.raises(ValueError, match="labels without a class"):
            LinearSVC().fit(cache)


def test_a_cache_of_other_features_is_refused(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0] * 20, "y": [5.0, 5.0] * 20, "l": [0, 1] * 20})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame[["y", "x", "l"]].to_csv(tmp_path / "b.csv", index=False)
    clf = LinearSVC().fit(primalsvm.open(tmp_path / "a.csv", target="l"))
    cache = primalsvm.open(tmp_path / "b.csv", target="l").to_cache(tmp_path / "b.cache")
    assert clf.score(primalsvm.open(tmp_path / "b.csv")) == 1.0
    with pytest.raises(ValueError, match="not those that the model was made from"):
        clf.score(cache)


def test_array_files_larger_than_the_budget(tmp_path):
    rows, labels = sparse_noisy(1500, 20, seed=3)
    np.save(tmp_path / "rows.npy", np.column_stack([rows.toarray(), labels]))
    source = primalsvm.open(tmp_path / "rows.npy", target=-1)
    clf = LinearSVC(lam=1e-2, memory=20_000, solver="dual_ascent", random_state=0).fit(source)
    assert isinstance(clf.solver_, BlockAscent) and clf.certificate_.relative_gap <= 1e-3
    unsorted = sp.csr_matrix(([1.0, 2.0, 3.0], [1, 0, 0], [0, 2, 3]), shape=(2, 2))
    np.savez(
        tmp_path / "u.npz", data=unsorted.data, indices=unsorted.indices, indptr=unsorted.indptr, shape=(2, 2), y=[0, 1]
    )
    mapped, _ = primalsvm.open(tmp_path / "u.npz").to_cache(tmp_path / "c").to_arrays()
    np.testing.assert_array_equal(mapped.toarray(), unsorted.toarray())
    np.savez(tmp_path / "h.npz", X=np.eye(2), y=np.array([2**60, 2**60 + 1]))
    with pytest.raises(ValueError, match="cannot tell labels of 2"):
        primalsvm.open(tmp_path / "h.npz").to_cache(tmp_path / "d")


def test_a_folder_that_cannot_be_written_to(tmp_path, rows_file, monkeypatch):
    monkeypatch.setattr(source_module.os, "access", lambda path, mode: False)
    monkeypatch.setattr(source_module.tempfile, "gettempdir", lambda: str(tmp_path))
    before = sorted(rows_file.parent.iterdir())
    LinearSVC(lam=1e-2, memory=1000).fit(primalsvm.open(rows_file))
    assert sorted(rows_file.parent.iterdir()) == before


def test_a_stream_after_a_table_forgets_the_table(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0] * 20, "l": [0, 1] * 20})
    frame.to_csv(tmp_path / "a.csv", index=False)
    clf = LinearSVC(lam=1e-2).fit(primalsvm.open(tmp_path / "a.csv", target="l"))
    clf.partial_fit(X, Y)
    clf.save(tmp_path / "m")
    assert not hasattr(primalsvm.load(tmp_path / "m"), "layout_")


def test_refusals(tmp_path, rows_file):
    for name, options in {
        "dtype": {"dtype": np.uint8},
        "n_features": {"n_features": -3},
        "zero": {"zero_based": "yes"},
    }.items():
        with pytest.raises((ValueError, TypeError), match=name):
            primalsvm.open(rows_file, **options)
    with pytest.raises(TypeError, match=r"fit\(primalsvm.open\('rows.svm'\)\) reads it"):
        LinearSVC().fit("rows.svm")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match="holds no rows"):
        LinearSVC().fit(primalsvm.open(tmp_path / "empty"))
    (tmp_path / "empty").unlink()
    with pytest.raises(FileNotFoundError, match="no file"):
        primalsvm.open(tmp_path / "not there")
    with pytest.raises(CacheError, match="not a cache"):
        LinearSVC().fit(primalsvm.open(tmp_path))
    with pytest.raises(ValueError, match="brings its own labels"):
        LinearSVC().fit(primalsvm.open(rows_file), Y)
    with pytest.raises(TypeError, match="a cache has no options; got n_features"):
        primalsvm.open(tmp_path, n_features=3)
    with pytest.raises(TypeError, match="svmlight text has the options n_features"):
        primalsvm.open(rows_file, target="y")
    cache = primalsvm.open(rows_file).to_cache(tmp_path / "c")
    with pytest.raises(ValueError, match="early_stopping needs the rows in memory"):
        LinearSVC(memory=10, early_stopping=True).fit(cache)
    with pytest.raises(CacheError, match="is a cache already"):
        cache.to_cache(tmp_path / "d")
    clf = LinearSVC().fit(X[:, :5], Y)
    with pytest.raises(ValueError, match="40 features, but the model has 5"):
        clf.predict(cache)
    with pytest.raises(ValueError, match="brings its own labels"):
        clf.score(cache, Y)
