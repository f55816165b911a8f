"""Validation of options: types and ranges."""

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any


def check_integer(name: str, given: Any, low: int = 1, *, none: bool = False) -> None:
    """Raise an error unless `given` is an integer of at least `low`, or None where `none` allows it.

    Examples
    --------
    >>> check_integer("n_iter", 2.5)
    Traceback (most recent call last):
    TypeError: n_iter must be an integer, got 2.5
    """
    if none and given is None:
        return
    if isinstance(given, bool) or not isinstance(given, Integral):
        raise TypeError(f"{name} must be an integer{' or None' if none else ''}, got {given!r}")
    if given < low:
        raise ValueError(f"{name} must be at least {low}, got {given!r}")


def check_number(
    name: str, given: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, none: bool = False
) -> None:
    """Raise an error unless `given` is a number in [low, high), or (low, high), or None where `none` allows it.

    Examples
    --------
    >>> check_number("D_X", -1.0, 0.0, open_low=True)
    Traceback (most recent call last):
    ValueError: D_X must be positive and finite, got -1.0
    """
    if none and given is None:
        return
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} must be a number{' or None' if none else ''}, got {given!r}")
    try:
        value = float(given)
    except OverflowError:
        value = math.inf
    if low <= value < high and not (open_low and value == low):
        return
    if low == 0.0 and high == math.inf:
        wanted = "be positive and finite" if open_low else "be finite and not negative"
    elif low == -math.inf and high == math.inf:
        wanted = "be finite"
    else:
        wanted = f"lie in {'(' if open_low else '['}{low:g}, {high:g})"
    raise ValueError(f"{name} must {wanted}, got {given!r}")


def check_share(name: str, given: Any) -> None:
    """Raise an error unless `given` is a number in (0, 1].

    Examples
    --------
    >>> check_share("nu", 0.0)
    Traceback (most recent call last):
    ValueError: nu must lie in (0, 1], got 0.0
    """
    if isinstance(given, bool) or not isinstance(given, Real):
        raise TypeError(f"{name} must be a number, got {given!r}")
    if not 0.0 < float(given) <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {given!r}")


def check_choice(name: str, given: Any, choices: Sequence[str], otherwise: str = "") -> None:
    """Raise an error unless `given` is one of the `choices`.

    Examples
    --------
    >>> check_choice("form", "cosine", ("pair", "offset"))
    Traceback (most recent call last):
    ValueError: form='cosine': choose 'pair' or 'offset'
    """
    if not isinstance(given, str) or given not in choices:
        names = [repr(choice) for choice in choices]
        listed = f"{', '.join(names[:-1])} or {names[-1]}" if not otherwise else f"{', '.join(names)} {otherwise}"
        raise ValueError(f"{name}={given!r}: choose {listed}")
