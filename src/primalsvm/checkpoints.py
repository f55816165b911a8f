"""Checkpoints: a run's state in a file, every so many seconds, from which it goes on to the same bits.

The file has the format of model files (`persistence`): it is there whole or as it was, and a checksum tells damage. It
also tells which run it is of: the problem, the solver, the rows. When to write is decided by the clock, what is written
is not. The checksum tells damage, not malice: a checkpoint is for whoever has written it.
"""

import os
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.objective import ALONE, Evaluation, Problem
from primalsvm.options import check_number
from primalsvm.persistence import ModelError, kind_of, read_model, write_model
from primalsvm.rows import CSR, Batch, Dense, Distant, Gram, Mixed, Rows, Vector, Weights, shape
from primalsvm.solvers.ascent import Copies, DualState, Part
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.drive import Snapshot, Stops
from primalsvm.solvers.interior_point import InteriorState
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import NewtonState, View
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Run, Solver
from primalsvm.solvers.proximal import Proximal
from primalsvm.solvers.sampling import Sampler
from primalsvm.solvers.sequence import Mark, SequenceState
from primalsvm.solvers.steps import Iterate, Settings, Tail
from primalsvm.solvers.stochastic import Bucket, StochasticState

KIND = "checkpoint"
PARTS = (
    *(Snapshot, Evaluation),
    *(Batch, CSR, Dense, Gram, Mixed, Weights),
    *(DualState, Copies, Part),
    *(NewtonState, View, Proximal, Curvature),
    *(InteriorState, SequenceState, Mark, Run),
    *(StochasticState, Sampler, Settings, Iterate, Tail, Bucket),
)
KNOWN: dict[str, type] = {part.__name__: part for part in PARTS}


@dataclass(frozen=True)
class Checkpoint:
    """Keep a run's state in a file, so that it can go on after the machine, or somebody, has stopped it.

    Parameters
    ----------
    path : the file
    every : seconds between two checkpoints
    resume : go on from the file if it is there

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from primalsvm import LinearSVC
    >>> X, y = np.array([[2.0], [1.0], [-1.0], [-3.0]]), [1, 1, 0, 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf = LinearSVC(random_state=0, checkpoint=Checkpoint(Path(folder) / "run", resume=True)).fit(X, y)
    """

    path: str | Path
    every: float = 60.0
    resume: bool = False

    def __post_init__(self) -> None:
        check_number("every", self.every, 0.0)


class Keeper:
    """What `drive` hands its snapshots to.

    Parameters
    ----------
    checkpoint : where, and how often
    run : what the run is of, from `identity`
    library : the version of the library that writes
    """

    def __init__(self, checkpoint: Checkpoint, run: dict[str, str], library: str) -> None:
        self.path = Path(checkpoint.path)
        self.checkpoint, self.run, self.library = checkpoint, run, library
        self.last = time.monotonic()
        if self.path.exists() and kind_of(self.path) != KIND and not checkpoint.resume:
            raise ModelError(f"{self.path} is there already, and is no checkpoint: it is left alone")
        if not os.access(self.path.parent, os.W_OK):
            raise OSError(f"there is no folder {str(self.path.parent)!r} to write the checkpoint to")

    def resumed(self) -> Snapshot | None:
        """Where to go on from; None: from the beginning.

        Raises
        ------
        ModelError
            If the file is damaged, or of another run.
        """
        if not (self.checkpoint.resume and self.path.exists()):
            return None
        content = read_model(self.path, (KIND,), KNOWN).content
        before, snapshot = content.get("run"), content.get("snapshot")
        if not isinstance(before, dict) or not isinstance(snapshot, Snapshot):
            raise ModelError(f"{self.path} is damaged: it holds no run")
        for name, now in self.run.items():
            if before.get(name) != now:
                raise ModelError(f"{self.path} is of another run: {name} was {before.get(name)}, and is {now} now")
        return snapshot

    def __call__(self, snapshot: Snapshot, at_once: bool) -> None:
        """Write the snapshot, if it is time."""
        if at_once or time.monotonic() - self.last >= self.checkpoint.every:
            write_model(self.path, KIND, {"run": self.run, "snapshot": snapshot}, KNOWN, self.library)
            self.last = time.monotonic()


def identity(problem: Problem, batch: Batch, solver: Solver, stops: Stops, seed: int) -> dict[str, str]:
    """What has to be the same for a run to go on: all that decides its steps, but for the number of threads."""
    m, d = shape(batch.rows)
    rows = (checksum(batch.rows), _crc(batch.y, batch.weight.values))
    facts: dict[str, Any] = {
        "the loss": problem.loss, "lam": problem.lam, "the intercept": problem.intercept,
        "the solver": getattr(solver, "stages", solver),
        "the shape of the rows": (m, d), "the checksum of the rows": rows, "certify": stops.certify, "the seed": seed,
    }  # fmt: skip
    if isinstance(solver, Asset | KernelPegasos | Pegasos):  # their steps are planned up to the end
        facts |= {"tol": stops.tol, "max_iter": stops.max_iter}
    return {name: repr(fact) for name, fact in facts.items()}


def checksum(rows: Rows) -> str:
    """A number that changes with any of the rows."""
    if isinstance(rows, Mixed):
        return f"{_crc(rows.base.values, rows.mixing):x}"
    if isinstance(rows, Gram):
        return f"{_crc(rows.values):x}"
    if not isinstance(rows, Distant):
        return f"{_crc(*rows[:3] if isinstance(rows, CSR) else (rows.values,)):x}"
    if rows.files is not None:
        return rows.files.checksum
    # Computed rows may differ in their last bits from time to time.
    probe = np.random.default_rng(0).normal(size=rows.n_features)
    scores = ALONE.scores(rows, probe)
    return f"{float(scores.sum()):.6e} {float(np.square(scores).sum()):.6e}"


def _crc(*arrays: Vector) -> int:
    found = 0
    for array in arrays:
        values: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        found = zlib.crc32(memoryview(values), found) if values.size else found
    return found
