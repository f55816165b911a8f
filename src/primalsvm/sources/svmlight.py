"""svmlight/LIBSVM text: lines `label [qid:q] index:value index:value … # comment`.

The text is mapped into memory (or decompressed into it) and cut at line ends into parts of `PART` bytes, which the
threads share. Each part is read twice: first to count its rows and entries, which is fast, then to parse it into its
slice of the arrays. Numbers are read exactly (`decimals`). Anything but empty lines and comments that cannot be parsed
raises an error that names file, line and column.
"""

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.compiled import exact_kernel
from primalsvm.data import ThreadPool, Vector, thread_pool
from primalsvm.sources.decimals import AMBIGUOUS, NO_NUMBER, SIGNIFICANT, decimal, eight_bytes, equal_bytes
from primalsvm.sources.texts import FormatError, TextReader, text_of

# Results of parsing a line.
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
LINE_END = ord("\n")  # for NumPy, which would compare as 64 bits otherwise
QID = tuple(np.uint64(ord(c)) for c in "qid:")
LARGEST_INDEX = 2**31 - 2  # so that the number of features also fits 32 bits
INDEX_DIGITS = np.uint64(18)  # that surely fit 64 bits
NO_QUERY = -1
PART = 1 << 24  # bytes of text that one call of a kernel takes
ROWS_AT_ONCE = 1000  # that are written
SHOWN = 40  # characters of a token that a message shows


class SvmlightRows(NamedTuple):
    """The contents of a file."""

    X: sp.csr_matrix
    y: Vector
    qid: Vector | None
    zero_based: bool


class TextBlock(NamedTuple):
    """The contents of a part of a file: rows in CSR format, with the indices of the text."""

    data: Vector
    indices: Vector
    indptr: Vector
    y: Vector
    qid: Vector | None
    smallest: int  # index
    largest: int  # −1 if there is none


class Place(NamedTuple):
    """The position of a part of a file."""

    name: str  # of the file
    lines: int = 0  # before the part
    rows: int = 0  # before the part


# ---- kernels ---------------------------------------------------------------------------------------------------------


@exact_kernel
def count(text, start, stop):  # type: ignore[no-untyped-def]  # compiled
    """Upper bounds on the numbers of rows and entries in text[start:stop]: those of line ends and colons."""
    lines = np.uint64(0)
    colons = np.uint64(0)
    whole = start + (stop - start) // 8 * 8
    for i in range(start, whole, 8):
        word = eight_bytes(text, i)
        lines += equal_bytes(word, np.uint64(0x0A0A0A0A0A0A0A0A))
        colons += equal_bytes(word, np.uint64(0x3A3A3A3A3A3A3A3A))
    for i in range(whole, stop):
        lines += np.uint64(text[i] == NEWLINE)
        colons += np.uint64(text[i] == COLON)
    return lines, colons


@exact_kernel
def is_space(c):  # type: ignore[no-untyped-def]  # compiled
    """Whether a byte separates words."""
    return c in (SPACE, TAB, RETURN)


@exact_kernel
def capped_index(text, i, stop):  # type: ignore[no-untyped-def]  # compiled
    """The number in text[i:stop], capped at LARGEST_INDEX + 1."""
    index = np.int64(0)
    for j in range(i, stop):
        index = min(index * np.int64(10) + np.int64(text[j] - ZERO), np.int64(LARGEST_INDEX + 1))
    return index


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

    summary = [rows, entries, smallest index, largest index, whether some row is unsorted, ambiguous numbers].
    `asked` holds for each ambiguous number its entry (−1 − row for a label), and the beginning and end of its text.
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
                    index = index * np.int64(10) + np.int64(text[i] - ZERO)
                    i += one
                if i - where > INDEX_DIGITS:  # it may have overflowed or begin with zeros
                    index = capped_index(text, where, i)
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
) -> SvmlightRows:
    """Read a file of svmlight/LIBSVM text, plain or compressed (.gz, .bz2, .xz, .zst).

    Parameters
    ----------
    path : the file
    n_features : the number of columns; None is that of the largest index
    zero_based : whether the first column has index 0; "auto" means yes if some index is 0
    dtype : float64 or float32
    n_jobs : number of threads; -1 is all cores

    Raises
    ------
    FormatError
        If the text cannot be parsed; the message names file, line and column.
    """
    check_reading(zero_based, dtype)
    path = Path(path)
    with text_of(path) as text, thread_pool(n_jobs) as threads:
        place = Place(str(path))
        return as_rows(parse_text(text, place, np.dtype(dtype), threads), place, n_features, zero_based)


