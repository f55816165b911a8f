"""The exact free intercept: the best b for given scores, and the shift of α that gives Σ cᵢ αᵢ = ν Σc.

Both are roots of monotone sums over rows. `reduce` evaluates a sum where the rows are (`Dataset.reduce`). Once few rows
can change the root, these are fetched and the root is found from them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from primalsvm import sums
from primalsvm.data import Handle, Weights
from primalsvm.losses import Loss

Reduce = Callable[..., Any]

# A sum of slopes below this share of Σc is 0 up to rounding.
ROUNDING_OF_SLOPES = 1e-14
# An intercept below this share of the scores' size is 0 up to rounding: bisection comes near 0 but not to it.
ROUNDING_OF_INTERCEPTS = 2.0**-52


def best_intercept(
    reduce: Reduce,
    loss: Loss,
    linear: float,
    total: float,
    y: Handle,
    weight: Handle,
    scores: Handle,
    guess: float = math.nan,
) -> float:
    """The b that minimises Σ cᵢ ℓ(yᵢ, scoreᵢ + b) + linear · b.

    Of an interval of minimisers it is the middle, or the upper end if there is no lower one. What is 0 up to rounding
    is exactly 0.

    It is found by bisection around a `guess` (NaN: without one), first on all rows, then on those in the
    bracket.

    Parameters
    ----------
    reduce : evaluates sums over the rows
    total : Σc
    y, weight, scores : handles
    """

    def slope_at(b: float) -> float:
        return linear + float(reduce(partial(sums.slope_sum, loss, b), y, weight, scores))

    reach = float(reduce(sums.score_extent, y, scores, merge=max))
    zero = ROUNDING_OF_SLOPES * total
    guessed = abs(guess) < reach
    centre, spread = (guess, reach / 64) if guessed else (0.0, reach)
    low, high, at_low = centre - spread, centre + spread, 0.0
    for _ in range(60):  # slopes may be never exactly 0, as those of the logistic loss
        at_low = slope_at(low)
        if at_low < -zero and slope_at(high) > zero:
            break
        spread *= 2.0
        low, high = centre - spread, centre + spread
    endless = at_low >= -zero  # an interval without a lower end, as the one-class problem has for ν = 1
    while high - low > reach / 128:  # then few rows are left in the bracket
        middle = 0.5 * (low + high)
        at_middle = slope_at(middle)
        if abs(at_middle) <= zero:
            break
        low, high = (middle, high) if at_middle < 0.0 else (low, middle)
    few_y, c, few_scores, settled = reduce(
        partial(sums.rows_between, loss, low, high), y, weight, scores, merge=sums.merge_rows
    )
    few, settled = Weights(c, 1), settled + linear
    low, left, at_left = sums.crossing(loss, few_y, few, few_scores, settled, low, high, -zero)
    b = left
    if at_left <= zero:
        right = sums.crossing(loss, few_y, few, few_scores, settled, low, high, zero)[0]
        b = right if endless else 0.5 * (left + right)
    return float(b) if abs(b) > ROUNDING_OF_INTERCEPTS * reach else 0.0


def reduce_locally(function: Callable[..., Any], *pieces: Any, merge: Any = None) -> Any:
    """The `reduce` of arrays: the function of the whole arrays."""
    return function(*pieces)


def balancing_shift(
    reduce: Reduce, loss: Loss, wanted: float, total: float, y: Handle, weight: Handle, alpha: Handle
) -> tuple[Any, float]:
    """The kernel that shifts α, and the shift with which Σ cᵢ αᵢ = `wanted`.

    The rows strictly inside their bounds are shifted if these suffice (their margin is 1, so to first order D does not
    change), else all rows.
    """
    few_y, c, few_alpha, bound = reduce(partial(sums.free_rows, loss), y, weight, alpha, merge=sums.merge_rows)
    few = Weights(c, 1)

    def of_free(shift: float) -> float:
        return float(bound - wanted + sums.shifted_sum(loss, shift, few_y, few, few_alpha))

    def of_all(shift: float) -> float:
        return float(reduce(partial(sums.shifted_sum, loss, shift), y, weight, alpha)) - wanted

    if few_alpha.size:
        reach = 1.0 + 2.0 * float(np.abs(few_alpha).max())
        if of_free(-reach) >= 0.0 >= of_free(reach):
            return sums.shift_free, decreasing_root(of_free, reach, total)
    reach = max(1.0, 2.0 * float(reduce(sums.largest_size, alpha, merge=max)))
    return sums.shift_all, decreasing_root(of_all, reach, total)


def decreasing_root(function: Callable[[float], float], reach: float, size: float) -> float:
    """The root of a piecewise linear, decreasing function, by safeguarded regula falsi.

    The search begins in [−reach, reach], which is doubled until it has a root; a function that is at most 1e-15 `size`
    in size is 0 up to rounding.

    Examples
    --------
    >>> decreasing_root(lambda x: 0.25 - x, 1.0, 1.0)
    0.25
    """
    at_low, at_high = function(-reach), function(reach)
    for _ in range(100):  # a sum at the bound of the domain is reached up to rounding only
        if at_low >= 0.0 >= at_high:
            break
        reach *= 2.0
        at_low, at_high = function(-reach), function(reach)
    low, high, root = -reach, reach, 0.0
    for k in range(200):
        at_root = function(root)
        if abs(at_root) <= 1e-15 * size or high - low <= 1e-17 * reach:
            break
        if at_root > 0.0:
            low, at_low = root, at_root
        else:
            high, at_high = root, at_root
        falsi = low + (high - low) * at_low / (at_low - at_high) if at_low > at_high else low
        root = falsi if k % 3 < 2 and low < falsi < high else 0.5 * (low + high)
    return root
