"""`primalsvm predict` and `primalsvm evaluate`: what a model says of rows."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from primalsvm.cli.showing import AsJson, Fitted, Rows, label_text, sentences, show


def predict(
    model: Fitted,
    rows: Rows,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV file; without it, print.")] = None,
) -> None:
    """Write the class and the score of every row, as CSV."""
    with sentences():
        from primalsvm.estimators.files import load

        lines = _lines(load(model), rows)
        if output is None:
            for line in lines:
                sys.stdout.write(line)
        else:
            from primalsvm.whole import written_whole

            with written_whole(output) as file:
                for line in lines:
                    file.write(line.encode())


def _lines(clf: Any, rows: Path) -> Iterator[str]:
    import csv
    import io

    import numpy as np

    from primalsvm.sources.opening import open as open_source

    names = [label_text(label) for label in clf.classes_.tolist()]
    yield "class,score\n"
    for scores, _ in clf.judged(open_source(rows)):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        places = (scores > 0).astype(np.intp).tolist()
        writer.writerows((names[place], score) for place, score in zip(places, scores.tolist(), strict=True))
        yield text.getvalue()


def evaluate(model: Fitted, rows: Rows, as_json: AsJson = False) -> None:
    """Test a model on rows with labels."""
    with sentences():
        from primalsvm.estimators.files import load

        show(tested(load(model), rows), as_json)


def tested(clf: Any, rows: Path) -> dict[str, Any]:
    """How many rows there are, and the share that a model gets wrong."""
    import numpy as np

    from primalsvm.sources.opening import open as open_source

    n = wrong = 0
    for scores, labels in clf.judged(open_source(rows)):
        if labels is None:
            raise ValueError(f"{rows} has no labels to compare with")
        unknown = np.setdiff1d(labels, clf.classes_)
        if unknown.size:
            known = ", ".join(label_text(label) for label in clf.classes_.tolist())
            raise ValueError(f"{rows} has the label {label_text(unknown.tolist()[0])}; the model knows {known}")
        n += scores.shape[0]
        wrong += int(np.count_nonzero(clf.classes_[(scores > 0).astype(np.intp)] != labels))
    if not n:
        raise ValueError(f"{rows} holds no rows")
    return {"test_rows": n, "test_error": wrong / n}
