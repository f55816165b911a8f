"""Pegasos: primal estimated sub-gradient solver (Shalev-Shwartz, Singer and Srebro 2007).

    w₁ with ‖w₁‖ ≤ 1/√λ
    for t = 1, 2, …, T:
        choose A_t of k rows
        η_t     = 1/(λ t)
        w_{t+½} = (1 − η_t λ) w_t − (η_t/k) Σ_{i ∈ A_t} (cᵢ/c̄) ℓ'(yᵢ, ⟨w_t, xᵢ⟩ + b) xᵢ         eq. (3)
        w_{t+1} = min{1, 1/(√λ ‖w_{t+½}‖)} w_{t+½}                       eq. (4), if `projection`
    output w_{T+1}, an average of w_1 … w_T, or one of them at random

For the hinge −ℓ' xᵢ is yᵢ xᵢ where yᵢ⟨w, xᵢ⟩ < 1 and 0 elsewhere, as in the paper.

The steps themselves are in `steps`, the averages and the certificate in `stochastic`.

Intercept. Penalised: the weight of a constant feature, part of w. Free: b moves with ASSET's step D_X/(D_G √t) in
[−B, B] (Lee and Wright, Algorithm 1), here with D_X/D_G = 1/sup|ℓ'|, in units of the margin; 1/(λt) would throw it to
±1/λ.

First steps. With λ small, 1/λ, 1/(2λ), … are so long that it takes most of a run to get back. With an offset,
η_t = 1/(λ(t + t₀)), they are shorter and w₁ is not erased. The default is the paper's t₀ = 0 when a number of steps is
given, and t₀ = 70 mean‖x‖²/λ when the goal is an accuracy. For a smooth loss whose slope is not bounded (the squared
hinge) t₀ is at least sup ℓ'' · R²/λ: a longer first step overshoots, and the run blows up.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from primalsvm import theory
from primalsvm.losses import Hinge
from primalsvm.objective import Evaluation, Problem
from primalsvm.options import check_choice, check_integer, check_number
from primalsvm.rows import Batch, Vector, sampled_squared_norms, shape, total_weight
from primalsvm.solvers import stochastic
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import SAMPLINGS, Sampling
from primalsvm.solvers.steps import EQUAL, RISING, Settings
from primalsvm.solvers.stochastic import Average, Plan, StochasticState
from primalsvm.team import Team

SAMPLE = 1000  # rows that estimate ‖x‖² for the offset and for the bounds of a free intercept
GENTLE = 70.0  # λ t₀ / mean‖x‖² when the goal is an accuracy (a9a, covtype, λ = 1e-5: best between 50 and 150)


@dataclass(frozen=True, eq=False)
class Pegasos:
    """Stochastic sub-gradient steps of length 1/(λt).

    Parameters
    ----------
    batch_size : int
        k, the rows in a step.
    n_iter : int, "theory" or None
        T, the number of steps, which then are all taken whatever `tol` and `max_iter` say; None: until the certified
        relative gap reaches `tol`. "theory": as many as `primalsvm.theory.plan` says suffice for P(w) − P* ≤ `epsilon`,
        in expectation or with probability 1 − `delta`; rows are then drawn independently, and what is returned is what
        the theorem is about.
    sampling : {"blocks", "epochs", "iid", "distinct"}
        Rows in mixed blocks (fast), in a fresh permutation each epoch, independent draws, or k distinct rows each step
        (k = m is the deterministic sub-gradient method).
    projection : bool
        Project onto the ball of radius 1/√λ (of regressions √(2 P(0)/λ)) after each step.
    average : {"suffix", "weighted", "last", "uniform", "random"}
        What is returned: the average of the tail (the last half if `n_iter` is given, else since the last power of two
        epochs), the average with weights t, w_{T+1}, the plain average, or a random iterate.
    tries : int
        s: run s times n_iter/s steps and keep the best outcome. For the 1 − δ guarantee s = ⌈ln 1/δ⌉ with
        ``average="random"``.
    w1 : array or None
        The start, in the ball; None is 0. (With t₀ = 0 the first step erases it, as 1 − η₁λ = 0.)
    epsilon, delta : float or None
        ε and δ of ``n_iter="theory"``; without δ, in expectation.
    offset : float or "auto"
        t₀ in η_t = 1/(λ(t + t₀)). "auto" is 0 with `n_iter`, else 70 mean‖x‖²/λ; more where the loss needs it.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), lam=0.1), X, [1, 1, -1, -1], solver=Pegasos(n_iter=1000))
    >>> solution.n_steps, solution.certificate.relative_gap < 0.05
    (1000, True)
    """

    batch_size: int = 1
    n_iter: int | Literal["theory"] | None = None
    sampling: Sampling = "blocks"
    projection: bool = False
    average: Average = "suffix"
    tries: int = 1
    w1: Vector | None = None
    offset: float | Literal["auto"] = "auto"
    epsilon: float | None = None
    delta: float | None = None
    name: ClassVar[str] = "pegasos"
    precise: ClassVar[bool] = False
    sample: ClassVar[int] = SAMPLE

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size)
        check_integer("tries", self.tries)
        if isinstance(self.n_iter, str):
            check_choice("n_iter", self.n_iter, ("theory",), "or give a number, or None")
            check_number("epsilon", self.epsilon, 0.0, open_low=True)
            check_number("delta", self.delta, 0.0, 1.0, open_low=True, none=True)
        elif self.epsilon is not None or self.delta is not None:
            raise ValueError("epsilon and delta are for n_iter='theory'")
        else:
            check_integer("n_iter", self.n_iter, none=True)
        if self.tries > 1 and (self.n_iter is None or isinstance(self.n_iter, str)):
            raise ValueError("more than one try needs n_iter, the total of all steps")
        if isinstance(self.n_iter, int) and self.n_iter < self.tries:
            raise ValueError(f"n_iter must be at least 1 per try, got {self.n_iter!r} for {self.tries} tries")
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_choice("average", self.average, ("suffix", "weighted", "last", "uniform", "random"))
        if self.offset != "auto":
            check_number("offset", self.offset, 0.0)

    @property
    def self_paced(self) -> bool:
        """With n_iter given, exactly so many steps are taken."""
        return self.n_iter is not None

    @property
    def plan(self) -> Plan:
        """The options that all stochastic solvers share."""
        if isinstance(self.n_iter, str):
            raise ValueError("n_iter='theory' is settled when the rows are known: see `prepared`")
        return Plan(self.batch_size, self.n_iter, self.sampling, self.average, self.tries, w1=self.w1)

    def prepared(self, problem: Problem, batch: Batch) -> "Pegasos":
        """These options with the number of steps that theory asks for, if it is to be asked."""
        if not isinstance(self.n_iter, str):
            return self
        if not isinstance(problem.loss, Hinge) or problem.intercept == "free":
            raise ValueError("n_iter='theory' is about the hinge loss without a free intercept")
        assert self.epsilon is not None
        m = shape(batch.rows)[0]
        heaviest = float(batch.weight.values.max()) * m / total_weight(batch)
        constant = 1.0 if problem.intercept == "penalized" else 0.0
        longest = heaviest * math.sqrt(float(sampled_squared_norms(batch.rows, m).max()) + constant)
        steps = theory.plan(problem.lam, self.epsilon, self.delta, longest, self.projection)
        average: Average = "uniform" if self.delta is None else "random"
        return replace(
            self, n_iter=steps.iterations, tries=steps.tries, average=average, sampling="iid", epsilon=None, delta=None
        )

    def start(self, problem: Problem, batch: Batch, run: Run, team: Team, previous: Any = None) -> StochasticState:
        """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
        return stochastic.start(self.plan, self._settings(problem, batch), problem, batch, run, previous)

    def advance(self, problem: Problem, batch: Batch, state: StochasticState, team: Team) -> StochasticState:
        """A chunk of steps."""
        return stochastic.advance(self.plan, problem, batch, state, team)

    def evaluate(self, problem: Problem, batch: Batch, state: StochasticState, team: Team) -> Evaluation:
        """P at the output, with the best b if it is free; D at the mean slopes."""
        return stochastic.evaluate(self.plan, problem, batch, state, team)

    def iterate(self, problem: Problem, batch: Batch, state: StochasticState) -> tuple[Vector, float]:
        """The output so far: the average's, or the best try's."""
        return stochastic.iterate(self.plan, state)

    def _settings(self, problem: Problem, batch: Batch) -> Settings:
        m = shape(batch.rows)[0]
        steep = math.isinf(problem.loss.slope_bound)
        # A run of n_iter steps costs the same whatever the number of rows: only a safe step has to look at all of them.
        norms = sampled_squared_norms(batch.rows, m if steep else SAMPLE)
        mean_weight = total_weight(batch) / m
        heaviest = float(batch.weight.values.max()) / mean_weight
        return self.settings(problem, norms, mean_weight, heaviest, gentle=self.n_iter is None)

    def settings(
        self,
        problem: Problem,
        norms: Vector,
        mean_weight: float = 1.0,
        heaviest: float = 1.0,
        gentle: bool = False,
    ) -> Settings:
        """The step, from ‖x‖² of sampled rows (of all, if the loss has no bounded slope); `gentle`: with an offset."""
        loss = problem.loss
        steep = math.isinf(loss.slope_bound)
        if steep and math.isinf(loss.curvature):
            raise ValueError(f"{loss!r} has neither a bounded slope nor a bounded curvature: Pegasos has no safe step")
        constant = 1.0 if problem.intercept == "penalized" else 0.0
        norms = norms + constant
        if self.offset != "auto":
            offset = float(self.offset)
        else:
            offset = GENTLE * float(norms.mean()) / problem.lam if gentle else 0.0
        if steep:
            offset = max(offset, loss.curvature * float(norms.max()) * heaviest / problem.lam)
        free = problem.intercept == "free"
        bound = problem.targets.largest + math.sqrt(float(norms.max())) * problem.radius if free else 0.0
        margin = problem.targets.largest if problem.tilt else 1.0
        return Settings(
            lam=problem.lam,
            offset=offset,
            root_step=0.0,
            radius=problem.radius if self.projection else math.inf,
            constant=constant,
            intercept_step=margin / min(loss.slope_bound, max(1.0, loss.curvature)) if free else 0.0,
            intercept_bound=bound,
            mean_weight=mean_weight,
            weighting=RISING if self.average == "weighted" else EQUAL,
            tilt=problem.tilt,
        )
