"""One-vs-one: a problem for each pair of classes i < j, on the rows of these two classes; class i is positive."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primalsvm.data import ALONE, Dataset, Vector
from primalsvm.objective import Objective, Problem


def class_pairs(count: int) -> list[tuple[int, int]]:
    """The pairs (i, j) of classes with i < j, in the order of LIBSVM.

    Examples
    --------
    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(i, j) for i in range(count) for j in range(i + 1, count)]


class PairObjectives:
    """The problems of all pairs of classes, each with its rows only; several have one thread each.

    Parameters
    ----------
    problems : the definition of each
    data : all rows with their weights
    codes : the class of each row; negative: none
    pairs : of classes, for each problem

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.losses import Hinge
    >>> rows = as_dataset(np.eye(4))
    >>> three = PairObjectives([Problem(Hinge(), 0.5)] * 3, rows, np.array([0, 1, 2, 2]), class_pairs(3))
    >>> len(three), three[1].y, three.rows(1)
    (3, array([ 1., -1., -1.]), array([0, 2, 3]))
    """

    def __init__(
        self, problems: Sequence[Problem], data: Dataset, codes: Vector, pairs: Sequence[tuple[int, int]]
    ) -> None:
        self.problems, self.data, self.codes, self.pairs = problems, data, codes, pairs
        self._kept: dict[int, Objective] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.pairs)

    def rows(self, k: int) -> Vector:
        """The numbers of the rows of problem k."""
        i, j = self.pairs[k]
        return np.flatnonzero((self.codes == i) | (self.codes == j))

    def __getitem__(self, k: int) -> Objective:
        if not 0 <= k < len(self):
            raise IndexError(k)
        with self._lock:
            if k in self._kept:
                return self._kept[k]
        rows = self.rows(k)
        y = np.where(self.codes[rows] == self.pairs[k][0], 1.0, -1.0)
        data = self.data.restricted(rows)
        if len(self) > 1:  # the threads share the problems
            data = data.with_threads(ALONE)
        objective = self.problems[k].on(data, y)
        with self._lock:
            return self._kept.setdefault(k, objective)

    def trivial_bound(self, k: int) -> float:
        """As the objective."""
        return float(self[k].trivial_above)

    def separate(self, k: int) -> Any:
        """Problem k, which is kept until `forget`."""
        return self[k]

    def forget(self, k: int) -> None:
        """Drop what is kept for problem k."""
        with self._lock:
            self._kept.pop(k, None)

    def with_lam(self, lam: float) -> "PairObjectives":
        """The same problems at another λ."""
        return PairObjectives([replace(one, lam=lam) for one in self.problems], self.data, self.codes, self.pairs)
