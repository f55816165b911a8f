"""Short ways to objectives and runs."""

import numpy as np

from primalsvm.data import ALONE, as_dataset
from primalsvm.solvers.drive import drive
from primalsvm.solvers.several import Single, as_joint
from primalsvm.solvers.stops import Stops


def objective(problem, X, y, weight=None, threads=ALONE):
    """P and D of a problem on arrays."""
    return problem.on(as_dataset(X, weight, threads=threads), np.asarray(y, float))


def solution_of(objective, solver, stops=None, validation=None, start=None, **options):
    """What the driver makes of one problem and a solver object."""
    held_out = None if validation is None else Single(validation)
    start = None if start is None else [start.state]
    found = drive(Single(objective), as_joint(solver), stops or Stops(), validation=held_out, start=start, **options)
    return found[0]
