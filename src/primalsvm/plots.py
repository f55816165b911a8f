"""Figures. matplotlib is imported when one is drawn."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIMAL, DUAL, GAP = "#0b6e99", "#d9730d", "#6b6b6b"


def convergence(history: npt.NDArray[Any], ax: "Axes | None" = None) -> "Axes":
    """Plot the convergence of a fit: P and D over time, and the relative gap between them.

    Parameters
    ----------
    history : structured array
        `history_` of an estimator, or `trace` of a `Solution`.
    ax : matplotlib Axes or None
        Axes to draw on; None makes a new figure. The relative gap has a logarithmic axis on the right.

    Returns
    -------
    Axes
        The left axes; see `save`.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0], [1.0], [-1.0], [-3.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1), X, [1, 1, -1, -1])
    >>> convergence(solution.trace).get_xlabel()
    'seconds'
    """
    history = history[np.isfinite(history["primal"]) & np.isfinite(history["dual"])]
    if history.shape[0] == 0:
        raise ValueError("the history holds no certified evaluation (was it a fit with certify=False?)")
    if ax is None:
        # Without pyplot, a figure needs no display, is not global state and is freed like any object.
        from matplotlib.figure import Figure

        ax = Figure(figsize=(7.5, 4.2), layout="constrained").subplots()
    seconds, primal, dual = history["seconds"], history["primal"], history["dual"]
    # The best P and the best D so far, as in a certificate.
    best, bound = np.minimum.accumulate(primal), np.maximum.accumulate(dual)
    relative = (best - bound) / np.maximum(np.maximum(abs(best), abs(bound)), np.finfo(float).tiny)

    ax.fill_between(seconds, bound, best, color=PRIMAL, alpha=0.10, linewidth=0)
    marks: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.6}
    lines = ax.plot(seconds, best, color=PRIMAL, label="primal $P(w)$", **marks)
    lines += ax.plot(seconds, bound, color=DUAL, label="dual $D(\\alpha)$", **marks)
    ax.set_xlabel("seconds")
    ax.set_ylabel("objective")
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.margins(x=0.03, y=0.08)
    ax.set_xlim(left=0.0)

    right = ax.twinx()
    positive = relative > 0
    style: dict[str, Any] = {"marker": "s", "markersize": 3.5, "linewidth": 1.2, "linestyle": "--"}
    lines += right.plot(seconds[positive], relative[positive], color=GAP, label="relative gap (right)", **style)
    right.set_yscale("log")
    right.set_ylabel("relative gap", color=GAP)
    right.tick_params(axis="y", which="both", colors=GAP)
    right.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    right.margins(y=0.08)
    # Draw the curves of the left axis above the grid of the right one.
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)
    for axes in (ax, right):
        axes.spines["top"].set_visible(False)
    proof = f"{bound[-1]:.6g} ≤ P* ≤ {best[-1]:.6g}:  proven to {relative[-1]:.1e}"
    ax.set_title(proof, loc="left", fontsize=11, pad=10)
    ax.legend(handles=lines, frameon=False, loc="best")
    return ax


def save(ax: "Axes", path: str | Path) -> None:
    """Save the figure of `ax`; the suffix of the path determines the format.

    Parameters
    ----------
    ax : matplotlib Axes
    path : str or Path
    """
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes are in no figure")
    figure.savefig(path, dpi=150)
