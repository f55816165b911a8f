"""The cost of one pass over the arXiv matrix, against SciPy's `X @ w` on the same float32 CSR matrix, one thread."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import QUICK_ROWS, Options, Promise, Table, interleaved, median, spread, timed
from benchmarks.datasets import arxiv

PRODUCT = "X @ w"
SWEEPS = 5

ABOUT = (
    "One pass over all rows, by the solver's own clock, against SciPy's `X @ w` on the same float32 CSR matrix; "
    "one thread, all in turn. A Pegasos pass is m steps with k = 1 over shuffled blocks, without certificate, "
    "either returning the weighted average or the last iterate. The first sweep of dual ascent "
    "includes its start; a later one is the mean of the next ones, without shrinking."
)


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Medians of interleaved passes."""
    from primalsvm import DualAscent, Hinge, Pegasos, Problem, solve

    split = arxiv()
    X, y = split.X_train, split.y_train
    if options.quick:
        X, y = X[:QUICK_ROWS], y[:QUICK_ROWS]
    m, d = X.shape
    w = np.random.default_rng(0).standard_normal(d).astype(np.float32)

    def pegasos(lam: float, average: Any) -> float:
        solver = Pegasos(batch_size=1, n_iter=m, sampling="blocks", average=average)
        return solve(Problem(Hinge(), lam), X, y, solver=solver, certify=False).seconds

    def first_sweep(lam: float) -> float:
        return solve(Problem(Hinge(), lam), X, y, solver=DualAscent(), max_iter=1, certify=False).seconds

    def later_sweep(lam: float) -> float:
        plain = DualAscent(shrinking=False)
        few, many = (
            solve(Problem(Hinge(), lam), X, y, solver=plain, max_iter=n, tol=1e-5, certify=False)
            for n in (1, 1 + SWEEPS)
        )
        return (many.seconds - few.seconds) / SWEEPS

    works: dict[str, Any] = {PRODUCT: lambda: timed(lambda: X @ w)[0]}
    for lam in options.lambdas:
        works[f"Pegasos, weighted average, λ = {lam:g}"] = lambda lam=lam: pegasos(lam, "weighted")
        works[f"Pegasos, last iterate, λ = {lam:g}"] = lambda lam=lam: pegasos(lam, "last")
        works[f"dual ascent, first sweep, λ = {lam:g}"] = lambda lam=lam: first_sweep(lam)
        works[f"dual ascent, later sweep, λ = {lam:g}"] = lambda lam=lam: later_sweep(lam)
    with threadpool_limits(1):
        interleaved(works, 1)  # warm
        times = interleaved(works, max(5, options.repeats))
    return {"rows": m, "entries": X.nnz, "bytes": X.data.nbytes + X.indices.nbytes, "times": times}


def _ratio(results: dict[str, Any], name: str) -> float:
    return median(results["times"][name]) / median(results["times"][PRODUCT])


def promises(results: dict[str, Any]) -> list[Promise]:
    """One Pegasos pass costs at most two products."""
    worst = max(_ratio(results, name) for name in results["times"] if name.startswith("Pegasos"))
    return [
        Promise("one Pegasos pass (k = 1, blocks): at most 2 × SciPy's `X @ w`", f"at most {worst:.2f} ×", worst <= 2)
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """All passes."""
    yield Table(
        f"One pass over {results['rows']:,} rows, {results['entries']:,} non-zeros",
        ("pass", "median, s", "range, s", "against `X @ w`", "GB/s"),
        [
            (
                name,
                f"{median(times):.3f}",
                spread(times),
                f"{_ratio(results, name):.2f} ×",
                f"{results['bytes'] / median(times) / 1e9:.1f}",
            )
            for name, times in results["times"].items()
        ],
    )
