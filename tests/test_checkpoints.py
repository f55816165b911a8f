"""Checkpoints: a run that was stopped anywhere goes on to the same bits; a damaged or foreign file is refused."""

import errno
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import primalsvm
from primalsvm import SVC, Asset, Checkpoint, DualAscent, LinearSVC, Newton, Pegasos
from primalsvm.checkpoints import CheckpointWriter
from primalsvm.persistence import ModelError
from primalsvm.solvers import ascent, dual_ascent, joint_ascent, stochastic
from primalsvm.solvers.block_ascent import BlockAscent
from primalsvm.solvers.registry import STATES
from primalsvm.solvers.sequence import SolverSequence, Stage
from primalsvm.solvers.watched import Watched
from primalsvm.solvers.working_sets import WorkingSets
from primalsvm.sources.cache import CacheWriter
from tests.fixtures.make_fixtures import cut_short
from tests.reference import noisy, sparse_noisy

DENSE, LABELS = noisy(3000, 6, seed=1)
SPARSE, SPARSE_LABELS = sparse_noisy(3000, 40, seed=2)


class KilledError(Exception):
    """The end of a process, as far as a fit can tell."""


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(ascent, "SWEEP_CHUNK", 700)
    monkeypatch.setattr(dual_ascent, "WORKING_SET_SHARE", 0.5)
    monkeypatch.setattr(stochastic, "STEP_CHUNK", 700)


def killed_after(monkeypatch, n):
    """Let the process end right after its n-th checkpoint."""
    write = CheckpointWriter.__call__
    written = []

    def call(self, snapshot, at_once):
        if len(written) >= n:
            raise KilledError
        written.append(None)
        write(self, snapshot, at_once)

    monkeypatch.setattr(CheckpointWriter, "__call__", call)
    return write, written


def same(a, b):
    w, v = (model.feature_coef_ if isinstance(model, SVC) else model.coef_ for model in (a, b))
    assert w.tobytes() == v.tobytes() and a.intercept_.tobytes() == b.intercept_.tobytes()
    assert a.certificate_ == b.certificate_ and a.status_ is b.status_ and a.n_steps_ == b.n_steps_
    for name in set(a.history_.dtype.names) - {"seconds"}:
        np.testing.assert_array_equal(a.history_[name], b.history_[name])


