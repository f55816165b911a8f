"""Files of svmlight/LIBSVM text as sources of rows."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp

from primalsvm.data import Vector, thread_pool
from primalsvm.options import check_integer
from primalsvm.sources.cache import CacheWriter
from primalsvm.sources.layout import Layout, SvmlightLayout
from primalsvm.sources.source import BLOCK_BYTES, CacheFolder, LoadedRows, Source
from primalsvm.sources.svmlight import Place, SvmlightRows, as_rows, blocks_of, check_reading, parse_text, read_svmlight
from primalsvm.sources.texts import FormatError, beginning, reader_of


@dataclass(frozen=True)
class SvmlightFile(Source):
    """A file of svmlight/LIBSVM text; see `read_svmlight`. The path `-` is standard input."""

    path: Path
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dtype: Any = np.float64
    n_jobs: int | None = -1

    kind = "svmlight text"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        check_integer("n_features", self.n_features, none=True)
        check_reading(self.zero_based, self.dtype)

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """Any file may be text."""
        return True

    def to_arrays(self) -> tuple[sp.csr_matrix, Vector]:
        """All rows as a CSR matrix, and their labels."""
        return self.load().to_arrays()

    def load(self) -> LoadedRows:
        """All rows with their queries and their layout."""
        return self._loaded(
            read_svmlight(
                self.path, n_features=self.n_features, zero_based=self.zero_based, dtype=self.dtype, n_jobs=self.n_jobs
            )
        )

    def _loaded(self, rows: SvmlightRows) -> LoadedRows:
        return LoadedRows(rows.X, rows.y, SvmlightLayout(rows.zero_based), qid=rows.qid, path=self.path)

    @property
    def width_known(self) -> bool:
        """Whether `n_features` is given; else the number of features is that of the largest index."""
        return self.n_features is not None

    def blocks(self, n_bytes: int) -> Iterator[tuple[sp.csr_matrix, Vector]]:
        """Rows and labels in order, about `n_bytes` of text at a time."""
        return (rows.to_arrays() for rows in self.stream(n_bytes))

    def stream(self, n_bytes: int) -> Iterator[LoadedRows]:
        """Rows in order, about `n_bytes` of text at a time.

        Without `n_features`, the number of columns of a block follows from the largest index so far. Without
        `zero_based`, the first block that has features decides.
        """
        zero_based, width = self.zero_based, self.n_features or 0
        with reader_of(self.path) as reader, thread_pool(self.n_jobs) as threads:
            for place, block in blocks_of(reader, str(self.path), n_bytes, np.dtype(self.dtype), threads):
                if zero_based is False and block.smallest == 0 and self.zero_based == "auto":
                    raise FormatError(
                        f"{self.path} has the index 0, but began as if indices were counted from 1: say so with "
                        "zero_based=True (--zero-based)"
                    )
                base = 0 if zero_based is True or block.smallest == 0 else 1
                width = max(width, block.largest + 1 - base) if self.n_features is None else self.n_features
                rows = as_rows(block, place, width, zero_based)
                if block.largest >= 0:
                    zero_based = rows.zero_based
                yield self._loaded(rows)

    def summary(self) -> dict[str, Any]:
        """The numbers of rows, features, entries and labels; a ValueError if there are no rows."""
        found = super().summary()
        if not found["rows"]:
            raise ValueError(f"{self.path} holds no rows")
        return found

    def memory_needed(self) -> int:
        """The approximate number of bytes that all rows take; 0 if it is unknown."""
        if not self.path.is_file():  # standard input or a pipe can be read only once
            return 0
        text, times = beginning(self.path)
        lines = np.frombuffer(text[: text.rfind(b"\n") + 1], np.uint8)
        if not lines.shape[0]:
            return int(times * len(text))
        with thread_pool(None) as threads:
            block = parse_text(lines, Place(str(self.path)), np.dtype(np.float64), threads)
        return int(times * (12 * block.data.shape[0] + 16 * block.y.shape[0]))

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> Self:
        """The file with the number and numbering of features of the model."""
        zero_based = layout.zero_based if isinstance(layout, SvmlightLayout) else self.zero_based
        return replace(self, n_features=n_features, zero_based=zero_based)

    def to_cache(self, path: str | os.PathLike[str]) -> CacheFolder:
        """Write the rows to a cache, block by block."""
        smallest, largest = 1, -1
        with (
            reader_of(self.path) as reader,
            thread_pool(self.n_jobs) as threads,
            CacheWriter(path, sparse=True, dtype=self.dtype) as writer,
        ):
            for _, block in blocks_of(reader, str(self.path), BLOCK_BYTES, np.dtype(self.dtype), threads):
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
