"""Ranking: within each query, rows of higher relevance should score higher than rows of lower relevance.

    P(w) = λ/2 ‖w‖² + R(w),    R(w) = Σ_q (s_q/N) Σ cᵢ cⱼ max(0, 1 − ⟨w, xᵢ − xⱼ⟩)  over the pairs of q with yᵢ > yⱼ

Queries have equal weight, s_q = 1/N_q with N_q = Σ cᵢ cⱼ over the pairs of q and N the number of queries (the mean over
queries of the mean over their pairs, as in SVM^rank, Joachims 2006); or pairs have equal weight, s_q = 1 and N = Σ N_q.
In both cases a weight of 2 is the same as the row twice. With one query and two levels R bounds 1 − AUC.

Pairs are formed only if they are few. With V the pairs whose margin is violated, ⟨w, xᵢ − xⱼ⟩ < 1,

    R(w) = h + ⟨g, w⟩,    h = Σ_q (s_q/N) Σ_V cᵢ cⱼ,    g = Σ rᵢ xᵢ a sub-gradient,
    rᵢ   = (s_q cᵢ/N) (Σ {cⱼ : i is the lower of a pair in V} − Σ {cⱼ : i is the higher of a pair in V})

With rows sorted by score, those that violate the margin with row i are all rows before or after a position, which is
monotone in i. A Fenwick tree over the levels counts them: O(m log m) for any number of levels.

Rows of a query are sorted by their scores, so scores and r are arrays here, wherever the rows themselves are.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Dataset, Vector, as_dataset, inner
from primalsvm.losses import Hinge
from primalsvm.objective import Objective, Problem
from primalsvm.options import check_choice

SHORT = 48  # rows up to which a query is sorted by insertion
Average = Literal["queries", "pairs"]
TARGETS = np.dtype([("query", np.int64), ("relevance", np.float64)])


def ranking_targets(query: Vector, relevance: Vector) -> Vector:
    """The targets of a ranking: the query and the relevance of each row.

    Examples
    --------
    >>> ranking_targets(np.array([7, 7]), np.array([0.0, 2.0]))["relevance"]
    array([0., 2.])
    """
    y = np.empty(relevance.shape, TARGETS)
    y["query"], y["relevance"] = query, relevance
    return y


class Queries(NamedTuple):
    """The rows that are part of a pair, sorted by query, then by relevance."""

    row: Vector  # their numbers in the data set
    starts: Vector  # of each query, and the end
    level: Vector  # of each row among the relevances of its query: 0, 1, …
    levels: Vector  # how many there are, of each query
    below: Vector  # where the rows of the same level begin: from the query's start to here are those of lower levels
    weight: Vector  # cᵢ
    share: Vector  # s_q
    total: float  # N
    n_pairs: int  # whatever their weight
    without_pairs: int  # queries with one level only


class Plane(NamedTuple):
    """R(w') ≥ h + Σ rᵢ ⟨w', xᵢ⟩ for every w', with equality at one w; rᵢ is in the order of the data set."""

    h: float
    r: Vector


def queries_of(data: Dataset, y: Vector, average: Average = "queries") -> Queries:
    """Sort the rows of a data set by query. Rows of weight 0 are left out."""
    weight = data.weight_array()
    row = np.lexsort((y["relevance"], y["query"]))
    row = row[weight[row] > 0]
    query, relevance = y["query"][row], y["relevance"][row]
    new_query = np.ones(row.shape, bool)
    new_query[1:] = query[1:] != query[:-1]
    new_level = new_query.copy()
    new_level[1:] |= relevance[1:] != relevance[:-1]
    levels = np.bincount(new_query.cumsum() - 1, weights=new_level).astype(np.int64)
    paired = (levels > 1)[new_query.cumsum() - 1]  # rows of queries with pairs
    row, new_query, new_level = row[paired], new_query[paired], new_level[paired]
    c = weight[row]
    starts = np.append(np.flatnonzero(new_query), row.shape[0])
    first = np.maximum.accumulate(np.where(new_query, np.arange(row.shape[0]), 0))
    below = np.maximum.accumulate(np.where(new_level, np.arange(row.shape[0]), 0))
    level = new_level.cumsum() - 1
    before = np.append(0.0, c.cumsum())
    pairs = np.add.reduceat(c * (before[below] - before[first]), starts[:-1]) if row.size else np.zeros(0)  # N_q
    share = 1.0 / pairs if average == "queries" else np.ones(pairs.shape)
    return Queries(
        row=row,
        starts=starts,
        level=level - level[first],
        levels=levels[levels > 1],
        below=below,
        weight=c,
        share=share,
        total=float(inner(share, pairs)),
        n_pairs=int((below - first).sum()),
        without_pairs=int((levels == 1).sum()),
    )


@dataclass(frozen=True)
class Ranking:
    """min P(w): the mean hinge over pairs of rows of one query, the more relevant one first.

    Parameters
    ----------
    lam : λ, the strength of the regularisation
    average : "queries" or "pairs": which of them have equal weight

    Examples
    --------
    >>> X, relevance = np.array([[3.0], [1.0], [1.5]]), np.array([2.0, 0.0, 1.0])
    >>> objective = Ranking(lam=0.5).on(as_dataset(X), ranking_targets(np.zeros(3, int), relevance))
    >>> objective.value(np.array([1.0]))  # ¼, and ½ for one of three pairs
    0.41666666666666663
    """

    lam: float
    average: Average = "queries"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"lam must be a positive number, got {self.lam!r}")
        check_choice("average", self.average, ("queries", "pairs"))

    def on(self, data: Dataset, y: Vector) -> "RankingObjective":
        """P on the rows of a data set, with their `ranking_targets`."""
        queries = queries_of(data, y, self.average)
        if not queries.total > 0:
            raise ValueError("no query has rows of two levels of relevance: there are no pairs to learn from")
        return RankingObjective(self.lam, data, queries)


