"""Saving and loading estimators: which of their attributes a model file holds, and how they are checked."""

import os
import reprlib
from typing import Any

import numpy as np

import primalsvm
from primalsvm.data import thread_count
from primalsvm.estimators.calibration import Isotonic, Sigmoid
from primalsvm.estimators.classification import Classifier
from primalsvm.estimators.earlier_files import in_todays_terms
from primalsvm.estimators.estimator import Estimator
from primalsvm.estimators.features import KernelFeatures
from primalsvm.estimators.parameters import check_parameters
from primalsvm.estimators.pipeline import fitted_names
from primalsvm.estimators.registry import ESTIMATORS, TRANSFORMERS
from primalsvm.losses.registry import LOSSES
from primalsvm.maps import kernels
from primalsvm.maps.fourier import FourierMap
from primalsvm.maps.nystroem import KernelValues, NystroemMap
from primalsvm.maps.registry import KERNELS, MAPS
from primalsvm.persistence import ModelError, read_model, reason, write_model
from primalsvm.solution import TRACE_DTYPE, Certificate, Status
from primalsvm.solvers.registry import SOLVERS
from primalsvm.sources.layout import SvmlightLayout, TableLayout

OTHERS = (kernels.Points, kernels.SparsePoints, Certificate, Status, SvmlightLayout, TableLayout, Sigmoid, Isotonic)


def known_parts() -> dict[str, type]:
    """The classes whose objects may be part of a model."""
    others = {part.__name__: part for part in OTHERS}
    return {**LOSSES, **SOLVERS, **KERNELS, **MAPS, **TRANSFORMERS, **others}


