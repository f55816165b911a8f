"""A pilot classifier: the same problem on few rows and few landmarks, which tells where the margin is."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from primalsvm.estimators.landmarks import draw_rows, margin_weights
from primalsvm.estimators.transformers import Nystroem, components_of, is_precomputed
from primalsvm.maps.features import mapped, scores
from primalsvm.objective import Problem
from primalsvm.rows import Batch, Dense, in_memory, shape, take_batch
from primalsvm.solution import Status
from primalsvm.solvers.drive import Stops, drive
from primalsvm.solvers.newton import Newton
from primalsvm.team import team_for

ROWS = 10_000
LANDMARKS = 256
ACCURACY = 1e-2
CANDIDATES = 100_000  # rows whose margins the pilot tells
SPANNED = 0.9  # share of the pilot's points that are not rounding, below which they span the kernel
SINGLE = np.dtype(np.float32)


def towards_the_margin(
    approximation: Nystroem,
    problem: Problem,
    X: Any,
    batch: Batch,
    seed: int,
    weight: npt.NDArray[Any] | None,
    n_jobs: int | None,
) -> npt.NDArray[Any] | None:
    """Weights by which landmarks are drawn near the margin; the given ones where a pilot would be of no use."""
    m = shape(batch.rows)[0]
    if components_of(approximation.n_components, m) <= LANDMARKS or m <= ROWS or is_precomputed(approximation.kernel):
        return weight
    rng = np.random.default_rng(seed)
    counting = np.arange(m) if weight is None else np.flatnonzero(weight)
    if counting.size <= LANDMARKS:
        return weight
    some = counting[draw_rows(counting.size, ROWS, rng)]
    pilot = take_batch(batch, some)
    few = clone(approximation).set_params(n_components=LANDMARKS, landmarks="uniform", rank=None)
    feature_map, _ = few.build(X[some], in_memory(pilot.rows), SINGLE, seed)
    if feature_map.n_components < SPANNED * LANDMARKS or np.unique(pilot.y).size < 2:
        return weight
    with team_for(n_jobs) as team:
        features = Dense(mapped(feature_map, in_memory(pilot.rows), team, SINGLE))
        found = drive(problem, pilot._replace(rows=features), Newton(), Stops(ACCURACY, 100), n_jobs=n_jobs)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        candidates = counting[draw_rows(counting.size, CANDIDATES, rng)]
        judged = batch if candidates.size == m else take_batch(batch, candidates)
        kernel_values, alpha = feature_map.scorer(found.w)
        margins = judged.y * (scores(kernel_values, alpha, in_memory(judged.rows), team) + found.b)
    towards = np.zeros(m)
    towards[candidates] = margin_weights(margins) * (1.0 if weight is None else weight[candidates])
    return towards
