"""The certificate of a Nyström machine in the problem of the kernel itself.

    w = Σ_l α_l φ(t_l) over landmarks t_l is a point of the kernel's own space, with the scores of the machine:
    P = λ/2 αᵀ K_SS α + (1/Σc) Σ cᵢ ℓ(yᵢ, scoreᵢ + b)
    D = max over 0 ≤ t ≤ 1 of D(t α),  α = −ℓ' at the scores of the machine, balanced

so P is that of the mapped problem up to rounding, and D a lower bound of the exact P*, loose if many slopes differ from
those at the exact solution. With `tol`, `WorkingSets` improve α.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from primalsvm.data import (
    KernelMatrix,
    Vector,
    add_kernel_scores,
    as_block,
    as_dataset,
    as_multiplicity,
    as_targets,
    thread_pool,
)
from primalsvm.estimators.encoders import Classes, Encoded
from primalsvm.estimators.loading import Rows, check_arrays
from primalsvm.estimators.parameters import memory_budget
from primalsvm.estimators.transformers import exact_points
from primalsvm.maps.kernels import Points, Precomputed, as_points, is_positive_definite
from primalsvm.maps.nystroem import NystroemMap
from primalsvm.objective import Objective, Objectives
from primalsvm.solution import Certificate
from primalsvm.solvers.drive import drive
from primalsvm.solvers.several import Several, Single
from primalsvm.solvers.stops import Stops
from primalsvm.solvers.working_sets import WorkingSets, state_at


def exact_certificates(
    classifier: Any, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, tol: float | None = None
) -> list[Certificate]:
    """The certificate of each problem of a fitted Nyström machine; see `SVC.exact_certificate`."""
    feature_map = classifier.feature_map_
    if not isinstance(feature_map, NystroemMap):
        raise ValueError(
            f"approximation={classifier.approximation_!r} has no certificate of the exact problem: only the w of "
            "Nyström features lies in the space of the kernel, as a sum over landmarks; that of other features does not"
        )
    with thread_pool(classifier.n_jobs) as threads:
        X, y = check_arrays(classifier, X, y, reset=False)
        data = as_dataset(X, sample_weight, threads=threads)
        m = data.shape[0]
        if m != classifier.n_samples_fit_:
            raise ValueError(f"the machine was fitted to {classifier.n_samples_fit_} rows, but X has {m}")
        rows = Rows(X, as_targets(y), data, as_multiplicity(sample_weight, m))
        encoded = classifier._task.encode(classifier, rows)
        if isinstance(encoded.decoder, Classes) and not np.array_equal(encoded.decoder.classes, classifier.classes_):
            raise ValueError(f"y has other classes than the machine, {classifier.classes_.tolist()}")
        kernel = feature_map.kernel
        if not is_positive_definite(kernel):
            raise ValueError(
                f"kernel={classifier.kernel!r} is not positive definite: its own problem is not convex, and has no "
                "certificate"
            )
        kernel = Precomputed(np.arange(m)) if isinstance(kernel, Precomputed) else kernel
        points = exact_points(X, kernel)
        matrix = KernelMatrix(kernel, data.block, points, memory_budget(classifier), encoded.data.weights, threads)
        objectives = Objectives(encoded.problem, matrix, encoded.Y)
        alpha, landmarks = classifier.landmark_coef_, in_double(feature_map.points)
        scores = np.zeros((m, alpha.shape[0]))
        add_kernel_scores(feature_map.kernel, data.block, landmarks, np.ascontiguousarray(alpha.T), threads, scores)
        squares = squared_norms(feature_map.kernel, landmarks, X, alpha)
        return [
            certificate_of(objectives[k], scores[:, column], classifier.intercept_[column], squares[column], tol)
            for k, column in enumerate(columns_of(encoded))
        ]


def columns_of(encoded: Encoded) -> Any:
    """The problem of the machine that each column of Y belongs to: labels that do not vary have none."""
    decoder = encoded.decoder
    return range(encoded.count) if isinstance(decoder, Classes) or decoder is None else decoder.varying


def in_double(points: Points) -> Points:
    """The same points in double precision."""
    return as_points(points.columns.T, np.dtype(np.float64))._replace(centre=points.centre)


def squared_norms(kernel: Any, landmarks: Points, X: Any, alpha: Vector) -> Vector:
    """αᵀ K_SS α of each line of α."""
    own = X[kernel.columns] if isinstance(kernel, Precomputed) else np.ascontiguousarray(landmarks.columns.T)
    gram = kernel.between(as_block(own), landmarks._replace(centre=None))
    found: Vector = np.einsum("ks,st,kt->k", alpha, gram, alpha, optimize=True)
    return found


def certificate_of(objective: Objective, scores: Vector, b: float, square: float, tol: float | None) -> Certificate:
    """The certificate of one problem, given the machine's scores without b, and ‖w‖²."""
    scores = np.ascontiguousarray(scores)
    primal = float(objective.problem.penalty(square, b)) + objective.mean_loss(scores, b)
    alpha = objective.balance_alpha(objective.clip_alpha(-objective.slopes_at(scores, b)))
    step, dual = best_scale(objective, alpha)
    if tol is not None:
        start = state_at(objective, step * alpha)
        (solution,) = drive(Single(objective), Several(WorkingSets()), Stops(tol), start=[start])
        assert solution.certificate is not None
        dual = max(dual, solution.certificate.dual)
    return Certificate.of(primal, dual)


def best_scale(objective: Objective, alpha: Vector) -> tuple[float, float]:
    """The t in [0, 1] with the largest D(t α), and that D."""
    w, b = objective.primal_point(alpha)
    square = objective.squared_norm(w)

    def dual(t: float) -> float:
        return objective.conjugate_sum(t * alpha) / objective.total - t * t * float(
            objective.problem.penalty(square, b)
        )

    found = minimize_scalar(lambda t: -dual(t), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6})
    return float(found.x), -float(found.fun)
