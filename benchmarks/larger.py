"""Larger than memory: a cache of 4 GB, trained under a limit of 500 MB that counts the page cache as well.

The limit is a control group's, where the machine lets us make one; else it is only asked for (`memory=`), and the peaks
of anonymous and of file-backed memory are reported apart. Before each run the system is asked to forget the cache's
files, so that every epoch reads them from the disk.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.common import Options, Promise, Table, median, spread

ROWS, QUICK_ROWS = 7_000_000, 200_000
LIMIT = 500 * 10**6
QUICK_LIMIT = 400 * 10**6
FOR_ROWS = 120 * 10**6  # of the limit: Python, its libraries, labels and dual variables need the rest
LAM, TOL = 1e-6, 1e-3
ROWS_AT_ONCE = 100_000
CHUNK = 1 << 23  # bytes of a plain read
THIS = (sys.executable, "-m", "benchmarks.larger")
GROUPS = Path("/sys/fs/cgroup")

ABOUT = (
    "A generated text-like problem (`text_like`, float32) as a cache, hinge, no intercept, "
    f"λ = {LAM:g}, tol = {TOL:g}, two threads. *Under the limit*: `LinearSVC(memory=…).fit(primalsvm.open(cache))` in "
    "a process whose control group may use 500 MB, page cache included. *Reading*: a process under the same limit that "
    "reads the cache's files once, one after the other, and does nothing with them. *In memory*: the same fit without "
    "a limit, on the mapped cache. The files are dropped from the page cache before each run. An epoch reads every "
    "block once and sweeps over it twice; evaluations (one more pass each) are counted apart."
)


class Group(NamedTuple):
    """A control group with a limit."""

    folder: Path
    unified: bool

    def join(self) -> None:
        """Put this process into it."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    @property
    def peak(self) -> int:
        """The most that it has used, page cache included."""
        name = "memory.peak" if self.unified else "memory.max_usage_in_bytes"
        return int((self.folder / name).read_text())


def group_with(limit: int) -> Group | None:
    """A control group of our own; None where the machine does not let us."""
    unified = (GROUPS / "cgroup.controllers").exists()
    folder = (GROUPS if unified else GROUPS / "memory") / f"primalsvm-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / ("memory.max" if unified else "memory.limit_in_bytes")).write_text(str(limit))
    except OSError:
        return None
    return Group(folder, unified)


def run(words: list[str], limit: int | None) -> dict[str, Any]:
    """One of the functions below in a process of its own, and the peak of its control group."""
    group = None if limit is None else group_with(limit)
    try:
        done = subprocess.run(
            [*THIS, *words], capture_output=True, text=True, check=True,
            preexec_fn=None if group is None else group.join,
        )  # fmt: skip
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        said["peak"] = None if group is None else group.peak
    finally:
        if group is not None:
            group.folder.rmdir()
    return said


def forget(cache: Path) -> None:
    """Have the system drop its copies of the files."""
    for file in cache.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


# ---- what the processes do -------------------------------------------------------------------------------------------


def read(cache: Path) -> dict[str, Any]:
    """Read all files once."""
    room = bytearray(CHUNK)
    begin = time.perf_counter()
    for file in sorted(cache.iterdir()):
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(room):
                pass
    return {"seconds": time.perf_counter() - begin}


def fit(cache: Path, memory: float | None, threads: int) -> dict[str, Any]:
    """A fit, and where its seconds went."""
    import primalsvm
    from primalsvm.solvers.block_ascent import BlockAscent
    from primalsvm.solvers.dual_ascent import DualAscent

    spent = {"advance": 0.0, "evaluate": 0.0}

    def watched(kind: Any, name: str) -> None:
        work = getattr(kind, name)

        def timed(*arguments: Any) -> Any:
            begin = time.perf_counter()
            result = work(*arguments)
            spent[name] += time.perf_counter() - begin
            return result

        setattr(kind, name, timed)

    for kind in (BlockAscent, DualAscent):
        for name in spent:
            watched(kind, name)
    begin = time.perf_counter()
    clf = primalsvm.LinearSVC(
        lam=LAM, tol=TOL, fit_intercept=False, memory=memory, solver="dual_ascent", n_jobs=threads, random_state=0
    ).fit(primalsvm.open(cache))
    seconds = time.perf_counter() - begin
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "seconds": seconds,
        "per_epoch": spent["advance"] / clf.n_iter_,
        "per_evaluation": spent["evaluate"] / len(clf.history_),
        "epochs": clf.n_iter_,
        "solver": type(clf.solver_).__name__,
        "gap": clf.certificate_.relative_gap,
        "primal": clf.certificate_.primal,
        "anonymous": int(status["RssAnon"].split()[0]) * 1024,
        "files": int(status["RssFile"].split()[0]) * 1024,
    }


