"""From the arguments of `fit`, arrays or a source, to validated rows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
from sklearn.utils.validation import validate_data

from primalsvm.data import (
    InMemory,
    ThreadPool,
    Vector,
    as_dataset,
    as_multiplicity,
    as_targets,
    check_columns,
    is_block,
)
from primalsvm.estimators.parameters import memory_budget
from primalsvm.sources.opening import is_source
from primalsvm.sources.source import LoadedRows


class Rows(NamedTuple):
    """Validated rows with their sample weights and targets."""

    X: Any  # a matrix, or a block of a cache
    y: Any
    data: InMemory
    sample_weight: Vector | None
    qid: Any = None
    cache: Path | None = None  # the cache that the rows are mapped from, if they exceed the memory budget

    @property
    def matrix(self) -> Any:
        """The rows as a matrix."""
        return self.X.matrix() if is_block(self.X) else self.X


@contextmanager
def load(estimator: Any, X: Any, y: npt.ArrayLike | None) -> Iterator[LoadedRows]:
    """The rows of arrays, or of a source, whose temporary files are removed at the end."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(f"X is a path: fit(primalsvm.open({os.fspath(X)!r})) reads it")
    if not is_source(X):
        yield LoadedRows(X, y)
        return
    task = estimator._task
    if task.labelled and y is not None:
        raise ValueError("a source brings its own labels: y must not be given")
    source = X if task.labelled else X.unlabelled()
    with source.rows_within(memory_budget(estimator)) as rows:
        if not rows.X.shape[0]:
            raise ValueError(f"{X.path} holds no rows")
        if task.labelled and rows.y is None:
            raise ValueError("the source has no labels: there is nothing to learn from")
        if task.labelled and task.numeric:
            check_numeric(rows.names)
        yield rows


def check_numeric(names: Any) -> None:
    """Raise a ValueError if the labels of a source are text."""
    if names is not None:
        raise ValueError(f"the targets of this source are text, such as {names.tolist()[0]!r}: numbers are needed")


def validate(
    estimator: Any,
    loaded: LoadedRows,
    sample_weight: npt.ArrayLike | None,
    threads: ThreadPool,
    qid: npt.ArrayLike | None = None,
) -> Rows:
    """Validate rows, targets and weights, and set `n_features_in_` and `feature_names_in_`."""
    X, y, task = loaded.X, loaded.y, estimator._task
    if is_block(X):  # of a cache
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    else:
        X, y = check_arrays(estimator, X, y, reset=True)
    in_files = loaded.cache is not None and estimator._features.reads_files
    data = as_dataset(X, sample_weight, threads=threads, checked=in_files)  # others are checked when they are read
    m = data.shape[0]
    y = as_targets(y) if task.labelled else None
    if y is not None and y.shape[:1] != (m,):
        raise ValueError(f"X has {m} rows but y has shape {y.shape}")
    return Rows(X, y, data, as_multiplicity(sample_weight, m), loaded.qid if qid is None else qid, loaded.cache)


def check_arrays(estimator: Any, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
    """X and y after scikit-learn's validation; y is None for a task without labels."""
    task = estimator._task
    if not task.labelled:
        return check_matrix(estimator, X, reset=reset, **task.checks), None
    X, y = check_matrix(estimator, X, y=y, reset=reset, **task.checks)
    return X, y


def check_matrix(estimator: Any, X: Any, **options: Any) -> Any:
    """X after scikit-learn's validation; `as_block` checks for NaN and infinity, in one pass."""
    check_columns(X)
    return validate_data(estimator, X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, **options)
