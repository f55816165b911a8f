"""Runs keep every case, go on where they stopped, and keep to their budget."""

import importlib
import json
import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from benchmarks.common import Table
from experiments import report
from experiments.harness import VERDICTS, Case, Claim, Options, Run, Statement, compact, judged, verdict
from experiments.run import EXPERIMENTS
from primalsvm import Hinge, Pegasos, Problem, solve

QUIET = Console(quiet=True)


class StopError(Exception):
    pass


def experiment(measured, budget=60.0, stops_at=None, source=__file__):
    """Three cases that write down when they are measured."""

    def case(name):
        def measure():
            if name == stops_at:
                raise StopError
            measured.append(name)
            return {"value": len(measured)}

        return Case(name, measure)

    return SimpleNamespace(
        __name__="experiments.tried",
        __file__=source,
        TITLE="Tried",
        ABOUT="About it.",
        BUDGET=budget,
        cases=lambda options: [case(name) for name in ("first", "second", "third")],
        tables=lambda found: [Table("Values", ("case", "value"), [(n, f"{one['value']}") for n, one in found.items()])],
        claims=lambda found: [Claim("A paper", "it is so", verdict(len(found) == 3), f"{len(found)} cases")],
        figures=lambda found: {},
    )


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    measured = []
    with pytest.raises(StopError):
        Run(experiment(measured, stops_at="third"), Options(), tmp_path).measure(QUIET)
    assert measured == ["first", "second"]
    again = Run(experiment(measured), Options(), tmp_path)
    found = again.measure(QUIET)
    assert measured == ["first", "second", "third"]
    assert found == {"first": {"value": 1}, "second": {"value": 2}, "third": {"value": 3}}
    Run(experiment(measured), Options(), tmp_path).measure(QUIET)
    assert len(measured) == 3  # until the whole run is over and forgotten
    again.forget()
    Run(experiment(measured), Options(), tmp_path).measure(QUIET)
    assert len(measured) == 6


def test_cases_can_be_added_to_those_of_an_earlier_run(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    measured = []
    made = {"date": "2026-01-01", "commit": "abc", "command": "before", "packages": {}}
    earlier = {"made": made, "seconds": {"first": 1.0, "gone": 9.0}, "found": {"first": {"value": 7}, "gone": {}}}
    run = Run(experiment(measured), Options(), tmp_path, earlier)
    assert run.measure(QUIET) == {"first": {"value": 7}, "second": {"value": 1}, "third": {"value": 2}}
    assert measured == ["second", "third"] and run.spent < 2.0
    report.keep(run, {**made, "commit": "def", "date": "2026-02-02"})
    kept = json.loads((tmp_path / "tried.json").read_text())
    assert kept["earlier"]["commit"] == "abc" and kept["added"] == ["second", "third"]


def test_numbers_of_other_code_are_not_gone_on_with(tmp_path):
    measured = []
    source = tmp_path / "tried.py"
    source.write_text("one")
    Run(experiment(measured, source=str(source)), Options(), tmp_path).measure(QUIET)
    source.write_text("another")
    Run(experiment(measured, source=str(source)), Options(), tmp_path).measure(QUIET)
    assert len(measured) == 6


def test_quick_runs_are_not_gone_on_with_by_full_ones(tmp_path):
    measured = []
    Run(experiment(measured), Options(quick=True), tmp_path).measure(QUIET)
    Run(experiment(measured), Options(), tmp_path).measure(QUIET)
    assert len(measured) == 6


def test_the_budget_is_kept(tmp_path):
    module = experiment([], budget=0.2)
    module.cases = lambda options: [
        Case("short", lambda: 1),
        Case("long", lambda: time.sleep(30)),
        Case("never begun", lambda: 2),
    ]
    run = Run(module, Options(), tmp_path)
    begin = time.monotonic()
    run.measure(QUIET)
    assert time.monotonic() - begin < 5
    assert run.found == {"short": 1} and run.missing == ["long", "never begun"]
    resumed = Run(module, Options(), tmp_path)
    resumed.measure(QUIET)  # the seconds before count: nothing is begun again
    assert resumed.found == {"short": 1} and resumed.missing == ["long", "never begun"]


def test_ctrl_c_stops_the_run_and_is_not_measured(tmp_path):
    """A solver would return its best point so far."""
    X, y = np.eye(50), np.where(np.arange(50) % 2, 1.0, -1.0)

    def interrupted():
        os.kill(os.getpid(), signal.SIGINT)
        solver = Pegasos(n_iter=10**9)
        return float(solve(Problem(Hinge(), 0.1), X, y, solver=solver, certify=False).b)

    module = experiment([])
    module.cases = lambda options: [Case("first", lambda: 1), Case("interrupted", interrupted)]
    run = Run(module, Options(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.measure(QUIET)
    assert Run(module, Options(), tmp_path).found == {"first": 1}


def test_a_claim_that_rests_on_a_missing_case_is_not_judged():
    statements = [
        Statement("A paper", "this", ["there"], lambda found: (verdict(True), f"{found['there']}")),
        Statement("A paper", "that", ["there", "gone"], lambda found: (verdict(True), f"{found['gone']}")),
    ]
    found = judged(statements, {"there": 3})
    assert [(claim.verdict, claim.figures) for claim in found] == [
        ("reproduced", "3"),
        ("not measured", "missing: gone"),
    ]


def test_pages_say_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    module = experiment([])
    run = Run(module, Options(), None)
    run.measure(QUIET)
    made = {
        "command": "make experiments", "date": "today", "commit": "abc", "cpu": "a cpu", "cores": 2, "memory_gib": 4,
        "system": "Linux", "python": "3", "packages": {"numpy": "2"},
    }  # fmt: skip
    report.keep(run, made)
    report.write_pages({"tried": module}, tmp_path)
    page = (tmp_path / "tried.md").read_text()
    assert "| third | 3 |" in page and "reproduced" in page and "at commit abc" in page
    overview = (tmp_path / "README.md").read_text()
    assert "1 reproduced, 0 beaten, 0 not reproduced" in overview and "[tried](tried.md)" in overview
    assert json.loads((tmp_path / "results" / "tried.json").read_text())["found"]["first"] == {"value": 1}


def test_the_pages_are_those_of_the_numbers_that_were_kept(tmp_path):
    """No number is written by hand, and no page is older than what it shows."""
    modules = {name: importlib.import_module(f"experiments.{name}") for name in EXPERIMENTS}
    assert all(report.stored(name) is not None for name in EXPERIMENTS)
    report.write_pages(modules, tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in report.PAGES.iterdir())
    for name in written:
        if name.endswith(".md"):
            assert (tmp_path / name).read_text() == (report.PAGES / name).read_text(), name


def test_verdicts():
    assert {verdict(True), verdict(False), verdict(True, beaten=True)} <= set(VERDICTS)
    assert [compact(value) for value in (0.00123, 3.44, 209.7, 15_230)] == ["0.0012", "3.4", "210", "15,000"]
