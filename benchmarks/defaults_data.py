"""The data sets of `benchmarks.defaults`: each with the estimator that it is for, and why it is there.

Generated ones are the same in every run. Those with `needs_data` are read from the folder that PRIMALSVM_DATA names.
"""

import lzma
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks import cuts, datasets, regression
from benchmarks.datasets import raw

Loaded = tuple[Any, Any]  # X and y; without labels, y is None; of a ranking, its columns are relevances and queries


class DataSet(NamedTuple):
    """How to get X and y, what is fitted to them, and what they are an example of."""

    load: Callable[[], Loaded]
    estimator: str
    why: str
    needs_data: bool = False


def planted(X: Any, noise: float, seed: int = 1) -> np.ndarray:
    """Labels by the sign of ⟨w, x⟩ for some w; a share `noise` of them is drawn anew."""
    rng = np.random.default_rng(seed)
    scores = X @ rng.normal(size=X.shape[1])
    y = np.where(scores > np.median(scores), 1, -1)
    return np.where(rng.random(len(y)) < noise, rng.choice([-1, 1], len(y)), y)


def normal(m: int, n: int) -> np.ndarray:
    """Independent features of mean 0 and variance 1."""
    return np.random.default_rng(0).normal(size=(m, n))


def scattered(m: int, n: int, least: int, most: int) -> sp.csr_matrix:
    """Sparse rows of length 1 with `least` to `most` entries each; some features are far more common than others."""
    rng = np.random.default_rng(0)
    counts = rng.integers(least, most + 1, m)
    columns = (n * rng.random(counts.sum()) ** 2).astype(np.int32)
    rows = np.repeat(np.arange(m, dtype=np.int32), counts)
    X = sp.coo_matrix((np.abs(rng.normal(size=len(rows))), (rows, columns)), shape=(m, n)).tocsr()
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sp.csr_matrix(sp.diags(1.0 / lengths) @ X)
    X.sort_indices()
    return X


def sample(X: Any, y: np.ndarray, rows: int) -> Loaded:
    """Some rows, drawn at random."""
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


# ---- classification: generated ---------------------------------------------------------------------------------------


def two_rows() -> Loaded:
    """As few as there can be."""
    return np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-1, 1])


def one_feature() -> Loaded:
    """20,000 × 1, two overlapping heaps."""
    y = np.where(np.random.default_rng(1).random(20_000) < 0.5, 1, -1)
    return normal(20_000, 1) + 0.7 * y[:, None], y


def constant_features() -> Loaded:
    """5,000 × 50, of which ten are 0, ten are 1 and five are 1,000."""
    X = normal(5_000, 50)
    y = planted(X, 0.2)
    X[:, 10:20], X[:, 20:30], X[:, 30:35] = 0.0, 1.0, 1000.0
    return X, y


def duplicated_rows() -> Loaded:
    """200 rows, each 50 times, with labels that contradict each other."""
    X = np.tile(normal(200, 20), (50, 1))
    return X, planted(X, 0.3)


def blobs() -> Loaded:
    """10,000 × 20, two heaps that are far apart."""
    y = np.where(np.random.default_rng(1).random(10_000) < 0.5, 1, -1)
    return normal(10_000, 20) + 3.0 * y[:, None], y


def separable_sparse() -> Loaded:
    """500 × 100,000, sparse."""
    X = scattered(500, 100_000, 50, 150)
    return X, planted(X, 0.0)


def separable_dense() -> Loaded:
    """300 × 20,000, dense."""
    X = normal(300, 20_000)
    return X, planted(X, 0.5)


def heavy_tailed() -> Loaded:
    """5,000 × 50, Cauchy."""
    X = np.random.default_rng(0).standard_cauchy(size=(5_000, 50))
    return X, planted(np.sign(X), 0.2)


def noise() -> Loaded:
    """5,000 × 200, labels by chance."""
    return normal(5_000, 200), np.random.default_rng(1).choice([-1, 1], 5_000)


def million() -> Loaded:
    """10⁶ × 10."""
    X = normal(1_000_000, 10)
    return X, planted(X, 0.2)


