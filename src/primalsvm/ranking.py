"""Ranking: rows of higher relevance shall score higher than rows of lower relevance, within each query.

    P(w) = λ/2 ‖w‖² + R(w),    R(w) = Σ_q (s_q/N) Σ cᵢ cⱼ max(0, 1 − ⟨w, xᵢ − xⱼ⟩)  over the pairs of q with yᵢ > yⱼ

Either every query counts the same, s_q = 1/N_q with N_q = Σ cᵢ cⱼ over its pairs, and N their number: the mean over the
queries of the mean over their pairs, as SVM^rank (Joachims 2006) has it. Or every pair does, s_q = 1 and N = Σ N_q.
Both ways a weight of 2 is the row twice. With one query and two levels R bounds 1 − AUC.

Pairs are never formed. With V the pairs whose margin is violated, ⟨w, xᵢ − xⱼ⟩ < 1,

    R(w) = h + ⟨g, w⟩,    h = Σ_q (s_q/N) Σ_V cᵢ cⱼ,    g = Σ rᵢ xᵢ a sub-gradient,
    rᵢ   = (s_q cᵢ/N) (Σ {cⱼ : i is the lower of a pair in V} − Σ {cⱼ : i is the higher of a pair in V})

In the order of the scores the rows that violate with row i are those on one side of a place that moves one way as i
does. A Fenwick tree over the levels counts them: O(m log m) for any number of levels.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from primalsvm.compiled import kernel
from primalsvm.inputs import as_batch
from primalsvm.options import check_choice
from primalsvm.rows import CSR, Batch, Stored, Vector, fetched, inner, shape
from primalsvm.team import ONCE_EACH, Team

ALONE = Team(1)
SHORT = 48  # rows up to which a query is sorted by insertion
Average = Literal["queries", "pairs"]
JUDGED = np.dtype([("query", np.int64), ("relevance", np.float64)])  # what y is in the batch of a ranking


def judged(query: Vector, relevance: Vector) -> Vector:
    """The y of a ranking: whose query, and how relevant, each row is.

    Examples
    --------
    >>> judged(np.array([7, 7]), np.array([0.0, 2.0]))["relevance"]
    array([0., 2.])
    """
    y = np.empty(relevance.shape, JUDGED)
    y["query"], y["relevance"] = query, relevance
    return y


class Queries(NamedTuple):
    """The rows that are part of a pair, sorted by query, then by relevance."""

    row: Vector  # their numbers in the batch
    starts: Vector  # of each query, and the end
    level: Vector  # of each row among the relevances of its query: 0, 1, …
    levels: Vector  # how many there are, of each query
    below: Vector  # where the rows of the same level begin: from the query's start to here are those of lower levels
    weight: Vector  # cᵢ
    share: Vector  # s_q
    total: float  # N
    n_pairs: int  # whatever their weight
    idle: int  # queries with one level only, which have no pairs


class Plane(NamedTuple):
    """R(w') ≥ h + Σ rᵢ ⟨w', xᵢ⟩ for every w', equal at the w it is of; rᵢ is in the order of the batch."""

    h: float
    r: Vector


def queries_of(batch: Batch, average: Average = "queries") -> Queries:
    """The rows of a batch in their queries. Rows of weight 0 are as if they were not there."""
    m = shape(batch.rows)[0]
    weight = np.broadcast_to(batch.weight.values, (m,))
    row = np.lexsort((batch.y["relevance"], batch.y["query"]))
    row = row[weight[row] > 0]
    query, relevance = batch.y["query"][row], batch.y["relevance"][row]
    new_query = np.ones(row.shape, bool)
    new_query[1:] = query[1:] != query[:-1]
    new_level = new_query.copy()
    new_level[1:] |= relevance[1:] != relevance[:-1]
    levels = np.bincount(new_query.cumsum() - 1, weights=new_level).astype(np.int64)
    paired = (levels > 1)[new_query.cumsum() - 1]  # rows of queries with pairs
    row, new_query, new_level = row[paired], new_query[paired], new_level[paired]
    c = np.array(weight[row], np.float64)
    starts = np.append(np.flatnonzero(new_query), row.shape[0])
    first = np.maximum.accumulate(np.where(new_query, np.arange(row.shape[0]), 0))
    below = np.maximum.accumulate(np.where(new_level, np.arange(row.shape[0]), 0))
    level = new_level.cumsum() - 1
    before = np.append(0.0, c.cumsum())
    pairs = np.add.reduceat(c * (before[below] - before[first]), starts[:-1]) if row.size else np.zeros(0)  # N_q
    share = 1.0 / pairs if average == "queries" else np.ones(pairs.shape)
    n_pairs, idle = int((below - first).sum()), int((levels == 1).sum())
    total = float(inner(share, pairs))
    return Queries(row, starts, level - level[first], levels[levels > 1], below, c, share, total, n_pairs, idle)


def formed(batch: Batch, queries: Queries) -> Batch:
    """The pairs themselves: rows xᵢ − xⱼ with the label 1 and the weight s_q cᵢ cⱼ, where they are few.

    With them a ranking is a classification: P is that of `Problem(Hinge(), lam)`.
    """
    first = np.repeat(queries.starts[:-1], np.diff(queries.starts))
    lower = queries.below - first  # how many rows are below each
    high = np.repeat(np.arange(first.shape[0]), lower)
    low = np.arange(queries.n_pairs) - np.repeat(lower.cumsum() - lower, lower) + np.repeat(first, lower)
    rows = [_matrix(fetched(batch.rows, queries.row[chosen])) for chosen in (high, low)]
    share = np.repeat(queries.share, np.diff(queries.starts))[high]
    return as_batch(rows[0] - rows[1], np.ones(queries.n_pairs), share * queries.weight[high] * queries.weight[low])


def _matrix(rows: Stored) -> Any:
    if isinstance(rows, CSR):
        parts = rows.data.astype(np.float64), rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        return sp.csr_array(parts, shape=shape(rows))
    return rows.values.astype(np.float64)


@dataclass(frozen=True)
class Ranking:
    """min P(w): the mean hinge over pairs of rows of one query, the more relevant one first.

    Parameters
    ----------
    lam : λ, the strength of the regularisation
    average : what counts the same, all "queries" or all "pairs"
    queries : the rows in their queries; `settled` finds them

    Examples
    --------
    >>> from primalsvm.inputs import as_batch
    >>> X, relevance = np.array([[3.0], [1.0], [1.5]]), np.array([2.0, 0.0, 1.0])
    >>> batch = as_batch(X, np.zeros(3))._replace(y=judged(np.zeros(3, int), relevance))
    >>> Ranking(lam=0.5).settled(batch).value(batch, np.array([1.0]), Team(1))  # ¼, and ½ for one of three pairs
    0.41666666666666663
    """

    lam: float
    average: Average = "queries"
    queries: Queries | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lam) and self.lam > 0):
            raise ValueError(f"lam must be a positive number, got {self.lam!r}")
        check_choice("average", self.average, ("queries", "pairs"))

    def settled(self, batch: Batch, team: Team = ALONE) -> "Ranking":
        """The same problem, with the queries of these rows, unless it has them already."""
        if self.queries is not None:
            return self
        queries = queries_of(batch, self.average)
        if not queries.total > 0:
            raise ValueError("no query has rows of two levels of relevance: there are no pairs to learn from")
        return replace(self, queries=queries)

    @property
    def tunable(self) -> bool:
        """λ is for the user to choose."""
        return True

    def vanishes(self, dual: float) -> bool:
        """Never: pairs pull w away from 0, unless their rows are the same."""
        return False

    def regularizer(self, w: Vector) -> float:
        """λ/2 ‖w‖²."""
        return self.lam / 2 * float(inner(w, w))

    def value(self, batch: Batch, w: Vector, team: Team) -> float:
        """P(w)."""
        scores = team.scores(batch.rows, w)
        return self.value_at(self.plane_at(scores, team), scores, w)

    def value_at(self, plane: Plane, scores: Vector, w: Vector) -> float:
        """P(w), given the scores ⟨w, xᵢ⟩ and the plane there."""
        return self.regularizer(w) + plane.h + float(inner(plane.r, scores))

    def plane_at(self, scores: Vector, team: Team) -> Plane:
        """h and r, given the scores ⟨w, xᵢ⟩."""
        queries = self.queries
        assert queries is not None
        # Queries for each member, such that they have about as many rows each.
        edges = np.searchsorted(queries.starts, np.linspace(0, queries.row.shape[0], team.size + 1)).tolist()
        r = np.zeros(scores.shape[0])

        def part(first: int, last: int) -> float:
            return float(_count_violations(queries, scores, first, last, r))

        violated = sum(team.run(part, list(pairwise(edges))))
        r /= queries.total
        return Plane(violated / queries.total, r)

    def combined(self, batch: Batch, r: Vector, team: Team) -> Vector:
        """g = Σ rᵢ xᵢ."""
        return team.combine(batch._replace(weight=ONCE_EACH), r)

    def held_out_error(self, batch: Batch, w: Vector, b: float, team: Team) -> float:
        """R(w) of other rows, in their own queries."""
        return Ranking(self.lam, self.average).settled(batch).value(batch, w, team) - self.regularizer(w)


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
        # "z[i] − z[j] < 1" is asked in the same words for both rows of a pair: rounding must not part them.
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
