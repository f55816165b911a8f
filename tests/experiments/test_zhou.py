"""Zhou's experiment, on a small scale: its figures are those of the problem, and its page says what they say."""

import numpy as np
import pytest
from rich.console import Console

from tests.experiments import load_experiment


@pytest.fixture(scope="module")
def zhou():
    return load_experiment("zhou")


def test_a_tenth_of_the_labels_is_flipped(zhou):
    X, y = zhou.gaussian(20_000, seed=3)
    truth = np.random.default_rng(12345).normal(size=zhou.D)
    assert np.mean(np.sign(X @ truth) != y) == pytest.approx(zhou.NOISE, abs=0.01)
    assert np.linalg.norm(X, axis=1).max() <= 1.0 + 1e-12


def test_quick_run(zhou, tmp_path):
    setting = zhou.QUICK._replace(sizes=(100, 5_000), steps=(10, 100, 3_000))
    found = zhou.measure(setting, Console(quiet=True))
    for rows in found.values():
        assert rows[-1, 0] < rows[0, 0] and rows[-1, 1] < rows[0, 1]  # more steps, less error
        assert all(rows[k, 1] <= zhou.bound(T) for k, T in enumerate(setting.steps))
    assert found[5_000][-1, 1] < found[100][-1, 1]
    text = zhou.page(setting, found)
    assert text.count("reproduced") == 4 and f"{found[100][0, 0]:.2%}" in text
    zhou.draw(setting, found, tmp_path / "zhou.png")
    assert (tmp_path / "zhou.png").read_bytes().startswith(b"\x89PNG")
