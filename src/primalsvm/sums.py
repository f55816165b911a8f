"""Functions of pieces of targets, weights, scores and dual variables, which `objective` passes to data sets.

Each loops over the rows of its piece. Arguments that are the same for all rows come first.
"""

from typing import Any

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data.blocks import Vector, Weights, weight_of
from primalsvm.losses import conjugate, feasible, slope, value


@kernel
def loss_sum(loss, b, y, weight, scores):  # type: ignore[no-untyped-def]  # compiled: types come from the arguments
    """Σ cᵢ ℓ(yᵢ, scoreᵢ + b)."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * value(loss, scores[i] + b, y[i])
    return total


@kernel
def dual_sum(loss, y, weight, alpha):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ (−ℓ*(−αᵢ))."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        c = weight_of(weight, i)
        if c > 0.0:
            total -= c * conjugate(loss, -np.float64(alpha[i]), y[i])
    return total


@kernel
def weighted_sum(weight, values):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ valueᵢ."""
    total = 0.0
    for i in range(np.uint64(values.shape[0])):
        total += weight_of(weight, i) * values[i]
    return total


@kernel
def weighted_squares(weight, values):  # type: ignore[no-untyped-def]  # as above
    """Σ (cᵢ valueᵢ)²."""
    total = 0.0
    for i in range(np.uint64(values.shape[0])):
        total += (weight_of(weight, i) * values[i]) ** 2
    return total


@kernel
def slopes(loss, b, y, scores, out):  # type: ignore[no-untyped-def]  # as above
    """out ← ℓ'(yᵢ, scoreᵢ + b)."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = slope(loss, scores[i] + b, y[i])


@kernel
def clip(loss, y, alpha, out):  # type: ignore[no-untyped-def]  # as above
    """out ← the nearest point to α inside the dual domain."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = feasible(loss, np.float64(alpha[i]), y[i])


@kernel
def misclassified_weight(b, y, weight, scores):  # type: ignore[no-untyped-def]  # as above
    """The weight of the rows on the wrong side of 0."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * ((scores[i] + b > 0.0) != (y[i] > 0.0))
    return total


def ones(out: Vector) -> None:
    """out ← 1."""
    out[:] = 1.0


def centred_squares(centre: float, weight: Weights, values: Vector) -> float:
    """Σ cᵢ (valueᵢ − centre)²."""
    return float(weight.array(values.shape[0]) @ np.square(values - centre))


def largest_size(values: Vector) -> float:
    """max |valueᵢ|."""
    return float(np.abs(values).max())


def side_weights(y: Vector, weight: Weights) -> tuple[float, float]:
    """Σc of the negative labels, and of the positive ones."""
    c = weight.array(y.shape[0])
    return float(c @ (y < 0.0)), float(c @ (y > 0.0))


# ---- the best intercept ----------------------------------------------------------------------------------------------


@kernel
def slope_sum(loss, b, y, weight, scores):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ ℓ'(yᵢ, scoreᵢ + b): increasing in b."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * slope(loss, scores[i] + b, y[i])
    return total


@kernel
def score_extent(y, scores):  # type: ignore[no-untyped-def]  # as above
    """2 + max |scoreᵢ| + |yᵢ|: a bound of the best intercept."""
    reach = 2.0
    for i in range(np.uint64(y.shape[0])):
        reach = max(reach, 2.0 + abs(scores[i]) + abs(y[i]))
    return reach


@kernel
def rows_between(loss, low, high, y, weight, scores):  # type: ignore[no-untyped-def]  # as above
    """The rows whose slopes at low and high differ (y, weights, scores), and Σ cᵢ ℓ' of the others.

    Slopes increase with b, so those of the other rows are constant between low and high.
    """
    chosen = np.empty(y.shape[0], np.uint32)
    count = 0
    settled = 0.0
    for i in range(np.uint64(y.shape[0])):
        at_low = slope(loss, scores[i] + low, y[i])
        differs = at_low != slope(loss, scores[i] + high, y[i])
        chosen[count] = i
        count += differs
        settled += 0.0 if differs else weight_of(weight, i) * at_low
    c = np.empty(count)
    for r in range(count):
        c[r] = weight_of(weight, chosen[r])
    chosen = chosen[:count]
    return y[chosen], c, scores[chosen], settled


def merge_rows(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join two results, each of arrays of rows and a sum."""
    *rows, total = first
    *others, more = second
    return (*(np.concatenate(pair) for pair in zip(rows, others, strict=True)), total + more)


@kernel
def crossing(loss, y, weight, scores, settled, low, high, level):  # type: ignore[no-untyped-def]  # as above
    """Both sides of the b from which settled + Σ cᵢ ℓ'(scoreᵢ + b) exceeds a level, and the sum just above that b."""
    above = np.inf
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        at_middle = settled + slope_sum(loss, middle, y, weight, scores)
        if at_middle > level:
            high, above = middle, at_middle
        else:
            low = middle
    return low, high, above


# ---- α that satisfies the constraint of a free intercept -------------------------------------------------------------


@kernel
def is_free(loss, alpha, y):  # type: ignore[no-untyped-def]  # as above
    """Whether α lies strictly inside its domain: 1.5 α is not clipped to α."""
    return alpha != 0.0 and feasible(loss, 1.5 * alpha, y) != alpha


@kernel
def free_rows(loss, y, weight, alpha):  # type: ignore[no-untyped-def]  # as above
    """The rows strictly inside their bounds (y, weights, α), and Σ cᵢ αᵢ of the others."""
    chosen = np.empty(y.shape[0], np.uint32)
    count = 0
    bound = 0.0
    for i in range(np.uint64(y.shape[0])):
        a = np.float64(alpha[i])
        free = is_free(loss, a, y[i])
        chosen[count] = i
        count += free
        bound += 0.0 if free else weight_of(weight, i) * a
    c = np.empty(count)
    for r in range(count):
        c[r] = weight_of(weight, chosen[r])
    chosen = chosen[:count]
    return y[chosen], c, alpha[chosen], bound


@kernel
def shifted_sum(loss, shift, y, weight, alpha):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ aᵢ, with a = α moved by −shift inside the dual domain: decreasing in the shift."""
    total = 0.0
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * feasible(loss, np.float64(alpha[i]) - shift, y[i])
    return total


@kernel
def shift_all(loss, shift, y, alpha, out):  # type: ignore[no-untyped-def]  # as above
    """out ← α moved by −shift inside the dual domain."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = feasible(loss, np.float64(alpha[i]) - shift, y[i])


@kernel
def shift_free(loss, shift, y, alpha, out):  # type: ignore[no-untyped-def]  # as above
    """The same for the rows strictly inside their bounds; the others stay."""
    for i in range(np.uint64(y.shape[0])):
        a = np.float64(alpha[i])
        out[i] = feasible(loss, a - shift, y[i]) if is_free(loss, a, y[i]) else a
