"""NumPy and SciPy files as sources of rows: a matrix with a column of labels (.npy), or a matrix and labels (.npz)."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.sources.source import Source
from primalsvm.sources.texts import FormatError

SPARSE_PARTS = {"data", "indices", "indptr", "shape"}  # as scipy.sparse.save_npz calls them
UNREADABLE = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True)
class ArrayFile(Source):
    """A `.npy` file with a matrix, one column of which is the target, or an `.npz` file with a matrix and labels `y`.

    In an `.npz` file the matrix is an array `X`, or the arrays of a CSR matrix that `scipy.sparse.save_npz` writes.
    Nothing is unpickled.

    Parameters
    ----------
    path : the file
    target : for a `.npy` file, the index of the column of labels, which may be negative
    labelled : if False, all columns of a `.npy` file are features
    """

    path: Path
    target: int | None = None
    labelled: bool = True

    kind = "an array file"
    needs_file = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if self.target is not None and (isinstance(self.target, bool) or not isinstance(self.target, int)):
            raise TypeError(f"target must be the number of a column, got {self.target!r}")

    def to_arrays(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """All rows as a C-contiguous array or a CSR matrix, and their labels."""
        if self.path.suffix == ".npz":
            return self._matrix_and_labels()
        return self._split(self._table(), 0)

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """Whether the suffix is that of a NumPy file."""
        return path.suffix in (".npy", ".npz")

    def unlabelled(self) -> Self:
        """The file, whose columns are all features if no target is given."""
        return replace(self, labelled=False) if self.target is None else self

    def memory_needed(self) -> int:
        """The size of the file, which compressed rows exceed."""
        return self.path.stat().st_size

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, npt.NDArray[Any] | None]]:
        """Rows and labels in order, about `n_bytes` at a time.

        A `.npy` file is mapped into memory; an `.npz` file is an archive and read as a whole.
        """
        if self.path.suffix == ".npz":
            X: Any
            X, y = self._matrix_and_labels()
            row_bytes = (X.nbytes if isinstance(X, np.ndarray) else 12 * X.nnz) // X.shape[0] + y.itemsize
            at_once = max(1, int(n_bytes) // row_bytes)
            for first in range(0, X.shape[0], at_once):
                yield X[first : first + at_once], y[first : first + at_once]
            return
        table = self._table()
        at_once = max(1, int(n_bytes) // (table.itemsize * table.shape[1]))
        for first in range(0, table.shape[0], at_once):
            yield self._split(table[first : first + at_once], first)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        """The open file; NumPy's errors are raised as FormatError."""
        with self.path.open("rb") as file:
            try:
                yield file
            except FormatError:
                raise
            except UNREADABLE as error:
                raise FormatError(f"{self.path} cannot be read as a NumPy file: {error}") from None

    def _table(self) -> npt.NDArray[Any]:
        """The matrix of a `.npy` file including the target, mapped into memory."""
        with self._open():
            table: npt.NDArray[Any] = np.lib.format.open_memmap(self.path, mode="r")
        self._check_matrix(table)
        columns = table.shape[1]
        if self.target is None and not self.labelled:
            return table
        if self.target is None:
            raise FormatError(f"say which column is the target: {self.path} has the columns 0 to {columns - 1}")
        if not -columns <= self.target < columns:
            raise FormatError(f"{self.path} has no column {self.target} for the target; it has 0 to {columns - 1}")
        if columns == 1:
            raise FormatError(f"{self.path} has no features: there is no column beside the target")
        return table

    def _split(self, table: npt.NDArray[Any], before: int) -> tuple[Any, npt.NDArray[Any] | None]:
        self._check_finite(table, before)
        if self.target is None:
            return np.ascontiguousarray(table), None
        return np.ascontiguousarray(np.delete(table, self.target, axis=1)), np.array(table[:, self.target])

    def _matrix_and_labels(self) -> tuple[Any, npt.NDArray[Any]]:
        if self.target is not None:
            raise FormatError(f"the labels of {self.path} are its array 'y': a target must not be given")
        with self._open() as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise FormatError(f"{self.path} is a single array: call it .npy")
            names = set(archive.files)
            if "y" not in names or not ("X" in names or names >= SPARSE_PARTS):
                raise FormatError(
                    f"{self.path} must hold the arrays 'X' and 'y', or 'y' and a CSR matrix as SciPy writes it (data, "
                    f"indices, indptr, shape); it holds {', '.join(sorted(names)[:10]) or 'nothing'}"
                )
            arrays = {name: archive[name] for name in names & {"X", "y", "format", *SPARSE_PARTS}}
            X = arrays["X"] if "X" in names else _csr(arrays)
        y = arrays["y"]
        self._check_matrix(X)
        if y.shape != (X.shape[0],) or y.dtype.kind not in "biufU":
            raise FormatError(f"{self.path}: y must hold {X.shape[0]} labels, one a row; it is {y.dtype} of {y.shape}")
        self._check_finite(X, 0)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise FormatError(f"{self.path}, row {int(np.argmin(np.isfinite(y))) + 1}: y is missing or infinite")
        return X if sp.issparse(X) else np.ascontiguousarray(X), y

    def _check_matrix(self, matrix: Any) -> None:
        if len(matrix.shape) != 2 or matrix.dtype.kind not in "biuf":
            raise FormatError(f"{self.path} must hold a matrix of numbers; it is {matrix.dtype} of {matrix.shape}")
        if 0 in matrix.shape:
            raise FormatError(f"{self.path} is empty: {matrix.shape[0]} rows and {matrix.shape[1]} columns")

    def _check_finite(self, matrix: Any, before: int) -> None:
        values = matrix.data if sp.issparse(matrix) else matrix  # type: ignore[attr-defined]
        fine = np.isfinite(values)
        if fine.all():
            return
        at = np.unravel_index(int(np.argmin(fine)), fine.shape)
        if values is not matrix:
            at = np.searchsorted(matrix.indptr, at[0], "right") - 1, matrix.indices[at[0]]
        row, column = (int(place) for place in at)
        raise FormatError(f"{self.path}, row {before + row + 1}, column {column}: the value is missing or infinite")


def _csr(arrays: dict[str, npt.NDArray[Any]]) -> sp.csr_matrix:
    """The matrix of the arrays that SciPy writes; a ValueError if they are invalid."""
    kind = arrays["format"].item() if "format" in arrays else b"csr"
    if kind not in (b"csr", "csr"):
        raise ValueError(f"the matrix is stored as {kind!r}, not as 'csr'")
    if arrays["indices"].dtype.kind not in "iu" or arrays["indptr"].dtype.kind not in "iu":
        raise ValueError("its indices are no whole numbers")
    if arrays["data"].dtype.kind not in "biuf":
        raise ValueError(f"its values are no numbers but {arrays['data'].dtype}")
    m, d = (int(size) for size in arrays["shape"])
    X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(m, d))
    X.check_format(full_check=True)
    return X