@dataclass(frozen=True)
class RankingObjective:
    """P of one ranking on the rows of a data set; made by `Ranking.on`."""

    lam: float
    data: Dataset
    queries: Queries
    trivial_above: ClassVar[float] = math.inf  # w* is 0 only if the rows of all pairs are the same

    def regularizer(self, w: Vector) -> float:
        """λ/2 ‖w‖²."""
        return self.lam / 2 * float(inner(w, w))

    def scores(self, w: Vector) -> Vector:
        """⟨w, xᵢ⟩."""
        return self.data.to_array(self.data.scores(w))

    def value(self, w: Vector) -> float:
        """P(w)."""
        scores = self.scores(w)
        return self.value_at(self.plane_at(scores), scores, w)

    def value_at(self, plane: Plane, scores: Vector, w: Vector) -> float:
        """P(w), given the scores and the plane there."""
        return self.regularizer(w) + plane.h + float(inner(plane.r, scores))

    def plane_at(self, scores: Vector) -> Plane:
        """h and r, given the scores."""
        queries, threads = self.queries, self.data.threads
        # Queries for each thread, such that they have about as many rows each.
        edges = np.searchsorted(queries.starts, np.linspace(0, queries.row.shape[0], threads.size + 1)).tolist()
        r = np.zeros(scores.shape[0])

        def count(first: int, last: int) -> float:
            return float(_count_violations(queries, scores, first, last, r))

        violated = sum(threads.run(count, list(pairwise(edges))))
        r /= queries.total
        return Plane(violated / queries.total, r)

    def combine(self, r: Vector) -> Vector:
        """g = Σ rᵢ xᵢ."""
        return self.data.combine(self.data.from_array(r), weighted=False)

    def held_out_error(self, w: Vector, b: float) -> float:
        """R(w)."""
        return self.value(w) - self.regularizer(w)

    def as_classification(self) -> Objective:
        """The same problem as a classification of pairs: rows xᵢ − xⱼ with the label 1 and the weight s_q cᵢ cⱼ.

        More solvers support it. All pairs are formed, so it is for few of them.
        """
        queries = self.queries
        rows_of = np.diff(queries.starts)
        first = np.repeat(queries.starts[:-1], rows_of)
        lower = queries.below - first  # how many rows are below each
        high = np.repeat(np.arange(first.shape[0]), lower)
        low = np.arange(queries.n_pairs) - np.repeat(lower.cumsum() - lower, lower) + np.repeat(first, lower)
        differences = self._matrix(queries.row[high]) - self._matrix(queries.row[low])
        weight = np.repeat(queries.share, rows_of)[high] * queries.weight[high] * queries.weight[low]
        pairs = as_dataset(differences, weight, threads=self.data.threads)
        return Problem(Hinge(), self.lam).on(pairs, np.ones(queries.n_pairs))

    def _matrix(self, numbers: Vector) -> Any:
        """The rows with these numbers, in double precision."""
        block: Any = self.data.take(numbers)
        return block.matrix().astype(np.float64)


