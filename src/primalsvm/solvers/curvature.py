"""∇²Φ of `newton`: a sum over rows that is updated for the rows that change, and the solution of its systems.

    H = (1/Σc) Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ,    (λI + H) δ = −g,    hᵢ includes the weight cᵢ

From one step to the next most rows stay inside their domain or at its ends, and keep their hᵢ. So H is updated: only
rows whose hᵢ has changed by more than a tenth are added, with the difference.

H only determines the direction of steps, so it is summed in single precision while the rounding is small compared with
λ. If neither the features nor the rows inside are few enough for a factorisation, conjugate gradients solve the systems
approximately. Systems with one equation a row, and copies of the rows inside, need rows with numbers.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.linalg

from primalsvm.data import Dataset, Handle, Vector
from primalsvm.objective import Objective
from primalsvm.solvers import costs
from primalsvm.solvers.costs import LARGEST_FACTOR, PRODUCTS
from primalsvm.solvers.proximal import assign_changed, changes, divide
from primalsvm.solvers.systems import bordered, conjugate_gradients, factorise

# H is summed in single precision while the rounding of the sum is at most this multiple of λ (0.01 to 100: as good).
SINGLE_PRECISION_ERROR = 1.0
# A change of hᵢ below this share is not added yet (0 to 0.3 take the same work; 0.6 takes more steps).
CHANGED = 0.1
# Conjugate gradients stop at this relative residual: H only determines the direction of steps.
CG_TOLERANCE = 0.05
# If at most this share of the rows is inside, these rows are copied, so that passes read no others.
COPIED_SHARE = 0.5
# The diagonal is raised by the first of these shares with which the factorisation succeeds: 0, the rounding of H, and
# far more. (Not `systems.factorise`: when this fails, H is summed again in double precision before its diagonal is
# raised, and a rough direction is enough.)
RIDGES = (0.0, 1e-14, 1e-10)


@dataclass
class Curvature:
    """H, and the hᵢ that it was summed with."""

    squares: Vector | None  # Σ hᵢ (xᵢ, 1)(xᵢ, 1)ᵀ, the lower triangle; None: not summed yet
    counted: Handle  # hᵢ
    single: bool  # whether to sum in single precision
    largest: float  # about the largest ‖x‖²; for sums in single precision
    operations: float = 0.0  # since the last `take_operations`

    @classmethod
    def of(cls, data: Dataset) -> "Curvature":
        """H = 0, with no row counted."""
        single = data.dtype != np.float64
        return cls(None, data.zeros(), single, float(data.squared_norms().max()) if single else 0.0)

    def step(self, objective: Objective, h: Handle, inside: int, g: Vector, g_b: float) -> tuple[Vector, float]:
        """−(λI + H)⁻¹ (g, g_b), through the smaller of the two systems; `inside`: the number of rows with hᵢ > 0."""
        data, d = objective.data, g.shape[0]
        few_rows, few_features = data.numbered and inside <= LARGEST_FACTOR, d + 1 <= LARGEST_FACTOR
        if few_rows and (2 * inside < d or not few_features):
            self.operations += costs.row_system(costs.Size.of(data), inside)
            return _step_by_rows(objective, h, g, g_b)
        if few_features:
            self.operations += costs.factorisation(d)
            return self._step_by_features(objective, h, inside, g, g_b)
        self.operations += 2.0 * PRODUCTS * costs.one_pass(costs.Size.of(data))
        return _rough_step(objective, h, inside, g, g_b)

    def take_operations(self) -> float:
        """The operations since the last call."""
        operations, self.operations = self.operations, 0.0
        return operations

    def _step_by_features(
        self, objective: Objective, h: Handle, inside: int, g: Vector, g_b: float
    ) -> tuple[Vector, float]:
        """Solve the d + 1 equations."""
        data, d, lam, total = objective.data, g.shape[0], objective.lam, objective.total
        if self.single:
            trace = float(data.reduce(np.sum, h)) / total * (self.largest + 1.0)  # at most
            if np.finfo(np.float32).eps * trace > SINGLE_PRECISION_ERROR * lam:
                self.squares, self.single = None, False
        for ridge in RIDGES:
            hessian = self._update_squares(data, h, inside) / total
            hessian[np.arange(d), np.arange(d)] += lam
            if objective.intercept == "none":
                hessian[d, :d] = 0.0
            hessian[d, d] += {"none": 1.0, "penalized": lam, "free": 0.0}[objective.intercept]
            hessian[np.arange(d + 1), np.arange(d + 1)] *= 1.0 + ridge
            try:
                factor = scipy.linalg.cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:  # rounding: try again in double precision, with a larger diagonal
                self.squares, self.single = None, False
                continue
            step = -scipy.linalg.cho_solve(factor, np.append(g, g_b), check_finite=False)
            return step[:d], float(step[d])
        return -g / lam, 0.0

    def _update_squares(self, data: Dataset, h: Handle, inside: int) -> Vector:
        """Update the squares by the rows that changed, or sum all rows inside again if these are fewer."""
        m, d = data.shape
        change, moved = h, inside
        if self.squares is not None:
            change = data.map(partial(changes, CHANGED), h, self.counted)
            moved = data.reduce(np.count_nonzero, change)
            if moved > inside:
                self.squares, change, moved = None, h, inside
        if self.squares is None:
            self.squares = np.zeros((d + 1, d + 1), order="F")
            data.update(np.copyto, self.counted, h)
        else:
            data.update(assign_changed, change, h, self.counted)
        self.operations += costs.squares(costs.Size.of(data)) * moved / m
        return data.gram(change, self.single, self.squares)


def _step_by_rows(objective: Objective, h: Handle, g: Vector, g_b: float) -> tuple[Vector, float]:
    """The same with one equation a row: z = A δ_w + s δ_b,  (I + AAᵀ/λ) z = s δ_b − A g/λ,  μ δ_b + sᵀz = −g_b.

    A are the rows inside times s = √(hᵢ/Σc).
    """
    data, lam = objective.data, objective.lam
    inside = data.find(h)
    n = inside.shape[0]
    roots = np.sqrt(data.get(h, inside) / objective.total)
    if n <= COPIED_SHARE * data.shape[0]:
        data, inside = data.subset(inside), np.arange(n)
    matrix = data.products(inside)
    matrix *= roots[:, None] / lam
    matrix *= roots
    matrix[np.arange(n), np.arange(n)] += 1.0
    inverse = factorise(matrix)
    z = inverse(-roots * data.get(data.scores(g), inside) / lam)
    step_b = 0.0
    if objective.intercept != "none":
        from_b = inverse(roots)
        mu = lam if objective.intercept == "penalized" else 0.0
        step_b = float((-g_b - roots @ z) / (mu + roots @ from_b))
        z = z + step_b * from_b
    return -(g + data.combine(data.put(inside, roots * z), weighted=False)) / lam, step_b


def _rough_step(objective: Objective, h: Handle, inside: int, g: Vector, g_b: float) -> tuple[Vector, float]:
    """The same by conjugate gradients, with M's diagonal as preconditioner."""
    data, lam, total = objective.data, objective.lam, objective.total
    if data.numbered and inside <= COPIED_SHARE * data.shape[0]:
        numbers = data.find(h)
        values = data.get(h, numbers) / total
        data = data.subset(numbers)
        k = data.from_array(values)
    else:
        k = data.map(partial(divide, total), h)
    diagonal = lam + data.diagonal(k)
    weight = float(data.reduce(np.sum, k))
    corner = {"none": 1.0, "penalized": lam + weight, "free": weight}[objective.intercept]
    return conjugate_gradients(
        bordered(objective.problem, data, k),
        lambda r, r_b: (r / diagonal, r_b / corner), -g, -g_b, CG_TOLERANCE, PRODUCTS,
    )  # fmt: skip
