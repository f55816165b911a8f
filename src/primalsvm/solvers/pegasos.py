"""Pegasos: primal estimated sub-gradient solver (Shalev-Shwartz, Singer and Srebro 2007).

    w₁ with ‖w₁‖ ≤ 1/√λ
    for t = 1, 2, …, T:
        choose A_t of k rows
        η_t     = 1/(λ t)
        w_{t+½} = (1 − η_t λ) w_t − (η_t/k) Σ_{i ∈ A_t} (cᵢ/c̄) ℓ'(yᵢ, ⟨w_t, xᵢ⟩ + b) xᵢ         eq. (3)
        w_{t+1} = min{1, 1/(√λ ‖w_{t+½}‖)} w_{t+½}                       eq. (4), if `projection`
    output w_{T+1}, an average of w_1 … w_T, or one of them at random

For the hinge −ℓ' xᵢ is yᵢ xᵢ where yᵢ⟨w, xᵢ⟩ < 1 and 0 elsewhere, as in the paper.

The steps are in `steps`, the averages and the certificate in `stochastic`.

Intercept. Penalised: the weight of a constant feature, part of w. Free: b moves with ASSET's step D_X/(D_G √t) in
[−B, B] (Lee and Wright, Algorithm 1), here with D_X/D_G = 1/sup|ℓ'|, in units of the margin; steps of 1/(λt) would
move it to ±1/λ.

First steps. If λ is small, steps of 1/λ, 1/(2λ), … are so long that most of a run is spent on correcting them. With an
offset, η_t = 1/(λ(t + t₀)), they are shorter and w₁ is not erased. The default is the paper's t₀ = 0 if a number of
steps is given, and t₀ = 70 mean‖x‖²/λ if the run is to reach a target gap. For a smooth loss whose slope is not bounded
(the squared hinge) t₀ is at least sup ℓ'' · R²/λ: a longer first step overshoots, and the run diverges.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from primalsvm import theory
from primalsvm.data import Vector
from primalsvm.losses import Hinge
from primalsvm.objective import Objective
from primalsvm.options import check_choice, check_integer, check_number
from primalsvm.solvers import stochastic
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import SAMPLINGS, Sampling
from primalsvm.solvers.steps import EQUAL, RISING, Settings
from primalsvm.solvers.stochastic import Average, RunOptions, StochasticSolver, StochasticState, weight_scale

# ‖x‖² is estimated from this many rows, for the offset and for the bounds of a free intercept.
SAMPLE = 1000
# λ t₀ / mean‖x‖² of runs with a target gap (a9a, covtype, λ = 1e-5: best between 50 and 150).
OFFSET_FACTOR = 70.0


@dataclass(frozen=True, eq=False)
class Pegasos(StochasticSolver):
    """Stochastic sub-gradient steps of length 1/(λt).

    Parameters
    ----------
    batch_size : int
        k, the rows in a step.
    n_iter : int, "theory" or None
        T, the exact number of steps, whatever `tol` and `max_iter` are; None: until the certified
        relative gap reaches `tol`. "theory": as many as `primalsvm.theory.plan` says suffice for P(w) − P* ≤ `epsilon`,
        in expectation or with probability 1 − `delta`; rows are then drawn independently, and what is returned is what
        the theorem is about.
    sampling : {"blocks", "epochs", "iid", "distinct"}
        Rows in shuffled blocks (fast), in a fresh permutation each epoch, independent draws, or k distinct rows each
        step (k = m is the deterministic sub-gradient method).
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
    def run_options(self) -> RunOptions:
        """The options that all stochastic solvers share."""
        if isinstance(self.n_iter, str):
            raise ValueError("n_iter='theory' depends on all rows, so it cannot be used with a stream")
        return RunOptions(self.batch_size, self.n_iter, self.sampling, self.average, self.tries, w1=self.w1)

    def start(self, objective: Objective, run: Run, previous: Any = None) -> StochasticState:
        """w₁ at t = 0; or, from a previous state of as many features, that state's (w, t)."""
        solver = self._with_steps_of_theory(objective) if isinstance(self.n_iter, str) else self
        return stochastic.start(solver.run_options, solver._settings_for(objective), objective, run, previous)

    def _with_steps_of_theory(self, objective: Objective) -> "Pegasos":
        """These options with the number of steps, the sampling and the average of the theorem."""
        if not isinstance(objective.loss, Hinge) or objective.free:
            raise ValueError("n_iter='theory' is about the hinge loss without a free intercept")
        assert self.epsilon is not None
        data = objective.data
        _, heaviest = weight_scale(data)
        constant = 1.0 if objective.intercept == "penalized" else 0.0
        longest = heaviest * math.sqrt(float(data.squared_norms(data.shape[0]).max()) + constant)
        steps = theory.plan(objective.lam, self.epsilon, self.delta, longest, self.projection)
        average: Average = "uniform" if self.delta is None else "random"
        return replace(
            self, n_iter=steps.iterations, tries=steps.tries, average=average, sampling="iid", epsilon=None, delta=None
        )

    def _settings_for(self, objective: Objective) -> Settings:
        data = objective.data
        # A run of n_iter steps costs the same for any number of rows: all norms are read only if a step needs them.
        norms = data.squared_norms(data.shape[0] if math.isinf(objective.loss.slope_bound) else SAMPLE)
        return self.settings(objective, norms, *weight_scale(data), with_offset=self.n_iter is None)

    def settings(
        self,
        objective: Objective,
        norms: Vector,
        mean_weight: float = 1.0,
        heaviest: float = 1.0,
        with_offset: bool = False,
    ) -> Settings:
        """The step, from ‖x‖² of sampled rows (of all, if the loss has no bounded slope).

        `with_offset` makes t₀ positive by default.
        """
        loss, lam, free = objective.loss, objective.lam, objective.free
        steep = math.isinf(loss.slope_bound)
        if steep and math.isinf(loss.curvature):
            raise ValueError(f"{loss!r} has neither a bounded slope nor a bounded curvature: Pegasos has no safe step")
        constant = 1.0 if objective.intercept == "penalized" else 0.0
        norms = norms + constant
        by_default = OFFSET_FACTOR * float(norms.mean()) / lam if with_offset else 0.0
        offset = by_default if self.offset == "auto" else float(self.offset)
        if steep:
            offset = max(offset, loss.curvature * float(norms.max()) * heaviest / lam)
        largest = objective.bounds.largest
        bound = largest + math.sqrt(float(norms.max())) * objective.radius if free else 0.0
        margin = largest if objective.nu else 1.0
        return Settings(
            lam=lam,
            offset=offset,
            root_step=0.0,
            radius=objective.radius if self.projection else math.inf,
            constant=constant,
            intercept_step=margin / min(loss.slope_bound, max(1.0, loss.curvature)) if free else 0.0,
            intercept_bound=bound,
            mean_weight=mean_weight,
            weighting=RISING if self.average == "weighted" else EQUAL,
            nu=objective.nu,
        )
