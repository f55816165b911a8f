"""What all experiments share: cases that are measured one by one within a budget, kept, and gone on with.

An experiment is a module with

    TITLE, ABOUT       for the page
    BUDGET             seconds that its cases may take together
    cases(options)     what to measure: names, each with a function that returns numbers (as JSON has them)
    tables(found)      the cells of its tables, from the numbers measured
    claims(found)      what the papers say, and whether it is so here
    figures(found)     its pictures

Every case is kept as soon as it is measured. A run that was stopped goes on with the first case that is missing; one
whose budget is spent, or whose data are not at hand, ends with what it has, and its page says which cases are missing.
"""

import hashlib
import json
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import primalsvm

HERE = Path(__file__).parent
RESULTS = HERE / "results"
VERDICTS = ("reproduced", "beaten", "not reproduced", "not measured")

Found = dict[str, Any]  # what each case measured


class Options(NamedTuple):
    """How much to measure."""

    quick: bool = False
    fetch: bool = False  # download RCV1


class Case(NamedTuple):
    """One thing to measure."""

    name: str
    measure: Callable[[], Any]


class Claim(NamedTuple):
    """What a paper says, and what was found."""

    source: str
    text: str
    verdict: str
    figures: str


def verdict(holds: bool, beaten: bool = False) -> str:
    """The word for it."""
    return "beaten" if beaten else "reproduced" if holds else "not reproduced"


class Statement(NamedTuple):
    """A claim before it is judged: which cases it rests on, and what they say of it."""

    source: str
    text: str
    needs: Iterable[str]
    judge: Callable[[Found], tuple[str, str]]  # verdict and figures


def judged(statements: Iterable[Statement], found: Found) -> list[Claim]:
    """The claims; one that rests on a case that is missing is not judged by the others."""
    made = []
    for source, text, needs, judge in statements:
        missing = [name for name in needs if name not in found]
        outcome = ("not measured", f"missing: {missing[0]}") if missing else judge(found)
        made.append(Claim(source, text, *outcome))
    return made


def compact(value: float) -> str:
    """Two or three digits that matter: 0.0012, 3.4, 210, 15,000.

    >>> [compact(value) for value in (0.00123, 3.44, 209.7, 15_230)]
    ['0.0012', '3.4', '210', '15,000']
    """
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.2g}"


class Run:
    """The measurements of one experiment, kept in a file after every case.

    `earlier` is what an earlier run has stored, whose cases are not measured again.
    """

    def __init__(
        self, module: ModuleType, options: Options, folder: Path | None = RESULTS, earlier: Found | None = None
    ) -> None:
        self.module = module
        self.name = module.__name__.rpartition(".")[2]
        self.options = options
        self.budget = math.inf if options.quick else float(module.BUDGET)
        self.path = None if folder is None else folder / f"{self.name}.partial.json"
        self.stamp = stamp(module, options)
        self.found: Found = {}
        self.seconds: dict[str, float] = {}
        self.missing: list[str] = []
        self.earlier = earlier
        if earlier is not None:
            names = [case.name for case in module.cases(options) if case.name in earlier["found"]]
            self.found = {name: earlier["found"][name] for name in names}
            self.seconds = {name: earlier["seconds"][name] for name in names}
        self.kept = list(self.found)  # cases of an earlier run
        if self.path is not None and self.path.exists():
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            if kept["stamp"] == self.stamp:
                self.found, self.seconds = self.found | kept["found"], self.seconds | kept["seconds"]

    @property
    def spent(self) -> float:
        """Seconds so far, those before an interruption included."""
        return sum(self.seconds.values())

    def measure(self, console: Console) -> Found:
        """All cases that are not there yet, while the budget lasts."""
        cases = self.module.cases(self.options)
        begun = f", {len(self.found)} of {len(cases)} cases are there already" if self.found else ""
        console.print(f"budget {self.budget:.0f} s{begun}" if math.isfinite(self.budget) else "a quick run")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(self.name, total=len(cases), completed=len(self.found))
            for case in cases:
                if case.name in self.found:
                    continue
                progress.update(task, description=f"{self.name}: {case.name}")
                begin = time.perf_counter()
                try:
                    with interruptible(), alarm(self.budget - self.spent):
                        self.found[case.name] = case.measure()
                except OutOfTimeError:
                    self.missing.append(case.name)
                except FileNotFoundError as missing:  # data that are not at hand
                    progress.console.print(f"[yellow]{case.name}: {missing}")
                    self.missing.append(case.name)
                self.seconds[case.name] = self.seconds.get(case.name, 0.0) + time.perf_counter() - begin
                self.keep()
                progress.advance(task)
        if self.missing:
            console.print(f"[yellow]not measured: {', '.join(self.missing)}")
        console.print(f"[dim]{self.spent:.0f} s[/dim]")
        return self.found

    def keep(self) -> None:
        """Write what there is."""
        if self.path is not None:
            self.path.parent.mkdir(exist_ok=True)
            text = json.dumps({"stamp": self.stamp, "seconds": self.seconds, "found": self.found}, ensure_ascii=False)
            whole = self.path.with_suffix(".new")
            whole.write_text(text, encoding="utf-8")
            whole.replace(self.path)

    def forget(self) -> None:
        """The run is over: the next one starts anew."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class OutOfTimeError(Exception):
    """The budget is spent."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError after so many seconds, as soon as Python has its turn."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise OutOfTimeError

    if math.isinf(seconds):
        yield
        return
    if seconds <= 0:
        raise OutOfTimeError
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again and again, should somebody have caught the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C stop the whole run: a solver would keep its best point so far, and that would be measured."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def stamp(module: ModuleType, options: Options) -> str:
    """A digest of all code that has a say, and of what was asked: numbers of other code are not gone on with."""
    assert module.__file__ is not None and primalsvm.__file__ is not None
    digest = hashlib.sha256(repr(options).encode())
    folders = (Path(primalsvm.__file__).parent, HERE, HERE.parent / "benchmarks")
    for path in [*(path for folder in folders for path in sorted(folder.rglob("*.py"))), Path(module.__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()
