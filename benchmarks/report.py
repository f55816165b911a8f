"""From measured numbers to tables on the terminal and to docs/benchmarks.md. No number is written here by hand.

Each section's measurements are kept in benchmarks/results/, with the machine, the versions and the command that made
them, so that one section can be measured anew and the page be written from all of them.
"""

import json
import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.common import Promise, Table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PACKAGES = (
    "primalsvm",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "snapml",
    "liblinear-official",
    "scikit-learn-intelex",
)
TITLES = {
    "linear": "Time to accuracy",
    "defaults": "Fits with the defaults",
    "kernel": "Kernel SVMs",
    "exact_kernels": "Exact kernel machines",
    "exact": "High accuracy on dense features",
    "paths": "Regularisation paths",
    "passes": "One pass",
    "memory": "Memory",
    "growth": "Growth",
    "classes": "Many classes",
    "regression": "Regression",
    "ranking": "Ranking",
    "files": "Files",
    "larger": "Larger than memory",
    "startup": "Start-up",
}


def circumstances(command: str) -> dict[str, Any]:
    """Where, when and with what a section was measured."""
    return {
        "command": command,
        "date": date.today().isoformat(),
        "commit": _commit(),
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def _cpu() -> str:
    """The processor's model and its widest vectors."""
    try:
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    except OSError:
        return platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in lines}
    vectors = next((name for name in ("avx512f", "avx2") if name in fields.get("flags", "").split()), None)
    return fields.get("model name", platform.machine()) + (f" ({vectors})" if vectors else "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """The commit of the sources; a + says that they, or what measures them, were edited since."""
    try:
        git = ("git", "-C", str(HERE))
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        watched = ("../src", "../experiments/*.py", "*.py")
        edited = subprocess.run(
            [*git, "status", "--porcelain", "--", *watched], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if edited.stdout.strip() else "")


def show(console: Console, module: ModuleType, results: dict[str, Any], judged: bool) -> None:
    """Print a section; whether its promises are held is only said of the full problems."""
    for table in module.tables(results):
        print_table(console, table)
    for promise in module.promises(results) if judged else ():
        mark = "[green]held[/green]" if promise.held else "[bold red]broken[/bold red]"
        console.print(f"{mark}  {promise.text}: {promise.measured}")


def print_table(console: Console, table: Table) -> None:
    """A table on the terminal."""
    rich = RichTable(title=table.title, title_justify="left")
    for k, column in enumerate(table.columns):
        rich.add_column(column, justify="left" if k == 0 else "right")
    for row in table.rows:
        rich.add_row(*row)
    console.print(rich)


def keep(name: str, results: dict[str, Any], made: dict[str, Any]) -> None:
    """Store a section's measurements."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"made": made, "results": results}, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def write_page(modules: dict[str, ModuleType]) -> Path:
    """docs/benchmarks.md from all stored sections."""
    stored = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in modules
        if (RESULTS / f"{name}.json").exists()
    }
    promises = [
        (name, promise) for name, section in stored.items() for promise in modules[name].promises(section["results"])
    ]
    parts = [
        "# Benchmarks",
        "Written by `make bench`; every number on this page comes from its run. "
        "What the numbers mean and how they are taken is said in each section and, in full, in `benchmarks/`.",
        describe([section["made"] for section in stored.values()]),
        "## Promises",
        _promise_table(promises),
    ]
    for name, section in stored.items():
        parts += [f"## {TITLES[name]}", modules[name].ABOUT]
        for table in modules[name].tables(section["results"]):
            parts += [f"**{table.title}**", markdown(table)]
        made = section["made"]
        parts.append(f"*Measured {made['date']} at commit {made['commit']} with `{made['command']}`.*")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return PAGE


def describe(all_made: list[dict[str, Any]]) -> str:
    """The machines and versions of all sections: one line each, as a rule only one."""
    lines = []
    for made in all_made:
        packages = ", ".join(f"{name} {number}" for name, number in made["packages"].items())
        line = (
            f"- {made['cores']} cores of {made['cpu']}, {made['memory_gib']} GiB, {made['system']}; "
            f"Python {made['python']}, {packages}."
        )
        if line not in lines:
            lines.append(line)
    return "\n".join(lines)


def _promise_table(promises: list[tuple[str, Promise]]) -> str:
    rows = [(p.text, p.measured, "yes" if p.held else "**no**", TITLES[name]) for name, p in promises]
    return markdown(Table("", ("promise", "measured", "held", "section"), rows))


def markdown(table: Table, others: str = "right") -> str:
    """A Markdown table; the first column left, the others right, or left as well."""
    side = {"left": ":--", "right": "--:"}[others]
    lines = [table.columns, (":--", *(side for _ in table.columns[1:])), *table.rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
