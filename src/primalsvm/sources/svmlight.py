"""svmlight/LIBSVM text: `label [qid:q] index:value index:value … # comment`, a line a row.

The text is mapped into memory (or decompressed into it) and cut at line ends into as many parts as there are threads.
Each part is gone through twice: once to count what it may hold, which is fast, and once to parse it into its place in
the arrays. Numbers are read exactly (`decimals`). Nothing is skipped silently: empty lines and comments apart, what is
not understood is an error that names file, line and column.
"""

import bz2
import gzip
import lzma
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.compiled import exact_kernel
from primalsvm.rows import Vector
from primalsvm.sources.decimals import AMBIGUOUS, NO_NUMBER, SIGNIFICANT, decimal
from primalsvm.team import Team, team_for

# What a line may be refused for.
(
    FINE,
    NOT_A_LABEL,
    NOT_A_QUERY,
    NOT_AN_INDEX,
    INDEX_TOO_LARGE,
    NO_COLON,
    NOT_A_VALUE,
    NOT_FINITE,
    STRAY,
) = range(9)

SENTENCES = {
    NOT_A_LABEL: "expected a label, a number, but found {token}",
    NOT_A_QUERY: "expected a whole number below 10^18 after 'qid:', but found {token}",
    NOT_AN_INDEX: "expected index:value, but found {token}",
    INDEX_TOO_LARGE: "the index in {token} is larger than 2^31 - 2",
    NO_COLON: "expected ':' after the index in {token}",
    NOT_A_VALUE: "expected a number after ':' in {token}",
    NOT_FINITE: "{token} is not a finite number",
    STRAY: "expected a space or the end of the line in {token}",
}

NEWLINE, RETURN, SPACE, TAB, COLON, HASH, ZERO = (np.uint64(ord(c)) for c in "\n\r \t:#0")
QID = tuple(np.uint64(ord(c)) for c in "qid:")
LARGEST_INDEX = 2**31 - 2  # so that the number of features, too, fits 32 bits
NO_QUERY = -1
PART = 1 << 24  # bytes of text that one call of a kernel takes
ROWS_AT_ONCE = 1000  # that are written
SHOWN = 40  # characters of a token that an error shows


class FormatError(ValueError):
    """A file that is not what it should be: the sentence names file, line and column."""


class Rows(NamedTuple):
    """What a file holds."""

    X: sp.csr_matrix
    y: Vector
    qid: Vector | None


# ---- kernels ---------------------------------------------------------------------------------------------------------


@exact_kernel
def count(text, start, stop):  # type: ignore[no-untyped-def]  # compiled
    """How many rows and entries text[start:stop] holds at most: line ends and colons."""
    lines = np.int64(0)
    colons = np.int64(0)
    for i in range(start, stop):
        lines += text[i] == NEWLINE
        colons += text[i] == COLON
    return lines, colons


@exact_kernel
def is_space(c):  # type: ignore[no-untyped-def]  # compiled
    """Whether a byte separates words."""
    return c in (SPACE, TAB, RETURN)


@exact_kernel
def query_at(text, i, stop):  # type: ignore[no-untyped-def]  # compiled
    """Parse `qid:123` at i: (status, query, where it ends)."""
    for letter in QID:
        if i >= stop or text[i] != letter:
            return NOT_AN_INDEX, np.int64(NO_QUERY), i
        i += np.uint64(1)
    query = np.int64(0)
    digits = 0
    while i < stop and text[i] - ZERO <= np.uint64(9) and digits < 19:
        query = query * 10 + np.int64(text[i] - ZERO)
        digits += 1
        i += np.uint64(1)
    return (FINE if 0 < digits < 19 else NOT_A_QUERY), query, i