def rare_class() -> Loaded:
    """20,000 × 30, one row in a hundred is positive."""
    X = normal(20_000, 30)
    scores = X @ np.random.default_rng(1).normal(size=30) + 3.0 * np.random.default_rng(2).normal(size=20_000)
    return X, np.where(scores > np.quantile(scores, 0.99), 1, -1)


def hundred_classes() -> Loaded:
    """10,000 × 50, a hundred overlapping heaps."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 100, 10_000)
    return normal(10_000, 50) + 1.5 * rng.normal(size=(100, 50))[y], y


def dense_1000() -> Loaded:
    """20,000 × 1,000, scikit-learn's generator."""
    from sklearn.datasets import make_classification

    X, y = make_classification(20_000, 1_000, n_informative=50, random_state=0)
    return X, y


def wide_dense() -> Loaded:
    """2,000 × 5,000."""
    X = normal(2_000, 5_000)
    return X, planted(X, 0.1)


def scaled_columns() -> Loaded:
    """3,000 × 2,500, the sizes of the columns between 0.01 and 100."""
    X = normal(3_000, 2_500)
    y = planted(X, 0.2)
    return X * 10.0 ** np.random.default_rng(2).uniform(-2, 2, 2_500), y


def sparse_8000() -> Loaded:
    """30,000 × 8,000, 20 to 50 entries a row."""
    X = scattered(30_000, 8_000, 20, 50)
    return X, planted(X, 0.1)


def collinear() -> Loaded:
    """5,000 × 300 of rank 5."""
    X = normal(5_000, 5)
    return X @ np.random.default_rng(2).normal(size=(5, 300)), planted(X, 0.2)


def far_from_origin() -> Loaded:
    """10,000 × 20, means of 10,000 and spreads of 1."""
    X = normal(10_000, 20)
    return X + 1e4, planted(X, 0.2)


# ---- classification: real --------------------------------------------------------------------------------------------


def bundled(name: str) -> Callable[[], Loaded]:
    """A data set that comes with scikit-learn, as it is."""

    def load() -> Loaded:
        from sklearn import datasets as theirs

        X, y = getattr(theirs, f"load_{name}")(return_X_y=True)
        return X, y

    return load


@cache
def mnist() -> tuple[np.ndarray, np.ndarray]:
    """60,000 × 784, bytes, and the digits."""
    return datasets.mnist("train")


@cache
def covtype() -> tuple[np.ndarray, np.ndarray]:
    """581,012 × 54, unscaled, and class 2 against the rest."""
    X, y = datasets.covtype()
    return X, np.where(y == 2, 1, -1)


def mnist_pair() -> Loaded:
    """4 against 9, values from 0 to 1."""
    X, y = mnist()
    rows = np.isin(y, (4, 9))
    return X[rows] / 255.0, y[rows]


def mnist_ten() -> Loaded:
    """All digits, values from 0 to 1, single precision."""
    X, y = mnist()
    return X.astype(np.float32) / np.float32(255), y


def mnist_bytes() -> Loaded:
    """2,000 rows of bytes, as they are."""
    X, y = mnist()
    return X[:2_000].astype(np.float64), y[:2_000]


def covtype_raw(rows: int = 100_000) -> Loaded:
    """A sample, unscaled."""
    X, y = sample(*covtype(), rows)
    return X.astype(np.float64), y


def covtype_standardised(rows: int | None = None) -> Loaded:
    """Mean 0 and variance 1, single precision; all rows, or a sample."""
    X, y = covtype()
    X = (X - X.mean(axis=0, dtype=np.float64)) / X.std(axis=0, dtype=np.float64)
    X = X.astype(np.float32)
    return (X, y) if rows is None else sample(X, y, rows)


def a9a(rows: int = 32_561) -> Loaded:
    """The training rows."""
    X, y = cuts._svmlight(("a9a/a9a.xz",), 123)
    return X[:rows], y[:rows]


