"""Tables, against what pandas, Polars and scikit-learn make of them."""

import gzip
import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from primalsvm import LinearSVC
from primalsvm.sources.layout import MANY, TableLayout, layout_from_dict, layout_to_dict
from primalsvm.sources.tables import TableFile
from primalsvm.sources.texts import FormatError
from tests.real.datasets import folder

FRAME = pd.DataFrame(
    {
        "age": [39, 50, 38, 28, 61],
        "label": [1, -1, -1, 1, 1],
        "colour": ["red", "blue", "red", "deep green", "blue"],
        "height": [1.5, -2e-3, 0.1, 1e300, 0.0],
        "member": [True, False, False, True, True],
    }
)
EXPECTED = pd.get_dummies(FRAME.drop(columns="label"), prefix_sep="=").astype(float)


def write_csv(frame, path):
    frame.to_csv(path, index=False)


def write_stream(frame, path):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


WRITERS = {
    "rows.csv": write_csv,
    "rows.csv.gz": write_csv,
    "rows.csv.bz2": write_csv,
    "rows.csv.xz": write_csv,
    "rows.csv.zst": write_csv,
    "rows.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "rows.parquet": lambda frame, path: frame.to_parquet(path, row_group_size=2),
    "rows.feather": lambda frame, path: pa.feather.write_feather(frame, path),
    "rows.arrow": write_stream,
    "polars.parquet": lambda frame, path: pl.from_pandas(frame).write_parquet(path),
    "polars.arrow": lambda frame, path: pl.from_pandas(frame).write_ipc(path),
}