def write_cache(path: Path, m: int) -> None:
    """The generated rows."""
    from primalsvm.sources.cache import CacheWriter
    from primalsvm.sources.generated import text_like

    X, y, _, _ = text_like(m=m, n_jobs=-1)
    with CacheWriter(path, X.shape[1], dtype=np.float32) as writer:
        for first in range(0, m, ROWS_AT_ONCE):
            writer.append(X[first : first + ROWS_AT_ONCE], y[first : first + ROWS_AT_ONCE])


# ---- the section -----------------------------------------------------------------------------------------------------


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Reading and fitting under the limit, in turn; then once in memory."""
    limit, m = (QUICK_LIMIT, QUICK_ROWS) if options.quick else (LIMIT, ROWS)
    threads = max(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        subprocess.run([*THIS, "write", str(cache), str(m)], check=True)  # its memory is given back
        size = sum(file.stat().st_size for file in cache.iterdir())
        memory = str(FOR_ROWS if not options.quick else size / 8)
        run(["fit", str(cache), memory, str(threads)], None)  # compiles
        reads, fits = [], []
        for _ in range(options.repeats):
            forget(cache)
            reads.append(run(["read", str(cache)], limit))
            forget(cache)
            fits.append(run(["fit", str(cache), memory, str(threads)], limit))
            console.print(f"read {reads[-1]['seconds']:.2f} s, an epoch {fits[-1]['per_epoch']:.2f} s")
        forget(cache)
        whole = run(["fit", str(cache), "0", str(threads)], None)
    return {
        "rows": m, "bytes": size, "limit": limit, "threads": threads, "reads": reads, "fits": fits, "whole": whole,
    }  # fmt: skip


def promises(results: dict[str, Any]) -> list[Promise]:
    """The same gap; an epoch within twice the reading; the limit kept."""
    ratio = median(one["per_epoch"] for one in results["fits"]) / median(one["seconds"] for one in results["reads"])
    gap = max(one["gap"] for one in results["fits"])
    size = f"{results['bytes'] / 1e9:.1f} GB under {results['limit'] / 1e6:.0f} MB"
    return [
        Promise(f"{size}: certified to {TOL:g}, as in memory", f"{gap:.1e}", max(gap, results["whole"]["gap"]) <= TOL),
        Promise(f"{size}: an epoch within 2 × of reading the files", f"{ratio:.2f} ×", ratio <= 2),
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Seconds and memory."""
    reads, fits, whole = results["reads"], results["fits"], results["whole"]
    limited = [one["peak"] for one in fits]
    limit = f"{results['limit'] / 1e6:.0f} MB"
    yield Table(
        f"{results['bytes'] / 1e9:.2f} GB of cache, {results['rows']:,} rows, a limit of {limit}",
        ("", "seconds", "range", "an epoch, s", "an evaluation, s", "epochs", "proven gap", "P(w)"),
        [
            (
                "reading the files once",
                _median(reads, "seconds"),
                spread([r["seconds"] for r in reads], 2),
                *("—",) * 5,
            ),
            _row("fit under the limit", fits),
            _row("fit in memory", [whole]),
        ],
    )
    yield Table(
        "Memory at the end of the fit, MB",
        ("", "anonymous", "file-backed", "peak of the control group, page cache included"),
        [
            (
                name,
                f"{max(one['anonymous'] for one in found) / 1e6:,.0f}",
                f"{max(one['files'] for one in found) / 1e6:,.0f}",
                "—" if None in peaks else f"{max(peaks) / 1e6:,.0f}",
            )
            for name, found, peaks in (("fit under the limit", fits, limited), ("fit in memory", [whole], [None]))
        ],
    )


def _median(found: list[dict[str, Any]], name: str) -> str:
    return f"{median(one[name] for one in found):.2f}"


def _row(name: str, found: list[dict[str, Any]]) -> tuple[str, ...]:
    return (
        f"{name} ({found[0]['solver']})",
        _median(found, "seconds"),
        spread([one["seconds"] for one in found], 2),
        _median(found, "per_epoch"),
        _median(found, "per_evaluation"),
        str(found[0]["epochs"]),
        f"{max(one['gap'] for one in found):.1e}",
        f"{found[0]['primal']:.6f}",
    )


if __name__ == "__main__":
    task, path, *rest = sys.argv[1:]
    if task == "write":
        write_cache(Path(path), int(rest[0]))
    elif task == "read":
        print(json.dumps(read(Path(path))))
    else:
        print(json.dumps(fit(Path(path), float(rest[0]) or None, int(rest[1]))))
