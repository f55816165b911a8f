"""How many steps Pegasos takes to an accuracy ε, and how long, as m, λ, ε and d change."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.common import Table, hinge_objective, median
from benchmarks.datasets import arxiv
from experiments.harness import Case, Claim, Found, Options, Statement, judged, verdict
from primalsvm import Hinge, Pegasos, Problem, solve
from primalsvm.sources.generated import text_like

LAM, EPSILON = 1e-4, 0.01
SIZES = (10_000, 30_000, 100_000, 300_000, 497_967)
LAMBDAS = (1e-2, 1e-3, 1e-4, 1e-5)
EPSILONS = (0.1, 0.03, 0.01, 0.003, 0.001)
LENGTHS = (10, 30, 100, 300, 1000)  # non-zeros in a row
GENERATED_ROWS, GENERATED_FEATURES = 100_000, 47_236
FIRST, GROWTH, COARSE = 100, 1.05, 6  # steps tried: 100, 105, …; every sixth first, then those before it
SEEDS = 5

TITLE = "Pegasos: run time and accuracy"
BUDGET = 240
ABOUT = (
    "Steps until P(w) − P* ≤ ε on arXiv abstracts (`cs` against the rest) with the paper's algorithm: k = 1, "
    f"independent draws, projection, the last iterate; medians over {SEEDS} seeds of the first of 100, 105, … steps "
    f"that suffice, and the seconds they take. One thing changes at a time, from λ = {LAM:g}, ε = {EPSILON:g}, all "
    "rows. The number of non-zeros d of a row is changed in generated documents, where time is counted per step. The "
    "theory: Õ(1/(λε)) steps of O(d) operations, whatever the number of rows m."
)


class Problems(NamedTuple):
    """Rows, with a double-precision copy for the judge."""

    X: sp.csr_matrix
    y: np.ndarray
    X64: sp.csr_matrix

    def excess(self, lam: float, best: float, w: np.ndarray) -> float:
        """P(w) − P*."""
        return hinge_objective(self.X64, self.y, w, lam) - best


@cache
def documents(m: int, rows: int | None = None) -> Problems:
    """The first m abstracts, with the features of all of them, or of so many."""
    split = arxiv(rows=rows)
    return Problems(split.X_train[:m], split.y_train[:m], split.X_train[:m].astype(np.float64))


@cache
def generated(per_row: int, m: int) -> Problems:
    """Documents of so many words."""
    made = text_like(m=m, d=GENERATED_FEATURES, per_row=per_row, n_test=0, n_jobs=2)
    X = sp.csr_matrix(made.X)
    return Problems(X, made.y, X.astype(np.float64))


@cache
def best_of(problems: Any, lam: float, epsilon: float) -> float:
    """A lower bound of P*, a fiftieth of ε below it at most."""
    tol = min(1e-3, epsilon / 50)
    return solve(Problem(Hinge(), lam), problems().X, problems().y, tol=tol, n_jobs=2, max_iter=5000).certificate.dual


def steps_to(problems: Any, lam: float, epsilon: float, seeds: int) -> dict[str, Any]:
    """The first number of steps on the grid that is enough, its seconds, and non-zeros per row."""
    rows, best = problems(), best_of(problems, lam, epsilon)
    found, seconds = [], []
    for seed in range(seeds):

        def tried(k: int, seed: int = seed) -> tuple[bool, float]:
            """Whether T_k steps are enough, and how long they take."""
            solver = Pegasos(n_iter=steps_at(k), sampling="iid", projection=True, average="last")
            solution = solve(Problem(Hinge(), lam), rows.X, rows.y, solver=solver, certify=False, random_state=seed)
            return rows.excess(lam, best, solution.w) <= epsilon, solution.seconds

        k = 0
        while not tried(k)[0]:
            k += COARSE
        k = next(fine for fine in range(max(0, k - COARSE + 1), k + 1) if tried(fine)[0])
        found.append(steps_at(k))
        seconds.append(tried(k)[1])
    return {
        "steps": median(found),
        "all": found,
        "seconds": median(seconds),
        "per_row": rows.X.nnz / rows.X.shape[0],
        "best": best,
    }


def steps_at(k: int) -> int:
    """T_k of the grid."""
    return round(FIRST * GROWTH**k)


DOCUMENTS = {m: partial(documents, m) for m in SIZES}


def cases(options: Options) -> list[Case]:
    """One thing changes at a time."""
    seeds = 1 if options.quick else SEEDS
    sizes, lambdas, epsilons, lengths = SIZES, LAMBDAS, EPSILONS, LENGTHS
    if options.quick:
        sizes, lambdas, epsilons, lengths = SIZES[:2], LAMBDAS[:2], EPSILONS[:2], LENGTHS[:2]
    texts_of = {m: partial(documents, m, sizes[-1]) for m in sizes} if options.quick else DOCUMENTS
    whole = texts_of[sizes[-1]]
    texts = {per_row: partial(generated, per_row, sizes[0] if options.quick else GENERATED_ROWS) for per_row in lengths}
    made = [Case(f"m | {m}", partial(steps_to, texts_of[m], LAM, EPSILON, seeds)) for m in sizes]
    made += [Case(f"λ | {lam:g}", partial(steps_to, whole, lam, EPSILON, seeds)) for lam in lambdas]
    made += [Case(f"ε | {one:g}", partial(steps_to, whole, LAM, one, seeds)) for one in epsilons]
    made += [Case(f"d | {n}", partial(steps_to, texts[n], LAM, EPSILON, seeds)) for n in lengths]
    return made


def series(found: Found, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, steps and seconds as one thing changes (d: the non-zeros there are)."""
    points = []
    for name, one in found.items():
        kind, value = name.split(" | ")
        if kind == what:
            points.append((one["per_row"] if what == "d" else float(value), one["steps"], one["seconds"]))
    values, steps, seconds = np.array(points).reshape(-1, 3).T
    return values, steps, seconds


