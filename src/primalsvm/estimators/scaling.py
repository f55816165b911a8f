"""Advice to scale the features, if their sizes differ so much that solvers become slow.

The size of a feature is the root mean square of its entries that are not 0, which does not depend on their number.
How solvers cope with one feature that is larger than the others (hinge, C = 1; epochs, or relative gap after 1,000):

    that feature times                   1      10     10²     10³     10⁴      10⁶      10⁸
    Newton, 4,000 × 40              16 ep.  18 ep.  19 ep.  21 ep.  21 ep.  804 ep.      1.8
    dual ascent, 4,000 × 40        377 ep.    2e-3     0.6     1.0     1.0      1.0      1.0
    dual ascent, 8,000 × 2,000,    140 ep. 196 ep.    1e-2    7e-2     0.9      1.0      1.0
      2 % of them not 0

A small feature does no harm. Unscaled tables may have factors of 10³ (covtype, house prices), with which Newton copes.
Therefore only a fit that falls short looks for this reason, in a sample of its rows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from primalsvm.data import InMemory

LARGE_FACTOR = 100.0  # between the sizes of features: from here on dual ascent makes little progress, see the table
ROWS = 10_000  # of the sample, at most
ENTRIES = 10_000_000  # of a dense sample, at most


def advice(data: InMemory, names: npt.NDArray[Any] | None, estimator: str) -> str:
    """Advice if the largest feature is much larger than the lower quartile of the sizes; else an empty string.

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> advice(as_dataset(np.array([[1e3, 1.0], [1e3, -1.0]])), None, "LinearSVC")[:59]
    '. The features differ in size by a factor of 1.0e+03 (featu'
    """
    d = data.shape[1]
    counting = np.flatnonzero(data.weight_array())
    at_most = ROWS if data.sparse else min(ROWS, max(1, ENTRIES // d))
    if len(counting) > at_most:
        counting = counting[np.linspace(0, len(counting) - 1, at_most).astype(np.intp)]
    rows: Any = data.take(counting)
    sizes = rows.feature_sizes()
    known = np.flatnonzero(sizes > 0.0)
    if not known.size:
        return ""
    ordered = known[np.argsort(sizes[known], kind="stable")]
    small, large = ordered[(len(ordered) - 1) // 4], ordered[-1]
    with np.errstate(over="ignore"):
        factor = sizes[large] / sizes[small]
    if factor < LARGE_FACTOR:
        return ""
    first, second = (f"feature {k}" if names is None else repr(str(names[k])) for k in (large, small))
    scaler = "MaxAbsScaler" if data.sparse else "StandardScaler"
    return (
        f". The features differ in size by a factor of {factor:.1e} ({first} and {second}): scale them first, e.g. "
        f"make_pipeline({scaler}(), {estimator}(…))"
    )
