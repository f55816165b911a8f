"""Pegasos' choices, compared: rows per step, projection, averages, the order of rows."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.common import Table
from experiments.harness import Case, Claim, Found, Options, verdict
from experiments.pegasos_scaling import DOCUMENTS, SIZES, best_of
from primalsvm import Hinge, Pegasos, Problem, solve

LAM = 1e-4
PASSES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # how many rows are looked at, over m
ROWS_PER_STEP = (1, 10, 100, 1_000, 10_000, 100_000)
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
BUDGET = 300
ABOUT = (
    f"arXiv abstracts (`cs` against the rest), hinge, λ = {LAM:g}, means over {SEEDS} seeds of (P(w) − P*)/P* against "
    "the rows looked at. Unless it is what is compared: k = 1, independent draws, no projection, iterate t weighted by "
    "t in the average. *Rows per step*: kT is fixed, so that every k looks at as many rows; k = m takes all rows in "
    "each step, which is the deterministic sub-gradient method."
)


@cache
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
    steps = (1, 3, 10, 30, 100)
    return made + [Case(f"rows per step | k = m | {T}", partial(excess, whole, T, options.quick)) for T in steps]


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
    last = max(p for points in curves(found, "average").values() for p, _ in points)
    made = []
    plain, projected = (at(found, "projection", name, last) for name in ("no projection", "projection"))
    early = min(p for points in curves(found, "average").values() for p, _ in points)
    first = [at(found, "projection", name, early) for name in ("no projection", "projection")]
    made.append(
        Claim(
            "Implementing Pegasos, projection",
            "no major difference between projected and unprojected steps",
            verdict(0.5 <= plain / projected <= 2.0),
            f"after {last:g} m rows {plain:.1e} without and {projected:.1e} with; after {early:g} m rows "
            f"{first[0]:.1e} and {first[1]:.1e}",
        )
    )
    by_average = {name: at(found, "average", name, last) for name in VARIANTS["average"]}
    best = min(by_average, key=lambda name: by_average[name])
    made.append(
        Claim(
            "Pegasos, §2",
            "the last iterate is a good output",
            verdict(by_average["last"] <= 2 * by_average["uniform"]),
            f"after {last:g} m rows "
            + ", ".join(f"{name} {value:.1e}" for name, value in by_average.items())
            + f": {best} is best",
        )
    )
    ks = curves(found, "rows per step")
    there = {name: dict(points)[last] for name, points in ks.items() if last in dict(points)}
    whole, single = ks["k = m"][-1][1], min((one for _, one in ks["k = 1"]), key=lambda one: one["steps"])
    made.append(
        Claim(
            "Pegasos, §1",
            "with k = m, Õ(1/(λε)) iterations as well: not more than with k = 1",
            verdict(whole["excess"] <= single["excess"] and whole["steps"] <= single["steps"]),
            f"{whole['steps']:,} steps of all rows: {whole['excess']:.1e}; {single['steps']:,} steps of one row: "
            f"{single['excess']:.1e}. For the same {last:g} m rows in all: "
            + ", ".join(f"{name} {one['excess']:.1e}" for name, one in there.items()),
        )
    )
    return made


def figures(found: Found) -> dict[str, Any]:
    """Four panels."""
    from experiments.figures import panels, style

    figure, axes = panels(2, 2, width=5.6)
    for axis, what in zip(axes, ("rows per step", *VARIANTS), strict=True):
        for k, (name, points) in enumerate(curves(found, what).items()):
            passes, means, spreads = np.array([(p, one["excess"], one["deviation"]) for p, one in points]).T
            bars = [np.minimum(spreads, 0.9 * means), spreads]  # a bar to 0 or below has no end on a log scale
            axis.errorbar(passes, means, bars, capsize=2, **style(k, name))
        axis.set(xscale="log", yscale="log", xlabel="rows looked at / m", ylabel="(P(w) − P*)/P*")
        axis.set_title(what, fontsize=10)
        axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"pegasos-variants": figure}
