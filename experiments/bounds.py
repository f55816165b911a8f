"""Bound checks: how often the bounds of the papers are violated, and how loose they are, over 200 runs each."""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table
from experiments.harness import Case, Claim, Found, Options, compact, verdict
from experiments.zhou import D, gaussian
from primalsvm import Asset, Hinge, Pegasos, Problem, solve, theory

DELTA = 0.05
ROWS, FRESH = 1_000, 100_000
STEPS = (100, 1_000, 10_000)
LAMBDAS = (0.1, 0.01, 0.001)
REGRET_STEPS = 1_000
SEEDS, QUICK_SEEDS = 200, 20

TITLE = "The bounds"
BUDGET = 90
ABOUT = (
    f"Gaussian rows no longer than 1 (as in Zhou's experiment, {ROWS:,} of them), hinge loss, independent draws, "
    f"{SEEDS} seeds. Measured: P(w) − P* for what each theorem is about, against its bound, with δ = {DELTA:g} where "
    "there is one. A bound on a mean is violated if the mean is above it; a bound that holds with probability 1 − δ "
    "may be violated in a share δ of the runs. How loose a bound is: the bound over the measured mean. In the "
    "figure, shaded: from the mean to the largest of all runs."
)


class Check(NamedTuple):
    """A theorem, and the run that it is about."""

    theorem: str
    about: str
    bound: Callable[[float, int], float]  # of λ and T
    options: dict[str, Any]
    in_mean: bool  # a bound on the mean; else with probability 1 − δ


def pegasos_checks(projection: bool) -> list[Check]:
    """The theorems of the Pegasos paper."""
    common = {"sampling": "iid", "projection": projection}
    ball = {"R": 1.0, "projection": projection}
    return [
        Check(
            "Theorem 2",
            "a random iterate, in the mean",
            lambda lam, T: theory.theorem_2(lam, T, **ball),
            {**common, "average": "random"},
            True,
        ),
        Check(
            "Theorem 2 and convexity",
            "the average, in the mean",
            lambda lam, T: theory.theorem_2(lam, T, **ball),
            {**common, "average": "uniform"},
            True,
        ),
        Check(
            "Theorem 3",
            "a random iterate",
            lambda lam, T: theory.theorem_3(lam, T, DELTA, **ball),
            {**common, "average": "random"},
            False,
        ),
        Check(
            "many tries",
            f"the best of {theory.tries(DELTA)} random iterates",
            lambda lam, T: theory.many_tries(lam, T, DELTA, **ball),
            {**common, "average": "random", "tries": theory.tries(DELTA)},
            False,
        ),
        Check(
            "Corollary 1",
            "the average, all rows in each step",
            lambda lam, T: theory.corollary_1(lam, T, **ball),
            {"sampling": "distinct", "batch_size": ROWS, "projection": projection, "average": "uniform"},
            True,
        ),
    ]


@cache
def problem_of(lam: float, intercept: str = "none") -> tuple[Problem, np.ndarray, np.ndarray, float]:
    """A problem, its rows, and P*."""
    problem = Problem(Hinge(), lam, intercept)
    X, y = gaussian(ROWS, seed=1)
    return problem, X, y, solve(problem, X, y, tol=1e-9).certificate.dual


def objective(lam: float, X: np.ndarray, y: np.ndarray, w: np.ndarray, b: float = 0.0) -> float:
    """P in plain NumPy."""
    return float(lam / 2 * w @ w + np.mean(np.maximum(0.0, 1.0 - y * (X @ w + b))))


def check(one: Check, lam: float, T: int, seeds: int) -> dict[str, float]:
    """Excesses over seeds against the bound."""
    problem, X, y, best = problem_of(lam)
    solver = Pegasos(n_iter=T, **one.options)
    deterministic = one.options["sampling"] == "distinct"
    found = []
    for seed in range(1 if deterministic else seeds):
        w = solve(problem, X, y, solver=solver, random_state=seed, certify=False).w
        found.append(objective(lam, X, y, w) - best)
    return summary(found, one.bound(lam, T), one.in_mean)


def check_asset(N: int, seeds: int) -> dict[str, float]:
    """ASSET's Theorem 1, with constants that bound everywhere."""
    lam, B = 0.01, 3.0
    problem, X, y, best = problem_of(lam, "free")
    D_X, D_G = math.hypot(1 / math.sqrt(lam), B), math.sqrt(lam) + math.sqrt(2.0)
    solver = Asset(n_iter=N, sampling="iid", D_X=D_X, D_G=D_G, B=B)
    found = []
    for seed in range(seeds):
        solution = solve(problem, X, y, solver=solver, random_state=seed, certify=False)
        found.append(objective(lam, X, y, solution.w, solution.b) - best)
    return summary(found, theory.asset_theorem_1(D_X, D_G, N, 0.5), True)


def check_zhou(T: int, seeds: int) -> dict[str, float]:
    """Corollary 3.6.2: the average, fresh rows in each step."""
    lam = 0.01
    problem = Problem(Hinge(), lam)
    X, y = gaussian(FRESH, seed=0)
    best = solve(problem, X, y, tol=1e-6).certificate.dual
    solver = Pegasos(n_iter=T, sampling="epochs", average="uniform")  # T rows, each seen once: they are fresh
    found = []
    for seed in range(1, seeds + 1):
        w = solve(problem, *gaussian(T, seed), solver=solver, random_state=seed, certify=False).w
        found.append(objective(lam, X, y, w) - best)
    return summary(found, theory.corollary_3_6_2(lam, T, DELTA), False)


