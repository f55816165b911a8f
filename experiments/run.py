"""Measure what the papers claim: `make experiments`, or  python -m experiments.run [--quick] [--only zhou …].

Each experiment has a budget, which is printed and kept. What is measured is kept case by case: a run that was stopped
(Ctrl-C, a crash) goes on where it was. In the end docs/results/ holds a page and the figures of each experiment, and a
page about all claims. `--quick` measures less, to see that everything runs, and neither keeps nor writes anything.

Real data sets are found in the folder that PRIMALSVM_DATA names; covtype and MNIST are fetched by scikit-learn where
they are not, and RCV1 is if `--fetch` asks for it.
"""

import argparse
import importlib
import sys

from rich.console import Console

from benchmarks.report import circumstances
from experiments import report
from experiments.harness import RESULTS, Options, Run

EXPERIMENTS = (
    "zhou",
    "bounds",
    "pegasos_race",
    "pegasos_scaling",
    "pegasos_variants",
    "asset_dimension",
    "asset_speed",
    "asset_parameters",
    "asset_online",
)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="measure less; print, but write nothing")
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=EXPERIMENTS, help="these experiments alone")
    parser.add_argument("--fetch", action="store_true", help="download RCV1 (650 MB) and race on it, too")
    parser.add_argument("--fresh", action="store_true", help="forget what a stopped run has measured")
    parser.add_argument("--added", action="store_true", help="measure only cases that the kept results do not have")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the pages from what was kept")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Measure what was asked for, and write it down."""
    asked = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    modules = {name: importlib.import_module(f"experiments.{name}") for name in EXPERIMENTS}
    if asked.page:
        report.write_pages(modules)
        return 0
    options = Options(asked.quick, asked.fetch)
    made = circumstances(" ".join(["python -m experiments.run", *arguments]))
    runs = []
    for k, name in enumerate(asked.only, 1):
        console.rule(f"{k} of {len(asked.only)}: {modules[name].TITLE}")
        folder = None if asked.quick else RESULTS
        earlier = report.stored(name) if asked.added else None
        run = Run(modules[name], options, folder, earlier)
        if asked.fresh:
            run.forget()
            run = Run(modules[name], options, folder, earlier)
        run.measure(console)
        report.show(console, run)
        if not asked.quick:
            report.keep(run, made)
            report.write_pages(modules)
        runs.append(run)
    for run in runs:  # only now: a run that is stopped in its third experiment does not repeat the first two
        run.forget()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
