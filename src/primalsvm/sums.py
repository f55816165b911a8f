"""Sums over rows, given scores or dual variables; the b and the α at which they balance."""

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.losses import conjugate, feasible, slope, value
from primalsvm.rows import Weights, weight_of

# Of the search for the best b:
NEARBY = 1 / 64  # of the scores' reach: the first bracket around it
NARROW = 1 / 128  # of the scores' reach: in a bracket so narrow few rows have a say


@kernel
def loss_sum(loss, y, weight, scores, b):  # type: ignore[no-untyped-def]  # compiled: types come from the arguments
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
def squares(weight, values):  # type: ignore[no-untyped-def]  # as above
    """Σ (cᵢ valueᵢ)²."""
    total = 0.0
    for i in range(np.uint64(values.shape[0])):
        total += (weight_of(weight, i) * values[i]) ** 2
    return total


@kernel
def loss_sums(loss, signs, weight, scores, b):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ ℓ(y_ik, scores_ik + b_k), for each k."""
    out = np.zeros(b.shape[0])
    for i in range(np.uint64(scores.shape[0])):
        c = weight_of(weight, i)
        for k in range(np.uint64(b.shape[0])):
            out[k] += c * value(loss, scores[i, k] + b[k], np.float64(signs[i, k]))
    return out


@kernel
def dual_sums(loss, signs, weight, alpha, balance):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ (−ℓ*(−α_ik)), for each k; balance[k] ← Σ cᵢ α_ik."""
    out = np.zeros(balance.shape[0])
    balance[:] = 0.0
    for i in range(np.uint64(alpha.shape[0])):
        c = weight_of(weight, i)
        if c > 0.0:
            for k in range(np.uint64(balance.shape[0])):
                a = np.float64(alpha[i, k])
                out[k] -= c * conjugate(loss, -a, np.float64(signs[i, k]))
                balance[k] += c * a
    return out


@kernel
def slopes(loss, y, scores, b, out):  # type: ignore[no-untyped-def]  # as above
    """out ← ℓ'(yᵢ, scoreᵢ + b)."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = slope(loss, scores[i] + b, y[i])


@kernel
def slope_sum(loss, y, weight, scores, b, tilt):  # type: ignore[no-untyped-def]  # as above
    """The derivative of Σ cᵢ ℓ(yᵢ, scoreᵢ + b) + tilt · b in b: increasing."""
    total = tilt
    for i in range(np.uint64(y.shape[0])):
        total += weight_of(weight, i) * slope(loss, scores[i] + b, y[i])
    return total


@kernel
def sifted(loss, y, weight, scores, low, high):  # type: ignore[no-untyped-def]  # as above
    """The rows with another slope at low than at high (y, weights, scores), and Σ cᵢ ℓ' of the others.

    Slopes increase with b, so theirs are the same all between.
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
    c = np.empty(count, weight.values.dtype)
    for r in range(count):
        c[r] = weight_of(weight, chosen[r])
    chosen = chosen[:count]
    return y[chosen], Weights(c, 1), scores[chosen], settled


@kernel
def crossing(loss, y, weight, scores, settled, low, high, level):  # type: ignore[no-untyped-def]  # as above
    """Both sides of the b at which settled + Σ cᵢ ℓ'(scoreᵢ + b) comes to exceed a level, and the sum above it."""
    above = np.inf
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        at_middle = settled + slope_sum(loss, y, weight, scores, middle, 0.0)
        if at_middle > level:
            high, above = middle, at_middle
        else:
            low = middle
    return low, high, above


