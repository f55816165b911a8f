"""A pilot classifier with few rows and few landmarks, which estimates the margins of the other rows."""

from typing import Any

import numpy as np
from sklearn.base import clone

from primalsvm.data import EQUAL_WEIGHTS, Dense, InMemory, Mapped, Vector
from primalsvm.estimators.landmarks import draw_rows, weights_near_margin
from primalsvm.estimators.transformers import Nystroem, components_of, is_precomputed
from primalsvm.maps.features import feature_matrix
from primalsvm.objective import Problem
from primalsvm.solution import Status
from primalsvm.solvers.drive import drive
from primalsvm.solvers.newton import Newton
from primalsvm.solvers.several import Several, Single
from primalsvm.solvers.stops import Stops

ROWS = 10_000  # that it is fitted to
LANDMARKS = 256
ACCURACY = 1e-2  # its relative gap
CANDIDATES = 100_000  # rows whose margins it predicts
SPANNED = 0.9  # share of its eigenvalues above rounding; if there are fewer, its landmarks span the kernel
SINGLE = np.dtype(np.float32)


def margin_landmark_weights(
    approximation: Nystroem, problem: Problem, X: Any, data: InMemory, y: Vector, seed: int, weight: Vector | None
) -> Vector | None:
    """Weights with which landmarks are drawn near the margin; the given ones if a pilot would not help."""
    m, threads = data.shape[0], data.threads
    if components_of(approximation.n_components, m) <= LANDMARKS or m <= ROWS or is_precomputed(approximation.kernel):
        return weight
    rng = np.random.default_rng(seed)
    counting = np.arange(m) if weight is None else np.flatnonzero(weight)
    if counting.size <= LANDMARKS:
        return weight
    some = counting[draw_rows(counting.size, ROWS, rng)]
    few = clone(approximation).set_params(n_components=LANDMARKS, landmarks="uniform", rank=None)
    rows = data.take(some)
    feature_map, _ = few.build(X[some], rows, SINGLE, seed)
    if feature_map.n_components < SPANNED * LANDMARKS or np.unique(y[some]).size < 2:
        return weight
    features = InMemory(Dense(feature_matrix(feature_map, rows, threads, SINGLE)), data.weights.take(some), threads)
    (pilot,) = drive(Single(problem.on(features, y[some])), Several(Newton()), Stops(ACCURACY, 100))
    if pilot.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    candidates = counting[draw_rows(counting.size, CANDIDATES, rng)]
    near: Any = data.block if candidates.size == m else data.take(candidates)
    kernel_values, alpha = feature_map.scorer(pilot.w)
    margins = y[candidates] * (Mapped(kernel_values, near, alpha.dtype, EQUAL_WEIGHTS, threads).scores(alpha) + pilot.b)
    found = np.zeros(m)
    found[candidates] = weights_near_margin(margins) * (1.0 if weight is None else weight[candidates])
    return found
