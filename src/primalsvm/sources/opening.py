"""`open`: where rows come from, by the look of a path.

A source is not read before it is used. `to_arrays` gives all of it: a SciPy matrix (or an array) and the labels; of a
cache, mapped into memory rather than read.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import scipy.sparse as sp

from primalsvm.rows import CSR, Vector
from primalsvm.sources.cache import CacheWriter, is_cache, open_cache
from primalsvm.sources.svmlight import Rows, read_svmlight


class Source(Protocol):
    """Rows with labels, somewhere."""

    def to_arrays(self) -> tuple[Any, Vector]:
        """All rows as a matrix, and their labels."""


@dataclass(frozen=True)
class SvmlightFile:
    """A file of svmlight/LIBSVM text; see `read_svmlight`."""

    path: Path
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dtype: Any = np.float64
    n_jobs: int | None = -1

    def to_arrays(self) -> tuple[sp.csr_matrix, Vector]:
        """All rows as a CSR matrix, and their labels."""
        found = self._read()
        return found.X, found.y

    def to_cache(self, path: str | os.PathLike[str]) -> "CacheFolder":
        """Write the rows into a cache."""
        found = self._read()
        with CacheWriter(path, found.X.shape[1], True, found.X.dtype, found.qid is not None) as writer:
            writer.append(found.X, found.y, found.qid)
        return CacheFolder(Path(path))

    def _read(self) -> Rows:
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        return read_svmlight(**options)


@dataclass(frozen=True)
class CacheFolder:
    """A cache; see `cache`."""

    path: Path

    def to_arrays(self) -> tuple[Any, Vector]:
        """All rows, mapped into memory, and their labels."""
        rows, y, _ = open_cache(self.path)
        if not isinstance(rows, CSR):
            return rows.values, y
        signed = rows.indices.view(np.int32), rows.indptr.view(np.int64)
        return sp.csr_matrix((rows.data, *signed), shape=(y.shape[0], rows.n_features), copy=False), y


def open(path: str | os.PathLike[str], **options: Any) -> SvmlightFile | CacheFolder:  # as primalsvm.open
    r"""The source at a path: a cache if it is a folder with a cache's header, else svmlight/LIBSVM text.

    Parameters
    ----------
    path : a file or a folder
    options : of `read_svmlight`: n_features, zero_based, dtype, n_jobs

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
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    if path.is_dir() or is_cache(path):
        if options:
            raise TypeError(f"a cache has no options, got {sorted(options)}")
        return CacheFolder(path)
    return SvmlightFile(path, **options)