def save_estimator(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write the parameters and fitted attributes of an estimator, but not the state of its stream."""
    kind = type(estimator).__name__
    if ESTIMATORS.get(kind) is not type(estimator):
        raise ModelError(f"{kind} is not one of the estimators that can be saved: {sorted(ESTIMATORS)}")
    if not hasattr(estimator, "intercept_"):
        raise ModelError(f"this {kind} is not fitted yet: there is nothing to save")
    learnt = {name: getattr(estimator, name) for name in fitted_names(estimator)}
    learnt.pop("history_", None)  # it holds seconds; without it the same fit gives the same file
    parameters = estimator.get_params(deep=False)
    parameters |= {name: None for name in ("checkpoint", "memory") if name in parameters}  # of the run, not the model
    content = {"parameters": parameters, "learnt": learnt}
    write_model(path, kind, content, known_parts(), primalsvm.__version__)


def load(path: str | os.PathLike[str]) -> Estimator:
    """Load a model file written by `save`.

    Parameters
    ----------
    path : the file

    Raises
    ------
    primalsvm.persistence.ModelError
        If the file is not a model, is damaged, or is of a later version.
    """
    model = read_model(path, ESTIMATORS, known_parts())
    try:
        parameters = model.content["parameters"]
        estimator = ESTIMATORS[model.kind](**parameters)
        for name, value in in_todays_terms(model.kind, parameters, model.content["learnt"]).items():
            if not name.endswith("_") or name.startswith("_"):
                raise ModelError(f"{name!r} is nothing that is learnt")
            setattr(estimator, name, value)
        check_loaded(estimator)
    except Exception as error:  # invalid parameters and parts may raise anything
        raise ModelError(f"{path} is damaged: {reason(error)}") from None
    return estimator


def check_loaded(estimator: Any) -> None:
    """Check the types and shapes that predictions, and in particular compiled kernels, rely on."""
    check_parameters(estimator)
    thread_count(estimator.n_jobs)
    n = _count(estimator.n_features_in_, "features")
    problems = 1
    if isinstance(estimator, Classifier):
        classes: Any = estimator.classes_
        _require(
            isinstance(classes, np.ndarray) and classes.ndim == 1 < len(classes), "there must be two classes or more"
        )
        estimator.multilabel_ = getattr(estimator, "multilabel_", False)  # missing in files of earlier versions
        _require(isinstance(estimator.multilabel_, bool), "whether it has labels must be true or false")
        problems = len(classes) if len(classes) > 2 or estimator.multilabel_ else 1
        if getattr(estimator, "calibration_", None) is not None:
            _check_probabilities(estimator.calibration_, problems)
    if isinstance(estimator._features, KernelFeatures):
        problems = _check_expansion(estimator, n, problems)
    else:
        _expect(estimator.coef_, (n,) if estimator._coef_is_vector else (problems, n), "coef_", (np.float64,))
    _expect(estimator.intercept_, (problems,), "intercept_")
    names = getattr(estimator, "feature_names_in_", None)
    named = isinstance(names, np.ndarray) and names.shape == (n,) and all(isinstance(name, str) for name in names)
    _require(names is None or named, "the names of the features do not agree with their number")
    layout = getattr(estimator, "layout_", None)
    same = layout.n_features == n if isinstance(layout, TableLayout) else isinstance(layout, SvmlightLayout | None)
    _require(same, "its layout is not one, or has another number of features")
    _check_fit_report(estimator)


def _check_expansion(estimator: Any, n: int, problems: int) -> int:
    """Check the coefficients of a kernel machine of so many classes or labels; returns the number of its problems."""
    d, lines = _components(estimator.feature_map_, n), problems
    multiclass = getattr(estimator, "multiclass_", "ovr")
    _require(multiclass in ("ovr", "ovo"), "its problems are neither one-vs-rest nor one-vs-one")
    if multiclass == "ovo":
        _require(
            isinstance(estimator.feature_map_, KernelValues) and problems > 2, "only exact machines are one-vs-one"
        )
        counts = estimator.n_support_
        agree = isinstance(counts, np.ndarray) and counts.shape == (problems,) and counts.dtype.kind in "iu"
        agree = agree and counts.min() >= 0 and counts.sum() == d
        _require(agree, "the numbers of support vectors do not agree with their coefficients")
        lines, problems = problems - 1, problems * (problems - 1) // 2
    _expect(estimator.feature_coef_, (lines, d), "the coefficients", (np.dtype("f8"),))
    return problems


def _check_probabilities(calibration: Any, problems: int) -> None:
    counted = isinstance(calibration, list) and len(calibration) == problems
    _require(counted, "its probabilities do not agree with its classes")
    for one in calibration:
        if isinstance(one, Isotonic):
            shape = np.shape(one.scores)
            _expect(one.scores, shape if len(shape) == 1 and shape[0] else (1,), "the knots of a probability")
            _expect(one.probabilities, shape, "a probability at its knots")
        else:
            known = isinstance(one, Sigmoid) and type(one.a) is type(one.b) is float and np.isfinite(one).all()
            _require(known, "one of its probabilities is no function that is known")


def _check_fit_report(estimator: Any) -> None:
    """Check the report of the fit, parts of which are missing after a stream."""
    kinds = [float, float, float, float, bool]
    for certificate in (estimator.certificate_, *getattr(estimator, "certificates_", ())):
        proof = isinstance(certificate, Certificate) and [type(value) for value in certificate] == kinds
        _require(certificate is None or proof, "its certificate is not one")
    _require(isinstance(getattr(estimator, "status_", Status.FINISHED), Status), "its status is not one")
    if hasattr(estimator, "history_"):
        _require(getattr(estimator.history_, "dtype", None) == TRACE_DTYPE, "its history is not one")


def _components(feature_map: Any, n: int) -> int:
    """Check a map of n features, and return its number of components."""
    if isinstance(feature_map, FourierMap):
        d, count = _count(feature_map.n_components, "Fourier features"), len(feature_map.offsets)
        _expect_points(feature_map.frequencies, n, count, "frequencies")
        _expect(feature_map.offsets, (count,), "the offsets", (feature_map.frequencies.columns.dtype,))
        _require(count <= d <= 2 * count, "the numbers of frequencies and of features do not agree")
        return d
    if not isinstance(feature_map, NystroemMap | KernelValues):
        usable = hasattr(feature_map, "n_components") and hasattr(feature_map, "block")
        _require(usable, "its feature map is of an unknown kind")
        return _count(feature_map.n_components, "features of its map")
    kernel, points = feature_map.kernel, feature_map.points
    _require(type(kernel) in KERNELS.values(), "its kernel is of an unknown kind")
    _require(isinstance(points, kernels.Points | kernels.SparsePoints), "its landmarks are not points")
    width, s = points.shape
    if isinstance(feature_map, NystroemMap):
        _count(s, "landmarks")
    _expect_points(points, width if isinstance(kernel, kernels.Precomputed) else n, s, "landmarks")
    if isinstance(kernel, kernels.Precomputed):
        chosen: Any = kernel.columns
        agree = isinstance(chosen, np.ndarray) and chosen.shape == (s,) and chosen.dtype.kind in "iu"
        _require(agree, "the columns of the precomputed kernel do not agree with the landmarks")
        _require(((chosen >= 0) & (chosen < n)).all(), "a column of the precomputed kernel is outside the matrix")
    if isinstance(feature_map, NystroemMap):
        _expect(feature_map.whitening, (s, _count(feature_map.n_components, "Nyström features")), "the whitening")
    return feature_map.n_components


def _require(fine: Any, problem: str) -> None:
    if not fine:
        raise ModelError(problem)


def _count(given: Any, what: str) -> int:
    whole = type(given) is int and given >= 1
    _require(whole, f"the number of {what} must be a whole number of at least 1, not {reprlib.repr(given)}")
    return int(given)


def _expect(
    array: Any, shape: tuple[int, ...], what: str, dtypes: tuple[Any, ...] = (np.dtype("f4"), np.dtype("f8"))
) -> None:
    good = isinstance(array, np.ndarray) and array.shape == shape and array.dtype in dtypes
    _require(good, f"{what} must be an array of shape {shape} of floating-point numbers, in the precision it had")
    _require(np.isfinite(array).all(), f"{what} must be finite")


def _expect_points(points: Any, n: int, s: int, what: str) -> None:
    if isinstance(points, kernels.SparsePoints):
        _expect_sparse_points(points, n, s, what)
        return
    _require(isinstance(points, kernels.Points), f"the {what} are not points")
    _expect(points.columns, (n, s), f"the {what}")
    _expect(points.squared_norms, (s,), f"the norms of the {what}")
    if points.centre is not None:
        _expect(points.centre, (n,), f"the centre of the {what}")


def _expect_sparse_points(points: kernels.SparsePoints, n: int, s: int, what: str) -> None:
    matrix = points.matrix
    _require(hasattr(matrix, "tocsr") and matrix.shape == (s, n), f"the {what} are not {s} rows of {n} features")
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ModelError(f"the {what} are not a valid matrix: {error}") from None
    _expect(matrix.data, matrix.data.shape, f"the {what}")
    _expect(points.squared_norms, (s,), f"the norms of the {what}")
