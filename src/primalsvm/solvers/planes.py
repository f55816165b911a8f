"""Planes below a convex loss, and the best lower bound that they prove together.

    R(w) ≥ h_k + ⟨g_k, w⟩ for k = 1 … K, so for every β ≥ 0 with Σβ = 1

    P* = min λ/2 ‖w‖² + R(w) ≥ min λ/2 ‖w‖² + h̄ + ⟨ḡ, w⟩ = h̄ − ‖ḡ‖²/(2λ),    h̄ = Σ β_k h_k,  ḡ = Σ β_k g_k

The best β is found by moving mass between two planes at a time, on the matrix of the ⟨g_k, g_l⟩; −ḡ/λ minimises the
model max_k (h_k + ⟨g_k, w⟩) + λ/2 ‖w‖². Planes that have had no mass for some rounds are dropped.
"""

from dataclasses import dataclass

import numpy as np

from primalsvm.compiled import kernel
from primalsvm.data import Vector

# At first there is room for this many planes.
FIRST_ROOM = 32
# A plane is dropped after this many rounds without mass (20 to 200: as good).
PATIENCE = 60


@dataclass
class Planes:
    """Planes with their weights β."""

    g: Vector  # one plane a row, with room for more
    h: Vector
    gram: Vector
    beta: Vector
    idle: Vector  # rounds since the plane last had mass
    count: int = 0

    @classmethod
    def none(cls, d: int, n: int = FIRST_ROOM) -> "Planes":
        """No planes yet, of d features; room for n."""
        return cls(np.zeros((n, d)), np.zeros(n), np.zeros((n, n)), np.zeros(n), np.zeros(n, np.int64))

    def copy(self) -> "Planes":
        """Independent copies of the planes."""
        return Planes(self.g.copy(), self.h.copy(), self.gram.copy(), self.beta.copy(), self.idle.copy(), self.count)

    def add(self, h: float, g: Vector) -> None:
        """One more plane."""
        if self.count == self.h.shape[0]:
            self._make_room()
        k = self.count
        self.g[k], self.h[k], self.idle[k] = g, h, 0
        self.beta[k] = 1.0 if k == 0 else 0.0
        self.gram[k, : k + 1] = self.g[: k + 1] @ g
        self.gram[: k + 1, k] = self.gram[k, : k + 1]
        self.count = k + 1

    def bound(self, lam: float, accuracy: float) -> tuple[float, Vector]:
        """The best lower bound, up to `accuracy`; and −ḡ/λ."""
        k = self.count
        beta = self.beta[:k]
        move_mass(self.gram, self.h[:k], beta, lam, accuracy, moves=20_000)
        beta /= beta.sum()  # so that rounding does not raise the bound
        self.idle[:k] = np.where(beta > 0, 0, self.idle[:k] + 1)
        mean = beta @ self.g[:k]
        return float(self.h[:k] @ beta - mean @ mean / (2 * lam)), mean / -lam

    def _make_room(self) -> None:
        kept = np.flatnonzero(self.idle[: self.count] < PATIENCE)
        k = self.count = kept.shape[0]
        roomy = Planes.none(self.g.shape[1], max(FIRST_ROOM, 2 * k))
        roomy.g[:k], roomy.h[:k], roomy.beta[:k], roomy.idle[:k] = (
            part[kept] for part in (self.g, self.h, self.beta, self.idle)
        )
        roomy.gram[:k, :k] = self.gram[np.ix_(kept, kept)]
        self.g, self.h, self.gram, self.beta, self.idle = roomy.g, roomy.h, roomy.gram, roomy.beta, roomy.idle


@kernel
def move_mass(gram, h, beta, lam, accuracy, moves):  # type: ignore[no-untyped-def]  # compiled
    """Raise Σ β h − ‖Σ β g‖²/(2λ) over the simplex until it is at most `accuracy` below its maximum.

    Mass goes to the plane u with the largest slope, from the plane d for which this gains most. The gap of this problem
    is max slope − Σ β slope.
    """
    n = h.shape[0]
    slope = h.copy()
    for k in range(n):
        if beta[k] > 0.0:
            for j in range(n):
                slope[j] -= beta[k] * gram[k, j] / lam
    for _ in range(moves):
        u = 0
        mean = 0.0
        for k in range(n):
            mean += beta[k] * slope[k]
            if slope[k] > slope[u]:
                u = k
        if slope[u] - mean <= accuracy:
            break
        d, step, most = -1, 0.0, 0.0
        for k in range(n):
            rise = slope[u] - slope[k]
            if beta[k] > 0.0 and rise > 0.0:
                curvature = (gram[u, u] + gram[k, k] - 2.0 * gram[u, k]) / lam
                whole = beta[k] * curvature <= rise
                gain = beta[k] * (rise - 0.5 * beta[k] * curvature) if whole else 0.5 * rise * rise / curvature
                if gain > most:
                    d, most = k, gain
                    step = beta[k] if whole else rise / curvature
        if d < 0:
            break
        beta[u] += step
        beta[d] = max(beta[d] - step, 0.0)
        for k in range(n):
            slope[k] -= step * (gram[u, k] - gram[d, k]) / lam
