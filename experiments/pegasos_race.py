"""Pegasos' headline: objective and test error against seconds, for Pegasos, dual ascent and the peers."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.common import Table, median
from benchmarks.datasets import Split, arxiv, rcv1
from benchmarks.linear import Judge
from benchmarks.peers import OURS, PEERS, PEGASOS, SGD, Contestant, ScikitLearnLinearSVC
from experiments.harness import Case, Claim, Found, Options, Statement, judged, verdict

CONTESTANTS: tuple[Contestant, ...] = (OURS, *PEGASOS, *PEERS)
QUICK_CONTESTANTS = (OURS, *PEGASOS, ScikitLearnLinearSVC(), SGD())  # which need nothing else to be installed
LAMBDAS = (1e-4, 1e-5)
QUICK_ROWS = 5_000
BRACKET = 5e-6  # relative width of the interval that holds P*
CLOSE_ENOUGH = 3e-5  # a contestant that got so near to P* is not swept further
PATIENCE, QUICK_PATIENCE = 5.0, 0.3  # seconds: a sweep ends after a run that took longer
SHORT, REPEATS = 2.0, 3  # runs of less than so many seconds are repeated, and the median is shown
ACCURACIES = (1e-2, 1e-3, 1e-4)
PAPER_SECONDS = 5.0

TITLE = "Pegasos' headline: text classification in seconds"
BUDGET = 450
ABOUT = (
    "Text classification at the size of RCV1: arXiv abstracts, `cs` against the rest, TF-IDF (RCV1 itself, CCAT "
    "against the rest, where it can be fetched), hinge loss, no intercept. Every contestant is swept over its own "
    "stopping rule, one thread each; one function in double precision judges all. Shown against the seconds of a whole "
    "`fit`: how far P(w) is above P*, which is known to within 5e-6 from a certificate, and the error on the test "
    "rows. *primalsvm* is `LinearSVC` with its defaults (dual ascent, certificate included); *Pegasos* is "
    "`LinearSVC(solver=Pegasos(n_iter=…, average='weighted'))`, *the paper's* draws independently, projects, and "
    "returns the last iterate."
)


@cache
def problems(options: Options) -> dict[str, Split]:
    """The text problems at hand."""
    found = {}
    text = partial(arxiv, rows=QUICK_ROWS if options.quick else None)
    for name, read in (("arXiv", text), ("RCV1", partial(rcv1, options.fetch))):
        with suppress(FileNotFoundError):
            found[name] = read()
    if options.quick:
        found = {name: Split(*(part[:QUICK_ROWS] for part in one)) for name, one in found.items()}
    return found


def contestants_for(options: Options) -> tuple[Contestant, ...]:
    """Those who run."""
    return QUICK_CONTESTANTS if options.quick else CONTESTANTS


@cache
def judge_of(name: str, options: Options) -> Judge:
    """The judge of a problem, with every contestant's kernels compiled."""
    contestants = contestants_for(options)
    judge = Judge(problems(options)[name], contestants)
    for contestant in contestants:
        judge.run(contestant, LAMBDAS[0], contestant.settings[0], 1, seed=0)
    return judge


@cache
def best_of(name: str, lam: float, options: Options) -> float:
    """A lower bound of P*, within BRACKET of it."""
    return judge_of(name, options).bracket(lam, threads=2)[0]


def sweep(contestant: Contestant, name: str, lam: float, options: Options) -> list[dict[str, float]]:
    """A contestant's runs, from its cheapest setting on."""
    judge, best = judge_of(name, options), best_of(name, lam, options)
    found = []
    for setting in contestant.settings:
        runs = [judge.run(contestant, lam, setting, 1, seed=0)]
        if runs[0].seconds < SHORT and not options.quick:
            runs += [judge.run(contestant, lam, setting, 1, seed=seed) for seed in range(1, REPEATS)]
        found.append(
            {
                "setting": setting,
                "seconds": median(run.seconds for run in runs),
                "excess": median(run.objective for run in runs) / best - 1,
                "test_error": median(run.test_error for run in runs),
            }
        )
        if found[-1]["excess"] < CLOSE_ENOUGH or found[-1]["seconds"] > (QUICK_PATIENCE if options.quick else PATIENCE):
            break
    return found


def cases(options: Options) -> list[Case]:
    """Every contestant on every problem."""
    lambdas = LAMBDAS[:1] if options.quick else LAMBDAS
    return [
        Case(f"{name} | {lam:g} | {contestant.name}", partial(sweep, contestant, name, lam, options))
        for name in problems(options)
        for lam in lambdas
        for contestant in contestants_for(options)
    ]


def arenas(found: Found) -> dict[tuple[str, str], dict[str, list[dict[str, float]]]]:
    """The sweeps, by problem and λ."""
    sorted_out: dict[tuple[str, str], dict[str, list[dict[str, float]]]] = {}
    for name, runs in found.items():
        problem, lam, contestant = name.split(" | ")
        sorted_out.setdefault((problem, lam), {})[contestant] = runs
    return sorted_out


