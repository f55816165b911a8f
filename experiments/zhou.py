"""Zhou's experiment: how the error of Pegasos on fresh rows falls with its steps, for several sizes of training set."""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, error_rate, hinge_objective
from experiments.harness import Case, Claim, Found, Options, Statement, compact, judged, verdict
from primalsvm import Hinge, Pegasos, Problem, solve, theory

D, NOISE, LAM, DELTA = 10, 0.1, 0.01, 0.01

TITLE = "Zhou's experiment"
BUDGET = 30
ABOUT = (
    f"Rows are Gaussian, with {D} features and no longer than 1; their labels are the sign of a linear function, "
    f"{NOISE:.0%} of them flipped; λ = {LAM:g}. For each number of rows and of steps: the error on fresh rows, and the "
    "excess L(w̄) − L* of the expected objective, of the average w̄ of all iterates; means over training sets, with "
    "standard errors. 200,000 fresh rows stand for the distribution. Corollary 3.6.2 is the bound that holds with "
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
    """A row for each number of steps: mean error, mean excess, the standard errors of both, and the largest excess."""
    X, y, best = distribution(setting.fresh)
    rows = []
    for T in setting.steps:
        solver, both = Pegasos(n_iter=T, sampling="iid", average="uniform"), []
        for seed in range(1, setting.seeds + 1):
            w = solve(Problem(Hinge(), LAM), *gaussian(m, seed), solver=solver, certify=False, random_state=seed).w
            both.append((error_rate(X, y, w), hinge_objective(X, y, w, LAM) - best))
        errors = np.std(both, axis=0, ddof=1) / math.sqrt(setting.seeds)
        rows.append([*np.mean(both, axis=0), *errors, np.max(both, axis=0)[1]])
    return {"rows": m, "steps": list(setting.steps), "found": np.array(rows).tolist()}


def cases(options: Options) -> list[Case]:
    """One for each size."""
    setting = QUICK if options.quick else FULL
    return [Case(f"{m:,} rows", partial(measure, m, setting)) for m in setting.sizes]


def bound(T: int) -> float:
    """Corollary 3.6.2, with probability 1 − δ."""
    return theory.corollary_3_6_2(LAM, T, DELTA)


def tables(found: Found) -> Iterator[Table]:
    """Error and excess of all sizes."""
    columns = [f"{name}: error, excess" for name in found]
    steps = next(iter(found.values()))["steps"]
    rows = []
    for k, T in enumerate(steps):
        cells = [f"{one['found'][k][0]:.2%}, {one['found'][k][1]:.1e}" for one in found.values()]
        rows.append((f"{T:,}", *cells, f"{bound(T):.1e}"))
    yield Table("Error on fresh rows and excess after T steps", ("steps", *columns, "Corollary 3.6.2"), rows)


def claims(found: Found) -> list[Claim]:
    """What the report says."""
    names = {m: f"{m:,} rows" for m in FULL.sizes}
    largest = names[FULL.sizes[-1]]
    return judged(
        [
            Statement(
                "Zhou, §4", "the generalisation error is invariant with the data size", names.values(), same_error
            ),
            Statement("Zhou, §4", "the expected objective's excess is ∝ 1/T", [largest], partial(falls, largest, 1)),
            Statement("Zhou, §4", "the error is ∝ 1/T", [largest], partial(falls, largest, 0)),
            Statement(
                "Zhou, §4", "100 iterations achieve the optimal performance", [largest], partial(hundred, largest)
            ),
            Statement("Zhou, Corollary 3.6.2", "bounds the excess of the average", names.values(), bounded),
        ],
        found,
    )


def rows_of(found: Found) -> dict[int, np.ndarray]:
    """The measurements of each size."""
    return {one["rows"]: np.array(one["found"]) for one in found.values()}


def same_error(found: Found) -> tuple[str, str]:
    """Sizes with more rows than steps, after each number of steps; three standard errors apart are allowed."""
    apart = {}
    for k, T in enumerate(FULL.steps):
        errors = np.array([rows[k, [0, 2]] for m, rows in rows_of(found).items() if m > T])
        if len(errors) > 1:
            apart[T] = np.ptp(errors[:, 0]), 3 * math.sqrt(2) * errors[:, 1].max() + 0.005
    worst = max(apart, key=lambda T: apart[T][0] / apart[T][1])
    last = ", ".join(f"{rows[-1, 0]:.1%}" for rows in rows_of(found).values())
    return verdict(all(spread <= allowed for spread, allowed in apart.values())), (
        f"among sizes with more rows than steps, after {worst:,} steps for example, errors differ by "
        f"{100 * apart[worst][0]:.1f} points ({100 * apart[worst][1]:.1f} allowed, three standard errors and a half "
        f"point); with more steps than rows each set ends at its own optimum: {last}"
    )


def falls(name: str, column: int, found: Found) -> tuple[str, str]:
    """How the excess, or the error above its last value, falls with T."""
    rows, steps = np.array(found[name]["found"]), np.array(found[name]["steps"])
    above = rows[:, column] - (0.0 if column == 1 else NOISE)
    slope = np.polyfit(np.log(steps), np.log(above), 1)[0]
    what = "the excess" if column == 1 else "the error above the noise"
    return verdict(slope <= -0.85), f"{what} falls as T^{slope:.2f} ({name})"


def hundred(name: str, found: Found) -> tuple[str, str]:
    """The error after 100 steps, and in the end."""
    rows, steps = np.array(found[name]["found"]), np.array(found[name]["steps"])
    after = rows[int(np.argmin(np.abs(np.log(steps / 100)))), 0]
    return verdict(bool(after <= rows[-1, 0] + 0.01)), (
        f"{after:.2%}, and {rows[-1, 0]:.2%} in the end: with λ = {LAM:g} the first steps are long, and the average "
        "remembers them"
    )


def bounded(found: Found) -> tuple[str, str]:
    """Runs whose rows are fresh, or nearly: no more steps than rows."""
    ratios = [bound(T) / rows[k, 4] for m, rows in rows_of(found).items() for k, T in enumerate(FULL.steps) if m >= T]
    return verdict(min(ratios) >= 1), (
        f"with at most as many steps as rows it is {compact(min(ratios))} to {compact(max(ratios))} times the largest "
        "excess of all runs"
    )


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
    excess.plot(steps, [bound(T) for T in steps], color="black", label="Corollary 3.6.2")
    excess.plot(steps, first * steps[0] / steps, color=GREY, linestyle=":", label="1/T")
    error.set(xscale="log", xlabel="steps T", ylabel="error on fresh rows, %", ylim=(0, None))
    excess.set(xscale="log", yscale="log", xlabel="steps T", ylabel="L(w̄) − L*")
    for axes in (error, excess):
        axes.legend(frameon=False, fontsize=8)
    return {"zhou": figure}
