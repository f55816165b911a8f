"""Tables as sources of rows: numbers are features, and so is each category of a text column (see `layout`).

No value is imputed or skipped: values that cannot be used raise an error that names the file, the column and the row.
Rows are counted from 1, without the header.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from primalsvm.data import Vector
from primalsvm.sources.batches import FORMATS, batches_of, columns_of, format_of, is_text, plain_suffix, rows_about
from primalsvm.sources.layout import LARGEST_WHOLE, MANY, Layout, TableLayout, TargetKind
from primalsvm.sources.source import Source
from primalsvm.sources.texts import FormatError

SHOWN = 10  # names or values that a message lists
AT_ONCE = 1 << 24  # bytes of the blocks that `to_arrays` joins
TRUTHS = {"true", "false", "1", "0"}


@dataclass(frozen=True)
class TableFile(Source):
    """A table in a file: CSV (.csv, .tsv, also .gz, .bz2, .xz, .zst), Parquet (.parquet), Arrow (.arrow, .feather).

    CSV text begins with a line that names the columns. Blanks around names and values are ignored. A column is numeric
    if all values are numbers, or all are true or false. Missing values are empty or spelled as in Arrow and pandas (NA,
    NaN, null, …).

    Parameters
    ----------
    path : the file
    target : the column of labels; None if a layout is given
    layout : which columns become which features. None uses all columns, and reads the file once to find the layout. A
        given layout is applied to the columns of the same names in any order: others are ignored, a category that is
        not in the layout gives zeros, and y is None if there is no target
    drop : columns to leave out; a dropped target of a layout makes a table without labels
    delimiter : between the values of CSV text. None is a tab in .tsv files, else a comma. With a delimiter, a file of
        any suffix is CSV text
    """

    path: Path
    target: str | None = None
    layout: TableLayout | None = None
    drop: tuple[str, ...] = ()
    delimiter: str | None = None

    kind = "a table"
    needs_file = True

    def __post_init__(self) -> None:
        if isinstance(self.drop, str):
            raise TypeError(f"drop must be a tuple of columns, got {self.drop!r}: write drop=({self.drop!r},)")
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "drop", tuple(self.drop))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one character, got {self.delimiter!r}")
        if self.layout is not None and self.target not in (None, self.layout.target):
            raise ValueError(f"the target is {self.target!r}, but the layout says {self.layout.target!r}")

    @classmethod
    def matches(cls, path: Path, options: Mapping[str, Any]) -> bool:
        """Whether the suffix is that of a table, or a delimiter is given."""
        return plain_suffix(path) in FORMATS or options.get("delimiter") is not None

    def for_model(self, layout: Layout | None, n_features: int, labelled: bool = True) -> Self:
        """The table with the columns and categories of the model."""
        if self.layout is not None:
            return self
        if not isinstance(layout, TableLayout):
            raise ValueError(f"{self.path} is a table, but the model was not made from one")
        drop = self.drop if labelled else (*self.drop, layout.target)
        return replace(self, layout=layout, target=None, drop=drop)

    @cached_property
    def layout_used(self) -> TableLayout:
        """The given layout, or the one found in the file."""
        return self.layout if self.layout is not None else self._find_layout()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of each feature: a column, or "column=category"."""
        return self.layout_used.feature_names

    def to_arrays(self) -> tuple[Any, npt.NDArray[Any] | None]:
        """All rows as a matrix (dense or CSR, as the layout says), and their labels."""
        return _join(list(self.blocks(AT_ONCE)))

    def blocks(self, n_bytes: int) -> Iterator[tuple[Any, npt.NDArray[Any] | None]]:
        """Rows and labels in the order of the file, about `n_bytes` at a time."""
        layout, columns = self.layout_used, columns_of(self.path, self.delimiter)
        labelled = layout.target in columns and layout.target not in self.drop
        names = [*layout.columns, *([layout.target] if labelled else [])]
        self._check_columns(names, columns)
        at_once = max(1, int(n_bytes) // layout.row_bytes)
        parts: list[tuple[Any, npt.NDArray[Any] | None]] = []
        held = seen = 0
        for batch in batches_of(self.path, names, self.delimiter):
            start = 0
            while start < batch.num_rows:
                piece = batch.slice(start, at_once - held)
                position = Position(self.path, seen)
                parts.append(
                    (_features(piece, layout, position), _labels(piece, layout, position) if labelled else None)
                )
                start, held, seen = start + piece.num_rows, held + piece.num_rows, seen + piece.num_rows
                if held == at_once:
                    yield _join(parts)
                    parts, held = [], 0
        if parts:
            yield _join(parts)
        if not seen:
            raise FormatError(f"{self.path} is a table without rows")

    def memory_needed(self) -> int:
        """The approximate number of bytes that all rows take."""
        return rows_about(self.path, self.delimiter) * self.layout_used.row_bytes

    def summary(self) -> dict[str, Any]:
        """The numbers of rows, features, entries and labels; without a target, the columns and their types."""
        if self.target is not None or self.layout is not None:
            return super().summary()
        columns = columns_of(self.path, self.delimiter)
        types = {name: "text" if "string" in str(kind) else str(kind) for name, kind in columns.items()}
        return {"rows_about": rows_about(self.path, self.delimiter), "columns": types}

    def _find_layout(self) -> TableLayout:
        columns = columns_of(self.path, self.delimiter)
        if self.target is None:
            raise FormatError(f"say which column is the target: {self.path} has {_list_names(list(columns))}")
        if self.target not in columns:
            raise FormatError(
                f"{self.path} has no column {self.target!r} for the target; it has {_list_names(list(columns))}"
            )
        for name in self.drop:
            if name not in columns:
                raise FormatError(f"{self.path} has no column {name!r} to drop; it has {_list_names(list(columns))}")
        if self.target in self.drop:
            raise FormatError(f"the column {self.target!r} cannot be the target and be dropped")
        names = [name for name in columns if name not in self.drop]
        if len(names) == 1:
            raise FormatError(f"{self.path} has no features: there is no column beside the target {self.target!r}")
        self._check_columns(names, columns)
        kinds = {name: _kind_of(columns[name], name == self.target) for name in names}
        found = self._scan([name for name in names if kinds[name] == "text"])
        kinds |= {name: content.kind() for name, content in found.items()}
        for name, content in found.items():
            if kinds[name] == "text":
                self._check_categories(name, content.values)
        features = [name for name in names if name != self.target]
        texts = {name: tuple(sorted(found[name].values)) for name in names if kinds[name] == "text"}
        return TableLayout(
            numeric=tuple(name for name in features if name not in texts),
            categorical=tuple((name, texts[name]) for name in features if name in texts),
            target=self.target,
            target_kind=kinds[self.target],
            classes=texts.get(self.target, ()),
        )

    def _check_columns(self, names: Sequence[str], columns: dict[str, Any]) -> None:
        """Raise a FormatError if columns are missing, or are neither numbers nor text."""
        missing = [name for name in names if name not in columns or name in self.drop]
        if missing:
            what = "the column" if len(missing) == 1 else f"{len(missing)} columns, among them"
            raise FormatError(f"{self.path} lacks {what} {missing[0]!r}; it has {_list_names(list(columns))}")
        for name in names:
            if not _is_usable(columns[name]):
                raise FormatError(
                    f"{self.path}, column {name!r}: its type is {columns[name]}, neither numbers nor text; turn it "
                    f"into numbers, or leave it out with drop=({name!r},)"
                )

    def _scan(self, names: Sequence[str]) -> "dict[str, Content]":
        """Read columns of text once, to find what they hold."""
        parse = format_of(self.path, self.delimiter) == "CSV"  # text in Parquet and Arrow is not parsed as numbers
        found = {name: Content(parse, parse and name == self.target) for name in names}
        rows = 0
        for batch in batches_of(self.path, names, self.delimiter) if names else ():
            rows += batch.num_rows
            for name, column in zip(names, batch.columns, strict=True):
                found[name].add(column)
        if names and not rows:
            raise FormatError(f"{self.path} is a table without rows")
        return found

    def _check_categories(self, name: str, values: set[str]) -> None:
        """Raise a FormatError if text is not categorical."""
        advice = f"leave it out with drop=({name!r},)"
        if not values:
            raise FormatError(f"{self.path}, column {name!r} holds no values: {advice}")
        if all(map(_is_date, values)):
            raise FormatError(f"{self.path}, column {name!r} holds dates or times: turn it into numbers, or {advice}")
        if len(values) > MANY:
            if name == self.target:
                raise FormatError(f"{self.path}, column {name!r} holds more than {MANY} classes: is it the target?")
            raise FormatError(
                f"{self.path}, column {name!r} holds more than {MANY} categories, as an identifier does: {advice}"
            )


@dataclass
class Content:
    """What a column of text holds so far: whether only numbers, or whole numbers, and its different values."""

    number: bool
    whole: bool
    values: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.parse = self.number

    def add(self, column: Any) -> None:
        """Read some more rows."""
        self.number = self.number and _can_be(column, "double")
        self.whole = self.whole and _can_be(column, "int64")
        if len(self.values) <= MANY:  # also of numbers, as later rows may show that the column is text
            self.values.update(column.drop_null().unique().cast("large_string").to_pylist())

    def kind(self) -> TargetKind:
        """The kind of the column."""
        if self.number:
            return "integer" if self.whole else "real"
        return "bool" if self.parse and {value.lower() for value in self.values} <= TRUTHS else "text"


class Position(NamedTuple):
    """The position of a batch in a file."""

    path: Path
    before: int  # rows before the batch

    def refuse(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise a FormatError that names file, row and column."""
        raise FormatError(f"{self.path}, row {self.before + row + 1}, column {column!r}: {problem}")


# ---- kinds of columns ------------------------------------------------------------------------------------------------


def _kind_of(kind: Any, is_target: bool) -> TargetKind:
    """The kind of a column of a usable Arrow type."""
    from pyarrow import types

    if types.is_dictionary(kind):
        # categories are separate features even if they are numbers, but labels keep their type
        return _kind_of(kind.value_type, is_target) if is_target else "text"
    if is_text(kind):
        return "text"
    if types.is_boolean(kind):
        return "bool"
    return "integer" if types.is_integer(kind) else "real"


def _is_usable(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):  # floats are not categories
        inner = kind.value_type
        return bool(is_text(inner) or types.is_integer(inner) or types.is_boolean(inner))
    numeric = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return is_text(kind) or any(test(kind) for test in numeric)


def _can_be(column: Any, kind: str) -> bool:
    try:
        column.cast(kind)
    except ValueError:  # the base class of Arrow's error
        return False
    return True


def _is_date(text: str) -> bool:
    """Whether a text is a date or a time in ISO 8601 with separators, as others look like numbers."""
    parse = datetime.fromisoformat if "-" in text else time.fromisoformat if ":" in text else None
    if parse is None:
        return False
    try:
        parse(text)
    except ValueError:
        return False
    return True


# ---- from columns to arrays ------------------------------------------------------------------------------------------


def _features(batch: Any, layout: TableLayout, position: Position) -> Any:
    """The features of a batch."""
    m, p = batch.num_rows, len(layout.numeric)
    values = np.ones((m, len(layout.columns)))
    indices = np.empty((m, len(layout.columns)), np.int32)
    indices[:, :p] = np.arange(p)
    for j, name in enumerate(layout.numeric):
        values[:, j] = _numbers(batch.column(name), name, position)
    first = p
    for j, (name, categories) in enumerate(layout.categorical, p):
        codes = _codes(batch.column(name), categories, name, position)
        values[codes < 0, j] = 0.0  # a category that is not in the layout
        indices[:, j] = first + np.maximum(codes, 0)
        first += len(categories)
    if not layout.sparse:
        X = np.zeros((m, layout.n_features))
        X[:, :p] = values[:, :p]
        np.put_along_axis(X, indices[:, p:], values[:, p:], axis=1)
        return X
    counts = values != 0.0
    indptr: Any = np.zeros(m + 1, np.int32 if counts.size < 2**31 else np.int64)
    np.cumsum(counts.sum(axis=1), out=indptr[1:])
    return sp.csr_matrix((values[counts], indices[counts], indptr), shape=(m, layout.n_features), copy=False)


def _labels(batch: Any, layout: TableLayout, position: Position) -> npt.NDArray[Any]:
    """The labels of a batch, of the kind of the layout's target."""
    name, column = layout.target, batch.column(layout.target)
    if layout.target_kind == "text":
        codes = _codes(column, layout.classes, name, position)
        if codes.min(initial=0) < 0:
            row = int(np.argmax(codes < 0))
            position.refuse(row, name, f"{column[row].as_py()!r} is none of the classes {_list_names(layout.classes)}")
        return np.array(layout.classes)[codes]
    values = _numbers(column, name, position)
    if layout.target_kind == "real":
        return values
    if layout.target_kind == "bool":
        strange, wanted = (values != 0) & (values != 1), "true or false"
    else:
        strange, wanted = (values != np.rint(values)) | (np.abs(values) >= LARGEST_WHOLE), "a whole number below 2^53"
    if strange.any():
        row = int(np.argmax(strange))
        position.refuse(row, name, f"expected {wanted}, but found {column[row].as_py()!r}")
    return values.astype(np.bool_ if layout.target_kind == "bool" else np.int64)


def _numbers(column: Any, name: str, position: Position) -> Vector:
    """A column as finite numbers."""
    _refuse_missing(column, name, position)
    if is_text(column.type):
        column = _parse_column(column, name, position)
    values: Vector = column.cast("double", safe=False).to_numpy(zero_copy_only=False)
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        if np.isnan(values[row]):
            _refuse_value(row, name, position)
        position.refuse(row, name, "the value is infinite, or too large for a double")
    return values


def _codes(column: Any, categories: Sequence[str], name: str, position: Position) -> npt.NDArray[np.int64]:
    """The index of each value among the categories; −1 if it is none of them."""
    _refuse_missing(column, name, position)
    if str(column.type) in ("halffloat", "float", "double") or str(column.type).startswith("decimal"):
        position.refuse(0, name, f"expected text, but found numbers of the type {column.type}")
    encoded = column.cast("large_string").dictionary_encode()
    number = {category: code for code, category in enumerate(categories)}
    known = np.array([number.get(value, -1) for value in encoded.dictionary.to_pylist()], np.int64)
    codes: npt.NDArray[np.int64] = known[encoded.indices.to_numpy(zero_copy_only=False)]
    return codes


def _refuse_missing(column: Any, name: str, position: Position) -> None:
    if column.null_count:
        _refuse_value(int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))), name, position)