def table(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def dense(X):
    return X.toarray() if sp.issparse(X) else X


# ---- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_what_pandas_gives(tmp_path, name):
    WRITERS[name](FRAME, tmp_path / name)
    source = TableFile(tmp_path / name, target="label")
    X, y = source.to_arrays()
    assert source.feature_names == tuple(EXPECTED.columns)
    assert isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous
    np.testing.assert_array_equal(X, EXPECTED)
    np.testing.assert_array_equal(y, FRAME["label"], strict=True)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.xz", "rows.parquet", "rows.feather", "rows.arrow"])
@pytest.mark.parametrize("n_bytes", [1, 150, 10**6])
def test_blocks_put_together_are_the_whole(tmp_path, name, n_bytes):
    frame = pd.concat([FRAME] * 20, ignore_index=True).assign(age=np.arange(100))
    WRITERS[name](frame, tmp_path / name)
    source = TableFile(tmp_path / name, target="label")
    blocks = list(source.blocks(n_bytes))
    row = 8 * EXPECTED.shape[1] + 8
    assert len(blocks) == math.ceil(100 / min(100, max(1, n_bytes // row)))
    np.testing.assert_array_equal(np.concatenate([X for X, _ in blocks])[:, 0], np.arange(100))
    for whole, parts in zip(source.to_arrays(), zip(*blocks, strict=True), strict=True):
        np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_reader_may_stop_early(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 3_000_000))
    blocks = TableFile(path, target="y").blocks(1000)
    assert next(blocks)[0].shape[0] == 1000 // 16
    blocks.close()


def test_many_categories_make_sparse_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"word": rng.choice([f"w{k}" for k in range(90)], 500), "y": rng.integers(0, 2, 500)})
    frame["x"] = rng.integers(0, 2, 500) * rng.normal(size=500)
    write_csv(frame, tmp_path / "rows.csv")
    source = TableFile(tmp_path / "rows.csv", target="y")
    X, _ = source.to_arrays()
    assert sp.issparse(X) and X.format == "csr" and X.has_canonical_format and (X.data != 0).all()
    np.testing.assert_array_equal(X.toarray(), pd.get_dummies(frame.drop(columns="y"), prefix_sep="=").astype(float))
    assert (sp.vstack([part for part, _ in source.blocks(700)]) != X).nnz == 0
    few = frame.head(3)
    write_csv(few, tmp_path / "few.csv")
    assert sp.issparse(TableFile(tmp_path / "few.csv", layout=source.layout_used).to_arrays()[0])  # as the others
    assert not sp.issparse(TableFile(tmp_path / "few.csv", target="y").to_arrays()[0])


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (["1", "-1", "1"], np.array([1, -1, 1])),
        (["1", "-1.5", "1"], np.array([1.0, -1.5, 1.0])),
        (["True", "False", "true"], np.array([True, False, True])),
        (["yes", "no", "yes"], np.array(["yes", "no", "yes"])),
        (["1", "2", "no"], np.array(["1", "2", "no"])),
    ],
)
def test_labels_keep_their_kind(tmp_path, written, expected):
    path = table(tmp_path, "x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(written)))
    for blocks in (TableFile(path, target="y").blocks(10**6), TableFile(path, target="y").blocks(1)):
        np.testing.assert_array_equal(np.concatenate([y for _, y in blocks]), expected, strict=True)


def test_dictionaries_are_categories_and_a_target_of_numbers_stays_one(tmp_path):
    frame = pd.DataFrame({"grade": pd.Categorical([3, 1, 3]), "y": pd.Categorical([5, 7, 5])})
    pa.feather.write_feather(frame, tmp_path / "rows.feather")  # Parquet forgets that numbers are categories
    source = TableFile(tmp_path / "rows.feather", target="y")
    X, y = source.to_arrays()
    assert source.feature_names == ("grade=1", "grade=3")
    np.testing.assert_array_equal(X, [[0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(y, np.array([5, 7, 5]), strict=True)


def test_numbers_change_kind_late_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr("primalsvm.sources.batches.BLOCK", 64)
    rows = [f"{k},{k},{k % 2},{k % 2}" for k in range(50)] + ["0.5,fifty,true,1.25"]
    path = table(tmp_path, "number,text,truth,y\n" + "\n".join(rows) + "\n")
    source = TableFile(path, target="y")
    X, y = source.to_arrays()
    assert source.layout_used.numeric == ("number", "truth") and X.shape == (51, 2 + 51)
    np.testing.assert_array_equal(X[:, 0], [*range(50), 0.5])
    np.testing.assert_array_equal(X[:, 1], [*(k % 2 for k in range(50)), 1])
    np.testing.assert_array_equal(y, [*(k % 2 for k in range(50)), 1.25])
    assert X[:, 2:].sum() == 51 and X[50, source.feature_names.index("text=fifty")] == 1


def test_blanks_around_names_and_values_do_not_count(tmp_path):
    path = table(tmp_path, " y , colour, size\n 1, red , 2.5\n0,red,+3 \n")
    source = TableFile(path, target="y")
    X, y = source.to_arrays()
    assert source.feature_names == ("size", "colour=red")
    np.testing.assert_array_equal(X, [[2.5, 1], [3, 1]])
    np.testing.assert_array_equal(y, [1, 0])


def test_delimiter_quotes_and_any_suffix(tmp_path):
    path = table(tmp_path, 'y;name;x\n1;"a;b\nc";0.1\n0;d;2\n', "rows.data")
    source = TableFile(path, target="y", delimiter=";")
    assert source.feature_names == ("x", "name=a;b\nc", "name=d")
    np.testing.assert_array_equal(source.to_arrays()[0], [[0.1, 1, 0], [2, 0, 1]])


# ---- a layout given --------------------------------------------------------------------------------------------------


def test_a_layout_is_applied_by_name(tmp_path):
    write_csv(FRAME, tmp_path / "train.csv")
    layout = TableFile(tmp_path / "train.csv", target="label").layout_used
    other = FRAME[["height", "member", "label", "colour", "age"]].assign(extra="2020-01-01", more=None)
    other.loc[0, "colour"] = "never seen"
    expected = EXPECTED.copy()
    expected.loc[0, "colour=red"] = 0  # and the feature before, which is 1, stays
    for name in ("rows.csv", "rows.parquet"):
        WRITERS[name](other, tmp_path / name)
        X, y = TableFile(tmp_path / name, target="label", layout=layout).to_arrays()
        np.testing.assert_array_equal(X, expected)
        np.testing.assert_array_equal(y, FRAME["label"])
        assert TableFile(tmp_path / name, layout=layout, drop=("label",)).to_arrays()[1] is None
    write_csv(other.drop(columns="label"), tmp_path / "unlabelled.csv")
    X, y = TableFile(tmp_path / "unlabelled.csv", layout=layout).to_arrays()
    assert y is None
    np.testing.assert_array_equal(X, expected)


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
words = words.filter(lambda w: w == w.strip())
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 6))
    kinds = draw(
        st.lists(st.sampled_from([finite, st.integers(-(2**40), 2**40), words, st.booleans()]), min_size=1, max_size=5)
    )
    columns = {f"c{k}": draw(st.lists(kind, min_size=rows, max_size=rows)) for k, kind in enumerate(kinds)}
    columns["y"] = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    return pd.DataFrame(columns), draw(st.permutations(list(columns)))


@given(tables(), st.integers(1, 200))
def test_the_order_of_columns_does_not_matter(tmp_path_factory, drawn, n_bytes):
    frame, order = drawn
    place = tmp_path_factory.mktemp("tables")
    frame.to_parquet(place / "a.parquet")
    frame[order].to_parquet(place / "b.parquet")
    source = TableFile(place / "a.parquet", target="y")
    X, y = source.to_arrays()
    texts = [name for name in frame.columns if pd.api.types.is_string_dtype(frame[name])]
    numbers = [name for name in frame.columns if name not in texts and name != "y"]
    expected = [frame[name].astype(float) for name in numbers]
    expected += [frame[name] == value for name in texts for value in sorted(set(frame[name]))]
    np.testing.assert_array_equal(dense(X), np.array(expected, float).T)
    again = layout_from_dict(json.loads(json.dumps(layout_to_dict(source.layout_used))))
    blocks = list(TableFile(place / "b.parquet", layout=again).blocks(n_bytes))
    np.testing.assert_array_equal(np.concatenate([dense(part) for part, _ in blocks]), dense(X))
    np.testing.assert_array_equal(np.concatenate([part for _, part in blocks]), y)


GOOD = layout_to_dict(TableLayout(("x",), (("c", ("a", "b")),), "y", "text", ("n", "p")))


@pytest.mark.parametrize(
    "change",
    [
        {"numeric": "x"}, {"numeric": [1]}, {"numeric": None}, {"numeric": ["x", "x"]}, {"numeric": ["y"]},
        {"numeric": ["\ud800"]}, {"numeric": [], "categorical": []}, {"numeric": {"x": 1}},
        {"categorical": 3}, {"categorical": ["ab"]}, {"categorical": [["c"]]}, {"categorical": [["c", "ab"]]},
        {"categorical": [["c", ["b", "a"]]]}, {"categorical": [["c", ["a", "a"]]]}, {"categorical": [["c", []]]},
        {"categorical": [[["c"], ["a"]]]}, {"categorical": [["c", [1, 2]]]}, {"categorical": [["x", ["a"]]]},
        {"categorical": [["c", [f"{k:05}" for k in range(MANY + 1)]]]},
        {"target": None}, {"target": ["y"]}, {"target_kind": "other"}, {"target_kind": []},
        {"target_kind": "real"}, {"classes": []}, {"classes": [True]}, {"classes": "np"}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_layout_that_is_none_is_refused(change):
    assert layout_to_dict(layout_from_dict(GOOD)) == GOOD
    with pytest.raises(ValueError, match="not a layout"):
        layout_from_dict(GOOD | change)


@pytest.mark.parametrize("given", [[], "layout", {}, {1: 2}])
def test_what_is_no_mapping_of_a_layout_is_refused(given):
    with pytest.raises(ValueError, match="not a layout"):
        layout_from_dict(given)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", {}, r"say which column is the target: .*rows\.csv has 'a', 'b'"),
        ("a,b\n1,2\n", {"target": "z"}, r"rows\.csv has no column 'z' for the target; it has 'a', 'b'"),
        (",".join(f"c{k}" for k in range(30)) + "\n", {"target": "z"}, r"'c9' and 20 more$"),
        ("a,y\n1,2\n,3\n", {"target": "y"}, r"row 2, column 'a': the value is missing; fill it in, drop"),
        ("a,y\n1,2\nNA,3\n", {"target": "y"}, r"row 2, column 'a': the value is missing"),
        ("a,y\nx,2\n ,3\n", {"target": "y"}, r"row 2, column 'a': the value is missing"),
        ("a,y\n1,2\n3,nan\n", {"target": "y"}, r"row 2, column 'y': the value is missing"),
        ("a,y\n1,p\n3,\n", {"target": "y"}, r"row 2, column 'y': the value is missing"),
        ("a,b,y\n,1,0\n,2,1\n", {"target": "y"}, r"row 1, column 'a': the value is missing"),
        ("a,y\n1,2\n3,4\n-inf,4\n", {"target": "y"}, r"row 3, column 'a': the value is infinite"),
        ("a,y\n1e999,2\n", {"target": "y"}, r"row 1, column 'a': the value is infinite"),
        ("a,y\n2020-01-01,2\n2021-12-31,1\n", {"target": "y"}, r"column 'a' holds dates or times"),
        ("a,y\n2020-01-01T10:00:00Z,2\n", {"target": "y"}, r"column 'a' holds dates or times"),
        ("a,y\n10:00:01,2\n", {"target": "y"}, r"column 'a' holds dates or times"),
        ("a,y\n" + "".join(f"id{k},1\n" for k in range(MANY + 1)), {"target": "y"}, r"'a' holds more than 1000 categ"),
        ("a,y\n" + "".join(f"1,id{k}\n" for k in range(MANY + 1)), {"target": "y"}, r"'y' holds more than 1000 class"),
        ("a,a,y\n1,2,3\n", {"target": "y"}, r"has the column 'a' twice"),
        ("a, a,y\n1,2,3\n", {"target": "y"}, r"has the column 'a' twice"),
        ("a,y\n1,2\n3,4,5\n", {"target": "y"}, r"rows\.csv, line 3: expected 2 columns, .* found 3$"),
        ("", {"target": "y"}, r"rows\.csv is empty: a table begins with a line that names"),
        ("a,y\n", {"target": "y"}, r"rows\.csv is a table without rows"),
        ("y\n1\n", {"target": "y"}, r"no features: there is no column beside the target 'y'"),
        ("a,y\n1,1\n", {"target": "y", "drop": ("a",)}, r"no features"),
        ("a,y\n1,1\n", {"target": "y", "drop": ("b",)}, r"no column 'b' to drop"),
        ("a,y\n1,1\n", {"target": "y", "drop": ("y",)}, r"cannot be the target and be dropped"),
        ("a,y\n1,9007199254740993\n", {"target": "y"}, r"row 1, column 'y': expected a whole number below 2\^53"),
    ],
)  # fmt: skip
def test_refusals(tmp_path, text, options, message):
    with pytest.raises(FormatError, match=message):
        TableFile(table(tmp_path, text), **options).to_arrays()


def test_an_identifier_can_be_dropped(tmp_path):
    path = table(tmp_path, "id,x,y\n" + "".join(f"id{k},{k},1\n" for k in range(MANY + 1)))
    assert TableFile(path, target="y", drop=("id",)).to_arrays()[0].shape == (MANY + 1, 1)
    path = table(tmp_path, "id,y\n" + "".join(f"id{k},1\n" for k in range(MANY)))
    assert TableFile(path, target="y").to_arrays()[0].shape == (MANY, MANY)


LAYOUT = TableLayout(("x",), (("c", ("a", "b")),), "y", "text", ("n", "p"))


@pytest.mark.parametrize(
    ("layout", "text", "message"),
    [
        (LAYOUT, "c,y\na,p\n", r"rows\.csv lacks the column 'x'; it has 'c', 'y'"),
        (LAYOUT, "y\np\n", r"lacks 2 columns, among them 'x'"),
        (LAYOUT, "x,c,y\n1,a,p\n2,b,p.\n", r"row 2, column 'y': 'p\.' is none of the classes 'n', 'p'"),
        (LAYOUT, "x,c\n1,a\n2,b\n?,a\n4,b\n", r"row 3, column 'x': expected a number, but found '\?'"),
        (LAYOUT, "x,c\n", r"table without rows"),
        (TableLayout(("x",), (), "y", "integer"), "x,y\n1,1\n1,1.5\n", r"row 2, column 'y': expected a whole number"),
        (TableLayout(("x",), (), "y", "bool"), "x,y\n1,1\n1,2\n", r"row 2, column 'y': expected true or false"),
    ],
)
def test_refusals_with_a_layout(tmp_path, layout, text, message):
    with pytest.raises(FormatError, match=message):
        list(TableFile(table(tmp_path, text), layout=layout).blocks(1))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([0], pa.timestamp("ns")), r"timestamp\[ns\]"),
        (pa.array([0], pa.date32()), r"date32\[day\]"),
        (pa.array([[1.0]]), r"list<"),
        (pa.array([{"u": 1}]), r"struct<"),
        (pa.array([b"x"]), r"binary"),
    ],
)
@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather"])
def test_types_that_are_no_features_are_refused_by_name(tmp_path, values, kind, name):
    columns = pa.table({"x": [1.0], "odd": values, "y": [1]})
    (pa.parquet.write_table if name.endswith("parquet") else pa.feather.write_feather)(columns, tmp_path / name)
    with pytest.raises(FormatError, match=rf"column 'odd': its type is {kind}.*drop=\('odd',\)"):
        TableFile(tmp_path / name, target="y").to_arrays()
    np.testing.assert_array_equal(TableFile(tmp_path / name, target="y", drop=("odd",)).to_arrays()[0], [[1.0]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [1.0, None], "y": [1, 2]}, r"row 2, column 'x': the value is missing"),
        ({"x": [1.0, math.nan], "y": [1, 2]}, r"row 2, column 'x': the value is missing"),
        ({"x": [1.0, math.inf], "y": [1, 2]}, r"row 2, column 'x': the value is infinite"),
        ({"x": ["a", None], "y": [1, 2]}, r"row 2, column 'x': the value is missing"),
        ({"x": [None, None], "y": [1, 2]}, r"row 1, column 'x': the value is missing"),
        ({"x": pa.array([None, None], pa.string()), "y": [1, 2]}, r"column 'x' holds no values"),
        ({"x": pa.array([], pa.float64()), "y": pa.array([], pa.int64())}, r"without rows"),
        ({"x": pa.array([], pa.string()), "y": pa.array([], pa.int64())}, r"without rows"),
    ],
)
def test_refusals_in_parquet(tmp_path, columns, message):
    pa.parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    with pytest.raises(FormatError, match=message):
        TableFile(tmp_path / "rows.parquet", target="y").to_arrays()


