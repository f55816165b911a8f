"""Every experiment on a small scale: what it measures is right where that can be told, and its page can be written."""

import importlib
import os

import numpy as np
import pytest
from rich.console import Console

from experiments import asset_contestants, bounds, exact, pegasos_scaling, zhou
from experiments.harness import VERDICTS, Options, Run
from experiments.run import EXPERIMENTS
from primalsvm import Hinge, Problem, theory

WITHOUT_DATA = {"zhou", "bounds"}
NEEDS_DATA = pytest.mark.skipif(not os.environ.get("PRIMALSVM_DATA"), reason="PRIMALSVM_DATA is not set")


@pytest.fixture(scope="module")
def quick():
    """The quick run of an experiment, made once."""
    runs = {}

    def run_of(name):
        if name not in runs:
            runs[name] = Run(importlib.import_module(f"experiments.{name}"), Options(quick=True), folder=None)
            runs[name].measure(Console(quiet=True))
        return runs[name]

    return run_of


def test_all_budgets_leave_five_of_a_hundred_minutes_for_the_rest():
    assert sum(importlib.import_module(f"experiments.{name}").BUDGET for name in EXPERIMENTS) <= 95 * 60


@pytest.mark.parametrize(
    "name", [name if name in WITHOUT_DATA else pytest.param(name, marks=NEEDS_DATA) for name in EXPERIMENTS]
)
def test_quick_run(name, quick, tmp_path):
    run = quick(name)
    assert not run.missing and len(run.found) == len(run.module.cases(Options(quick=True)))
    for table in run.module.tables(run.found):
        assert table.rows and all(len(row) == len(table.columns) for row in table.rows), table.title
    for claim in run.module.claims(run.found):
        assert claim.verdict in VERDICTS
    pictures = run.module.figures(run.found)
    for stem, figure in pictures.items():
        figure.savefig(tmp_path / stem)
        for axes in figure.axes:
            assert (axes.get_xlabel() and axes.get_ylabel()) or not axes.get_visible()


@pytest.mark.parametrize(
    "name", [name if name in WITHOUT_DATA else pytest.param(name, marks=NEEDS_DATA) for name in EXPERIMENTS]
)
def test_whatever_is_missing_a_page_can_be_written(name, quick):
    module, found = quick(name).module, quick(name).found
    names = list(found)
    partial = [{key: found[key] for key in names[:k]} for k in range(1, len(names))]
    partial += [{key: found[key] for key in names if key != left_out} for left_out in names]
    for k, some in enumerate(partial):
        list(module.tables(some))
        module.claims(some)
        if k % max(1, len(partial) // 8) == 0:
            module.figures(some)


def test_zhou_a_tenth_of_the_labels_is_flipped():
    X, y = zhou.gaussian(20_000, seed=3)
    truth = np.random.default_rng(12345).normal(size=zhou.D)
    assert np.mean(np.sign(X @ truth) != y) == pytest.approx(zhou.NOISE, abs=0.01)
    assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-12


def test_zhou_more_steps_less_error(quick):
    found = {one["rows"]: np.array(one["found"]) for one in quick("zhou").found.values()}
    for rows in found.values():
        assert rows[-1, 0] < rows[0, 0] and rows[-1, 1] < rows[0, 1]
        assert all(rows[k, 1] <= zhou.bound(T) for k, T in enumerate(zhou.QUICK.steps))
    assert found[5_000][-1, 1] < found[100][-1, 1]


def test_bounds_are_not_violated_more_often_than_they_say(quick):
    for name, one in quick("bounds").found.items():
        assert one["violations"] <= one["allowed"], name
        assert one["looseness"] > 1, name


def test_bounds_violations_are_seen():
    """The counting itself: two of four values above the bound; a mean above it."""
    assert bounds.summary([1.0, 2.0, 3.0, 4.0], 2.5, in_mean=False)["violations"] == 0.5
    assert bounds.summary([1.0, 2.0, 3.0, 4.0], 2.4, in_mean=True)["violations"] == 1.0
    assert bounds.summary([1.0, 2.0, 3.0, 4.0], 2.6, in_mean=True)["violations"] == 0.0


def test_bounds_regret_by_hand_is_below_theorem_1():
    found = bounds.check_regret(0.1, 200, True, seeds=3)
    assert found["bound"] == theory.theorem_1(0.1, 200, 1.0, True) > found["largest"]


@NEEDS_DATA
def test_race_no_one_is_below_the_optimum(quick):
    for name, runs in quick("pegasos_race").found.items():
        assert all(run["excess"] >= -1e-9 for run in runs), name
        assert min(run["excess"] for run in runs) < 0.5, name


@NEEDS_DATA
def test_scaling_more_accuracy_more_steps(quick):
    found = quick("pegasos_scaling").found
    assert found["ε | 0.03"]["steps"] > found["ε | 0.1"]["steps"]
    assert found["λ | 0.001"]["steps"] > found["λ | 0.01"]["steps"]
    assert pegasos_scaling.exponent(np.array([1.0, 10.0, 100.0]), np.array([3.0, 0.3, 0.03])) == pytest.approx(-1.0)


@NEEDS_DATA
def test_variants_more_rows_less_excess(quick):
    found = quick("pegasos_variants").found
    for variant in ("no projection", "projection"):
        assert found[f"projection | {variant} | 1"]["excess"] < found[f"projection | {variant} | 0.1"]["excess"]
    assert found["rows per step | k = m | 100"]["steps"] == 100


@NEEDS_DATA
def test_dimension_more_landmarks_less_error(quick):
    found = quick("asset_dimension").found
    for features in ("Nyström, uniform", "Fourier, orthogonal"):
        few, many = (found[f"ADULT | {features} | {s}"] for s in (4, 64))
        assert many["errors"][0] < few["errors"][0] and max(few["gap"], many["gap"]) <= 1e-3


@NEEDS_DATA
@pytest.mark.parametrize("star", [False, True])
def test_speed_the_papers_rule_stops_at_the_reference(star):
    one = exact.cut("ADULT", True)
    _, Z, Z_test = asset_contestants.features(one, 32, seed=0)
    problem = Problem(Hinge(), 1e-4)
    arguments = (problem, Z, one, Z_test, star)
    at_once = asset_contestants.asset_by_the_papers_rule(*arguments, reference=1.0, epochs=3, seed=0)
    assert at_once["epochs"] == 0.1 and at_once["reached"]
    never = asset_contestants.asset_by_the_papers_rule(*arguments, reference=-1.0, epochs=3, seed=0)
    assert never["epochs"] == 3 and not never["reached"] and never["best"] < 0.3


@NEEDS_DATA
def test_parameters_weak_regularisation_is_slow(quick):
    found = quick("asset_parameters").found
    assert found["ADULT | 1e-06 | weak"]["ASSET*"] > found["ADULT | 0.001 | weak"]["ASSET*"] > 0


@NEEDS_DATA
def test_online_the_error_falls(quick):
    for name, one in quick("asset_online").found.items():
        if name.startswith("256"):
            assert one["curve"][-1][1] < one["curve"][0][1] < 0.5 and len(one["last"]) == 10
