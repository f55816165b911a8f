"""Streams: batches of rows are joined and taken apart with their weights, and may get more features."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import Hinge, Pegasos, Problem
from primalsvm.data import Batch, as_block, as_dataset, as_weights
from primalsvm.solvers import stochastic, streams
from tests.reference import noisy, weights

X, Y = noisy(40, 6)
C = weights(40)


def batch(rows, chosen, c=C):
    """Rows of the stream."""
    return Batch(as_block(rows[chosen]), Y[chosen], as_weights(None if c is None else c[chosen], len(Y[chosen])))


def begun(rows, **options):
    solver, first = Pegasos(**options), Problem(Hinge(), 0.05).on(as_dataset(rows), Y)
    return stochastic.begin(solver.run_options, solver.settings(first, np.ones(1)), first)


def arrays(batch):
    return batch.rows.matrix(), batch.y, batch.weight.array(batch.y.shape[0])


def assert_same(found, expected):
    for a, b in zip(arrays(found), arrays(expected), strict=True):
        np.testing.assert_array_equal(a.toarray() if sp.issparse(a) else a, b.toarray() if sp.issparse(b) else b)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("c", [None, C], ids=["plain", "weighted"])
def test_batches_are_joined_and_taken_apart(convert, c):
    rows, half = convert(X), np.arange(20)
    assert_same(batch(rows, half, c).join(batch(rows, half + 20, c)), batch(rows, np.arange(40), c))
    chosen = np.array([7, 3, 3])
    assert_same(batch(rows, np.arange(40), c).take(chosen), batch(rows, chosen, c))


def test_sparse_and_dense_batches_do_not_go_together():
    some = np.arange(3)
    with pytest.raises(ValueError, match="cannot be joined"):
        batch(X, some).join(batch(sp.csr_matrix(X), some))


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
@pytest.mark.parametrize("average", ["last", "suffix", "weighted"])
def test_weights_stay_with_their_rows_however_a_stream_is_cut(convert, average):
    found = []
    for edges in ([0, 40], [0, 1, 4, 19, 40]):
        state = begun(convert(X), batch_size=3, average=average)
        for a, b in itertools.pairwise(edges):
            state = streams.absorb(Hinge(), batch(convert(X), np.arange(a, b)), state)
        found.append(stochastic.output(state))
        assert state.steps == 13 and state.pending.y.shape == (1,)
    np.testing.assert_array_equal(found[0][0], found[1][0])


@pytest.mark.parametrize("average", ["last", "suffix", "weighted"])
def test_features_may_come_later(average):
    late = X.copy()
    late[:20, 4:] = 0.0
    rows = sp.csr_matrix(late)
    expected = streams.absorb(Hinge(), batch(rows, np.arange(40)), begun(rows, batch_size=3, average=average))
    state = begun(rows[:, :4], batch_size=3, average=average)
    state = streams.widen(streams.absorb(Hinge(), batch(rows[:, :4], np.arange(20)), state), 6)
    found = streams.absorb(Hinge(), batch(rows, np.arange(20, 40)), state)
    np.testing.assert_array_equal(stochastic.output(found)[0], stochastic.output(expected)[0])
