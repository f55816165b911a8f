"""A progress bar in the terminal: epochs, gap, time left."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from primalsvm.solvers.drive import Progress


def _bar(*columns: Any) -> Any:
    """A bar on standard error, with a title on its left."""
    from rich.console import Console
    from rich.progress import BarColumn
    from rich.progress import Progress as Bar

    return Bar("{task.description}", BarColumn(), *columns, console=Console(stderr=True))


@contextmanager
def progress_bar(verbose: int, title: str) -> Iterator[Callable[[Progress], None] | None]:
    """An `on_progress` for `drive` that draws a bar on standard error; None if not verbose."""
    if not verbose:
        yield None
        return
    with _bar("epoch {task.fields[epoch]:.4g}  gap {task.fields[gap]}  {task.fields[clock]}") as bar:
        task = bar.add_task(title, total=1.0, epoch=0.0, gap="?", clock="starting; a first run compiles its kernels")
        first_gap = math.inf

        def on_progress(progress: Progress) -> None:
            nonlocal first_gap
            gap = progress.relative_gap
            first_gap = gap if math.isinf(first_gap) else first_gap
            done = max(share_done(gap, first_gap, progress.tol), progress.epoch / progress.max_iter)
            left = progress.seconds * (1.0 - done) / done if done > 0 else math.inf
            clock = f"{progress.seconds:.1f} s" + (f", {left:.1f} s left" if 0 < left < math.inf else "")
            shown = f"{gap:.1e}" if gap < math.inf else "?"
            bar.update(task, completed=min(done, 1.0), epoch=progress.epoch, gap=shown, clock=clock)

        yield on_progress


def share_done(gap: float, first_gap: float, tol: float) -> float:
    """The progress of the gap from its first value to `tol`, on a logarithmic scale.

    Examples
    --------
    >>> round(share_done(1e-2, 1e-1, 1e-3), 3)
    0.5
    """
    if gap <= tol:
        return 1.0
    if math.isinf(gap) or first_gap <= tol or gap >= first_gap:
        return 0.0
    return math.log(first_gap / gap) / math.log(first_gap / tol)


@contextmanager
def counting_bar(verbose: int, title: str, total: int) -> Iterator[Callable[[], None]]:
    """A function to call after each of `total` fits, which advances a bar on standard error if verbose."""
    if not verbose:
        yield lambda: None
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bar(MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
