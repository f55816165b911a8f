"""Time to accuracy: one binary fit on arXiv TF-IDF, `cs` against the rest, hinge, no intercept.

For each λ, ε and number of threads: the least median time of a contestant over those settings of its sweep whose
objective is at most (1 + ε) P*. P* is bracketed by a certificate of its own; its lower end is used, which is strict
on everyone.

A first run of each setting finds the ones that reach each accuracy; the quickest of these are then repeated, all
contestants in turn, with another seed each round. A setting counts as having reached ε if its median objective has.
A peer that is several times slower than the fastest one is not repeated: its first run is shown.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import (
    QUICK_ROWS,
    Options,
    Promise,
    Table,
    error_rate,
    hinge_objective,
    interleaved,
    median,
    spread,
    timed,
)
from benchmarks.datasets import Split, arxiv
from benchmarks.peers import OURS, PEERS, Contestant

ACCURACIES = (1e-3, 1e-4)
BRACKET = 5e-6  # relative width of the interval that is known to hold P*
PATIENCE = 10.0  # seconds: a sweep is given up after a run that took longer
QUICK_PATIENCE = 1.0
CANDIDATES = 2  # settings per contestant and accuracy that are repeated
SLOW = 3.0  # a setting that took so many times as long as the fastest peer's best is not repeated

ABOUT = (
    "Seconds until P(w) ≤ (1 + ε) P*, for hinge loss without intercept on arXiv TF-IDF, `cs` against the rest "
    "(min_df = 10, sublinear, float32). Each contestant is swept over its own stopping rule and shown at its "
    "best: the least median time over the settings that reach ε, contestants interleaved, each with the same "
    "number of threads (LinearSVC, liblinear and SGDClassifier can use only one in a binary fit). One objective "
    "function in double precision judges all. Our time is the whole of `LinearSVC.fit`: checking the input, "
    "solving, the certificate. liblinear's time leaves out the conversion of the matrix. Kernels are compiled "
    "beforehand; what that costs is under *Start-up*. A dash: not reached before a run took longer than the "
    "sweep's patience. Several times slower than the fastest peer: not repeated."
)


class Outcome(NamedTuple):
    """One run."""

    seconds: float
    objective: float
    test_error: float


class Judge:
    """Runs contestants on one matrix and scores them all alike."""

    def __init__(self, split: Split, contestants: tuple[Contestant, ...] = (OURS, *PEERS)) -> None:
        self.split = split
        self.X64 = split.X_train.astype(np.float64)
        self.X64_test = split.X_test.astype(np.float64)
        self.data = {c.name: c.prepare(split.X_train, split.y_train) for c in contestants}

    def run(self, contestant: Contestant, lam: float, setting: float, threads: int, seed: int) -> Outcome:
        data = self.data[contestant.name]
        with threadpool_limits(threads):
            seconds, w = timed(lambda: contestant.fit(data, lam, setting, threads, seed))
        objective = hinge_objective(self.X64, self.split.y_train, w, lam)
        return Outcome(seconds, objective, error_rate(self.X64_test, self.split.y_test, w))

    def bracket(self, lam: float, threads: int) -> tuple[float, float]:
        """D ≤ P* ≤ P."""
        from primalsvm import Hinge, Problem, solve

        problem = Problem(Hinge(), lam)
        solution = solve(problem, self.split.X_train, self.split.y_train, tol=BRACKET, n_jobs=threads, max_iter=5000)
        assert solution.certificate is not None
        return solution.certificate.dual, hinge_objective(self.X64, self.split.y_train, solution.w, lam)


Scouted = dict[float, Outcome]  # the first run of each setting


def scout(judge: Judge, contestant: Contestant, lam: float, threads: int, goal: float, patience: float) -> Scouted:
    """One run of each setting, up to the one after the first that reaches the strictest accuracy."""
    seen: Scouted = {}
    reached = 0
    for setting in contestant.settings:
        outcome = judge.run(contestant, lam, setting, threads, seed=0)
        seen[setting] = outcome
        reached += outcome.objective <= goal
        if reached == CANDIDATES or outcome.seconds > patience:
            break
    return seen


def promising(seen: Scouted, goal: float) -> list[float]:
    """The settings worth repeating, of those that reached the goal: the first in the sweep, and the quickest others."""
    reached = [setting for setting, outcome in seen.items() if outcome.objective <= goal]
    return reached[:1] + sorted(reached[1:], key=lambda setting: seen[setting].seconds)[: CANDIDATES - 1]


def measure(options: Options, console: Console) -> dict[str, Any]:
    """All cells."""
    split = arxiv()
    if options.quick:
        split = split._replace(X_train=split.X_train[:QUICK_ROWS], y_train=split.y_train[:QUICK_ROWS])
    judge = Judge(split)
    patience = QUICK_PATIENCE if options.quick else PATIENCE
    for contestant in (OURS, *PEERS):  # compile kernels, load libraries
        for threads in options.threads if contestant.threaded else (1,):
            judge.run(contestant, options.lambdas[0], contestant.settings[0], threads, seed=0)
    cells: list[dict[str, Any]] = []
    brackets = {}
    for lam in options.lambdas:
        low, high = brackets[f"{lam:g}"] = judge.bracket(lam, max(options.threads))
        console.print(f"λ = {lam:g}: P* in [{low:.8f}, {high:.8f}]")
        scouted: dict[tuple[str, int], Scouted] = {}
        for contestant in (OURS, *PEERS):
            for threads in options.threads if contestant.threaded else (1,):
                seen = scout(judge, contestant, lam, threads, (1 + min(ACCURACIES)) * low, patience)
                scouted[contestant.name, threads] = seen
                tried = ", ".join(f"{s:g}: {o.seconds:.2f} s {o.objective / low - 1:.0e}" for s, o in seen.items())
                console.print(f"  {contestant.name}, {threads} thread(s), {contestant.knob}  [dim]{tried}[/dim]")
        for threads in options.threads:
            cells += _measure_cells(judge, lam, threads, low, options.repeats, scouted)
    return {
        "rows": split.X_train.shape[0],
        "features": split.X_train.shape[1],
        "entries": split.X_train.nnz,
        "test_rows": split.X_test.shape[0],
        "repeats": options.repeats,
        "patience": patience,
        "brackets": brackets,
        "cells": cells,
        "predict": _predict(split, options),
    }


def _measure_cells(
    judge: Judge, lam: float, threads: int, optimum: float, repeats: int, scouted: dict[tuple[str, int], Scouted]
) -> list[dict[str, Any]]:
    """The cells of one λ and number of threads: repeat what looks promising for any accuracy, then pick for each."""
    contestants = (OURS, *PEERS)
    used = {c.name: threads if c.threaded else 1 for c in contestants}
    runs: dict[tuple[str, float], list[Outcome]] = {}  # of each contestant and setting
    wanted: dict[tuple[str, float], Contestant] = {}  # … that are worth repeating
    for eps in ACCURACIES:
        goal = (1 + eps) * optimum
        found = {
            (c.name, setting): scouted[c.name, used[c.name]][setting]
            for c in contestants
            for setting in promising(scouted[c.name, used[c.name]], goal)
        }
        fastest = min((o.seconds for (name, _), o in found.items() if name != OURS.name), default=np.inf)
        for c in contestants:
            for (name, setting), outcome in found.items():
                if name == c.name:
                    runs.setdefault((name, setting), [outcome])
                    if outcome.seconds <= SLOW * fastest:
                        wanted[name, setting] = c
    for key in wanted:
        runs[key] = []
    for seed in range(repeats):
        for (name, setting), c in wanted.items():
            runs[name, setting].append(judge.run(c, lam, setting, used[name], seed))
    return [
        {
            "lam": lam,
            "eps": eps,
            "threads": threads,
            "best": {c.name: _best(c, runs, (1 + eps) * optimum, optimum) for c in contestants},
        }
        for eps in ACCURACIES
    ]


def _best(
    contestant: Contestant, runs: dict[tuple[str, float], list[Outcome]], goal: float, optimum: float
) -> dict[str, Any] | None:
    """The setting with the least median time among those that reach the goal."""
    found = []
    for (name, setting), outcomes in runs.items():
        objective = median(o.objective for o in outcomes)
        if name == contestant.name and objective <= goal:
            found.append(
                {
                    "seconds": median(o.seconds for o in outcomes),
                    "all_seconds": [o.seconds for o in outcomes],
                    "setting": f"{contestant.knob} {setting:g}",
                    "objective": objective,
                    "excess": objective / optimum - 1,
                    "test_error": median(o.test_error for o in outcomes),
                }
            )
    return min(found, key=lambda best: best["seconds"]) if found else None


def _predict(split: Split, options: Options) -> dict[str, Any]:
    """Rows per second of `decision_function` on the training matrix."""
    import sklearn.svm

    import primalsvm

    few = slice(0, 5000)
    X, sample = split.X_train, (split.X_train[few], split.y_train[few])
    theirs = sklearn.svm.LinearSVC(loss="hinge", fit_intercept=False).fit(*sample)
    works = {"LinearSVC": lambda: _clocked(theirs, X, 1)}
    for threads in options.threads:
        ours = primalsvm.LinearSVC(fit_intercept=False, n_jobs=threads).fit(*sample)
        works[f"primalsvm, {threads} thread(s)"] = lambda ours=ours, threads=threads: _clocked(ours, X, threads)
    interleaved(works, 1)
    times = interleaved(works, max(3, options.repeats))
    return {name: X.shape[0] / median(found) for name, found in times.items()}


def _clocked(model: Any, X: Any, threads: int) -> float:
    with threadpool_limits(threads):
        return timed(lambda: model.decision_function(X))[0]


# ---- the report ------------------------------------------------------------------------------------------------------


def _fastest_peer(cell: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    peers = [(name, best) for name, best in cell["best"].items() if best is not None and name != OURS.name]
    return min(peers, key=lambda peer: peer[1]["seconds"]) if peers else None


def ratio(cell: dict[str, Any]) -> float:
    """Time of the fastest peer over ours; nan if we did not get there, inf if no peer did."""
    ours, peer = cell["best"][OURS.name], _fastest_peer(cell)
    if ours is None:
        return float("nan")
    return float("inf") if peer is None else float(peer[1]["seconds"] / ours["seconds"])


def promises(results: dict[str, Any]) -> list[Promise]:
    """At least 3× in each cell, 5× in most."""
    ratios = [ratio(cell) for cell in results["cells"]]
    lowest = min(ratios, default=float("nan"))
    many = sum(r >= 5 for r in ratios)
    return [
        Promise("time to accuracy: at least 3× the fastest peer in each cell", f"lowest {lowest:.1f}×", lowest >= 3),
        Promise("… and 5× in most", f"{many} of {len(ratios)} cells", many > len(ratios) / 2),
    ]


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """Times and ratios; how each contestant got there; prediction."""
    names = [contestant.name for contestant in (OURS, *PEERS)]
    yield Table(
        f"Seconds to P ≤ (1 + ε) P*: {results['rows']:,} rows × {results['features']:,} features, "
        f"{results['entries']:,} non-zeros, median of {results['repeats']}",
        ("threads", "λ", "ε", *names, "fastest peer / ours"),
        [
            (
                *_cell_name(cell),
                *("—" if cell["best"][name] is None else f"{cell['best'][name]['seconds']:.2f}" for name in names),
                f"{ratio(cell):.1f}×",
            )
            for cell in results["cells"]
        ],
    )
    yield Table(
        f"How each got there (test error on {results['test_rows']:,} rows of another shard)",
        ("threads", "λ", "ε", "contestant", "setting", "seconds", "P(w)", "P(w)/P* − 1", "test error"),
        [
            (
                *_cell_name(cell),
                name,
                best["setting"],
                spread(best["all_seconds"], 2),
                f"{best['objective']:.6f}",
                f"{best['excess']:.1e}",
                f"{best['test_error']:.2%}",
            )
            for cell in results["cells"]
            for name, best in cell["best"].items()
            if best is not None
        ],
    )
    yield Table(
        "The interval that holds P*",
        ("λ", "D", "P", "relative width"),
        [
            (lam, f"{low:.8f}", f"{high:.8f}", f"{high / low - 1:.1e}")
            for lam, (low, high) in results["brackets"].items()
        ],
    )
    yield Table(
        "Prediction: `decision_function` on the training matrix",
        ("", "rows per second"),
        [(name, f"{rate:,.0f}") for name, rate in results["predict"].items()],
    )


def _cell_name(cell: dict[str, Any]) -> tuple[str, str, str]:
    return str(cell["threads"]), f"{cell['lam']:g}", f"{cell['eps']:g}"
