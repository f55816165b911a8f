"""Random Fourier features (Rahimi and Recht 2007; ASSET eq. 17 with the factor √2 that it lacks).

    k(s, t) = κ(s − t) = E_ν cos(⟨ν, s − t⟩)                                      ν from the Fourier transform of κ
    offset   φ(x) = √(2/d) [cos(⟨ν₁, x⟩ + β₁), …, cos(⟨ν_d, x⟩ + β_d)]               β uniform on [0, 2π]
    pair     φ(x) = √(2/d) [cos⟨ν₁, x⟩, …, cos⟨ν_{d/2}, x⟩, sin⟨ν₁, x⟩, …]            ‖φ(x)‖ = 1; half the projections

If d is odd, the last cosine has an offset instead of a sine.

Gaussian exp(−γ‖s − t‖²): ν ~ N(0, 2γ I). Laplacian exp(−γ‖s − t‖₁): Cauchy of scale γ in each coordinate.

Orthogonal frequencies (Yu et al. 2016): in groups of n, orthogonal directions with the lengths of Gaussian vectors.
Each is still a Gaussian vector, so the features are unbiased, with less variance. For the Laplacian kernel, each
coordinate is then mapped from the Gaussian to the Cauchy distribution by the quantile function.

The frequencies depend on n, d and the seed only: learning from a stream needs no data to start.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy.special

from primalsvm.data import Block, Vector
from primalsvm.maps.kernels import Gaussian, Kernel, Laplacian, Matrix, Points, as_points, products

Frequencies = Literal["orthogonal", "iid"]
Form = Literal["pair", "offset"]


@dataclass(frozen=True, eq=False)
class FourierMap:
    """φ, fixed by its frequencies."""

    frequencies: Points  # a column for each ν
    offsets: Vector  # β; 0 for a cosine with a sine
    n_components: int  # d; features beyond the number of frequencies are sines
    unit_length: ClassVar[bool] = True  # E‖φ(x)‖² = k(x, x) = 1, whatever the rows are

    def block(self, rows: Block) -> Matrix:
        """φ(x) for each of a block of rows."""
        angles = products(rows, self.frequencies)
        angles += self.offsets
        s, d = angles.shape[1], self.n_components
        found = np.empty((angles.shape[0], d), angles.dtype)
        np.cos(angles, out=found[:, :s])
        np.sin(angles[:, : d - s], out=found[:, s:])
        found *= angles.dtype.type(np.sqrt(2.0 / d))
        return found

    def scorer(self, gamma: Vector) -> "tuple[FourierMap, Vector]":
        """A map and weights that give the scores ⟨γ, φ(x)⟩."""
        return self, gamma


def fourier_map(
    kernel: Kernel,
    n_features: int,
    n_components: int,
    rng: np.random.Generator,
    precision: np.dtype[np.float32] | np.dtype[np.float64],
    frequencies: Frequencies = "orthogonal",
    form: Form = "pair",
) -> FourierMap:
    """Draw the frequencies of a kernel.

    Examples
    --------
    >>> from primalsvm.data import as_block
    >>> phi = fourier_map(Gaussian(0.5), 2, 4096, np.random.default_rng(0), np.dtype(np.float64))
    >>> features = phi.block(as_block(np.eye(2)))
    >>> (features @ features.T).round(1)
    array([[1. , 0.4],
           [0.4, 1. ]])
    """
    if not isinstance(kernel, Gaussian | Laplacian):
        raise ValueError(f"Fourier features exist here for the Gaussian and the Laplacian kernel, not for {kernel!r}")
    count = -(-n_components // 2) if form == "pair" else n_components
    shape = n_features, count
    standard = orthogonal_normals(*shape, rng) if frequencies == "orthogonal" else rng.standard_normal(shape)
    if isinstance(kernel, Gaussian):
        columns = np.sqrt(2.0 * kernel.gamma) * standard
    else:
        columns = kernel.gamma * np.tan(np.pi * (scipy.special.ndtr(standard) - 0.5))
    offsets = rng.uniform(0.0, 2.0 * np.pi, count)
    offsets[: n_components - count] = 0.0  # these have a sine
    return FourierMap(as_points(columns.T.astype(precision)), offsets.astype(precision), n_components)


def orthogonal_normals(n: int, count: int, rng: np.random.Generator) -> Matrix:
    """Standard normal columns, orthogonal in groups of n."""
    groups = []
    for first in range(0, count, n):
        size = min(n, count - first)  # n × n may not fit into memory
        directions, triangle = np.linalg.qr(rng.standard_normal((n, size)))
        directions *= np.sign(np.diag(triangle))  # so that they are uniform on the sphere
        groups.append(directions * np.sqrt(rng.chisquare(n, size=size)))
    return np.hstack(groups)
