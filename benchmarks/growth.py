"""Pegasos with a given number of steps costs the same however many rows there are, and learns the same.

One generated matrix; smaller problems are windows of its rows, another window and another seed for each repeat, so
the spread of the held-out objective includes that of the sample.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import Options, Promise, Table, hinge_objective, interleaved, median, spread

SIZES = (100_000, 1_000_000, 4_000_000)
QUICK_SIZES = (50_000, 500_000, 1_000_000)
PER_ROW = 30
HELD_OUT = 200_000
STEPS = (100_000, 1_000_000)
LAM = 1e-4
SAMPLINGS = ("blocks", "iid")

ABOUT = (
    "Pegasos (k = 1, `certify=False`) with a given `n_iter`, by the solver's own clock, on generated, text-like "
    "rows of one distribution; and λ/2 ‖w‖² + mean hinge on common held-out rows. Each repeat has another seed "
    "and, for the smaller sizes, other rows. One thread, sizes in turn. `blocks` is the default order; `iid` "
    "draws every row from anywhere in memory. With more steps than rows, rows are seen again and the held-out "
    "objective is that of a smaller sample: it is shown, but the objectives are compared among the sizes that "
    "have a row for every step."
)


def window(X: sp.csr_array, y: np.ndarray, first: int, m: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows first … first + m in place, without a copy of their entries."""
    start, stop = X.indptr[first], X.indptr[first + m]
    indptr = X.indptr[first : first + m + 1] - start
    rows = sp.csr_array((X.data[start:stop], X.indices[start:stop], indptr), shape=(m, X.shape[1]), copy=False)
    return rows, y[first : first + m]


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Seconds and held-out objectives for each number of steps, order and size."""
    from primalsvm import Hinge, Pegasos, Problem, solve
    from primalsvm.sources.generated import text_like

    sizes = QUICK_SIZES if options.quick else SIZES
    largest = max(sizes)
    X, y, X_held, y_held = text_like(largest, per_row=PER_ROW, n_test=HELD_OUT, n_jobs=-1)
    X_held = X_held.astype(np.float64)
    objectives: dict[str, list[float]] = {}

    def run(steps: int, sampling: Any, m: int) -> float:
        done = objectives.setdefault(_name(steps, sampling, m), [])
        seed = len(done)
        rows, labels = window(X, y, seed * m % largest, m)
        solver = Pegasos(n_iter=steps, sampling=sampling)
        problem = Problem(Hinge(), LAM)
        solution = solve(problem, rows, labels, solver=solver, certify=False, random_state=seed)
        done.append(hinge_objective(X_held, y_held, solution.w, LAM))
        return solution.seconds

    works = {
        _name(steps, sampling, m): (lambda steps=steps, sampling=sampling, m=m: run(steps, sampling, m))
        for steps in STEPS
        for sampling in SAMPLINGS
        for m in sizes
    }
    with threadpool_limits(1):
        times = interleaved(works, 1 + max(5, options.repeats))
    return {
        "sizes": list(sizes),
        "lam": LAM,
        "features": X.shape[1],
        "per_row": X.nnz / X.shape[0],
        "held_out": HELD_OUT,
        "times": {name: found[1:] for name, found in times.items()},  # the first round warms the kernels
        "objectives": objectives,
    }


def _name(steps: int, sampling: str, m: int) -> str:
    return f"{steps} steps, {sampling}, {m} rows"


def promises(results: dict[str, Any]) -> list[Promise]:
    """Within 1.5 × and 3 ×, and the same objective within noise."""
    small, middle, large = results["sizes"]

    def slowdown(m: int) -> float:
        return max(
            median(results["times"][_name(steps, "blocks", large)])
            / median(results["times"][_name(steps, "blocks", m)])
            for steps in STEPS
        )

    fourfold, fortyfold = slowdown(middle), slowdown(small)
    apart, noise = max((_disagreement(results, steps) for steps in STEPS), key=lambda pair: pair[0] / pair[1])
    return [
        Promise(f"Pegasos, {middle:,} → {large:,} rows: within 1.5 ×", f"at most {fourfold:.2f} ×", fourfold <= 1.5),
        Promise(f"Pegasos, {small:,} → {large:,} rows: within 3 ×", f"at most {fortyfold:.2f} ×", fortyfold <= 3),
        Promise(
            "… and the same held-out objective within noise",
            f"means {apart:.1e} apart, three standard errors are {noise:.1e}",
            apart <= noise,
        ),
    ]


def _disagreement(results: dict[str, Any], steps: int) -> tuple[float, float]:
    """How far apart the mean objectives of different sizes are, and three standard errors of such a difference."""
    found = [results["objectives"][_name(steps, "blocks", m)] for m in results["sizes"] if m >= steps]
    means = [float(np.mean(values)) for values in found]
    variance = float(np.mean([np.var(values, ddof=1) for values in found]))
    return max(means) - min(means), 3 * (2 * variance / min(map(len, found))) ** 0.5


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Seconds and objectives."""
    yield Table(
        f"λ = {results['lam']:g}, {results['per_row']:.0f} non-zeros a row, {results['features']:,} features",
        ("steps", "order", "rows", "median, s", "range, s", "held-out objective, mean", "standard deviation"),
        [
            (
                f"{steps:,}",
                sampling,
                f"{m:,}",
                f"{median(results['times'][_name(steps, sampling, m)]):.4f}",
                spread(results["times"][_name(steps, sampling, m)], 4),
                f"{np.mean(results['objectives'][_name(steps, sampling, m)]):.5f}",
                f"{np.std(results['objectives'][_name(steps, sampling, m)], ddof=1):.5f}",
            )
            for steps in STEPS
            for sampling in SAMPLINGS
            for m in results["sizes"]
        ],
    )
