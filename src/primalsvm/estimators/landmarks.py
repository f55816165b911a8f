"""Which points a Nyström map is built on.

    uniform   rows, drawn with their weights
    kmeans    the centres of clusters of a sample of rows: they cover the data more evenly
    margin    the same, the sample drawn with the weights  exp(−max(0, margin − 1)/δ)  that a pilot's margins give

A classifier has to be accurate near its margin only; far from it, few points will do. With 1,024 points, uniform,
centres of clusters, and centres near the margin give test errors of 3.2, 2.9 and 2.7 % on MNIST (0-4 against 5-9), and
of 16.6, 16.5 and 15.8 % on covtype. Where the pilot's few points span the kernel already, up to rounding, all rows
count the same: more accurate features would be of no use (a9a with a wide kernel: 15.3 % with margins, 15.1 % without).
"""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from primalsvm.data import Vector
from primalsvm.options import check_choice

DELTA = 0.5  # (MNIST and IJCNN: 0.25 to 0.5 best)
ROWS_PER_CENTRE = 10  # in the sample that k-means looks at
PASSES = 3  # of k-means: centres that are nearly settled make features as good as settled ones


def choose_landmarks(X: Any, n: int, how: Any, rng: np.random.Generator, weight: Vector | None = None) -> Any:
    """n rows of X drawn with their weights, the centres of n clusters of a sample of its rows, or the points given."""
    if not isinstance(how, str):
        return how
    if how == "uniform":
        return X[draw_rows(X.shape[0], n, rng, weight)]
    check_choice(
        "landmarks",
        how,
        ("kmeans", "uniform"),
        "(in the `fit` of a classifier of two classes 'margin') or give the points",
    )
    sample: Any = X[draw_rows(X.shape[0], ROWS_PER_CENTRE * n, rng, weight)]
    sample = sample.astype(np.result_type(sample.dtype, np.float32))  # double for double and for wide integers
    if sample.shape[0] <= n:
        return sample
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # repeated centres do no harm: the map drops them
        return KMeans(n, init="random", n_init=1, max_iter=PASSES, random_state=seed).fit(sample).cluster_centers_


def draw_rows(m: int, n: int, rng: np.random.Generator, weight: Vector | None = None) -> Vector:
    """n different rows, in order, drawn with probabilities that follow their weights; fewer, if fewer have one."""
    if weight is None:
        return np.sort(rng.choice(m, min(n, m), replace=False))
    p = weight / weight.sum()
    return np.sort(rng.choice(m, min(n, int(np.count_nonzero(p))), replace=False, p=p))


def weights_near_margin(margins: Vector) -> Vector:
    """How much rows with these margins count for the landmarks."""
    weight: Vector = np.exp(-np.maximum(margins - 1.0, 0.0) / DELTA)
    return weight
