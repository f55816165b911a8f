"""Features of many rows: mapped a block at a time, each row once."""

import numpy as np
import pytest

from primalsvm.inputs import as_rows
from primalsvm.maps.features import scores_of_many
from primalsvm.maps.fourier import fourier_map
from primalsvm.maps.kernels import Gaussian
from primalsvm.rows import shape
from primalsvm.team import Team


@pytest.mark.parametrize("threads", [1, 3])
def test_many_scores_map_each_row_once(threads):
    rng = np.random.default_rng(0)
    rows, W = as_rows(rng.normal(size=(1300, 4))), rng.normal(size=(3, 20))
    phi = fourier_map(Gaussian(0.5), 4, 20, rng, np.dtype(np.float64))
    seen = []

    class Counted:
        n_components = 20

        def block(self, part):
            seen.append(shape(part)[0])
            return phi.block(part)

    with Team(threads) as team:
        found = scores_of_many(Counted(), W, rows, team)
    assert sum(seen) == 1300
    np.testing.assert_allclose(found, phi.block(rows) @ W.T, rtol=1e-12)