def ijcnn1() -> Loaded:
    """The training rows."""
    return cuts._svmlight(("ijcnn1/ijcnn1.trn.bz2",), 22)


def letter() -> Loaded:
    """The training rows."""
    found = datasets.letter()
    return found.X, found.y


def sector() -> Loaded:
    """The training rows."""
    found = datasets.sector()
    return found.X, found.y


def rcv1_partial() -> Loaded:
    """1,747 documents, from Vowpal Wabbit's text."""
    lines: dict[str, None] = {}  # in order, each once
    for name in ("rcv1_small.dat", "rcv1_small_test.data", "rcv1_smaller.dat"):
        with lzma.open(raw(f"rcv1-partial/{name}.xz"), "rt") as file:
            lines.update(dict.fromkeys(line.strip() for line in file))
    pairs = [[entry.split(":") for entry in line.split()[2:]] for line in lines]
    indices = np.array([int(index) for row in pairs for index, _ in row], np.int32)
    values = np.array([float(value) for row in pairs for _, value in row])
    indptr = np.cumsum([0, *(len(row) for row in pairs)], dtype=np.int32)
    X = sp.csr_matrix((values, indices, indptr), shape=(len(pairs), 47_236))
    X.sort_indices()
    return X, np.array([1 if line.startswith("1") else -1 for line in lines])


def arxiv(rows: int = 100_000) -> Loaded:
    """The first abstracts, computer science against the rest."""
    found = datasets.arxiv()
    return found.X_train[:rows], found.y_train[:rows].astype(int)


# ---- regression, ranking, novelty ------------------------------------------------------------------------------------


def unscaled_regression() -> Loaded:
    """5,000 × 20, targets of about a million, the sizes of the columns between 0.001 and 1,000."""
    rng = np.random.default_rng(1)
    X = normal(5_000, 20)
    y = 1e6 * (1.0 + 0.3 * X @ rng.normal(size=20) / np.sqrt(20) + 0.1 * rng.standard_t(3, size=5_000))
    return X * 10.0 ** rng.uniform(-3, 3, 20), y


def queries() -> Loaded:
    """250 queries of 20 rows, 10 features."""
    rng = np.random.default_rng(1)
    X = normal(5_000, 10)
    relevance = np.digitize(X @ rng.normal(size=10) + rng.normal(size=5_000), [0.0, 2.0, 4.0])
    return X, np.column_stack([relevance, np.repeat(np.arange(250), 20)])


def cloud(offset: float, m: int = 20_000, n: int = 20) -> Loaded:
    """Normal rows about a point whose coordinates are all `offset`."""
    return normal(m, n) + offset, None


def cauchy_cloud() -> Loaded:
    """10,000 × 20, Cauchy about a point off the origin."""
    return np.random.default_rng(0).standard_cauchy(size=(10_000, 20)) + 3.0, None


def without_labels(load: Callable[[], Loaded]) -> Callable[[], Loaded]:
    """The rows alone."""
    return lambda: (load()[0], None)


SVC, SVR, ONE_CLASS = "LinearSVC", "LinearSVR", "LinearOneClassSVM"

