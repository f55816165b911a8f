"""Real data sets, which are there or not."""

import os
from collections.abc import Callable

from benchmarks.datasets import Split


def split_if_there(read: Callable[[], Split]) -> Split | None:
    """What `read` finds in the folder of data sets; None, which the objective skips, if there is nothing to find."""
    if not os.environ.get("PRIMALSVM_DATA"):  # even if what is read has been cached: no real data are asked for
        return None
    try:
        return read()
    except FileNotFoundError:
        return None
