"""A team of threads for one fit: kernels release the GIL, each member takes a range of rows.

The work is cut by `n_jobs` alone and the parts are put together in order, so the same `n_jobs` gives the same bits. The
pool lives as long as one fit: nothing to break after a fork, nothing shared between fits in different threads.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from primalsvm.rows import (
    Batch,
    Dense,
    Distant,
    Mixed,
    Rows,
    Stored,
    Vector,
    Weights,
    combine_rows,
    readable,
    room_for,
    scores_of,
    shape,
)

ONCE_EACH = Weights(np.ones(1), 0)
MOST_THREADS = 1024


class Team:
    """`size` threads; used as a context manager.

    Examples
    --------
    >>> with Team(2) as team:
    ...     team.run(lambda part: part * part, [(1,), (2,), (3,)])
    [1, 4, 9]
    """

    def __init__(self, size: int = 1, blas: int | None = None) -> None:
        self.size = size
        self.blas = blas  # threads that BLAS may use between the members' work; None: as many as it is set to
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> "Team":
        if self.size > 1:  # the calling thread is a member too
            self._pool = ThreadPoolExecutor(self.size - 1, thread_name_prefix="primalsvm")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def run(self, work: Callable[..., Any], parts: list[tuple[Any, ...]]) -> list[Any]:
        """`work(*part)` for each part, every member taking each `size`-th one; results in the parts' order."""
        if self._pool is None or len(parts) == 1:
            return [work(*part) for part in parts]
        found: list[Any] = [None] * len(parts)

        def turn(member: int) -> None:
            for k in range(member, len(parts), self.size):
                found[k] = work(*parts[k])

        others = [self._pool.submit(turn, member) for member in range(1, min(self.size, len(parts)))]
        try:
            turn(0)
        finally:
            wait(others)  # nobody works on after an error
        for other in others:
            other.result()
        return found

    @contextmanager
    def blas_limited(self, working: bool = False) -> Iterator[None]:
        """BLAS keeps to this team's threads; while the members are `working` on their own, it leaves them the cores."""
        limit = 1 if working and self.size > 1 else self.blas
        if limit is None:
            yield
            return
        with blas_threads.limited(limit):
            yield

    def ranges(self, n: int) -> Iterator[tuple[int, int]]:
        """Cut 0 … n into `size` ranges."""
        edges = np.linspace(0, n, self.size + 1).astype(int)
        return zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)

    # The passes over all rows that more than one solver needs.

    def scores(self, rows: Rows, w: Vector) -> Vector:
        """⟨xᵢ, w⟩ for every row, in double precision."""
        if isinstance(rows, Mixed):
            mixed_w = np.empty(rows.mixing.shape[0])
            scores_of(Dense(rows.mixing), w, 0, mixed_w.shape[0], mixed_w)
            return self.scores(rows.base, mixed_w)
        m = shape(rows)[0]
        out = room_for(rows, m)

        def part(start: int, stop: int) -> None:
            for first, stored, a, b in readable(rows, start, stop):
                scores_of(stored, w, a, b, out[first:])

        self.run(part, list(self.ranges(m)))
        return out

    def combine(self, batch: Batch, alpha: Vector) -> Vector:
        """Σ cᵢ αᵢ xᵢ."""
        rows = batch.rows
        if isinstance(rows, Mixed):
            base = self.combine(batch._replace(rows=rows.base), alpha)
            mixed = np.zeros(rows.mixing.shape[1])
            combine_rows(Batch(Dense(rows.mixing), base, ONCE_EACH), base, 0, base.shape[0], mixed)
            return mixed
        m, d = shape(rows)

        def part(start: int, stop: int) -> Vector:
            out = np.zeros(d)
            for first, stored, a, b in readable(rows, start, stop):
                combine_rows(_from(batch, stored, first), alpha[first:], a, b, out)
            return out

        parts = self.run(part, list(self.ranges(m)))
        total: Vector = parts[0]
        for other in parts[1:]:
            total += other
        return total

    def scores_and_combine(self, batch: Batch, w: Vector, alpha: Vector) -> tuple[Vector, Vector]:
        """⟨xᵢ, w⟩ for every row, and Σ cᵢ αᵢ xᵢ, in one pass over rows that have to be brought."""
        rows = batch.rows
        if not isinstance(rows, Distant):
            return self.scores(rows, w), self.combine(batch, alpha)
        m, d = shape(rows)
        scores = room_for(rows, m)

        def part(start: int, stop: int) -> Vector:
            total = np.zeros(d)
            for first, here, a, b in readable(rows, start, stop):
                scores_of(here, w, a, b, scores[first:])
                combine_rows(_from(batch, here, first), alpha[first:], a, b, total)
            return total

        return scores, sum(self.run(part, list(self.ranges(m))), np.zeros(d))


def _from(batch: Batch, rows: Stored, first: int) -> Batch:
    """A batch of the rows at hand, which begin with number `first`."""
    weight = batch.weight._replace(values=batch.weight.values[first * batch.weight.stride :])
    return Batch(rows, batch.y[first:], weight)


class _BlasThreads:
    """How many threads BLAS may use: one number for the whole process, so fits that run at once must share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    @contextmanager
    def limited(self, size: int) -> Iterator[None]:
        """At most `size` threads while any fit is inside; then what it was before."""
        with self._lock:
            if self._controller is None:  # looks through the loaded libraries: milliseconds, once
                self._controller = ThreadpoolController()
            if self._users == 0:
                self._limit = self._controller.limit(limits=size, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limit.restore_original_limits()


blas_threads = _BlasThreads()


def team_for(n_jobs: int | None) -> Team:
    """The team that `n_jobs` means. None is one thread, of BLAS too: its threads spin when a core is busy."""
    size = team_size(n_jobs)
    return Team(size, size)


def team_size(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means: None is one, −1 all available cores, −2 all but one (as joblib).

    Examples
    --------
    >>> team_size(None), team_size(3)
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
