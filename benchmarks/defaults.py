"""Fits with the defaults: that they converge, and as fast as the best solver for the problem would.

    python -m benchmarks.defaults NAME … [--C 1 100] [--nu 0.1] [--repeats 1] [--no-peer]

measures some of the data sets (`benchmarks/defaults_data.py`) alone, prints each cell at once and keeps nothing.
"""

import argparse
import math
import multiprocessing
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.common import Options, Promise, Table, interleaved, median, timed, touch_memory
from benchmarks.defaults_data import DATASETS

SOLVERS = ("dual_ascent", "newton", "interior_point")  # one that refuses a problem, or does not exist, is left out
RANKERS = ("cutting_planes",)
# Rows × features × the fewer of them, above which one step takes minutes, or more memory than there is.
HEAVY = {"newton": 5e11, "interior_point": 5e12}
CS = (0.01, 1.0, 100.0, 1e4)
NUS = (0.01, 0.1, 0.5)
QUICK_CS, QUICK_NUS, QUICK_ROWS = (1.0, 1e4), (0.1, 0.5), 300
QUICK = (
    "two_rows", "one_feature", "constant_features", "duplicated_rows", "heavy_tailed", "noise", "wine", "sparse_8000",
    "far_from_origin", "diabetes", "regression_unscaled", "kernel_diabetes", "queries", "cloud", "centred_cloud",
    "kernel_cloud",
)  # fmt: skip
PEER = "scikit-learn"
TOL = 1e-3  # the estimators' own
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)  # scikit-learn's
ENDLESS = 10_000_000  # iterations: scikit-learn is stopped by the clock
FEWER = (1_000, 100, 10)  # … where it shall show a gap

LONGEST = 300.0  # seconds of a fit with the defaults; one that takes longer is stopped, and counts as unsolved
LONG = 20.0  # seconds of a fit with the defaults, after which nothing in its cell is repeated
PATIENCE = 4.0  # times the seconds of the defaults that a solver alone gets,
PATIENCE_LONG = 1.5  # … after `LONG` / 4 seconds,
LEAST_SECONDS = 1.0  # … and at least so many
PEER_PATIENCE, PEER_SECONDS = 3.0, 20.0  # scikit-learn's; but never less than the defaults take
REPEATED = 3.0  # times the seconds of the defaults, up to which a contestant is measured again
WARM_ENTRIES = 200_000  # of the rows that kernels are compiled with: more than a small problem has
BUSY = 0.7  # processes that run on average: a fit of 1 s took 30 s beside another process, on two cores
WARM_SECONDS, WARM_TRIES = 0.3, 4
ZERO = 1e-9  # of ν/2 mean‖x‖²: a one-class P* that is 0

ABOVE, MEAN, FACTOR, GRACE, HOUR = 3, 1.2, 2.0, 0.05, 3600.0

ABOUT = (
    "Fits with nothing given but C (0.01, 1, 100, 10,000) or, of one class, ν (0.01, 0.1, 0.5), and `random_state=0`, "
    f"to the default `tol` = {TOL:g}, on one core: as many data sets at a time as there are cores, with one thread of "
    "BLAS each. *Gap* is the relative duality gap, of several classes the worst. A one-class problem whose rows "
    "surround the origin has P* = 0, which no gap is small beside: proving it counts as solved. A fit is stopped after "
    f"{LONGEST:g} s, and then counts as unsolved.\n\n"
    "*Own solvers* are ours, each alone on the same cell, where it applies and one step of it does not take minutes, "
    f"stopped after {PATIENCE:g} × the seconds of the defaults (at least {LEAST_SECONDS:g} s; {PATIENCE_LONG:g} × if "
    f"these are more than {LONG / 4:g} s). *scikit-learn* is its `LinearSVC(loss='hinge')`, `LinearSVR` or "
    "`OneClassSVM(kernel='linear')`, in a process of its own, with its `tol` walked over "
    f"{', '.join(f'{tol:g}' for tol in TOLERANCES)} until our P, at its w with the best intercept for it, is within "
    f"{TOL:g} of our best lower bound. It gets {PEER_PATIENCE:g} × the seconds of the defaults (at least "
    f"{LEAST_SECONDS:g} s, at most {PEER_SECONDS:g} s or the defaults' own). What ends above `tol` has no time, but "
    "its gap in brackets. Estimators with a kernel have `approximation='nystroem'` here.\n\n"
    "Kernels are compiled before. Contestants in turn, medians of three; those that take more than "
    f"{REPEATED:g} × as long as the defaults, and all where these take more than {LONG:g} s, are not repeated."
)


