"""The feature maps as scikit-learn transformers."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from primalsvm.data import Block, as_block, thread_pool
from primalsvm.estimators.landmarks import choose_landmarks, draw_rows
from primalsvm.estimators.loading import check_matrix
from primalsvm.estimators.parameters import draw_seed, store_parameters
from primalsvm.estimators.warning import warn
from primalsvm.maps.features import feature_matrix
from primalsvm.maps.fourier import Form, FourierMap, Frequencies, fourier_map
from primalsvm.maps.kernels import (
    Gaussian,
    Kernel,
    Points,
    Precomputed,
    SparsePoints,
    as_points,
    precision_for,
    sparse_points,
)
from primalsvm.maps.nystroem import NystroemMap, fit_nystroem
from primalsvm.maps.registry import kernel_by_name
from primalsvm.memory import check_fits
from primalsvm.options import check_choice, check_integer, check_number

SPARSE_SHARE = 16  # points of an exact machine stay sparse if at most one entry in so many is stored
COMPONENTS = 512  # the default number of features, at most


def variance_of(X: Any, weight: npt.NDArray[Any] | None = None) -> float:
    """The variance of all entries of a matrix, weighted by row."""
    if weight is None and not hasattr(X, "multiply"):
        return float(np.var(X, dtype=np.float64))
    share = np.full(X.shape[0], 1.0 / X.shape[0]) if weight is None else weight / weight.sum()
    squares: Any = X.astype(np.float64).power(2) if hasattr(X, "multiply") else np.square(X, dtype=np.float64)
    mean = float((share @ X).sum() / X.shape[1])
    return float((share @ squares).sum() / X.shape[1]) - mean * mean


def gamma_of(gamma: Any, X: Any, weight: npt.NDArray[Any] | None = None) -> float:
    """γ: a number, "scale" = 1/(n · Var X), or "auto" = 1/n."""
    n = int(X.shape[1])
    if isinstance(gamma, str):
        if gamma == "auto":
            return 1.0 / n
        check_choice("gamma", gamma, ("scale", "auto"), "or a positive number")
        variance = variance_of(X, weight)
        return 1.0 / (n * variance) if variance > 0 else 1.0
    check_number("gamma", gamma, 0.0, open_low=True)
    return float(gamma)


def is_precomputed(kernel: Any) -> bool:
    """Whether X is a kernel matrix."""
    return isinstance(kernel, str) and kernel == "precomputed"


def kernel_of(estimator: Any, X: Any, columns: npt.NDArray[Any], weight: npt.NDArray[Any] | None = None) -> Kernel:
    """The kernel that the parameters of an estimator or transformer describe.

    Parameters that are None or missing have the defaults of `SVC`; `columns` are those of a precomputed kernel.
    """
    given = {name: getattr(estimator, name, None) for name in ("kernel", "gamma", "degree", "coef0")}
    if is_precomputed(given["kernel"]):
        return Precomputed(columns)
    chosen: dict[str, Any] = {"kernel": "rbf", "gamma": "scale", "degree": 3, "coef0": 0.0}
    chosen |= {name: value for name, value in given.items() if value is not None}
    return kernel_by_name(**chosen | {"gamma": gamma_of(chosen["gamma"], X, weight)})


def exact_points(X: Any, kernel: Kernel) -> Points | SparsePoints:
    """The rows of a matrix as points of an exact machine, sparse if few of their entries are stored."""
    if hasattr(X, "tocsr") and not isinstance(kernel, Precomputed) and SPARSE_SHARE * X.nnz < X.shape[0] * X.shape[1]:
        return sparse_points(X, np.dtype(np.float64))
    return points_of(X, kernel, np.dtype(np.float64))


def points_of(X: Any, kernel: Kernel, precision: np.dtype[Any]) -> Points:
    """The rows of a matrix as points of a kernel; a precomputed one needs only their number."""
    if isinstance(kernel, Precomputed):
        return as_points(np.empty((X.shape[0], 0), precision))
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return as_points(dense, precision, centred=isinstance(kernel, Gaussian))


def components_of(n_components: Any, m: int) -> int:
    """The number of features: as given, or the number of rows up to `COMPONENTS`."""
    if n_components is None:
        return min(COMPONENTS, m)
    check_integer("n_components", n_components)
    return int(n_components)


def given_points(landmarks: Any, n: int) -> Any:
    """Landmarks given by the user, after validation."""
    points = landmarks if hasattr(landmarks, "tocsr") else np.asarray(landmarks)
    if len(points.shape) != 2 or points.dtype.kind not in "biuf" or points.shape[0] == 0:
        raise ValueError(
            "landmarks must be 'kmeans', 'uniform', in a classifier 'margin', or a matrix of points, got "
            + (repr(landmarks) if len(points.shape) == 0 else f"an array of shape {points.shape} and {points.dtype}")
        )
    if points.shape[1] != n:
        raise ValueError(f"landmarks have {points.shape[1]} features, but X has {n}")
    if not np.isfinite(points.data if hasattr(points, "tocsr") else points).all():
        raise ValueError("landmarks contain NaN or infinity")
    return points


class FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of both transformers; `build` of a derived class makes the map."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks and factorise their kernel matrix, or draw the frequencies.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        X = check_matrix(self, X)
        rows = as_block(X)
        self.map_, landmarks = self.build(X, rows, precision_for(rows), draw_seed(self.random_state))
        if landmarks is not None:
            self.landmarks_, self.eigenvalues_ = landmarks, self.map_.eigenvalues
        return self

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """φ(x) for every row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32 for float32 input
        """
        check_is_fitted(self, "map_")
        rows = as_block(check_matrix(self, X, reset=False))
        precision = precision_for(rows)
        needed = rows.shape[0] * self.map_.n_components * precision.itemsize
        check_fits(needed, "the mapped features", "transform fewer rows at a time, or use fewer components")
        with thread_pool(self.n_jobs) as threads:
            return feature_matrix(self.map_, rows, threads, precision)

    @property
    def _n_features_out(self) -> int:
        return int(self.map_.n_components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Nystroem(FeatureTransformer):
    """Nyström features: φ(x) = D^{-1/2} Qᵀ k(S, x) with K_SS = Q D Qᵀ for landmarks S.

    Inside an `SVC`, parameters that are None, and the threads, are those of the classifier.

    Parameters
    ----------
    n_components : int or None, default=None
        The number s of landmarks. None is 512, or the number of rows if there are fewer.
    landmarks : {"kmeans", "uniform", "margin"}, array of shape (s, n_features) or None, default=None
        "kmeans" takes cluster centres of a sample of rows, "uniform" rows drawn uniformly. "margin" takes cluster
        centres near the margin of a pilot classifier, in an `SVC` of two classes. None is "margin" there and "kmeans"
        elsewhere.
    kernel : {"rbf", "laplacian", "chi2", "poly", "linear", "precomputed"} or function or None, default=None
        None is "rbf". A function takes two matrices and returns the matrix of k(x, y).
    gamma : {"scale", "auto"}, float or None, default=None
        γ. None and "scale" are 1/(n_features · Var X), "auto" is 1/n_features.
    degree, coef0 : int, float or None, default=None
        Parameters of the polynomial kernel; None is 3 and 0.
    threshold : float or None, default=None
        Eigenvalues below this share of the largest are dropped. None is ten times the machine precision, below which
        they are mostly rounding errors.
    rank : int or None, default=None
        The maximum number d of eigenvalues to keep.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Number of threads: None is one (in addition to those of BLAS), -1 all cores.

    Attributes
    ----------
    map_ : NystroemMap
    landmarks_ : array of shape (s, n_features)
    eigenvalues_ : ndarray of shape (d,)
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import Nystroem
    >>> X, _ = make_classification(200, 5, random_state=0)
    >>> Nystroem(n_components=50, gamma=0.1, random_state=0).fit_transform(X).shape
    (200, 50)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        landmarks: Any = None,
        kernel: Any = None,
        gamma: Any = None,
        degree: int | None = None,
        coef0: float | None = None,
        threshold: float | None = None,
        rank: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def build(
        self, X: Any, rows: Block, precision: np.dtype[Any], seed: int, weight: npt.NDArray[Any] | None = None
    ) -> tuple[NystroemMap, Any]:
        """The map for validated rows, and its landmarks."""
        m, n = rows.shape
        rng = np.random.default_rng(seed)
        check_number("threshold", self.threshold, 0.0, none=True)
        check_integer("rank", self.rank, none=True)
        how: Any = "kmeans" if self.landmarks is None else self.landmarks
        given = not isinstance(how, str)
        if given:
            how = given_points(how, n)
        s = how.shape[0] if given else components_of(self.n_components, m)
        if not given and s > m:
            warn(f"n_components={s} is more than the {m} rows to take landmarks from: {m} are taken", UserWarning)
            s = m
        check_fits(3 * 8 * s * s, f"the kernel matrix of {s} landmarks", "use fewer components")
        if is_precomputed(self.kernel):
            if m != n:
                raise ValueError(f"a precomputed kernel must be a square matrix, got {m} × {n}")
            if given:
                raise ValueError("with a precomputed kernel, landmarks can only be drawn from its rows ('uniform')")
            landmarks: Any = draw_rows(m, s, rng, weight)
            points_from = X[landmarks]
        else:
            landmarks = points_from = choose_landmarks(X, s, how, rng, weight)
        kernel = kernel_of(self, X, landmarks, weight)
        points = points_of(points_from, kernel, precision)
        return fit_nystroem(kernel, as_block(points_from), points, self.threshold, self.rank), landmarks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


