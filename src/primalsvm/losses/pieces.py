"""Piecewise quadratic losses, as sums of pieces: what the interior-point method needs of a loss."""

from typing import Any, NamedTuple


class Piece(NamedTuple):
    """max over 0 ≤ a ≤ u of  a (t − σ p) − κ/2 a², a function of the score p. Each may be an array, a number a row."""

    sign: Any  # σ: ±1
    target: Any  # t
    upper: Any  # u, or inf
    quadratic: Any  # κ; positive where u is infinite
