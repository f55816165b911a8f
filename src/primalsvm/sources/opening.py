"""`open`: a file or a folder as a source of rows."""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from primalsvm.sources.arrays import ArrayFile
from primalsvm.sources.source import CacheFolder, Source
from primalsvm.sources.svmlight_file import SvmlightFile
from primalsvm.sources.tables import TableFile
from primalsvm.sources.texts import STANDARD_INPUT

KINDS: tuple[Any, ...] = (CacheFolder, TableFile, ArrayFile, SvmlightFile)  # the first that matches a path


def open(path: str | os.PathLike[str], **options: Any) -> Source:  # as primalsvm.open
    r"""Open a file or folder as a source of rows; its name determines the format.

    A folder is a cache; .csv, .tsv, .parquet, .arrow and .feather files are tables; .npy and .npz files are arrays; all
    other files are svmlight/LIBSVM text; `-` is such text on standard input. Text may be compressed (.gz, .bz2, .xz,
    .zst).

    Parameters
    ----------
    path : a file or a folder
    options : for text n_features, zero_based ("auto", True or False), dtype, n_jobs; for tables target (the column of
        labels), drop (columns to leave out), delimiter, layout; for .npy files target (the index of a column)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    ...     _ = file.write("1 1:0.5 3:2\n-1 2:1\n")
    ...     file.flush()
    ...     X, y = open(file.name).to_arrays()
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    path = Path(path)
    if path != STANDARD_INPUT and not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    kind = next(kind for kind in KINDS if kind.matches(path, options))
    known = [field.name for field in fields(kind) if field.name != "path"]
    unknown = sorted(set(options) - set(known))
    if unknown:
        has = f"has the options {', '.join(known)}" if known else "has no options"
        raise TypeError(f"{path}: {kind.kind} {has}; got {', '.join(unknown)}")
    if kind.needs_file and not path.is_file():
        raise ValueError(f"{path} is no regular file: {kind.kind} is read more than once, so save it first")
    source: Source = kind(path, **options)
    return source


def is_source(X: Any) -> bool:
    """Whether X is a source of rows."""
    return isinstance(X, Source)
