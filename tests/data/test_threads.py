"""A pool of threads gives what one thread gives."""

import os
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from primalsvm.data import ThreadPool, thread_count, thread_pool


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 6, 101])
def test_ranges_cut_without_overlap(size, n):
    ranges = list(ThreadPool(size).ranges(n))
    assert len(ranges) == size
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(n))


@pytest.mark.parametrize("thread", [0, 1])
def test_an_error_in_any_thread_is_raised(thread):
    def work(part):
        if part == thread:
            raise RuntimeError(f"thread {part}")
        return part

    with ThreadPool(2) as threads, pytest.raises(RuntimeError, match=f"thread {thread}"):
        threads.run(work, [(0,), (1,)])


def test_no_thread_works_on_after_an_error():
    done, slow = [], threading.Event()

    def work(part):
        if part == 0:
            slow.set()
            raise RuntimeError
        slow.wait()
        done.append(part)

    with ThreadPool(2) as threads:
        with pytest.raises(RuntimeError):
            threads.run(work, [(0,), (1,)])
        assert done == [1]


def test_results_come_in_the_order_of_the_parts():
    with ThreadPool(3) as threads:
        assert threads.run(lambda part: part, [(i,) for i in range(10)]) == list(range(10))


def test_thread_count():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert [thread_count(n) for n in (None, 1, 4)] == [1, 1, 4]
    assert thread_count(-1) == cores and thread_count(-2) == max(1, cores - 1) and thread_count(-100) == 1
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        thread_count(0)
    with pytest.raises(ValueError, match="n_jobs must be at most 1024, got 1025"):
        thread_count(1025)


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_blas_is_limited_while_threads_work_and_set_free_again():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = blas_threads()
    with ThreadPool(2, 2) as threads, threads.blas_limited(working=True):
        assert blas_threads() == {1}
    with thread_pool(None) as threads, threads.blas_limited():
        assert blas_threads() == {1}
    with ThreadPool(2, 2) as threads, threads.blas_limited():
        with threads.blas_limited(working=True):
            assert blas_threads() == {1}
        assert blas_threads() == {2}
    with ThreadPool(3) as threads, threads.blas_limited():
        assert blas_threads() == before
    assert blas_threads() == before
