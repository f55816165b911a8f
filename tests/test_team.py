"""A team of threads gives what one gives."""

import os

import numpy as np
import pytest

from primalsvm.inputs import as_batch
from primalsvm.rows import Dense, Mixed, fetched
from primalsvm.team import Team, team_size
from tests.reference import noisy, weights

X, Y = noisy(101, 5)
BATCH = as_batch(X, Y, weights(101))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_passes_over_the_rows(size):
    rng = np.random.default_rng(0)
    w, alpha = rng.normal(size=5), rng.normal(size=101)
    with Team(size) as team:
        np.testing.assert_allclose(team.scores(BATCH.rows, w), X @ w, rtol=1e-12)
        np.testing.assert_allclose(team.combine(BATCH, alpha), X.T @ (weights(101) * alpha), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_passes_over_mixed_rows(size):
    rng = np.random.default_rng(0)
    mixing, w, alpha = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=101)
    batch = BATCH._replace(rows=Mixed(Dense(X), mixing))
    with Team(size) as team:
        np.testing.assert_allclose(team.scores(batch.rows, w), X @ mixing @ w, rtol=1e-12)
        pulled = (X @ mixing).T @ (weights(101) * alpha)
        np.testing.assert_allclose(team.combine(batch, alpha), pulled, rtol=1e-12)
    np.testing.assert_allclose(fetched(batch.rows, np.array([7, 3])).values, (X @ mixing)[[7, 3]], rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 6, 101])
def test_ranges_cut_without_overlap(size, n):
    ranges = list(Team(size).ranges(n))
    assert len(ranges) == size
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(n))


def test_more_members_than_rows():
    with Team(7) as team:
        small = as_batch(X[:3], [1, -1, 1])
        np.testing.assert_allclose(team.combine(small, np.ones(3)), X[:3].sum(axis=0), rtol=1e-13)


@pytest.mark.parametrize("member", [0, 1])
def test_an_error_in_any_member_is_raised(member):
    def work(part):
        if part == member:
            raise RuntimeError(f"member {part}")
        return part

    with Team(2) as team, pytest.raises(RuntimeError, match=f"member {member}"):
        team.run(work, [(0,), (1,)])


def test_results_come_in_the_order_of_the_parts():
    with Team(3) as team:
        assert team.run(lambda part: part, [(i,) for i in range(10)]) == list(range(10))


def test_team_size():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert [team_size(n) for n in (None, 1, 4)] == [1, 1, 4]
    assert team_size(-1) == cores and team_size(-2) == max(1, cores - 1) and team_size(-100) == 1
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        team_size(0)
    with pytest.raises(ValueError, match="n_jobs must be at most 1024, got 1025"):
        team_size(1025)
