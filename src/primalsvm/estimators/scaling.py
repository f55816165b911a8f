"""Whether features differ so much in size that solvers suffer, and the sentence that says what to do.

The size of a feature is the root mean square of its entries that are not 0: how often a word occurs has no say. What
a solver makes of one feature that is larger than the others (hinge, C = 1; accuracy after 1,000 epochs, or epochs):

    that feature times                   1      10     10²     10³     10⁴      10⁶      10⁸
    Newton, 4,000 × 40              16 ep.  18 ep.  19 ep.  21 ep.  21 ep.  804 ep.      1.8
    dual ascent, 4,000 × 40        377 ep.    2e-3     0.6     1.0     1.0      1.0      1.0
    dual ascent, 8,000 × 2,000,    140 ep. 196 ep.    1e-2    7e-2     0.9      1.0      1.0
      2 % of them not 0

A small feature does no harm. Tables as they are may have factors of 10³ (covtype, house prices) and Newton does not
mind. So nothing is said up front: it is a fit that falls short which looks for the reason, in a sample of its rows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from primalsvm.rows import CSR, Batch, Stored, Vector, shape, take

TOO_MANY_TIMES = 100.0  # the size of another feature
ROWS = 10_000  # of the sample, at most
ENTRIES = 10_000_000  # … and of its entries, if it is dense


def feature_sizes(rows: Stored) -> Vector:
    """The root mean square of each feature's entries that are not 0; NaN for a feature without.

    Examples
    --------
    >>> from primalsvm.inputs import as_rows
    >>> feature_sizes(as_rows(np.array([[3.0, 0.0], [-3.0, 5.0]])))
    array([3., 5.])
    """
    d = shape(rows)[1]
    if isinstance(rows, CSR):
        values, columns = rows.data.astype(float), rows.indices.astype(np.intp)
        counts = np.bincount(columns[values != 0.0], minlength=d)
        squares = np.bincount(columns, np.square(values), d)
    else:
        values = rows.values.astype(float)
        counts, squares = np.count_nonzero(values, axis=0), np.square(values).sum(axis=0)
    with np.errstate(invalid="ignore"):
        sizes: Vector = np.sqrt(squares / counts)
    return sizes


def advice(batch: Batch, names: npt.NDArray[Any] | None, estimator: str) -> str:
    """What to do if the largest feature is many times larger than a quarter of the features; nothing otherwise."""
    rows: Any = batch.rows
    m, d = shape(rows)
    counting = np.flatnonzero(np.broadcast_to(batch.weight.values, (m,)))
    at_most = ROWS if isinstance(rows, CSR) else min(ROWS, max(1, ENTRIES // d))
    if len(counting) > at_most:
        counting = counting[np.linspace(0, len(counting) - 1, at_most).astype(np.intp)]
    sizes = feature_sizes(take(rows, counting))
    known = np.flatnonzero(sizes > 0.0)
    if not known.size:
        return ""
    ordered = known[np.argsort(sizes[known], kind="stable")]
    small, large = ordered[(len(ordered) - 1) // 4], ordered[-1]
    with np.errstate(over="ignore"):
        factor = sizes[large] / sizes[small]
    if factor < TOO_MANY_TIMES:
        return ""
    first, second = (f"feature {k}" if names is None else repr(str(names[k])) for k in (large, small))
    scaler = "MaxAbsScaler" if isinstance(rows, CSR) else "StandardScaler"
    return (
        f". The features differ in size by a factor of {factor:.1e} ({first} and {second}): scale them first, e.g. "
        f"make_pipeline({scaler}(), {estimator}(…))"
    )
