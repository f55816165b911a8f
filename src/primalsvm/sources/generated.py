"""Generated text classification problems of realistic size and structure.

A document is a bag of words. Words are drawn with repetition from a Zipf-Mandelbrot law until enough distinct ones are
found; the value of a word that is drawn n times is (1 + ln n) · idf, and rows are scaled to length 1. Each document
leans to one side of a sparse hyperplane w°: words of the other side are rejected with a probability, so that related
words occur together, as in text. The label is the sign of ⟨w°, x⟩ plus noise, so that a share of the labels cannot be
predicted.

The random numbers of a row are seeded by its index, so that the result does not depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from primalsvm.compiled import kernel
from primalsvm.data import Vector, thread_pool

SPREAD = 0.5  # of the logarithm of a document's length
FLATNESS = 20.0  # q in p(rank) ∝ 1/(rank + q), which makes the commonest words less common than Zipf's law
INFORMATIVE = 0.5  # the share of words with w° ≠ 0
NOISE = 0.1  # standard deviation of the label noise, in standard deviations of the score
SHARE = 0.47  # of positive labels

# The 64-bit mixer of Steele, Lea and Flood ("Fast splittable pseudorandom number generators", 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
HALF = np.uint64(32)  # a draw of 64 bits makes two uniform numbers of 32
LOW = np.uint64(2**32 - 1)
UNIT = 2.0**-32


class TextLike(NamedTuple):
    """A training set and a test set of the same kind."""

    X: sp.csr_array
    y: Vector
    X_test: sp.csr_array
    y_test: Vector


@kernel
def _mix(z):  # type: ignore[no-untyped-def]  # compiled
    z = (z ^ (z >> SHIFTS[0])) * MIX_1
    z = (z ^ (z >> SHIFTS[1])) * MIX_2
    return z ^ (z >> SHIFTS[2])


@kernel
def _write_rows(seed, start, stop, indptr, leaning, words, idf, planted, indices, data, scores):  # type: ignore[no-untyped-def]  # compiled
    """Write rows start ≤ i < stop: sorted indices, values of norm 1, and the scores ⟨w°, xᵢ⟩."""
    d = words.shape[0]
    spread = np.log1p(d / FLATNESS)
    count = np.zeros(d, np.float32)  # of each word in the current row
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        stream = _mix(seed + np.uint64(i) * GOLDEN)
        found = first
        while found < last:
            stream += GOLDEN
            bits = _mix(stream)
            uniform = np.float64(bits >> HALF) * UNIT
            rank = int(FLATNESS * np.expm1(uniform * spread))  # the inverse of P(rank ≤ r) = ln(1 + r/q)/ln(1 + d/q)
            word = words[min(rank, d - 1)]
            # A word of the other side is rejected with the probability |leaning|.
            if planted[word] * leaning[i] < 0.0 and np.float64(bits & LOW) * UNIT < abs(leaning[i]):
                continue
            if count[word] == 0:
                indices[found] = word
                found += 1
            count[word] += 1
        indices[first:last].sort()
        square = 0.0
        score = 0.0
        for j in range(first, last):
            word = indices[j]
            value = (1.0 + np.log(count[word])) * idf[word]
            count[word] = 0
            data[j] = value
            square += value * value
            score += value * planted[word]
        scale = 1.0 / np.sqrt(square)
        scores[i] = score * scale
        for j in range(first, last):
            data[j] *= scale


def text_like(
    m: int = 800_000,
    d: int = 47_236,
    per_row: int = 76,
    *,
    seed: int = 0,
    n_test: int | None = None,
    n_jobs: int | None = None,
) -> TextLike:
    """A text classification problem, by default of the size of RCV1.

    Parameters
    ----------
    m : int
        Number of training rows.
    d : int
        Number of features.
    per_row : int
        Average number of non-zeros per row.
    seed : int
        Seed of the random numbers; the result does not depend on `n_jobs`.
    n_test : int or None
        Number of test rows, in addition to the training rows; None is m // 10.
    n_jobs : int or None
        Number of threads: None is one, -1 all cores.

    Returns
    -------
    TextLike
        ``X, y, X_test, y_test``: CSR matrices (float32, 32-bit indices, sorted and unique in each row, rows of norm 1)
        and labels -1 and +1.

    Examples
    --------
    >>> X, y, X_test, y_test = text_like(m=1000, d=500, per_row=20)
    >>> X.shape, X_test.shape, X.dtype.name, y[:4]
    ((1000, 500), (100, 500), 'float32', array([-1.,  1., -1., -1.]))
    """
    n_test = m // 10 if n_test is None else n_test
    if min(m, d, per_row) < 1 or n_test < 0:
        raise ValueError(f"m, d and per_row must be positive and n_test not negative, got {(m, d, per_row, n_test)}")
    if per_row > d // 4:
        raise ValueError(f"per_row={per_row} is too many for text: at most a quarter of the d={d} words")
    rng = np.random.default_rng(seed)
    words = rng.permutation(d).astype(np.int32)  # the word of each rank
    rarity = np.empty(d)
    rarity[words] = np.log(np.arange(d) + FLATNESS)
    idf = (1.0 + rarity - rarity.min()).astype(np.float32)
    planted = rng.standard_normal(d) * (rng.random(d) < INFORMATIVE)
    # Lengths are log-normal with mean per_row.
    length = rng.lognormal(np.log(per_row) - SPREAD**2 / 2, SPREAD, m + n_test)
    length = np.clip(np.rint(length), 1, max(1, d // 3)).astype(np.int64)
    noise = rng.standard_normal(m + n_test)
    # The density of the leaning is |leaning|: few documents lean to neither side.
    side = rng.uniform(-1.0, 1.0, m + n_test)
    leaning = np.sign(side) * np.sqrt(np.abs(side))

    scores = np.empty(m + n_test)
    row_seed = rng.integers(2**64, dtype=np.uint64)
    train = _matrix(row_seed, length[:m], leaning[:m], d, words, idf, planted, scores[:m], n_jobs)
    test = _matrix(row_seed + np.uint64(1), length[m:], leaning[m:], d, words, idf, planted, scores[m:], n_jobs)
    noisy = scores + NOISE * scores[:m].std() * noise
    y = np.where(noisy > np.quantile(noisy[:m], 1.0 - SHARE), 1.0, -1.0)
    return TextLike(train, y[:m], test, y[m:])


def _matrix(
    seed: np.uint64,
    length: Vector,
    leaning: Vector,
    d: int,
    words: Vector,
    idf: Vector,
    planted: Vector,
    scores: Vector,
    n_jobs: int | None,
) -> sp.csr_array:
    """Rows of the given lengths; their scores are written to `scores`."""
    indptr = np.concatenate([[0], np.cumsum(length)])
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], np.float32)
    with thread_pool(n_jobs) as threads:
        threads.run(
            lambda start, stop: _write_rows(
                seed, start, stop, indptr, leaning, words, idf, planted, indices, data, scores
            ),
            list(threads.ranges(length.shape[0])),
        )
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)
    return sp.csr_array((data, indices, indptr), shape=(length.shape[0], d))