def test_a_column_of_numbers_where_text_is_expected(tmp_path):
    pa.parquet.write_table(pa.table({"x": [1.0], "c": [2.5]}), tmp_path / "rows.parquet")
    with pytest.raises(FormatError, match="row 1, column 'c': expected text, but found numbers of the type double"):
        TableFile(tmp_path / "rows.parquet", layout=LAYOUT).to_arrays()


def test_columns_of_one_name_in_arrow(tmp_path):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "y"])
    with pa.ipc.new_file(tmp_path / "rows.arrow", twice.schema) as writer:
        writer.write_table(twice)
    with pytest.raises(FormatError, match="has the column 'a' twice"):
        TableFile(tmp_path / "rows.arrow", target="y").to_arrays()


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "rows.csv" and name != "rows.tsv"])
def test_damaged_files(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](pd.concat([FRAME] * 50), path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=name.replace(".", r"\.")):
            TableFile(path, target="label").to_arrays()


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"a,y\n\xff\xfe,1\n")
    with pytest.raises(FormatError, match=r"rows\.csv cannot be read as CSV: .*UTF8"):
        TableFile(tmp_path / "rows.csv", target="y").to_arrays()


def test_options(tmp_path):
    with pytest.raises(FormatError, match="does not look like a table"):
        TableFile(table(tmp_path, "a,y\n1,2\n", "rows.txt"), target="y").to_arrays()
    with pytest.raises(TypeError, match="drop must be a tuple"):
        TableFile(tmp_path / "rows.csv", drop="id")
    with pytest.raises(ValueError, match="one character"):
        TableFile(tmp_path / "rows.csv", delimiter="::")
    with pytest.raises(ValueError, match="the layout says 'y'"):
        TableFile(tmp_path / "rows.csv", target="z", layout=LAYOUT)
    with pytest.raises(FileNotFoundError):
        TableFile(tmp_path / "not there.csv", target="y").to_arrays()


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"reading CSV files needs the package pyarrow: pip install 'primalsvm\[tab"):
        TableFile(table(tmp_path, "a,y\n1,2\n"), target="y").to_arrays()


