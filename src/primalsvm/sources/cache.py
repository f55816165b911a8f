"""The cache: rows in a folder of plain `.npy` files, mapped into memory instead of read, with a JSON header.

    header.json                           format, version, rows, features, entries, layout; size and CRC-32 of each file
    data.npy  indices.npy  indptr.npy     compressed sparse rows; or
    values.npy                            dense rows
    y.npy  [qid.npy]                      labels, queries

Writes are atomic: the files are written to a temporary folder beside it, which is renamed when it is complete. Opening
a cache checks the header, the sizes and the dtypes; `verify` also checks the checksums. Indices are checked when the
rows are used (`data.as_block`).
"""

import json
import os
import reprlib
import shutil
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from primalsvm.atomic import partial_path, sync_folder
from primalsvm.data import CSR, Block, Dense, Vector
from primalsvm.sources.layout import Layout, layout_to_dict

FORMAT, VERSION = "primalsvm cache", 1
HEADER = "header.json"
LARGEST_HEADER = 1 << 24  # bytes; a layout lists all categories
AT_ONCE = 1 << 24  # bytes that are checked at a time
VALUES = (np.float64, np.float32, np.uint8)  # dtypes that kernels read without conversion
LONGEST_REASON = 200  # characters of NumPy's message that are shown
LARGEST = {"rows": 2**62, "features": 2**31 - 1, "entries": 2**62}  # indices of features have 32 bits


class CacheError(ValueError):
    """A folder that is not a cache, or is incomplete or damaged."""


class Cached(NamedTuple):
    """The contents of a cache, mapped into memory."""

    block: Block
    y: Vector
    qid: Vector | None


class _Column:
    """A `.npy` file that is written row by row; its header is written again when its length is known."""

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self.path, self.dtype, self.width = path, np.dtype(dtype), width
        self.length = 0
        self.checksum = 0
        self.file = path.open("wb")
        self.header_bytes = self._write_header()

    def _write_header(self) -> int:
        shape = (self.length,) if self.width is None else (self.length, self.width)
        described = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": shape,
        }
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, described)
        return self.file.tell()

    def append(self, values: Any) -> None:
        array: Any = np.ascontiguousarray(values, self.dtype)
        self.checksum = zlib.crc32(memoryview(array).cast("B"), self.checksum) if array.size else self.checksum
        self.file.write(array.data)
        self.length += array.shape[0]

    def add(self, number: int) -> None:
        """Add a number to all values so far."""
        self._write_header()
        self.file.flush()
        values = np.lib.format.open_memmap(self.path, mode="r+")
        self.checksum = 0
        for first in range(0, self.length, AT_ONCE):
            part: Any = values[first : first + AT_ONCE]
            part += number
            self.checksum = zlib.crc32(memoryview(part).cast("B"), self.checksum)
        values.flush()
        self.file.seek(0, os.SEEK_END)

    def close(self) -> dict[str, Any]:
        if self._write_header() != self.header_bytes:  # NumPy leaves room for the length to grow
            raise CacheError(f"the header of {self.path.name} outgrew its place")
        self.file.flush()
        os.fsync(self.file.fileno())
        size = os.fstat(self.file.fileno()).st_size
        self.file.close()
        return {"bytes": size, "crc32": self.checksum}


