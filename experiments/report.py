"""From measured numbers to docs/results/: a page and figures for each experiment, and one page for all claims.

No number is written here by hand. What was measured is kept in experiments/results/, with the machine, the versions
and the command, so that one experiment can be measured anew and the pages be written from all of them.
"""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from benchmarks.common import Table
from benchmarks.report import describe, markdown, print_table
from experiments.harness import RESULTS, VERDICTS, Claim, Run

PAGES = Path(__file__).parent.parent / "docs" / "results"
MARKS = {word: f"**{word}**" if word in ("beaten", "not reproduced") else word for word in VERDICTS}


def show(console: Console, run: Run) -> None:
    """Print an experiment's tables and claims."""
    if not run.found:
        return
    for table in run.module.tables(run.found):
        print_table(console, table)
    for claim in run.module.claims(run.found):
        colour = {"reproduced": "green", "beaten": "green", "not reproduced": "red"}.get(claim.verdict, "yellow")
        console.print(f"[{colour}]{claim.verdict}[/{colour}]  {claim.source}: {claim.text}: {claim.figures}")


def keep(run: Run, made: dict[str, Any]) -> None:
    """Store an experiment's measurements, if there are any."""
    if not run.found:
        return
    kept = {"made": made, "seconds": run.seconds, "missing": run.missing, "found": run.found}
    if run.earlier is not None:
        kept |= {"earlier": run.earlier["made"], "added": [name for name in run.found if name not in run.kept]}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (RESULTS / f"{run.name}.json").write_text(text + "\n", encoding="utf-8")


def stored(name: str) -> dict[str, Any] | None:
    """What was kept of an experiment."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_pages(modules: dict[str, ModuleType], folder: Path = PAGES) -> None:
    """All pages, from all that was kept."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: found for name in modules if (found := stored(name)) is not None}
    claims: list[tuple[str, Claim]] = []
    sections: list[str] = []
    for name, one in kept.items():
        module, found = modules[name], one["found"]
        pictures = []
        for stem, figure in module.figures(found).items():
            figure.savefig(folder / f"{stem}.png", dpi=110, metadata={"Software": None})
            pictures.append(f"![{stem}]({stem}.png)")
        own = module.claims(found)
        claims += [(name, claim) for claim in own]
        (folder / f"{name}.md").write_text(page(module, one, pictures, own), encoding="utf-8")
        sections += [f"## {module.TITLE}", module.ABOUT, *pictures, f"[Tables and claims]({name}.md)"]
    (folder / "README.md").write_text(overview(kept, claims, sections), encoding="utf-8")


def page(module: ModuleType, one: dict[str, Any], pictures: list[str], claims: list[Claim]) -> str:
    """An experiment's page."""
    parts = [f"# {module.TITLE}", module.ABOUT, *pictures]
    if claims:
        rows = [(c.source, c.text, MARKS[c.verdict], c.figures) for c in claims]
        parts += ["## Claims", markdown(Table("", ("source", "claim", "here", "figures"), rows), "left")]
    for table in module.tables(one["found"]):
        parts += [f"**{table.title}**", markdown(table)]
    if one["missing"]:
        parts.append(f"*Not measured, for want of time or data: {', '.join(one['missing'])}.*")
    made = one["made"]
    took = sum(one["seconds"].values())
    parts.append(
        f"*Measured {made['date']} at commit {made['commit']} with `{made['command']}` in {took:.0f} s "
        f"(budget {module.BUDGET} s).*"
    )
    if "earlier" in one:
        before = one["earlier"]
        parts.append(
            f"*Of these the cases {', '.join(one['added'])} only; the others were measured {before['date']} at commit "
            f"{before['commit']} with `{before['command']}`.*"
        )
    return "\n\n".join([*parts, describe([made])]) + "\n"


def overview(kept: dict[str, Any], claims: list[tuple[str, Claim]], sections: list[str]) -> str:
    """The page about everything."""
    counts = {word: sum(claim.verdict == word for _, claim in claims) for word in MARKS}
    said = ", ".join(f"{count} {word}" for word, count in counts.items())
    rows = [(c.source, c.text, MARKS[c.verdict], c.figures, f"[{name}]({name}.md)") for name, c in claims]
    total = sum(sum(one["seconds"].values()) for one in kept.values())
    parts = [
        "# Results",
        "What the papers behind primalsvm claim, measured: the Pegasos paper (Shalev-Shwartz, Singer and Srebro 2007), "
        "Zhou's analysis of it, and the ASSET paper (Lee and Wright). Written by `make experiments`; every number on "
        f"this page and on those it links to comes from its run ({total / 60:.0f} minutes in all).",
        describe([one["made"] for one in kept.values()]),
        "## Claims",
        f"{said}.",
        markdown(Table("", ("source", "claim", "here", "figures", "experiment"), rows), "left"),
        *sections,
    ]
    return "\n\n".join(parts) + "\n"