def check_regret(lam: float, T: int, projection: bool, seeds: int) -> dict[str, float]:
    """Theorem 1: the mean of f(w_t; A_t) − f(w*; A_t) over the steps, in every run."""
    problem, X, y, _ = problem_of(lam)
    best = solve(problem, X, y, tol=1e-9).w
    radius = 1 / math.sqrt(lam) if projection else math.inf
    found = []
    for seed in range(seeds):
        rng, w, total = np.random.default_rng(seed), np.zeros(D), 0.0
        for t in range(1, T + 1):
            i = rng.integers(ROWS)
            x, label = X[i], y[i]
            total += lam / 2 * (w @ w - best @ best) + max(0, 1 - label * (w @ x)) - max(0, 1 - label * (best @ x))
            w = (1 - 1 / t) * w + (label * (w @ x) < 1) * label * x / (lam * t)
            w *= min(1.0, radius / (np.linalg.norm(w) or 1.0))
        found.append(total / T)
    return {**summary(found, theory.theorem_1(lam, T, 1.0, projection), False), "allowed": 0.0}


def summary(found: list[float], bound: float, in_mean: bool) -> dict[str, float]:
    """Violations and looseness."""
    values = np.array(found)
    mean = float(values.mean())
    return {
        "bound": bound,
        "mean": mean,
        "largest": float(values.max()),
        "violations": float(mean > bound) if in_mean else float(np.mean(values > bound)),
        "allowed": 0.0 if in_mean else DELTA,
        "looseness": bound / mean,
        "runs": len(found),
    }


def cases(options: Options) -> list[Case]:
    """Every theorem, with each λ and T."""
    seeds = QUICK_SEEDS if options.quick else SEEDS
    steps, lambdas = (STEPS[:1], LAMBDAS[1:2]) if options.quick else (STEPS, LAMBDAS)
    made = []
    for projection in (True, False):
        how = "projection" if projection else "no projection"
        made += [
            Case(
                f"Pegasos, Theorem 1 | the regret, {how} | {lam:g} | {REGRET_STEPS}",
                partial(check_regret, lam, REGRET_STEPS, projection, seeds),
            )
            for lam in lambdas
        ]
        for one in pegasos_checks(projection):
            for lam in lambdas:
                for T in steps:
                    name = f"Pegasos, {one.theorem} | {one.about}, {how} | {lam:g} | {T}"
                    made.append(Case(name, partial(check, one, lam, T, seeds)))
    for T in steps:
        made.append(
            Case(f"Zhou, Corollary 3.6.2 | the average, fresh rows | 0.01 | {T}", partial(check_zhou, T, seeds))
        )
        made.append(
            Case(f"ASSET, Theorem 1 | the average, free intercept | 0.01 | {T}", partial(check_asset, T, seeds))
        )
    return made


def tables(found: Found) -> Iterator[Table]:
    """All checks."""
    rows = []
    for name, one in found.items():
        theorem, about, lam, T = name.split(" | ")
        numbers = [compact(one[key]) for key in ("bound", "mean", "largest")]
        shares = (f"{one['violations']:.1%}", f"{one['allowed']:.0%}")
        rows.append(
            (theorem, about, lam, f"{int(T):,}", *numbers, *shares, compact(one["looseness"]), f"{one['runs']}")
        )
    columns = (
        "theorem",
        "about",
        "λ",
        "steps",
        "bound",
        "mean",
        "largest",
        "violated",
        "allowed",
        "bound / mean",
        "runs",
    )
    yield Table("Bounds against what happens", columns, rows)


def claims(found: Found) -> list[Claim]:
    """One for each theorem."""
    by_theorem: dict[str, list[dict[str, float]]] = {}
    for name, one in found.items():
        by_theorem.setdefault(name.split(" | ")[0], []).append(one)
    made = []
    for theorem, checks in by_theorem.items():
        worst = max(one["violations"] - one["allowed"] for one in checks)
        loose = [one["looseness"] for one in checks]
        share = max(one["violations"] for one in checks)
        made.append(
            Claim(
                theorem,
                "the bound holds",
                verdict(worst <= 0),
                f"violated in at most {share:.1%} of the runs ({checks[0]['allowed']:.0%} allowed); it is "
                f"{compact(min(loose))} to {compact(max(loose))} times the mean",
            )
        )
    return made


def figures(found: Found) -> dict[str, Any]:
    """Bounds and measured excess against T, for each λ, with projection."""
    from experiments.figures import below, panels, style

    lambdas = sorted({name.split(" | ")[2] for name in found}, key=float, reverse=True)
    figure, axes = panels(1, len(lambdas), width=4.0)
    shown = {
        "a random iterate, in the mean": "Theorem 2: its mean",
        "the average, in the mean": None,  # the same bound
        f"the best of {theory.tries(DELTA)} random iterates": f"many tries: {1 - DELTA:.0%} of the runs",
    }
    for axis, lam in zip(axes, lambdas, strict=True):
        for k, (what, theorem) in enumerate(shown.items()):
            points = sorted(
                (int(name.split(" | ")[3]), one["mean"], one["largest"], one["bound"])
                for name, one in found.items()
                if name.split(" | ")[1] == f"{what}, projection" and name.split(" | ")[2] == lam
            )
            if not points:
                continue
            T, mean, largest, bound = np.array(points).T
            drawn = style(k, what.replace(", in the mean", ""))
            axis.plot(T, mean, **drawn)
            axis.fill_between(T, mean, largest, color=drawn["color"], alpha=0.15, linewidth=0)
            if theorem is not None:
                axis.plot(T, bound, color=drawn["color"], linestyle=":", label=theorem)
        axis.set(xscale="log", yscale="log", xlabel="steps T", ylabel="P(w) − P*", title=f"λ = {lam}")
    below(figure, axes[0], 5)
    return {"bounds": figure}