SEQUENCE = SolverSequence((Stage(DualAscent(), first_mark=1e5, budget=1e6), Stage(Newton())))
RUNS = {
    "dual ascent": LinearSVC(lam=1e-4, solver=DualAscent(), tol=1e-5),
    "dual ascent, float32": LinearSVC(lam=1e-4, solver=DualAscent(shrinking=False), penalize_intercept=True),
    "dual ascent, logistic": LinearSVC(lam=1e-3, solver="dual_ascent", fit_intercept=False, loss="logistic"),
    "Newton": LinearSVC(lam=1e-4, solver=Newton(), tol=1e-5),
    "Pegasos": LinearSVC(lam=1e-2, solver=Pegasos(), tol=1e-2),
    "random of tries": LinearSVC(lam=1e-2, solver=Pegasos(1, 9000, "iid", average="random", tries=3), tol=1.0),
    "distinct": LinearSVC(lam=1e-2, solver=Pegasos(5, 2000, "distinct", average="weighted"), tol=1.0),
    "interior point": LinearSVC(lam=1e-4, solver="interior_point", tol=1e-5),
    "in sequence": LinearSVC(lam=1e-5, solver=SEQUENCE, tol=1e-5),
    "dual ascent, watched": LinearSVC(lam=1e-4, solver=Watched(DualAscent(), (1, 3)), tol=1e-5),
    "ASSET": LinearSVC(lam=1e-2, solver=Asset(n_iter=20_000, sampling="epochs"), tol=1.0),
    "early stopping": LinearSVC(lam=1e-4, solver="dual_ascent", early_stopping=True, tol=1e-6, n_iter_no_change=50),
    "uncertified": LinearSVC(lam=1e-3, solver="dual_ascent", certify=False),
    "features": SVC(lam=1e-3, gamma=0.5, n_components=32, solver="dual_ascent", tol=1e-4),
    "kernelised Pegasos": SVC(lam=1e-2, gamma=0.5, approximation="exact", solver=Pegasos(n_iter=4000), tol=1.0),
    "working sets": SVC(lam=1e-3, gamma=0.5, approximation="exact", solver=WorkingSets(size=128), tol=1e-3),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_killed_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    rows, labels = (SPARSE, SPARSE_LABELS) if name.startswith("dual") else (DENSE, LABELS)
    rows = rows.astype(np.float32) if "float32" in name else rows
    model = RUNS[name].set_params(random_state=0, checkpoint=None)
    whole = model.fit(rows, labels)
    whole = whole.__class__(**whole.get_params()).fit(rows, labels)
    path = tmp_path / "run.ckpt"
    write, written = killed_after(monkeypatch, 10**9)
    model.set_params(checkpoint=Checkpoint(path, every=0)).fit(rows, labels)
    same(model, whole)
    chunks = len(written)
    assert chunks >= 2
    for n in {1, chunks // 3, chunks // 2, chunks - 1} - {0}:
        path.unlink(missing_ok=True)
        monkeypatch.setattr(CheckpointWriter, "__call__", write)
        killed_after(monkeypatch, n)
        with pytest.raises(KilledError):
            model.set_params(checkpoint=Checkpoint(path, every=0)).fit(rows, labels)
        monkeypatch.setattr(CheckpointWriter, "__call__", write)
        model.set_params(checkpoint=Checkpoint(path, every=0, resume=True)).fit(rows, labels)
        same(model, whole)


CLASSES = np.digitize(SPARSE @ np.sin(np.arange(40)), [-0.3, 0.3]) + (np.arange(3000) % 17 == 0)
SEVERAL = {
    "joint ascent": LinearSVC(lam=1e-3, solver="dual_ascent", tol=1e-4),
    "joint ascent, handed over": LinearSVC(lam=1e-3, solver="dual_ascent", tol=1e-6),
    "joint ascent, threads": LinearSVC(lam=1e-3, solver="dual_ascent", tol=1e-4, n_jobs=3),
    "Newton": LinearSVC(lam=1e-4, solver="newton", tol=1e-5),
    "Newton, threads": LinearSVC(lam=1e-4, solver="newton", tol=1e-5, n_jobs=2),
    "Pegasos": LinearSVC(lam=1e-2, solver=Pegasos(n_iter=6000), tol=1.0),
    "early stopping": LinearSVC(lam=1e-4, solver="dual_ascent", early_stopping=True, tol=1e-5, n_iter_no_change=5),
    "auto": SVC(lam=1e-3, gamma=0.5, n_components=16),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_run_of_several_problems_goes_on_to_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(joint_ascent, "SWEEP_CHUNK", 700)
    monkeypatch.setattr(joint_ascent, "MOST_SWEEPS", 12)
    model = SEVERAL[name].set_params(random_state=0, checkpoint=None)
    whole = model.__class__(**model.get_params()).fit(SPARSE, CLASSES)
    path = tmp_path / "run.ckpt"
    write, written = killed_after(monkeypatch, 10**9)
    same(model.set_params(checkpoint=Checkpoint(path, every=0)).fit(SPARSE, CLASSES), whole)
    chunks = len(written)
    assert chunks >= 2 and len(whole.certificates_) == len(np.unique(CLASSES)) > 2
    for n in {1, chunks // 2, chunks - 1} - {0}:
        path.unlink(missing_ok=True)
        monkeypatch.setattr(CheckpointWriter, "__call__", write)
        killed_after(monkeypatch, n)
        with pytest.raises(KilledError):
            model.set_params(checkpoint=Checkpoint(path, every=0)).fit(SPARSE, CLASSES)
        monkeypatch.setattr(CheckpointWriter, "__call__", write)
        model.set_params(checkpoint=Checkpoint(path, every=0, resume=True)).fit(SPARSE, CLASSES)
        same(model, whole)
        assert model.certificates_ == whole.certificates_


@pytest.mark.filterwarnings("ignore:.*stopped after")
@pytest.mark.parametrize("solver", ["dual_ascent", "newton"])
def test_several_problems_that_are_cut_short_after_every_chunk(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(joint_ascent, "SWEEP_CHUNK", 700)
    monkeypatch.setattr(joint_ascent, "MOST_SWEEPS", 4)
    options = {"lam": 1e-3, "solver": solver, "random_state": 0, "tol": 1e-4}
    whole = LinearSVC(**options).fit(SPARSE, CLASSES)
    checkpoint = Checkpoint(tmp_path / "run", every=1000, resume=True)
    cuts = 0
    clf = LinearSVC(**options, checkpoint=checkpoint, max_seconds=1e-9).fit(SPARSE, CLASSES)
    while clf.status_.value == "max_seconds":
        clf.fit(SPARSE, CLASSES)
        cuts += 1
    assert cuts > 10  # the last one may be evaluated early, and found to have converged: the checkpoint is from before
    same(LinearSVC(**options, checkpoint=checkpoint).fit(SPARSE, CLASSES), whole)


@pytest.mark.filterwarnings("ignore:.*stopped after")
def test_pairs_of_classes_that_are_cut_short_after_every_chunk(tmp_path):
    rows, classes = DENSE[:300], np.digitize(DENSE[:300, 0], np.quantile(DENSE[:300, 0], [0.3, 0.6]))
    options = {"gamma": 0.5, "approximation": "exact", "solver": WorkingSets(size=32), "random_state": 0}
    whole = SVC(**options).fit(rows, classes)
    checkpoint = Checkpoint(tmp_path / "run", every=1000, resume=True)
    cuts = 0
    clf = SVC(**options, checkpoint=checkpoint, max_seconds=1e-9).fit(rows, classes)
    while clf.status_.value == "max_seconds":
        clf.fit(rows, classes)
        cuts += 1
    assert cuts > 10
    clf = SVC(**options, checkpoint=checkpoint).fit(rows, classes)
    np.testing.assert_array_equal(clf.dual_coef_, whole.dual_coef_)
    assert clf.certificates_ == whole.certificates_


def test_a_checkpoint_of_another_number_of_problems_is_refused(tmp_path):
    options = {"lam": 1e-4, "solver": "dual_ascent", "random_state": 0, "tol": 1e-4}
    checkpoint = Checkpoint(tmp_path / "run", every=1000, resume=True)
    with pytest.warns(match="stopped after"):
        LinearSVC(**options, checkpoint=checkpoint, max_seconds=1e-9).fit(SPARSE, CLASSES)
    with pytest.raises(ModelError, match="the number of problems was 4, and is 3 now"):
        LinearSVC(**options, checkpoint=checkpoint).fit(SPARSE, np.minimum(CLASSES, 2))


def test_a_run_over_rows_in_files_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    with CacheWriter(tmp_path / "rows", 40) as writer:
        writer.append(SPARSE, SPARSE_LABELS)
    source = primalsvm.open(tmp_path / "rows")
    options = {"lam": 1e-4, "memory": 100_000, "tol": 1e-5, "random_state": 0}
    whole = LinearSVC(**options).fit(source)
    assert isinstance(whole.solver_, BlockAscent)
    path = tmp_path / "run.ckpt"
    write, _ = killed_after(monkeypatch, 25)
    with pytest.raises(KilledError):
        LinearSVC(**options, checkpoint=Checkpoint(path, every=0)).fit(source)
    monkeypatch.setattr(CheckpointWriter, "__call__", write)
    same(LinearSVC(**options, checkpoint=Checkpoint(path, every=0, resume=True)).fit(source), whole)


def test_an_interrupt_leaves_a_checkpoint_that_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    options = {"lam": 1e-4, "solver": "dual_ascent", "tol": 1e-6, "random_state": 0}
    whole = LinearSVC(**options).fit(SPARSE, SPARSE_LABELS)
    advance = DualAscent.advance
    calls = []

    def pressed(self, *args):
        calls.append(None)
        if len(calls) == 8:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, *args)

    monkeypatch.setattr(DualAscent, "advance", pressed)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", every=1000.0, resume=True)
    clf = LinearSVC(**options, checkpoint=checkpoint)
    with pytest.warns(match="interrupted"):
        clf.fit(SPARSE, SPARSE_LABELS)
    assert clf.status_.value == "interrupted" and checkpoint.path.exists()
    same(clf.fit(SPARSE, SPARSE_LABELS), whole)


def test_resuming_without_a_file_begins_anew(tmp_path):
    clf = LinearSVC(lam=1e-3, random_state=0, checkpoint=Checkpoint(tmp_path / "none", resume=True)).fit(DENSE, LABELS)
    assert clf.certificate_.relative_gap < 1e-3


SAME = {"lam": 1e-4, "solver": "dual_ascent", "random_state": 0, "tol": 0.1}


@pytest.fixture(scope="module")
def run_cut_short(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.ckpt"
    with pytest.warns(match="stopped after"):
        LinearSVC(**SAME, max_iter=5, checkpoint=Checkpoint(path, every=1000)).fit(DENSE, LABELS)
    return path.read_bytes()


@pytest.fixture
def checkpoint(tmp_path, run_cut_short):
    (tmp_path / "run.ckpt").write_bytes(run_cut_short)
    return Checkpoint(tmp_path / "run.ckpt", resume=True)


@pytest.mark.parametrize(
    ("options", "rows", "labels", "message"),
    [
        ({"lam": 1e-3}, DENSE, LABELS, "lam was 0.0001, and is 0.001 now"),
        ({"loss": "logistic"}, DENSE, LABELS, "the loss was Hinge"),
        ({"solver": "newton"}, DENSE, LABELS, "the solver was DualAscent"),
        ({"random_state": 1}, DENSE, LABELS, "the seed was"),
        ({}, DENSE[1:], LABELS[1:], "the shape of the rows was"),
        ({}, DENSE[::-1].copy(), LABELS, "the checksum of the rows was"),
        ({}, DENSE, -LABELS, "the checksum of the rows was"),
        ({}, DENSE * np.where(np.arange(6) == 0, -1.0, 1.0), LABELS, "the checksum of the rows was"),
        ({}, DENSE[:, ::-1], LABELS, "the checksum of the rows was"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(checkpoint, options, rows, labels, message):
    with pytest.raises(ModelError, match=f"another run: {message}"):
        LinearSVC(**{**SAME, "checkpoint": checkpoint, **options}).fit(rows, labels)


def test_a_damaged_checkpoint_is_refused(checkpoint):
    clf = LinearSVC(**SAME, checkpoint=checkpoint)
    content = checkpoint.path.read_bytes()
    for damaged in (content[: len(content) // 2], content[:-20] + bytes(255 - b for b in content[-20:]), b"", b"run"):
        checkpoint.path.write_bytes(damaged)
        with pytest.raises(ModelError, match="damaged"):
            clf.fit(DENSE, LABELS)


def test_a_checkpoint_of_an_earlier_version_is_refused_in_words():
    path = Path(__file__).parent / "fixtures" / "version_0_1_0" / "run.checkpoint"
    model, rows, labels = cut_short()
    with pytest.raises(ModelError, match=r"run\.checkpoint was written by another version of this library, .*finish"):
        model.set_params(checkpoint=Checkpoint(path, resume=True)).fit(rows, labels)


def test_the_schema_changes_with_the_states(checkpoint, monkeypatch):
    @dataclass
    class DualState(dual_ascent.DualState):
        more: int = 0

    monkeypatch.setitem(STATES, "DualState", DualState)
    with pytest.raises(ModelError, match="was written by another version"):
        LinearSVC(**SAME, checkpoint=checkpoint).fit(DENSE, LABELS)


def test_a_model_is_no_checkpoint_and_a_checkpoint_no_model(checkpoint, tmp_path):
    with pytest.raises(ModelError, match="holds a 'checkpoint'"):
        primalsvm.load(checkpoint.path)
    LinearSVC(lam=1e-4).fit(DENSE, LABELS).save(tmp_path / "model")
    with pytest.raises(ModelError, match="holds a 'LinearSVC'"):
        LinearSVC(**SAME, checkpoint=Checkpoint(tmp_path / "model", resume=True)).fit(DENSE, LABELS)


def test_a_full_disk_is_told_and_the_last_checkpoint_is_intact(checkpoint, monkeypatch):
    before = checkpoint.path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    clf = LinearSVC(**SAME, checkpoint=Checkpoint(checkpoint.path, every=0))
    with pytest.raises(OSError, match=r"run.ckpt \(No space left on device\); what was there is as it was"):
        clf.fit(DENSE, LABELS)
    assert checkpoint.path.read_bytes() == before
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["run.ckpt"]


def test_the_same_fit_gives_the_same_model_file(tmp_path):
    for name in ("a", "b"):
        LinearSVC(
            lam=1e-4, random_state=0, memory=len(name) + ord(name), checkpoint=Checkpoint(tmp_path / f"{name}.ckpt")
        ).fit(sp.csr_matrix(DENSE), LABELS).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("cut", [{"max_iter": 3}, {"max_seconds": 1e-9}])
def test_a_run_that_was_cut_short_can_go_on(tmp_path, cut):
    options = {"lam": 1e-4, "solver": "dual_ascent", "random_state": 0}
    whole = LinearSVC(**options, tol=1e-6).fit(SPARSE, SPARSE_LABELS)
    checkpoint = Checkpoint(tmp_path / "run", every=1000, resume=True)
    with pytest.warns(match="stopped after"):
        LinearSVC(**options, tol=1e-6, checkpoint=checkpoint, **cut).fit(SPARSE, SPARSE_LABELS)
    same(LinearSVC(**options, tol=1e-6, checkpoint=checkpoint).fit(SPARSE, SPARSE_LABELS), whole)


def test_another_tol_may_be_asked_for_on_the_way(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run", every=0, resume=True)
    LinearSVC(**SAME, checkpoint=checkpoint).fit(SPARSE, SPARSE_LABELS)
    clf = LinearSVC(**{**SAME, "tol": 1e-5}, checkpoint=checkpoint).fit(SPARSE, SPARSE_LABELS)
    assert clf.certificate_.relative_gap <= 1e-5


def test_a_run_over_files_goes_on_with_another_budget(tmp_path, monkeypatch):
    with CacheWriter(tmp_path / "rows", 40) as writer:
        writer.append(SPARSE, SPARSE_LABELS)
    source = primalsvm.open(tmp_path / "rows")
    options = {"lam": 1e-4, "tol": 1e-4, "random_state": 0, "solver": "dual_ascent"}
    whole = LinearSVC(**options, memory=100_000).fit(source)
    write, _ = killed_after(monkeypatch, 10)
    with pytest.raises(KilledError):
        LinearSVC(**options, memory=100_000, checkpoint=Checkpoint(tmp_path / "run", every=0)).fit(source)
    monkeypatch.setattr(CheckpointWriter, "__call__", write)
    again = LinearSVC(**options, memory=200_000, checkpoint=Checkpoint(tmp_path / "run", resume=True)).fit(source)
    same(again, whole)
    SPARSE.data[-1] *= -1
    try:
        with CacheWriter(tmp_path / "rows", 40) as writer:
            writer.append(SPARSE, SPARSE_LABELS)
    finally:
        SPARSE.data[-1] *= -1
    with pytest.raises(ModelError, match="the checksum of the rows was"):
        LinearSVC(**options, memory=100_000, checkpoint=Checkpoint(tmp_path / "run", resume=True)).fit(source)


def test_refusals_of_options(tmp_path):
    with pytest.raises(ValueError, match="checkpoint requires an integer random_state"):
        LinearSVC(checkpoint=Checkpoint(tmp_path / "run")).fit(DENSE, LABELS)
    (tmp_path / "mine").write_text("dear diary")
    with pytest.raises(ModelError, match="is not a checkpoint: it is left alone"):
        LinearSVC(**SAME, checkpoint=Checkpoint(tmp_path / "mine")).fit(DENSE, LABELS)
    with pytest.raises(ValueError, match="every"):
        Checkpoint("run.ckpt", every=-1)
    with pytest.raises(TypeError, match="must be a Checkpoint object"):
        LinearSVC(checkpoint="run.ckpt").fit(DENSE, LABELS)
