"""Pegasos on pairs, for rankings.

    for t = 1, 2, …, T:
        draw k pairs (i, j) of one query with yᵢ > yⱼ, with probabilities s_q cᵢ cⱼ/N
        w ← (1 − η_t λ) w + (η_t/k) Σ {xᵢ − xⱼ : ⟨w, xᵢ − xⱼ⟩ < 1},    η_t = 1/(λ (t + t₀))

The steps, the projection and the averages are those of Pegasos (`pegasos`, `steps`, `streams`): pairs are a stream of
rows xᵢ − xⱼ with the label 1. Drawing a pair takes O(log m): rows are sorted by query and relevance, so the rows below
i are the first ones of its query.

Certificate. The full sub-gradient at every evaluation is a plane (`planes`). If the run is to reach a target gap, some
steps of cutting planes from the present point (a share of the epochs so far) raise the bound, and their point is
returned if its P is lower. A run of `n_iter` steps returns what Pegasos returns.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from primalsvm.data import EQUAL_WEIGHTS, Batch, Dataset, Pairs, Vector, squared_norms_of
from primalsvm.losses import Hinge
from primalsvm.objective import Evaluation, Objective, Problem
from primalsvm.ranking import Queries, RankingObjective
from primalsvm.solvers import stochastic, streams
from primalsvm.solvers.cutting_planes import CuttingPlanes, continue_from
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.planes import Planes
from primalsvm.solvers.protocol import Run, SolverState, Traits
from primalsvm.solvers.stochastic import StochasticState

# Cutting planes raise the bound in this many steps, of two passes each, for each epoch: half the work of the steps on
# pairs.
STEPS_PER_EPOCH = 0.5


class Proof(NamedTuple):
    """The planes so far, and the best bound from them."""

    planes: Planes
    bound: float = -np.inf


@dataclass
class PairState(SolverState):
    """The state of Pegasos, the generator of pairs, and the planes of the evaluations."""

    stream: StochasticState
    draw: "Draw"
    proof: Proof
    next_evaluation: int  # step
    operations: float = field(default=np.inf, kw_only=True)  # not counted


@dataclass
class Draw:
    """Draws pairs at random."""

    queries: Queries
    rng: np.random.Generator
    weight_before: Vector = field(init=False)  # Σc of the rows before each, in the order of the queries
    first: Vector = field(init=False)  # of each row's query
    pairs_up_to: Vector = field(init=False)  # the weight of the pairs of which the rows up to this one are the higher

    def __post_init__(self) -> None:
        _, starts, _, _, below, c, *_ = self.queries
        self.weight_before = np.append(0.0, c.cumsum())
        self.first = np.repeat(starts[:-1], np.diff(starts))
        share = np.repeat(self.queries.share, np.diff(starts))
        self.pairs_up_to = (share * c * (self.weight_before[below] - self.weight_before[self.first])).cumsum()

    def __call__(self, n: int) -> tuple[Vector, Vector]:
        """The rows of n pairs: the higher ones, and the lower ones."""
        row, below = self.queries.row, self.queries.below
        high = np.searchsorted(self.pairs_up_to, self.rng.random(n) * self.pairs_up_to[-1], side="right")
        high = np.minimum(high, row.shape[0] - 1)
        first, end = self.first[high], below[high]
        start, stop = self.weight_before[first], self.weight_before[end]
        low = np.searchsorted(self.weight_before, start + self.rng.random(n) * (stop - start), side="right") - 1
        return row[high].astype(np.uint64), row[np.clip(low, first, end - 1)].astype(np.uint64)


@dataclass(frozen=True)
class PairPegasos:
    """Stochastic sub-gradient steps on pairs drawn at random.

    Parameters
    ----------
    pegasos : the options; `sampling` has no meaning here, and "suffix" averages as for streams (`streams`)

    Examples
    --------
    >>> from primalsvm.data import as_dataset
    >>> from primalsvm.ranking import Ranking, ranking_targets
    >>> from primalsvm.solvers.drive import drive
    >>> from primalsvm.solvers.several import Several, Single
    >>> from primalsvm.solvers.stops import Stops
    >>> X, relevance = np.array([[3.0], [1.0], [1.5]]), np.array([2.0, 0.0, 1.0])
    >>> objective = Ranking(lam=0.01).on(as_dataset(X), ranking_targets(np.zeros(3, int), relevance))
    >>> drive(Single(objective), Several(PairPegasos(Pegasos(n_iter=1000))), Stops())[0].n_steps
    1000
    """

    pegasos: Pegasos = field(default_factory=Pegasos)
    name: ClassVar[str] = "pair_pegasos"

    def __post_init__(self) -> None:
        if isinstance(self.pegasos.n_iter, str) or self.pegasos.tries > 1 or self.pegasos.average == "random":
            raise ValueError(
                "on pairs, Pegasos supports neither n_iter='theory' nor more than one try nor average='random'"
            )

    @property
    def traits(self) -> Traits:
        """As `Pegasos`."""
        return self.pegasos.traits

    def start(self, objective: RankingObjective, run: Run, previous: Any = None) -> PairState:
        """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
        pegasos, data = self.pegasos, objective.data
        draw = Draw(objective.queries, np.random.default_rng(run.seed))
        norms = np.empty(pegasos.sample)
        squared_norms_of(pairs_of(data, *draw(pegasos.sample)).rows, np.arange(pegasos.sample), norms)
        hinge = Objective(Problem(Hinge(), objective.lam), data, None)  # of pairs that are still to be drawn
        settings = pegasos.settings(hinge, norms, with_offset=pegasos.n_iter is None)
        before = previous.stream if isinstance(previous, PairState) else None
        stream = stochastic.begin(pegasos.run_options, settings, hinge, before)
        return PairState(stream, draw, Proof(Planes.none(data.shape[1])), self._steps_in(data), target=run.target)

    def advance(self, objective: RankingObjective, state: PairState) -> PairState:
        """A chunk of steps."""
        k, n_iter = self.pegasos.batch_size, state.stream.options.n_iter
        n = min(max(stochastic.chunk_rows(objective.data) // k, 1), state.next_evaluation - state.steps)
        if n_iter is not None:
            n = min(n, n_iter - state.steps)
        streams.absorb_steps(Hinge(), pairs_of(objective.data, *state.draw(n * k)), state.stream, n)
        state.steps += n
        state.epoch = state.steps / self._steps_in(objective.data)
        state.worth_evaluating = state.steps == state.next_evaluation and n_iter is None
        if state.steps == state.next_evaluation:
            state.next_evaluation *= 2
        state.finished = state.steps == n_iter
        return state

    def evaluate(self, objective: RankingObjective, state: PairState) -> Evaluation:
        """P at the output, and the bound; the planes are in the details."""
        w, b = self.iterate(objective, state)
        cutting = continue_from(objective, w, state.proof.planes.copy(), state.target)
        own = cutting.primal
        if self.pegasos.n_iter is None:
            solver = CuttingPlanes()
            for _ in range(int(state.epoch * STEPS_PER_EPOCH)):
                if cutting.gap <= state.target * cutting.primal:
                    break
                cutting = solver.advance(objective, cutting)
        proof = Proof(cutting.planes, max(state.proof.bound, cutting.bound))
        return Evaluation(cutting.w, b, min(own, cutting.primal), proof.bound, details=proof)

    def iterate(self, objective: RankingObjective, state: PairState) -> tuple[Vector, float]:
        """The output so far: the average."""
        return stochastic.output(state.stream)

    def observe(self, objective: RankingObjective, state: PairState, evaluation: Evaluation) -> None:
        """Store the planes. No step depends on them."""
        state.proof = evaluation.details

    def _steps_in(self, data: Dataset) -> int:
        """The number of steps in an epoch, which has as many pairs as there are rows."""
        return -(-data.shape[0] // self.pegasos.batch_size)


def pairs_of(data: Dataset, high: Vector, low: Vector) -> Batch:
    """The rows x_high − x_low, which should score at least 1."""
    block = data.block
    if block is None:
        numbers, places = np.unique(np.concatenate([high, low]), return_inverse=True)
        block, (high, low) = data.take(numbers), np.split(places.astype(np.uint64), 2)
    return Batch(Pairs(block, high, low), np.ones(high.shape[0]), EQUAL_WEIGHTS)
