"""Bound checks: how often the bounds of the papers are violated, and how loose they are, over 200 runs each."""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, hinge_objective
from experiments.harness import Case, Claim, Found, Options, Statement, compact, judged, verdict
from experiments.zhou import D, gaussian
from primalsvm import Asset, Hinge, Pegasos, Problem, solve, theory

DELTA = 0.05
ROWS, FRESH = 1_000, 100_000
STEPS = (100, 1_000, 10_000)
LAMBDAS = (0.1, 0.01, 0.001)
REGRET_STEPS = 1_000
ROUNDING = 1e-12  # Lemma 3.5 is an equality after the first step
ANALYSIS = {
    "Lemma 3.1": "the variance of ξ_t at a random t",
    "Theorem 3.3": "the mean excess, given the regret",
    "Theorem 3.4": "the regret",
    "Lemma 3.5": "the longest iterate",
    "Corollary 3.6.3": "a random iterate",
    "Theorem 3.7": "the mean excess, in the mean",
}
SEEDS, QUICK_SEEDS = 200, 20

TITLE = "The bounds"
BUDGET = 60
ABOUT = (
    f"Gaussian rows no longer than 1 (as in Zhou's experiment, {ROWS:,} of them), hinge loss, independent draws, "
    f"{SEEDS} seeds. Measured: P(w) − P* for what each theorem is about, against its bound, with δ = {DELTA:g} where "
    "there is one. A bound on a mean is violated if the mean is above it; a bound that holds with probability 1 − δ "
    "may be violated in a share δ of the runs. Theorem 1 and Zhou's lemmas are about the iterates themselves, and are "
    "checked on the steps written out in NumPy. How loose a bound is: the bound over the measured mean. In the "
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


def check(one: Check, lam: float, T: int, seeds: int) -> dict[str, float]:
    """Excesses over seeds against the bound."""
    problem, X, y, best = problem_of(lam)
    solver = Pegasos(n_iter=T, **one.options)
    deterministic = one.options["sampling"] == "distinct"
    found = []
    for seed in range(1 if deterministic else seeds):
        w = solve(problem, X, y, solver=solver, random_state=seed, certify=False).w
        found.append(hinge_objective(X, y, w, lam) - best)
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
        found.append(hinge_objective(X, y, solution.w, lam, solution.b) - best)
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
        found.append(hinge_objective(X, y, w, lam) - best)
    return summary(found, theory.corollary_3_6_2(lam, T, DELTA), False)


def check_regret(lam: float, T: int, projection: bool, seeds: int) -> dict[str, float]:
    """Theorem 1: the mean of f(w_t; A_t) − f(w*; A_t) over the steps, in every run."""
    problem, X, y, _ = problem_of(lam)
    best = solve(problem, X, y, tol=1e-9).w
    found = [by_hand(lam, X, y, T, seed, projection).regret(best) / T for seed in range(seeds)]
    return {**summary(found, theory.theorem_1(lam, T, 1.0, projection), False), "allowed": 0.0}


class Walk(NamedTuple):
    """Pegasos written out: its iterates w_1 … w_T, the last one w_{T+1}, and the rows that it drew."""

    lam: float
    w: np.ndarray
    last: np.ndarray
    X: np.ndarray
    y: np.ndarray

    def regret(self, u: np.ndarray) -> float:
        """R_T = Σ f(w_t; z_t) − f(u; z_t)."""
        scores = np.einsum("td,td->t", self.w, self.X)
        own = self.lam / 2 * np.einsum("td,td->t", self.w, self.w) + np.maximum(0.0, 1.0 - self.y * scores)
        others = self.lam / 2 * u @ u + np.maximum(0.0, 1.0 - self.y * (self.X @ u))
        return float(np.sum(own - others))


def by_hand(lam: float, X: np.ndarray, y: np.ndarray, T: int, seed: int, projection: bool = False) -> Walk:
    """T steps of 1/(λt) on rows drawn independently."""
    drawn = np.random.default_rng(seed).integers(len(y), size=T)
    radius = 1 / math.sqrt(lam) if projection else math.inf
    w, iterates = np.zeros(D), np.empty((T, D))
    for t, i in enumerate(drawn, 1):
        iterates[t - 1] = w
        w = (1 - 1 / t) * w + (y[i] * (w @ X[i]) < 1) * y[i] * X[i] / (lam * t)
        w = w * min(1.0, radius / (np.linalg.norm(w) or 1.0))
    return Walk(lam, iterates, w, X[drawn], y[drawn])


@cache
def analysis(T: int, seeds: int) -> dict[str, list[tuple[float, float]]]:
    """What each of Zhou's statements about iterates bounds, with its bound, for every seed.

    Rows are drawn independently from `ROWS` rows, which are the distribution then: expectations are sums over them.
    """
    lam, L, B = 0.01, 2.0, theory.value_bound(0.01)
    delta = DELTA / (4 * math.log(T))  # so that Theorem 3.3 holds with probability 1 − DELTA
    problem, X, y, least = problem_of(lam)
    best = solve(problem, X, y, tol=1e-9).w
    at_best = np.maximum(0.0, 1.0 - y * (X @ best))
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ANALYSIS}
    for seed in range(seeds):
        walk = by_hand(lam, X, y, T, seed)
        losses = np.maximum(0.0, 1.0 - y[:, None] * (X @ walk.w.T))
        excess = losses.mean(axis=0) + lam / 2 * np.einsum("td,td->t", walk.w, walk.w) - least
        t = int(np.random.default_rng([seed, 1]).integers(T))
        longest = float(np.linalg.norm(np.vstack([walk.w, walk.last]), axis=1).max())
        regret, mean = walk.regret(best), float(excess.mean())
        bound = theory.theorem_3_3(max(regret, 0.0), lam, T, L, B, delta)
        found["Lemma 3.1"].append((float(np.var(losses[:, t] - at_best)), theory.lemma_3_1(lam, L, float(excess[t]))))
        found["Theorem 3.3"].append((mean, bound))
        found["Theorem 3.4"].append((regret, theory.theorem_3_4(lam, T, L)))
        found["Lemma 3.5"].append((longest, theory.lemma_3_5(lam)))
        found["Corollary 3.6.3"].append((float(excess[t]), theory.corollary_3_6_3(lam, T, DELTA)))
        found["Theorem 3.7"].append((mean, theory.theorem_3_7(lam, T)))
    return found


