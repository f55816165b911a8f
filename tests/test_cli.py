"""The command line."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import primalsvm
from primalsvm import SVC, LinearSVC, LinearSVR
from primalsvm.cli import app
from primalsvm.persistence import ModelError
from primalsvm.sources.svmlight import write_svmlight
from tests.reference import sparse_noisy

X, Y = sparse_noisy(300, 40)


def call(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_many_classes_and_regressions(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    labels, numbers = np.arange(90) % 3, rows @ np.array([1.0, 2.0, 3.0])
    for name, y in (("classes", labels), ("numbers", numbers)):
        lines = [f"{label} 1:{a:.6f} 2:{b:.6f} 3:{c:.6f}" for label, (a, b, c) in zip(y.tolist(), rows, strict=True)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    call("train", tmp_path / "classes", "-o", tmp_path / "m")
    clf = primalsvm.load(tmp_path / "m")
    read = list(csv.reader(call("predict", tmp_path / "m", tmp_path / "classes").splitlines()))
    assert read[0] == ["class", "0", "1", "2"] and len(read) == 91
    source = primalsvm.open(tmp_path / "classes")
    assert [float(line[0]) for line in read[1:]] == clf.predict(source).tolist()
    error = json.loads(call("evaluate", tmp_path / "m", tmp_path / "classes", "--json"))["test_error"]
    assert error == pytest.approx(1 - clf.score(source))
    LinearSVR().fit(primalsvm.open(tmp_path / "numbers")).save(tmp_path / "r")
    read = list(csv.reader(call("predict", tmp_path / "r", tmp_path / "numbers").splitlines()))
    assert read[0] == ["prediction"]
    np.testing.assert_allclose([float(line[0]) for line in read[1:]], numbers, atol=0.1)
    assert json.loads(call("evaluate", tmp_path / "r", tmp_path / "numbers", "--json"))["test_r2"] > 0.99


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
        (["train", "{rows}", "--features", "3"], "only --features 3"),
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


def run(*arguments, **options):
    """The script itself, as a shell runs it."""
    words = [sys.executable, "-m", "primalsvm", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, **options)


def test_exit_codes_of_the_script(rows_file, tmp_path):
    assert run("version").stdout.strip() == primalsvm.__version__
    wrong = run("train", rows_file, "--no-such-option")
    assert wrong.returncode == 1 and "no-such-option" in wrong.stderr and "Traceback" not in wrong.stderr
    bad = run("train", tmp_path / "missing.svm")
    assert bad.returncode == 1 and bad.stderr.startswith("primalsvm: there is no file") and bad.stdout == ""


def test_standard_input(rows_file, tmp_path):
    text = rows_file.read_text()
    for extra in ([], ["--online"]):
        found = run("train", "-", "--lam", "1e-2", "--json", "-o", tmp_path / "m", *extra, input=text)
        assert found.returncode == 0, found.stderr
        said = json.loads(found.stdout)
        assert said["rows"] == 300 and said["features"] == 40
        predicted = run("predict", tmp_path / "m", "-", input=text)
        assert predicted.stdout == run("predict", tmp_path / "m", rows_file).stdout
    assert said["solver"] == "Pegasos" and 0 < said["progressive_error"] < 0.5
    assert re.search(r"300 rows, progressive error \d+\.\d\d%", found.stderr)


def test_online_takes_columns_and_classes_as_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr("primalsvm.cli.training.STREAM_BYTES", 40)
    path = tmp_path / "rows.svm"
    lines = ["1 1:1"] * 30 + ["-1 2:1", "1 1:1", "-1 5:1", "1 9:1"] * 30
    path.write_text("\n".join(lines) + "\n")
    said = json.loads(call("train", path, "--online", "--lam", "1e-2", "--json", "-o", tmp_path / "m", "--test", path))
    assert said["rows"] == 150 and said["features"] == 9 and said["test_error"] == 0.0
    path.write_text("1 1:1\n" * 5)
    result = CliRunner().invoke(app, ["train", str(path), "--online", "--lam", "1e-2"])
    assert result.exit_code == 1 and "one class only (1)" in result.stderr


def test_tables(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(2000)], "age": rng.normal(size=2000)})
    frame["colour"] = rng.choice(["blue", "green"], 2000)
    frame["income"] = np.where(frame["age"] + (frame["colour"] == "blue") > 0.5, ">50K", "<=50K")
    frame.to_parquet(tmp_path / "people.parquet")
    frame.drop(columns="income").to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "m"
    trained = call(
        "train", tmp_path / "people.parquet", "--target", "income", "--drop", "id", "-o", model,
        "--test", tmp_path / "people.parquet", "-C", "100", "--json",
    )  # fmt: skip
    assert json.loads(trained)["test_error"] < 0.01
    found = pd.read_csv(__import__("io").StringIO(call("predict", model, tmp_path / "new.csv")))
    assert (found["class"] == frame["income"]).mean() > 0.99
    said = json.loads(call("inspect", tmp_path / "people.parquet", "--target", "income", "--drop", "id", "--json"))
    assert said["features"] == 3 and set(said["labels"]) == {">50K", "<=50K"}
    call("convert", tmp_path / "people.parquet", tmp_path / "c", "--target", "income", "--drop", "id")
    assert json.loads(call("evaluate", model, tmp_path / "c", "--json"))["test_rows"] == 2000
    result = CliRunner().invoke(app, ["train", str(tmp_path / "people.parquet"), "--target", "income"])
    assert result.exit_code == 1 and "column 'id' holds more than 1000 categories" in result.stderr


def test_memory(tmp_path, rows_file, monkeypatch):
    monkeypatch.setattr("primalsvm.cli.training._for_rows", lambda limit: 5000.0)
    said = json.loads(call("train", rows_file, "--lam", "1e-2", "--memory", "500MB", "--json"))
    assert said["solver"] == "BlockAscent" and said["relative_gap"] <= 1e-3
    assert [path.name for path in tmp_path.iterdir()] == [rows_file.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--memory", "much"], "'much' is no amount of memory"),
        (["--memory", "1MB"], "--memory 1MB is too little"),
        (["--resume"], "--resume needs --checkpoint"),
        (["--online"], "--online needs --lam"),
        (["--online", "--lam", "1", "--checkpoint", "x"], "--online keeps no rows"),
        (["--online", "--lam", "1", "--kernel", "rbf"], "needs --features"),
        (["-C", "1", "--lam", "1"], "give one of them"),
        (["--memory", "1e999"], "no amount of memory"),
        (["-o", "/no/such/folder/model"], "there is no folder"),
        (["-o", "."], "is a folder"),
        (["--checkpoint", "/no/such/folder/run"], "there is no folder"),
        (["--test", "missing.svm"], "there is no file 'missing.svm'"),
        (["--target", "y"], "svmlight text has the options"),
    ],
)
def test_options_that_do_not_go_together(rows_file, options, message):
    result = CliRunner().invoke(app, ["train", str(rows_file), *options])
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1


LONG = ["--lam", "1e-6", "--tol", "1e-8", "--jobs", "1", "--every", "0.02", "--json"]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    """A training of some seconds, and the model it ends with."""
    folder = tmp_path_factory.mktemp("long")
    write_svmlight(folder / "rows.svm", *sparse_noisy(12_000, 300, seed=9, density=0.1))
    done = run("train", folder / "rows.svm", "-o", folder / "whole", "--checkpoint", folder / "c", *LONG)
    assert done.returncode == 0, done.stderr
    return folder / "rows.svm", (folder / "whole").read_bytes(), json.loads(done.stdout)["seconds_fitting"]


def started(*arguments):
    words = [sys.executable, "-m", "primalsvm", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_killed_at_ten_random_moments_nothing_is_lost(long_run, tmp_path):
    """Each time it goes on from the last checkpoint; in the end the model is the same, bit for bit."""
    rows, expected, seconds = long_run
    model, checkpoint = tmp_path / "model", tmp_path / "run.ckpt"
    words = ["train", rows, "-o", model, "--checkpoint", checkpoint, "--resume", *LONG]
    moments = random.Random(7)
    kills = 0
    while kills < 10:
        process = started(*words)
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.poll() is None and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
            time.sleep(0.005)  # it is still importing
        time.sleep(moments.uniform(0.0, 0.2 * seconds))
        ended = process.poll() is not None
        process.kill()
        _, said = process.communicate()
        if ended:  # too late: from the beginning
            assert process.returncode == 0 and model.read_bytes() == expected, said
            checkpoint.unlink()
            model.unlink()
            continue
        kills += 1
        for left in tmp_path.glob("model*"):
            with suppress(ModelError):  # what can be loaded is whole
                primalsvm.load(left)
                assert left.read_bytes() == expected
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert model.read_bytes() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "run.ckpt"]


def test_an_interrupt_leaves_a_checkpoint(long_run, tmp_path):
    rows, expected, _ = long_run
    checkpoint = tmp_path / "run.ckpt"
    words = ["train", rows, "-o", tmp_path / "model", "--checkpoint", checkpoint, *LONG]
    process = started(*words)
    while not checkpoint.exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and f"--checkpoint {checkpoint} --resume" in said and "Traceback" not in said
    done = run(*words, "--resume")
    assert done.returncode == 0 and (tmp_path / "model").read_bytes() == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_told(rows_file, tmp_path):
    call("train", rows_file, "-o", tmp_path / "m", "--lam", "1e-2")
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "primalsvm", "predict", str(tmp_path / "m"), str(rows_file)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=100)
    assert done.returncode == 1 and "No space left on device" in done.stderr and "Traceback" not in done.stderr


def test_labels_that_are_nearly_the_same_are_told_apart(tmp_path):
    write_svmlight(tmp_path / "rows.svm", X, np.where(Y > 0, 1_000_001, 1_000_002))
    call("train", tmp_path / "rows.svm", "-o", tmp_path / "m", "--lam", "1e-2")
    assert set(call("predict", tmp_path / "m", tmp_path / "rows.svm").split()[1:][0].split(",")[:1]) <= {
        "1000001",
        "1000002",
    }
    assert json.loads(call("inspect", tmp_path / "rows.svm", "--json"))["labels"].keys() == {"1000001", "1000002"}


def test_a_pipe_is_read_once(tmp_path):
    lines = "".join(f"{1 if i % 3 else -1} {1 + i % 3}:1.{i:06d}\n" for i in range(400_000))
    (tmp_path / "rows.svm").write_text(lines)
    words = f"{sys.executable} -m primalsvm train <(cat {tmp_path / 'rows.svm'}) --lam 1e-2 --json"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and json.loads(done.stdout)["rows"] == 400_000, done.stderr


def test_a_slow_stream_is_learnt_as_it_comes(rows_file, tmp_path):
    words = [sys.executable, "-m", "primalsvm", "train", "-", "--online", "--lam", "1e-2", "-o", str(tmp_path / "m")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write(rows_file.read_text())
    process.stdin.flush()
    assert "rows" in process.stderr.readline()  # although the stream has not ended
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    process.stdin = None
    _, said = process.communicate(timeout=60)
    assert primalsvm.load(tmp_path / "m").n_samples_seen_ >= 100, said


def test_outputs_do_not_replace_what_is_read(rows_file, tmp_path):
    call("train", rows_file, "-o", tmp_path / "m", "--lam", "1e-2")
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "m"), str(rows_file), "-o", str(tmp_path / "m")])
    assert result.exit_code == 1 and "is what is read" in result.stderr
    result = CliRunner().invoke(app, ["train", str(rows_file), "--checkpoint", str(rows_file)])
    assert result.exit_code == 1 and "is not a checkpoint: it is left alone" in result.stderr
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "m"), "missing", "-o", str(tmp_path / "s.csv")])
    assert result.exit_code == 1 and "there is no file 'missing'" in result.stderr
    assert not (tmp_path / "s.csv").exists()


def test_predict_does_not_look_at_labels(tmp_path):
    frame = pd.DataFrame({"x": np.r_[np.zeros(50), np.ones(50)], "y": ["a"] * 50 + ["b"] * 50})
    frame.to_csv(tmp_path / "train.csv", index=False)
    frame.assign(y="?").to_csv(tmp_path / "new.csv", index=False)
    call("train", tmp_path / "train.csv", "--target", "y", "-o", tmp_path / "m")
    assert call("predict", tmp_path / "m", tmp_path / "new.csv").count("\n") == 101
    result = CliRunner().invoke(app, ["evaluate", str(tmp_path / "m"), str(tmp_path / "new.csv")])
    assert result.exit_code == 1 and "is none of the classes" in result.stderr
    said = json.loads(call("inspect", tmp_path / "train.csv", "--json"))
    assert list(said["columns"]) == ["x", "y"]


def test_array_files_can_be_tested_and_predicted(tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([Y, X.toarray()]))
    np.save(tmp_path / "new.npy", X.toarray())
    rows, model = tmp_path / "rows.npy", tmp_path / "m"
    said = json.loads(call("train", rows, "--target", "0", "--test", rows, "-o", model, "--json", "--lam", "1e-2"))
    assert json.loads(call("evaluate", model, rows, "--target", "0", "--json"))["test_error"] == said["test_error"]
    assert call("predict", model, tmp_path / "new.npy").count("\n") == 301


def test_inspect_finds_a_damaged_cache(rows_file, tmp_path):
    call("convert", rows_file, tmp_path / "c")
    values = np.lib.format.open_memmap(tmp_path / "c" / "data.npy", mode="r+")
    values[100:200] = 0.0
    values.flush()
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "c")])
    assert result.exit_code == 1 and "its checksum is not what the header says" in result.stderr


def test_help_has_examples():
    assert "primalsvm train docs.svm.gz" in call("train", "--help")
