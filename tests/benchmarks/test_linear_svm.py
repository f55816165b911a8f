"""benchopt runs the benchmark from another folder; its scores are checked against the weights it keeps."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from primalsvm import Hinge, Problem, solve
from primalsvm.sources.generated import text_like

results = pytest.importorskip("benchopt.results", reason="benchopt is not installed")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "linear_svm"
SOLVERS = ("primalsvm[threads=1]", "Pegasos", "SGDClassifier")
LAMBDAS = (1e-4, 1e-5, 1e-6)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What one run prints, and its results."""
    folder = tmp_path_factory.mktemp("benchopt")
    words = [sys.executable, "-m", "benchopt", "run", BENCHMARK, "--max-runs", "2", "--timeout", "5"]
    words += ["-d", "simulated[rows=300,features=100,per_row=10]", "-d", "a9a"]
    words += [word for name in SOLVERS for word in ("-s", name)]
    words += ["--no-cache", "--no-plot", "--output", folder / "results.parquet"]
    without_data = {name: value for name, value in os.environ.items() if name != "PRIMALSVM_DATA"}
    done = subprocess.run(words, cwd=folder, env=without_data, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, results.read_results(folder / "results.parquet")


def test_each_curve_begins_at_zero_weights(run):
    curves = run[1].groupby(["solver_name", "p_obj_lam"])
    assert set(curves.groups) == {(name, lam) for name in SOLVERS for lam in LAMBDAS}
    assert all(curve.objective_value.iloc[0] == 1.0 and len(curve) == 3 for _, curve in curves)


def test_scores_are_those_of_the_weights(run):
    X, y, X_test, y_test = text_like(300, 100, 10)
    last = run[1].dropna(subset="final_results")
    assert len(last) == len(SOLVERS) * len(LAMBDAS)
    for row in last.itertuples():
        w = row.final_results["w"]
        value = row.p_obj_lam / 2 * np.sum(w**2) + np.mean([max(0.0, 1.0 - p) for p in y * (X.astype(float) @ w)])
        assert row.objective_value == pytest.approx(value, rel=1e-12)
        assert row.objective_test_error == np.mean(np.sign(X_test @ w) != y_test)


@pytest.mark.parametrize("lam", LAMBDAS)
def test_ours_reaches_the_certified_optimum(run, lam):
    X, y, *_ = text_like(300, 100, 10)
    certificate = solve(Problem(Hinge(), lam), X, y, tol=1e-9).certificate
    found = run[1].query("p_obj_lam == @lam")
    assert found.objective_value.min() >= certificate.dual * (1 - 1e-12)
    ours = found[found.solver_name == SOLVERS[0]]
    assert ours.objective_value.min() <= certificate.dual * (1 + 1e-8)


def test_data_that_are_not_there_are_skipped(run):
    assert "set PRIMALSVM_DATA to a folder that holds it" in run[0]
    assert not run[1].dataset_name.str.startswith("a9a").any()
