"""The threads of one fit. Kernels release the GIL; each thread takes a range of rows.

The work is divided by `n_jobs` alone and the results are put together in order, so the same `n_jobs` gives the same
bits. A pool is made for one fit, so a fork between fits is safe, and fits in different threads share no pool.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

MOST_THREADS = 1024


class ThreadPool:
    """`size` threads; used as a context manager.

    Examples
    --------
    >>> with ThreadPool(2) as threads:
    ...     threads.run(lambda part: part * part, [(1,), (2,), (3,)])
    [1, 4, 9]
    """

    def __init__(self, size: int = 1, blas: int | None = None) -> None:
        self.size = size
        self.blas = blas  # threads that BLAS may use while this pool is idle; None: its own setting
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "ThreadPool":
        if self.size > 1:  # the calling thread works as well
            self._pool = ThreadPoolExecutor(self.size - 1, thread_name_prefix="primalsvm")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def run(self, work: Callable[..., Any], parts: list[tuple[Any, ...]]) -> list[Any]:
        """`work(*part)` for each part; thread k takes parts k, k + size, …; results in the order of the parts."""
        if self._pool is None or len(parts) == 1:
            return [work(*part) for part in parts]
        found: list[Any] = [None] * len(parts)

        def work_on(thread: int) -> None:
            for k in range(thread, len(parts), self.size):
                found[k] = work(*parts[k])

        others = [self._pool.submit(work_on, thread) for thread in range(1, min(self.size, len(parts)))]
        try:
            work_on(0)
        finally:
            wait(others)  # so that no thread goes on after an error
        for other in others:
            other.result()
        return found

    @contextmanager
    def blas_limited(self, working: bool = False) -> Iterator[None]:
        """Limit BLAS to the threads of this pool; to one if the threads are `working` and call BLAS themselves."""
        limit = 1 if working and self.size > 1 else self.blas
        if limit is None:
            yield
            return
        with blas_threads.limited(limit):
            yield

    def ranges(self, n: int) -> Iterator[tuple[int, int]]:
        """Divide 0 … n into `size` ranges."""
        size = self.size
        return ((n * k // size, n * (k + 1) // size) for k in range(size))


class _BlasThreads:
    """The limit of BLAS threads: one number for the whole process, shared by fits that run at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: list[int] = []
        self._libraries: list[Any] = []
        self._before: list[int] = []  # the threads of each library outside of all fits

    @contextmanager
    def limited(self, size: int) -> Iterator[None]:
        """At most `size` threads, or fewer if another active limit is lower."""
        with self._lock:
            if not self._limits:
                if not self._libraries:  # this inspects the loaded libraries: milliseconds, once
                    self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                self._before = [library.num_threads for library in self._libraries]
            self._change(lambda: self._limits.append(size))
        try:
            yield
        finally:
            with self._lock:
                self._change(lambda: self._limits.remove(size))

    def _change(self, change: Callable[[], None]) -> None:
        """Change the limits, and set the libraries' threads if the lowest limit changes."""
        before = min(self._limits, default=None)
        change()
        after = min(self._limits, default=None)
        if after != before:
            for library, outside in zip(self._libraries, self._before, strict=True):
                library.set_num_threads(outside if after is None else after)


blas_threads = _BlasThreads()
ALONE = ThreadPool(1)


def thread_pool(n_jobs: int | None) -> ThreadPool:
    """The pool that `n_jobs` means. None is one thread, for BLAS as well: its idle threads would keep cores busy."""
    size = thread_count(n_jobs)
    return ThreadPool(size, size)


def thread_count(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`: None is one, −1 all available cores, −2 all but one (as joblib).

    Examples
    --------
    >>> thread_count(None), thread_count(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None for one thread or -1 for all cores")
    if n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {MOST_THREADS}, got {n_jobs}; use -1 for all cores")
    if n_jobs > 0:
        return int(n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, cores + 1 + n_jobs)