def test_pyarrow_is_imported_when_it_is_needed():
    code = "import sys, primalsvm.sources.tables; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- real tables -----------------------------------------------------------------------------------------------------

needs_data = pytest.mark.skipif(folder() is None, reason="PRIMALSVM_DATA names no folder of data sets")


@needs_data
def test_adult():
    place = folder() / "a9a" / "raw-adult"
    source = TableFile(place / "adult.data.xz", target="classification", delimiter=",")
    frame = pd.read_csv(place / "adult.data.xz", skipinitialspace=True, keep_default_na=False)
    X, y = source.to_arrays()
    expected = pd.get_dummies(frame.drop(columns="classification"), prefix_sep="=").astype(float)
    assert sp.issparse(X) and source.feature_names == tuple(expected.columns)
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, frame["classification"])
    later = TableFile(place / "adult.test.xz", layout=source.layout_used, drop=("classification",), delimiter=",")
    unseen = pd.read_csv(place / "adult.test.xz", skipinitialspace=True, keep_default_na=False)
    X, y = later.to_arrays()
    expected = pd.get_dummies(unseen, prefix_sep="=").reindex(columns=source.feature_names, fill_value=0)
    assert y is None
    np.testing.assert_array_equal(X.toarray(), expected.astype(float))
    with pytest.raises(FormatError, match=r"row 1, column 'classification': '<=50K\.' is none of the classes"):
        TableFile(place / "adult.test.xz", layout=source.layout_used, delimiter=",").to_arrays()


