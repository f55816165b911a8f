"""Saving estimators, and loading them: which of their parts go into a model file, and what has to agree."""

import os
from typing import Any

import numpy as np

import primalsvm
from primalsvm import losses
from primalsvm.estimators.classifier import MarginClassifier
from primalsvm.estimators.linear_svc import LinearSVC
from primalsvm.estimators.svc import SVC
from primalsvm.estimators.transformers import FourierFeatures, Nystroem
from primalsvm.maps import kernels
from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.nystroem import KernelValues, NystroemMap
from primalsvm.persistence import ModelError, read_model, write_model
from primalsvm.solution import Certificate, Status
from primalsvm.solvers.asset import Asset
from primalsvm.solvers.dual_ascent import DualAscent
from primalsvm.solvers.kernel_pegasos import KernelPegasos
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.pegasos import Pegasos

ESTIMATORS: dict[str, type[MarginClassifier]] = {"LinearSVC": LinearSVC, "SVC": SVC}
PARTS = (
    *(losses.Hinge, losses.SmoothedHinge, losses.SquaredHinge, losses.Logistic),
    *(Asset, DualAscent, KernelPegasos, Newton, Pegasos),
    *(kernels.Gaussian, kernels.Laplacian, kernels.ChiSquared, kernels.Polynomial, kernels.Linear, kernels.Precomputed),
    *(kernels.Points, FourierMap, KernelValues, NystroemMap, FourierFeatures, Nystroem),
    *(Certificate, Status),
)
KNOWN: dict[str, type] = {part.__name__: part for part in PARTS}


def save_estimator(estimator: MarginClassifier, path: str | os.PathLike[str]) -> None:
    """Write the parameters of an estimator and what it has learnt. Not its stream: a `partial_fit` later begins one."""
    kind = type(estimator).__name__
    if ESTIMATORS.get(kind) is not type(estimator):
        raise ModelError(f"{kind} is not one of the estimators that can be saved: {sorted(ESTIMATORS)}")
    if not hasattr(estimator, "coef_"):
        raise ModelError(f"this {kind} is not fitted yet: there is nothing to save")
    learnt = {name: value for name, value in vars(estimator).items() if name.endswith("_") and name[0] != "_"}
    learnt.pop("history_", None)  # it tells seconds: the same fit shall give the same file
    parameters = estimator.get_params(deep=False)
    parameters["checkpoint"] = None  # of the run, not of the model
    content = {"parameters": parameters, "learnt": learnt}
    write_model(path, kind, content, KNOWN, primalsvm.__version__)


def load(path: str | os.PathLike[str]) -> MarginClassifier:
    """Load a model that `save` has written.

    Parameters
    ----------
    path : the file

    Raises
    ------
    primalsvm.persistence.ModelError
        If the file is not a model, is damaged, or is of a later version.
    """
    model = read_model(path, ESTIMATORS, KNOWN)
    try:
        estimator = ESTIMATORS[model.kind](**model.content["parameters"])
        for name, value in model.content["learnt"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ModelError(f"{name!r} is nothing that is learnt")
            setattr(estimator, name, value)
        agree(estimator)
    except (ModelError, TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
        raise ModelError(f"{path} is damaged: {error}") from None
    return estimator


def agree(estimator: Any) -> None:
    """Check that all arrays have the shapes that compiled kernels rely on."""
    n = estimator.n_features_in_
    d = n
    if isinstance(estimator, SVC):
        feature_map = estimator.feature_map_
        if isinstance(feature_map, FourierMap):
            count = feature_map.offsets.shape[0]
            d = feature_map.n_components
            _expect(feature_map.frequencies, n, count, "frequencies")
            if not count <= d <= 2 * count:
                raise ModelError("the numbers of frequencies and of features do not agree")
        elif isinstance(feature_map, NystroemMap | KernelValues):
            s = feature_map.points.columns.shape[1]
            width = feature_map.points.columns.shape[0] if isinstance(feature_map.kernel, kernels.Precomputed) else n
            _expect(feature_map.points, width, s, "landmarks")
            d = feature_map.n_components
            if isinstance(feature_map, NystroemMap) and feature_map.whitening.shape != (s, d):
                raise ModelError("the whitening has another number of landmarks")
            if isinstance(feature_map.kernel, kernels.Precomputed) and not (
                feature_map.kernel.columns.shape == (s,) and feature_map.kernel.columns.min() >= 0
                and feature_map.kernel.columns.max() < n
            ):  # fmt: skip
                raise ModelError("the columns of the precomputed kernel do not agree")
        else:
            raise ModelError("its feature map is of an unknown kind")
    if estimator.coef_.shape != (1, d) or estimator.coef_.dtype != np.float64 or not np.isfinite(estimator.coef_).all():
        raise ModelError(f"coef_ must be a matrix of shape (1, {d}) of finite doubles")
    if estimator.intercept_.shape != (1,) or not np.isfinite(estimator.intercept_).all():
        raise ModelError("intercept_ must be one finite number")
    if estimator.classes_.shape != (2,):
        raise ModelError("there must be two classes")


def _expect(points: kernels.Points, n: int, s: int, what: str) -> None:
    if points.columns.shape != (n, s) or points.squared_norms.shape != (s,):
        raise ModelError(f"the {what} do not agree with the number of features")
    if points.columns.dtype not in (np.float32, np.float64) or not points.columns.flags.c_contiguous:
        raise ModelError(f"the {what} are of another kind than they should be")
    if points.centre is not None and points.centre.shape != (n,):
        raise ModelError(f"the centre of the {what} does not agree with the number of features")
