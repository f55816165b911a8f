"""A path of 20 points against its last point alone: arXiv TF-IDF (dual ascent) and covtype (Newton), one thread."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import QUICK_ROWS, Options, Promise, Table, interleaved, median, spread, timed
from benchmarks.datasets import arxiv, covtype

LAMS = np.geomspace(1e-2, 1e-6, 20)
TOL = 1e-3
BOUND = 3.0
ARXIV = {"arXiv, no intercept": False, "arXiv, free intercept": True}  # whether there is one
ROUNDS = 7  # at least: passes over memory vary by half from one minute to the next

ABOUT = (
    "`svm_path` over 20 points, λ = 1e-2 … 1e-6, each certified to a relative gap of 1e-3, against the last point "
    "alone (`solve`, from nothing, the same tol); hinge, one thread, in turn. Both times are those of the whole call: "
    "checking the input, solving, certificates. The sum of 20 points, each alone, is shown beside it. arXiv is the "
    "matrix of *Time to accuracy*; covtype is standardised, class 2 against the rest, with 54 features (Newton)."
)


def problems(quick: bool) -> dict[str, tuple[Any, np.ndarray, bool]]:
    """Rows, labels, and whether there is an intercept."""
    text = arxiv()
    table, classes = covtype()
    table = ((table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-12)).astype(np.float32)
    signs = np.where(classes == 2, 1.0, -1.0)
    rows = slice(0, QUICK_ROWS if quick else None)
    return {
        **{name: (text.X_train[rows], text.y_train[rows], free) for name, free in ARXIV.items()},
        "covtype, free intercept": (table[rows], signs[rows], True),
    }


def measure(options: Options, console: Console) -> dict[str, Any]:
    """Interleaved times of paths, last points, and all points alone."""
    from primalsvm import Hinge, Problem, solve, svm_path

    found = {}
    for name, (X, y, free) in problems(options.quick).items():

        def alone(lam: float, X: Any = X, y: np.ndarray = y, free: bool = free) -> float:
            problem = Problem(Hinge(), lam, "free" if free else "none")
            return timed(lambda: solve(problem, X, y, tol=TOL))[0]

        gaps: list[float] = []

        def path(X: Any = X, y: np.ndarray = y, free: bool = free, gaps: list[float] = gaps) -> float:
            seconds, points = timed(lambda: svm_path(X, y, LAMS, fit_intercept=free, tol=TOL))
            gaps.append(max(proof.relative_gap for proof in points.certificates))
            return seconds

        works = {"path": path, "last": lambda: alone(LAMS[-1])}
        with threadpool_limits(1):
            interleaved(works, 1)  # compile
            times = interleaved(works, options.repeats if options.quick else max(ROUNDS, options.repeats))
            each = sum(alone(lam) for lam in LAMS)
        found[name] = {"rows": X.shape[0], "features": X.shape[1], **times, "each": each, "worst_gap": max(gaps)}
        console.print(f"  {name}: {_ratio(found[name]):.2f} ×")
    return found


def _ratio(cell: dict[str, Any]) -> float:
    return median(cell["path"]) / median(cell["last"])


def promises(results: dict[str, Any]) -> list[Promise]:
    """20 points cost three times the last at most."""
    return [
        Promise(
            f"20 points of a path on {name}: at most {BOUND:g} × its last point alone",
            f"{_ratio(results[name]):.2f} ×",
            _ratio(results[name]) <= BOUND,
        )
        for name in ARXIV
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """All problems."""
    yield Table(
        "20 points, λ = 1e-2 … 1e-6: seconds, median",
        ("problem", "rows × features", "path", "range", "last point alone", "range", "ratio", "20 alone", "worst gap"),
        [
            (
                name,
                f"{cell['rows']:,} × {cell['features']:,}",
                f"{median(cell['path']):.2f}",
                spread(cell["path"], 2),
                f"{median(cell['last']):.2f}",
                spread(cell["last"], 2),
                f"{_ratio(cell):.2f} ×",
                f"{cell['each']:.2f}",
                f"{cell['worst_gap']:.1e}",
            )
            for name, cell in results.items()
        ],
    )
