"""Decimal text to doubles: the bits of Python's `float`."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primalsvm.sources.decimals import AMBIGUOUS, GOOD, NO_NUMBER, decimal


def parsed(text):
    """(status, value, characters read)."""
    buffer = np.frombuffer(text.encode(), np.uint8)
    status, value, end = decimal(buffer, np.uint64(0), np.uint64(buffer.shape[0]))
    return status, value, int(end)


def bits(value):
    return struct.pack("<d", value)


def assert_as_python(text):
    status, value, end = parsed(text)
    assert end == len(text), text
    if status == AMBIGUOUS:  # rare: more than 19 digits, and they decide
        assert len(text) > 19
    else:
        assert status == GOOD and bits(value) == bits(float(text)), text


HARD = [
    "0", "-0", "0.0", "+1", "1.", ".5", "-.5e1", "1e0", "1E+5", "1e-5", "0e999999999999", "1e22", "1e23",
    "123456789e15", "9007199254740993", "9007199254740992.5", "9007199254740993e-1", "1.7976931348623157e308",
    "1.7976931348623159e308", "1e309", "-1e400", "2.2250738585072014e-308", "2.2250738585072011e-308",
    "4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400", "8.41e21", "5e-324",
    "7.2057594037927933e16", "1e-342", "9.5e-343",
    "0.000000000000000000000000000000000000000000000000000000000000000123456789012345678", "12345678901234567890",
    "1234567890123456789012345", "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "6250000000000000000e-17",
    "2251799813685248.25", "2251799813685248.75",
]  # fmt: skip


@pytest.mark.parametrize("text", HARD)
def test_hard_cases(text):
    assert_as_python(text)


@settings(max_examples=2000, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["%r", "%.6g", "%.16g", "%.17g", "%.9e", "%.25g"])
)
def test_whatever_python_writes(value, form):
    assert_as_python(form % value)


@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 10**25), st.integers(-400, 400), st.integers(0, 25))
def test_digits_with_any_point_and_exponent(digits, exponent, point):
    text = str(digits)
    point = min(point, len(text))
    assert_as_python(f"{text[:point]}.{text[point:]}e{exponent}")


@settings(max_examples=1000, deadline=None)
@given(st.integers(1, 2**53 - 1), st.integers(-1074, 960))
def test_half_way_between_two_doubles(mantissa, power):
    """Exactly between: the even one. Written out in full these have many digits, so most are asked for."""
    double = float(mantissa) * 2.0**power
    above = np.nextafter(double, np.inf)
    if 0 < double < 1e300:
        from fractions import Fraction

        middle = (Fraction(double) + Fraction(float(above))) / 2
        if middle.denominator == 1 and middle < 10**19:
            assert_as_python(str(middle.numerator))


@pytest.mark.parametrize("text", ["", "-", "+", ".", "e5", "nan", "inf", "-.e1", "x"])
def test_what_is_no_number(text):
    assert parsed(text)[0] == NO_NUMBER


@pytest.mark.parametrize(
    ("text", "end"), [("1.5x", 3), ("1e", 1), ("1e+", 1), ("1-2", 1), ("1.2.3", 3), ("1_0", 1), ("0x10", 1)]
)
def test_stops_where_the_number_ends(text, end):
    status, value, at = parsed(text)
    assert status == GOOD and at == end and value == float(text[:end])
