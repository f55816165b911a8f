"""The command line."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import primalsvm
from primalsvm import SVC, LinearSVC
from primalsvm.cli import app
from tests.reference import sparse_noisy

X, Y = sparse_noisy(300, 40)


def call(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_version():
    assert CliRunner().invoke(app, ["version"]).output.strip() == primalsvm.__version__


def test_demo_prints_the_certificate_and_draws_the_convergence(tmp_path):
    picture = tmp_path / "demo.png"
    result = CliRunner().invoke(app, ["demo", "--rows", "5000", "--lam", "1e-3", "--output", str(picture)])
    assert result.exit_code == 0, result.output
    assert "relative gap" in result.output and "converged" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", [["demo", "--rows", "-1"], ["nonsense"]])
def test_a_wrong_call_is_refused(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize("kernel", [[], ["--kernel", "rbf", "--gamma", "0.1", "--components", "30"]])
def test_train_evaluate_predict(tmp_path, rows_file, kernel):
    model, scores = tmp_path / "m.safetensors", tmp_path / "scores.csv"
    said = json.loads(call("train", rows_file, "-o", model, "--lam", "1e-2", "--test", rows_file, "--json", *kernel))
    assert said["rows"] == 300 and said["relative_gap"] <= 1e-3 and said["status"] == "converged"
    clf = primalsvm.load(model)
    assert isinstance(clf, SVC if kernel else LinearSVC) and clf.lam == 1e-2
    wrong = float(np.mean(clf.predict(X) != Y))
    assert json.loads(call("evaluate", model, rows_file, "--json")) == {"test_rows": 300, "test_error": wrong}
    assert said["test_error"] == wrong
    call("predict", model, rows_file, "-o", scores)
    with scores.open() as file:
        found = list(csv.DictReader(file))
    np.testing.assert_array_equal([float(row["score"]) for row in found], clf.decision_function(X))
    np.testing.assert_array_equal([float(row["class"]) for row in found], clf.predict(X))
    assert call("predict", model, rows_file) == scores.read_text()


def test_convert_and_inspect(tmp_path, rows_file):
    call("convert", rows_file, tmp_path / "rows.cache")
    for path in (rows_file, tmp_path / "rows.cache"):
        said = json.loads(call("inspect", path, "--json"))
        assert said["rows"] == 300 and said["entries"] == X.nnz and sum(said["labels"].values()) == 300
    assert "300" in call("inspect", rows_file)
    assert "converged" in call("train", tmp_path / "rows.cache", "--lam", "0.1", "--no-intercept", "--balanced")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "missing.svm"], "there is no file 'missing.svm'"),
        (["train", "{bad}"], "line 2, column 3: expected index:value"),
        (["train", "{rows}", "--gamma", "1"], "say which with --kernel"),
        (["train", "{rows}", "--lam", "-1"], "lam"),
        (["train", "{rows}", "--features", "3"], "only n_features=3"),
        (["evaluate", "{rows}", "{rows}"], "is not a model file"),
        (["convert", "{folder}", "x"], "cache already"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path, rows_file, arguments, message):
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:1\n1 x:1\n")
    words = [one.format(bad=bad, rows=rows_file, folder=tmp_path) for one in arguments]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_help_has_examples():
    assert "primalsvm train docs.svm.gz" in call("train", "--help")
