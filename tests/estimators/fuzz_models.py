"""Change model files at random, and load them.

    python -m tests.estimators.fuzz_models [seconds]

What a file says is changed (values, types, names, shapes, dtypes, nesting) and its checksum made to agree, so that it
is the reader that has to notice; now and then only bytes are changed. A file must be refused with a sentence that names
it, or give a classifier that predicts (or refuses the rows). Run with NUMBA_BOUNDSCHECK=1 to have compiled kernels look
where they read.
"""

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import load_file, save

import primalsvm
from primalsvm import SVC, Asset, FourierFeatures, LinearSVC, Nystroem, Pegasos, SmoothedHinge
from primalsvm.estimators.model_files import known_parts
from primalsvm.persistence import FORMAT, KEY, ModelError, _digest
from tests.mutations import PLAIN, changed_array, changed_bytes, changed_tree, pick
from tests.watchdog import watched

X = np.random.default_rng(0).uniform(size=(24, 4))
Y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.7, "yes", "no")
QUERIES = (X[:3], sp.csr_matrix(X[:3]))
WORDS = [b'"BF16"', b'"F8_E4M3"', b'"F16"', b'"I64"', b'"BOOL"', b'"C64"', b'"shape":[0,9]', b"[18446744073709551615]",
         b"\\", b'"', b"{", b"\0" * 8, b"\xff" * 8, b'"data_offsets"', b"__metadata__", b"null"]  # fmt: skip
LONGEST_SENTENCE = 600


def seeds(folder):
    """(kind, tree, arrays) of a model of each sort."""
    path, found = Path(folder) / "seed", []
    named = LinearSVC(class_weight={"no": 1.0, "yes": 2.0}).fit(X, Y)
    named.feature_names_in_ = np.array(list("abcd"), object)
    for clf, rows, labels in (
        (named, None, None),
        (LinearSVC(loss=SmoothedHinge(0.5), solver=Pegasos(n_iter=50), tol=1.0), X, Y == "yes"),
        (SVC(n_components=6, gamma=0.5, random_state=0), X, Y),
        (SVC(kernel="laplacian", n_components=6, n_jobs=1, random_state=0), X.astype(np.float32), Y),
        (SVC(kernel="chi2", approximation=Nystroem(5, landmarks="uniform"), random_state=0), sp.csr_matrix(X), Y),
        (SVC(kernel="poly", degree=2, approximation=Nystroem(landmarks=X[:5])), X, (Y == "yes").astype(int)),
        (SVC(kernel="precomputed", n_components=6, approximation=Nystroem(landmarks="uniform")), X @ X.T, Y),
        (SVC(gamma=0.5, approximation=FourierFeatures(7), solver=Asset(n_iter=50), random_state=0, tol=1.0), X, Y),
        (SVC(gamma=0.5, lam=0.1, approximation="exact", tol=0.5, random_state=0), X, Y),
        (LinearSVC(probability="sigmoid", random_state=0), X, np.digitize(X[:, 0], [0.3, 0.6])),
        (LinearSVC(probability="isotonic", random_state=0), X, (X[:, :2] > 0.5).astype(int)),
    ):
        (clf if rows is None else clf.fit(rows, labels)).save(path)
        with safe_open(path, framework="np") as file:
            header = json.loads(file.metadata()[KEY])
        found.append((header["kind"], json.loads(header["content"]), load_file(path)))
    return found


def parts_of_trees(arrays):
    """Values that a reader may take for something."""
    name = next(iter(arrays), "x")
    deep: list = []
    for _ in range(100):
        deep = [deep]
    return [
        *PLAIN, *({"type": kind, "fields": {}} for kind in known_parts()), deep, *({"array": one} for one in arrays),
        {"type": "Status", "fields": {"value": "converged"}}, {"pairs": []}, {"pairs": [[[], 1]]}, {"pairs": [1]},
        {"table": {}}, {"table": {"x": 1.0}}, {"table": {"x": {"array": name}, "y": {"array": name}}},
        {"strings": ["1", "2"], "dtype": "<U1000000000"}, {"strings": ["1"], "dtype": "(1000000000,)f8"},
        {"strings": ["a", "b"], "dtype": "|O"}, {"strings": [[1], {}], "dtype": "|O"}, {"strings": [1], "dtype": "x"},
        {"csr": {"data": {"array": name}, "indices": {"array": name}, "indptr": {"array": name}}, "shape": [3, 4]},
        {"csr": {}, "shape": [2**62, 2**62]},
    ]  # fmt: skip


def mutated(rng, corpus):
    """A model file from a corpus, changed in some places."""
    kind, tree, arrays = pick(rng, corpus)
    arrays = dict(arrays)
    for _ in range(rng.integers(1, 4)):
        what = rng.integers(5)
        if what <= 2:
            tree = changed_tree(rng, tree, parts_of_trees(arrays))
        elif what == 3 and arrays:
            name = pick(rng, sorted(arrays))
            arrays[name] = changed_array(rng, arrays[name])
        elif arrays:
            one, other = pick(rng, sorted(arrays)), pick(rng, sorted(arrays))
            arrays[one] = arrays[other]
            if rng.random() < 0.3:
                del arrays[other]
    content = json.dumps(tree)
    try:
        digest = _digest(content, arrays)
    except UnicodeEncodeError:
        digest = ""
    header = {"format": FORMAT, "library": "0", "kind": kind, "sha256": digest, "content": content}
    if rng.random() < 0.05:
        header = changed_tree(rng, header, PLAIN)
    data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, {KEY: json.dumps(header)})
    return changed_bytes(rng, data, WORDS) if rng.random() < 0.05 else data


def judge(path):
    """Raise unless the file is refused by name, or predicts; returns what was said, roughly."""
    try:
        clf = primalsvm.load(path)
    except ModelError as error:
        said = str(error)
        assert str(path) in said and len(said) < LONGEST_SENTENCE and "\n" not in said, said
        return said.replace(str(path), "")[:60]
    said = [type(clf).__name__, len(repr(clf)) > 0, repr(clf.certificate_)[:1]]
    for rows in QUERIES if clf.n_features_in_ == X.shape[1] else (X @ X.T,):
        try:
            assert clf.predict(rows).shape[0] == rows.shape[0]
            if hasattr(clf, "predict_proba"):
                assert clf.predict_proba(rows).shape == (rows.shape[0], len(clf.classes_))
        except ValueError as error:
            said.append(str(error)[:40])
    return str(said)


def fuzz(seconds, most=2**62, seed=0):
    """Run for so many seconds or files; returns how many were judged, and how many ways they were treated."""
    rng = np.random.default_rng(seed)
    seen, rounds, end = set(), 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a model overflows is no matter here
        path, corpus = Path(folder) / "m", seeds(folder)
        while rounds < most and time.monotonic() < end:
            path.write_bytes(mutated(rng, corpus))
            with watched(path):
                seen.add(judge(path))
            rounds += 1
    return rounds, len(seen)


if __name__ == "__main__":
    rounds, ways = fuzz(float(sys.argv[1]) if len(sys.argv) > 1 else 300.0, seed=time.time_ns() % 2**32)
    print(f"{rounds:,} model files, treated in {ways} ways: each was refused by name, or predicts")
