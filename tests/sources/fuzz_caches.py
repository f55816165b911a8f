"""Change caches at random, and use them.

    python -m tests.sources.fuzz_caches [seconds]

The header, the headers of the `.npy` files or what these hold is changed, and the sizes and checksums in the header are
made to agree, so that it is the reader that has to notice. A cache must be refused with a sentence that names it, or
give rows that are fitted, or refused by `fit`: that those which are let through are sound, SciPy has to say too. Run
with NUMBA_BOUNDSCHECK=1 to have compiled kernels look where they read.
"""

import ast
import json
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import primalsvm
from primalsvm.data import as_block
from primalsvm.sources.cache import HEADER, CacheError, CacheWriter, verify
from tests.mutations import DTYPES, PLAIN, changed_array, changed_bytes, changed_tree, pick
from tests.watchdog import watched

X = sp.random(12, 5, 0.5, "csr", random_state=0)
Y = np.where(np.arange(12) % 3 > 0, 1.0, -1.0)
WORDS = [b"PK\x03\x04", b"\x93NUMPY", b"\x80\x04.", b"True", b"'<f8'", b"'>f8'", b"'|O'", b"'<i4'", b"(12,)", b"(-1,)",
         b"(12, 5)", b"((", b"--------", b"9" * 30, b"\0", b"\xff" * 8, b"'", b"# ", b"L", b"{}"]  # fmt: skip
ODD_DTYPES = ["O", ">f8", ">i4", ">i8", "S8", "U2", "V8", "c16", "M8[s]", "f8,f8", "(2,)f8", "g", "V0", "S0", *DTYPES]
SHAPES = [(), (0,), (-1,), (12,), (13,), (2**62, 2**10), (2**64,), (1, 12), (12, 5), (5, 12), (0, 2**62), (True,)]
LONGEST_SENTENCE = 600
MOST_FEATURES = 10**6  # a solver keeps some numbers for each, whatever the rows hold


def seeds(folder):
    """{file: bytes} of a cache of each sort."""
    path, found = Path(folder) / "seed", []
    for matrix in (X, X.astype(np.float32), X.toarray(), (10 * X.toarray()).astype(np.uint8)):
        for queries in (False, True):
            with CacheWriter(path, 5, sp.issparse(matrix), matrix.dtype) as writer:
                writer.append(matrix, Y, np.arange(12) // 4 if queries else None)
            found.append({file.name: file.read_bytes() for file in path.iterdir()})
    return found


def npy(array, **said):
    """A `.npy` file of an array; its header may say something else."""
    described = {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": array.shape}
    text = repr({**described, **said}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


def read_npy(data):
    """The array in a `.npy` file."""
    start = 10 + int.from_bytes(data[8:10], "little")
    described = ast.literal_eval(data[10:start].decode("latin1").strip())
    return np.frombuffer(data[start:], described["descr"]).reshape(described["shape"])


def changed_npy(rng, data):
    """A `.npy` file with other values, or another header."""
    array, kind = read_npy(data), rng.integers(6)
    if kind <= 2:
        return npy(changed_array(rng, array))
    if kind == 3:
        return npy(array, shape=pick(rng, SHAPES))
    if kind == 4:
        return npy(array, descr=np.lib.format.dtype_to_descr(np.dtype(pick(rng, ODD_DTYPES))))
    return npy(array, **{pick(rng, ["fortran_order", "descr", "shape", "more"]): pick(rng, [*PLAIN[:5], *PLAIN[8:]])})


def mutated(rng, corpus):
    """{file: bytes} of a cache from a corpus, changed in some places."""
    files = dict(pick(rng, corpus))
    for _ in range(rng.integers(1, 3)):
        name = pick(rng, sorted(set(files) - {HEADER}))
        kind = rng.integers(10)
        if kind <= 6:
            try:
                files[name] = changed_npy(rng, files[name])
            except (
                SyntaxError,
                TypeError,
                ValueError,
                KeyError,
                RecursionError,
                MemoryError,
            ):  # beyond what is read here
                continue
        elif kind == 7:
            files[name] = changed_bytes(rng, files[name], WORDS)
        elif kind == 8:
            other = pick(rng, sorted(set(files) - {HEADER}))
            files[name], files[other] = files[other], files[name]
        else:
            files[HEADER] = changed_header(rng, files[HEADER])
    return agreeing(rng, files)


def changed_header(rng, data):
    try:
        header = json.loads(data)
    except ValueError:
        return data
    return json.dumps(changed_tree(rng, header, PLAIN)).encode() if isinstance(header, dict) else data


def agreeing(rng, files):
    """The files with a header that has their sizes, and often as many rows and entries as they."""
    try:
        header = json.loads(files[HEADER])
        for name, facts in header["files"].items():
            data = files[name]
            facts["bytes"] = len(data)
            facts["crc32"] = zlib.crc32(data[10 + int.from_bytes(data[8:10], "little") :])
        if rng.random() < 0.7:
            header["rows"] = read_npy(files["y.npy"]).shape[0]
            if "data.npy" in files:
                header["entries"] = read_npy(files["data.npy"]).shape[0]
        files[HEADER] = json.dumps(header).encode()
    except Exception:  # there is nothing that could be made to agree
        pass
    if rng.random() < 0.05:
        files[HEADER] = changed_bytes(rng, files[HEADER], [*WORDS, b"[" * 100_000, b"9" * 5000])
    return files


def put(path, files):
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    for name, data in files.items():
        (path / name).write_bytes(data)


def judge(path):
    """Raise unless the cache is refused by name, or fits, or is refused by `fit`; returns what was said, roughly."""
    said = []
    try:
        verify(path)
    except CacheError as error:
        said.append(by_name(path, error))
    try:
        rows, y = primalsvm.open(path).to_arrays()
    except CacheError as error:
        return f"{said} {by_name(path, error)}"
    try:
        as_block(rows)
    except ValueError as error:
        return f"{said} {str(error)[:60]}"
    assert y.shape == (rows.shape[0],)
    if sp.issparse(rows):
        rows.check_format(full_check=True)
    if rows.shape[1] <= MOST_FEATURES:
        try:
            primalsvm.LinearSVC(max_iter=2).fit(primalsvm.open(path))
        except ValueError as error:
            said.append(str(error)[:60])
    return str(said)


def by_name(path, error):
    said = str(error)
    assert str(path) in said and len(said) < LONGEST_SENTENCE and "\n" not in said, said
    return said.replace(str(path), "")[:60]


def fuzz(seconds, most=2**62, seed=0):
    """Run for so many seconds or caches; returns how many were judged, and how many ways they were treated."""
    rng = np.random.default_rng(seed)
    seen, rounds, end = set(), 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit of two epochs falls short
        path, corpus = Path(folder) / "c", seeds(folder)
        while rounds < most and time.monotonic() < end:
            put(path, mutated(rng, corpus))
            with watched(path):
                seen.add(judge(path))
            rounds += 1
    return rounds, len(seen)


if __name__ == "__main__":
    rounds, ways = fuzz(float(sys.argv[1]) if len(sys.argv) > 1 else 300.0, seed=time.time_ns() % 2**32)
    print(f"{rounds:,} caches, treated in {ways} ways: each was refused by name, or fits, or is refused by fit")
