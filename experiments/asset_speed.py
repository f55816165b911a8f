"""ASSET's Table 2: time and test error at s = 512 and 1024."""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.asset_table import DEVIATIONS, PAPER
from benchmarks.common import Table
from benchmarks.cuts import RECIPES
from experiments.asset_contestants import asset, default, linear_svc, sgd
from experiments.exact import libsvm, ours
from experiments.harness import Case, Claim, Found, Options, Statement, judged, verdict

TASKS = tuple(RECIPES)
SIZES = (512, 1024)
PEERS = ("primalsvm", "LinearSVC", "SGDClassifier")
TEST_ROWS = {"ADULT": 8_141, "MNIST": 5_950, "ARXIV": 11_574, "IJCNN": 14_169, "COVTYPE": 58_101}

OWN, OWN_EXACT = 4, "primalsvm, exact"  # the number of our series in the figure, and the name of the exact one

TITLE = "ASSET's Table 2: speed"
BUDGET = 2100
ABOUT = (
    "The tasks of the paper's Table 1, with its C and γ, no intercept in ASSET and ASSET* (as in the paper's "
    "experiments), uniform landmarks, the average of the last 100 iterates. Two stops: *the paper's rule* ends when "
    "the test error, looked at ten times an epoch (outside the clock), is at most CPNY's in the paper (for ARXIV, "
    "which stands in for CCAT: the error of the optimum over the same features); *fixed* takes 30 epochs (COVTYPE 10). "
    "*primalsvm* is one `SVC.fit` with its defaults, certificate included. The peers: scikit-learn's Nystroem with "
    "LinearSVC or SGDClassifier, each at the cheapest setting within 0.1 points of its best; *exact, ours* is "
    "`SVC(approximation='exact', n_jobs=2)`, certified to 1e-3 (COVTYPE: 5e-3), on a sample of ARXIV; LIBSVM is exact, "
    "on a sample of MNIST, COVTYPE and ARXIV. Seconds include the features; means ± deviations over three seeds "
    "(COVTYPE, ARXIV: two). The paper's own figures were measured on its machine and on its cuts of the data."
)


def cases(options: Options) -> list[Case]:
    """Task by task."""
    quick = options.quick
    tasks, sizes = (TASKS[:1], SIZES[:1]) if quick else (TASKS, SIZES)
    contestants = {"ASSET": asset, "primalsvm": default, "LinearSVC": linear_svc, "SGDClassifier": sgd}
    made = []
    for name in tasks:
        for s in sizes:
            made += [Case(f"{name} | {s} | {label}", partial(do, name, s, quick)) for label, do in contestants.items()]
        made.append(Case(f"{name} | 0 | exact", partial(ours, name, quick)))
        made.append(Case(f"{name} | 0 | LIBSVM", partial(libsvm, name, quick)))
    return made


# ---- the page --------------------------------------------------------------------------------------------------------


def measured(found: Found, name: str, s: int, label: str) -> Any:
    """A case, or None."""
    return found.get(f"{name} | {s} | {label}")


def mean_of(values: list[float], digits: int) -> str:
    """Mean ± deviation."""
    deviation = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{deviation}"


def cell(runs: list[dict[str, float]]) -> str:
    """Seconds (error)."""
    return f"{mean_of([r['seconds'] for r in runs], 1)} s ({mean_of([100 * r['error'] for r in runs], 2)} %)"


def exact_cell(one: dict[str, Any] | None) -> str:
    """Seconds (error, rows if not all, gap if certified) of an exact machine."""
    if one is None:
        return "—"
    sampled = "" if one["rows"] == one["of"] else f", {one['rows']:,} rows"
    gap = f", gap {one['gap']:.1e}" if "gap" in one else ""
    return f"{one['seconds']:.1f} s ({100 * one['error']:.2f} %{sampled}{gap})"


def asset_runs(runs: dict[str, Any], label: str, stop: str) -> list[dict[str, float]]:
    """With the seconds of the features."""
    return [{**run[stop], "seconds": run["mapping"] + run[stop]["seconds"]} for run in runs[label]]


