"""Pegasos on pairs: a ranking, a few pairs at a time.

    for t = 1, 2, …, T:
        draw k pairs (i, j) of one query with yᵢ > yⱼ, with probabilities s_q cᵢ cⱼ/N
        w ← (1 − η_t λ) w + (η_t/k) Σ {xᵢ − xⱼ : ⟨w, xᵢ − xⱼ⟩ < 1},    η_t = 1/(λ (t + t₀))

The steps, the projection and the averages are those of Pegasos (`pegasos`, `steps`, `stochastic`): pairs are a stream
of rows xᵢ − xⱼ with the label 1. To draw one takes O(log m): rows are sorted by query and relevance, so the rows below
i are its query's first ones.

Certificate. The full sub-gradient at every evaluation is a plane (`planes`). Where the goal is an accuracy, some steps
of cutting planes (a share of the epochs so far) from the point at hand sharpen the bound, and their point is returned
if its P is lower. A run of `n_iter` steps returns what Pegasos returns.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from primalsvm.losses import Hinge
from primalsvm.objective import Evaluation, Problem
from primalsvm.ranking import Queries, Ranking
from primalsvm.rows import Batch, Pairs, Vector, in_memory, shape, squared_norms_of
from primalsvm.solvers import stochastic
from primalsvm.solvers.cutting_planes import CuttingPlanes, continue_from
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.planes import Planes
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stochastic import CHUNK, StochasticState
from primalsvm.team import ONCE_EACH, Team

STEPS_PER_EPOCH = 0.5  # of cutting planes, to sharpen the certificate


@dataclass
class PairState:
    """Pegasos' own state, what pairs are drawn from, and the planes."""

    stream: StochasticState
    draw: "Draw"
    planes: Planes
    target: float
    certify: bool
    next_evaluation: int  # step
    bound: float = -np.inf
    epoch: float = 0.0
    steps: int = 0
    operations: float = np.inf  # not counted
    finished: bool = False
    worth_evaluating: bool = False


@dataclass
class Draw:
    """Pairs at random."""

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
    pegasos : the options; `sampling` has no meaning here, and "suffix" averages as for streams (`stochastic`)

    Examples
    --------
    >>> from primalsvm.inputs import as_batch
    >>> from primalsvm.ranking import judged
    >>> from primalsvm.solvers.drive import Stops, drive
    >>> X, relevance = np.array([[3.0], [1.0], [1.5]]), np.array([2.0, 0.0, 1.0])
    >>> batch = as_batch(X, np.zeros(3))._replace(y=judged(np.zeros(3, int), relevance))
    >>> drive(Ranking(lam=0.01), batch, PairPegasos(Pegasos(n_iter=1000)), Stops()).n_steps
    1000
    """

    pegasos: Pegasos = field(default_factory=Pegasos)
    name: ClassVar[str] = "pair_pegasos"
    precise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.pegasos.n_iter, str) or self.pegasos.tries > 1 or self.pegasos.average == "random":
            raise ValueError("on pairs, Pegasos has neither n_iter='theory' nor more than one try nor average='random'")

    @property
    def self_paced(self) -> bool:
        """With n_iter given, exactly so many steps are taken."""
        return self.pegasos.self_paced

    def start(self, problem: Ranking, batch: Batch, run: Run, team: Team, previous: Any = None) -> PairState:
        """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
        assert problem.queries is not None
        draw = Draw(problem.queries, np.random.default_rng(run.seed))
        sample = pairs_of(batch, *draw(self.pegasos.sample))
        norms = np.empty(self.pegasos.sample)
        squared_norms_of(sample.rows, np.arange(self.pegasos.sample), norms)
        hinge = Problem(Hinge(), problem.lam)
        settings = self.pegasos.settings(hinge, norms, gentle=not self.self_paced)
        before = previous.stream if isinstance(previous, PairState) else None
        stream = stochastic.begin(self.pegasos.plan, settings, hinge, batch, before)
        planes = Planes.none(shape(batch.rows)[1])
        return PairState(stream, draw, planes, run.target, run.certify, self._steps_in(batch))

    def advance(self, problem: Ranking, batch: Batch, state: PairState, team: Team) -> PairState:
        """A chunk of steps."""
        k, plan = self.pegasos.batch_size, self.pegasos.plan
        n = min(max(CHUNK // k, 1), state.next_evaluation - state.steps)
        if plan.n_iter is not None:
            n = min(n, plan.n_iter - state.steps)
        pairs = pairs_of(batch, *state.draw(n * k))
        stochastic.absorb_steps(plan, Problem(Hinge(), problem.lam), pairs, state.stream, n)
        state.steps += n
        state.epoch = state.steps / self._steps_in(batch)
        state.worth_evaluating = state.steps == state.next_evaluation and not self.self_paced
        if state.steps == state.next_evaluation:
            state.next_evaluation *= 2
        state.finished = state.steps == plan.n_iter
        return state

    def evaluate(self, problem: Ranking, batch: Batch, state: PairState, team: Team) -> Evaluation:
        """P at the output, and the bound. The planes are kept, but no step depends on them."""
        w, b = self.iterate(problem, batch, state)
        cutting = continue_from(problem, batch, w, state.planes, state.target, team)
        own = cutting.primal
        if not self.self_paced:
            solver = CuttingPlanes()
            for _ in range(int(state.epoch * STEPS_PER_EPOCH)):
                if cutting.gap <= state.target * cutting.primal:
                    break
                cutting = solver.advance(problem, batch, cutting, team)
        state.bound = max(state.bound, cutting.bound)
        return Evaluation(cutting.w, b, min(own, cutting.primal), state.bound)

    def iterate(self, problem: Ranking, batch: Batch, state: PairState) -> tuple[Vector, float]:
        """The output so far: the average's."""
        return stochastic.iterate(self.pegasos.plan, state.stream)

    def _steps_in(self, batch: Batch) -> int:
        """An epoch has as many pairs as there are rows."""
        return -(-shape(batch.rows)[0] // self.pegasos.batch_size)


def pairs_of(batch: Batch, high: Vector, low: Vector) -> Batch:
    """The rows x_high − x_low, which shall score at least 1."""
    rows: Any = Pairs(in_memory(batch.rows), high, low)  # type: ignore[arg-type]  # a ranking has no rows of a kernel matrix
    return Batch(rows, np.ones(high.shape[0]), ONCE_EACH)
