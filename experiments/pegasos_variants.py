"""Pegasos' choices, compared: rows per step, projection, averages, the order of rows."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Table
from experiments.harness import Case, Claim, Found, Options, Statement, judged, verdict
from experiments.pegasos_scaling import DOCUMENTS, SIZES, best_of
from primalsvm import Hinge, Pegasos, Problem, solve

LAM = 1e-4
PASSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # how many rows are looked at, over m
ROWS_PER_STEP = (1, 10, 100, 1_000, 10_000, 100_000)
STEPS = (1, 3, 10, 30, 100)  # of all rows each
AS_MANY_STEPS = f"as many steps | k = 1 | {STEPS[-1]}"
SEEDS = 5
WEIGHTED = {"sampling": "iid", "average": "weighted"}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "projection": {
        "no projection": WEIGHTED,
        "projection": {**WEIGHTED, "projection": True},
        "no projection, last iterate": {"sampling": "iid", "average": "last"},
        "projection, last iterate": {"sampling": "iid", "average": "last", "projection": True},
    },
    "average": {
        "last": {"sampling": "iid", "average": "last"},
        "random": {"sampling": "iid", "average": "random"},
        "uniform": {"sampling": "iid", "average": "uniform"},
        "suffix": {"sampling": "iid", "average": "suffix"},
        "weighted": WEIGHTED,
    },
    "order of rows": {
        "i.i.d.": WEIGHTED,
        "epochs": {"sampling": "epochs", "average": "weighted"},
        "blocks": {"sampling": "blocks", "average": "weighted"},
    },
}

TITLE = "Pegasos: its choices compared"
BUDGET = 150
ABOUT = (
    f"arXiv abstracts (`cs` against the rest), hinge, λ = {LAM:g}, means over {SEEDS} seeds of (P(w) − P*)/P* against "
    "the rows looked at. Unless it is what is compared: k = 1, independent draws, no projection, iterate t weighted by "
    "t in the average. *Rows per step*: kT is fixed, so that every k looks at as many rows; k = m takes all rows in "
    "each step, which is the deterministic sub-gradient method."
)


def size(quick: bool) -> int:
    """Rows."""
    return SIZES[0] if quick else SIZES[-1]


def excess(options: dict[str, Any], T: int, quick: bool) -> dict[str, float]:
    """Mean relative excess over seeds, its deviation, and the seconds of one run."""
    rows = DOCUMENTS[size(quick)]()
    best, problem = best_of(DOCUMENTS[size(quick)], LAM, 1e-3), Problem(Hinge(), LAM)
    solver, found, seconds = Pegasos(n_iter=T, **options), [], []
    deterministic = options["sampling"] == "distinct"  # all rows in each step
    for seed in range(1 if deterministic else 2 if quick else SEEDS):
        solution = solve(problem, rows.X, rows.y, solver=solver, certify=False, random_state=seed)
        found.append(rows.excess(LAM, best, solution.w) / best)
        seconds.append(solution.seconds)
    return {
        "steps": T,
        "excess": float(np.mean(found)),
        "deviation": float(np.std(found)),
        "seconds": float(np.median(seconds)),
    }


def cases(options: Options) -> list[Case]:
    """Every variant after every number of rows; every k after each of three."""
    m = size(options.quick)
    passes = PASSES[2:5] if options.quick else PASSES
    made = []
    for what, variants in VARIANTS.items():
        for name, chosen in variants.items():
            for one in passes:
                work = partial(excess, chosen, max(1, round(one * m)), options.quick)
                made.append(Case(f"{what} | {name} | {one:g}", work))
    for one in passes:
        for k in [k for k in ROWS_PER_STEP if k <= one * m]:
            work = partial(excess, {**WEIGHTED, "batch_size": k}, max(1, round(one * m / k)), options.quick)
            made.append(Case(f"rows per step | k = {k:,} | {one:g}", work))
    whole = {"sampling": "distinct", "batch_size": m, "average": "weighted"}
    made.append(Case(AS_MANY_STEPS, partial(excess, WEIGHTED, STEPS[-1], options.quick)))
    return made + [Case(f"rows per step | k = m | {T}", partial(excess, whole, T, options.quick)) for T in STEPS]


def curves(found: Found, what: str) -> dict[str, list[tuple[float, dict[str, float]]]]:
    """The measurements of one comparison, by variant, in order of rows looked at."""
    sorted_out: dict[str, list[tuple[float, dict[str, float]]]] = {}
    for name, one in found.items():
        kind, variant, passes = name.split(" | ")
        if kind == what:
            sorted_out.setdefault(variant, []).append((float(passes), one))
    return {name: sorted(points, key=lambda point: point[0]) for name, points in sorted_out.items()}


def at(found: Found, what: str, variant: str, passes: float) -> float:
    """Mean excess."""
    return float(found[f"{what} | {variant} | {passes:g}"]["excess"])


def tables(found: Found) -> Iterator[Table]:
    """One for each comparison."""
    for what in (*VARIANTS, "rows per step"):
        by_variant = curves(found, what)
        if not by_variant:
            continue
        passes = sorted({p for points in by_variant.values() for p, _ in points})
        rows = []
        for name, points in by_variant.items():
            there = dict(points)
            cells = [
                f"{there[p]['excess']:.1e} ± {there[p]['deviation']:.0e}, {there[p]['seconds']:.2f} s"
                if p in there
                else ""
                for p in passes
            ]
            rows.append((name, *cells))
        columns = ("variant", *(f"{p:g} m rows" for p in passes))
        yield Table(f"{what.capitalize()}: (P(w) − P*)/P*, and seconds, after looking at so many rows", columns, rows)


def claims(found: Found) -> list[Claim]:
    """What the papers say of these choices."""
    first, last = PASSES[0], PASSES[-1]
    pairs = [f"projection | {how}projection, last iterate | {p:g}" for how in ("", "no ") for p in (first, last)]
    averages = [f"average | {name} | {last:g}" for name in VARIANTS["average"]]
    whole = [AS_MANY_STEPS, f"rows per step | k = m | {STEPS[-1]}"]
    return judged(
        [
            Statement(
                "Implementing Pegasos",
                "no major difference between projected and unprojected steps",
                pairs,
                projection_or_not,
            ),
            Statement("Pegasos, §2", "the output is the last iterate", averages, last_or_average),
            Statement("Pegasos, §1", "k = m: Õ(1/(λε)) iterations as with k = 1", whole, as_many_steps),
        ],
        found,
    )


def projection_or_not(found: Found) -> tuple[str, str]:
    """The last iterates of the shortest and the longest runs."""
    values = {
        (how, p): at(found, "projection", f"{how}projection, last iterate", p)
        for how in ("", "no ")
        for p in (PASSES[0], PASSES[-1])
    }
    ratios = [values["no ", p] / values["", p] for p in (PASSES[0], PASSES[-1])]
    return verdict(all(0.5 <= ratio <= 2 for ratio in ratios)), "; ".join(
        f"after {p:g} m rows {values['no ', p]:.1e} without, {values['', p]:.1e} with" for p in (PASSES[0], PASSES[-1])
    )


def last_or_average(found: Found) -> tuple[str, str]:
    """Against the average of all, which the theorems are about."""
    values = {name: at(found, "average", name, PASSES[-1]) for name in VARIANTS["average"]}
    shown = ", ".join(f"{name} {value:.1e}" for name, value in values.items())
    return verdict(values["last"] <= 1.1 * values["uniform"]), f"after {PASSES[-1]:g} m rows {shown}"


def as_many_steps(found: Found) -> tuple[str, str]:
    """100 steps of all rows against 100 of one."""
    one = found[AS_MANY_STEPS]["excess"]
    every = found[f"rows per step | k = m | {STEPS[-1]}"]["excess"]
    same = {name: dict(points).get(PASSES[-1]) for name, points in curves(found, "rows per step").items()}
    shown = ", ".join(f"{name} {point['excess']:.1e}" for name, point in same.items() if point is not None)
    return verdict(every <= one), (
        f"after {STEPS[-1]} steps {every:.1e} with k = m and {one:.1e} with k = 1; for the same {PASSES[-1]:g} m rows "
        f"in all: {shown}"
    )


def figures(found: Found) -> dict[str, Any]:
    """Four panels."""
    from experiments.figures import panels, style

    figure, axes = panels(2, 2, width=5.6)
    for axis, what in zip(axes, ("rows per step", *VARIANTS), strict=True):
        if not curves(found, what):
            axis.set_visible(False)
            continue
        for k, (name, points) in enumerate(curves(found, what).items()):
            passes, means, spreads = np.array([(p, one["excess"], one["deviation"]) for p, one in points]).T
            bars = [np.minimum(spreads, 0.9 * means), spreads]  # a bar to 0 or below has no end on a log scale
            axis.errorbar(passes, means, bars, capsize=2, **style(k, name))
        axis.set(xscale="log", yscale="log", xlabel="rows looked at / m", ylabel="(P(w) − P*)/P*")
        axis.set_title(what, fontsize=10)
        axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"pegasos-variants": figure}
