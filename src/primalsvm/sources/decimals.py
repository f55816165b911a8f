"""Decimal text → the nearest double, with the same bits as Python's `float`.

    text = ± w · 10^e,   w the first 19 significant digits

If w and e are small, this is one multiplication or division of exact doubles (Clinger 1990). Otherwise the product of w
with a 128-bit approximation of 5^e determines the 53 bits and the rounding (Lemire 2021, "Number parsing at a gigabyte
per second"; Mushtak and Lemire 2023 prove that it is always sufficient). With more than 19 digits, w and w + 1 must
give the same result; otherwise the number is ambiguous, and the caller parses it with Python.
"""

import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from primalsvm.compiled import exact_kernel

GOOD, NO_NUMBER, AMBIGUOUS = range(3)

SMALLEST, LARGEST = -342, 308  # other powers of ten give 0 or infinity for all 19 digits
SIGNIFICANT = 19  # digits that fit 64 bits
MAX_EXPONENT = 10**9  # written exponents are capped here
EXACT_POWERS = 22  # 10^22 is the largest power of ten that is a double
MANTISSA = 52
LITTLE_ENDIAN = sys.byteorder == "little"  # so that eight digits can be read as one word

ZERO, NINE, POINT, PLUS, MINUS, UPPER_E, LOWER_E = (np.uint8(ord(c)) for c in "09.+-Ee")


def _powers_of_five() -> tuple[np.ndarray, np.ndarray]:
    """The first 128 bits of 5^q, rounded down (up for q < 0), as high and low words."""
    found = []
    for q in range(SMALLEST, 0):
        power = 5**-q
        z = (power - 1).bit_length()
        c = (1 << (z + 127 if q >= -27 else 2 * z + 128)) // power + 1
        found.append(c >> max(c.bit_length() - 128, 0))
    for q in range(LARGEST + 1):
        power = 5**q
        shift = power.bit_length() - 128
        found.append(power >> shift if shift >= 0 else power << -shift)
    words = [(c >> 64, c & (2**64 - 1)) for c in found]
    return np.array([high for high, _ in words], np.uint64), np.array([low for _, low in words], np.uint64)


FIVES_HIGH, FIVES_LOW = _powers_of_five()
TENS = np.array([float(10**k) for k in range(EXACT_POWERS + 1)])


@intrinsic
def high_word(context: Any, a: Any, b: Any) -> Any:
    """The upper 64 bits of a · b."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def leading_zeros(context: Any, a: Any) -> Any:
    """The number of zero bits before the first one of a > 0."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def as_double(context: Any, bits: Any) -> Any:
    """The double with these bits."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@exact_kernel
def nearest(w, e):  # type: ignore[no-untyped-def]  # compiled
    """The double nearest to w · 10^e."""
    if w == np.uint64(0) or e < SMALLEST:
        return 0.0
    if e > LARGEST:
        return np.inf
    zeros = leading_zeros(w)
    w = w << zeros
    high = high_word(w, FIVES_HIGH[e - SMALLEST])
    low = w * FIVES_HIGH[e - SMALLEST]
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(MANTISSA + 3)
    if high & mask == mask:  # the lower half may carry into the upper bits
        more = high_word(w, FIVES_LOW[e - SMALLEST])
        low = low + more
        if low < more:
            high += np.uint64(1)
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(64 - MANTISSA - 3)
    mantissa = high >> shift
    power = ((217706 * e) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if power <= 0:  # a subnormal number, or zero
        if 1 - power >= 64:
            return 0.0
        mantissa = mantissa >> np.uint64(1 - power)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        return as_double(mantissa)  # also correct if it was rounded to a normal number
    # exactly between two doubles: to the even one
    between = low <= np.uint64(1) and -4 <= e <= 23 and mantissa << shift == high
    if between and mantissa & np.uint64(3) == np.uint64(1):
        mantissa = mantissa & ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= np.uint64(2) << np.uint64(MANTISSA):
        mantissa = np.uint64(1) << np.uint64(MANTISSA)
        power += 1
    if power >= 0x7FF:
        return np.inf
    return as_double((mantissa & ~(np.uint64(1) << np.uint64(MANTISSA))) | (np.uint64(power) << np.uint64(MANTISSA)))


@intrinsic
def eight_bytes(context: Any, text: Any, i: Any) -> Any:
    """text[i:i+8] as one word, the first byte the lowest."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(ctx, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(text, i), codegen


