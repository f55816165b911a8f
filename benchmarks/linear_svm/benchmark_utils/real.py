"""Real data sets, which are there or not."""

from collections.abc import Callable

from benchmarks.datasets import Split, data_folder


def split_if_there(read: Callable[[], Split]) -> Split | None:
    """What `read` finds in the folder of data sets; None, which the objective skips, if there is nothing to find."""
    try:
        data_folder()  # asked for even if what is read has been cached: without the folder no real data are used
        return read()
    except (SystemExit, FileNotFoundError):
        return None