def check_analysis(what: str, T: int, seeds: int) -> dict[str, float]:
    """One of Zhou's statements about iterates."""
    measured, bounds = np.array(analysis(T, seeds)[what]).T
    one = summary(list(measured), float(bounds.mean()), in_mean=what == "Theorem 3.7")
    if what != "Theorem 3.7":
        one["violations"] = float(np.mean(measured > bounds * (1 + ROUNDING)))
    return {**one, "allowed": {"Theorem 3.3": DELTA, "Corollary 3.6.3": 0.5}.get(what, 0.0)}


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
    for what, about in ANALYSIS.items():
        work = partial(check_analysis, what, REGRET_STEPS, seeds)
        made.append(Case(f"Zhou, {what} | {about} | 0.01 | {REGRET_STEPS}", work))
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
    needs: dict[str, list[str]] = {}
    for case in cases(Options()):
        needs.setdefault(case.name.split(" | ")[0], []).append(case.name)
    statements = [
        Statement(theorem, "the bound holds", names, partial(not_violated, names)) for theorem, names in needs.items()
    ]
    return judged(statements, found)


def not_violated(names: list[str], found: Found) -> tuple[str, str]:
    """No more often than allowed, whatever λ, T and projection."""
    checks = [found[name] for name in names]
    allowed = checks[0]["allowed"]
    share = max(one["violations"] for one in checks)
    loose = [one["looseness"] for one in checks]
    how = (
        f"violated in at most {share:.1%} of the runs ({allowed:.0%} allowed)"
        if allowed
        else ("never violated" if share == 0 else f"violated in up to {share:.1%} of the runs")
    )
    return verdict(all(one["violations"] <= one["allowed"] for one in checks)), (
        f"{how} in {len(checks)} settings; it is {compact(min(loose))} to {compact(max(loose))} times what is measured"
    )


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
