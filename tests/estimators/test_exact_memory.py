"""Exact kernel machines within a memory budget."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from primalsvm import SVC, memory
from primalsvm.estimators.features import ROW_VECTORS
from primalsvm.solution import Status

M, N, BUDGET, TILES = 1_000_000, 10, 200e6, 2**24


@pytest.mark.slow
def test_a_million_rows_proceed_within_a_small_budget():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=M) > 0.0
    clf = SVC(approximation="exact", memory=BUDGET, max_seconds=10.0, n_jobs=2)
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning, match="stopped after 10 seconds"):
            clf.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # points in two precisions, vectors of m numbers, and tiles of each thread
    assert peak <= BUDGET + 8 * M * (1.5 * N + ROW_VECTORS) + TILES
    assert clf.status_ is Status.MAX_SECONDS
    assert clf.certificate_.dual > 0.0
    assert clf.score(X[:10_000], y[:10_000]) > 0.5


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10**6)
    X = np.random.default_rng(0).normal(size=(5_000, 4))
    with pytest.raises(MemoryError, match=r"an exact machine of 5000 rows would take .* use an approximation"):
        SVC(approximation="exact").fit(X, X[:, 0] > 0)
