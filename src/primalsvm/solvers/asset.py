"""ASSET: robust stochastic approximation with a free intercept (Lee and Wright, Algorithm 1).

    X   = {‖w‖ ≤ 1/√λ} × {|b| ≤ B},   D_X = √(1/λ + B²)                                     eq. (22)
    D_G : E‖G(w, b; ξ)‖² ≤ D_G²,  estimated at 0 from M rows                                eq. (24)
    (w⁰, b⁰) = 0
    for j = 1, 2, …, N:
        η_j     = D_X / (D_G √j)
        choose A_j of k rows                                                                (the paper: k = 1)
        wʲ      = Π[(1 − η_j λ) wʲ⁻¹ − (η_j/k) Σ_{i ∈ A_j} (cᵢ/c̄) ℓ'(yᵢ, ⟨wʲ⁻¹, xᵢ⟩ + bʲ⁻¹) xᵢ]
        bʲ      = Π[bʲ⁻¹ − (η_j/k) Σ_{i ∈ A_j} (cᵢ/c̄) ℓ'(yᵢ, ⟨wʲ⁻¹, xᵢ⟩ + bʲ⁻¹)]
    output Σ_{j ≥ N̄} η_j (wʲ, bʲ) / Σ_{j ≥ N̄} η_j                                             eq. (27)

Without intercept X is the ball alone and D_X = 1/√λ. ASSET* (§3.3, `strongly_convex`): no intercept, η_j = 1/(λj).

xᵢ may be any features: the rows themselves, Nyström features (16) or Fourier features (17). The steps are in
`steps`, the average and the certificate in `stochastic`.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from primalsvm.data import Vector
from primalsvm.objective import Objective
from primalsvm.options import check_choice, check_integer, check_number
from primalsvm.solvers import stochastic
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.sampling import SAMPLINGS, Sampling
from primalsvm.solvers.steps import BY_STEP, Settings
from primalsvm.solvers.stochastic import RunOptions, StochasticSolver, StochasticState, weight_scale


@dataclass(frozen=True)
class Asset(StochasticSolver):
    """Stochastic sub-gradient steps of length D_X/(D_G √j) with an η-weighted average.

    Parameters
    ----------
    n_iter : int or None
        N, the exact number of steps; None: until the certified relative gap reaches `tol`.
    batch_size : int
        k, the rows in a step.
    sampling : {"blocks", "epochs", "iid", "distinct"}
        As in `Pegasos`; the paper's is "iid".
    average_from : float or None
        ρ in [0, 1): average from step N̄ = ⌈ρN⌉ on. Without an N (`n_iter=None`, streams), over the steps since the last
        power of two, or somewhat more. None: no average, the last iterate is returned.
    average_last : int or None
        Average this many last steps instead, N̄ = N − `average_last` (the paper: 100). In a stream between one and two
        times as many.
    strongly_convex : bool
        ASSET*: steps of 1/(λj). Needs a problem without free intercept.
    D_X, D_G, B : float or None
        The radius of the feasible set, the size of a stochastic sub-gradient and the bound of the intercept; None:
        √(1/λ + B²), estimated, and 1 + R/√λ with R the longest of the sampled rows.
    M : int
        Rows in the sample that D_G and R are estimated from.

    Examples
    --------
    >>> import numpy as np
    >>> from primalsvm import Hinge, Problem, solve
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [-1.0, 0.5], [-2.0, -1.0]])
    >>> solution = solve(Problem(Hinge(), 0.1, "free"), X, [1, 1, -1, -1], solver=Asset(n_iter=20_000))
    >>> solution.n_steps, solution.certificate.relative_gap < 0.1
    (20000, True)
    """

    n_iter: int | None = None
    batch_size: int = 1
    sampling: Sampling = "blocks"
    average_from: float | None = 0.5
    average_last: int | None = None
    strongly_convex: bool = False
    D_X: float | None = None
    D_G: float | None = None
    B: float | None = None
    M: int = 1000
    name: ClassVar[str] = "asset"

    def __post_init__(self) -> None:
        for name in ("batch_size", "M"):
            check_integer(name, getattr(self, name))
        for name in ("n_iter", "average_last"):
            check_integer(name, getattr(self, name), none=True)
        for name in ("D_X", "D_G", "B"):
            check_number(name, getattr(self, name), 0.0, open_low=True, none=True)
        check_choice("sampling", self.sampling, SAMPLINGS)
        check_number("average_from", self.average_from, 0.0, 1.0, none=True)

    @property
    def sample(self) -> int:
        """The number of rows that R and D_G are estimated from."""
        return self.M

    @property
    def run_options(self) -> RunOptions:
        """The options that all stochastic solvers share."""
        averaging = self.average_from is not None or self.average_last is not None
        return RunOptions(
            self.batch_size,
            self.n_iter,
            self.sampling,
            "suffix" if averaging else "last",
            share=self.average_from or 0.0,
            average_last=self.average_last,
        )

    def start(self, objective: Objective, run: Run, previous: Any = None) -> StochasticState:
        """(w, b) = 0 at j = 0; or, from a previous state of as many features, that state's (w, b, j)."""
        settings = self.settings(objective, objective.data.squared_norms(self.M), *weight_scale(objective.data))
        return stochastic.start(self.run_options, settings, objective, run, previous)

    def settings(
        self, objective: Objective, norms: Vector, mean_weight: float = 1.0, heaviest: float = 1.0
    ) -> Settings:
        """The feasible set and the step, from ‖x‖² of sampled rows and the largest cᵢ/c̄."""
        free = objective.free
        if self.strongly_convex and free:
            raise ValueError("ASSET* (strongly_convex=True) has no free intercept: use fit_intercept=False")
        constant = 1.0 if objective.intercept == "penalized" else 0.0
        squared = norms + constant
        radius, longest = objective.radius, math.sqrt(float(squared.max()))
        bound = (self.B or objective.bounds.largest + longest * radius) if free else 0.0
        reach = self.D_X or math.hypot(radius, bound)
        size = self.D_G or _gradient_size(objective, squared + float(free), longest, bound, heaviest)
        root_step = 0.0 if self.strongly_convex else reach / size
        return Settings(
            lam=objective.lam,
            offset=0.0,
            root_step=root_step,
            radius=radius,
            constant=constant,
            intercept_step=root_step if free else 0.0,
            intercept_bound=bound,
            mean_weight=mean_weight,
            weighting=BY_STEP,
            nu=objective.nu,
        )


def _gradient_size(objective: Objective, squared: Vector, longest: float, bound: float, heaviest: float) -> float:
    """D_G: the root mean square of ℓ'(0) (x, 1), where slopes are bounded; else a bound over all of X."""
    loss = objective.loss
    if math.isfinite(loss.slope_bound):
        at_zero = max(abs(loss.slope(0.0, 1.0)), abs(loss.slope(0.0, -1.0)))
        steepest = at_zero if loss.is_classification else loss.slope_bound
    else:
        steepest = heaviest * loss.curvature * (objective.bounds.largest + longest * objective.radius + bound)
    return steepest * math.sqrt(float(np.mean(squared))) or 1.0