class FourierFeatures(FeatureTransformer):
    """Random Fourier features: cosines of random projections, whose inner products approximate a kernel.

    Inside an `SVC`, parameters that are None, and the threads, are those of the classifier.

    Parameters
    ----------
    n_components : int or None, default=None
        The number d of features. None is 512.
    kernel : {"rbf", "laplacian"} or None, default=None
        None is "rbf".
    gamma : {"scale", "auto"}, float or None, default=None
        γ. None and "scale" are 1/(n_features · Var X), "auto" is 1/n_features.
    frequencies : {"orthogonal", "iid"}, default="orthogonal"
        Orthogonal in groups of n_features, which reduces the variance, or independent, as in the paper.
    form : {"pair", "offset"}, default="pair"
        cos and sin of d/2 frequencies, or cos(⟨ν, x⟩ + β) of d frequencies, as in the paper.
    random_state : int, RandomState instance or None, default=None
        Seed of the frequencies, which otherwise depend only on the numbers of features.
    n_jobs : int or None, default=None
        Number of threads: None is one (in addition to those of BLAS), -1 all cores.

    Attributes
    ----------
    map_ : FourierMap
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from primalsvm import FourierFeatures
    >>> X, _ = make_classification(200, 5, random_state=0)
    >>> FourierFeatures(n_components=64, gamma=0.1, random_state=0).fit_transform(X).shape
    (200, 64)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = None,
        gamma: Any = None,
        frequencies: Frequencies = "orthogonal",
        form: Form = "pair",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def build(
        self, X: Any, rows: Block, precision: np.dtype[Any], seed: int, weight: npt.NDArray[Any] | None = None
    ) -> tuple[FourierMap, None]:
        """The map for validated rows; it has no landmarks."""
        check_choice("frequencies", self.frequencies, ("orthogonal", "iid"))
        check_choice("form", self.form, ("pair", "offset"))
        if self.kernel is not None:
            check_choice("kernel", self.kernel, ("rbf", "laplacian"), "(these have Fourier features)")
        n = rows.shape[1]
        d = COMPONENTS if self.n_components is None else components_of(self.n_components, 0)
        check_fits(3 * 8 * n * d, f"{d} frequencies in {n} dimensions", "use fewer components")
        kernel = kernel_of(self, X, np.empty(0), weight)
        rng = np.random.default_rng(seed)
        return fourier_map(kernel, n, d, rng, precision, self.frequencies, self.form), None
