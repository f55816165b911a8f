"""Streams: rows that arrive in parts, each visited once.

The state of a stream is made by `stochastic.begin`. Rows that do not fill a step wait in the state. The average is over
the present and the previous bucket of iterates. Buckets end at fixed step numbers, so the result does not depend on how
the stream was cut.
"""

from dataclasses import replace

import numpy as np

from primalsvm.data import Batch, Vector
from primalsvm.losses import Loss
from primalsvm.solvers.stochastic import (
    RunOptions,
    StochasticState,
    average_sum,
    refresh_norm,
    reset_average,
    step_over,
)


def absorb(loss: Loss, batch: Batch, state: StochasticState) -> StochasticState:
    """A step for each k rows, in the order in which they come; rows left over wait for the next call."""
    if state.pending is not None:
        batch = state.pending.join(batch)
    k, rows = state.options.batch_size, batch.y.shape[0]
    absorb_steps(loss, batch, state, rows // k)
    done = rows // k * k
    state.pending = batch.take(np.arange(done, rows)) if done < rows else None
    return state


def absorb_steps(loss: Loss, batch: Batch, state: StochasticState, steps: int) -> None:
    """A number of steps over the first rows."""
    options, k = state.options, state.options.batch_size
    taken = 0
    while taken < steps:
        end = bucket_end(options, state.steps)
        n = min(steps - taken, end - state.steps)
        step_over(
            loss, batch, state, np.arange(taken * k, (taken + n) * k, dtype=np.uint64), state.slopes, state.visits
        )
        taken += n
        state.steps += n
        state.epoch = float(state.steps)
        if state.steps < end:
            continue
        refresh_norm(state)
        if options.average == "suffix":
            state.before = average_sum(state)
            reset_average(state)


def bucket_end(options: RunOptions, t: int) -> int:
    """The first end of a bucket after t steps: multiples of `last`, or powers of two."""
    return (
        (t // options.average_last + 1) * options.average_last
        if options.average_last is not None
        else 1 << int(t).bit_length()
    )


def widen(state: StochasticState, d: int) -> StochasticState:
    """The state of a stream whose rows have d columns from now on, the new ones zero so far."""

    def longer(vector: Vector) -> Vector:
        return np.pad(vector, (0, d - vector.shape[0])) if vector.shape[0] else vector

    return replace(
        state,
        v=longer(state.v),
        u=longer(state.u),
        chosen=(longer(state.chosen[0]), state.chosen[1]),
        pending=None if state.pending is None else state.pending.widen(d),
        before=None if state.before is None else state.before._replace(w=longer(state.before.w)),
    )
