"""`primalsvm predict` and `primalsvm evaluate`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from primalsvm.cli.showing import (
    AsJson,
    Fitted,
    Rows,
    Target,
    check_writable,
    label_text,
    open_source,
    sentences,
    show,
)


def predict(
    model: Fitted,
    rows: Rows,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A CSV file; without it, print.")] = None,
) -> None:
    """Write the class and the scores of every row, or the prediction of a regressor or detector, as CSV."""
    with sentences():
        from primalsvm.estimators.model_files import load
        from primalsvm.sources.opening import open as open_path

        check_writable(output)
        if (
            output is not None
            and output.exists()
            and any(one.exists() and output.samefile(one) for one in (model, rows))
        ):
            raise ValueError(f"{output} is what is read: write the scores to another file")
        lines = _lines(load(model), open_path(rows))
        if output is None:
            for line in lines:
                sys.stdout.write(line)
        else:
            from primalsvm.atomic import atomic_file

            with atomic_file(output) as file:
                for line in lines:
                    file.write(line.encode())


def _lines(clf: Any, source: Any) -> Iterator[str]:
    import numpy as np

    from primalsvm.estimators.prediction import classes_of, scores_by_block

    names = {label: label_text(label) for label in getattr(clf, "classes_", np.zeros(0)).tolist()}
    columns = ["score"] if len(names) == 2 else list(names.values())
    number = "score" if hasattr(clf, "score_samples") else "prediction"
    head = _csv([["class", *columns] if names else [number]])
    labels = getattr(clf, "multilabel_", False)
    if labels:
        head = _csv([[f"{what} {name}" for what in ("label", "score") for name in names.values()]])
    for scores, _ in scores_by_block(clf, source, labelled=False):
        rows: list[list[Any]] = scores.reshape(len(scores), -1).tolist()
        predicted = classes_of(clf, scores).tolist() if names else []
        if labels:
            rows = [[*present, *row] for present, row in zip(predicted, rows, strict=True)]
        elif names:
            rows = [[names[label], *row] for label, row in zip(predicted, rows, strict=True)]
        yield head + _csv(rows)
        head = ""
    yield head


def _csv(rows: list[list[Any]]) -> str:
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def evaluate(model: Fitted, rows: Rows, target: Target = None, as_json: AsJson = False) -> None:
    """Test a model on labelled rows."""
    with sentences():
        from primalsvm.estimators.model_files import load

        show(evaluation_of(load(model), rows, target), as_json)


def evaluation_of(clf: Any, rows: Path, target: str | None) -> dict[str, Any]:
    """The number of rows and the error rate of a classifier, or R² of a regressor."""
    is_array = rows.suffix == ".npy"  # a table's target is part of the model
    source = open_source(rows, None, None, target if is_array else None, None)
    if not hasattr(clf, "score"):
        raise ValueError(
            f"a model of {type(clf).__name__} knows no labels to be tested on: `primalsvm predict` scores rows"
        )
    if not hasattr(clf, "classes_"):
        return {"test_r2": clf.score(source)}
    from primalsvm.estimators.prediction import count_errors

    n, wrong = count_errors(clf, source)
    return {"test_rows": n, "test_error": wrong / n}
