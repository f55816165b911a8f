"""The base class of sources of rows, and two of them: a cache, and rows that are in memory already.

A source is read when its rows are requested: `to_arrays` gives all rows, `blocks` some at a time in order, and
`rows_within` those for an estimator to fit: in memory if they fit there, else from a cache whose rows can stay in its
files.
"""

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from primalsvm.atomic import partial_path
from primalsvm.data import Vector
from primalsvm.sources.cache import CacheError, CacheWriter, open_cache, read_header, verify
from primalsvm.sources.layout import Layout, codes_of, labels_of, layout_from_dict, names_of, same_layout

BLOCK_BYTES = 1 << 26  # of a source that are read at a time
MOST_LABELS = 100_000  # different labels that a summary counts


class Source(ABC):
    """Rows with labels, in a file or folder."""

    path: Path
    kind: ClassVar[str]  # its name in messages
    needs_file: ClassVar[bool] = False  # whether it is read more than once, which requires a regular file
    mapped: ClassVar[bool] = False  # whether rows are mapped into memory, so that reading them takes no time

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """Whether a path is that of a source of this kind."""
        return False

    @abstractmethod
    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""

    @abstractmethod
    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about `n_bytes` at a time."""

    @abstractmethod
    def memory_needed(self) -> int:
        """The approximate number of bytes that all rows take; 0 if it is unknown."""

    @property
    def layout_used(self) -> Layout | None:
        """How the rows become features; None if that is unknown before they are read."""
        return None

    @property
    def width_known(self) -> bool:
        """Whether the number of features is known before all rows are read."""
        return True

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> "Source":
        """The source with the features of a model, given the model's layout and number of features.

        Without `labelled`, labels are not read.
        """
        return self.unlabelled()

    def unlabelled(self) -> "Source":
        """The source, without labels if the column of labels is not specified."""
        return self

    def stream(self, n_bytes: int) -> "Iterator[LoadedRows]":
        """The `blocks` with their layouts."""
        for X, y in self.blocks(n_bytes):
            yield LoadedRows(X, y, self.layout_used, path=self.path)

    def summary(self) -> dict[str, Any]:
        """The numbers of rows, features, entries, and of rows with each label (up to about `MOST_LABELS` labels)."""
        rows = features = entries = 0
        labels: Counter[Any] = Counter()
        for X, y in self.blocks(BLOCK_BYTES):
            rows, features = rows + X.shape[0], max(features, X.shape[1])
            entries += int(X.nnz if hasattr(X, "nnz") else X.size)
            if y is not None and len(labels) <= MOST_LABELS:
                values, counts = np.unique(y, return_counts=True)
                labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        return {"rows": rows, "features": features, "entries": entries, "labels": labels}

    def load(self) -> "LoadedRows":
        """All rows, in memory."""
        X, y = self.to_arrays()
        return LoadedRows(X, y, self.layout_used, path=self.path)

    @contextmanager
    def rows_within(self, budget: float) -> "Iterator[LoadedRows]":
        """All rows, in memory or, if they take more bytes than the budget, mapped from a temporary cache.

        The cache is written beside the source or, without permission, to the system's folder for temporary files.
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
        """Write the rows to a cache, block by block."""
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
    """Rows of a source, in memory or mapped."""

    X: Any  # a matrix, or a block of rows of a cache; not validated yet
    y: Any
    layout: Layout | None = None
    names: Any = None  # of the classes, if y holds their indices
    cache: Path | None = None  # that the rows are in, if they exceed the memory budget
    qid: Vector | None = None  # the query of each row
    path: Path = Path()  # of the source

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows as a matrix, and their labels."""
        return self.X, self.y

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """All at once."""
        yield self.X, self.y

    def memory_needed(self) -> int:
        """0, as the rows are in memory already."""
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
    mapped = True

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """A folder is a cache."""
        return path.is_dir()

    @property
    def layout_used(self) -> Layout | None:
        """The layout in the header."""
        try:
            return layout_from_dict(read_header(self.path).get("layout"))
        except ValueError as error:
            raise CacheError(f"{self.path} is damaged: {error}") from None

    def to_arrays(self) -> tuple[Any, Any]:
        """All rows, mapped into memory, and their labels. SciPy copies the indices of 2^31 entries or more."""
        block, y, _ = open_cache(self.path)
        return block.matrix(), labels_of(self.layout_used, y)

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, Any]]:
        """Rows and labels in order, about `n_bytes` at a time."""
        block, y, _ = open_cache(self.path)
        layout, m = self.layout_used, y.shape[0]
        at_once = max(1, n_bytes * m // max(block.nbytes_of(), 1))
        for first in range(0, m, at_once):
            last = min(first + at_once, m)
            yield block.between(first, last).matrix(), labels_of(layout, y[first:last])

    def memory_needed(self) -> int:
        """The number of bytes that all rows take."""
        return open_cache(self.path).block.nbytes_of()

    def summary(self) -> dict[str, Any]:
        """The numbers of rows, features, entries and labels, after verifying all checksums."""
        verify(self.path)
        return super().summary()

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> Self:
        """The cache; a ValueError if its features are not those of the model."""
        if not same_layout(self.layout_used, layout):
            raise ValueError(
                f"the features of {self.path} are not those that the model was made from: convert its rows as those of "
                "the training were converted"
            )
        return self

    @contextmanager
    def rows_within(self, budget: float) -> Iterator[LoadedRows]:
        """All rows, mapped into memory; `LoadedRows.cache` is set if they take more bytes than the budget."""
        block, y, qid = open_cache(self.path)
        layout = self.layout_used
        names = names_of(layout, y)
        labels = labels_of(layout, y) if names is None else y  # a string for every row would take too much memory
        cache = self.path if block.nbytes_of() > budget else None
        yield LoadedRows(block, labels, layout, names, cache, qid, self.path)

    def to_cache(self, path: str | os.PathLike[str]) -> "CacheFolder":
        """Raise a CacheError, as this is a cache already."""
        raise CacheError(f"{self.path} is a cache already")