def check_reading(zero_based: Any, dtype: Any) -> None:
    """Raise an error if the options are invalid."""
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(f"zero_based={zero_based!r}: choose True, False or 'auto'")
    try:
        known = np.dtype(dtype) in (np.float64, np.float32)
    except TypeError:
        known = False
    if not known:
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}")


def as_rows(block: TextBlock, place: Place, n_features: int | None, zero_based: bool | Literal["auto"]) -> SvmlightRows:
    """The rows with columns counted from 0; the indices of the block are changed in place."""
    base = 0 if zero_based is True or (zero_based == "auto" and block.smallest == 0) else 1
    if base == 1:
        if block.smallest == 0:
            row = place.rows + int(np.searchsorted(block.indptr, np.flatnonzero(block.indices == 0)[0], side="right"))
            raise FormatError(f"{place.name}: row {row} has the index 0, but zero_based=False")
        np.subtract(block.indices, 1, out=block.indices)
    d = max(block.largest + 1 - base, 0) if n_features is None else n_features
    if block.largest + 1 - base > d:
        raise FormatError(
            f"{place.name} has the index {block.largest}, but there are only n_features={n_features} features"
        )
    X: Any = sp.csr_matrix((block.data, block.indices, block.indptr), shape=(block.y.shape[0], d), copy=False)
    return SvmlightRows(X, block.y, block.qid, base == 0)


def blocks_of(
    reader: TextReader, name: str, n_bytes: int, dtype: np.dtype[Any], threads: ThreadPool
) -> Iterator[tuple[Place, TextBlock]]:
    """The rows of a text and their positions in order, about `n_bytes` of text at a time."""
    place = Place(name)
    left: list[bytes] = []  # of an incomplete line
    while True:
        more = reader.read(n_bytes)
        end = more.rfind(b"\n") + 1
        if more and not end:
            left.append(more)
            continue
        text = np.frombuffer(b"".join([*left, more[:end]]), np.uint8)
        left = [more[end:]]
        if text.shape[0]:
            block = parse_text(text, place, dtype, threads)
            yield place, block
            place = Place(name, place.lines + int(np.count_nonzero(text == LINE_END)), place.rows + block.y.shape[0])
        if not more:
            return


