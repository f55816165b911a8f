"""The memory that is available, and a check before large allocations."""

import os
from collections.abc import Iterator
from pathlib import Path


def available() -> int:
    """The bytes that the system says are available, within the limits of the control groups."""
    try:
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):  # not Linux: all of it
        free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 * 2**30
    return max(0, min([free, *_group_limits()]))


def _group_limits() -> Iterator[int]:
    """The bytes that each control group of this process leaves. The cache of files counts as available."""
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for number, controllers, name in groups:
        unified = number == "0" and not controllers
        if not unified and "memory" not in controllers.split(","):
            continue
        root = Path("/sys/fs/cgroup") / ("" if unified else "memory")
        limit, used = (
            ("memory.max", "memory.current") if unified else ("memory.limit_in_bytes", "memory.usage_in_bytes")
        )
        folder = root / name.lstrip("/")
        while True:
            try:
                counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                files = int(counts.get("total_inactive_file", counts.get("inactive_file", 0)))
                yield int((folder / limit).read_text()) - int((folder / used).read_text()) + files
            except (OSError, ValueError):  # no such file in the root group, or no limit ("max")
                pass
            if folder == root or root not in folder.parents:
                break
            folder = folder.parent


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Raise a MemoryError if `needed` bytes for `what` are not available; its message ends with the `remedy`.

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
