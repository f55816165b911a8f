"""Files that earlier versions have written are read as before; `tests.fixtures.make_fixtures` tells how they were."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import primalsvm
from primalsvm import Checkpoint, LinearRanker, LinearSVC
from primalsvm.persistence import ModelError
from tests.fixtures.make_fixtures import BINARY, MODELS, QUERIES, SPARSE, cut_short

FOLDER = Path(__file__).parents[1] / "fixtures" / "version_0_1_0"
EXPECTED = np.load(FOLDER / "expected.npz")
X = EXPECTED["X"]


UNITS = {"one_class_svm.scores": 0.2 * len(X)}  # ν m: that version's one-class scores were divided by it


def expected(key):
    """What that version computed, in today's units."""
    return UNITS[key] * EXPECTED[key] if key in UNITS else EXPECTED[key]


def outputs(model, rows):
    """Scores, predictions and probabilities."""
    found = {"scores": getattr(model, "decision_function", model.predict)(rows), "predictions": model.predict(rows)}
    return found | ({"probabilities": model.predict_proba(rows)} if hasattr(model, "predict_proba") else {})


def close(one, two):
    """Whether two arrays are equal: classes exactly, numbers up to the rounding of another BLAS."""
    return np.allclose(one, two, rtol=1e-9, atol=1e-12) if one.dtype.kind == "f" else np.array_equal(one, two)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_says_what_it_said(name, tmp_path):
    written, y = MODELS[name]
    rows = X + 3.0 if y is None else X
    model = primalsvm.load(FOLDER / f"{name}.safetensors")
    assert type(model) is type(written) and repr(model.get_params()) == repr(written.get_params())
    found = outputs(model, rows)
    assert len(found) == sum(key.startswith(f"{name}.") for key in EXPECTED)
    assert all(close(found[key], expected(f"{name}.{key}")) for key in found)
    model.save(tmp_path / "again")
    again = outputs(primalsvm.load(tmp_path / "again"), rows)
    assert all(np.array_equal(found[key], again[key]) for key in found)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_fit_gives_the_same_model_now(name):
    written, y = MODELS[name]
    rows = X + 3.0 if y is None else X
    given = {"qid": QUERIES} if isinstance(written, LinearRanker) else {}
    now = {"solver": "pegasos"} if name == "svc_exact" else {}  # that version's only solver of the exact problem
    found = outputs(type(written)(**written.get_params(deep=False) | now).fit(rows, y, **given), rows)
    for key, values in found.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, expected(f"{name}.{key}"), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("memory", [None, 500.0])
def test_caches(memory):
    sparse, dense = (primalsvm.open(FOLDER / f"{kind}.cache") for kind in ("sparse", "dense"))
    np.testing.assert_array_equal(sparse.to_arrays()[0].toarray(), SPARSE.toarray())
    np.testing.assert_array_equal(dense.to_arrays()[0], X)
    np.testing.assert_array_equal(dense.to_arrays()[1], BINARY)
    for source, rows in ((sparse, SPARSE), (dense, X)):
        model = LinearSVC(memory=memory, random_state=0).fit(source)
        expected = LinearSVC(random_state=0).fit(rows, BINARY == "yes")
        assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-3)
    ranker = LinearRanker().fit(sparse)
    np.testing.assert_allclose(ranker.coef_, LinearRanker().fit(SPARSE, BINARY == "yes", qid=QUERIES).coef_)


def test_a_checkpoint_of_other_states_is_refused_by_name(tmp_path):
    path = tmp_path / "run.checkpoint"
    shutil.copy(FOLDER / path.name, path)
    model, rows, labels = cut_short()
    with pytest.raises(ModelError, match=r"run.checkpoint was written by another version.*begin it anew"):
        model.set_params(checkpoint=Checkpoint(path, resume=True)).fit(rows, labels)
    assert path.read_bytes() == (FOLDER / path.name).read_bytes()
