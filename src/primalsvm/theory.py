"""The bounds of the papers as functions, and their inverse: the number of steps that suffices.

Pegasos (Shalev-Shwartz, Singer and Srebro 2007) minimises f(w) = λ/2 ‖w‖² + (1/m) Σ max(0, 1 − yᵢ⟨w, xᵢ⟩) with steps of
length 1/(λt); R is the length of the longest row, T the number of steps. Its sub-gradients are bounded by

    G = √λ + R      with the projection onto the ball of radius 1/√λ (there λ‖w‖ ≤ √λ)
    G = 2R          without it (Zhou, Lemma 3.5: ‖w‖ ≤ R/λ)

Zhou's analysis bounds L(w) = E f(w; z), the expected loss on new examples: D_T = Σ (L(w_t) − L(w*)), R_T is the regret,
f is L-Lipschitz with values in [0, B].

ASSET (Lee and Wright 2011) minimises any convex f over a set of radius D_X, with stochastic sub-gradients of root mean
square D_G and steps D_X/(D_G √j); its output averages the iterates from N̄ = ⌈ρN⌉ on.

Errors in the texts are corrected here and noted in the docstrings. All bounds are for f(·) − f(w*) unless noted
otherwise.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from primalsvm.options import check_integer, check_number

LARGEST = 10**30  # steps of a plan, at most

# ---- Pegasos ---------------------------------------------------------------------------------------------------------


def gradient_bound(lam: float, R: float = 1.0, projection: bool = True) -> float:
    """G, the largest norm of a sub-gradient: √λ + R with projection, 2R without.

    Examples
    --------
    >>> gradient_bound(0.01), gradient_bound(0.01, projection=False)
    (1.1, 2.0)
    """
    _check(lam, R)
    return math.sqrt(lam) + R if projection else 2.0 * R


def lemma_1(lam: float, T: int, G: float) -> float:
    """Average regret of steps 1/(λt) on λ-strongly convex functions with sub-gradients up to G: G²(1 + ln T)/(2λT).

    Examples
    --------
    >>> lemma_1(0.1, 1, 2.0)
    20.0
    """
    _check(lam, G, "G")
    check_integer("T", T)
    return G * G * (1.0 + math.log(T)) / (2.0 * lam * T)


def theorem_1(lam: float, T: int, R: float = 1.0, projection: bool = True) -> float:
    """Average regret (1/T) Σ f(w_t; A_t) − f(w*; A_t) of Pegasos, T ≥ 3: c ln(T)/(λT).

    c = G², which is the paper's (√λ + R)² with projection. It follows from Lemma 1, as (1 + ln T)/2 ≤ ln T for T ≥ 3.

    Examples
    --------
    >>> round(theorem_1(0.01, 1000), 3)
    0.836
    """
    check_integer("T", T, low=3)
    G = gradient_bound(lam, R, projection)
    return G * G * math.log(T) / (lam * T)


def corollary_1(lam: float, T: int, R: float = 1.0, projection: bool = True) -> float:
    """The bound of Theorem 1 for the average (1/T) Σ w_t, if every step uses all rows (A_t = S).

    Examples
    --------
    >>> corollary_1(0.01, 1000) == theorem_1(0.01, 1000)
    True
    """
    return theorem_1(lam, T, R, projection)


def theorem_2(lam: float, T: int, R: float = 1.0, projection: bool = True) -> float:
    """The bound of Theorem 1 in expectation, for a random one of w_1 … w_T or their average, if rows are drawn i.i.d.

    Examples
    --------
    >>> theorem_2(0.01, 1000) == theorem_1(0.01, 1000)
    True
    """
    return theorem_1(lam, T, R, projection)


def theorem_3(lam: float, T: int, delta: float, R: float = 1.0, projection: bool = True) -> float:
    """c ln(T)/(δλT), a bound for a random one of w_1 … w_T with probability 1 − δ, by Markov's inequality.

    Examples
    --------
    >>> theorem_3(0.01, 1000, 0.5) == 2 * theorem_2(0.01, 1000)
    True
    """
    _check_share("delta", delta)
    return theorem_2(lam, T, R, projection) / delta


def tries(delta: float) -> int:
    """s = ⌈ln 1/δ⌉: the number of tries that all fail with probability at most δ, if each fails with at most 1/e.

    Examples
    --------
    >>> tries(0.5), tries(0.05), tries(0.001)
    (1, 3, 7)
    """
    _check_share("delta", delta)
    return max(1, math.ceil(-math.log(delta)))


def many_tries(lam: float, T: int, delta: float, R: float = 1.0, projection: bool = True) -> float:
    """c e s ln(T)/(λT), a bound for the best of s = ⌈ln 1/δ⌉ tries with probability 1 − δ.

    Each try takes T/s steps and returns a random iterate: Theorem 3 with δ = 1/e.

    Examples
    --------
    >>> many_tries(0.01, 10**6, 0.001) < theorem_3(0.01, 10**6, 0.001)
    True
    """
    s = tries(delta)
    check_integer("T", T, low=3 * s)
    return math.e * s * theorem_1(lam, T, R, projection)


# ---- Zhou's analysis: new examples -----------------------------------------------------------------------------------


def lemma_3_1(lam: float, L: float, excess: float) -> float:
    """Variance of ξ_t = L(w_t) − L(w*) − (f(w_t; z) − f(w*; z)): at most (2L²/λ) (L(w_t) − L(w*)).

    Examples
    --------
    >>> lemma_3_1(0.5, 1.0, 0.25)
    1.0
    """
    _check(lam, L, "L")
    return 2.0 * L * L / lam * excess


def lemma_3_2(sigma: float, b: float, delta: float) -> float:
    """Freedman: Σ X_t of martingale differences |X_t| ≤ b with Σ Var_t = σ² is at most max{2σ, 3b √ln(1/δ)} √ln(1/δ).

    It holds with probability 1 − 4 ln(T) δ, for δ < 1/e and T ≥ 3. (The text omits the last factor, but uses it.)

    Examples
    --------
    >>> import math
    >>> lemma_3_2(1.0, 0.0, math.exp(-4.0))
    4.0
    """
    _check_share("delta", delta, 1.0 / math.e)
    root = math.sqrt(-math.log(delta))
    return max(2.0 * sigma, 3.0 * b * root) * root


def confidence(T: int, delta: float) -> float:
    """The probability 1 − 4 ln(T) δ with which Lemma 3.2 and Theorems 3.3 and 3.6 hold.

    Examples
    --------
    >>> round(confidence(1000, 0.001), 4)
    0.9724
    """
    return 1.0 - 4.0 * math.log(T) * delta


def theorem_3_3(regret: float, lam: float, T: int, L: float, B: float, delta: float) -> float:
    """Mean excess D_T/T from the regret R_T, with probability 1 − 4 ln(T) δ.

    R_T/T + 2 √(2L² ln(1/δ)/λ) √R_T/T + max{8L²/λ, 6B} ln(1/δ)/T

    Examples
    --------
    >>> import math
    >>> theorem_3_3(0.0, 1.0, 10, 1.0, 1.0, math.exp(-1.5))
    1.2
    """
    _check(lam, L, "L")
    check_integer("T", T, low=3)
    _check_share("delta", delta, 1.0 / math.e)
    log = -math.log(delta)
    middle = 2.0 * math.sqrt(2.0 * L * L * log / lam) * math.sqrt(regret)
    return (regret + middle + max(8.0 * L * L / lam, 6.0 * B) * log) / T


def theorem_3_4(lam: float, T: int, L: float) -> float:
    """The regret R_T of projected steps 1/(λt): at most L²(1 + ln T)/(2λ). Lemma 1, summed.

    Examples
    --------
    >>> theorem_3_4(0.1, 1, 2.0)
    20.0
    """
    return T * lemma_1(lam, T, L)


def lemma_3_5(lam: float, R: float = 1.0) -> float:
    """‖w_t‖ ≤ R/λ, as w_{t+1} = (1/(λt)) Σ vᵢ with ‖vᵢ‖ ≤ R; in the text the sum has the wrong sign.

    Examples
    --------
    >>> lemma_3_5(0.01)
    100.0
    """
    _check(lam, R)
    return R / lam


def value_bound(lam: float, R: float = 1.0) -> float:
    """B = 3R²/(2λ) + 1, the largest value of λ/2 ‖w‖² + max(0, 1 − y⟨w, x⟩) where ‖w‖ ≤ R/λ.

    Examples
    --------
    >>> value_bound(0.5)
    4.0
    """
    _check(lam, R)
    return 1.5 * R * R / lam + 1.0


def theorem_3_6(lam: float, T: int, delta: float, R: float = 1.0) -> float:
    """Mean excess D_T/T of Pegasos without projection on new examples, with probability 1 − 4 ln(T) δ.

    2R²(1 + ln T)/(λT) + 8R² √(1 + ln T) √ln(1/δ)/(λT) + max{32R²/λ, 9R²/λ + 6} ln(1/δ)/T

    This is Theorem 3.3 with L = 2R, the regret of Theorem 3.4 and the B of `value_bound`.

    Examples
    --------
    >>> round(theorem_3_6(0.01, 100_000, 0.001), 4)
    0.3205
    """
    L = 2.0 * R
    return theorem_3_3(theorem_3_4(lam, T, L), lam, T, L, value_bound(lam, R), delta)


def corollary_3_6_1(lam: float, T: int, delta: float, R: float = 1.0) -> float:
    """Mean excess D_T/T with probability 1 − δ: Theorem 3.6 with δ/(4 ln T), O(ln(T/δ)/(λT)).

    Examples
    --------
    >>> corollary_3_6_1(0.01, 1000, 0.1) > theorem_3_6(0.01, 1000, 0.1)
    True
    """
    check_integer("T", T, low=3)
    _check_share("delta", delta)
    return theorem_3_6(lam, T, delta / (4.0 * math.log(T)), R)


def corollary_3_6_2(lam: float, T: int, delta: float, R: float = 1.0) -> float:
    """L(w̄) − L(w*) of the average w̄ with probability 1 − δ: Corollary 3.6.1 by Jensen's inequality.

    Examples
    --------
    >>> corollary_3_6_2(0.01, 1000, 0.1) == corollary_3_6_1(0.01, 1000, 0.1)
    True
    """
    return corollary_3_6_1(lam, T, delta, R)


def corollary_3_6_3(lam: float, T: int, delta: float, R: float = 1.0) -> float:
    """L(w_t) − L(w*) of a random t with probability at least (1 − δ)/2: twice Corollary 3.6.1, by Markov's inequality.

    Examples
    --------
    >>> corollary_3_6_3(0.01, 1000, 0.1) == 2 * corollary_3_6_1(0.01, 1000, 0.1)
    True
    """
    return 2.0 * corollary_3_6_1(lam, T, delta, R)


def theorem_3_7(lam: float, T: int, R: float = 1.0) -> float:
    """E[D_T/T] = O(ln T/(λT)): Corollary 3.6.1 with δ = 1/T, plus B with probability 1/T.

    Examples
    --------
    >>> theorem_3_7(0.01, 10**6) < theorem_3_7(0.01, 10**5)
    True
    """
    check_integer("T", T, low=3)
    return corollary_3_6_1(lam, T, 1.0 / T, R) + value_bound(lam, R) / T


# ---- ASSET -----------------------------------------------------------------------------------------------------------


def asset_constant(rho: float) -> float:
    """C(ρ) = 2√ρ/(1 − ρ) + 1/2, which the paper does not give.

    With x* and all iterates within 2 D_X of each other, Σ_{t ≥ N̄} η_t E[f(x^t) − f*] ≤ 2 D_X² + ½ D_G² Σ η_t²
    (Nemirovski, Juditsky, Lan and Shapiro 2009, § 2.2). Divide by Σ η_t ≥ (N − N̄ + 1) D_X/(D_G √N), and use
    η_t ≤ D_X/(D_G √N̄):

        (D_X D_G/√N) (2N/(N − N̄ + 1) + ½ √(N/N̄))  ≤  C(ρ) D_X D_G/√N̄     for N̄ = ρN

    Examples
    --------
    >>> round(asset_constant(0.5), 3)
    3.328
    """
    _check_share("rho", rho)
    return 2.0 * math.sqrt(rho) / (1.0 - rho) + 0.5


def asset_theorem_1(D_X: float, D_G: float, N: int, rho: float = 0.5) -> float:
    """Expected error of ASSET's average from N̄ = ⌈ρN⌉ on, Theorem 1, eq. (28): about C(ρ) D_X D_G/√N̄.

    The value is (D_X D_G/√N) (2N/(N − N̄ + 1) + ½ √(N/N̄)), see `asset_constant`, which is slightly larger if ρN is not
    an integer.

    Examples
    --------
    >>> round(asset_theorem_1(10.0, 1.0, 10_000), 3)
    0.471
    """
    check_integer("N", N)
    check_number("D_X", D_X, 0.0, open_low=True)
    check_number("D_G", D_G, 0.0, open_low=True)
    _check_share("rho", rho)
    first = math.ceil(rho * N)
    return D_X * D_G / math.sqrt(N) * (2.0 * N / (N - first + 1) + 0.5 * math.sqrt(N / first))


# ---- run times -------------------------------------------------------------------------------------------------------


def pegasos_operations(d: float, lam: float, epsilon: float, R: float = 1.0, projection: bool = True) -> float:
    """Õ(d/(λε)): d operations (the non-zeros of a row) for each step required by Theorem 2, for any number of rows.

    Examples
    --------
    >>> pegasos_operations(76, 1e-4, 0.1) == 76 * plan(1e-4, 0.1).iterations
    True
    """
    return d * plan(lam, epsilon, R=R, projection=projection).iterations


def nystroem_operations(s: int, m: int, n: int, d: int | None = None) -> float:
    """O(s³ + s m (n + d)) for s landmarks, m rows of n features, and d ≤ s features that are kept.

    Examples
    --------
    >>> nystroem_operations(100, 1000, 10)
    12000000.0
    """
    return float(s) ** 3 + float(s) * m * (n + (s if d is None else d))


# ---- the planner -----------------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """A number of steps that suffices."""

    iterations: int  # of all tries
    tries: int
    bound: float  # on f(w) − f(w*)


def plan(lam: float, epsilon: float, delta: float | None = None, R: float = 1.0, projection: bool = True) -> Steps:
    """The smallest number of steps of Pegasos after which theory guarantees f(w) − f(w*) ≤ ε.

    Parameters
    ----------
    lam : λ
    epsilon : ε
    delta : the bound holds with probability 1 − δ, for a random iterate (Theorem 3) or the best of ⌈ln 1/δ⌉ tries,
        whichever takes fewer steps. None: it holds in expectation, for the average or a random iterate (Theorem 2)
    R : the length of the longest row
    projection : whether steps are projected onto the ball of radius 1/√λ

    Examples
    --------
    >>> plan(1e-2, 0.1).iterations, plan(1e-2, 0.1, delta=0.01).tries
    (11292, 5)
    """
    check_number("epsilon", epsilon, 0.0, open_low=True)
    if delta is None:
        return _fewest(lambda T: theorem_2(lam, T, R, projection), epsilon, 3, 1)
    once = _fewest(lambda T: theorem_3(lam, T, delta, R, projection), epsilon, 3, 1)
    s = tries(delta)
    often = _fewest(lambda T: many_tries(lam, T, delta, R, projection), epsilon, 3 * s, s)
    return min(once, often)


def _fewest(bound: Callable[[int], float], epsilon: float, least: int, s: int) -> Steps:
    """The smallest T ≥ `least` at which a decreasing bound is at most ε."""
    high = least
    while bound(high) > epsilon:
        high *= 2
        if high > LARGEST:
            raise ValueError(
                f"theory asks for more than {LARGEST:.0e} steps to reach epsilon={epsilon!r}: ask for less"
            )
    low = least - 1  # too few, or below the range of the bound
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= epsilon else (middle, high)
    return Steps(high, s, bound(high))


def _check(lam: float, length: float, name: str = "R") -> None:
    check_number("lam", lam, 0.0, open_low=True)
    check_number(name, length, 0.0)


def _check_share(name: str, value: float, high: float = 1.0) -> None:
    check_number(name, value, 0.0, high, open_low=True)
