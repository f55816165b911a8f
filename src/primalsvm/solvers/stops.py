"""Stopping rules, and the message that says why a run has ended."""

from dataclasses import dataclass

import numpy as np

from primalsvm.solution import Status

# A problem with m·d below this is small: precise solvers solve it to `SMALL_PROBLEM_TOL`, whatever `tol` is.
SMALL_PROBLEM = 100_000
# Small problems are solved to this relative gap.
SMALL_PROBLEM_TOL = 1e-10
# Without `max_iter`, a run may always take this many epochs.
EPOCHS = 1000
# Without `max_iter`, a run may always use this many operations (`costs`): a minute or two.
OPERATIONS = 1e11
# The same for a small problem, which is solved far beyond `tol`: a second or two.
OPERATIONS_IF_SMALL = 1e9


@dataclass(frozen=True)
class Stops:
    """Stopping rules.

    Parameters
    ----------
    tol : float
        Relative duality gap to reach: gap ≤ tol · max(|P|, |D|).
    max_iter : int or None
        Epochs at most. None stops after 1,000 epochs or 1e11 operations (a minute or two; 1e9 for small problems),
        whichever comes last.
    max_seconds : float or None
        Seconds at most, checked after every chunk of rows.
    certify : bool
        Compute the certificate. Without it `tol` is compared with the solver's own estimate, if it has one.
    patience : int
        With a validation set: stop after this many evaluations without a lower error.
    """

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None
    certify: bool = True
    patience: int = 5

    def __post_init__(self) -> None:
        if not self.tol > 0:
            raise ValueError(f"tol must be positive, got {self.tol!r}")
        if self.max_iter is not None and self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1 or None, got {self.max_iter!r}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds must be positive or None, got {self.max_seconds!r}")
        if self.patience < 1:
            raise ValueError(f"patience must be at least 1, got {self.patience!r}")

    @property
    def epochs(self) -> int:
        """Epochs that a run may always take."""
        return EPOCHS if self.max_iter is None else self.max_iter

    def small(self, m: int, d: int) -> bool:
        """Whether precise solvers solve a problem of m rows and d features to `SMALL_PROBLEM_TOL`."""
        return m * d < SMALL_PROBLEM and self.certify

    def exhausted(self, epoch: float, operations: float, small: bool) -> bool:
        """Whether a run has taken what it may take; without operations (0: not counted) its epochs alone decide."""
        most = OPERATIONS_IF_SMALL if small else OPERATIONS
        return epoch >= self.epochs and (self.max_iter is not None or operations >= most or operations == 0.0)


def sentence(status: Status, epoch: float, relative_gap: float, stops: Stops, *, zero: bool, tunable: bool) -> str:
    """A sentence about a status: what it means, the figures, and what to do.

    `zero` says that w = 0 is the solution of a one-class problem or of two classes, `tunable` that the user chooses λ.
    """
    if zero:
        return (
            f"stopped after {epoch:.4g} epochs: the rows surround the origin, or two classes overlap, so that w = 0 is "
            "the solution, which is not informative; use a kernel, features that are not centred, or a larger nu"
        )
    reached, short = "an accuracy that was not certified", ""
    if np.isfinite(relative_gap):
        reached, short = f"a relative gap of {relative_gap:.1e}", f" > tol {stops.tol:.1e}"
    if status is Status.CONVERGED:
        return f"converged after {epoch:.4g} epochs to {reached}"
    if status is Status.FINISHED:
        return f"finished after {epoch:.4g} epochs at {reached}{short if relative_gap > stops.tol else ''}"
    if status is Status.EARLY_STOPPING:
        return (
            f"stopped early after {epoch:.4g} epochs: the validation error has not fallen for {stops.patience} "
            f"evaluations (at {reached})"
        )
    stronger = ", or regularise more (a larger lam, a smaller C)" if tunable else ""
    if status is Status.STALLED:
        advice = "only rounding is left to it; scale the features" + stronger
        return f"stalled after {epoch:.4g} epochs at {reached}{short}: {advice}"
    if status is Status.MAX_ITER:
        advice = f"{'raise' if stops.max_iter else 'set'} max_iter, scale the features{stronger}"
        return f"stopped after {epoch:.4g} epochs at {reached}{short}: {advice}"
    if status is Status.MAX_SECONDS:
        return (
            f"stopped after {stops.max_seconds:g} seconds ({epoch:.3g} epochs) at {reached}{short}: raise max_seconds"
        )
    return f"interrupted after {epoch:.3g} epochs at {reached}{short}: the best point so far is kept"
