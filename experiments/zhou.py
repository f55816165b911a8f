"""Zhou's experiment: how the error of Pegasos on fresh rows falls with its steps, for several sizes of training set."""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table
from experiments.harness import Case, Claim, Found, Options, verdict
from primalsvm import Hinge, Pegasos, Problem, solve, theory

D, NOISE, LAM, DELTA = 10, 0.1, 0.01, 0.01

TITLE = "Zhou's experiment"
BUDGET = 60
ABOUT = (
    f"Rows are Gaussian, with {D} features and no longer than 1; their labels are the sign of a linear function, "
    f"{NOISE:.0%} of them flipped; λ = {LAM:g}. For each number of rows and of steps: the error on fresh rows, and the "
    "excess L(w̄) − L* of the expected objective, of the average w̄ of all iterates; means over training sets, with "
    "standard errors. 200,000 fresh rows stand for the distribution. Theorem 3.6 is the bound that holds with "
    f"probability {1 - DELTA:.0%}."
)


class Setting(NamedTuple):
    """What is measured."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    seeds: int
    fresh: int  # rows that stand for the distribution


FULL = Setting((100, 1_000, 10_000, 100_000), tuple(int(10 ** (k / 2)) for k in range(2, 12)), 20, 200_000)
QUICK = Setting((100, 5_000), (10, 100, 3_000), 3, 5_000)


def gaussian(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows no longer than 1, with labels of which a tenth is flipped."""
    rng, truth = np.random.default_rng(seed), np.random.default_rng(12345).normal(size=D)
    X = rng.normal(size=(m, D)) / math.sqrt(D)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ truth > 0, 1.0, -1.0)
    return X, np.where(rng.random(m) < NOISE, -y, y)


@cache
def distribution(fresh: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Fresh rows, and the least objective over them."""
    X, y = gaussian(fresh, seed=0)
    return X, y, solve(Problem(Hinge(), LAM), X, y, tol=1e-6).certificate.dual


def measure(m: int, setting: Setting) -> dict[str, Any]:
    """A row for each number of steps: mean error, mean excess, and the standard errors of both."""
    X, y, best = distribution(setting.fresh)
    rows = []
    for T in setting.steps:
        solver, both = Pegasos(n_iter=T, sampling="iid", average="uniform"), []
        for seed in range(1, setting.seeds + 1):
            w = solve(Problem(Hinge(), LAM), *gaussian(m, seed), solver=solver, certify=False, random_state=seed).w
            margins = y * (X @ w)
            both.append((np.mean(margins <= 0), LAM / 2 * w @ w + np.mean(np.maximum(0, 1 - margins)) - best))
        rows.append([*np.mean(both, axis=0), *np.std(both, axis=0) / math.sqrt(setting.seeds)])
    return {"rows": m, "steps": list(setting.steps), "found": np.array(rows).tolist()}


def cases(options: Options) -> list[Case]:
    """One for each size."""
    setting = QUICK if options.quick else FULL
    return [Case(f"{m:,} rows", partial(measure, m, setting)) for m in setting.sizes]


def bound(T: int) -> float:
    """Theorem 3.6, with probability 1 − δ."""
    return theory.corollary_3_6_2(LAM, T, DELTA)


def tables(found: Found) -> Iterator[Table]:
    """Error and excess of all sizes."""
    columns = [f"{name}: error, excess" for name in found]
    steps = next(iter(found.values()))["steps"]
    rows = []
    for k, T in enumerate(steps):
        cells = [f"{one['found'][k][0]:.2%}, {one['found'][k][1]:.1e}" for one in found.values()]
        rows.append((f"{T:,}", *cells, f"{bound(T):.1e}"))
    yield Table("Error on fresh rows and excess after T steps", ("steps", *columns, "Theorem 3.6"), rows)


def claims(found: Found) -> list[Claim]:
    """What the report says."""
    every = {one["rows"]: np.array(one["found"]) for one in found.values()}
    steps, largest = np.array(next(iter(found.values()))["steps"]), every[max(every)]
    hundred = int(np.argmin(np.abs(np.log(steps / 100))))
    larger = [rows[hundred, 0] for m, rows in every.items() if m > steps[hundred]]
    smaller = "".join(f"; with {m:,} rows {rows[hundred, 0]:.2%}" for m, rows in every.items() if m <= steps[hundred])
    slope = np.polyfit(np.log(steps), np.log(largest[:, 1]), 1)[0]
    below = all(rows[k, 1] <= bound(T) for rows in every.values() for k, T in enumerate(steps))
    same = max(larger) - min(larger) <= 0.01
    return [
        Claim(
            "Zhou, §4",
            "the generalisation error is invariant with the data size",
            verdict(same),
            f"after {steps[hundred]} steps {min(larger):.2%} to {max(larger):.2%} where there are more rows than "
            f"steps{smaller}; later each training set ends at its own optimum",
        ),
        Claim(
            "Zhou, §4",
            "the error is inversely proportional to the number of iterations",
            verdict(slope <= -0.85),
            f"the excess falls as T^{slope:.2f} ({max(every):,} rows)",
        ),
        Claim(
            "Zhou, §4",
            "100 iterations achieve the optimal performance",
            verdict(bool(largest[hundred, 0] <= largest[-1, 0] + 0.01)),
            f"{largest[hundred, 0]:.2%}, and {largest[-1, 0]:.2%} in the end: with λ = {LAM:g} the first steps are "
            "long, and the average remembers them",
        ),
        Claim(
            "Zhou, Theorem 3.6",
            "bounds the excess",
            verdict(below),
            f"at {steps[-1]:,} steps it is {bound(int(steps[-1])) / largest[-1, 1]:,.0f} times what is measured",
        ),
    ]


def figures(found: Found) -> dict[str, Any]:
    """Error and excess against steps."""
    from experiments.figures import GREY, panels, style

    figure, (error, excess) = panels(1, 2)
    steps = np.array(next(iter(found.values()))["steps"])
    for k, (name, one) in enumerate(found.items()):
        rows = np.array(one["found"])
        error.errorbar(steps, 100 * rows[:, 0], 100 * rows[:, 2], capsize=2, **style(k, name))
        excess.errorbar(steps, rows[:, 1], rows[:, 3], capsize=2, **style(k, name))
    first = next(iter(found.values()))["found"][0][1]
    error.axhline(100 * NOISE, color=GREY, linestyle=":", label="the noise")
    excess.plot(steps, [bound(T) for T in steps], color="black", label="Theorem 3.6")
    excess.plot(steps, first * steps[0] / steps, color=GREY, linestyle=":", label="1/T")
    error.set(xscale="log", xlabel="steps T", ylabel="error on fresh rows, %", ylim=(0, None))
    excess.set(xscale="log", yscale="log", xlabel="steps T", ylabel="L(w̄) − L*")
    for axes in (error, excess):
        axes.legend(frameon=False, fontsize=8)
    return {"zhou": figure}
