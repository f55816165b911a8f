"""Screening on a path of λ: predict from the last two points which rows do not move at the next λ.

    r  = log(λ_{k+1}/λ_k) / log(λ_k/λ_{k−1})                     at most 1
    p⁰ = p_k + r (p_k − p_{k−1})                                 the scores p_k are those of the last certificate
    e  = `SPREAD` · rms(p_k − p⁰_k)                              the error of the last prediction, more for longer steps
    rows whose α does not change for any score within p⁰ ± e are inactive

A wrong prediction costs only time: the certificate is over all rows, and rows that should not have been left out become
active.

Scores are about linear in log λ (measured on text: off by 0.02 to 0.1. Extrapolating λ p(λ), which is piecewise linear
in λ for the hinge (Hastie et al. 2004), is off by 0.06 to 0.14). Extrapolating α as well gains nothing: most rows that
move go from one bound to the other between two points.
"""

import math
from typing import NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Vector, weight_of
from primalsvm.losses import dual_step

# A row is inactive only if its α would not change when its score changes by this much (text, visits to rows: 0.97 times
# as many with 0.01 to 0.03, 1.10 with 0.3).
SLACK = 0.1
# At most this many sweeps in a row leave a row out (text, visits: 1.03 times as many with 7, as many with 31).
LONGEST_PAUSE = 15
# r is at most this: the line through two points is not extrapolated further.
FARTHEST = 1.0
# Scores may be off by this multiple of the last error (text: 1 is too small, 2 is as good).
SPREAD = 1.5


class PathStart(NamedTuple):
    """A dual point to start from, with v, norms and predicted scores of the same rows and weights."""

    alpha: Vector  # feasible
    centre: float  # of the intercept
    v: Vector  # Σ cᵢ αᵢ xᵢ
    norms: Vector  # ‖xᵢ‖²; −1: not known yet
    scores: Vector  # predicted for the solution, b included
    slack: float  # their error
    gap_ratio: float  # true gap / estimate at the last λ


class PathMemory(NamedTuple):
    """What the prediction for the point after the next one needs."""

    lam: float
    scores: Vector  # at this λ, b included
    centre: float
    predicted: Vector  # scores for the next λ


def predict(
    lam: float, last_lam: float, scores: Vector, centre: float, memory: PathMemory | None
) -> tuple[Vector, float, float]:
    """Scores and centre at the next λ, given those at the last one, and the error of the scores.

    Examples
    --------
    >>> memory = PathMemory(1.0, np.zeros(2), 0.0, np.array([1.0, 1.0]))
    >>> predict(0.01, 0.1, np.array([1.0, 3.0]), 0.5, memory)[:2]
    (array([2., 6.]), 1.0)
    """
    if memory is None:
        return scores, centre, SLACK
    step = math.log(lam / last_lam) / math.log(last_lam / memory.lam)
    r = min(step, FARTHEST)
    error = math.sqrt(np.square(scores - memory.predicted).mean())
    slack = SPREAD * error * (step / r)
    return scores + r * (scores - memory.scores), centre + r * (centre - memory.centre), slack


@kernel
def screen(y, weight, loss, scores, slack, alpha, skip, pause):  # type: ignore[no-untyped-def]  # compiled
    """Deactivate rows whose α does not change for any score within ±slack; activate the others."""
    for i in range(np.uint64(y.shape[0])):
        p, old = scores[i], alpha[i]
        below, above = dual_step(loss, p - slack, y[i], old, 1.0), dual_step(loss, p + slack, y[i], old, 1.0)
        # without branches, so that the compiler vectorises this
        inactive = (weight_of(weight, i) == 0.0) | ((below == old) & (above == old))
        pause[i] = LONGEST_PAUSE * inactive
        skip[i] = pause[i]
