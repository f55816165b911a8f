"""Every example runs without a warning, draws its picture, and finds what it promises."""

import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from primalsvm.losses.registry import LOSSES
from primalsvm.solvers.registry import SOLVERS, STATES

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem not in ("common", "data"))
TOL = 1e-3  # of all fits in the examples


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run an example as the command line does; what its variables are at its end."""
    pytest.importorskip("matplotlib")

    def run_example(name, data=None):
        monkeypatch.setenv("PRIMALSVM_DATA", data or "")
        monkeypatch.setattr(sys, "argv", [name, "--quick", "--out", str(tmp_path / "pictures")])
        monkeypatch.syspath_prepend(EXAMPLES)
        try:
            found = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        finally:
            for module in ("common", "data"):
                sys.modules.pop(module, None)
        assert [path.name for path in (tmp_path / "pictures").iterdir()] == [f"{name}.png"]
        assert (tmp_path / "pictures" / f"{name}.png").stat().st_size > 10_000
        return found

    return run_example


def text_classification(found):
    assert found["accuracy"] > 0.8
    assert all(proof.relative_gap <= TOL for proof in found["svc"].certificates_)
    assert set(found["model"].predict(found["test"].text[:50])) <= set(found["train"].group)
    assert found["right"][found["picky"]].mean() > 0.9


def house_prices(found):
    assert 0.87 < found["inside"] < 0.93
    np.testing.assert_allclose(found["below"], found["quantiles"], atol=0.04)
    assert all(model[-1].certificate_.relative_gap <= TOL for model in found["models"].values())


def learning_to_rank(found):
    assert found["proof"].relative_gap <= TOL and found["large"].certificate_.relative_gap <= TOL
    assert found["each"]["LinearRanker"].mean() > found["each"]["chance"].mean() + 0.1
    ranker, test = found["model"][-1], found["test"]
    scaled = found["model"][0].transform(test.X)
    assert ranker.ndcg(scaled, test.relevance, qid=test.query) == pytest.approx(found["ours"].mean())


def anomaly_detection(found):
    assert found["areas"]["OneClassSVM"] > 0.97
    assert found["areas"]["OneClassSVM"] == pytest.approx(found["areas"]["scikit-learn's, exact kernel"], abs=0.01)
    missing = found["shares"] - np.array(found["called"])[:, 0]
    # ν is an upper bound; less than one row is lost by rounding νm down, and one that is on the boundary is an inlier
    assert (missing >= -1e-9).all() and (missing < 2.0 / len(found["zeros"])).all()
    assert found["detector"].certificate_.relative_gap <= TOL


def choosing_c(found):
    best, grid = found["rivals"]["LinearSVCCV"], found["rivals"]["GridSearchCV(LinearSVC)"]
    np.testing.assert_allclose(best.scores_.mean(axis=0), grid.cv_results_["mean_test_score"], atol=5e-3)
    assert best.certificate_.relative_gap <= TOL and found["gaps"].max() <= TOL
    assert best.score(found["X_test"], found["y_test"]) > 0.85


def streaming(found):
    late = {name: share[found["last"]].mean() for name, share in found["wrong"].items()}
    assert late["LinearSVC"] < late["LinearSVC, stopped early"] - 0.03
    assert found["online"].n_samples_seen_ == found["m"] and found["online"].certificate_ is None
    assert found["online"].progressive_error_ == pytest.approx(np.nanmean(found["wrong"]["LinearSVC"]), abs=0.005)
    assert found["proof"].relative_gap <= TOL
    assert found["objective"](found["batch"]) == pytest.approx(found["proof"].primal)


def kernels(found):
    ours, exact = found["fits"]["SVC, 64 features"], found["fits"]["scikit-learn's SVC"]
    assert ours.certificate_.relative_gap <= TOL
    assert np.mean(ours.predict(found["moons_test"]) == exact.predict(found["moons_test"])) > 0.98
    assert found["curve"][-1, 1] > found["curve"][0, 1] and found["exact"][1] > found["linear"][1]


def extending(found):
    assert all(model.certificate_.relative_gap <= TOL for model in found["fits"].values())
    exact, mine = found["fits"]["my loss, any solver"], found["mine"]
    assert mine.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=TOL)
    scores = found["ridge"].decision_function(found["X"])
    np.testing.assert_allclose(exact.decision_function(found["X"]), scores, atol=1e-3)
    assert found["difference"] < 0.1
    assert found["again"].solver_ == mine.solver_ and found["again"].loss == "least_squares"


@pytest.fixture(autouse=True)
def _registries_stay_as_they_were():
    before = [dict(registry) for registry in (LOSSES, SOLVERS, STATES)]
    yield
    for registry, entries in zip((LOSSES, SOLVERS, STATES), before, strict=True):
        registry.clear()
        registry.update(entries)


PROMISES = [
    text_classification, house_prices, learning_to_rank, anomaly_detection, choosing_c, streaming, kernels, extending,
]  # fmt: skip


def test_every_example_has_its_promises():
    assert sorted(promise.__name__ for promise in PROMISES) == SCRIPTS


@pytest.mark.parametrize("promise", PROMISES)
def test_stand_ins(run, promise):
    promise(run(promise.__name__))


@pytest.mark.skipif(not os.environ.get("PRIMALSVM_DATA"), reason="needs PRIMALSVM_DATA")
@pytest.mark.parametrize("promise", [text_classification, house_prices, anomaly_detection])
def test_real_data(run, promise, capsys):
    promise(run(promise.__name__, os.environ["PRIMALSVM_DATA"]))
    assert "Data: real" in capsys.readouterr().out
