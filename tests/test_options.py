"""Options: what passes, and the sentences of what does not."""

import math

import numpy as np
import pytest

from primalsvm.options import check_choice, check_integer, check_number


def test_what_passes():
    check_integer("n", 1)
    check_integer("n", np.int64(3), low=3)
    check_integer("n", None, none=True)
    check_number("x", 0, 0.0)
    check_number("x", np.float32(0.5), 0.0, 1.0, open_low=True)
    check_number("x", None, none=True)
    check_choice("kind", "b", ("a", "b"))


@pytest.mark.parametrize("given", [True, 1.0, "1", None])
def test_not_an_integer(given):
    with pytest.raises(TypeError, match="n must be an integer, got"):
        check_integer("n", given)


@pytest.mark.parametrize("given", [True, "1", None, [1.0]])
def test_not_a_number(given):
    with pytest.raises(TypeError, match="x must be a number, got"):
        check_number("x", given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0.0), "finite and not negative, got -1"),
        ((math.nan, 0.0), "finite and not negative, got nan"),
        ((math.inf,), "x must be finite, got inf"),
        ((10**400,), "x must be finite"),
        ((5, -math.inf, 3.0), r"x must lie in \[-inf, 3\), got 5"),
        ((1.0, 0.0, 1.0), r"x must lie in \[0, 1\), got 1.0"),
    ],
)
def test_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_number("x", *arguments)


def test_zero_is_not_positive():
    with pytest.raises(ValueError, match=r"x must be positive and finite, got 0\.0"):
        check_number("x", 0.0, 0.0, open_low=True)


def test_not_a_choice():
    with pytest.raises(ValueError, match="kind=3: choose 'a', 'b' or an object"):
        check_choice("kind", 3, ("a", "b"), "or an object")
