"""The stream of deformed digits: fixed by its seed, smooth, and a copy of the digits where nothing moves."""

import numpy as np
import pytest

from experiments import deformed_digits as digits


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    return rng.integers(256, size=(20, 784)).astype(np.uint8), rng.integers(10, size=20).astype(np.uint8)


def test_fixed_by_the_seed_however_far_one_reads(images):
    long = list(digits.stream(*images, 2500))
    short = list(digits.stream(*images, 1200))
    assert [len(y) for _, y in long] == [1000, 1000, 500]
    np.testing.assert_array_equal(long[0][0], short[0][0])
    np.testing.assert_array_equal(long[1][1][:200], short[1][1])
    assert not np.array_equal(long[0][0], next(digits.stream(*images, 1000, seed=1))[0])


def test_values_stay_in_range_and_nothing_moves_without_strength(images, monkeypatch):
    X, _ = next(digits.stream(*images, 1000))
    assert X.dtype == np.float32 and X.min() >= 0 and X.max() <= 1
    monkeypatch.setattr(digits, "SHIFT", 0.0)
    still, labels = next(digits.stream(*images, 300, alpha=0.0))
    plain = {tuple(image): label for image, label in zip(images[0].tolist(), images[1], strict=True)}
    for digit, label in zip(still, labels, strict=True):
        assert plain[tuple((digit * 255).round().astype(int).tolist())] == label


def test_displacements_are_smooth_and_of_unit_size():
    fields = digits.smooth_fields(np.random.default_rng(0))
    np.testing.assert_allclose((fields**2).mean(axis=(1, 2)), 1.0, rtol=1e-5)
    assert np.abs(np.diff(fields, axis=1)).max() < 1.0
