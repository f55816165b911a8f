"""The visiting order: every active row, once, mixed from far-apart places."""

import numpy as np
import pytest

from primalsvm.solvers.order import RUN, interleave, run_length, shuffled_runs

NONE_INACTIVE = np.zeros(0, np.uint8)


def order_of(m, skip=NONE_INACTIVE, seed=0):
    length = run_length(m)
    out = np.empty(-(-m // length) * length, np.uint64)
    n = interleave(shuffled_runs(np.random.default_rng(seed), m), length, m, skip, out)
    return out[:n].astype(int)


@pytest.mark.parametrize("m", [1, 2, 15, 17, 1000, 1025, 4096, 33_333, 100_000])
def test_every_row_once(m):
    assert np.array_equal(np.sort(order_of(m)), np.arange(m))


def test_small_data_get_a_plain_permutation():
    assert run_length(100) == 1 and run_length(10**7) == RUN
    assert not np.array_equal(order_of(100), order_of(100, seed=1))


def test_large_data_are_read_in_runs_from_far_apart_places():
    m = 100_000
    order = order_of(m)
    assert np.median(np.abs(np.diff(order))) > m / 10
    assert np.mean(order[16:] == order[:-16] + 1) > 0.9


def test_a_sorted_file_is_mixed():
    y = np.arange(100_000) < 50_000
    shares = y[order_of(100_000)].reshape(-1, 1000).mean(axis=1)
    assert shares.min() > 0.1 and shares.max() < 0.9


def test_inactive_rows_are_left_out_of_one_sweep_less_each_time():
    skip = np.zeros(5000, np.uint8)
    skip[::3] = 2
    active = np.flatnonzero(skip == 0)
    assert np.array_equal(np.sort(order_of(5000, skip)), active)
    assert set(skip[::3]) == {1}
    assert np.array_equal(np.sort(order_of(5000, skip)), active)
    assert np.array_equal(np.sort(order_of(5000, skip)), np.arange(5000))
