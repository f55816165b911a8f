"""What all benchmarks share: options, interleaved timing, and tables that print and go into the report alike."""

import gc
import statistics
import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

Key = TypeVar("Key", bound=Hashable)

LAMBDAS = (1e-4, 1e-5, 1e-6)
QUICK_ROWS = 50_000  # rows of the arXiv matrix that `--quick` keeps


class Options(NamedTuple):
    """How much to measure."""

    quick: bool
    lambdas: tuple[float, ...]
    threads: tuple[int, ...]
    repeats: int


class Table(NamedTuple):
    """Strings only: the same cells are printed and written."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Promise(NamedTuple):
    """A promised bound and what was measured for it."""

    text: str
    measured: str
    held: bool


def touch_memory(size: float) -> None:
    """Have the machine back so many bytes of memory with real pages, and free them again.

    A virtual machine hands memory that has been free for some seconds back to its host, and the next one who uses it
    waits for it: some 1.5 s a gigabyte, more than filling it with features. Done before every contestant's run.
    """
    np.ones(int(size / 8))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that `work` takes, and its result. Garbage of the run before is not collected on its clock."""
    gc.collect()
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def interleaved(works: dict[Key, Callable[[], float]], rounds: int) -> dict[Key, list[float]]:
    """A, B, C, A, B, C, …: so that a slow minute of the machine is everyone's. Each work returns its own seconds."""
    times: dict[Key, list[float]] = {key: [] for key in works}
    for _ in range(rounds):
        for key, work in works.items():
            times[key].append(work())
    return times


def median(values: Iterable[float]) -> float:
    """The middle value."""
    return float(statistics.median(values))


def spread(values: Iterable[float], digits: int = 3) -> str:
    """Lowest to highest."""
    found = list(values)
    return f"{min(found):.{digits}f} to {max(found):.{digits}f}"


def hinge_objective(X: Any, y: np.ndarray, w: np.ndarray, lam: float, b: float = 0.0) -> float:
    """λ/2 ‖w‖² + mean max(0, 1 − y (⟨w, x⟩ + b)) in double precision: plain NumPy, the one judge of everyone."""
    w = np.asarray(w, np.float64).ravel()
    margins = y * (X @ w + b)
    return float(lam / 2 * (w @ w) + np.maximum(0.0, 1.0 - margins).mean())


def error_rate(X: sp.csr_matrix, y: np.ndarray, w: np.ndarray) -> float:
    """The share of rows on the wrong side of w, or on neither."""
    return float(np.mean(y * (X @ np.asarray(w, np.float64).ravel()) <= 0))


def input_bytes(X: sp.csr_matrix) -> int:
    """Bytes of a CSR matrix."""
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
