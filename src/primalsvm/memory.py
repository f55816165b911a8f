"""How much memory there is, and a clear refusal before an allocation that cannot fit."""

import os
from pathlib import Path


def available() -> int:
    """Bytes that can be had: what the system says is available, within the limit of a control group if there is one."""
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: all of it
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 * 2**30
    try:
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        return max(0, min(free, limit))
    except (OSError, ValueError):  # no control group, or one without limit
        return free


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Raise a MemoryError that says how much would be needed for what, and what to do instead.

    Examples
    --------
    >>> check_fits(10**18, "a kernel matrix", "use fewer rows")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: a kernel matrix would take 1e+09 GB, more than the ... GB available: use fewer rows
    """
    free = available()
    if needed > free:
        raise MemoryError(
            f"{what} would take {needed / 1e9:.3g} GB, more than the {free / 1e9:.3g} GB available: {remedy}"
        )