def exponent(x: np.ndarray, y: np.ndarray) -> float:
    """p of y ∝ xᵖ."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def tables(found: Found) -> Iterator[Table]:
    """Everything."""
    rows = []
    for name, one in found.items():
        what, value = name.split(" | ")
        shown = f"{one['per_row']:.0f}" if what == "d" else value
        rows.append(
            (
                f"{what} = {shown}",
                f"{one['steps']:,.0f}",
                f"{min(one['all']):,} to {max(one['all']):,}",
                f"{one['seconds']:.3f}",
                f"{1e6 * one['seconds'] / one['steps']:.2f}",
                f"{one['best']:.5f}",
            )
        )
    columns = ("", "steps", "of all seeds", "seconds", "µs per step", "P*")
    yield Table(f"Steps to ε (λ = {LAM:g}, ε = {EPSILON:g} unless said)", columns, rows)


def claims(found: Found) -> list[Claim]:
    """The rates."""
    needs: dict[str, list[str]] = {}
    for case in cases(Options()):
        needs.setdefault(case.name.split(" | ")[0], []).append(case.name)
    source = "Pegasos, abstract"
    return judged(
        [
            Statement(source, "the run time does not depend on the size of the training set", needs["m"], constant),
            Statement(source, "Õ(1/ε) iterations, not Ω(1/ε²)", needs["ε"], in_epsilon),
            Statement(source, "the number of iterations scales linearly with 1/λ", needs["λ"], in_lambda),
            Statement(
                "Implementing Pegasos",
                "the run time does not depend on λ",
                needs["λ"],
                lambda found: (verdict(-exponent(*series(found, "λ")[:2]) <= 0.15), in_lambda(found)[1]),
            ),
            Statement("Pegasos, §2", "a step costs O(d), d the non-zeros of the row", needs["d"], in_length),
        ],
        found,
    )


def constant(found: Found) -> tuple[str, str]:
    """Steps as m grows; and their seconds."""
    m, steps, seconds = series(found, "m")
    ratio = steps.max() / steps.min()
    return verdict(ratio <= 1.5), (
        f"{m.min():,.0f} to {m.max():,.0f} rows: {steps.min():,.0f} to {steps.max():,.0f} steps ({ratio:.2f} ×), "
        f"{1e3 * seconds.min():.0f} to {1e3 * seconds.max():.0f} ms (rows that no longer fit the cache take longer)"
    )


def in_epsilon(found: Found) -> tuple[str, str]:
    """Steps as ε falls."""
    epsilon, steps, _ = series(found, "ε")
    power = -exponent(epsilon, steps)
    return verdict(power <= 1.15), f"steps grow as ε^-{power:.2f} from ε = {epsilon.max():g} to {epsilon.min():g}"


def in_lambda(found: Found) -> tuple[str, str]:
    """Steps as λ falls."""
    lam, steps, _ = series(found, "λ")
    power = -exponent(lam, steps)
    return verdict(power <= 1.15, beaten=power < 0.85), (
        f"steps grow as λ^-{power:.2f} from λ = {lam.max():g} to {lam.min():g}"
    )


def in_length(found: Found) -> tuple[str, str]:
    """Seconds per step as rows get longer."""
    d, steps, seconds = series(found, "d")
    per_step = seconds / steps
    return verdict(exponent(d, per_step) <= 1.15), (
        f"{1e6 * per_step.min():.2f} to {1e6 * per_step.max():.2f} µs per step from {d.min():.0f} to {d.max():.0f} "
        f"non-zeros, d^{exponent(d, per_step):.2f} (from {d[-2]:.0f} on d^{exponent(d[-2:], per_step[-2:]):.2f}: short "
        "rows pay for what every step costs)"
    )


def figures(found: Found) -> dict[str, Any]:
    """Four panels."""
    from experiments.figures import GREY, panels, style

    figure, axes = panels(1, 4, width=3.4, height=3.4)
    for axis, what in zip(axes, "mλεd", strict=True):
        x, steps, seconds = series(found, what)
        if not x.size:
            axis.set_visible(False)
            continue
        order = np.argsort(x)
        x, steps, seconds = x[order], steps[order], seconds[order]
        y = 1e6 * seconds / steps if what == "d" else steps
        axis.plot(x, y, **style(0, "measured"))
        if what in "λε":
            axis.plot(x, y[-1] * x[-1] / x, color=GREY, linestyle=":", label=f"∝ 1/{what}")
        elif what == "d":
            axis.plot(x, y[-1] * x / x[-1], color=GREY, linestyle=":", label="∝ d")
        label = {"m": "rows m", "λ": "λ", "ε": "accuracy ε", "d": "non-zeros in a row d"}[what]
        axis.set(xscale="log", yscale="log", xlabel=label, ylabel="µs per step" if what == "d" else "steps to ε")
        if what == "m":
            axis.set_ylim(steps.min() / 10, steps.max() * 10)
        axis.legend(frameon=False, fontsize=8)
    return {"pegasos-scaling": figure}
