"""Pegasos with a kernel, exact: w = Σ βⱼ φ(xⱼ) is known by its coefficients alone (Shalev-Shwartz et al. 2011, Fig. 3).

    for t = 1, 2, …, T:
        choose i
        p        = Σⱼ βⱼ k(xⱼ, xᵢ)                                            ⟨w_t, φ(xᵢ)⟩
        β        ← (1 − 1/t) β
        βᵢ       ← βᵢ − ℓ'(yᵢ, p)/(λ t)

For the hinge λ t βᵢ = yᵢ · (how often row i violated its margin when it was visited): counts are all that is kept. The
steps are those of `Pegasos` with every option it has; only what a row is differs (`rows.Gram`): an inner product costs
one row of the kernel matrix, adding a row changes one coefficient.

The objective in β is problem (4) of ASSET up to signs: λ/2 βᵀKβ + (1/Σc) Σ cᵢ ℓ(yᵢ, (Kβ)ᵢ + b).
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.objective import Evaluation, Problem
from primalsvm.rows import Batch, Vector, inner, total_weight
from primalsvm.solvers import stochastic
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stochastic import StochasticState
from primalsvm.team import Team


@dataclass(frozen=True)
class KernelPegasos:
    """Pegasos over the rows of a kernel matrix; `w` is the vector of coefficients β.

    Parameters
    ----------
    pegasos : the options
    """

    pegasos: Pegasos
    name: ClassVar[str] = "kernel_pegasos"
    precise: ClassVar[bool] = False

    @property
    def self_paced(self) -> bool:
        """As `Pegasos`."""
        return self.pegasos.self_paced

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> StochasticState:
        """β = 0 at t = 0; or, from a previous state of as many rows, that state's (β, t)."""
        state = self.pegasos.start(problem, batch, run, team, previous)
        if state.iterate.t > 0:  # the rows, or the kernel, may be others: ‖w‖² = βᵀKβ
            a, v, bias = state.iterate.a, state.v.astype(np.float64), state.iterate.bias
            squared = float(inner(v, team.scores(batch.rows, v)))
            state.iterate = state.iterate._replace(nu=a * a * (squared + bias * bias))
        return state

    def advance(self, problem: Problem, batch: Batch, state: StochasticState, team: Team) -> StochasticState:
        """A chunk of steps."""
        primal = functools.partial(primal_of, problem)
        return stochastic.advance(self.pegasos.plan, problem, batch, state, team, primal)

    def iterate(self, problem: Problem, batch: Batch, state: StochasticState) -> tuple[Vector, float]:
        """The coefficients that `average` says."""
        return self.pegasos.iterate(problem, batch, state)

    def evaluate(self, problem: Problem, batch: Batch, state: StochasticState, team: Team) -> Evaluation:
        """P at β, with the best b if it is free; D at the mean slopes, with w(α) = Σ cᵢαᵢ φ(xᵢ)/(λΣc)."""
        beta, b = self.iterate(problem, batch, state)
        b, primal, scores = primal_of(problem, batch, beta, b, team)
        alpha = problem.balanced(batch, stochastic.mean_slopes(problem, batch, state, scores, b))
        total = total_weight(batch)
        weighted = np.broadcast_to(batch.weight.values, alpha.shape) * alpha / (problem.lam * total)
        norm = float(inner(weighted, team.scores(batch.rows, weighted)))
        if problem.intercept == "penalized":
            norm += (problem.balance(batch, alpha) / (problem.lam * total)) ** 2
        dual = problem.conjugate_sum(batch, alpha) / total - problem.lam / 2 * norm
        return Evaluation(beta, b, primal, dual)


def primal_of(problem: Problem, batch: Batch, beta: Vector, b: float, team: Team) -> tuple[float, float, Vector]:
    """The best b where it is free, P = λ/2 βᵀKβ + (1/Σc) Σ cᵢ ℓ(yᵢ, (Kβ)ᵢ + b), and the scores Kβ."""
    scores = team.scores(batch.rows, beta)
    if problem.intercept == "free":
        b = problem.best_intercept(batch, scores)
    norm = float(inner(beta, scores)) + (b * b if problem.intercept == "penalized" else 0.0)
    return b, problem.lam / 2 * norm + problem.tilt * b + problem.mean_loss(batch, scores, b), scores
