"""svmlight text of unusual size: no hang, and memory of no more than a small multiple of the text."""

import subprocess
import sys

import numpy as np
import pytest

from primalsvm.sources.svmlight import read_svmlight
from primalsvm.sources.texts import FormatError

MANY = 10_000_000
LARGE = 100_000_000
SLACK = 32 << 20  # bytes
MULTIPLE = 5  # of the text: an entry of three letters, `1:1`, takes twelve bytes

# A process inherits the largest size that its parent ever had as its own `ru_maxrss`, but not as its VmHWM.
PEAK = """
import resource, sys
from primalsvm.sources.svmlight import read_svmlight
from primalsvm.sources.texts import FormatError

def peak():
    try:
        lines = open("/proc/self/status").read().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

small, path = sys.argv[1:]
read_svmlight(small, n_jobs=1)  # loads the compiled kernels
before = peak()
try:
    X = read_svmlight(path, n_jobs=1).X
    print(*X.shape, X.nnz)
except FormatError as error:
    print(error)
print(1024 * (peak() - before))
"""


def read_apart(tmp_path, text):
    """What a process of its own says of a text; it fails if that takes much time or memory."""
    small, path = tmp_path / "small.svm", tmp_path / "a.svm"
    small.write_text("1 1:1\n")
    path.write_bytes(text)
    found = subprocess.run(
        [sys.executable, "-c", PEAK, small, path], capture_output=True, text=True, timeout=120, check=True
    )
    path.unlink()
    said, memory = found.stdout.splitlines()
    assert int(memory) <= MULTIPLE * len(text) + SLACK
    return said.replace(str(path), "a.svm")


def test_many_empty_lines(tmp_path):
    assert read_apart(tmp_path, b"\n" * MANY) == "0 0 0"


@pytest.mark.slow
def test_a_row_of_many_features(tmp_path):
    index = np.arange(MANY, 2 * MANY)
    words = np.full((MANY, 11), ord(" "), np.uint8)
    for k in range(8):
        words[:, k] = ord("0") + index // 10 ** (7 - k) % 10
    words[:, 8:10] = np.frombuffer(b":1", np.uint8)
    assert read_apart(tmp_path, b"1 " + words.tobytes()) == f"1 {2 * MANY - 1} {MANY}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "others", "said"),
    [
        (b"#", b"x", "0 0 0"),
        (b"#", b":", "0 0 0"),  # which look like entries when they are counted
        (b"1", b" ", "1 0 0"),
        (b"x", b"x", f"a.svm, line 1, column 1: expected a label, a number, but found '{'x' * 40}'"),
    ],
)
def test_a_long_line_without_end(tmp_path, first, others, said):
    assert read_apart(tmp_path, first + others * LARGE) == said


def test_many_rows_of_a_label_each(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1\n-1\n" * 50_000)
    found = read_svmlight(path)
    assert found.X.shape == (100_000, 0) and found.X.nnz == 0 and found.y.sum() == 0 and found.qid is None


def test_numbers_of_very_many_digits(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:0." + b"7" * MANY + b" 2:1" + b"0" * 300 + b"\n")
    assert read_svmlight(path).X.toarray().tolist() == [[float("0." + "7" * 30), 1e300]]
    path.write_bytes(b"1 1:" + b"7" * 400 + b"\n")
    with pytest.raises(FormatError, match=r"line 1, column 3: '1:7{38}' is not a finite number"):
        read_svmlight(path)


def test_many_numbers_of_many_digits(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes((b"1 1:0." + b"7" * 30 + b"\n") * 100_000)
    assert (read_svmlight(path).X.data == float("0." + "7" * 30)).all()


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 + 1, 10**400])
def test_indices_that_do_not_fit_are_refused_and_not_taken_for_others(tmp_path, index):
    path = tmp_path / "a.svm"
    path.write_text(f"1 1:1\n1 {index}:1\n")
    with pytest.raises(FormatError, match=r"line 2, column 3: the index in '[0-9:]*' is larger"):
        read_svmlight(path)
    path.write_text(f"1 1:1\n1 {2**31 - 2}:1\n")
    assert read_svmlight(path).X.shape == (2, 2**31 - 2)
