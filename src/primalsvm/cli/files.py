"""`primalsvm convert` and `primalsvm inspect`: what files hold, and the same as a cache."""

from pathlib import Path
from typing import Annotated, Any

import typer

from primalsvm.cli.showing import AsJson, Based, Drop, Features, Rows, Target, label_text, open_source, sentences, show

MANY_LABELS = 20  # above, they are not listed one by one
MOST_LABELS = 100_000  # that are told apart
AT_ONCE = 1 << 25  # bytes


def convert(
    rows: Rows,
    cache: Annotated[Path, typer.Argument(help="The cache to write.")],
    target: Target = None,
    drop: Drop = None,
    features: Features = None,
    zero_based: Based = None,
) -> None:
    """Write rows as a cache, which opens at once and trains at the speed of memory."""
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
    """Say what a file holds."""
    with sentences():
        from collections import Counter

        import numpy as np

        from primalsvm.sources.cache import verify
        from primalsvm.sources.source import CacheFolder
        from primalsvm.sources.svmlight_file import SvmlightFile
        from primalsvm.sources.tables import TableFile

        source = open_source(rows, features, zero_based, target, drop)
        if isinstance(source, TableFile) and target is None:
            show(_columns(rows), as_json)
            return
        if isinstance(source, CacheFolder):
            verify(source.path)
        facts: dict[str, Any] = {"rows": 0, "features": 0, "entries": 0}
        labels: Counter[Any] = Counter()
        for X, y in source.blocks(AT_ONCE):
            facts["rows"] += X.shape[0]
            facts["features"] = max(facts["features"], X.shape[1])
            facts["entries"] += int(X.nnz) if hasattr(X, "nnz") else int(X.size)
            if y is not None and len(labels) <= MOST_LABELS:
                values, counts = np.unique(y, return_counts=True)
                labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        if len(labels) <= MANY_LABELS:
            facts["labels"] = {label_text(label): labels[label] for label in sorted(labels)}
        else:
            more = "more than " if len(labels) > MOST_LABELS else ""
            facts["labels"] = f"{more}{len(labels):,} different, {min(labels)} to {max(labels)}"
        if isinstance(source, SvmlightFile) and not facts["rows"]:
            raise ValueError(f"{rows} holds no rows")
        show(facts, as_json)


def _columns(table: Path) -> dict[str, Any]:
    """The columns of a table, for those who look for its target."""
    from primalsvm.sources.batches import columns_of, rows_about

    return {
        "rows_about": rows_about(table),
        "columns": {name: "text" if "string" in str(kind) else str(kind) for name, kind in columns_of(table).items()},
    }
