"""`open`: where rows come from, by the look of a path.

A source is not read before it is used. `to_arrays` gives all of it, `blocks` a part at a time, in order; `held` gives
it to an estimator, in memory if it fits there and else through a cache, whose rows can stay in its files.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp

from primalsvm.options import check_integer
from primalsvm.rows import CSR, Stored, Vector, between, stored_bytes
from primalsvm.sources.arrays import ArrayFile
from primalsvm.sources.batches import FORMATS, plain_suffix
from primalsvm.sources.cache import CacheError, CacheWriter, open_cache, read_header
from primalsvm.sources.layout import (
    Layout,
    SvmlightLayout,
    TableLayout,
    codes_of,
    labels_of,
    layout_from_dict,
    names_of,
)
from primalsvm.sources.svmlight import Place, Rows, based, blocks_of, check_reading, parse_text, read_svmlight
from primalsvm.sources.tables import TableFile
from primalsvm.sources.texts import STANDARD_INPUT, FormatError, beginning, reader_of
from primalsvm.team import team_for
from primalsvm.whole import beside

AT_ONCE = 1 << 26  # bytes of a source that are converted at a time


class Source(Protocol):
    """Rows with labels, somewhere."""

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about so many bytes at a time."""


@dataclass(frozen=True)
class SvmlightFile:
    """A file of svmlight/LIBSVM text; see `read_svmlight`. The path `-` is standard input, which is read once."""

    path: Path
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dtype: Any = np.float64
    n_jobs: int | None = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        check_integer("n_features", self.n_features, none=True)
        check_reading(self.zero_based, self.dtype)

    def to_arrays(self) -> tuple[sp.csr_matrix, Vector]:
        """All rows as a CSR matrix, and their labels."""
        X, y, *_ = self.read()
        return X, y

    def read(self) -> tuple[sp.csr_matrix, Vector, SvmlightLayout, Vector | None]:
        """All rows as a CSR matrix, their labels, how the features were numbered, and the rows' queries."""
        found = read_svmlight(
            self.path, n_features=self.n_features, zero_based=self.zero_based, dtype=self.dtype, n_jobs=self.n_jobs
        )
        return found.X, found.y, SvmlightLayout(found.zero_based), found.qid

    def blocks(self, n_bytes: int) -> Iterator[tuple[sp.csr_matrix, Vector]]:
        """Rows and labels in order, about so many bytes of text at a time."""
        return ((rows.X, rows.y) for rows in self.stream(n_bytes))

    def stream(self, n_bytes: int) -> Iterator[Rows]:
        """Rows in order, about so many bytes of text at a time.

        Without `n_features` a block has as many columns as the largest index so far says. Without `zero_based` the
        first block that has features decides.
        """
        zero_based, width = self.zero_based, self.n_features or 0
        with reader_of(self.path) as reader, team_for(self.n_jobs) as team:
            for place, block in blocks_of(reader, str(self.path), n_bytes, np.dtype(self.dtype), team):
                if zero_based is False and block.smallest == 0 and self.zero_based == "auto":
                    raise FormatError(
                        f"{self.path} has the index 0, but began as if indices were counted from 1: say so with "
                        "zero_based=True (--zero-based)"
                    )
                base = 0 if zero_based is True or block.smallest == 0 else 1
                width = max(width, block.largest + 1 - base) if self.n_features is None else self.n_features
                rows = based(block, place, width, zero_based)
                if block.largest >= 0:
                    zero_based = rows.zero_based
                yield rows

    def memory_needed(self) -> int:
        """About how many bytes all rows take; 0 if nobody can tell."""
        if not self.path.is_file():  # standard input, or a pipe, which can be read only once
            return 0
        text, times = beginning(self.path)
        lines = np.frombuffer(text[: text.rfind(b"\n") + 1], np.uint8)
        if not lines.shape[0]:
            return int(times * len(text))
        with team_for(None) as team:
            block = parse_text(lines, Place(str(self.path)), np.dtype(np.float64), team)
        return int(times * (12 * block.data.shape[0] + 16 * block.y.shape[0]))

    def to_cache(self, path: str | os.PathLike[str]) -> "CacheFolder":
        """Write the rows into a cache, a part at a time."""
        smallest, largest = 1, -1
        with (
            reader_of(self.path) as reader,
            team_for(self.n_jobs) as team,
            CacheWriter(path, sparse=True, dtype=self.dtype) as writer,
        ):
            for _, block in blocks_of(reader, str(self.path), AT_ONCE, np.dtype(self.dtype), team):
                writer.append_csr(block.data, block.indices, block.indptr, block.y, block.qid)
                smallest, largest = min(smallest, block.smallest), max(largest, block.largest)
            zero_based = self.zero_based is True or (self.zero_based == "auto" and smallest == 0)
            base = 0 if zero_based else 1
            if smallest < base:
                raise FormatError(f"{self.path} has the index 0, but zero_based=False")
            writer.shift_indices(-base)
            writer.n_features = max(largest + 1 - base, 0) if self.n_features is None else self.n_features
            if largest + 1 - base > writer.n_features:
                raise FormatError(f"{self.path} has the index {largest}, but there are only {self.n_features} features")
            writer.layout = SvmlightLayout(zero_based)
        return CacheFolder(Path(path))