def seconds_to(runs: list[dict[str, float]], accuracy: float) -> float:
    """The least seconds with an excess of at most so much; inf if never."""
    return min((run["seconds"] for run in runs if run["excess"] <= accuracy), default=float("inf"))


def tables(found: Found) -> Iterator[Table]:
    """Seconds to each accuracy."""
    knobs = {contestant.name: contestant.knob for contestant in CONTESTANTS}
    for (problem, lam), sweeps in arenas(found).items():
        rows = []
        for name, runs in sweeps.items():
            last = runs[-1]
            times = [seconds_to(runs, accuracy) for accuracy in ACCURACIES]
            rows.append(
                (
                    name,
                    *("—" if np.isinf(one) else f"{one:.2f}" for one in times),
                    f"{last['excess']:.1e}",
                    f"{last['seconds']:.2f}",
                    f"{knobs[name]} {last['setting']:g}",
                    f"{last['test_error']:.2%}",
                )
            )
        columns = ("contestant", *(f"s to {one:g}" for one in ACCURACIES), "last: excess", "s", "setting", "test error")
        yield Table(f"{problem}, λ = {lam}: seconds until P(w) ≤ (1 + ε) P*", columns, rows)


def claims(found: Found) -> list[Claim]:
    """The abstract's five seconds, and how the others do; on RCV1 where that was there."""
    statements = []
    for problem in dict.fromkeys(("arXiv", *(name.split(" | ")[0] for name in found))):
        for lam in LAMBDAS:
            where = f"{problem}, λ = {lam:g}"
            needs = [f"{problem} | {lam:g} | {contestant.name}" for contestant in CONTESTANTS]
            five = f"less than 5 seconds to converge on a text problem of RCV1's size ({where})"
            statements.append(Statement("Pegasos, abstract", five, needs, partial(five_seconds, problem, lam)))
            for accuracy in ACCURACIES[:2]:
                text = f"faster than state-of-the-art solvers ({where}, to {accuracy:.1%} of P*)"
                judge = partial(fastest, problem, lam, accuracy)
                statements.append(Statement("Pegasos, abstract", text, needs, judge))
    return judged(statements, found)


def times_to(found: Found, problem: str, lam: float, accuracy: float) -> dict[str, float]:
    """Seconds of every contestant."""
    return {
        contestant.name: seconds_to(found[f"{problem} | {lam:g} | {contestant.name}"], accuracy)
        for contestant in CONTESTANTS
    }


def five_seconds(problem: str, lam: float, found: Found) -> tuple[str, str]:
    """Pegasos as in the paper, to 1 %."""
    times = times_to(found, problem, lam, ACCURACIES[0])
    ours, papers = (one.name for one in PEGASOS)
    return verdict(times[papers] <= PAPER_SECONDS), (
        f"to 1 % of P*: {_or_never(times[papers])} as in the paper, {_or_never(times[ours])} with mixed blocks and the "
        "weighted average (on a machine of another age)"
    )


def fastest(problem: str, lam: float, accuracy: float, found: Found) -> tuple[str, str]:
    """Pegasos with mixed blocks against the fastest peer."""
    times = times_to(found, problem, lam, accuracy)
    ours, papers = (one.name for one in PEGASOS)
    peer = min((one.name for one in PEERS), key=lambda name: times[name])
    return verdict(min(times[ours], times[papers]) < times[peer]), (
        f"Pegasos {_or_never(times[ours])} (the paper's {_or_never(times[papers])}), the fastest peer, {peer}, "
        f"{_or_never(times[peer])}; our dual ascent, certificate included, {_or_never(times[OURS.name])}"
    )


def _or_never(seconds: float) -> str:
    return "never" if np.isinf(seconds) else f"{seconds:.2f} s"


def figures(found: Found) -> dict[str, Any]:
    """Excess and test error against seconds."""
    from experiments.figures import below, panels, plain_ticks, style

    sorted_out = arenas(found)
    figure, axes = panels(len(sorted_out), 2, width=5.2)
    for k, ((problem, lam), sweeps) in enumerate(sorted_out.items()):
        excess, error = axes[2 * k : 2 * k + 2]
        for j, (name, runs) in enumerate(sweeps.items()):
            seconds = [run["seconds"] for run in runs]
            excess.plot(seconds, [max(run["excess"], 1e-6) for run in runs], **style(j, name))
            error.plot(seconds, [100 * run["test_error"] for run in runs], **style(j, name))
        lowest = min(100 * run["test_error"] for runs in sweeps.values() for run in runs)
        excess.set(xscale="log", yscale="log", xlabel="seconds", ylabel="P(w)/P* − 1", ylim=(1e-5, 10))
        error.set(xscale="log", xlabel="seconds", ylabel="test error, %", ylim=(lowest - 0.2, lowest + 3))
        for axis in (excess, error):
            axis.set_title(f"{problem}, λ = {lam}", fontsize=10)
            plain_ticks(axis.xaxis)
    below(figure, axes[0], 4)
    return {"pegasos-race": figure}
