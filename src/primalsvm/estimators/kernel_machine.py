"""The fitted attributes of estimators with a kernel, with the names, signs and shapes of scikit-learn.

    score(x) = Σⱼ βⱼ k(xⱼ, x) + b          exact: βⱼ = `dual_coef_`, xⱼ = `support_vectors_`, at most C in size
    score(x) = ⟨w, φ(x)⟩ + b               approximate: w = `feature_coef_`, φ = `feature_map_`

The linear kernel has `coef_` = Σⱼ βⱼ xⱼ as well, for each pair of classes of an exact machine.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from primalsvm.estimators.expansion import pair_expansions
from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.kernels import Linear, Precomputed
from primalsvm.maps.nystroem import KernelValues, NystroemMap
from primalsvm.one_vs_one import class_pairs
from primalsvm.solution import Status

NAMES = {KernelValues: "exact", NystroemMap: "nystroem", FourierMap: "fourier"}


class KernelMachine:
    """Mixin of estimators with a kernel; of what `fit` stores it uses `feature_map_`, `feature_coef_` and `status_`."""

    feature_map_: Any
    feature_coef_: Any
    landmark_coef_: Any
    support_: Any
    n_support_: Any
    sparse_fit_ = False  # whether an exact machine was fitted to sparse rows
    status_: Status
    n_samples_fit_: int
    n_features_in_: int

    @property
    def approximation_(self) -> str:
        """What `approximation` has come to mean: "exact", "nystroem", "fourier", or the name of another map's class."""
        kind = type(self.feature_map_)
        return NAMES.get(kind, kind.__name__)

    @property
    def fit_status_(self) -> int:
        """0 if the fit ended as it should, 1 if it fell short of `tol`."""
        return int(self.status_.fell_short)

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """The shape of the training rows."""
        return self.n_samples_fit_, self.n_features_in_

    @property
    def support_vectors_(self) -> Any:
        """The support vectors of an exact machine, sparse if it was fitted to sparse rows; empty if precomputed."""
        check_exact(self, "support_vectors_")
        if isinstance(self.feature_map_.kernel, Precomputed):
            return np.empty((0, 0))
        vectors = self.feature_map_.points.matrix
        return sp.csr_matrix(vectors) if self.sparse_fit_ else np.ascontiguousarray(vectors)

    @property
    def dual_coef_(self) -> Any:
        """The coefficients of the support vectors of an exact machine, in the layout of LIBSVM."""
        check_exact(self, "dual_coef_")
        return sp.csr_matrix(self.feature_coef_) if self.sparse_fit_ else self.feature_coef_

    @property
    def coef_(self) -> Any:
        """w in the space of the rows, for the linear kernel: a line for each problem."""
        kernel = getattr(self.feature_map_, "kernel", None)
        if not isinstance(kernel, Linear):
            raise AttributeError("coef_ is available for the linear kernel only: feature_coef_ is w in the features")
        points = self.feature_map_.points.matrix
        if self.approximation_ != "exact":
            W = self.landmark_coef_ @ points
        elif getattr(self, "multiclass_", "ovr") == "ovo":
            W = pair_expansions(self.feature_coef_, class_pairs(len(self.n_support_)), self.n_support_) @ points
        else:
            W = self.feature_coef_ @ points
        W.flags.writeable = False  # a change would have no effect
        return sp.csr_matrix(W) if self.sparse_fit_ else W


def check_exact(estimator: Any, name: str) -> None:
    """Raise an AttributeError if a machine is approximate, or not fitted."""
    if not hasattr(estimator, "feature_map_"):
        raise AttributeError(f"this {type(estimator).__name__} is not fitted yet: it has no {name}")
    if estimator.approximation_ != "exact":
        raise AttributeError(
            f"a machine with approximation {estimator.approximation_!r} has no {name}, as its w is not a sum over "
            "training rows: approximation='exact' has"
        )
