"""`primalsvm train --online`: test the model on each batch of a stream, then fit it to the batch."""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import typer

from primalsvm.cli.showing import label_text

LEAST = 100  # rows of a batch; later a tenth of the rows so far, if as many have arrived
SECONDS = 0.5  # between two lines of progress in a terminal; elsewhere there is one when the rows have doubled


def learn(model: Any, source: Any, n_bytes: int) -> dict[str, Any]:
    """Fit a model to a stream, and return a report. Ctrl-C ends the stream and keeps the model."""
    import numpy as np

    from primalsvm.estimators.streams import widen_features

    report = Report()
    layout = None
    try:
        for rows in _from_both_classes(source.stream(n_bytes), model):
            X, y, layout = rows.X, rows.y, rows.layout
            if X.shape[1] > getattr(model, "n_features_in_", X.shape[1]):
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
        if not hasattr(model, "intercept_"):
            raise
        typer.echo("primalsvm: interrupted; what was learnt so far is kept", err=True)
    if not hasattr(model, "intercept_"):
        raise ValueError("the stream has no rows")
    report.line(model, last=True)
    model.layout_ = layout
    return {
        "rows": model.n_samples_seen_,
        "features": model.n_features_in_,
        "solver": type(model.solver_).__name__,
        "progressive_error": None if np.isnan(model.progressive_error_) else float(model.progressive_error_),
    }


def _from_both_classes(blocks: Iterator[Any], model: Any) -> Iterator[Any]:
    """The blocks; those before the second class appears are joined, as the first call must know two classes."""
    import numpy as np
    import scipy.sparse as sp

    waiting: list[Any] = []
    for rows in blocks:
        if not rows.X.shape[0]:
            continue
        if hasattr(model, "classes_"):
            yield rows
            continue
        waiting.append(rows)
        labels = np.concatenate([part.y for part in waiting])
        if np.unique(labels).shape[0] > 1:
            matrices: list[Any] = [part.X for part in waiting]
            if sp.issparse(matrices[0]):
                for X in matrices:
                    X.resize(X.shape[0], matrices[-1].shape[1])
                joined: Any = sp.vstack(matrices, format="csr")
            else:
                joined = np.concatenate(matrices)
            yield replace(rows, X=joined, y=labels)
            waiting = []
    if waiting:
        raise ValueError(f"the stream holds one class only ({label_text(labels.tolist()[0])}): two are needed")


class Report:
    """Progress on standard error: the number of rows so far, and their error rate before they were learnt."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.begin = self.last_report = time.monotonic()
        self.next_rows = 1

    def line(self, model: Any, last: bool = False) -> None:
        """Write a line, if it is time."""
        now, rows = time.monotonic(), model.n_samples_seen_
        due = now - self.last_report >= SECONDS if self.terminal else rows >= self.next_rows
        if not (due or last):
            return
        self.last_report, self.next_rows = now, 2 * rows
        error = model.progressive_error_
        errors = f"progressive error {error:.2%}" if error == error else "nothing tested yet"
        text = f"{rows:,} rows, {errors}, {rows / max(now - self.begin, 1e-9):,.0f} rows/s"
        typer.echo(f"\r\x1b[K{text}" if self.terminal else text, err=True, nl=last or not self.terminal)
