"""What `LinearSVC.fit` allocates on top of the arXiv matrix, once kernels are compiled.

Each number comes from a process of its own: peak resident memory during the fit over what was resident just before
(Linux: the high-water mark VmHWM, reset through /proc/self/clear_refs), and, in another one, tracemalloc's peak.
"""

import ctypes
import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.common import QUICK_ROWS, Options, Promise, Table, input_bytes
from benchmarks.datasets import arxiv

LIMIT = 0.15
KINDS = ("resident", "tracemalloc")

ABOUT = (
    "What `LinearSVC.fit` (no intercept, default `tol`) allocates beyond the input, as a share of the input's "
    "bytes, once kernels are compiled; each number from a process of its own. *Resident* is the peak of resident "
    "memory during the fit over that just before it (`VmHWM`); *tracemalloc* is the peak that Python's and "
    "NumPy's allocators report."
)


def _resident(field: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def growth_of_one_fit(kind: str, lam: float, threads: int, quick: bool) -> dict[str, float]:
    """Run in a fresh process: load, compile on a slice, fit, and say how much that took."""
    from primalsvm import LinearSVC

    split = arxiv()
    X, y = split.X_train, split.y_train
    if quick:
        X, y = X[:QUICK_ROWS], y[:QUICK_ROWS]
    del split
    model = LinearSVC(lam=lam, fit_intercept=False, n_jobs=threads, random_state=0)
    model.fit(X[:3000], y[:3000])
    gc.collect()
    if kind == "tracemalloc":
        tracemalloc.start()
        model.fit(X, y)
        grown = tracemalloc.get_traced_memory()[1]
    else:
        ctypes.CDLL(None).malloc_trim(0)  # so that memory freed before cannot hide what the fit takes
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS")
        model.fit(X, y)
        grown = _resident("VmHWM") - before
    return {"grown": grown, "input": input_bytes(X)}


def measure(options: Options, console: Console) -> dict[str, Any]:
    """One process per λ, number of threads and way of counting."""
    found = []
    for lam in options.lambdas:
        for threads in options.threads:
            for kind in KINDS:
                words = [kind, str(lam), str(threads), str(int(options.quick))]
                command = [sys.executable, "-m", "benchmarks.memory", *words]
                out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found.append({"kind": kind, "lam": lam, "threads": threads, **json.loads(out)})
    return {"found": found}


def promises(results: dict[str, Any]) -> list[Promise]:
    """At most 15 %."""
    worst = max(one["grown"] / one["input"] for one in results["found"])
    return [
        Promise(f"`fit` allocates at most {LIMIT:.0%} of the input's bytes", f"at most {worst:.1%}", worst <= LIMIT)
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """All counts."""
    yield Table(
        "Memory beyond the input",
        ("threads", "λ", "counted by", "MB", "of the input"),
        [
            (
                str(one["threads"]),
                f"{one['lam']:g}",
                one["kind"],
                f"{one['grown'] / 1e6:.1f}",
                f"{one['grown'] / one['input']:.1%}",
            )
            for one in results["found"]
        ],
    )


if __name__ == "__main__":
    print(json.dumps(growth_of_one_fit(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1")))