def parse_text(text: Vector, place: Place, dtype: np.dtype[Any], threads: ThreadPool) -> TextBlock:
    """Parse a buffer of text."""
    parts = line_parts(text, PART)
    bounds = np.array(threads.run(lambda a, b: count(text, a, b), parts), np.int64).reshape(-1, 2)
    bounds[-1:, 0] += 1  # the last line may have no end
    row_at, entry_at = (np.concatenate([[0], np.cumsum(bounds[:, k])]) for k in (0, 1))
    labels, queries, ends = np.empty(row_at[-1]), np.empty(row_at[-1], np.int64), np.empty(row_at[-1], np.int64)
    indices, values = np.empty(entry_at[-1], np.int32), np.empty(entry_at[-1], dtype)
    summaries = np.zeros((len(parts), 6), np.int64)

    def work(k: int) -> tuple[int, int]:
        start, stop = parts[k]
        rows, entries = slice(row_at[k], row_at[k + 1]), slice(entry_at[k], entry_at[k + 1])
        asked = np.empty(((stop - start) // SIGNIFICANT + 1, 3), np.int64)  # ambiguous numbers have more digits
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

    for status, where in threads.run(work, [(k,) for k in range(len(parts))]):
        if status != FINE:
            raise FormatError(complaint(text, place, where, SENTENCES[status]))
    m, nnz = (int(summaries[:, k].sum()) for k in (0, 1))
    for array in (labels, queries, ends):
        close_gaps(array, row_at, summaries[:, 0])
    for array in (indices, values):
        close_gaps(array, entry_at, summaries[:, 1])
    indptr: Any = np.zeros(m + 1, np.int32 if nnz < 2**31 else np.int64)
    starts = np.concatenate([[0], np.cumsum(summaries[:, 1])[:-1]])
    np.add(ends[:m], np.repeat(starts, summaries[:, 0]), out=indptr[1:], casting="unsafe")
    smallest, largest = (int(summaries[:, 2].min()), int(summaries[:, 3].max())) if nnz else (1, -1)
    values, indices = values[:nnz], indices[:nnz]
    if summaries[:, 4].any():
        values, indices = put_in_order(sp.csr_matrix((values, indices, indptr), shape=(m, largest + 1)), place)
    with_queries = queries[:m] != NO_QUERY
    if with_queries.any() and not with_queries.all():
        row = place.rows + int(np.argmin(with_queries)) + 1
        raise FormatError(f"{place.name}: row {row} has no qid, but others have")
    qid = queries[:m] if m and with_queries.all() else None
    return TextBlock(values, indices, indptr, labels[:m], qid, smallest, largest)


def line_parts(text: Vector, size: int) -> list[tuple[int, int]]:
    """Cut a text after line ends into parts of about `size` bytes."""
    parts, start, n = [], 0, text.shape[0]
    while start < n:
        stop, window = min(start + size, n), 1 << 10
        while stop < n and text[stop - 1] != LINE_END:
            found = np.flatnonzero(text[stop : stop + window] == LINE_END)
            stop = stop + int(found[0]) + 1 if found.size else min(stop + window, n)
            window *= 2
        parts.append((start, stop))
        start = stop
    return parts or [(0, 0)]


def close_gaps(array: Vector, at: Vector, filled: Vector) -> None:
    """Move the filled beginnings of the parts array[at[k]:at[k+1]] next to each other."""
    to = 0
    for k, n in enumerate(filled):
        if to != at[k]:
            array[to : to + n] = array[at[k] : at[k] + n]
        to += int(n)


def put_in_order(X: sp.csr_matrix, place: Place) -> tuple[Vector, Vector]:
    """Values and indices with the entries of each row sorted; a FormatError if a row has a feature twice."""
    X.has_sorted_indices = False
    X.sort_indices()
    twice = np.flatnonzero(np.diff(X.indices) == 0)
    rows = np.searchsorted(X.indptr, twice, side="right")
    within = twice[X.indptr[rows] > twice + 1] if twice.size else twice  # not from one row to the next
    if within.size:
        row = place.rows + int(np.searchsorted(X.indptr, within[0], side="right"))
        raise FormatError(f"{place.name}: row {row} has the feature {int(X.indices[within[0]])} twice")
    return X.data, X.indices.astype(np.int32, copy=False)


def complaint(text: Vector, place: Place, where: int, sentence: str) -> str:
    """A message with the line, the column and the invalid token."""
    before = text[:where]
    line = place.lines + 1 + int(np.count_nonzero(before == LINE_END))
    window = 1 << 16
    while window < where and not np.any(before[-window:] == LINE_END):
        window *= 2
    last = np.flatnonzero(before[-window:] == LINE_END)
    column = where - (max(where - window, 0) + int(last[-1]) if last.size else -1)
    begin = where
    while begin > max(0, where - SHOWN) and not _separates(int(text[begin - 1])):
        begin -= 1
    end = where
    while end < min(text.shape[0], where + SHOWN) and not _separates(int(text[end])):
        end += 1
    word = bytes(text[begin:end]).decode("utf-8", "backslashreplace")
    token = repr(word) if word else "the end of the line"
    return f"{place.name}, line {line}, column {column}: {sentence.format(token=token)}"


def _separates(c: int) -> bool:
    return chr(c) in " \t\r\n"


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_svmlight(
    path: str | os.PathLike[str], X: Any, y: npt.ArrayLike, qid: npt.ArrayLike | None = None, zero_based: bool = False
) -> None:
    """Write rows as svmlight/LIBSVM text, with enough digits to read the same bits back.

    Parameters
    ----------
    path : the file, which is compressed if its suffix is .gz, .bz2 or .xz
    X : array or sparse matrix
    y : labels
    qid : the query of each row
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
            values = X.data[begin:end].astype(str).tolist()  # the shortest text with the same bits
            words = [f"{j}:{v}" for j, v in zip(numbers, values, strict=True)]
            for row in range(first, last):
                a, b = pointers[row - first] - begin, pointers[row - first + 1] - begin
                head = [f"{labels[row]:.17g}"]
                if queries is not None:
                    head.append(f"qid:{queries[row]}")
                file.write(" ".join([*head, *words[a:b]]) + "\n")