@kernel
def best_intercept(loss, y, weight, scores, tilt, near):  # type: ignore[no-untyped-def]  # as above
    """The middle of {b : 0 is a sub-gradient}, or its upper end where there is no other.

    By bisection, from around a guess (NaN: none), first on all rows, then on those that still have a say.
    """
    reach = 2.0
    size = 0.0
    for i in range(np.uint64(y.shape[0])):
        reach = max(reach, 2.0 + abs(scores[i]) + abs(y[i]))
        size += weight_of(weight, i)
    zero = 1e-14 * size  # slopes that cancel do so up to rounding
    guessed = abs(near) < reach
    centre, spread = (near, NEARBY * reach) if guessed else (0.0, reach)
    low, high = centre - spread, centre + spread
    at_low = 0.0
    for _ in range(60):  # enough for slopes that never quite vanish, as the logistic loss has
        at_low = slope_sum(loss, y, weight, scores, low, tilt)
        if at_low < -zero and slope_sum(loss, y, weight, scores, high, tilt) > zero:
            break
        spread *= 2.0
        low, high = centre - spread, centre + spread
    endless = at_low >= -zero  # an interval without a lower end, as the one-class problem has for ν = 1
    while high - low > NARROW * reach:
        middle = 0.5 * (low + high)
        at_middle = slope_sum(loss, y, weight, scores, middle, tilt)
        if abs(at_middle) <= zero:
            break
        if at_middle < 0.0:
            low = middle
        else:
            high = middle
    few_y, few_weight, few_scores, settled = sifted(loss, y, weight, scores, low, high)
    settled += tilt
    low, left, at_left = crossing(loss, few_y, few_weight, few_scores, settled, low, high, -zero)
    if at_left > zero:
        return left
    right, _, _ = crossing(loss, few_y, few_weight, few_scores, settled, low, high, zero)
    return right if endless else 0.5 * (left + right)


@kernel
def shifted(loss, y, weight, alpha, shift, among):  # type: ignore[no-untyped-def]  # as above
    """Σ cᵢ aᵢ of the rows `among`, with a = α moved by −shift inside the dual domain."""
    total = 0.0
    for i in among:
        total += weight_of(weight, i) * feasible(loss, np.float64(alpha[i]) - shift, y[i])
    return total


@kernel
def clip(loss, y, alpha, out):  # type: ignore[no-untyped-def]  # as above
    """out ← the nearest point to α inside the dual domain."""
    for i in range(np.uint64(y.shape[0])):
        out[i] = feasible(loss, np.float64(alpha[i]), y[i])


@kernel
def balance(loss, y, weight, alpha, target, out):  # type: ignore[no-untyped-def]  # as above
    """Project α onto Σ cᵢ αᵢ = target by a common shift, of the free rows alone if they can take it up.

    A free row has margin 1, so moving it costs nothing to first order; moving rows off their bounds does. The sum is
    continuous, piecewise linear and decreasing in the shift: its root is found by regula falsi, safeguarded by halving.
    """
    m = y.shape[0]
    moving = np.empty(m, np.uint32)
    free = 0
    size, bound, reach = 0.0, -target, 1.0
    for i in range(np.uint64(m)):
        c, a = weight_of(weight, i), np.float64(alpha[i])
        out[i] = a
        size += c
        reach = max(reach, 2.0 * abs(a))
        if a != 0.0 and feasible(loss, 1.5 * a, y[i]) != a:
            moving[free] = i
            free += 1
        else:
            bound += c * a
    moving = moving[:free]
    at_low = bound + shifted(loss, y, weight, alpha, -reach, moving)
    at_high = bound + shifted(loss, y, weight, alpha, reach, moving)
    if at_low < 0.0 or at_high > 0.0:
        moving, bound = np.arange(m).astype(np.uint32), -target
        for _ in range(100):  # a target at the very end of what α can reach is only reached up to rounding
            at_low = bound + shifted(loss, y, weight, alpha, -reach, moving)
            at_high = bound + shifted(loss, y, weight, alpha, reach, moving)
            if at_low >= 0.0 >= at_high:
                break
            reach *= 2.0
    low, high = -reach, reach
    root = 0.0
    for k in range(200):
        at_root = bound + shifted(loss, y, weight, alpha, root, moving)
        if abs(at_root) <= 1e-15 * size or high - low <= 1e-17 * reach:
            break
        if at_root > 0.0:
            low, at_low = root, at_root
        else:
            high, at_high = root, at_root
        falsi = low + (high - low) * at_low / (at_low - at_high) if at_low > at_high else low
        root = falsi if k % 3 < 2 and low < falsi < high else 0.5 * (low + high)
    for i in moving:
        out[i] = feasible(loss, np.float64(alpha[i]) - root, y[i])
