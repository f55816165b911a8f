"""What the commands share: arguments, messages, results as a table or as JSON."""

import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

Rows = Annotated[
    Path,
    typer.Argument(
        help="svmlight/LIBSVM text (plain, .gz, .bz2, .xz, .zst; - is standard input), a table (.csv, .tsv, .parquet, "
        ".arrow, .feather), .npy, .npz, or a cache."
    ),
]
Fitted = Annotated[Path, typer.Argument(help="A model file that `train` has written.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Features = Annotated[int | None, typer.Option(min=1, help="The number of features, if the text does not show all.")]
Based = Annotated[
    bool | None, typer.Option("--zero-based/--one-based", help="How text numbers its features; without it, detected.")
]
Target = Annotated[str | None, typer.Option(help="The column of labels of a table (of .npy: its number).")]
Drop = Annotated[list[str] | None, typer.Option(help="A column of a table to leave out; may be given again.")]

# Messages of errors name the parameters of Python functions.
SPELLINGS = (
    (r"drop=\('([^']*)',\)", r"--drop \1"),
    (r"n_features=(\w+)", r"--features \1"),
    (r"zero_based=True \(--zero-based\)", "--zero-based"),
    (r"; use None for one thread or -1 for all cores", "; -1 is all cores"),
    (r" or None, got", ", got"),
)
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


@contextmanager
def sentences() -> Iterator[None]:
    """Turn errors that the user can correct into one sentence and exit code 1."""
    try:
        yield
    except BrokenPipeError:  # the reader has ended; Python must not flush again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(1) from None
    except (ValueError, TypeError, OSError, ImportError, MemoryError, AttributeError) as error:
        typer.echo(f"primalsvm: {sentence_of(error)}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("primalsvm: interrupted", err=True)
        raise typer.Exit(130) from None


def sentence_of(error: Exception) -> str:
    """The message of an error, in one line.

    Examples
    --------
    >>> sentence_of(PermissionError(13, "Permission denied", "rows.svm"))
    'rows.svm: Permission denied'
    """
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        said = str(error.__cause__ or error) or type(error).__name__
    for python, shell in SPELLINGS:
        said = re.sub(python, shell, said)
    return " ".join(said.split())


def check_writable(path: Path | None) -> None:
    """Raise a ValueError if a file cannot be written, before a long computation."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file to write")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"{path} cannot be written to: no permission")


def open_source(
    rows: Path, features: int | None, zero_based: bool | None, target: str | None, drop: list[str] | None
) -> Any:
    """The source at a path, with the options that are not None."""
    from primalsvm.sources.opening import open as open_path

    options: dict[str, Any] = {"n_features": features, "zero_based": zero_based, "target": target}
    options = {name: value for name, value in options.items() if value is not None}
    if drop:
        options["drop"] = tuple(drop)
    if target is not None and rows.suffix == ".npy":
        options["target"] = int(target)
    return open_path(rows, **options)


def bytes_of(size: str) -> int:
    """Parse a number of bytes such as 500MB, 2GiB or 1e9.

    Examples
    --------
    >>> bytes_of("500MB"), bytes_of("2 GiB"), bytes_of("1e9")
    (500000000, 2147483648, 1000000000)
    """
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?i?)b?\s*", size, re.IGNORECASE)
    try:
        number = float(found[1]) if found else 0.0
    except ValueError:
        number = 0.0
    if not found or not 0 < number < math.inf or found[2].upper() not in UNITS:
        raise ValueError(f"{size!r} is no amount of memory: write it like 500MB, 2GB or 1.5GiB")
    return int(number * UNITS[found[2].upper()])


def show(facts: dict[str, Any], as_json: bool) -> None:
    """Print the results."""
    if as_json:
        typer.echo(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False)
    for name, fact in facts.items():
        table.add_row(name.replace("_", " "), format_fact(name, fact))
    Console(soft_wrap=True).print(table)


def format_fact(name: str, fact: Any) -> str:
    """A result as text.

    Examples
    --------
    >>> format_fact("test_error", 0.0675), format_fact("rows", 1000000), format_fact("labels", {"-1": 3000, "1": 20})
    ('6.75 %', '1,000,000', '-1: 3,000, 1: 20')
    """
    if fact is None:
        return "unknown"
    if isinstance(fact, dict):
        return ", ".join(
            f"{key}: {value:,}" if isinstance(value, int) else f"{key} ({value})" for key, value in fact.items()
        )
    if name.endswith("error"):
        return f"{100 * fact:.4g} %"
    if name.endswith("gap"):
        return f"{fact:.1e}"
    if name.startswith("seconds"):
        return f"{fact:.2f}"
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.6g}" if isinstance(fact, float) else str(fact)


def label_text(label: Any) -> str:
    """A label as text, whole numbers without a decimal point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
