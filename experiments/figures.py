"""How the figures look: colours that colour-blind readers tell apart, with a marker and a line style each."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

# Okabe and Ito's, without the yellow, which is too pale for lines.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888")
MARKERS = "osv^DPX*"
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), "-", "--")
GREY = "#666666"


def style(k: int, label: str) -> dict[str, Any]:
    """Of the k-th series."""
    return {
        "color": COLOURS[k % len(COLOURS)],
        "marker": MARKERS[k % len(MARKERS)],
        "linestyle": LINES[k % len(LINES)],
        "label": label,
        "markersize": 4,
        "linewidth": 1.3,
    }


def panels(rows: int, columns: int, width: float = 4.6, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, row by row."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25)
    return figure, axes


def plain_ticks(axis: Any, values: Iterable[float] | None = None) -> None:
    """2, 4, 8 or 0.5, 1, 2 instead of powers of ten."""
    if values is not None:
        axis.set_ticks(list(values))
        axis.set_ticks([], minor=True)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))


def below(figure: Figure, axes: Axes, columns: int) -> None:
    """One legend for all panels, under them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
