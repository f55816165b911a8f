"""How the rows of a file become features: from which columns of a table, and how text numbers them.

A layout is found in the training file and applied to all later files. It consists of plain values, so that model files
and the headers of caches can hold it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

MANY = 1000  # categories; a text column with more is an identifier
DENSE_FEATURES = 64  # up to so many features kernels are fastest on dense rows
SPARSE_FROM = 4  # features for each that may differ from 0; CSR takes 12 bytes for these, a dense row 8 for all

LARGEST_WHOLE = 2.0**53  # from which on doubles do not represent all whole numbers

TargetKind = Literal["integer", "real", "bool", "text"]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table as features: first the numeric columns, then a feature for each category of text columns.

    Parameters
    ----------
    numeric : the columns of numbers; false and true are 0 and 1
    categorical : the columns of text, each with its sorted categories. The feature "column=category" is 1 for this
        category and 0 for others; a category that is not listed gives zeros
    target : the column of labels
    target_kind : "integer", "real", "bool" or "text"
    classes : the sorted labels, if they are text; else empty

    Examples
    --------
    >>> layout = TableLayout(("age",), (("colour", ("blue", "red")),), "label", "integer")
    >>> layout.feature_names
    ('age', 'colour=blue', 'colour=red')
    >>> layout_from_dict(layout_to_dict(layout)) == layout
    True
    """

    numeric: tuple[str, ...]
    categorical: tuple[tuple[str, tuple[str, ...]], ...]
    target: str
    target_kind: TargetKind
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _expect_texts(self.numeric, "numeric")
        _expect(isinstance(self.categorical, tuple), "categorical must be pairs of a column and its categories")
        for pair in self.categorical:
            _expect(isinstance(pair, tuple) and len(pair) == 2, "categorical must be pairs of a column and categories")
            _expect_texts(pair[:1], "categorical")
            _expect_sorted(pair[1], f"the categories of {pair[0]!r}")
        _expect_texts((self.target,), "target")
        named = [*self.columns, self.target]
        _expect(len(set(named)) == len(named), "a column is listed twice")
        _expect(len(named) > 1, "there is no feature")
        known = isinstance(self.target_kind, str) and self.target_kind in get_args(TargetKind)
        _expect(known, f"target_kind must be one of {', '.join(get_args(TargetKind))}")
        if self.target_kind == "text":
            _expect_sorted(self.classes, "classes")
        else:
            _expect(self.classes == (), "only a target of text has classes")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that become features."""
        return (*self.numeric, *(name for name, _ in self.categorical))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The name of each feature."""
        return (*self.numeric, *(f"{name}={value}" for name, values in self.categorical for value in values))

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.numeric) + sum(len(values) for _, values in self.categorical)

    @property
    def sparse(self) -> bool:
        """Whether rows are sparse; depends on the layout only, so that all tables give the same kind of matrix."""
        return self.n_features > max(DENSE_FEATURES, SPARSE_FROM * len(self.columns))

    @property
    def row_bytes(self) -> int:
        """The maximum number of bytes of a row: its values, their indices if it is sparse, and its label."""
        return 8 + (12 * len(self.columns) + 4 if self.sparse else 8 * self.n_features)


@dataclass(frozen=True)
class SvmlightLayout:
    """Whether svmlight/LIBSVM text numbers its features from 0 or from 1."""

    zero_based: bool

    def __post_init__(self) -> None:
        if not isinstance(self.zero_based, bool):
            raise ValueError("this is not a layout of svmlight text: zero_based must be true or false")


Layout: TypeAlias = TableLayout | SvmlightLayout


def layout_to_dict(layout: Layout | None) -> dict[str, Any] | None:
    """A layout as a dictionary for JSON."""
    return None if layout is None else {"kind": type(layout).__name__, **asdict(layout)}


def layout_from_dict(found: Any) -> Layout | None:
    """The layout of a dictionary from `layout_to_dict`, possibly through JSON; a ValueError if it is invalid."""
    if found is None:
        return None
    _expect(isinstance(found, Mapping), "a mapping is needed")
    given = {name: _tuple(value) for name, value in found.items() if name != "kind"}
    if found.get("kind") == "SvmlightLayout" and set(given) == {"zero_based"}:
        return SvmlightLayout(**given)
    _expect(found.get("kind") == "TableLayout", "its kind is unknown")
    _expect(set(given) == {field.name for field in fields(TableLayout)}, "its names are not those of a layout")
    return TableLayout(**given)


def codes_of(layout: Layout | None, y: Any) -> npt.NDArray[np.float64]:
    """Labels as numbers for a cache: unchanged, or if they are text, their indices among the classes of the layout."""
    if isinstance(layout, TableLayout) and layout.target_kind == "text":
        places: npt.NDArray[np.float64] = np.searchsorted(np.array(layout.classes), y).astype(np.float64)
        return places
    if np.asarray(y).dtype.kind not in "biuf":
        raise ValueError("the labels of a cache are numbers, not text")
    codes = np.asarray(y, np.float64)
    if np.asarray(y).dtype.kind in "iu" and np.any(np.abs(codes) >= LARGEST_WHOLE):
        raise ValueError("a cache cannot tell labels of 2^53 and more apart: number the classes")
    return codes


def names_of(layout: Layout | None, codes: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """The names of the classes if the labels of a cache are indices of classes; else None."""
    if not isinstance(layout, TableLayout) or layout.target_kind != "text":
        return None
    _expect(bool(((codes >= 0) & (codes < len(layout.classes))).all()), "there are labels without a class")
    return np.array(layout.classes)


def labels_of(layout: Layout | None, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels of a cache, from the numbers that it holds."""
    if not isinstance(layout, TableLayout) or layout.target_kind == "real":
        return codes
    names = names_of(layout, codes)
    if names is not None:
        named: npt.NDArray[Any] = names[codes.astype(np.int64)]
        return named
    return codes.astype(np.bool_ if layout.target_kind == "bool" else np.int64)


def same_layout(first: Layout | None, second: Layout | None) -> bool:
    """Whether two layouts give the same features, as far as is known."""
    if first is None or second is None:
        return True
    if isinstance(first, TableLayout) and isinstance(second, TableLayout):
        return first.feature_names == second.feature_names
    return first == second


def _tuple(value: Any, depth: int = 3) -> Any:
    """Tuples in place of the lists of JSON, down to the depth of a layout."""
    return tuple(_tuple(one, depth - 1) for one in value) if depth and isinstance(value, list | tuple) else value


def _expect(fine: bool, problem: str) -> None:
    if not fine:
        raise ValueError(f"this is not a layout of a table: {problem}")


def _expect_texts(values: Any, what: str) -> None:
    _expect(isinstance(values, tuple) and all(isinstance(value, str) for value in values), f"{what} must hold names")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can hold and Arrow cannot
        raise ValueError(f"this is not a layout of a table: {what} holds what is not Unicode") from None


def _expect_sorted(values: Any, what: str) -> None:
    _expect_texts(values, what)
    _expect(0 < len(values) <= MANY, f"{what} must be between 1 and {MANY}")
    _expect(all(a < b for a, b in pairwise(values)), f"{what} must be sorted, each once")
