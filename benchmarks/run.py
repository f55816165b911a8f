"""Measure primalsvm and its peers: `make bench`, or  python -m benchmarks.run [--quick] [--only linear …].

Prints tables, keeps the measurements in benchmarks/results/ and writes docs/benchmarks.md from them. `--quick` measures
less, to see that everything runs, and neither keeps nor writes anything.

The arXiv matrix is built once from the raw abstracts in the folder that PRIMALSVM_DATA names.
"""

import argparse
import importlib
import sys
import time
from types import ModuleType

from rich.console import Console

from benchmarks import report
from benchmarks.common import LAMBDAS, Options

SECTIONS = tuple(report.TITLES)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="measure less; print, but write nothing")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="these sections alone")
    parser.add_argument(
        "--lambdas", nargs="+", type=float, help="strengths of the regularisation (default: 1e-4 1e-5 1e-6)"
    )
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="numbers of threads (default: 1 2)")
    parser.add_argument("--repeats", type=int, help="repeats of each timing (default: 3; with --quick 1)")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page from what was kept")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Measure what was asked for; 1 if a full run breaks a promise."""
    asked = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)
    modules: dict[str, ModuleType] = {name: importlib.import_module(f"benchmarks.{name}") for name in SECTIONS}
    lambdas = tuple(asked.lambdas or (LAMBDAS[1:2] if asked.quick else LAMBDAS))
    options = Options(asked.quick, lambdas, tuple(asked.threads), asked.repeats or (1 if asked.quick else 3))
    made = report.circumstances(" ".join(["python -m benchmarks.run", *arguments]))
    broken = 0
    for name in () if asked.page else asked.only:
        console.rule(report.TITLES[name])
        begin = time.perf_counter()
        results = modules[name].measure(options, console)
        report.show(console, modules[name], results, judged=not asked.quick)
        broken += sum(not promise.held for promise in modules[name].promises(results))
        console.print(f"[dim]{time.perf_counter() - begin:.0f} s[/dim]")
        if not asked.quick:
            report.keep(name, results, made)
    if not asked.quick:
        console.print(f"written: docs/{report.write_page(modules).name}")
    return int(broken > 0 and not asked.quick)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FileNotFoundError as missing:  # data that are not at hand
        sys.exit(str(missing))