class CacheWriter:
    """Writes a cache block by block; a context manager. An existing cache is replaced when the new one is complete.

    Parameters
    ----------
    path : the folder to create
    n_features : the number of columns; may be set later if the rows are sparse
    sparse : whether the rows are sparse
    dtype : of the values
    layout : of the rows; may be set later
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        n_features: int = 0,
        sparse: bool = True,
        dtype: Any = np.float64,
        layout: Layout | None = None,
    ) -> None:
        self.path, self.n_features, self.sparse, self.layout = Path(path), n_features, sparse, layout
        if self.path.exists() and not (self.path / HEADER).is_file():
            raise CacheError(f"{self.path} exists and is not a cache: it is left alone")
        self.folder = partial_path(self.path)
        self.folder.mkdir(parents=True)
        kinds: dict[str, tuple[Any, int | None]] = {"y": (np.float64, None)}
        if sparse:
            kinds |= {"data": (dtype, None), "indices": (np.int32, None), "indptr": (np.int64, None)}
        else:
            kinds |= {"values": (dtype, n_features)}
        self.columns = {name: _Column(self.folder / f"{name}.npy", *kind) for name, kind in kinds.items()}
        self.entries = 0
        if sparse:
            self.columns["indptr"].append(np.zeros(1, np.int64))

    def __enter__(self) -> Self:
        return self

    def append(self, X: Any, y: Any, qid: Any = None) -> None:
        """Append rows, labels and queries."""
        if self.sparse:
            X = sp.csr_matrix(X)
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            self.append_csr(X.data, X.indices, X.indptr, y, qid)
            return
        self.columns["values"].append(X)
        self.entries += int(np.size(X))
        self._append_labels(y, qid)

    def append_csr(self, data: Any, indices: Any, indptr: Any, y: Any, qid: Any = None) -> None:
        """Append rows given by the arrays of a CSR matrix, labels and queries."""
        self.columns["data"].append(data)
        self.columns["indices"].append(indices)
        self.columns["indptr"].append(indptr[1:].astype(np.int64) + self.entries)
        self.entries += int(indptr[-1])
        self._append_labels(y, qid)

    def _append_labels(self, y: Any, qid: Any) -> None:
        if qid is not None:
            if "qid" not in self.columns:
                self.columns["qid"] = _Column(self.folder / "qid.npy", np.int64)
            self.columns["qid"].append(qid)
        self.columns["y"].append(y)

    def shift_indices(self, by: int) -> None:
        """Add a number to all indices so far."""
        if by:
            self.columns["indices"].add(by)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            for column in self.columns.values():
                column.file.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        if "qid" in self.columns and self.columns["qid"].length != self.columns["y"].length:
            raise CacheError(f"{self.path}: some rows have a qid, and some have none")
        files = {f"{name}.npy": column.close() for name, column in self.columns.items()}
        header = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.columns["y"].length,
            "features": self.n_features,
            "entries": self.entries,
            "sparse": self.sparse,
            "layout": layout_to_dict(self.layout),
            "files": files,
        }
        with (self.folder / HEADER).open("w", encoding="utf-8") as file:
            json.dump(header, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        old = partial_path(self.path)
        if self.path.exists():
            self.path.rename(old)
        self.folder.rename(self.path)
        shutil.rmtree(old, ignore_errors=True)
        sync_folder(self.path.parent)


def read_header(path: Path) -> dict[str, Any]:
    """The header, after checking it and the sizes of the files."""
    file = path / HEADER
    if not file.is_file():
        raise CacheError(f"{path} is not a cache: it has no {HEADER}")
    if file.stat().st_size > LARGEST_HEADER:
        raise CacheError(f"{file} is too large to be the header of a cache")
    try:
        header = json.loads(file.read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or too many digits; nested too deeply
        raise CacheError(f"{file} is damaged: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CacheError(f"{file} is not the header of a {FORMAT}")
    version = header.get("version")
    if version != VERSION:
        shown = reprlib.repr(version)
        raise CacheError(f"{path} has version {shown} of the cache format; this library reads version {VERSION}")
    wanted = {"rows": int, "features": int, "entries": int, "sparse": bool, "files": dict}
    for name, kind in wanted.items():
        found = header.get(name)
        in_range = kind is not int or (isinstance(found, int) and 0 <= found <= LARGEST[name])
        if type(found) is not kind or not in_range:
            raise CacheError(f"{file} is damaged: it says nothing sensible of {name!r}")
    columns = {"y.npy", *(("data.npy", "indices.npy", "indptr.npy") if header["sparse"] else ("values.npy",))}
    if not columns <= set(header["files"]) <= columns | {"qid.npy"}:
        raise CacheError(f"{file} is damaged: it lists other files than a cache has")
    for name, facts in header["files"].items():
        column = path / name
        if not column.is_file():
            raise CacheError(f"{path} is damaged: {name} is missing")
        if not isinstance(facts, dict) or column.stat().st_size != facts.get("bytes"):
            raise CacheError(f"{path} is damaged: {name} is {column.stat().st_size} bytes long, not as its header says")
    return header


def open_cache(path: str | os.PathLike[str]) -> Cached:
    """Map a cache into memory; only the header is read.

    Raises
    ------
    CacheError
        If it is not a cache, has another version, or is incomplete.
    """
    path = Path(path)
    header = read_header(path)
    columns = _columns(path, header)
    y, qid = columns["y.npy"], columns.get("qid.npy")
    if not header["sparse"]:
        return Cached(Dense(columns["values.npy"]), y, qid)
    indices, indptr = columns["indices.npy"].view(np.uint32), columns["indptr.npy"].view(np.uint64)
    if indptr[0] != 0 or indptr[-1] != header["entries"]:
        raise CacheError(f"{path / 'indptr.npy'} is damaged: it does not lead from 0 to {header['entries']} entries")
    return Cached(CSR(columns["data.npy"], indices, indptr, header["features"]), y, qid)


def _columns(path: Path, header: dict[str, Any]) -> dict[str, Vector]:
    """The files of a cache, mapped into memory, after checking their shapes and dtypes."""
    m, d, entries = header["rows"], header["features"], header["entries"]
    expected: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
        "y.npy": ((m,), (np.float64,)),
        "qid.npy": ((m,), (np.int64,)),
        "values.npy": ((m, d), VALUES),
        "data.npy": ((entries,), VALUES),
        "indices.npy": ((entries,), (np.int32,)),
        "indptr.npy": ((m + 1,), (np.int64,)),
    }
    found = {}
    for name in header["files"]:
        shape, dtypes = expected[name]
        try:
            column = np.lib.format.open_memmap(path / name, mode="r")
        except Exception as error:  # NumPy evaluates a literal in the file, which may raise anything
            raise CacheError(f"{path / name} is damaged: {_line(error)}") from None
        if column.shape != shape or column.dtype not in dtypes or not column.flags.c_contiguous:
            kind = f"{column.shape} {column.dtype}"
            raise CacheError(f"{path / name} is damaged: it holds {reprlib.repr(kind)}, expected {shape}")
        found[name] = np.asarray(column)
    return found


def _line(error: Exception) -> str:
    """The beginning of the message of an error, in one line."""
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__


def verify(path: str | os.PathLike[str]) -> None:
    """Read every file and compare its checksum with that in the header."""
    path = Path(path)
    header = read_header(path)
    for name, column in _columns(path, header).items():
        values: Any = column.reshape(-1).view(np.uint8)
        checksum = 0
        for first in range(0, values.shape[0], AT_ONCE):
            checksum = zlib.crc32(memoryview(values[first : first + AT_ONCE]), checksum)
        if checksum != header["files"][name].get("crc32"):
            raise CacheError(f"{path / name} is damaged: its checksum is not what the header says")