@intrinsic
def ones_of(context: Any, word: Any) -> Any:
    """The number of bits that are 1."""

    def codegen(ctx: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@exact_kernel
def equal_bytes(word, other):  # type: ignore[no-untyped-def]  # compiled
    """The number of bytes that are equal in both words."""
    low = np.uint64(0x7F7F7F7F7F7F7F7F)
    different = word ^ other
    return ones_of(~(((different & low) + low) | different | low))


@exact_kernel
def are_digits(word):  # type: ignore[no-untyped-def]  # compiled
    """Whether all eight bytes are digits: their upper halves are 3, also after adding 6."""
    upper = np.uint64(0xF0F0F0F0F0F0F0F0)
    more = (word + np.uint64(0x0606060606060606)) & upper
    return (word & upper) | (more >> np.uint64(4)) == np.uint64(0x3333333333333333)


@exact_kernel
def number_of(word):  # type: ignore[no-untyped-def]  # compiled
    """Eight digits as a number, combining neighbours, then pairs, then fours (Lemire 2021)."""
    word = word - np.uint64(0x3030303030303030)
    word = word * np.uint64(10) + (word >> np.uint64(8))
    every_fourth = np.uint64(0x000000FF000000FF)
    first = (word & every_fourth) * np.uint64(0x000F424000000064)  # 10^6 and 10^2
    second = ((word >> np.uint64(16)) & every_fourth) * np.uint64(0x0000271000000001)  # 10^4 and 1
    return (first + second) >> np.uint64(32)


@exact_kernel
def any_decimal(text, i, stop):  # type: ignore[no-untyped-def]  # compiled
    """As `decimal`, for any number of digits, with or without an exponent."""
    start = i
    negative = False
    if i < stop and (text[i] == MINUS or text[i] == PLUS):
        negative = text[i] == MINUS
        i += np.uint64(1)
    w = np.uint64(0)
    e = np.int64(0)
    digits = 0  # of w
    seen = False
    dropped = False  # whether digits other than zero were dropped
    fraction = False
    while i < stop:
        c = text[i] - ZERO  # unsigned: characters below '0' become large
        if c <= np.uint8(9):
            seen = True
            if digits < SIGNIFICANT:
                w = w * np.uint64(10) + np.uint64(c)
                digits += 1 if w > np.uint64(0) else 0
                e -= 1 if fraction else 0
            else:
                dropped = dropped or c > np.uint8(0)
                e += 0 if fraction else 1
        elif text[i] == POINT and not fraction:
            fraction = True
        else:
            break
        i += np.uint64(1)
    if not seen:
        return NO_NUMBER, 0.0, start
    if i < stop and (text[i] == LOWER_E or text[i] == UPPER_E):
        j = i + np.uint64(1)
        down = False
        if j < stop and (text[j] == MINUS or text[j] == PLUS):
            down = text[j] == MINUS
            j += np.uint64(1)
        written = np.int64(0)
        first = j
        while j < stop and text[j] - ZERO <= np.uint8(9):
            written = min(written * np.int64(10) + np.int64(text[j] - ZERO), np.int64(MAX_EXPONENT))
            j += np.uint64(1)
        if j > first:
            e += -written if down else written
            i = j
    if not dropped and w < np.uint64(1) << np.uint64(MANTISSA + 1) and -EXACT_POWERS <= e <= EXACT_POWERS:
        value = np.float64(w) / TENS[-e] if e < 0 else np.float64(w) * TENS[e]
    else:
        value = nearest(w, e)
        if dropped and nearest(w + np.uint64(1), e) != value:
            return AMBIGUOUS, -value if negative else value, i
    return GOOD, -value if negative else value, i


@exact_kernel
def decimal(text, i, stop):  # type: ignore[no-untyped-def]  # compiled
    """Parse the decimal number at the beginning of text[i:stop]: (status, value, where it ends).

    Numbers with few digits and no exponent are parsed here, others by `any_decimal`.
    """
    start = i
    negative = False
    if i < stop and (text[i] == MINUS or text[i] == PLUS):
        negative = text[i] == MINUS
        i += np.uint64(1)
    first = i
    w = np.uint64(0)
    while i < stop and text[i] - ZERO <= np.uint8(9):
        w = w * np.uint64(10) + np.uint64(text[i] - ZERO)
        i += np.uint64(1)
    digits = i - first
    places = np.uint64(0)
    if i < stop and text[i] == POINT:
        i += np.uint64(1)
        first = i
        while LITTLE_ENDIAN and i + np.uint64(8) <= stop:
            word = eight_bytes(text, i)
            if not are_digits(word):
                break
            w = w * np.uint64(100_000_000) + number_of(word)
            i += np.uint64(8)
        while i < stop and text[i] - ZERO <= np.uint8(9):
            w = w * np.uint64(10) + np.uint64(text[i] - ZERO)
            i += np.uint64(1)
        places = i - first
        digits += places
    exponent = i < stop and (text[i] == LOWER_E or text[i] == UPPER_E)
    if exponent or digits == np.uint64(0) or digits >= np.uint64(SIGNIFICANT):
        return any_decimal(text, start, stop)
    if w < np.uint64(1) << np.uint64(MANTISSA + 1):
        value = np.float64(w) / TENS[places]
    else:
        value = nearest(w, -np.int64(places))
    return GOOD, -value if negative else value, i
