"""The quick form of the benchmark of defaults, and the judge of its contestants against plain NumPy."""

import gc
import json

import numpy as np
import pytest
from rich.console import Console

from benchmarks import defaults
from benchmarks.common import Options
from benchmarks.defaults_data import DATASETS

TINY = ("two_rows", "wine", "diabetes", "centred_cloud")


@pytest.fixture(scope="module")
def results():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(defaults, "QUICK", TINY)
        gc.freeze()  # what pytest has loaded: the clock collects garbage before each fit, half of the time
        found = defaults.measure(Options(quick=True, lambdas=(), threads=(1,), repeats=1), Console(quiet=True))
    gc.unfreeze()
    return found


def test_every_cell_is_certified_or_has_an_optimum_of_zero(results):
    cells = results["cells"]
    assert [(cell["data"], cell["value"]) for cell in cells] == [
        (name, value) for name in TINY for value in ((0.1, 0.5) if name == "centred_cloud" else (1.0, 1e4))
    ]
    assert all(cell["auto"]["zero"] == (cell["data"] == "centred_cloud") for cell in cells)
    assert all(cell["auto"]["zero"] or cell["auto"]["gap"] <= 1e-3 for cell in cells)
    assert all(cell["auto"]["solved"] for cell in cells)


def test_solvers_alone_and_scikit_learn_are_there(results):
    for cell in results["cells"]:
        assert {"dual_ascent", "newton"} <= set(cell["own"]) and cell["own"]["newton"]["solved"]
        assert bool(cell["peer"]) == (cell["data"] != "centred_cloud")
    assert defaults.counted_peer(results["cells"][0])["gap"] <= 1e-3  # of two rows


def test_results_survive_a_file_and_become_tables_and_promises(results):
    kept = json.loads(json.dumps(results))
    assert kept == results
    every = list(defaults.tables(kept))
    assert [row[0] for row in every[0].rows] == list(TINY)
    assert sum(len(table.rows) for table in every[1:]) == len(results["cells"])
    assert all(len(row) == len(table.columns) for table in every for row in table.rows)
    assert len(defaults.promises(kept)) == 5


def cell(auto, newton, theirs=None, solved=True):
    """A cell with these seconds."""
    return {
        "parameter": "C",
        "value": 1.0,
        "auto": {"seconds": [auto], "gap": 1e-4 if solved else 0.5, "solved": solved, "zero": False},
        "own": {"newton": {"seconds": [newton], "gap": 1e-4, "solved": True}},
        "peer": [] if theirs is None else [{"tol": 0.1, "seconds": [theirs], "gap": 1e-4}],
    }


@pytest.mark.parametrize(
    ("odd", "broken"),
    [
        ([], []),
        ([cell(1.0, 1.0, solved=False)] * 3, []),
        ([cell(1.0, 1.0, solved=False)] * 4, [0]),
        ([cell(1.3, 1.0)] * 100, [1]),
        ([cell(0.04, 0.01)], []),  # 4 ×, but 30 ms
        ([cell(0.5, 0.1)], [2]),
        ([cell(1.0, 1.0, 0.96)], []),
        ([cell(1.0, 1.0, 0.9)], [3]),
    ],
)
def test_promises_are_judged(odd, broken):
    cells = [one | {"data": f"made_up_{k}"} for k, one in enumerate([*odd, *[cell(1.0, 1.0)] * 20])]
    found = defaults.promises({"seconds": 60.0, "cells": cells})
    assert [k for k, promise in enumerate(found) if not promise.held] == broken


def least(P, breaks):
    """The least of a piecewise linear function, given where it breaks."""
    return min(map(P, breaks))


def test_peers_are_judged_by_the_objective_with_the_best_intercept():
    rng = np.random.default_rng(0)
    X, y = DATASETS["wine"].load()
    W = rng.normal(size=(3, X.shape[1])) / 100
    found = defaults.values_at(defaults.Task("wine", "LinearSVC", X, y), 2.0, W)
    for k, w in enumerate(W):
        signs, scores, lam = np.where(y == k, 1, -1), X @ w, 1 / (2.0 * len(y))
        expected = least(
            lambda b, s=signs, p=scores: np.maximum(0, 1 - s * (p + b)).mean(), signs - scores
        ) + lam / 2 * (w @ w)
        assert found[k] == pytest.approx(expected, rel=1e-9)

    X, y = DATASETS["diabetes"].load()
    w = rng.normal(size=X.shape[1])
    rest = y - X @ w
    expected = np.abs(rest - np.median(rest)).mean() + (w @ w) / (2 * 3.0 * len(y))
    assert defaults.values_at(defaults.Task("d", "LinearSVR", X, y), 3.0, w[None]) == pytest.approx([expected])

    nu, m = 0.2, 200
    rows, w = X[:m] + 1.0, rng.random(X.shape[1])
    scores = rows @ w
    expected = least(lambda b: np.maximum(0, -(scores + b)).mean() + nu * b, -scores) + nu / 2 * (w @ w)
    task = defaults.Task("n", "LinearOneClassSVM", rows, None)
    assert defaults.values_at(task, nu, w[None] * nu * m) == pytest.approx([expected])  # its α are up to 1, not 1/(νm)


def test_a_peer_that_takes_too_long_is_ended_and_starts_again():
    task = defaults.Task("wine", "LinearSVC", *DATASETS["wine"].load())
    peer = defaults.Peer(defaults.ENDLESS)
    try:
        assert peer.fit(task, 1e4, 1e-12, 0.1) is None
        seconds, coef = peer.fit(task, 1e4, 1e-12, 5.0, max_iter=10)
    finally:
        peer.end()
    assert 0 < seconds < 5 and coef.shape == (3, 13)


def test_data_sets_are_named_with_reasons():
    assert len(DATASETS) >= 20 and all(found.why for found in DATASETS.values())
    assert set(defaults.QUICK) <= {name for name, found in DATASETS.items() if not found.needs_data}


def test_data_that_are_not_at_hand_are_named(monkeypatch):
    monkeypatch.delenv("PRIMALSVM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PRIMALSVM_DATA"):
        DATASETS["sector"].load()