DATASETS: dict[str, DataSet] = {
    "two_rows": DataSet(two_rows, SVC, "as few rows as there can be"),
    "one_feature": DataSet(one_feature, SVC, "as few features as there can be"),
    "constant_features": DataSet(constant_features, SVC, "features that tell nothing, some of them large"),
    "duplicated_rows": DataSet(duplicated_rows, SVC, "the same rows many times, with labels that contradict"),
    "blobs": DataSet(blobs, SVC, "well separated: P* is nearly 0"),
    "separable_sparse": DataSet(separable_sparse, SVC, "10⁵ features, few rows, separable"),
    "separable_dense": DataSet(separable_dense, SVC, "20,000 dense features, few rows: any labels can be separated"),
    "heavy_tailed": DataSet(heavy_tailed, SVC, "rows a thousand times as long as others"),
    "noise": DataSet(noise, SVC, "nothing to learn: nearly all rows are support vectors"),
    "million": DataSet(million, SVC, "10⁶ rows"),
    "rare_class": DataSet(rare_class, SVC, "one positive row in a hundred"),
    "hundred_classes": DataSet(hundred_classes, SVC, "100 classes that overlap"),
    "dense_1000": DataSet(dense_1000, SVC, "1,000 dense features"),
    "wide_dense": DataSet(wide_dense, SVC, "5,000 dense features, fewer rows than features"),
    "scaled_columns": DataSet(scaled_columns, SVC, "2,500 dense features of very different sizes"),
    "sparse_8000": DataSet(sparse_8000, SVC, "sparse rows, thousands of features, noisy labels"),
    "collinear": DataSet(collinear, SVC, "300 features of rank 5"),
    "far_from_origin": DataSet(far_from_origin, SVC, "means ten thousand times the spread"),
    "breast_cancer": DataSet(bundled("breast_cancer"), SVC, "a table as users have it, unscaled"),
    "wine": DataSet(bundled("wine"), SVC, "three classes, unscaled"),
    "digits": DataSet(bundled("digits"), SVC, "ten classes, 64 dense features from 0 to 16"),
    "mnist_pair": DataSet(mnist_pair, SVC, "784 dense features, two classes hard to tell", True),
    "mnist_ten": DataSet(mnist_ten, SVC, "60,000 × 784, ten classes, single precision", True),
    "mnist_bytes": DataSet(mnist_bytes, SVC, "784 unscaled dense features, ten classes", True),
    "a9a": DataSet(a9a, SVC, "sparse 0/1 features from categories", True),
    "ijcnn1": DataSet(ijcnn1, SVC, "few features, one row in ten positive", True),
    "covtype_raw": DataSet(covtype_raw, SVC, "a real table, unscaled: columns from 0/1 to thousands", True),
    "covtype": DataSet(covtype_standardised, SVC, "581,012 rows, standardised, noisy", True),
    "letter": DataSet(letter, SVC, "26 classes, 16 features: none is linear", True),
    "sector": DataSet(sector, SVC, "105 classes of text, 55,197 features", True),
    "rcv1_partial": DataSet(rcv1_partial, SVC, "text, more features than rows", True),
    "arxiv": DataSet(arxiv, SVC, "100,000 rows of text, 10⁵ features", True),
    "diabetes": DataSet(bundled("diabetes"), SVR, "small features, large targets"),
    "regression_50": DataSet(lambda: regression.generated(100_000), SVR, "100,000 × 50, heavy-tailed noise"),
    "regression_unscaled": DataSet(unscaled_regression, SVR, "targets of a million, columns of very different sizes"),
    "housing": DataSet(datasets.housing, SVR, "a real table, standardised", True),
    "kernel_digits": DataSet(bundled("digits"), "SVC", "ten classes, mapped features"),
    "kernel_a9a": DataSet(lambda: a9a(10_000), "SVC", "sparse rows, mapped features", True),
    "kernel_covtype": DataSet(lambda: covtype_standardised(20_000), "SVC", "noisy labels, mapped features", True),
    "kernel_diabetes": DataSet(bundled("diabetes"), "SVR", "regression on mapped features, few rows"),
    "kernel_housing": DataSet(datasets.housing, "SVR", "regression on mapped features", True),
    "queries": DataSet(queries, "LinearRanker", "a ranking"),
    "cloud": DataSet(lambda: cloud(3.0), ONE_CLASS, "rows off the origin"),
    "centred_cloud": DataSet(lambda: cloud(0.0), ONE_CLASS, "rows around the origin: P* = 0"),
    "cauchy_cloud": DataSet(cauchy_cloud, ONE_CLASS, "rows a thousand times as long as others"),
    "novel_a9a": DataSet(without_labels(a9a), ONE_CLASS, "sparse 0/1 features", True),
    "novel_text": DataSet(without_labels(sector), ONE_CLASS, "text, 55,197 features", True),
    "kernel_cloud": DataSet(lambda: cloud(0.0, 5_000, 5), "OneClassSVM", "novelty on mapped features"),
}