def tables(found: Found) -> Iterator[Table]:
    """Ours, the paper's, and the steps."""
    pairs = [(name, s) for s in SIZES for name in TASKS if measured(found, name, s, "ASSET")]
    rows, steps = [], []
    for name, s in pairs:
        runs = measured(found, name, s, "ASSET")
        exact, own = measured(found, name, 0, "LIBSVM"), measured(found, name, 0, "exact")
        others = [measured(found, name, s, label) for label in PEERS]
        rows.append(
            (
                name,
                str(s),
                *(cell(asset_runs(runs, label, "rule")) + mark(runs[label]) for label in ("ASSET", "ASSET*")),
                *("—" if one is None else cell(one["runs"]) for one in others),
                exact_cell(own),
                exact_cell(exact),
            )
        )
        steps += [(name, str(s), label, *steps_of(runs, label)) for label in ("ASSET", "ASSET*")]
    columns = (
        "task",
        "s",
        "ASSET",
        "ASSET*",
        "primalsvm",
        "Nystroem + LinearSVC",
        "Nystroem + SGDClassifier",
        "exact, ours",
        "LIBSVM",
    )
    yield Table("Seconds, features included (test error); * did not reach the reference in every run", columns, rows)
    columns = ("task", "s", "ASSET", "ASSET*", "CPSP", "CPNY", "LASVM", "SVM-Light")
    papers = []
    for name, s in pairs:
        shown = "CCAT" if name == "ARXIV" else name
        papers.append((shown, str(s), *(f"{seconds:,.0f} s ({error:.2f} %)" for seconds, error in PAPER[name, s])))
    yield Table("The paper's own Table 2 (its machine, its cuts; CCAT, not arXiv)", columns, papers)
    columns = (
        "task",
        "s",
        "",
        "reference, %",
        "optimum, %",
        "epochs by the rule",
        "reached",
        "lowest error, %",
        "fixed epochs",
    )
    yield Table("Steps of ASSET", (*columns, "seconds (error)", "(P(w) − P*)/P*"), steps)


def steps_of(runs: dict[str, Any], label: str) -> tuple[str, ...]:
    """How far both stops got."""
    ruled, fixed = ([run[stop] for run in runs[label]] for stop in ("rule", "fixed"))
    return (
        f"{100 * runs[label][0]['reference']:.2f}",
        mean_of([100 * run["optimum"] for run in runs[label]], 2),
        mean_of([run["epochs"] for run in ruled], 1),
        f"{sum(run['reached'] for run in ruled)} of {len(ruled)}",
        mean_of([100 * run["best"] for run in ruled], 2),
        str(fixed[0]["epochs"]),
        cell(asset_runs(runs, label, "fixed")),
        mean_of([run["excess"] for run in fixed], 2),
    )


def mark(runs: list[dict[str, Any]]) -> str:
    """A star, if the reference was not reached in every run."""
    return "" if all(run["rule"]["reached"] for run in runs) else " *"


def claims(found: Found) -> list[Claim]:
    """Table 2 and its remarks."""
    source = "ASSET, Table 2"
    statements = []
    for name, s in PAPER:
        papers, case = PAPER[name, s], f"{name} | {s}"
        if name == "ARXIV":
            text = f"CCAT, s = {s}: {papers.asset[1]:.2f} % in {papers.asset[0]:,.0f} s"
            statements.append(Statement(source, text, [f"{case} | ASSET"], partial(stand_in, s)))
            continue
        text = f"{name}, s = {s}: ASSET {papers.asset[1]:.2f} % in {papers.asset[0]:,.0f} s"
        statements.append(Statement(source, text, [f"{case} | ASSET"], partial(own_figure, name, s)))
        lowest = min(papers[:4], key=lambda cell: cell[1])
        text = f"{name}, s = {s}: {lowest[1]:.2f} % at best with an approximation ({lowest[0]:,.0f} s)"
        statements.append(Statement(source, text, [f"{case} | primalsvm"], partial(best_figure, name, s)))
    every = [f"{name} | {s} | ASSET" for name, s in PAPER]
    peers = [f"{name} | {s} | {label}" for name, s in PAPER for label in ("ASSET", *PEERS)]
    statements += [
        Statement("ASSET, §4.2", "ASSET shows similar performance to ASSET*", every, alike),
        Statement("ASSET, §4.2", "ASSET is among the fastest to a given error", peers, among_the_fastest),
        Statement(
            "ASSET, §4.2",
            "ASSET with s = 1024 is about as accurate as CPSP with 512, CCAT apart",
            [f"{name} | 1024 | ASSET" for name in TASKS if name != "ARXIV"],
            against_cpsp,
        ),
    ]
    return judged(statements, found)