@exact_kernel
def parse(text, start, stop, summary, asked, labels, queries, ends, indices, values):  # type: ignore[no-untyped-def]  # compiled
    """Parse the lines in text[start:stop]. Returns (status, where).

    summary = [rows, entries, smallest index, largest index, whether some row is not in order, numbers to be asked for].
    `asked` holds for each of these the entry (of a label: −1 − row), and where its text begins and ends.
    """
    one = np.uint64(1)
    i, stop = np.uint64(start), np.uint64(stop)
    row = entry = questions = unordered = 0
    smallest, largest = np.int64(LARGEST_INDEX), np.int64(-1)
    status, where = FINE, i
    while i < stop and status == FINE:
        while i < stop and is_space(text[i]):
            i += one
        if i < stop and text[i] != NEWLINE and text[i] != HASH:
            where = i
            found, label, i = decimal(text, i, stop)
            if found == NO_NUMBER:
                status = NOT_A_LABEL
                break
            if found == AMBIGUOUS:
                asked[questions, 0], asked[questions, 1], asked[questions, 2] = -1 - row, where, i
                questions += 1
            if not np.isfinite(label):
                status = NOT_FINITE
                break
            query, last, first = np.int64(NO_QUERY), np.int64(-1), entry
            while True:
                word = i
                while i < stop and is_space(text[i]):
                    i += one
                if i >= stop or text[i] == NEWLINE or text[i] == HASH:
                    break
                where = i
                if word == i:
                    status = STRAY
                    break
                if text[i] == QID[0] and entry == first and query == NO_QUERY:
                    status, query, i = query_at(text, i, stop)
                    if status != FINE:
                        break
                    continue
                index = np.int64(0)
                while i < stop and text[i] - ZERO <= np.uint64(9):
                    index = min(index * np.int64(10) + np.int64(text[i] - ZERO), np.int64(LARGEST_INDEX + 1))
                    i += one
                if i == where:
                    status = NOT_AN_INDEX
                elif i >= stop or text[i] != COLON:
                    status = NO_COLON
                elif index > LARGEST_INDEX:
                    status = INDEX_TOO_LARGE
                if status != FINE:
                    break
                at = i + one
                found, value, i = decimal(text, at, stop)
                if found == NO_NUMBER:
                    status = NOT_A_VALUE
                    break
                if found == AMBIGUOUS:
                    asked[questions, 0], asked[questions, 1], asked[questions, 2] = entry, at, i
                    questions += 1
                if not np.isfinite(value):
                    status = NOT_FINITE
                    break
                unordered = 1 if index <= last else unordered
                smallest, largest, last = min(smallest, index), max(largest, index), index
                indices[entry] = index
                values[entry] = value
                entry += 1
            if status != FINE:
                break
            labels[row], queries[row], ends[row] = label, query, entry
            row += 1
        while i < stop and text[i] != NEWLINE:  # a comment
            i += one
        i += one
    summary[0], summary[1], summary[2], summary[3], summary[4] = row, entry, smallest, largest, unordered
    summary[5] = questions
    return status, where


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: npt.DTypeLike = np.float64,
    n_jobs: int | None = -1,
) -> Rows:
    """Read a file of svmlight/LIBSVM text, plain or compressed (.gz, .bz2, .xz, .zst).

    Parameters
    ----------
    path : the file
    n_features : the number of columns; None: as many as the largest index says
    zero_based : whether the first column has index 0; "auto": if some index is 0
    dtype : float64 or float32
    n_jobs : threads; -1 is all cores

    Raises
    ------
    FormatError
        If the text is not understood: the sentence names file, line and column.
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based={zero_based!r}: choose True, False or 'auto'")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")
    path = Path(path)
    with text_of(path) as text, team_for(n_jobs) as team:
        return parse_text(text, str(path), n_features, zero_based, np.dtype(dtype), team)


def parse_text(
    text: Vector,
    name: str,
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    dtype: np.dtype[Any],
    team: Team,
) -> Rows:
    """The rows of a buffer of bytes; `name` is what errors call it."""
    parts = line_parts(text, PART)
    bounds = np.array(team.run(lambda a, b: count(text, a, b), parts), np.int64).reshape(-1, 2)
    bounds[-1:, 0] += 1  # the last line may have no end
    row_at, entry_at = (np.concatenate([[0], np.cumsum(bounds[:, k])]) for k in (0, 1))
    labels, queries, ends = np.empty(row_at[-1]), np.empty(row_at[-1], np.int64), np.empty(row_at[-1], np.int64)
    indices, values = np.empty(entry_at[-1], np.int32), np.empty(entry_at[-1], dtype)
    summaries = np.zeros((len(parts), 6), np.int64)

    def work(k: int) -> tuple[int, int]:
        start, stop = parts[k]
        rows, entries = slice(row_at[k], row_at[k + 1]), slice(entry_at[k], entry_at[k + 1])
        asked = np.empty(((stop - start) // SIGNIFICANT + 1, 3), np.int64)  # each has more than so many digits
        status, where = parse(
            text, start, stop, summaries[k], asked, labels[rows], queries[rows], ends[rows],
            indices[entries], values[entries],
        )  # fmt: skip
        for place, begin, end in asked[: summaries[k, 5]]:
            exact = float(bytes(text[begin:end]))
            if not np.isfinite(exact):
                return NOT_FINITE, int(begin)
            if place < 0:
                labels[rows][-1 - place] = exact
            else:
                values[entries][place] = exact
        return status, int(where)

    for status, where in team.run(work, [(k,) for k in range(len(parts))]):
        if status != FINE:
            raise FormatError(complaint(text, name, where, SENTENCES[status]))
    m, nnz = (int(summaries[:, k].sum()) for k in (0, 1))
    for array in (labels, queries, ends):
        close_gaps(array, row_at, summaries[:, 0])
    for array in (indices, values):
        close_gaps(array, entry_at, summaries[:, 1])
    indptr: Any = np.zeros(m + 1, np.int32 if nnz < 2**31 else np.int64)
    starts = np.concatenate([[0], np.cumsum(summaries[:, 1])[:-1]])
    np.add(ends[:m], np.repeat(starts, summaries[:, 0]), out=indptr[1:], casting="unsafe")
    smallest, largest = int(summaries[:, 2].min()), int(summaries[:, 3].max())
    base = 0 if zero_based is True or (zero_based == "auto" and smallest == 0) else 1
    indices = indices[:nnz]
    if base == 1:
        if nnz and smallest == 0:
            row = int(np.searchsorted(indptr, np.flatnonzero(indices == 0)[0], side="right"))
            raise FormatError(f"{name}: row {row} has the index 0, but zero_based=False")
        indices -= 1
    d = max(largest + 1 - base, 0) if n_features is None else n_features
    if largest + 1 - base > d:
        raise FormatError(f"{name} has the index {largest}, but there are only n_features={n_features} features")
    X: Any = sp.csr_matrix((values[:nnz], indices, indptr), shape=(m, d), copy=False)
    if summaries[:, 4].any():
        put_in_order(X, name, base)
    with_queries = queries[:m] != NO_QUERY
    if with_queries.any() and not with_queries.all():
        raise FormatError(f"{name}: row {int(np.argmin(with_queries)) + 1} has no qid, but others have")
    return Rows(X, labels[:m], queries[:m] if m and with_queries.all() else None)


def line_parts(text: Vector, size: int) -> list[tuple[int, int]]:
    """Cut a text after line ends into parts of about this many bytes."""
    parts, start = [], 0
    while start < text.shape[0]:
        stop = min(start + size, text.shape[0])
        while stop < text.shape[0] and text[stop - 1] != NEWLINE:
            found = np.flatnonzero(text[stop : stop + size] == NEWLINE)
            stop = stop + int(found[0]) + 1 if found.size else min(stop + size, text.shape[0])
        parts.append((start, stop))
        start = stop
    return parts or [(0, 0)]


def close_gaps(array: Vector, at: Vector, filled: Vector) -> None:
    """Move the filled beginnings of the parts array[at[k]:at[k+1]] together."""
    to = 0
    for k, n in enumerate(filled):
        if to != at[k]:
            array[to : to + n] = array[at[k] : at[k] + n]
        to += int(n)


def put_in_order(X: sp.csr_matrix, name: str, base: int) -> None:
    """Sort the entries of each row; a feature that a row has twice is an error."""
    X.has_sorted_indices = False
    X.sort_indices()
    twice = np.flatnonzero(np.diff(X.indices) == 0)
    rows = np.searchsorted(X.indptr, twice, side="right")
    within = twice[X.indptr[rows] > twice + 1] if twice.size else twice  # not from one row to the next
    if within.size:
        row = int(np.searchsorted(X.indptr, within[0], side="right"))
        raise FormatError(f"{name}: row {row} has the feature {int(X.indices[within[0]]) + base} twice")


def complaint(text: Vector, name: str, where: int, sentence: str) -> str:
    """The sentence, with the line, the column and the word at fault."""
    before = text[:where]
    line = 1 + int(np.count_nonzero(before == NEWLINE))
    last = np.flatnonzero(before[-(1 << 20) :] == NEWLINE)
    column = where - (len(before) - min(len(before), 1 << 20) + int(last[-1]) if last.size else -1)
    begin = where
    while begin > max(0, where - SHOWN) and not _separates(int(text[begin - 1])):
        begin -= 1
    end = where
    while end < min(text.shape[0], where + SHOWN) and not _separates(int(text[end])):
        end += 1
    word = bytes(text[begin:end]).decode("utf-8", "backslashreplace")
    token = repr(word) if word else "the end of the line"
    return f"{name}, line {line}, column {column}: {sentence.format(token=token)}"


def _separates(c: int) -> bool:
    return chr(c) in " \t\r\n"


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_svmlight(
    path: str | os.PathLike[str], X: Any, y: npt.ArrayLike, qid: npt.ArrayLike | None = None, zero_based: bool = False
) -> None:
    """Write rows as svmlight/LIBSVM text, each number with as many digits as it takes to read the same bits back.

    Parameters
    ----------
    path : the file; a suffix .gz, .bz2 or .xz compresses it
    X : array or sparse matrix
    y : labels
    qid : queries, one a row
    zero_based : whether the first column has index 0
    """
    path = Path(path)
    X = sp.csr_matrix(X)
    labels = np.asarray(y, np.float64)
    if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
        raise ValueError("NaN and infinity cannot be written as svmlight text")
    queries = None if qid is None else np.asarray(qid)
    if labels.shape != (X.shape[0],) or (queries is not None and queries.shape != labels.shape):
        raise ValueError(f"X has {X.shape[0]} rows, but y (or qid) is not as long")
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(path.suffix, open)
    base = 0 if zero_based else 1
    with opener(path, "wt", encoding="ascii", newline="\n") as file:
        for first in range(0, X.shape[0], ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, X.shape[0])
            pointers = X.indptr[first : last + 1].tolist()
            begin, end = pointers[0], pointers[-1]
            numbers = (X.indices[begin:end] + base).tolist()
            values = X.data[begin:end].astype(str).tolist()  # the shortest text that reads back to the same bits
            words = [f"{j}:{v}" for j, v in zip(numbers, values, strict=True)]
            for row in range(first, last):
                a, b = pointers[row - first] - begin, pointers[row - first + 1] - begin
                head = [f"{labels[row]:.17g}"]
                if queries is not None:
                    head.append(f"qid:{queries[row]}")
                file.write(" ".join([*head, *words[a:b]]) + "\n")


# ---- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def text_of(path: Path) -> Iterator[Vector]:
    """The bytes of a file: mapped into memory, or decompressed into it."""
    with path.open("rb") as file:
        opener = decompressor(path)
        if opener is not None:
            yield np.frombuffer(decompressed(path, file, opener), np.uint8)
            return
        if not os.fstat(file.fileno()).st_size:
            yield np.zeros(0, np.uint8)
            return
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # a pipe, or a file system that cannot
            yield np.frombuffer(file.read(), np.uint8)
            return
        yield np.frombuffer(mapped, np.uint8)


def decompressed(path: Path, file: Any, opener: Any) -> bytes:
    """All of a compressed file."""
    try:
        with opener(file) as plain:
            content: bytes = plain.read()
            return content
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # each of the libraries has errors of its own
        raise FormatError(f"{path} is damaged, or not compressed as its name says: {error}") from None


def decompressor(path: Path) -> Any:
    """How to read a compressed file, by its suffix; None: as it is."""
    if path.suffix == ".gz":
        return lambda file: gzip.GzipFile(fileobj=file)
    if path.suffix == ".zst":
        return _zstd_reader
    return {".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}.get(path.suffix)


def _zstd_reader(file: Any) -> Any:
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]  # optional
    except ImportError:
        raise ImportError("reading .zst files needs the package zstandard: pip install 'primalsvm[zstd]'") from None
    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
