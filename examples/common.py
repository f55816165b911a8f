"""What the examples share: their two options, and how their pictures look."""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, ORANGE, GREEN, PINK, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"


def options(doc: str | None) -> argparse.Namespace:
    """The command line: `out`, a folder, and `quick`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).parent / "output"
    parser.add_argument("--out", type=Path, default=default, help="the folder for the picture (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer rows: some seconds, and results to match")
    return parser.parse_args()


def seconds(call: Callable[[], Any]) -> float:
    """The time of a call, the less of two: a first fit on a machine also compiles, and keeps what it compiled."""
    taken = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def panels(columns: int, width: float = 5.2, height: float = 4.0, **layout: Any) -> tuple[Figure, list[Axes]]:
    """A figure and its axes, side by side."""
    figure = Figure(figsize=(width * columns, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, **layout).ravel().tolist()
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(alpha=0.25)
        one.set_axisbelow(True)
    return figure, axes


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write the picture, and say where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / name, dpi=130)
    print(f"\nPicture: {folder / name}")
