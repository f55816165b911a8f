"""Model files: the same predictions after loading, and a sentence for every file that is not one."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file

import primalsvm
from primalsvm import SVC, Asset, FourierFeatures, LinearSVC, Nystroem, Pegasos, SmoothedHinge
from primalsvm.persistence import KEY, ModelError, _digest
from tests.estimators.fuzz_models import fuzz

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = np.where(X[:, 0] ** 2 + X[:, 1] > 0.7, "yes", "no")

MODELS = {
    "linear": LinearSVC(lam=1e-2, loss=SmoothedHinge(0.5)),
    "pegasos": LinearSVC(lam=1e-2, solver=Pegasos(n_iter=500), tol=1.0, class_weight={"no": 1.0, "yes": 2.0}),
    "rbf": SVC(gamma=0.5, n_components=20, random_state=0),
    "poly": SVC(kernel="poly", coef0=1.0, degree=2, approximation=Nystroem(30, landmarks=X[:30])),
    "fourier": SVC(gamma=0.5, approximation=FourierFeatures(33), random_state=0),
    "exact": SVC(gamma=0.5, lam=1e-2, approximation="exact", tol=0.2, random_state=0),
}


@pytest.mark.parametrize(
    ("name", "labels"),
    [(name, Y) for name in MODELS] + [(name, (Y == "yes").astype(int)) for name in MODELS if name != "pegasos"],
)
def test_a_model_predicts_the_same_after_loading(tmp_path, name, labels):
    clf = MODELS[name].fit(X, labels)
    clf.save(tmp_path / "m.safetensors")
    again = primalsvm.load(tmp_path / "m.safetensors")
    assert type(again) is type(clf) and again.certificate_ == clf.certificate_ and again.status_ is clf.status_
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert not hasattr(again, "history_")  # seconds are not part of a model
    assert repr(again.get_params()) == repr(clf.get_params())
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_sparse_landmarks_and_streams_and_feature_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    for clf, rows in (
        (SVC(gamma=0.5, approximation=Nystroem(20, landmarks="uniform"), random_state=0).fit(sp.csr_matrix(X), Y), X),
        (SVC(lam=1e-3, gamma=0.5, approximation=FourierFeatures(16), solver=Asset()).partial_fit(X, Y), X),
        (LinearSVC().fit(frame, Y), frame),
    ):
        clf.save(tmp_path / "m")
        again = primalsvm.load(tmp_path / "m")
        np.testing.assert_array_equal(again.decision_function(rows), clf.decision_function(rows))
    assert again.feature_names_in_.tolist() == list("abcd")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ModelError, match="not fitted"):
        LinearSVC().save(tmp_path / "m")
    with pytest.raises(ModelError, match="kernel"):
        SVC(kernel=lambda a, b: a @ b.T).fit(X, Y).save(tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        LinearSVC().fit(X, Y).save(tmp_path / "no" / "folder")
    assert not list(tmp_path.iterdir())


def rewritten(path, change):
    """The file with another header; the checksum is left as it was."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        header = json.loads(file.metadata()[KEY])
    arrays = load_file(path)
    change(header, arrays)
    save_file(arrays, path, {KEY: json.dumps(header)})


def resealed(path, where, value):
    """The file with another value in its tree, or with another array, and a checksum that agrees."""

    def change(header, arrays):
        tree = json.loads(header["content"])
        if isinstance(value, np.ndarray):
            arrays[where] = value
        else:
            part, *keys, last = where.split(".")
            pairs = dict(tree[part]["pairs"])
            inner = pairs
            for key in keys:
                inner = inner[key] if inner is pairs else inner["fields"][key]
            (inner if inner is pairs else inner["fields"])[last] = value
            tree[part]["pairs"] = [list(pair) for pair in pairs.items()]
        header["content"] = json.dumps(tree)
        header["sha256"] = _digest(header["content"], arrays)

    rewritten(path, change)


PRECOMPUTED = SVC(kernel="precomputed", n_components=9, approximation=Nystroem(landmarks="uniform"))


