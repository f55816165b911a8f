"""The Nyström map (Lee and Wright, ASSET, §2.3.1): features whose inner products approximate the kernel matrix.

    S           s landmarks t₁ … t_s
    K_SS        = Q D Qᵀ                                   eigenvalues decreasing; the first d are kept
    φ(x)        = D^{-1/2} Qᵀ k(S, x)                      eq. (16)
    φ(x)ᵀφ(x')  = k(x, S) K_SS⁺ k(S, x')                   eq. (14)
    f(x)        = ⟨γ, φ(x)⟩ + b = Σ_l α_l k(t_l, x) + b    with α_S = Q D^{-1/2} γ, §2.4

Cost: O(s³) for the factorisation, s kernel values and s d multiplications a row: O(s³ + s m (n + d)) for m rows.

Which eigenvalues are kept: the projection qᵢᵀ k(S, x) has size Dᵢ/√s and a rounding error of up to ε ‖k(S, x)‖ with the
machine precision ε, which is ε D₁/Dᵢ relative to the feature. Features are kept if this is at most 1/10: Dᵢ ≥ 10 ε D₁.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from primalsvm.data import Block, Vector
from primalsvm.maps.kernels import Kernel, Matrix, Points, SparsePoints, as_points

NOISE = 10.0  # features are kept if their relative rounding error is at most 1/NOISE


@dataclass(frozen=True, eq=False)
class KernelValues:
    """k(S, x), without the whitening."""

    kernel: Kernel
    points: Points | SparsePoints

    @property
    def n_components(self) -> int:
        """s."""
        return int(self.points.shape[1])

    def block(self, rows: Block) -> Matrix:
        """k(x, t_l) for each of a block of rows."""
        return self.kernel.between(rows, self.points.dense())

    def scorer(self, alpha: Vector) -> "tuple[KernelValues, Vector]":
        """A map and weights that give the scores Σ α_l k(t_l, x)."""
        return self, alpha


@dataclass(frozen=True, eq=False)
class NystroemMap:
    """φ, fixed by its landmarks."""

    kernel: Kernel
    points: Points  # the landmarks, in the precision of the features
    whitening: Matrix  # Q D^{-1/2}, s × d
    eigenvalues: Vector  # the d that are kept

    @property
    def n_components(self) -> int:
        """d."""
        return int(self.whitening.shape[1])

    def block(self, rows: Block) -> Matrix:
        """φ(x) for each of a block of rows."""
        found: Matrix = self.kernel.between(rows, self.points) @ self.whitening
        return found

    @property
    def kernel_values(self) -> KernelValues:
        """k(S, x): φ without the whitening."""
        return KernelValues(self.kernel, self.points)

    def scorer(self, gamma: Vector) -> tuple[KernelValues, Vector]:
        """A cheaper map and weights that give the same scores: k(S, x) and α_S."""
        return self.kernel_values, self.expansion(gamma)

    def expansion(self, gamma: Vector) -> Vector:
        """α_S with ⟨γ, φ(x)⟩ = Σ_l α_l k(t_l, x)."""
        found: Vector = self.whitening.astype(np.float64) @ gamma
        return found


def fit_nystroem(
    kernel: Kernel, landmarks: Block, points: Points, threshold: float | None, rank: int | None
) -> NystroemMap:
    """The map with the given landmarks, as rows and as points.

    Parameters
    ----------
    threshold : eigenvalues below this share of the largest are dropped; None is ten times the machine precision
    rank : maximum number of eigenvalues to keep

    Raises
    ------
    ValueError
        If no eigenvalue is kept, or the kernel matrix has NaN or infinity.
    """
    precision = points.columns.dtype
    doubles = as_points(points.columns.T, np.dtype(np.float64))._replace(centre=points.centre)
    gram = kernel.between(landmarks, doubles)
    if not np.isfinite(gram).all():
        raise ValueError("the kernel matrix of the landmarks has NaN or infinity: scale the features")
    eigenvalues, vectors = scipy.linalg.eigh((gram + gram.T) / 2, driver="evd", overwrite_a=True, check_finite=False)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    relative = NOISE * float(np.finfo(precision).eps) if threshold is None else threshold
    if not eigenvalues[0] > 0.0:
        raise ValueError("the kernel matrix of the landmarks is zero, or negative: it has no positive eigenvalue")
    kept = int(np.sum(eigenvalues > relative * eigenvalues[0]))
    if kept == 0:
        raise ValueError(
            f"no eigenvalue of the landmarks' kernel matrix is above the threshold of {relative:g} times the largest, "
            f"{eigenvalues[0]:g}"
        )
    kept = min(kept, rank or kept)
    whitening = vectors[:, :kept] / np.sqrt(eigenvalues[:kept])
    return NystroemMap(kernel, points, np.ascontiguousarray(whitening.astype(precision)), eigenvalues[:kept].copy())
