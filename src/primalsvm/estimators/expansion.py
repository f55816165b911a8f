"""Expansions Σⱼ βⱼ k(xⱼ, x) over support vectors, of one or more problems.

One-vs-one, the coefficients have the layout of LIBSVM: support vectors class by class, and for each of them a
coefficient in each of the C − 1 problems of its class, in the order of the other classes.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from primalsvm.data import Block, ThreadPool, Vector, add_kernel_scores
from primalsvm.maps.nystroem import KernelValues

Pairs = Sequence[tuple[int, int]]


def line_of(one: int, other: int) -> int:
    """The line of the coefficients of class `one` in its problem with the `other` class."""
    return other - 1 if other > one else other


def pair_coefficients(vectors: Sequence[Vector], codes: npt.NDArray[np.intp], pairs: Pairs) -> Vector:
    """The coefficients of all rows, of shape (C − 1, m), from those of each pair of classes.

    Examples
    --------
    >>> pair_coefficients([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]], np.array([0, 1, 2]), [(0, 1), (0, 2), (1, 2)])
    array([[ 1., -1., -2.],
           [ 2.,  3., -3.]])
    """
    out = np.zeros((max(j for _, j in pairs), codes.shape[0]))
    for vector, (i, j) in zip(vectors, pairs, strict=True):
        rows = np.flatnonzero((codes == i) | (codes == j))
        first = codes[rows] == i
        values = np.asarray(vector)
        out[line_of(i, j), rows[first]] = values[first]
        out[line_of(j, i), rows[~first]] = values[~first]
    return out


def pair_expansions(W: Vector, pairs: Pairs, counts: Vector) -> Vector:
    """The coefficients of all support vectors in each pair's problem, from those in the layout above.

    Examples
    --------
    >>> W = np.array([[1.0, -1.0, -2.0], [2.0, 3.0, -3.0]])
    >>> pair_expansions(W, [(0, 1), (0, 2), (1, 2)], np.ones(3, int))
    array([[ 1., -1.,  0.],
           [ 2.,  0., -2.],
           [ 0.,  3., -3.]])
    """
    out = np.zeros((len(pairs), W.shape[1]))
    stops = np.cumsum(counts)
    for k, (i, j) in enumerate(pairs):
        for one, other in ((i, j), (j, i)):
            own = slice(int(stops[one] - counts[one]), int(stops[one]))
            out[k, own] = W[line_of(one, other), own]
    return out


def expansion_scores(
    expansion: KernelValues, W: Vector, block: Block, threads: ThreadPool, pairs: Pairs | None, counts: Vector | None
) -> Vector:
    """The scores of the rows of a block without intercepts, a column for each problem.

    Parameters
    ----------
    expansion : the kernel and its support vectors
    W : coefficients, a line for each problem; with `pairs` in the layout above
    pairs : the classes of each problem, one-vs-one; else None
    counts : the number of support vectors of each class, with `pairs`
    """
    kernel, points = expansion.kernel, expansion.points
    if pairs is None:
        out = np.zeros((block.shape[0], W.shape[0]))
        add_kernel_scores(kernel, block, points, np.ascontiguousarray(W.T), threads, out)
        return out
    assert counts is not None
    out = np.zeros((block.shape[0], len(pairs)))
    starts = np.concatenate([[0], np.cumsum(counts)])
    for one in range(len(counts)):
        own = slice(int(starts[one]), int(starts[one + 1]))
        columns = [k for k, pair in enumerate(pairs) if one in pair]
        lines = [line_of(one, i + j - one) for i, j in (pairs[k] for k in columns)]
        part = np.zeros((block.shape[0], len(columns)))
        coefficients = np.ascontiguousarray(W[lines, own].T)
        add_kernel_scores(kernel.take(own), block, points.take(own), coefficients, threads, part)
        out[:, columns] += part
    return out


def pair_votes(first: npt.NDArray[np.bool_], pairs: Pairs, count: int) -> Vector:
    """The number of pairs that each class wins; `first` says for each row and pair whether it is the first class.

    Examples
    --------
    >>> pair_votes(np.array([[True, True, False]]), [(0, 1), (0, 2), (1, 2)], 3)
    array([[2., 0., 1.]])
    """
    votes = np.zeros((first.shape[0], count))
    for k, (i, j) in enumerate(pairs):
        votes[first[:, k], i] += 1.0
        votes[~first[:, k], j] += 1.0
    return votes


def one_vs_rest_scores(scores: Vector, pairs: Pairs, count: int) -> Vector:
    """A score for each class from those of pairs: the votes, and in (−⅓, ⅓) the sum of scores, as scikit-learn.

    Examples
    --------
    >>> one_vs_rest_scores(np.array([[1.0, 1.0, -3.0]]), [(0, 1), (0, 2), (1, 2)], 3).round(3)
    array([[ 2.222, -0.267,  1.222]])
    """
    sums = np.zeros((scores.shape[0], count))
    for k, (i, j) in enumerate(pairs):
        sums[:, i] += scores[:, k]
        sums[:, j] -= scores[:, k]
    found: Vector = pair_votes(scores >= 0.0, pairs, count) + sums / (3 * (np.abs(sums) + 1))
    return found