@dataclass(frozen=True)
class CacheFolder:
    """A cache; see `cache`."""

    path: Path

    @property
    def layout(self) -> Layout | None:
        """How its rows were made, if that is known."""
        try:
            return layout_from_dict(read_header(self.path).get("layout"))
        except ValueError as error:
            raise CacheError(f"{self.path} is damaged: {error}") from None

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows, mapped into memory, and their labels; SciPy copies the indices of 2^31 entries and more."""
        rows, y, _ = open_cache(self.path)
        return as_matrix(rows), labels_of(self.layout, y)

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about so many bytes at a time."""
        rows, y, _ = open_cache(self.path)
        layout, m = self.layout, y.shape[0]
        at_once = max(1, n_bytes * m // max(stored_bytes(rows), 1))
        for first in range(0, m, at_once):
            last = min(first + at_once, m)
            yield as_matrix(between(rows, first, last)), labels_of(layout, y[first:last])

    def memory_needed(self) -> int:
        """How many bytes all rows take."""
        return stored_bytes(open_cache(self.path).rows)


@dataclass(frozen=True)
class Loaded:
    """The rows of a source, in memory already."""

    path: Path
    X: Any
    y: Any
    layout: Layout | None
    qid: Vector | None = None

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""
        return self.X, self.y

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """All at once."""
        yield self.X, self.y


AnySource: TypeAlias = SvmlightFile | TableFile | ArrayFile | CacheFolder | Loaded


def as_matrix(rows: Stored) -> Any:
    """Rows as a NumPy array or a SciPy matrix, in place."""
    if not isinstance(rows, CSR):
        return rows.values
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    indptr = rows.indptr - rows.indptr[0]
    parts = rows.data[first:last], rows.indices.view(np.int32)[first:last], indptr.view(np.int64)
    return sp.csr_matrix(parts, shape=(rows.indptr.shape[0] - 1, rows.n_features), copy=False)


# ---- opening ---------------------------------------------------------------------------------------------------------


def open(path: str | os.PathLike[str], **options: Any) -> AnySource:  # as primalsvm.open
    r"""The source at a path, by its look.

    A folder is a cache; .csv, .tsv, .parquet, .arrow and .feather files are tables; .npy and .npz files are arrays;
    anything else is svmlight/LIBSVM text; `-` is such text on standard input. Text may be compressed (.gz, .bz2, .xz,
    .zst).

    Parameters
    ----------
    path : a file or a folder
    options : of text: n_features, zero_based ("auto", True or False), dtype, n_jobs. Of tables: target (the column of
        labels), drop (columns to leave out), delimiter, layout. Of .npy files: target (the number of a column)

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
    kind: Any = SvmlightFile
    if path.is_dir():
        kind = CacheFolder
    elif plain_suffix(path) in FORMATS or options.get("delimiter") is not None:
        kind = TableFile
    elif path.suffix in (".npy", ".npz"):
        kind = ArrayFile
    known = [name for name in kind.__dataclass_fields__ if name != "path"]
    unknown = sorted(set(options) - set(known))
    if unknown:
        what = {SvmlightFile: "svmlight text", CacheFolder: "a cache", TableFile: "a table", ArrayFile: "an array file"}
        has = f"has the options {', '.join(known)}" if known else "has no options"
        raise TypeError(f"{path}: {what[kind]} {has}; got {', '.join(unknown)}")
    if kind in (TableFile, ArrayFile) and not path.is_file():
        raise ValueError(f"{path} is no regular file: a table is read more than once, so save it first")
    source: AnySource = kind(path, **options)
    return source


def is_source(X: Any) -> bool:
    """Whether rows are to be had from X."""
    return hasattr(X, "to_arrays") and hasattr(X, "blocks")


def seen_by(source: AnySource, layout: Layout | None, n_features: int, labelled: bool = True) -> AnySource:
    """The source as a model sees it that was made from rows of this layout and this many features.

    Without `labelled`, labels are not looked at where there are some.
    """
    if isinstance(source, SvmlightFile):
        zero_based = layout.zero_based if isinstance(layout, SvmlightLayout) else source.zero_based
        return replace(source, n_features=n_features, zero_based=zero_based)
    if isinstance(source, TableFile) and source.layout is None:
        if not isinstance(layout, TableLayout):
            raise ValueError(f"{source.path} is a table, but the model was not made from one")
        drop = source.drop if labelled else (*source.drop, layout.target)
        return replace(source, layout=layout, target=None, drop=drop)
    if isinstance(source, CacheFolder) and not alike(source.layout, layout):
        raise ValueError(
            f"the features of {source.path} are not those that the model was made from: convert its rows as those of "
            "the training were converted"
        )
    return unlabelled(source)


def unlabelled(source: AnySource) -> AnySource:
    """The source, with no labels where it is not said which column they are."""
    if isinstance(source, ArrayFile) and source.target is None:
        return replace(source, labelled=False)
    return source


def alike(first: Layout | None, second: Layout | None) -> bool:
    """Whether two layouts make the same features, as far as is known."""
    if first is None or second is None:
        return True
    if isinstance(first, TableLayout) and isinstance(second, TableLayout):
        return first.feature_names == second.feature_names
    return first == second


class Held(NamedTuple):
    """All rows of a source."""

    X: Any  # a matrix, or rows; not checked yet
    y: Any
    layout: Layout | None
    names: Any = None  # of the classes, if y holds their numbers
    cache: Path | None = None  # in which they are, if they take more memory than they may
    qid: Vector | None = None  # their queries


@contextmanager
def held(source: AnySource, budget: float) -> Iterator[Held]:
    """All rows of a source: in memory, or if they take more than the budget, mapped from a cache.

    A source that is not a cache is written into one first, which is gone in the end: beside it, or where that cannot be
    written to, in the system's folder for temporary files.
    """
    if isinstance(source, CacheFolder):
        rows, y, qid = open_cache(source.path)
        layout = source.layout
        names = names_of(layout, y)
        labels = labels_of(layout, y) if names is None else y  # text for every row would take more than the rows
        yield Held(rows, labels, layout, names, source.path if stored_bytes(rows) > budget else None, qid)
    elif not isinstance(source, Loaded) and source.memory_needed() > budget:
        beside_it = source.path.parent if os.access(source.path.parent, os.W_OK) else Path(tempfile.gettempdir())
        place = beside(beside_it / f"{source.path.name}.cache")
        try:
            with held(to_cache(source, place), budget) as cached:
                yield cached
        finally:
            shutil.rmtree(place, ignore_errors=True)
    else:
        found = loaded(source)
        yield Held(found.X, found.y, found.layout, qid=found.qid)


def loaded(source: AnySource) -> Loaded:
    """All rows of a source, in memory."""
    if isinstance(source, Loaded):
        return source
    if isinstance(source, SvmlightFile):
        return Loaded(source.path, *source.read())
    X, y = source.to_arrays()
    return Loaded(source.path, X, y, layout_of(source))


def layout_of(source: AnySource) -> Layout | None:
    """How the rows of a source become features, as far as it tells before it is read."""
    if isinstance(source, TableFile):
        return source.layout_used
    return source.layout if isinstance(source, CacheFolder | Loaded) else None


def to_cache(source: AnySource, path: str | os.PathLike[str]) -> CacheFolder:
    """Write a source into a cache, a part at a time."""
    if isinstance(source, CacheFolder):
        raise CacheError(f"{source.path} is a cache already")
    if isinstance(source, SvmlightFile):
        return source.to_cache(path)
    layout, blocks = layout_of(source), source.blocks(AT_ONCE)
    X, y = next(blocks)
    dtype = X.dtype if X.dtype in (np.float32, np.uint8) else np.dtype(np.float64)
    with CacheWriter(path, X.shape[1], bool(sp.issparse(X)), dtype, layout=layout) as writer:
        writer.append(X, codes_of(layout, y))
        for X, y in blocks:
            writer.append(X, codes_of(layout, y))
    return CacheFolder(Path(path))
