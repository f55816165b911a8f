"""The result of a solver: a `Solution` with its `Certificate`, its `Status` and its trace."""

import enum
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


def relative_gap(primal: float, dual: float) -> float:
    """(P − D) / max(|P|, |D|); 0 where both are 0, inf unless both are finite.

    Examples
    --------
    >>> relative_gap(2.0, 1.0)
    0.5
    """
    if not (math.isfinite(primal) and math.isfinite(dual)):
        return math.inf
    scale = max(abs(primal), abs(dual))
    return (primal - dual) / scale if scale != 0 else 0.0


class Certificate(NamedTuple):
    """A proof of accuracy: D(α) ≤ P* ≤ P(w), so P(w) − P* ≤ gap.

    `exact` says that primal and dual were computed over all of the training rows.

    Examples
    --------
    >>> Certificate.of(primal=0.238360, dual=0.238148)
    Certificate(primal=0.238360, dual=0.238148, gap=2.1e-04, relative_gap=8.9e-04, exact=True)
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    exact: bool

    @classmethod
    def of(cls, primal: float, dual: float, exact: bool = True) -> "Certificate":
        """The certificate of a primal value and a lower bound."""
        return cls(primal, dual, primal - dual, relative_gap(primal, dual), exact)

    def __repr__(self) -> str:
        return (
            f"Certificate(primal={self.primal:.6f}, dual={self.dual:.6f}, gap={self.gap:.1e}, "
            f"relative_gap={self.relative_gap:.1e}, exact={self.exact})"
        )


class Status(enum.Enum):
    """Why a run ended."""

    CONVERGED = "converged"
    FINISHED = "finished"  # the solver has done what it was asked to do, such as n_iter steps
    STALLED = "stalled"  # rounding leaves the solver nothing to improve
    MAX_ITER = "max_iter"
    MAX_SECONDS = "max_seconds"
    EARLY_STOPPING = "early_stopping"
    INTERRUPTED = "interrupted"

    @property
    def fell_short(self) -> bool:
        """Whether the run ended before it reached the tolerance or another goal of the user."""
        return self in (Status.STALLED, Status.MAX_ITER, Status.MAX_SECONDS, Status.INTERRUPTED)


TRACE_DTYPE = np.dtype(
    [
        ("epoch", np.float64),
        ("steps", np.int64),
        ("seconds", np.float64),
        ("primal", np.float64),
        ("dual", np.float64),
        ("gap", np.float64),
        ("validation_error", np.float64),
        ("solver", "U16"),
    ]
)


class Trace:
    """One row per evaluation; `array()` gives a structured array that `pandas.DataFrame` takes as it is."""

    def __init__(self, rows: npt.NDArray[Any] | None = None) -> None:
        self._rows: list[tuple[float, int, float, float, float, float, float, str]] = []
        if rows is not None:
            self._rows += rows.tolist()

    def _asdict(self) -> dict[str, Any]:
        """The arguments of a copy, for files."""
        return {"rows": self.array()}

    def append(
        self,
        epoch: float,
        steps: int,
        seconds: float,
        primal: float,
        dual: float,
        validation_error: float = np.nan,
        solver: str = "",
    ) -> None:
        """Record an evaluation."""
        self._rows.append((epoch, steps, seconds, primal, dual, primal - dual, validation_error, solver))

    def array(self) -> npt.NDArray[Any]:
        """The rows as a structured array of dtype `TRACE_DTYPE`."""
        return np.array(self._rows, dtype=TRACE_DTYPE)


@dataclass(frozen=True)
class Solution:
    """The result of a run.

    Attributes
    ----------
    w, b : the hyperplane; `b` is 0.0 for a problem without intercept.
    certificate : `Certificate` of exactly this (w, b), or None with ``certify=False``.
    status, message : why the run ended, as a value and as a sentence.
    trace : structured array, one row per evaluation.
    n_epochs, n_steps, seconds : passes, updates, and the solver's own clock (checking the input apart).
    state : the solver's state, to go on from.
    """

    w: npt.NDArray[Any]
    b: float
    certificate: Certificate | None
    status: Status
    message: str
    trace: npt.NDArray[Any] = field(repr=False)
    n_epochs: float
    n_steps: int
    seconds: float
    solver: Any
    state: Any = field(repr=False)
