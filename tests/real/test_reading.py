"""Real files of svmlight text read as scikit-learn reads them."""

import bz2
import lzma
from io import BytesIO

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from primalsvm.sources.svmlight import read_svmlight
from tests.real.datasets import folder

FILES = ("a9a/*.xz", "ijcnn1/*.bz2", "letter/*.xz", "sector/*.xz", "lambdarank/*.xz")


def candidates():
    place = folder()
    return [] if place is None else sorted(path for name in FILES for path in place.glob(name) if path.is_file())


@pytest.mark.parametrize("path", candidates() or [None], ids=str)
def test_as_scikit_learn_reads_it(path):
    if path is None:
        pytest.skip("PRIMALSVM_DATA names no folder of data sets")
    opened = {".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)(path, "rb")
    with opened:
        content = opened.read()
    try:
        X, y = load_svmlight_file(BytesIO(content))
    except Exception:  # whatever it refuses a file with: there is nothing to compare then
        pytest.skip("scikit-learn does not accept this file")
    found = read_svmlight(path)
    assert found.X.shape == X.shape and (found.X != X).nnz == 0
    np.testing.assert_array_equal(found.y, y)
