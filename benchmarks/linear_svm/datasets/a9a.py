from benchmark_utils.real import split_if_there
from benchopt import BaseDataset

from benchmarks.cuts import POOLS
from benchmarks.datasets import Split

TRAINING_ROWS = 32_561


def a9a() -> Split:
    X, y = POOLS["ADULT"]()  # the rows of a9a, then those of a9a.t
    y, m = y.astype(float), TRAINING_ROWS
    return Split(X[:m], y[:m], X[m:], y[m:])


class Dataset(BaseDataset):
    """Adult in binary features; training and test rows as they are published."""

    name = "a9a"

    def get_data(self):
        return {"split": split_if_there(a9a)}