@pytest.mark.parametrize(
    ("name", "where", "value", "message"),
    [
        ("linear", "learnt.certificate_.primal", "x", "certificate"),
        ("linear", "learnt.certificate_.gap", 10**400, "certificate"),
        ("linear", "learnt.certificate_", 1.0, "certificate"),
        ("linear", "learnt.status_", "fine", "status"),
        ("linear", "learnt.history_", [], "history"),
        ("linear", "learnt.classes_", ["no", "yes"], "two classes"),
        ("linear", "learnt.n_features_in_", 4.0, "number of features"),
        ("linear", "learnt.feature_names_in_", {"strings": ["a"] * 5, "dtype": "|O"}, "names of the features"),
        ("linear", "learnt.feature_names_in_", {"strings": [1] * 4, "dtype": "|O"}, "names of the features"),
        ("linear", "learnt.intercept_", np.array([1]), "intercept_ must be an array"),
        ("linear", "learnt.odd_", {"csr": {}, "shape": [1, 1]}, "KeyError"),
        ("linear", "learnt.odd_", {"pairs": [[[], 1]]}, "TypeError: unhashable"),
        ("linear", "learnt.odd_", {"x": 1}, "part of an unknown kind"),
        ("linear", "parameters.n_jobs", "two", "n_jobs must be an integer or None"),
        ("linear", "parameters.n_jobs", 10**9, "n_jobs must be at most 1024"),
        ("linear", "parameters.C", "long" * 5000, "C must be a number, got 'longlong.* …$"),
        ("rbf", "learnt.feature_map_.kernel", True, "its kernel is of an unknown kind"),
        ("rbf", "learnt.feature_map_.points", [], "its landmarks are not points"),
        ("rbf", "learnt.feature_map_.points.squared_norms", np.full(20, np.nan), "norms of the landmarks must be"),
        ("rbf", "learnt.feature_map_.whitening", np.ones((20, 0)), "the number of Nyström features must be"),
        ("rbf", "learnt.feature_map_", {"type": "Linear", "fields": {}}, "feature map is of an unknown kind"),
        ("poly", "learnt.feature_map_.kernel.degree", 10**400, "degree must be finite"),
        ("fourier", "learnt.feature_map_.offsets", np.ones(17, np.float32), "the offsets must be an array"),
        ("fourier", "learnt.feature_map_.n_components", 33.0, "number of Fourier features must be a whole number"),
        ("precomputed", "learnt.feature_map_.kernel.columns", np.ones(9), "columns of the precomputed kernel"),
        ("precomputed", "learnt.feature_map_.kernel.columns", np.full(9, 120), "outside the matrix"),
    ],
)  # fmt: skip
def test_parts_that_are_not_what_they_should_be_are_refused_even_if_the_checksum_agrees(
    tmp_path, name, where, value, message
):
    clf = {**MODELS, "precomputed": PRECOMPUTED}[name]
    path = tmp_path / "m"
    clf.fit(X @ X.T if name == "precomputed" else X, Y).save(path)
    resealed(path, where, value)
    with pytest.raises(ModelError, match=f"m is damaged: .*{message}") as caught:
        primalsvm.load(path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "greedy",
    [
        {"strings": ["1"], "dtype": "<U500000000"},
        {"strings": ["1"], "dtype": "(1000000000,)f8"},
        {"table": {str(k): {"array": "learnt.coef_"} for k in range(9)}},  # each column would be a copy
    ],
)
def test_a_small_file_cannot_ask_for_much_memory(tmp_path, greedy):
    path = tmp_path / "m"
    LinearSVC().fit(X, Y).save(path)
    resealed(path, "learnt.odd_", greedy)
    with pytest.raises(ModelError, match="m is damaged"):
        primalsvm.load(path)


def test_files_changed_at_random_are_refused_by_name_or_predict():
    assert fuzz(600.0, most=600) >= (600, 60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(format=2), "has version 2 of the model format; this library reads version 1"),
        (lambda h, a: h.update(content=h["content"].replace("0.01", "0.02")), "checksum"),
        (lambda h, a: a["learnt.coef_"].__setitem__(0, 1.0), "checksum"),
        (lambda h, a: h.pop("format"), "not a model file of this library"),
        (lambda h, a: h.update(format="long" * 5000), "has version '.{,50}' of the model format"),
        (lambda h, a: h.update(kind="long" * 5000), "holds a '.{,50}', where one of these"),
    ],
)
def test_tampered_files(tmp_path, change, message):
    path = tmp_path / "m"
    LinearSVC(lam=0.01).fit(X, Y).save(path)
    rewritten(path, change)
    with pytest.raises(ModelError, match=message):
        primalsvm.load(path)


@pytest.mark.parametrize("size", [0, 3, 8, 50, 500, -1])
def test_truncated_files(tmp_path, size):
    path = tmp_path / "m"
    LinearSVC().fit(X, Y).save(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match="m is not a model file"):
        primalsvm.load(path)


def test_arrays_that_do_not_agree_are_refused_even_if_the_checksum_does(tmp_path, monkeypatch):
    clf = LinearSVC().fit(X, Y)
    for name, value in (("coef_", np.ones((1, 3))), ("n_features_in_", 10**6), ("intercept_", np.array([np.nan]))):
        kept = getattr(clf, name)
        setattr(clf, name, value)
        clf.save(tmp_path / "m")
        setattr(clf, name, kept)
        with pytest.raises(ModelError, match="m is damaged"):
            primalsvm.load(tmp_path / "m")


def test_other_files(tmp_path):
    save_file({"x": np.ones(3)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelError, match="not a model file of this library"):
        primalsvm.load(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError, match="no file"):
        primalsvm.load(tmp_path / "missing")
