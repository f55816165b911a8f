"""Pegasos with an exact kernel: w = Σ βⱼ φ(xⱼ) is given by its coefficients β (Shalev-Shwartz et al. 2011, Fig. 3).

    for t = 1, 2, …, T:
        choose i
        p        = Σⱼ βⱼ k(xⱼ, xᵢ)                                            ⟨w_t, φ(xᵢ)⟩
        β        ← (1 − 1/t) β
        βᵢ       ← βᵢ − ℓ'(yᵢ, p)/(λ t)

For the hinge λ t βᵢ = yᵢ · (the number of visits in which row i violated its margin). The steps are those of `Pegasos`,
with all its options; only the rows differ (`KernelMatrix`): an inner product costs one row of the kernel matrix, and
adding a row changes one coefficient.

The objective in β is problem (4) of ASSET up to signs: λ/2 βᵀKβ + (1/Σc) Σ cᵢ ℓ(yᵢ, (Kβ)ᵢ + b).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from primalsvm.objective import Objective
from primalsvm.solvers.pegasos import Pegasos
from primalsvm.solvers.protocol import Run
from primalsvm.solvers.stochastic import StochasticSolver, StochasticState


@dataclass(frozen=True)
class KernelPegasos(StochasticSolver):
    """Pegasos over the rows of a kernel matrix; `w` is the vector of coefficients β.

    Parameters
    ----------
    pegasos : the options
    """

    pegasos: Pegasos
    name: ClassVar[str] = "kernel_pegasos"

    @property
    def n_iter(self) -> int | str | None:
        """As `Pegasos`."""
        return self.pegasos.n_iter

    def start(self, objective: Objective, run: Run, previous: Any = None) -> StochasticState:
        """β = 0 at t = 0; or, from a previous state of as many rows, that state's (β, t)."""
        state = self.pegasos.start(objective, run, previous)
        it = state.iterate
        if it.t > 0:  # the rows, or the kernel, may be others: ‖w‖² = βᵀKβ
            squared = objective.squared_norm(state.v.astype(float)) + it.bias * it.bias
            state.iterate = it._replace(square=it.a * it.a * squared)
        return state