def noise(name: str, error: float) -> float:
    """Two standard errors of the difference of two test errors, in points: the paper's cut was another one."""
    n = TEST_ROWS[name]
    return 200 * math.sqrt(2 * error / 100 * (1 - error / 100) / n)


def ruled(found: Found, name: str, s: int, label: str = "ASSET") -> tuple[float, float]:
    """Mean error in percent and mean seconds, by the paper's rule."""
    runs = asset_runs(found[f"{name} | {s} | ASSET"], label, "rule")
    return 100 * float(np.mean([run["error"] for run in runs])), float(np.mean([run["seconds"] for run in runs]))


def own_figure(name: str, s: int, found: Found) -> tuple[str, str]:
    """ASSET against ASSET."""
    error, seconds = ruled(found, name, s)
    limit = 100 * float(np.mean([run["optimum"] for run in found[f"{name} | {s} | ASSET"]["ASSET"]]))
    paper, allowed = PAPER[name, s].asset[1], noise(name, PAPER[name, s].asset[1]) + DEVIATIONS[name, s][0]
    held = error <= paper + allowed
    epochs = max(run["rule"]["epochs"] for run in found[f"{name} | {s} | ASSET"]["ASSET"])
    within_reach = limit <= paper + allowed / 2
    why = f"; {epochs:.0f} epochs were not enough" if within_reach else "; these landmarks allow little better"
    return verdict(held), (
        f"{error:.2f} % in {seconds:.1f} s by the paper's rule, the optimum over these features {limit:.2f} % (other "
        f"rows to test on: ± {allowed:.2f}){'' if held else why}"
    )


def best_figure(name: str, s: int, found: Found) -> tuple[str, str]:
    """Our default against the best of the paper's approximations."""
    runs = found[f"{name} | {s} | primalsvm"]["runs"]
    error, paper = 100 * float(np.mean([run["error"] for run in runs])), min(cell[1] for cell in PAPER[name, s][:4])
    allowed = noise(name, paper)
    return verdict(error <= paper + allowed, beaten=error < paper - allowed), (
        f"`SVC` with its defaults {cell(runs)} (other rows to test on: ± {allowed:.2f})"
    )


def stand_in(s: int, found: Found) -> tuple[str, str]:
    """CCAT is not at hand."""
    error, seconds = ruled(found, "ARXIV", s)
    return "not measured", f"arXiv, which stands in for it: {error:.2f} % in {seconds:.1f} s"


def alike(found: Found) -> tuple[str, str]:
    """After the same number of epochs."""
    apart, ratios, lower = {}, [], 0
    for name, s in PAPER:
        both = [asset_runs(found[f"{name} | {s} | ASSET"], label, "fixed") for label in ("ASSET", "ASSET*")]
        errors = [100 * float(np.mean([run["error"] for run in runs])) for runs in both]
        apart[name, s] = abs(errors[0] - errors[1]), noise(name, errors[0])
        lower += errors[0] < errors[1]
        ratios.append(np.mean([run["seconds"] for run in both[0]]) / np.mean([run["seconds"] for run in both[1]]))
    worst = max(apart, key=lambda pair: apart[pair][0] / apart[pair][1])
    return verdict(all(difference <= allowed for difference, allowed in apart.values()) and max(ratios) <= 2), (
        f"after as many epochs errors differ by {np.median([one for one, _ in apart.values()]):.2f} points in the "
        f"median, most of all by {apart[worst][0]:.2f} ({worst[0]}, s = {worst[1]}), ASSET's being the lower ones in "
        f"{lower} of {len(apart)}; times by {max(ratios):.2f} ×"
    )


