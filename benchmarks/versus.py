"""The same fits by two versions of the package, in turn:  python -m benchmarks.versus PATH [--only linear …]

PATH is the `src` folder of another checkout, such as that of the commit before. Each version runs in a process of its
own, which loads the data and compiles its kernels first. Prints the medians and their ratio (this version's time by the
other's), and keeps nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import cuts, datasets
from benchmarks.common import median, timed, touch_memory

ROUNDS = 7
ALLOWED = 1.1
ROOT = Path(__file__).parents[1]
LAMS = np.geomspace(1e-2, 1e-6, 20)

Fit = Callable[[], Any]


@cache
def arxiv() -> datasets.Split:
    """Abstracts, cs against the rest."""
    return datasets.arxiv()


def linear(lam: float, n_jobs: int) -> Fit:
    """Text, no intercept."""
    from primalsvm import LinearSVC

    X, y = arxiv().X_train, arxiv().y_train
    return lambda: LinearSVC(lam=lam, fit_intercept=False, n_jobs=n_jobs, random_state=0).fit(X, y)


def kernel(name: str) -> Fit:
    """Nyström features; the memory is touched before."""
    from primalsvm import SVC

    one = cuts.task(name)
    model = SVC(kernel="rbf", gamma=one.gamma, C=one.C, n_components=one.components, random_state=0)

    def fit() -> Any:
        touch_memory(3 * 4 * one.X.shape[0] * one.components)
        return model.fit(one.X, one.y)

    return fit


def exact(lam: float) -> Fit:
    """Dense rows, to 1e-6."""
    from primalsvm import LinearSVC, Newton

    X, labels = datasets.covtype()
    X = ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)).astype(np.float32)
    y = np.where(labels == 2, 1.0, -1.0)
    model = LinearSVC(lam=lam, fit_intercept=False, tol=1e-6, solver=Newton(), n_jobs=2, random_state=0)
    return lambda: model.fit(X, y)


def classes(name: str) -> Fit:
    """One class against the rest."""
    from primalsvm import LinearSVC

    task = getattr(datasets, name)()
    return lambda: LinearSVC(tol=1e-2, n_jobs=1, random_state=0).fit(task.X, task.y)


def regression(name: str) -> Fit:
    """Absolute errors."""
    from benchmarks.regression import generated
    from primalsvm import LinearSVR

    X, y = datasets.housing() if name == "housing" else generated(200_000)
    return lambda: LinearSVR(penalize_intercept=True, n_jobs=1, random_state=0).fit(X, y)


def path(free: bool) -> Fit:
    """Twenty points."""
    from primalsvm import svm_path

    X, y = arxiv().X_train, arxiv().y_train
    return lambda: svm_path(X, y, LAMS, fit_intercept=free)


def files(what: str) -> Fit:
    """Text is read, or a cache is fitted to."""
    import primalsvm

    place = Path(tempfile.mkdtemp())
    X, y = arxiv().X_train[:100_000], arxiv().y_train[:100_000]
    text = place / "rows.svm"
    from primalsvm.sources.svmlight import write_svmlight

    write_svmlight(text, X, y)
    if what == "read":
        return lambda: primalsvm.open(text).to_arrays()
    primalsvm.open(text).to_cache(place / "cache")
    memory = {"memory": 6e7} if what == "out of core" else {}
    model = primalsvm.LinearSVC(lam=1e-5, fit_intercept=False, random_state=0, **memory)
    return lambda: model.fit(primalsvm.open(place / "cache"))


CASES: dict[str, dict[str, Callable[[], Fit]]] = {
    "linear": {
        f"λ = {lam:g}, {n_jobs} threads": lambda lam=lam, n_jobs=n_jobs: linear(lam, n_jobs)
        for lam in (1e-4, 1e-5, 1e-6)
        for n_jobs in (1, 2)
    },
    "kernel": {name: lambda name=name: kernel(name) for name in ("ADULT", "IJCNN", "MNIST", "COVTYPE")},
    "exact": {f"covtype, λ = {lam:g}": lambda lam=lam: exact(lam) for lam in (1e-4, 1e-6)},
    "classes": {name: lambda name=name: classes(name) for name in ("sector", "newsgroups", "digits", "letter")},
    "regression": {name: lambda name=name: regression(name) for name in ("housing", "generated")},
    "paths": {"no intercept": lambda: path(False), "free intercept": lambda: path(True)},
    "files": {what: lambda what=what: files(what) for what in ("read", "cache", "out of core")},
}


class Version:
    """A process with one version of the package."""

    def __init__(self, src: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{src}:{ROOT}"}
        command = [sys.executable, "-m", "benchmarks.versus", "--serve"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def ask(self, request: str) -> str:
        """Its answer to a request, a line each."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(request, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"the process ended at {request!r}")
        return answer


def serve() -> None:
    """Answer requests on standard input: prepare a case, or time it once."""
    warnings.simplefilter("ignore")
    fit: Fit = lambda: None  # noqa: E731  # before the first case
    for line in sys.stdin:
        what, _, rest = line.strip().partition(" ")
        if what == "prepare":
            section, _, name = rest.partition("/")
            fit = CASES[section][name]()
            fit()
            print("ready", flush=True)
        else:
            print(timed(fit)[0], flush=True)


def main() -> int:
    """Time both versions; 1 if this one is slower than allowed anywhere."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, nargs="?", help="the src folder of another checkout")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve()
        return 0
    versions = {"this": Version(ROOT / "src"), "other": Version(asked.other.resolve())}
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    table = Table("section", "case", "this, s", "other, s", "ratio")
    worst = 0.0
    for section in asked.only:
        for name in CASES[section]:
            for version in versions.values():
                version.ask(f"prepare {section}/{name}")
            times: dict[str, list[float]] = {who: [] for who in versions}
            for _ in range(asked.rounds):
                for who, version in versions.items():
                    times[who].append(float(version.ask("time")))
            ours, theirs = (median(times[who]) for who in versions)
            worst = max(worst, ours / theirs)
            row = (section, name, f"{ours:.3f}", f"{theirs:.3f}", f"{ours / theirs:.2f}")
            table.add_row(*row, style="red" if ours / theirs > ALLOWED else None)
            console.print(*row, style="dim")
    console.print(table)
    return int(worst > ALLOWED)


if __name__ == "__main__":
    raise SystemExit(main())
