"""What all sources of rows have in common, and two of them: a cache, and rows that are in memory already.

A source is read only when its rows are asked for. `to_arrays` gives all rows; `blocks` some at a time, in order;
`rows_within` those that an estimator is fitted to: in memory if they fit there, else through a cache, whose rows can
stay in its files.
"""

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from primalsvm.atomic import partial_path
from primalsvm.data import Vector
from primalsvm.sources.cache import CacheError, CacheWriter, open_cache, read_header
from primalsvm.sources.layout import Layout, alike, codes_of, labels_of, layout_from_dict, names_of

BLOCK_BYTES = 1 << 26  # of a source that are converted at a time


class Source(ABC):
    """Rows with labels, somewhere.

    Attributes
    ----------
    path : the file or folder
    kind : what errors call it
    needs_file : whether it is read more than once, which takes a regular file
    """

    path: Path
    kind: ClassVar[str]
    needs_file: ClassVar[bool] = False

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """Whether what is at a path looks like this kind of source."""
        return False

    @abstractmethod
    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""

    @abstractmethod
    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about so many bytes at a time."""

    @abstractmethod
    def memory_needed(self) -> int:
        """About how many bytes all rows take; 0 if that cannot be told."""

    @property
    def layout_used(self) -> Layout | None:
        """How the rows become features; None: that is not known before they are read."""
        return None

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> "Source":
        """The source as a model sees it that was made from rows of this layout and this many features.

        Without `labelled`, labels are not looked at where there are some.
        """
        return self.unlabelled()

    def unlabelled(self) -> "Source":
        """The source, without labels if it does not say which column they are."""
        return self

    def load(self) -> "LoadedRows":
        """All rows, in memory."""
        X, y = self.to_arrays()
        return LoadedRows(X, y, self.layout_used, path=self.path)

    @contextmanager
    def rows_within(self, budget: float) -> "Iterator[LoadedRows]":
        """All rows: in memory, or if they take more bytes than the budget, mapped from a cache.

        The cache is removed in the end. It is written beside the source, or where that cannot be written to, into the
        system's folder for temporary files.
        """
        if self.memory_needed() <= budget:
            yield self.load()
            return
        folder = self.path.parent if os.access(self.path.parent, os.W_OK) else Path(tempfile.gettempdir())
        place = partial_path(folder / f"{self.path.name}.cache")
        try:
            with self.to_cache(place).rows_within(budget) as rows:
                yield rows
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def to_cache(self, path: str | os.PathLike[str]) -> "CacheFolder":
        """Write the rows into a cache, some at a time."""
        layout, blocks = self.layout_used, self.blocks(BLOCK_BYTES)
        X, y = next(blocks)
        dtype = X.dtype if X.dtype in (np.float32, np.uint8) else np.dtype(np.float64)
        with CacheWriter(path, X.shape[1], bool(sp.issparse(X)), dtype, layout=layout) as writer:
            writer.append(X, codes_of(layout, y))
            for X, y in blocks:
                writer.append(X, codes_of(layout, y))
        return CacheFolder(Path(path))


@dataclass(frozen=True)
class LoadedRows(Source):
    """All rows of a source.

    Parameters
    ----------
    X : a matrix, or a block of rows of a cache; not checked yet
    y : labels
    layout : how the rows were made, if that is known
    names : of the classes, if y holds their numbers
    cache : the cache that the rows are in, if they take more memory than they may
    qid : the query of each row
    path : of the source
    """

    X: Any
    y: Any
    layout: Layout | None = None
    names: Any = None
    cache: Path | None = None
    qid: Vector | None = None
    path: Path = Path()

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""
        return self.X, self.y

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """All at once."""
        yield self.X, self.y

    def memory_needed(self) -> int:
        """None that is not taken already."""
        return 0

    @property
    def layout_used(self) -> Layout | None:
        """The layout given."""
        return self.layout

    def load(self) -> Self:
        """The rows themselves."""
        return self


@dataclass(frozen=True)
class CacheFolder(Source):
    """A cache; see `cache`."""

    path: Path
    kind = "a cache"

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """A folder is a cache."""
        return path.is_dir()

    @property
    def layout(self) -> Layout | None:
        """How its rows were made, if that is known."""
        try:
            return layout_from_dict(read_header(self.path).get("layout"))
        except ValueError as error:
            raise CacheError(f"{self.path} is damaged: {error}") from None

    @property
    def layout_used(self) -> Layout | None:
        """As the header says."""
        return self.layout

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows, mapped into memory, and their labels; SciPy copies the indices of 2^31 entries and more."""
        block, y, _ = open_cache(self.path)
        return block.matrix(), labels_of(self.layout, y)

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about so many bytes at a time."""
        block, y, _ = open_cache(self.path)
        layout, m = self.layout, y.shape[0]
        at_once = max(1, n_bytes * m // max(block.nbytes_of(), 1))
        for first in range(0, m, at_once):
            last = min(first + at_once, m)
            yield block.between(first, last).matrix(), labels_of(layout, y[first:last])

    def memory_needed(self) -> int:
        """How many bytes all rows take."""
        return open_cache(self.path).block.nbytes_of()

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> Self:
        """The cache, if its features are those of the model."""
        if not alike(self.layout, layout):
            raise ValueError(
                f"the features of {self.path} are not those that the model was made from: convert its rows as those of "
                "the training were converted"
            )
        return self

    @contextmanager
    def rows_within(self, budget: float) -> Iterator[LoadedRows]:
        """All rows, mapped into memory; the path is given if they take more bytes than the budget."""
        block, y, qid = open_cache(self.path)
        layout = self.layout
        names = names_of(layout, y)
        labels = labels_of(layout, y) if names is None else y  # text for every row would take more than the rows
        cache = self.path if block.nbytes_of() > budget else None
        yield LoadedRows(block, labels, layout, names, cache, qid, self.path)

    def to_cache(self, path: str | os.PathLike[str]) -> "CacheFolder":
        """Refused: it is a cache already."""
        raise CacheError(f"{self.path} is a cache already")