def among_the_fastest(found: Found) -> tuple[str, str]:
    """Seconds to the reference error, on every task and s; never, where it was not reached."""
    first, shown = 0, []
    for name, s in PAPER:
        runs = found[f"{name} | {s} | ASSET"]["ASSET"]
        reference = runs[0]["reference"]
        reached = all(run["rule"]["reached"] for run in runs)
        times = {"ASSET": ruled(found, name, s)[1] if reached else math.inf}
        for label in PEERS:
            sweep = found[f"{name} | {s} | {label}"]["sweep"]
            times[label] = min((run["seconds"] for run in sweep if run["error"] <= reference), default=math.inf)
        peers = min(times["LinearSVC"], times["SGDClassifier"])
        first += times["ASSET"] <= peers and times["ASSET"] < math.inf
        cells = [f"{'never' if math.isinf(times[label]) else f'{times[label]:.1f} s'}" for label in ("ASSET", *PEERS)]
        shown.append(f"{name} {s}: {' / '.join(cells)}")
    return verdict(first > len(PAPER) / 2), (
        f"before both peers in {first} of {len(PAPER)}, else it did not get there; ASSET / {' / '.join(PEERS)}: "
        + "; ".join(shown)
    )


def against_cpsp(found: Found) -> tuple[str, str]:
    """Errors, against the paper's CPSP."""
    names = [name for name in TASKS if name != "ARXIV"]
    pairs = {name: (ruled(found, name, 1024)[0], PAPER[name, 512].cpsp[1]) for name in names}
    return verdict(all(ours <= cpsp + noise(name, cpsp) for name, (ours, cpsp) in pairs.items())), ", ".join(
        f"{name} {ours:.2f} and {cpsp:.2f} %" for name, (ours, cpsp) in pairs.items()
    )


def figures(found: Found) -> dict[str, Any]:
    """Error against seconds for each task."""
    from experiments.figures import below, panels, plain_ticks, style

    names = [name for name in TASKS if any(key.startswith(f"{name} |") for key in found)]
    columns = min(3, len(names))
    figure, axes = panels(math.ceil(len(names) / columns), columns, width=4.2)
    for axis, name in zip(axes, names, strict=False):
        for k, (label, points) in enumerate(by_contestant(found, name).items()):
            if points:
                chosen = {**style(k, label), "linestyle": "-" if len(points) > 1 else "none"}
                if label == OWN_EXACT:
                    chosen |= {"color": style(OWN, label)["color"], "marker": "*", "markersize": 9}
                axis.plot(*zip(*points, strict=True), **chosen)
        axis.set(xscale="log", yscale="log", xlabel="seconds, features included", ylabel="test error, %")
        axis.set_title(name, fontsize=10)
        low, high = axis.get_xlim()
        plain_ticks(axis.xaxis, [t for t in (0.1, 0.3, 1, 3, 10, 30, 100) if low <= t <= high])
        plain_ticks(axis.yaxis)
        axis.yaxis.set_minor_formatter(axis.yaxis.get_major_formatter())
        axis.tick_params(which="minor", labelsize=7)
    for axis in axes[len(names) :]:
        axis.set_visible(False)
    below(figure, axes[0], 4)
    return {"asset-speed": figure}


def by_contestant(found: Found, name: str) -> dict[str, list[tuple[float, float]]]:
    """(mean seconds, mean error in percent) at each s."""
    points: dict[str, list[tuple[float, float]]] = {}

    def add(label: str, runs: list[dict[str, float]]) -> None:
        there = points.setdefault(label, [])
        there.append((float(np.mean([r["seconds"] for r in runs])), 100 * float(np.mean([r["error"] for r in runs]))))

    for s in SIZES:
        runs = measured(found, name, s, "ASSET")
        if runs is not None:
            for label in ("ASSET", "ASSET*"):
                for stop in ("rule", "fixed"):
                    add(
                        f"{label}, {'by the rule' if stop == 'rule' else 'fixed epochs'}", asset_runs(runs, label, stop)
                    )
        for label in PEERS:
            one = measured(found, name, s, label)
            if one is not None:
                add(label if label == "primalsvm" else f"Nystroem + {label}", one["runs"])
    exact = measured(found, name, 0, "LIBSVM")
    if exact is not None:
        add("LIBSVM, exact", [exact])
    own = measured(found, name, 0, "exact")
    if own is not None:
        add(OWN_EXACT, [own])
    return points
