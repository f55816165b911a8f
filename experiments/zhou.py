"""Zhou's experiment: how the error of Pegasos on fresh rows falls with its steps, for several sizes of training set.

    python experiments/zhou.py [--quick]

Rows are Gaussian, their labels the sign of a linear function, 10 % of them flipped. The figure and the table show, for
each number of rows and of steps, the error on fresh rows and the excess L(w̄) − L* of the objective over fresh rows, of
the average w̄ of all iterates, beside the bound of Theorem 3.6. Written: docs/results/zhou.png and docs/results/zhou.md.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from primalsvm import Hinge, Pegasos, Problem, solve, theory

RESULTS = Path(__file__).parent.parent / "docs" / "results"
D, NOISE, LAM, DELTA = 10, 0.1, 0.01, 0.01
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7")  # Okabe and Ito's, which colour-blind readers tell apart
MARKERS = "osv^"


class Setting(NamedTuple):
    """What is measured."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    seeds: int
    fresh: int  # rows that stand for the distribution


FULL = Setting((100, 1_000, 10_000, 100_000), tuple(int(10 ** (k / 2)) for k in range(2, 12)), 20, 200_000)
QUICK = Setting((100, 1_000), (10, 100, 1_000), 3, 5_000)


def gaussian(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows no longer than 1, with labels of which a tenth is flipped."""
    rng, truth = np.random.default_rng(seed), np.random.default_rng(12345).normal(size=D)
    X = rng.normal(size=(m, D)) / math.sqrt(D)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.where(X @ truth > 0, 1.0, -1.0)
    return X, np.where(rng.random(m) < NOISE, -y, y)


def measure(setting: Setting, console: Console) -> dict[int, np.ndarray]:
    """For each size, a row for each number of steps: mean error, mean excess, and the standard errors of both."""
    problem = Problem(Hinge(), LAM)
    X, y = gaussian(setting.fresh, seed=0)
    best = solve(problem, X, y, tol=1e-6).certificate.dual
    found = {}
    for m in setting.sizes:
        rows = []
        for T in track(setting.steps, f"{m:,} rows", console=console):
            both = []
            for seed in range(1, setting.seeds + 1):
                solver = Pegasos(n_iter=T, sampling="iid", average="uniform")
                w = solve(problem, *gaussian(m, seed), solver=solver, certify=False, random_state=seed).w
                scores = y * (X @ w)
                both.append((np.mean(scores <= 0), LAM / 2 * w @ w + np.mean(np.maximum(0, 1 - scores)) - best))
            rows.append([*np.mean(both, axis=0), *np.std(both, axis=0) / math.sqrt(setting.seeds)])
        found[m] = np.array(rows)
    return found


def bound(T: int) -> float:
    """Theorem 3.6, with probability 1 − δ."""
    return theory.corollary_3_6_2(LAM, T, DELTA)


def draw(setting: Setting, found: dict[int, np.ndarray], path: Path) -> None:
    """Error and excess against steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    error, excess = figure.subplots(1, 2)
    for (m, rows), colour, marker in zip(found.items(), COLOURS, MARKERS, strict=False):
        style = {"color": colour, "marker": marker, "label": f"{m:,} rows", "capsize": 2, "markersize": 4}
        error.errorbar(setting.steps, 100 * rows[:, 0], 100 * rows[:, 2], **style)
        excess.errorbar(setting.steps, rows[:, 1], rows[:, 3], **style)
    steps = np.array(setting.steps)
    error.axhline(100 * NOISE, color="#666666", linestyle=":", label="the noise")
    excess.plot(steps, [bound(T) for T in setting.steps], color="black", label="Theorem 3.6")
    first = next(iter(found.values()))[0, 1]
    excess.plot(steps, first * steps[0] / steps, color="#666666", linestyle=":", label="1/T")
    error.set(xscale="log", xlabel="steps T", ylabel="error on fresh rows, %")
    excess.set(xscale="log", yscale="log", xlabel="steps T", ylabel="L(w̄) − L*")
    for axes in (error, excess):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def page(setting: Setting, found: dict[int, np.ndarray]) -> str:
    """The table, with what it shows."""
    lines = [
        "# Zhou's experiment",
        "",
        f"`python experiments/zhou.py`: {D} Gaussian features, {NOISE:.0%} of the labels flipped, λ = {LAM:g}, the "
        f"average of all iterates, means over {setting.seeds} training sets; {setting.fresh:,} fresh rows stand for "
        "the distribution.",
        "",
        "![error and excess against steps](zhou.png)",
        "",
        "| steps | " + " | ".join(f"{m:,} rows: error, excess" for m in found) + " | Theorem 3.6 |",
        "|--:|" + "--:|" * (len(found) + 1),
    ]
    for k, T in enumerate(setting.steps):
        cells = [f"{rows[k, 0]:.2%}, {rows[k, 1]:.1e}" for rows in found.values()]
        lines.append(f"| {T:,} | " + " | ".join(cells) + f" | {bound(T):.1e} |")
    return "\n".join([*lines, "", *claims(setting, found), ""])


def claims(setting: Setting, found: dict[int, np.ndarray]) -> list[str]:
    """What the report says, and whether it is so here."""
    steps, rows = np.array(setting.steps), found[max(found)]
    hundred = int(np.argmin(np.abs(np.log(steps / 100))))
    larger = [table[hundred, 0] for m, table in found.items() if m > steps[hundred]]
    smaller = "".join(f"; with {m:,} rows {found[m][hundred, 0]:.2%}" for m in found if m <= steps[hundred])
    slope = np.polyfit(np.log(steps), np.log(rows[:, 1]), 1)[0]
    below = all(table[k, 1] <= bound(T) for table in found.values() for k, T in enumerate(steps))
    loosest = bound(int(steps[-1])) / rows[-1, 1]
    verdict = {True: "reproduced", False: "not reproduced"}
    same = max(larger) - min(larger) <= 0.01
    return [
        f"- *The error does not depend on the number of rows*: {verdict[same]} after {steps[hundred]} steps where "
        f"there are more rows than steps ({min(larger):.2%} to {max(larger):.2%}{smaller}); later each training set "
        "ends at its own optimum.",
        f"- *The excess falls as 1/T*: {verdict[slope <= -0.85]} (T^{slope:.2f} with {max(found):,} rows).",
        f"- *100 steps reach the optimal performance*: {verdict[bool(rows[hundred, 0] <= rows[-1, 0] + 0.01)]} "
        f"({rows[hundred, 0]:.2%}, in the end {rows[-1, 0]:.2%}).",
        f"- *Theorem 3.6 lies above*: {verdict[below]}; at {steps[-1]:,} steps it is {loosest:,.0f} times what is "
        "measured.",
    ]


def main() -> None:
    """Measure, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="measure less; print, but write nothing")
    quick = parser.parse_args().quick
    setting, console = (QUICK if quick else FULL), Console(stderr=True)
    found = measure(setting, console)
    text = page(setting, found)
    print(text)
    if not quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        draw(setting, found, RESULTS / "zhou.png")
        (RESULTS / "zhou.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
