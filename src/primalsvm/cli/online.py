"""`primalsvm train --online`: a stream of rows, each tested and then learnt."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import typer

from primalsvm.cli.showing import label_text

LEAST = 100  # rows that are learnt at a time; later a tenth of those so far, as long as they came together
SECONDS = 0.5  # between two lines of progress in a terminal; elsewhere a line whenever the rows have doubled


def learn(model: Any, source: Any, n_bytes: int) -> dict[str, Any]:
    """Learn from a stream; what is to be said of it. Ctrl-C ends the stream: what was learnt is kept."""
    import numpy as np

    from primalsvm.estimators.linear_svc import LinearSVC
    from primalsvm.estimators.streams import widen_features

    report = Report()
    found = Layouts(source)
    try:
        for X, y in _from_both_classes(found.blocks(n_bytes), model):
            if isinstance(model, LinearSVC) and hasattr(model, "n_features_in_") and X.shape[1] > model.n_features_in_:
                widen_features(model, X.shape[1])
            classes = None if hasattr(model, "classes_") else np.unique(y)
            start = 0
            while start < X.shape[0]:
                stop = start + max(LEAST, getattr(model, "n_samples_seen_", 0) // 10)
                model.partial_fit(X[start:stop], y[start:stop], classes)
                classes = None
                start = stop
                report.line(model)
    except KeyboardInterrupt:
        if not hasattr(model, "coef_"):
            raise
        typer.echo("primalsvm: interrupted; what was learnt so far is kept", err=True)
    if not hasattr(model, "coef_"):
        raise ValueError("the stream has no rows")
    report.line(model, last=True)
    model.layout_ = found.layout
    return {
        "rows": model.n_samples_seen_,
        "features": model.n_features_in_,
        "solver": type(model.solver_).__name__,
        "progressive_error": None if np.isnan(model.progressive_error_) else float(model.progressive_error_),
    }


def _from_both_classes(blocks: Iterator[tuple[Any, Any]], model: Any) -> Iterator[tuple[Any, Any]]:
    """The blocks; those before the second class appears are put together, as a model needs to know both."""
    import numpy as np
    import scipy.sparse as sp

    waiting: list[tuple[Any, Any]] = []
    for X, y in blocks:
        if not X.shape[0]:
            continue
        if hasattr(model, "classes_"):
            yield X, y
            continue
        waiting.append((X, y))
        labels = np.concatenate([part for _, part in waiting])
        if np.unique(labels).shape[0] > 1:
            matrices: Any = [part for part, _ in waiting]
            if sp.issparse(X):
                for part in matrices:
                    part.resize(part.shape[0], matrices[-1].shape[1])
                yield sp.vstack(matrices, format="csr"), labels
            else:
                yield np.concatenate(matrices), labels
            waiting = []
    if waiting:
        raise ValueError(f"the stream holds one class only ({label_text(labels.tolist()[0])}): two are needed")


class Layouts:
    """The blocks of a source; and how their rows became features, which text tells only when it is read."""

    def __init__(self, source: Any) -> None:
        self.source, self.layout = source, source.layout_used

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order."""
        from primalsvm.sources.layout import SvmlightLayout
        from primalsvm.sources.svmlight_file import SvmlightFile

        if not isinstance(self.source, SvmlightFile):
            yield from self.source.blocks(n_bytes)
            return
        for rows in self.source.stream(n_bytes):
            self.layout = SvmlightLayout(rows.zero_based)
            yield rows.X, rows.y


class Report:
    """Progress on standard error: rows so far, and the share of them that was predicted wrongly."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.begin = self.told = time.monotonic()
        self.next_rows = 1

    def line(self, model: Any, last: bool = False) -> None:
        """Tell, if it is time."""
        now, rows = time.monotonic(), model.n_samples_seen_
        due = now - self.told >= SECONDS if self.terminal else rows >= self.next_rows
        if not (due or last):
            return
        self.told, self.next_rows = now, 2 * rows
        error = model.progressive_error_
        errors = f"progressive error {error:.2%}" if error == error else "nothing tested yet"
        text = f"{rows:,} rows, {errors}, {rows / max(now - self.begin, 1e-9):,.0f} rows/s"
        typer.echo(f"\r\x1b[K{text}" if self.terminal else text, err=True, nl=last or not self.terminal)