def _refuse_value(row: int, name: str, position: Position) -> NoReturn:
    position.refuse(row, name, f"the value is missing; fill it in, drop the row, or drop the column: drop=({name!r},)")


def _parse_column(column: Any, name: str, position: Position) -> Any:
    """Text as numbers or truth values."""
    for kind in ("double", "bool"):
        try:
            return column.cast(kind)
        except ValueError:  # the base class of Arrow's error
            continue
    row = _first_strange(column)
    position.refuse(row, name, f"expected a number, but found {column[row].as_py()!r}")


def _first_strange(column: Any) -> int:
    """The index of the first value that is not a number, by bisection."""
    start, stop = 0, len(column)
    while stop - start > 1:
        middle = (start + stop) // 2
        if _can_be(column.slice(start, middle - start), "double"):
            start = middle
        else:
            stop = middle
    return start


def _join(parts: Sequence[tuple[Any, npt.NDArray[Any] | None]]) -> tuple[Any, npt.NDArray[Any] | None]:
    """Matrices and labels, concatenated."""
    if len(parts) == 1:
        return parts[0]
    matrices = [X for X, _ in parts]
    labels = [y for _, y in parts if y is not None]
    X = sp.vstack(matrices, format="csr") if sp.issparse(matrices[0]) else np.concatenate(matrices)
    return X, np.concatenate(labels) if labels else None


def _list_names(names: Sequence[str]) -> str:
    """The first names for a message, and the number of the others."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