@needs_data
def test_housing():
    path = folder() / "housing" / "housing.csv.xz"
    frame = pd.read_csv(path)
    first = int(np.flatnonzero(frame["total_bedrooms"].isna())[0]) + 1
    with pytest.raises(FormatError, match=f"row {first}, column 'total_bedrooms': the value is missing"):
        TableFile(path, target="median_house_value").to_arrays()
    source = TableFile(path, target="median_house_value", drop=("total_bedrooms",))
    X, y = source.to_arrays()
    expected = pd.get_dummies(frame.drop(columns=["total_bedrooms", "median_house_value"]), prefix_sep="=")
    assert source.feature_names == tuple(expected.columns)
    np.testing.assert_array_equal(X, expected.astype(float))
    np.testing.assert_array_equal(y, frame["median_house_value"])


# ---- frames handed to estimators -------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_estimators_take_frames(as_frame):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 2))
    y = np.where(values[:, 0] > 0, 1, -1)
    frame = as_frame({"a": values[:, 0], "b": values[:, 1]})
    model = LinearSVC().fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.decision_function(frame), LinearSVC().fit(values, y).decision_function(values))


TEXTS = [
    pd.DataFrame({"a": [0.0, 1.0], "b": ["x", "y"]}),
    pd.DataFrame({"a": [0.0, 1.0], "b": pd.Series(["x", "y"], dtype=object)}),
    pd.DataFrame({"a": [0.0, 1.0], "b": pd.Categorical(["x", "y"])}),
    pd.DataFrame({"a": [0.0, 1.0], "b": pd.Series(["x", "y"], dtype=pd.ArrowDtype(pa.large_string()))}),
    pl.DataFrame({"a": [0.0, 1.0], "b": ["x", "y"]}),
    pl.DataFrame({"a": [0.0, 1.0], "b": pl.Series(["x", "y"], dtype=pl.Categorical)}),
    pl.DataFrame({"a": [0.0, 1.0], "b": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"]))}),
]


@pytest.mark.parametrize("frame", TEXTS, ids=lambda frame: str(list(frame.dtypes)[1]))
def test_a_frame_with_text_is_refused_by_the_name_of_the_column(frame):
    with pytest.raises(ValueError, match="column 'b' of X holds text or categories"):
        LinearSVC().fit(frame, [0, 1])
    model = LinearSVC().fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="column 'b' of X holds text or categories"):
        model.predict(frame)


def test_a_frame_of_objects_that_are_numbers_is_taken():
    frame = pd.DataFrame({"a": pd.Series([0.0, 1.0], dtype=object)})
    assert LinearSVC().fit(frame, [0, 1]).predict(frame).tolist() == [0, 1]
