"""Sources: the same fit from arrays, from text and from a cache."""

import numpy as np
import pytest
import scipy.sparse as sp

import primalsvm
from primalsvm import SVC, LinearSVC
from primalsvm.sources.cache import CacheError
from tests.reference import sparse_noisy

X, Y = sparse_noisy(300, 40)


@pytest.mark.parametrize(
    "estimator", [LinearSVC(lam=1e-2), SVC(lam=1e-2, gamma=0.1, random_state=0)], ids=["linear", "kernel"]
)
def test_the_same_fit_from_every_source(tmp_path, rows_file, estimator):
    source = primalsvm.open(rows_file, n_features=40)
    cache = source.to_cache(tmp_path / "rows.cache")
    expected = estimator.fit(X, Y).decision_function(X)
    for from_where in (source, cache, primalsvm.open(tmp_path / "rows.cache")):
        np.testing.assert_array_equal(estimator.fit(from_where).decision_function(X), expected)


def test_to_arrays(tmp_path, rows_file):
    matrix, y = primalsvm.open(rows_file, n_features=40, dtype=np.float32).to_arrays()
    assert (matrix != X.astype(np.float32)).nnz == 0 and (y == Y).all()
    mapped, y = primalsvm.open(rows_file, n_features=40).to_cache(tmp_path / "c").to_arrays()
    assert sp.issparse(mapped) and not mapped.data.flags.owndata and (mapped != X).nnz == 0 and (y == Y).all()


def test_refusals(tmp_path, rows_file):
    with pytest.raises(FileNotFoundError, match="no file"):
        primalsvm.open(tmp_path / "not there")
    with pytest.raises(CacheError, match="not a cache"):
        LinearSVC().fit(primalsvm.open(tmp_path))
    with pytest.raises(ValueError, match="brings its own labels"):
        LinearSVC().fit(primalsvm.open(rows_file), Y)
    with pytest.raises(TypeError, match="a cache has no options"):
        primalsvm.open(tmp_path, n_features=3)