@kernel
def _sort(z, order):  # type: ignore[no-untyped-def]  # compiled
    """The order of z: by insertion if it is short, as most queries are."""
    n = z.shape[0]
    if n > SHORT:
        order[:] = np.argsort(z)
        return
    for k in range(n):
        p = k
        while p > 0 and z[order[p - 1]] > z[k]:
            order[p] = order[p - 1]
            p -= 1
        order[p] = k


@kernel
def _insert(tree, p, c):  # type: ignore[no-untyped-def]  # compiled
    """Add c to place p ≥ 1 of a Fenwick tree."""
    while p < tree.shape[0]:
        tree[p] += c
        p += p & -p


@kernel
def _sum_up_to(tree, p):  # type: ignore[no-untyped-def]  # compiled
    """The sum over the places 1 … p."""
    total = 0.0
    while p > 0:
        total += tree[p]
        p -= p & -p
    return total


@kernel
def _count_violations(queries, scores, first, last, r):  # type: ignore[no-untyped-def]  # compiled
    """Σ_q s_q Σ_V cᵢ cⱼ over the queries first … last − 1, and N rᵢ of their rows."""
    row, starts, level, levels, _, weight, share, _, _, _ = queries
    longest, most = 0, 0
    for q in range(first, last):
        longest, most = max(longest, starts[q + 1] - starts[q]), max(most, levels[q])
    plain, z, c, below = np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)
    rank, order, trees = np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(most + 1)
    total = 0.0
    for q in range(first, last):
        a, n, top = starts[q], starts[q + 1] - starts[q], levels[q]
        for k in range(n):
            plain[k] = scores[row[a + k]]
        _sort(plain[:n], order[:n])
        for k in range(n):
            z[k], c[k], rank[k] = plain[order[k]], weight[a + order[k]], level[a + order[k]]
        # "z[i] − z[j] < 1" is tested the same way for both rows of a pair: rounding must not tell them apart.
        tree = trees[: top + 1]
        tree[:] = 0.0
        j = n - 1
        for i in range(n - 1, -1, -1):  # i as the higher one: the lower levels among those with a score above z[i] − 1
            while j >= 0 and z[i] - z[j] < 1.0:
                _insert(tree, rank[j] + 1, c[j])
                j -= 1
            below[i] = _sum_up_to(tree, rank[i])
            total += share[q] * c[i] * below[i]
        tree[:] = 0.0
        i = 0
        for j in range(n):  # j as the lower one: the higher levels among those with a score below z[j] + 1
            while i < n and z[i] - z[j] < 1.0:
                _insert(tree, top - rank[i], c[i])
                i += 1
            above = _sum_up_to(tree, top - 1 - rank[j])
            r[row[a + order[j]]] = share[q] * c[j] * (above - below[j])
    return total