class Task(NamedTuple):
    """One data set, loaded."""

    name: str
    estimator: str
    X: Any
    y: Any

    @property
    def parameter(self) -> str:
        """What is varied."""
        return "nu" if "OneClass" in self.estimator else "C"

    @property
    def with_kernel(self) -> bool:
        """Whether the estimator has a kernel; its features are Nyström's, as exact machines have one solver only."""
        return self.estimator in ("SVC", "SVR", "OneClassSVM")

    @property
    def solvers(self) -> tuple[str, ...]:
        """Our solvers that can be tried alone."""
        m, d = self.X.shape
        names = RANKERS if self.estimator == "LinearRanker" else SOLVERS
        heavy = 0.0 if self.with_kernel else float(m) * d * min(m, d)
        return tuple(name for name in names if heavy <= HEAVY.get(name, math.inf))

    @property
    def classes(self) -> int:
        """How many there are; 0 where there are none."""
        return len(np.unique(self.y)) if self.estimator in ("LinearSVC", "SVC") else 0

    @property
    def kernels(self) -> tuple[Any, ...]:
        """What the compiled kernels depend on."""
        return self.estimator, sp.issparse(self.X), self.X.dtype, self.classes > 2

    def first(self, rows: int) -> "Task":
        """The first rows."""
        return self._replace(X=self.X[:rows], y=None if self.y is None else self.y[:rows])

    def every(self, rows: int) -> "Task":
        """About so many rows, from all over: the first may be of one class."""
        apart = max(1, self.X.shape[0] // rows)
        if apart == 1:
            return self
        X = self.X[::apart] if sp.issparse(self.X) else np.ascontiguousarray(self.X[::apart])
        return self._replace(X=X, y=None if self.y is None else self.y[::apart])


class Limits(NamedTuple):
    """How much to measure."""

    Cs: tuple[float, ...] = CS
    nus: tuple[float, ...] = NUS
    repeats: int = 3
    rows: int | None = None  # the first ones alone
    least_seconds: float = LEAST_SECONDS
    peer: bool = True
    peer_iterations: int = ENDLESS


# ---- one fit ---------------------------------------------------------------------------------------------------------


def size_of(X: Any) -> int:
    """Bytes of the rows, in double precision."""
    return 8 * int(X.nnz if sp.issparse(X) else X.size)


def fit(task: Task, value: float, solver: str = "auto", seconds: float = LONGEST) -> dict[str, Any] | None:
    """One fit of ours: seconds, gap, lower bounds, and how it ended; None if the solver refuses the problem."""
    import primalsvm

    make = getattr(primalsvm, task.estimator)
    given = {"approximation": "nystroem"} if task.with_kernel else {}
    model = make(**{task.parameter: value}, **given, solver=solver, max_seconds=seconds, random_state=0)
    more: dict[str, Any] = {}
    y = task.y
    if task.estimator == "LinearRanker":
        y, more["qid"] = task.y[:, 0], task.y[:, 1]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        touch_memory(size_of(task.X))
        try:
            took, _ = timed(lambda: model.fit(task.X, y, **more))
        except ValueError:
            if solver == "auto":
                raise
            return None
    proofs = [one for one in model.certificates_ if one is not None]
    zero = is_zero(task, value, proofs[0])
    gap = max(one.relative_gap for one in proofs)
    return {
        "seconds": [took],
        "gap": gap,
        "zero": zero,
        "solved": bool(zero or gap <= TOL),
        "duals": [one.dual for one in proofs],
        "status": model.status_.value,
        "solver": repr(model.solver_),
        "message": str(told[-1].message) if told else "",
    }


def is_zero(task: Task, value: float, proof: Any) -> bool:
    """Whether P* = 0 is what a one-class fit has proven: rows surround the origin."""
    if task.parameter != "nu" or proof.primal != 0.0:
        return False
    rows = np.square(task.X.data if sp.issparse(task.X) else task.X).sum() / task.X.shape[0]
    mean_square = 1.0 if task.estimator == "OneClassSVM" else float(rows)  # of mapped rows
    return bool(-proof.dual <= ZERO * value / 2 * mean_square)


def warm_up(task: Task, done: set[tuple[Any, ...]]) -> None:
    """Compile what fits to such rows need: each solver on some rows, and the start of a fit to all."""
    some = task.every(max(QUICK_ROWS, math.ceil(WARM_ENTRIES / task.X.shape[1])))
    value = NUS[1] if task.parameter == "nu" else CS[-1]
    for solver in ("auto", *task.solvers):
        if (*task.kernels, solver) not in done:
            done.add((*task.kernels, solver))
            until_compiled(some, value, solver)
    if task.X.shape[0] > some.X.shape[0]:
        until_compiled(task, value, "auto")


def until_compiled(task: Task, value: float, solver: str) -> None:
    """Begin a fit, and again while that becomes faster: then it was compiling, which cannot be stopped."""
    before = math.inf
    for _ in range(WARM_TRIES):
        found = fit(task, value, solver, WARM_SECONDS)
        if found is None or not 3 * WARM_SECONDS < found["seconds"][0] < 0.7 * before:
            return
        before = found["seconds"][0]


# ---- scikit-learn, in a process of its own ---------------------------------------------------------------------------


def serve(line: Connection) -> None:
    """The other process: it takes rows, and fits to them what it is told, until it is ended."""
    from sklearn import svm

    made: dict[str, Callable[..., Any]] = {
        "LinearSVC": lambda value, **more: svm.LinearSVC(C=value, loss="hinge", random_state=0, **more),
        "LinearSVR": lambda value, **more: svm.LinearSVR(C=value, random_state=0, **more),
        "LinearOneClassSVM": lambda value, **more: svm.OneClassSVM(kernel="linear", nu=value, **more),
    }
    warnings.simplefilter("ignore")  # stopping at max_iter is seen in P
    estimator, X, y = line.recv()
    line.send("ready")
    while True:
        order = line.recv()
        if len(order) == 3:
            estimator, X, y = order
            line.send("ready")
            continue
        value, more = order
        model = made[estimator](value, **more)
        touch_memory(size_of(X))
        seconds, _ = timed(lambda model=model, X=X, y=y: model.fit(X, y))
        coef = model.coef_.toarray() if sp.issparse(model.coef_) else np.atleast_2d(model.coef_)
        line.send((seconds, coef))


class Peer:
    """scikit-learn, whose fits cannot be interrupted: in a process that can be ended."""

    def __init__(self, max_iter: int) -> None:
        self.max_iter = max_iter
        self._process: Any = None
        self._line: Any = None
        self._task: Task | None = None  # whose rows the process has

    def fit(
        self, task: Task, value: float, tol: float, seconds: float, max_iter: int | None = None
    ) -> tuple[float, np.ndarray] | None:
        """Seconds and weights; None if it takes longer than it may, or fails."""
        try:
            self._give(task)
            self._line.send((value, {"tol": tol, "max_iter": max_iter or self.max_iter}))
            if self._line.poll(seconds + 1.0):  # what it does before its clock starts
                took, coef = self._line.recv()
                return (took, coef) if took <= seconds else None
        except (EOFError, OSError):  # it has died
            pass
        self.end()
        return None

    def _give(self, task: Task) -> None:
        if self._task is task:
            return
        if self._process is None:
            start = multiprocessing.get_context("spawn")
            self._line, theirs = start.Pipe()
            self._process = start.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self._line.send((task.estimator, task.X, task.y))
        self._line.recv()
        self._task = task

    def end(self) -> None:
        """End the process; the next fit starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._line.close()
        self._process = self._line = self._task = None


PEERS = ("LinearSVC", "LinearSVR", "LinearOneClassSVM")  # those that have the same problem in scikit-learn


def values_at(task: Task, value: float, coef: np.ndarray) -> list[float]:
    """Our P at each of scikit-learn's weights, with the best intercept for them."""
    from primalsvm import Problem
    from primalsvm.data import as_dataset
    from primalsvm.losses import EpsilonInsensitive, Hinge, OneSided

    m = task.X.shape[0]
    if task.estimator == "LinearOneClassSVM":
        problem, labels, coef = Problem(OneSided(), value, "free", nu=value), [np.zeros(m)], coef / (value * m)
    elif task.estimator == "LinearSVR":
        problem, labels = Problem(EpsilonInsensitive(0.0), 1.0 / (value * m), "free"), [task.y]
    else:
        problem, classes = Problem(Hinge(), 1.0 / (value * m), "free"), np.unique(task.y)
        labels = [np.where(task.y == one, 1.0, -1.0) for one in (classes if len(classes) > 2 else classes[1:])]
    data = as_dataset(task.X)
    return [
        problem.on(data, np.asarray(y, float)).evaluate_primal(np.asarray(w, float), math.nan)[1]
        for y, w in zip(labels, coef, strict=True)
    ]


def worst_gap(primals: Iterable[float], duals: Iterable[float]) -> float:
    """The largest relative gap."""
    from primalsvm.solution import relative_gap

    return max(relative_gap(primal, dual) for primal, dual in zip(primals, duals, strict=True))


def walk(
    peer: Peer, task: Task, value: float, duals: list[float], seconds: float, solved: bool
) -> list[dict[str, Any]]:
    """scikit-learn's fits, from a loose tolerance to a strict one, until one is as good as ours has to be.

    One that takes too long is stopped, and has no gap. Where ours is not `solved`, it then shows what it can do in
    fewer iterations.
    """
    tried: list[dict[str, Any]] = []

    def attempt(tol: float, max_iter: int | None = None) -> float | None:
        found = peer.fit(task, value, tol, seconds, max_iter)
        gap = None if found is None else worst_gap(values_at(task, value, found[1]), duals)
        tried.append({"tol": tol, "seconds": [seconds if found is None else found[0]], "gap": gap})
        return gap

    for tol in TOLERANCES:
        gap = attempt(tol)
        if gap is None and not solved:
            any(attempt(tol, max_iter) is not None for max_iter in FEWER)
        if gap is None or gap <= TOL:
            break
    return tried


# ---- one cell --------------------------------------------------------------------------------------------------------


def measure_cell(task: Task, value: float, limits: Limits, peer: Peer) -> dict[str, Any]:
    """The defaults, each of our solvers alone, and scikit-learn; then once more in turn, those that are fast enough."""
    auto = fit(task, value)
    assert auto is not None
    once = auto["seconds"][0]
    patience = PATIENCE if once <= LONG / 4 else PATIENCE_LONG
    limit = max(limits.least_seconds, patience * once)
    own = {solver: fit(task, value, solver, limit) for solver in task.solvers}
    runs = {"auto": auto, **{solver: found for solver, found in own.items() if found is not None}}
    duals = [max(bounds) for bounds in zip(*(found.pop("duals") for found in runs.values()), strict=True)]
    tried: list[dict[str, Any]] = []
    if limits.peer and task.estimator in PEERS and not auto["zero"]:
        enough = max(LEAST_SECONDS, min(PEER_PATIENCE * once, PEER_SECONDS), once)
        tried = walk(peer, task, value, duals, enough if auto["solved"] else PEER_SECONDS, auto["solved"])

    def again(solver: str) -> Callable[[], float]:
        seconds = LONGEST if solver == "auto" else limit
        return lambda: (fit(task, value, solver, seconds) or {"seconds": [math.inf]})["seconds"][0]

    works = {
        solver: again(solver)
        for solver, found in runs.items()
        if solver == "auto" or (found["solved"] and found["seconds"][0] <= REPEATED * once)
    }
    cell = {
        "data": task.name,
        "estimator": task.estimator,
        "rows": task.X.shape[0],
        "features": task.X.shape[1],
        "classes": task.classes,
        "sparse": bool(sp.issparse(task.X)),
        "parameter": task.parameter,
        "value": value,
        "auto": auto,
        "own": {solver: found for solver, found in runs.items() if solver != "auto"},
        "peer": tried,
    }
    theirs = counted_peer(cell)
    if theirs is not None and theirs["seconds"][0] <= REPEATED * once:
        patient = REPEATED * PEER_SECONDS + once
        works[PEER] = lambda: (peer.fit(task, value, theirs["tol"], patient) or (math.inf,))[0]
        runs[PEER] = theirs
    for who, seconds in interleaved(works, limits.repeats - 1 if once <= LONG else 0).items():
        runs[who]["seconds"] += seconds
    return cell


def cells_of(name: str, limits: Limits, peer: Peer, compiled: set[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """The cells of a data set, each as soon as it is measured."""
    task = Task(name, DATASETS[name].estimator, *DATASETS[name].load())
    task = task if limits.rows is None else task.first(limits.rows)
    warm_up(task, compiled)
    for value in limits.nus if task.parameter == "nu" else limits.Cs:
        yield measure_cell(task, value, limits, peer)


def measure_all(names: Iterable[str], limits: Limits, console: Console) -> list[dict[str, Any]]:
    """The cells of these data sets, one data set after the other in this process."""
    begin_table(console)
    cells: list[dict[str, Any]] = []
    peer, compiled = Peer(limits.peer_iterations), set[tuple[Any, ...]]()
    try:
        for name in names:
            for cell in cells_of(name, limits, peer, compiled):
                cells.append(cell)
                print_cell(console, cell)
    finally:
        peer.end()
    return cells


def measure_on_every_core(names: Sequence[str], limits: Limits, console: Console) -> list[dict[str, Any]]:
    """The cells of these data sets, a process for each core, with one thread of BLAS."""
    begin_table(console)
    start, cores = multiprocessing.get_context("spawn"), sorted(os.sched_getaffinity(0))
    free = start.Queue()
    for core in cores:
        free.put(core)
    every: list[dict[str, Any]] = []
    with ProcessPoolExecutor(len(cores), start, initializer=take_core, initargs=(free,)) as pool:
        for cells in pool.map(partial(measure_one, limits), names):
            every += cells
            for cell in cells:
                print_cell(console, cell)
    return every


def take_core(free: Any) -> None:
    """Keep this process, and those that it starts, on a core of its own."""
    os.sched_setaffinity(0, {free.get()})


def measure_one(limits: Limits, name: str) -> list[dict[str, Any]]:
    """All cells of a data set."""
    peer = Peer(limits.peer_iterations)
    try:
        with threadpool_limits(1):
            return list(cells_of(name, limits, peer, set()))
    finally:
        peer.end()


def begin_table(console: Console) -> None:
    """Print the header."""
    if os.getloadavg()[0] > BUSY:
        console.print("[yellow]others are at work here: seconds mean little")
    console.print(line(HEADER), style="bold", soft_wrap=True)


def print_cell(console: Console, cell: dict[str, Any]) -> None:
    """Print a cell."""
    console.print(line(described(cell)), style=None if cell["auto"]["solved"] else "red", soft_wrap=True)


def measure(options: Options, console: Console) -> dict[str, Any]:
    """All data sets, as many at a time as there are cores; the quick form has the first rows of some."""
    begin = time.perf_counter()
    if options.quick:
        limits = Limits(QUICK_CS, QUICK_NUS, options.repeats, QUICK_ROWS, 0.2, peer_iterations=1_000)
        with threadpool_limits(1):  # others may be at work: tests run side by side
            cells = measure_all(QUICK, limits, console)
    else:
        cells = measure_on_every_core(tuple(DATASETS), Limits(repeats=options.repeats), console)
    return {"seconds": time.perf_counter() - begin, "cells": cells}


# ---- what the numbers say --------------------------------------------------------------------------------------------


def seconds_of(found: dict[str, Any]) -> float:
    """The median."""
    return median(found["seconds"])


def fastest_own(cell: dict[str, Any]) -> float | None:
    """Seconds of the fastest of our solvers that solve the problem."""
    return min((seconds_of(found) for found in cell["own"].values() if found["solved"]), default=None)


def counted_peer(cell: dict[str, Any]) -> dict[str, Any] | None:
    """scikit-learn's fit that counts: that of the loosest tolerance that is as good as ours has to be."""
    return next((found for found in cell["peer"] if found["gap"] is not None and found["gap"] <= TOL), None)


def ratio(cell: dict[str, Any]) -> float | None:
    """Seconds of the defaults over those of the fastest of our solvers; None where either has not solved the cell."""
    best = fastest_own(cell)
    return None if best is None or not cell["auto"]["solved"] else seconds_of(cell["auto"]) / best


def more_than_own(cell: dict[str, Any]) -> float:
    """Seconds that the defaults take more than the fastest of our solvers."""
    return seconds_of(cell["auto"]) - (fastest_own(cell) or math.inf)


def more_than_peer(cell: dict[str, Any]) -> float:
    """Seconds that the defaults take more than scikit-learn; −inf where that has no entry."""
    theirs = counted_peer(cell)
    return -math.inf if theirs is None else seconds_of(cell["auto"]) - seconds_of(theirs)


def best_peer(cell: dict[str, Any]) -> str:
    """The least gap that scikit-learn reached, in words."""
    least = min((found["gap"] for found in cell["peer"] if found["gap"] is not None), default=None)
    return f"{least:.1e}" if least is not None else "none in time" if cell["peer"] else "has no such problem"


def size(found: Any) -> str:
    """Of a task or a cell: rows, features and classes, in words."""
    if isinstance(found, Task):
        m, d, sparse, classes = *found.X.shape, sp.issparse(found.X), found.classes
    else:
        m, d, sparse, classes = found["rows"], found["features"], found["sparse"], found["classes"]
    return f"{m:,} × {d:,}{', sparse' if sparse else ''}{f', {classes} classes' if classes else ''}"


def place(cell: dict[str, Any]) -> str:
    """Which cell it is."""
    return f"{cell['data']}, {cell['parameter']} = {cell['value']:g}"


def some(places: list[str], most: int = 5) -> str:
    """Their names, if they are few."""
    return "; ".join(places[:most]) + (f"; {len(places) - most} more" if len(places) > most else "")


def promises(results: dict[str, Any]) -> list[Promise]:
    """They converge, about as fast as can be."""
    cells = results["cells"]
    above = [cell for cell in cells if not cell["auto"]["solved"]]
    ratios = [found for found in map(ratio, cells) if found is not None]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.inf
    slow = [cell for cell in cells if (ratio(cell) or 0.0) > FACTOR and more_than_own(cell) > GRACE]
    behind = [cell for cell in cells if more_than_peer(cell) > GRACE]
    met = sum(counted_peer(cell) is not None for cell in cells)
    names = {cell["data"] for cell in cells}
    reasons = [f"{place(cell)} (gap {cell['auto']['gap']:.1e}, scikit-learn {best_peer(cell)})" for cell in above]
    factors = [f"{place(cell)} ({ratio(cell):.1f} ×, {more_than_own(cell):+.2f} s)" for cell in slow]
    delays = [f"{place(cell)} ({more_than_peer(cell):+.2f} s)" for cell in behind]
    return [
        Promise(
            f"Defaults: at most {ABOVE} cells end above tol, on at least 20 data sets",
            f"{len(above)} of {len(cells)} cells, {len(names)} data sets" + (": " + some(reasons) if above else ""),
            len(above) <= ABOVE and len(names) >= 20,
        ),
        Promise(
            f"Defaults: at most {MEAN:g} × the seconds of the fastest of our own solvers, in the geometric mean",
            f"{mean:.2f} ×, over {len(ratios)} cells",
            mean <= MEAN,
        ),
        Promise(
            f"Defaults: in no cell more than {FACTOR:g} ×, or {1000 * GRACE:g} ms more",
            f"{len(slow)} cells" + (": " + some(factors) if slow else f"; at most {max(ratios, default=0.0):.1f} ×"),
            not slow,
        ),
        Promise(
            f"Defaults: never slower than scikit-learn at equal P by more than {1000 * GRACE:g} ms",
            f"{len(behind)} of {met} cells" + (": " + some(delays) if behind else ""),
            not behind,
        ),
        Promise(
            "Defaults: measured in at most one hour",
            f"{results['seconds'] / 60:.0f} minutes",
            results["seconds"] <= HOUR,
        ),
    ]


HEADER = ("data", "C or ν", "seconds", "gap", "by", *SOLVERS, "scikit-learn (tol)", "to own", "to theirs")
WIDTHS = (19, 9, 7, 8, 24, 11, 9, 14, 18, 7, 9)


def line(cells: Iterable[str]) -> str:
    """A row of the table that is printed while it is measured."""
    return " ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def alone(cell: dict[str, Any], solver: str) -> str:
    """Seconds of a solver of ours, or the gap that it was left with in brackets."""
    found = cell["own"].get(solver)
    if found is None:
        return ""
    return f"{seconds_of(found):.3f}" if found["solved"] else f"({found['gap']:.1e})"


def described(cell: dict[str, Any]) -> tuple[str, ...]:
    """A cell as a row of a table."""
    auto, theirs, to_own = cell["auto"], counted_peer(cell), ratio(cell)
    first = RANKERS[0] if cell["estimator"] == "LinearRanker" else SOLVERS[0]  # the ranker's has no column of its own
    by = re.sub(r"\([^()]*\)", "", auto["solver"])  # without options
    met = "" if theirs is None else f"{seconds_of(theirs):.3f} ({theirs['tol']:g})"
    return (
        cell["data"],
        f"{cell['parameter'].replace('nu', 'ν')} = {cell['value']:g}",
        f"{seconds_of(auto):.3f}",
        "P* = 0" if auto["zero"] else f"{auto['gap']:.1e}",
        by if auto["status"] == "converged" else f"{by}, {auto['status']}",
        alone(cell, first),
        *(alone(cell, solver) for solver in SOLVERS[1:]),
        met or (f"({best_peer(cell)})" if cell["peer"] else ""),
        "" if to_own is None else f"{to_own:.2f}×",
        "" if theirs is None else f"{seconds_of(auto) / seconds_of(theirs):.2f}×",
    )


def tables(results: dict[str, Any]) -> Iterator[Table]:
    """The data sets, the cells above tol, and every cell."""
    cells = results["cells"]
    shapes = {cell["data"]: cell for cell in cells}
    yield Table(
        "Data sets",
        ("data", "estimator", "rows × features", "why"),
        [(name, cell["estimator"], size(cell), DATASETS[name].why) for name, cell in shapes.items()],
    )
    above = [cell for cell in cells if not cell["auto"]["solved"]]
    if above:
        yield Table(
            "Cells above tol",
            ("cell", "gap", "scikit-learn's least gap", "reason"),
            [
                (place(cell), f"{cell['auto']['gap']:.1e}", best_peer(cell), " ".join(cell["auto"]["message"].split()))
                for cell in above
            ],
        )
    for estimator in dict.fromkeys(cell["estimator"] for cell in cells):
        rows = [described(cell) for cell in cells if cell["estimator"] == estimator]
        columns = HEADER if estimator != "LinearRanker" else (*HEADER[:5], *RANKERS, *HEADER[6:])
        yield Table(f"Every cell: {estimator}", columns, rows)


# ---- some data sets alone --------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Some data sets alone: print their cells, and what they say of the promises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=tuple(DATASETS), metavar="NAME", help=", ".join(DATASETS))
    parser.add_argument("--C", nargs="+", type=float, default=CS, help="values of C")
    parser.add_argument("--nu", nargs="+", type=float, default=NUS, help="values of ν, of one-class problems")
    parser.add_argument("--repeats", type=int, default=1, help="repeats of each timing (default: 1)")
    parser.add_argument("--rows", type=int, help="the first rows alone")
    parser.add_argument("--no-peer", action="store_true", help="without scikit-learn")
    parser.add_argument("--blas", type=int, help="threads of BLAS, where the machine is busy (default: its own choice)")
    asked = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 220, highlight=False, soft_wrap=True)
    limits = Limits(tuple(asked.C), tuple(asked.nu), asked.repeats, asked.rows, peer=not asked.no_peer)
    begin = time.perf_counter()
    with threadpool_limits(asked.blas):
        cells = measure_all(asked.names, limits, console)
    seconds = time.perf_counter() - begin
    for promise in promises({"seconds": seconds, "cells": cells})[1:4]:
        console.print(f"{'held  ' if promise.held else 'broken'}  {promise.text}: {promise.measured}")
    for cell in cells:
        if not cell["auto"]["solved"]:
            console.print(f"above tol: {place(cell)}, scikit-learn {best_peer(cell)}: {cell['auto']['message']}")
    console.print(f"{seconds:.0f} s")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FileNotFoundError as missing:  # data that are not at hand
        sys.exit(str(missing))
