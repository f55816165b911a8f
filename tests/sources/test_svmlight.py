"""svmlight text: what scikit-learn reads, and sentences for what nobody should."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from primalsvm.sources import svmlight
from primalsvm.sources.svmlight import read_svmlight
from primalsvm.sources.texts import FormatError
from tests.sources.fuzz import fuzz


def read(tmp_path, text, **options):
    path = tmp_path / "some.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_svmlight(path, **options)


@pytest.fixture(params=[svmlight.PART, 64, 7])
def part(request, monkeypatch):
    monkeypatch.setattr(svmlight, "PART", request.param)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("zero_based", [True, False])
def test_what_scikit_learn_writes(part, tmp_path, jobs, zero_based):
    X = sp.random(57, 31, 0.2, "csr", random_state=0)
    y = np.random.default_rng(0).normal(size=57)
    qid = np.sort(np.random.default_rng(1).integers(0, 9, 57))
    path = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, query_id=qid, comment="made\nby a test")
    found = read_svmlight(path, n_jobs=jobs, zero_based=zero_based, n_features=31)
    theirs, labels, _ = load_svmlight_file(str(path), zero_based=zero_based, n_features=31, query_id=True)
    assert (theirs != found.X).nnz == 0 and found.X.has_canonical_format and found.X.indices.dtype == np.int32
    np.testing.assert_array_equal(found.y, labels)
    np.testing.assert_array_equal(found.qid, qid)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.dictionaries(st.integers(1, 10**6), st.floats(allow_nan=False, allow_infinity=False), max_size=6),
        ),
        max_size=20,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_any_rows_come_back(tmp_path_factory, rows, end, final):
    lines = [" ".join([repr(y), *(f"{j}:{v!r}" for j, v in sorted(x.items()))]) for y, x in rows]
    text = end.join(lines) + (end if final else "")
    found = read(tmp_path_factory.mktemp("rows"), text, zero_based=False)
    assert found.X.shape[0] == len(rows) and found.y.tolist() == [y for y, _ in rows]
    for i, (_, x) in enumerate(rows):
        row = found.X[i]
        assert dict(zip((row.indices + 1).tolist(), row.data.tolist(), strict=True)) == x


def test_spaces_comments_empty_lines_and_queries(part, tmp_path):
    text = "# first\n\n  1 \t qid:3 2:0.5   7:1e-3 # 9:9\n#\n-1.5 qid:3\r\n\t\n+2 qid:4 1:-.25#x\n0 qid:12 1:7"
    X, y, qid, _ = read(tmp_path, text)
    assert y.tolist() == [1.0, -1.5, 2.0, 0.0] and qid.tolist() == [3, 3, 4, 12]
    assert X.toarray().tolist() == [[0, 0.5, 0, 0, 0, 0, 1e-3], [0] * 7, [-0.25, *[0] * 6], [7.0, *[0] * 6]]


def test_zero_or_one_based(tmp_path):
    assert read(tmp_path, "1 1:2\n").X.shape == (1, 1)
    assert read(tmp_path, "1 0:2 1:3\n").X.shape == (1, 2)
    assert read(tmp_path, "1 1:2\n", zero_based=True).X.shape == (1, 2)
    assert read(tmp_path, "1 1:2\n", n_features=9).X.shape == (1, 9)
    with pytest.raises(FormatError, match="row 2 has the index 0"):
        read(tmp_path, "1 1:1\n1 0:2\n", zero_based=False)
    with pytest.raises(FormatError, match="only n_features=3"):
        read(tmp_path, "1 4:1\n", n_features=3)


def test_entries_out_of_order_are_put_in_order_and_twins_refused(part, tmp_path):
    X = read(tmp_path, "1 3:3 1:1 2:2\n1 1:1 2:2\n").X
    assert X.toarray().tolist() == [[1, 2, 3], [1, 2, 0]] and X.has_sorted_indices
    with pytest.raises(FormatError, match="row 2 has the feature 5 twice"):
        read(tmp_path, "1 5:1\n1 5:1 2:2 5:3\n")


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_compressed(tmp_path, suffix):
    text = b"1 1:0.5\n-1 2:0.25\n"
    squeeze = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(squeeze(text))
    assert read_svmlight(path).X.toarray().tolist() == [[0.5, 0], [0, 0.25]]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_damaged_compressed_files_are_refused_by_name(tmp_path, suffix):
    squeeze = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix]
    whole = squeeze(b"1 1:0.5\n-1 2:0.25\n" * 99)
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    path = tmp_path / f"a.svm{suffix}"
    for content in (b"1 1:0.5\n", whole[:-9], whole[:middle], flipped):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=rf"a\.svm\{suffix} is damaged, or not compressed as its name says"):
            read_svmlight(path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_what_is_written_reads_back_to_the_same_bits(tmp_path, dtype, suffix):
    X = sp.random(2500, 31, 0.1, "csr", random_state=0, dtype=np.float64)
    X.data *= 10.0 ** np.random.default_rng(0).integers(-300 if dtype == np.float64 else -30, 30, X.nnz)
    X, y = X.astype(dtype), np.random.default_rng(1).normal(size=2500)
    path = tmp_path / f"a.svm{suffix}"
    svmlight.write_svmlight(path, X, y, qid=np.arange(2500) // 3)
    found = read_svmlight(path, n_features=31, dtype=dtype)
    assert (found.X != X).nnz == 0 and (found.y == y).all() and (found.qid == np.arange(2500) // 3).all()
    with pytest.raises(ValueError, match="NaN"):
        svmlight.write_svmlight(path, [[np.nan]], [1])
    with pytest.raises(ValueError, match="X has 2500 rows"):
        svmlight.write_svmlight(path, X, [1])


def test_nothing(tmp_path):
    for text in ("", "\n\n", "# only a comment"):
        found = read(tmp_path, text)
        assert found.X.shape == (0, 0) and found.y.shape == (0,) and found.qid is None


def test_numbers_of_many_digits_are_exact(part, tmp_path):
    many = "0." + "1" * 400
    between = "9007199254740993.00000000000000000000000001"  # just above the middle of two doubles
    X, y, *_ = read(tmp_path, f"{between} 1:{many} 2:{between}\n1 2:9007199254740993.0000000000000\n")
    assert X.toarray().tolist() == [[float(many), float(between)], [0, 9007199254740992.0]]
    assert y[0] == float(between) == 9007199254740994.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:2\nabc 1:2\n", "line 2, column 1: expected a label, a number, but found 'abc'"),
        ("1 1:2\n\n1 1:2 x:3\n", "line 3, column 7: expected index:value, but found 'x:3'"),
        ("1 -1:2\n", "line 1, column 3: expected index:value, but found '-1:2'"),
        ("1 1\n", "column 3: expected ':' after the index in '1'"),
        ("1 1=2\n", "expected ':' after the index in '1=2'"),
        ("1 1:\n", "expected a number after ':' in '1:'"),
        ("1 1:x\n", "expected a number after ':' in '1:x'"),
        ("1 1:nan\n", "expected a number after ':' in '1:nan'"),
        ("1 1:inf\n", "expected a number after ':' in '1:inf'"),
        ("1 1:1e999\n", "'1:1e999' is not a finite number"),
        ("1e999 1:1\n", "column 1: '1e999' is not a finite number"),
        ("nan 1:1\n", "expected a label"),
        ("1 1:2x 2:3\n", "expected a space or the end of the line in '1:2x'"),
        ("1,2 1:2\n", "expected a space or the end of the line in '1,2'"),
        ("1 2147483648:1\n", "the index in '2147483648:1' is larger"),
        ("1 9223372036854775808:1\n", "is larger"),
        ("1 qid:x 1:1\n", "expected a whole number below 10^18 after 'qid:', but found 'qid:x'".replace("^", r"\^")),
        ("1 qid:99999999999999999999 1:1\n", "after 'qid:'"),
        ("1 qux:1\n", "expected index:value, but found 'qux:1'"),
        ("1 1:1 qid:1\n", "expected index:value, but found 'qid:1'"),
        ("1 qid:1 1:1\n1 1:1\n", "row 2 has no qid"),
        ("1 1:1\0\n", "expected a space or the end of the line"),
        ("\0\0\0", "expected a label"),
    ],
)  # fmt: skip
def test_sentences(part, tmp_path, text, message):
    with pytest.raises(FormatError, match="some.svm.*" + message):
        read(tmp_path, text)


def test_bad_options(tmp_path):
    with pytest.raises(ValueError, match="zero_based="):
        read(tmp_path, "1", zero_based="maybe")
    with pytest.raises(ValueError, match="dtype must be"):
        read(tmp_path, "1", dtype=np.int32)
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "not there")


def test_changed_at_random_it_reads_what_the_plain_reader_reads(monkeypatch):
    monkeypatch.setattr(svmlight, "PART", svmlight.PART)  # the fuzzer changes it
    assert fuzz(600.0, most=20_000) >= (20_000, 1000)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.text("0123456789:. \t\r\n#-+eqid", max_size=200).map(str.encode))
def test_whatever_bytes_come_they_are_read_or_refused(tmp_path_factory, text):
    try:
        found = read(tmp_path_factory.mktemp("bytes"), text)
    except FormatError:
        return
    assert found.X.shape[0] == found.y.shape[0] <= text.count(b"\n") + 1
    try:
        X, y = load_svmlight_file(io.BytesIO(text))
    except Exception:  # it refuses more
        return
    if X.shape[0] == found.X.shape[0]:
        np.testing.assert_array_equal(y, found.y)
