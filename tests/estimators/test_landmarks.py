"""Landmarks: drawn by weight, centres of clusters, or near the margin of a pilot."""

import numpy as np
import pytest
import scipy.sparse as sp

from primalsvm import SVC, Nystroem
from primalsvm.estimators import pilot
from primalsvm.estimators.landmarks import choose_landmarks, draw_rows, weights_near_margin

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 2))
Y = np.sign(X[:, 0])  # the margin is where x₀ is near 0


def test_rows_are_drawn_once_and_by_weight():
    rng = np.random.default_rng(0)
    assert sorted(draw_rows(10, 10, rng)) == list(range(10)) and draw_rows(10, 99, rng).size == 10
    weight = np.zeros(10)
    weight[[2, 5, 7]] = 1.0, 2.0, 1e-6
    assert draw_rows(10, 99, rng, weight).tolist() == [2, 5, 7]
    counts = np.bincount([int(draw_rows(10, 1, rng, weight)[0]) for _ in range(600)], minlength=10)
    assert counts[[0, 1, 3, 4, 6, 8, 9]].sum() == 0 and 1.5 < counts[5] / counts[2] < 2.7


def test_weights_fall_beyond_the_margin():
    weight = weights_near_margin(np.array([-3.0, 1.0, 1.5, 3.0]))
    np.testing.assert_allclose(weight, [1.0, 1.0, np.exp(-1.0), np.exp(-4.0)])


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "CSR"])
def test_centres_of_clusters(convert):
    centres = choose_landmarks(convert(X), 20, "kmeans", np.random.default_rng(0))
    assert centres.shape == (20, 2)
    distances = np.linalg.norm(X[:, None] - np.asarray(centres)[None], axis=2).min(axis=1)
    rows = choose_landmarks(X, 20, "uniform", np.random.default_rng(0))
    assert distances.mean() < np.linalg.norm(X[:, None] - rows[None], axis=2).min(axis=1).mean()


def test_few_distinct_rows_are_no_trouble():
    same = np.repeat(X[:3], 50, axis=0)
    V = Nystroem(10, gamma=1.0, random_state=0).fit(same)
    assert V.map_.n_components == 3


def test_landmarks_lean_to_the_margin(monkeypatch):
    monkeypatch.setattr(pilot, "ROWS", 500)
    monkeypatch.setattr(pilot, "LANDMARKS", 10)
    monkeypatch.setattr(pilot, "SPANNED", 0.0)
    options = {"gamma": 0.5, "C": 10.0, "n_components": 30, "random_state": 0}
    leaning = SVC(**options).fit(X, Y)
    even = SVC(approximation=Nystroem(landmarks="kmeans"), **options).fit(X, Y)
    assert np.abs(leaning.landmarks_[:, 0]).mean() < 0.7 * np.abs(even.landmarks_[:, 0]).mean()
    monkeypatch.setattr(pilot, "SPANNED", 2.0)  # as if the pilot's points spanned the kernel
    np.testing.assert_array_equal(SVC(**options).fit(X, Y).landmarks_, even.landmarks_)


def test_the_pilot_counts_weights_as_repetitions(monkeypatch):
    monkeypatch.setattr(pilot, "ROWS", 500)
    monkeypatch.setattr(pilot, "LANDMARKS", 10)
    monkeypatch.setattr(pilot, "SPANNED", 0.0)
    weight = (X[:, 1] > 0).astype(float)
    clf = SVC(gamma=0.5, n_components=30, random_state=0, approximation=Nystroem(landmarks="margin"))
    clf.fit(X, Y, weight)
    assert (clf.landmarks_[:, 1] > 0).all()  # rows of weight zero are no rows
