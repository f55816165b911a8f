"""Checkpoints: a run's state in a file, every so many seconds, from which it goes on to the same bits.

The file has the format of model files (`persistence`): it is there whole or as it was, and a checksum tells damage. It
also tells which run it is of: the problem, the solver, the rows. When to write is decided by the clock, what is written
is not.
"""

import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from primalsvm.objective import Evaluation, Problem
from primalsvm.options import check_number
from primalsvm.persistence import ModelError, read_model, write_model
from primalsvm.rows import CSR, Batch, Dense, Gram, Mixed, Weights, sampled_squared_norms, shape
from primalsvm.solvers.ascent import Copies, DualState, Part
from primalsvm.solvers.curvature import Curvature
from primalsvm.solvers.drive import Snapshot, Stops
from primalsvm.solvers.newton import NewtonState, View
from primalsvm.solvers.protocol import Solver
from primalsvm.solvers.proximal import Proximal
from primalsvm.solvers.sampling import Sampler
from primalsvm.solvers.steps import Iterate, Settings, Tail
from primalsvm.solvers.stochastic import Bucket, StochasticState

KIND = "checkpoint"
PARTS = (
    *(Snapshot, Evaluation),
    *(Batch, CSR, Dense, Gram, Mixed, Weights),
    *(DualState, Copies, Part),
    *(NewtonState, View, Proximal, Curvature),
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
    ...     clf = LinearSVC(checkpoint=Checkpoint(Path(folder) / "run.ckpt", every=30, resume=True)).fit(X, y)
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
    """What has to be the same for a run to go on: all that decides its bits, but for the number of threads."""
    m, d = shape(batch.rows)
    rows = zlib.crc32(np.ascontiguousarray(sampled_squared_norms(batch.rows)).tobytes())
    rows = zlib.crc32(np.ascontiguousarray(batch.weight.values).tobytes(), zlib.crc32(batch.y.tobytes(), rows))
    facts: dict[str, Any] = {
        "the loss": problem.loss, "lam": problem.lam, "the intercept": problem.intercept, "the solver": solver,
        "the shape of the rows": (m, d), "the checksum of the rows": rows, "tol": stops.tol, "max_iter": stops.max_iter,
        "certify": stops.certify, "the patience": stops.patience, "the seed": seed,
    }  # fmt: skip
    return {name: repr(fact) for name, fact in facts.items()}
