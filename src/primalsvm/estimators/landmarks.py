"""The landmarks of a Nyström map.

    uniform   rows drawn with probabilities that follow their weights
    kmeans    cluster centres of a sample of rows, which cover the data more evenly
    margin    cluster centres of a sample drawn with the weights  exp(−max(0, margin − 1)/δ),  with margins of a pilot

A classifier must be accurate near its margin only. With 1,024 landmarks, "uniform", "kmeans" and "margin" give test
errors of 3.2, 2.9 and 2.7 % on MNIST (0-4 against 5-9), and of 16.6, 16.5 and 15.8 % on covtype. If the few landmarks
of the pilot already span the kernel up to rounding, all rows have the same weight, as more accurate features would not
help (a9a with a wide kernel: 15.3 % with margins, 15.1 % without).
"""

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from primalsvm.data import Vector
from primalsvm.options import check_choice

DELTA = 0.5  # δ (measured on MNIST and IJCNN: 0.25 to 0.5 are best)
ROWS_PER_CENTRE = 10  # in the sample for k-means
PASSES = 3  # of k-means: further ones do not improve the features


def choose_landmarks(X: Any, n: int, how: Any, rng: np.random.Generator, weight: Vector | None = None) -> Any:
    """n rows of X drawn with their weights, n cluster centres of a sample of rows, or the given points."""
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
    sample = sample.astype(np.result_type(sample.dtype, np.float32))  # at least single precision
    if sample.shape[0] <= n:
        return sample
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the map drops repeated centres
        return KMeans(n, init="random", n_init=1, max_iter=PASSES, random_state=seed).fit(sample).cluster_centers_


def draw_rows(m: int, n: int, rng: np.random.Generator, weight: Vector | None = None) -> Vector:
    """n different rows in order, drawn with probabilities that follow their weights; fewer if fewer have a weight."""
    if weight is None:
        return np.sort(rng.choice(m, min(n, m), replace=False))
    p = weight / weight.sum()
    return np.sort(rng.choice(m, min(n, int(np.count_nonzero(p))), replace=False, p=p))


def weights_near_margin(margins: Vector) -> Vector:
    """The weights of rows with these margins in the sample for landmarks."""
    weight: Vector = np.exp(-np.maximum(margins - 1.0, 0.0) / DELTA)
    return weight
