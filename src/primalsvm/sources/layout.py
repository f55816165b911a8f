"""How the rows of a file become features: which columns of a table, and how text numbers them.

A layout is found in the file that a model is trained on, and is applied to every file that the model sees later. It is
made of plain values, so that it can be stored in a model file or in the header of a cache.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

MANY = 1000  # categories: a text column with more of them is an identifier rather than a property
DENSE_FEATURES = 64  # up to so many features a dense row is short, and kernels go through it fastest
SPARSE_FROM = 4  # features for each that may be other than 0; CSR takes 12 bytes for these, a dense row 8 for all

LARGEST_WHOLE = 2.0**53  # from here on, a double does not tell neighbouring whole numbers apart

TargetKind = Literal["integer", "real", "bool", "text"]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table as features: the numbers first, then for each text column one feature a category.

    Parameters
    ----------
    numeric : the columns of numbers; false and true count as 0 and 1
    categorical : the columns of text, each with its sorted categories; the feature "column=category" is 1 where the
        column holds this category and 0 elsewhere, so that a category that is not listed gives zeros only
    target : the column of labels
    target_kind : "integer", "real", "bool" or "text"
    classes : the sorted labels, if they are text; else empty

    Examples
    --------
    >>> layout = TableLayout(("age",), (("colour", ("blue", "red")),), "label", "integer")
    >>> layout.feature_names
    ('age', 'colour=blue', 'colour=red')
    >>> TableLayout.from_dict(layout.to_dict()) == layout
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
        """The columns that features are made of."""
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
        """Whether rows are kept sparse: the layout alone decides, so that all its tables give the same kind."""
        return self.n_features > max(DENSE_FEATURES, SPARSE_FROM * len(self.columns))

    @property
    def row_bytes(self) -> int:
        """How much memory a row takes at most: its values, with their indices if it is sparse, and its label."""
        return 8 + (12 * len(self.columns) + 4 if self.sparse else 8 * self.n_features)

    def to_dict(self) -> dict[str, Any]:
        """The layout as a dictionary that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """The layout that `to_dict` gave, through JSON or not.

        Raises
        ------
        ValueError
            If it is anything else.
        """
        _expect(isinstance(found, Mapping), "a mapping is needed")
        _expect(set(found) == {field.name for field in fields(cls)}, "its names are not those of a layout")
        categorical = _tuple(found["categorical"])
        if isinstance(categorical, tuple):
            pairs = (_tuple(pair) for pair in categorical)
            categorical = tuple(tuple(map(_tuple, pair)) if isinstance(pair, tuple) else pair for pair in pairs)
        rest = {name: _tuple(value) for name, value in found.items() if name != "categorical"}
        return cls(categorical=categorical, **rest)


@dataclass(frozen=True)
class SvmlightLayout:
    """How svmlight/LIBSVM text numbers its features: from 0 on, or from 1."""

    zero_based: bool

    def __post_init__(self) -> None:
        if not isinstance(self.zero_based, bool):
            raise ValueError("this is not a layout of svmlight text: zero_based must be true or false")


Layout: TypeAlias = TableLayout | SvmlightLayout


def layout_to_dict(layout: Layout | None) -> dict[str, Any] | None:
    """The layout as a dictionary that JSON can hold."""
    return None if layout is None else {"kind": type(layout).__name__, **asdict(layout)}


def layout_from_dict(found: Any) -> Layout | None:
    """The layout that `layout_to_dict` gave; a ValueError if it is anything else."""
    if found is None:
        return None
    _expect(isinstance(found, Mapping), "a mapping is needed")
    fields_ = {name: value for name, value in found.items() if name != "kind"}
    if found.get("kind") == "SvmlightLayout" and set(fields_) == {"zero_based"}:
        return SvmlightLayout(fields_["zero_based"])
    _expect(found.get("kind") == "TableLayout", "its kind is unknown")
    return TableLayout.from_dict(fields_)


def codes_of(layout: Layout | None, y: Any) -> npt.NDArray[np.float64]:
    """Labels as the numbers that a cache keeps: themselves, or their places among the classes of a layout."""
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
    """The names of the classes that the numbers of a cache stand for; None: they stand for themselves."""
    if not isinstance(layout, TableLayout) or layout.target_kind != "text":
        return None
    _expect(bool(((codes >= 0) & (codes < len(layout.classes))).all()), "there are labels without a class")
    return np.array(layout.classes)


def labels_of(layout: Layout | None, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels from the numbers that a cache keeps."""
    if not isinstance(layout, TableLayout) or layout.target_kind == "real":
        return codes
    names = names_of(layout, codes)
    if names is not None:
        named: npt.NDArray[Any] = names[codes.astype(np.int64)]
        return named
    return codes.astype(np.bool_ if layout.target_kind == "bool" else np.int64)


def alike(first: Layout | None, second: Layout | None) -> bool:
    """Whether two layouts make the same features, as far as is known."""
    if first is None or second is None:
        return True
    if isinstance(first, TableLayout) and isinstance(second, TableLayout):
        return first.feature_names == second.feature_names
    return first == second


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _expect(fine: bool, problem: str) -> None:
    if not fine:
        raise ValueError(f"this is not a layout of a table: {problem}")


def _expect_texts(values: Any, what: str) -> None:
    _expect(isinstance(values, tuple) and all(isinstance(value, str) for value in values), f"{what} must hold names")
    try:
        "".join(values).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell and Arrow cannot hold
        raise ValueError(f"this is not a layout of a table: {what} holds what is not Unicode") from None


def _expect_sorted(values: Any, what: str) -> None:
    _expect_texts(values, what)
    _expect(0 < len(values) <= MANY, f"{what} must be between 1 and {MANY}")
    _expect(all(a < b for a, b in pairwise(values)), f"{what} must be sorted, each once")
