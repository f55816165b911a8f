"""Checkpoints: files with the state of a run, from which it is resumed with bit-identical results.

The format is that of model files (`persistence`): files are written atomically and have a checksum. A checkpoint also
identifies the run by its problems, solver and rows. The clock decides when checkpoints are written, but not their
contents. The checksum protects against damage, not against manipulation.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primalsvm.data import CSR, Batch, Dense, Weights, crc
from primalsvm.objective import Evaluation
from primalsvm.options import check_number
from primalsvm.persistence import ModelError, check_known, header_of, read_model, schema_of, write_model
from primalsvm.solution import Certificate, Solution, Status, Trace
from primalsvm.solvers.drive import Record, Snapshot
from primalsvm.solvers.protocol import JointSolver, ObjectiveSequence
from primalsvm.solvers.registry import SOLVERS, STATES
from primalsvm.solvers.several import Several
from primalsvm.solvers.stops import Stops

KIND = "checkpoint"
OTHERS = (Snapshot, Record, Trace, Evaluation, Solution, Certificate, Status, Batch, CSR, Dense, Weights)


def known_parts() -> dict[str, type]:
    """The classes whose objects may be part of a checkpoint."""
    others: dict[str, type] = {part.__name__: part for part in OTHERS}
    return {**SOLVERS, **STATES, **others}


@dataclass(frozen=True)
class Checkpoint:
    """Store the state of a run in a file, so that it can be continued after an interruption.

    If a fit consists of several problems, those that were solved before the interruption are not solved again. The
    results have the bits of an uninterrupted fit; those of an exact kernel machine with more than 5,000 rows have the
    same accuracy.

    Parameters
    ----------
    path : str or Path
    every : float, default=60.0
        Seconds between two checkpoints.
    resume : bool, default=False
        Continue from the file if it exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
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


class CheckpointWriter:
    """Writes the snapshots of `drive`, as its `on_snapshot`.

    Parameters
    ----------
    checkpoint : the path and the interval
    run : from `identity`
    library : the version of the library
    """

    def __init__(self, checkpoint: Checkpoint, run: dict[str, str], library: str) -> None:
        self.path = Path(checkpoint.path)
        self.checkpoint, self.run, self.library = checkpoint, run, library
        self.last, self.checked = time.monotonic(), False
        if self.path.exists() and header_of(self.path).get("kind") != KIND and not checkpoint.resume:
            raise ModelError(f"{self.path} exists and is not a checkpoint: it is left alone")
        if not os.access(self.path.parent, os.W_OK):
            raise OSError(f"there is no folder {str(self.path.parent)!r} to write the checkpoint to")

    def read_snapshot(self) -> Snapshot | None:
        """The snapshot to continue from; None: start from the beginning.

        Raises
        ------
        ModelError
            If the file is damaged, or written by another version of the library or another run.
        """
        if not (self.checkpoint.resume and self.path.exists()):
            return None
        known, header = known_parts(), header_of(self.path)
        if header.get("kind") == KIND and header.get("schema") != schema_of(known):
            raise ModelError(
                f"{self.path} was written by another version of this library, the states of which are not those of "
                "this one: finish the run with that version, or begin it anew (without resume)"
            )
        content = read_model(self.path, (KIND,), known, KIND).content
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
            content, known = {"run": self.run, "snapshot": snapshot}, known_parts()
            write_model(self.path, KIND, content, known, self.library, schema_of(known), KIND)
            self.last, self.checked = time.monotonic(), True
        elif not self.checked:  # after the first chunk: raise early if the state cannot be written
            check_known({"snapshot": snapshot}, known_parts(), KIND)
            self.checked = True


def check_solver(solver: JointSolver) -> None:
    """Raise a ModelError if checkpoints cannot hold the solver, or one of a sequence."""
    for one in [stage.solver for stage in getattr(solver, "stages", ())] or [solver]:
        check_known({"solver": one.solver if isinstance(one, Several) else one}, known_parts(), KIND)


def identity(objectives: ObjectiveSequence, solver: JointSolver, stops: Stops, seed: int) -> dict[str, str]:
    """What must be equal to continue a run: all that determines its steps except for the number of threads."""
    data, problem = objectives.data, objectives[0].problem
    own = solver.solver if isinstance(solver, Several) else solver
    targets = []
    for k in range(len(objectives)):
        targets.append(data.to_array(objectives[k].y))
        objectives.forget(k)  # pairs of classes have copies of their rows
    facts: dict[str, Any] = {
        "the loss": problem.loss, "lam": problem.lam, "the intercept": problem.intercept,
        "the number of problems": len(objectives), "the solver": getattr(own, "stages", own),
        "the shape of the rows": data.shape,
        "the checksum of the rows": (data.checksum(), crc(data.weight_array(), *targets)),
        "certify": stops.certify, "the seed": seed,
    }  # fmt: skip
    if solver.traits.planned:
        facts |= {"tol": stops.tol, "max_iter": stops.max_iter}
    return {name: repr(fact) for name, fact in facts.items()}
