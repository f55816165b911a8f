"""`primalsvm convert` and `primalsvm inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from primalsvm.cli.showing import AsJson, Based, Drop, Features, Rows, Target, label_text, open_source, sentences, show

MANY_LABELS = 20  # up to so many are listed


def convert(
    rows: Rows,
    cache: Annotated[Path, typer.Argument(help="The cache to write.")],
    target: Target = None,
    drop: Drop = None,
    features: Features = None,
    zero_based: Based = None,
) -> None:
    """Convert rows to a cache, which opens at once and is mapped into memory."""
    with sentences():
        open_source(rows, features, zero_based, target, drop).to_cache(cache)


def inspect(
    rows: Rows,
    target: Target = None,
    drop: Drop = None,
    features: Features = None,
    zero_based: Based = None,
    as_json: AsJson = False,
) -> None:
    """Describe the contents of a file."""
    with sentences():
        facts = open_source(rows, features, zero_based, target, drop).summary()
        labels = facts.get("labels")
        if labels is not None and len(labels) <= MANY_LABELS:
            facts["labels"] = {label_text(label): labels[label] for label in sorted(labels)}
        elif labels is not None:
            from primalsvm.sources.source import MOST_LABELS

            more = "more than " if len(labels) > MOST_LABELS else ""
            facts["labels"] = f"{more}{len(labels):,} different, {min(labels)} to {max(labels)}"
        show(facts, as_json)
