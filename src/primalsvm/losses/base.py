"""Base classes of losses."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Open intervals of parameters, for the `limits` of a loss.
FINITE = (-math.inf, math.inf)
POSITIVE = (0.0, math.inf)
NOT_NEGATIVE = (-math.ulp(0.0), math.inf)


class QuadraticPiece(NamedTuple):
    """max over 0 ≤ a ≤ u of  a (t − σ p) − κ/2 a², a function of the score p. Each may be an array, a number a row."""

    sign: Any  # σ: ±1
    target: Any  # t
    upper: Any  # u, or inf
    quadratic: Any  # κ; positive where u is infinite


def pieces_of(loss: Any, y: npt.NDArray[Any]) -> QuadraticPiece:
    """The pieces of every row's loss: arrays with a row per piece, a column per sample.

    Examples
    --------
    >>> from primalsvm import Hinge
    >>> pieces_of(Hinge(), np.array([1.0, -1.0])).sign
    array([[ 1., -1.]])
    """
    found = [np.stack(np.broadcast_arrays(y, *piece)[1:]) for piece in loss.quadratic_pieces(y)]
    return QuadraticPiece(*np.stack(found, axis=1))


class NoParameters(NamedTuple):
    """The parameters of a loss that has none."""


class LossDefaults:
    """The properties of a piecewise linear loss with slopes of at most 1; other losses override them.

    A loss derives from a NamedTuple of its parameters, which Numba compiles, and from this class.
    """

    @property
    def slope_bound(self) -> float:
        return 1.0

    @property
    def curvature(self) -> float:
        return math.inf

    def conjugate_curvature(self, a: float, y: float) -> float:
        return 0.0
