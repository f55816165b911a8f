"""Extending: a loss and a solver of one's own, fitted, certified, saved and loaded.

What one learns here:
- a loss is a NamedTuple with six short methods and three properties (docstring of `primalsvm.losses`), and every solver
  knows it at once;
- a solver is an object with options and four methods (`primalsvm.solvers.protocol`); clock, certificate, limits,
  history and warnings are the driver's;
- any α in the domain of the dual gives a lower bound, such as −ℓ' at a solver's own point: it takes no proof to certify
  a new method;
- three lines register the loss, the solver and its state, for names and for files.

The loss is least squares, so that there is something to compare with: Fisher's discriminant, scikit-learn's
`RidgeClassifier`. The solver is Nesterov's accelerated gradient descent.

Run: python examples/extending.py [--quick] [--out FOLDER]
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from common import BLUE, ORANGE, options, panels, save
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import StandardScaler

import primalsvm
from primalsvm import LinearSVC, SquaredHinge
from primalsvm.losses.registry import LOSSES
from primalsvm.objective import Evaluation
from primalsvm.solvers.protocol import SolverState, Traits
from primalsvm.solvers.registry import SOLVERS, STATES

args = options(__doc__)
rows = load_breast_cancer()
X, y = StandardScaler().fit_transform(rows.data), np.where(rows.target, "benign", "malignant")

# ---- A loss. Its methods are compiled: plain arithmetic of numbers only ----------------------------------------------


class LeastSquares(NamedTuple):
    """ℓ = (1 − yp)²/2 = (y − p)²/2 with y = ±1, and ℓ*(a) = ay + a²/2."""

    @property
    def is_classification(self) -> bool:
        return True

    @property
    def slope_bound(self) -> float:
        return math.inf

    @property
    def curvature(self) -> float:
        return 1.0

    def value(self, p: float, y: float) -> float:
        return 0.5 * (y - p) * (y - p)

    def slope(self, p: float, y: float) -> float:
        return p - y

    def conjugate(self, a: float, y: float) -> float:
        return a * y + 0.5 * a * a

    def conjugate_curvature(self, a: float, y: float) -> float:
        return 1.0

    def feasible(self, alpha: float, y: float) -> float:
        return alpha

    def dual_step(self, p: float, y: float, alpha: float, q: float) -> float:
        return (y - p + q * alpha) / (1.0 + q)


# ---- A solver. Its options are frozen; all that changes is in the state ----------------------------------------------


@dataclass
class AcceleratedState(SolverState):  # which has the fields that the driver reads: epoch, steps, …
    """w, the point v ahead of it, and the best b there."""

    w: Any
    v: Any
    b: float
    length: float  # 1/L


@dataclass(frozen=True)
class Accelerated:
    """Accelerated gradient descent for smooth losses (Nesterov 2004, §2.2), L = λ + sup ℓ'' · mean ‖x‖².

    w⁺ ← v − ∇P(v)/L,   v ← w⁺ + β (w⁺ − w),   β = (1 − √(λ/L))/(1 + √(λ/L));   b is always the best one.
    """

    every: int = 10  # steps between two evaluations

    name: ClassVar[str] = "accelerated"
    traits: ClassVar[Traits] = Traits("passes", intercepts=("none", "free"))

    def start(self, objective: Any, run: Any, previous: Any = None) -> AcceleratedState:
        w = np.zeros(objective.data.shape[1])
        L = objective.lam + objective.loss.curvature * float(objective.data.squared_norms().mean())
        return AcceleratedState(w, w, 0.0, 1.0 / L, target=run.target)

    def advance(self, objective: Any, state: AcceleratedState) -> AcceleratedState:
        root = math.sqrt(objective.lam * state.length)
        state.b, _, _ = objective.evaluate_primal(state.v, state.b)
        w = state.v - state.length * objective.subgradient(state.v, state.b)[0]
        state.w, state.v = w, w + (1.0 - root) / (1.0 + root) * (w - state.w)
        state.steps += 1
        state.epoch += 1.0
        state.worth_evaluating = state.steps % self.every == 0
        return state

    def evaluate(self, objective: Any, state: AcceleratedState) -> Evaluation:
        b, primal, scores = objective.evaluate_primal(state.w, state.b)  # b: the best one for w, if it is free
        alpha = objective.data.map(np.negative, objective.slopes_at(scores, b))
        return Evaluation(state.w, b, primal, objective.lower_bound(alpha))

    def iterate(self, objective: Any, state: AcceleratedState) -> tuple[Any, float]:
        return state.w, state.b


# ---- Registered, they have names, and files hold them ----------------------------------------------------------------

LOSSES["LeastSquares"] = LeastSquares
SOLVERS["Accelerated"] = Accelerated
STATES["AcceleratedState"] = AcceleratedState  # for checkpoints

lam = 0.01
fits = {
    "my loss, any solver": LinearSVC(lam=lam, loss="least_squares"),
    "my loss, my solver": LinearSVC(lam=lam, loss="least_squares", solver="accelerated"),
    "any smooth loss, my solver": LinearSVC(lam=lam, loss=SquaredHinge(), solver=Accelerated(every=5)),
}
print(f"{X.shape[0]} rows, {X.shape[1]} features. Each P* lies between the two numbers of its certificate:")
for name, model in fits.items():
    model.fit(X, y)
    print(f"  {name:27} {model.certificate_}")

ridge = RidgeClassifier(alpha=lam * len(X)).fit(X, y)
mine = fits["my loss, my solver"]
difference = np.abs(mine.decision_function(X) - ridge.decision_function(X)).max()
print(f"\nThe scores differ from those of scikit-learn's RidgeClassifier by {difference:.1e} at most")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model"
    mine.save(path)
    again = primalsvm.load(path)
print(f"Saved and loaded: {again.loss!r}, {again.solver_!r}, the same predictions:", end=" ")
print(np.array_equal(again.predict(X), mine.predict(X)))

figure, (left,) = panels(1, width=6.4)
for name, colour in zip(list(fits)[1:], (BLUE, ORANGE), strict=True):
    trace = fits[name].history_
    left.semilogy(trace["epoch"], trace["gap"] / np.abs(trace["primal"]), color=colour, marker=".", label=name)
left.set(xlabel="epochs", ylabel="relative gap", title="certified from the first evaluation on")
left.legend(frameon=False)
save(figure, args.out, "extending.png")
