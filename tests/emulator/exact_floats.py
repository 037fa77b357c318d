"""Floating point in exact rational arithmetic: expected results, independent of any floating-point
unit.

A value is a Fraction if it is finite and not zero, else a float: 0.0, -0.0, infinities, NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

Value = Fraction | float
PRECISE = 160  # bits of a root, many more than any format has, followed by a sticky bit


@dataclass(frozen=True)
class Format:
    """A binary floating-point format, by the sizes of its fields."""

    exponent_bits: int
    fraction_bits: int
    nan: int  # the NaN that instructions give
    has_infinity: bool = True
    shift: int = 0  # of the whole number in its register

    @property
    def bits(self) -> int:
        """The number of bits of the format."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        """Of the exponent."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def largest(self) -> int:
        """The bits of the largest finite number."""
        top = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        return top - (1 << self.fraction_bits) if self.has_infinity else top - 1

    @property
    def smallest_normal(self) -> int:
        """The bits of it."""
        return 1 << self.fraction_bits


FORMATS = {
    "f16": Format(5, 10, 0x7FFF),
    "bf16": Format(8, 7, 0x7FFF),
    "f32": Format(8, 23, 0x7FFFFFFF),
    "f64": Format(11, 52, 0x7FF8 << 48),
    "tf32": Format(8, 10, 0x7FFFFFFF, shift=13),
    "e4m3": Format(4, 3, 0x7F, has_infinity=False),
    "e5m2": Format(5, 2, 0x7F),
}


def decode(pattern: int, form: Format, flush: bool = False) -> Value:
    """The number that the bits represent; with `flush` subnormals are zeros."""
    pattern >>= form.shift
    sign = -1 if pattern >> (form.bits - 1) else 1
    magnitude = pattern & ((1 << (form.bits - 1)) - 1)
    if magnitude > form.largest:
        return math.copysign(
            math.inf if form.has_infinity and magnitude == form.largest + 1 else math.nan, sign
        )
    if magnitude == 0 or (flush and magnitude < form.smallest_normal):
        return math.copysign(0.0, sign)
    exponent, fraction = divmod(magnitude, 1 << form.fraction_bits)
    if exponent:
        fraction += 1 << form.fraction_bits
    return (
        sign
        * Fraction(fraction)
        * Fraction(2) ** (max(exponent, 1) - form.bias - form.fraction_bits)
    )


def encode(
    value: Value, form: Format, mode: str = "rn", *, flush: bool = False, finite: bool = False
) -> int:
    """The bits of `value` rounded; `finite` gives the largest number instead of infinity
    (.satfinite).
    """
    if is_nan(value):
        return form.nan
    negative = math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0
    sign = 1 << (form.bits - 1) if negative else 0
    if is_infinite(value):
        return (sign | (form.largest if finite else form.largest + 1)) << form.shift
    magnitude = _rounded(abs(Fraction(value)), form, mode, negative)
    if magnitude > form.largest:
        stays = (
            finite or mode == "rz" or (mode == "rm" and not negative) or (mode == "rp" and negative)
        )
        magnitude = form.largest if stays else form.largest + 1
    if flush and magnitude < form.smallest_normal:
        magnitude = 0
    return (sign | magnitude) << form.shift


def _rounded(size: Fraction, form: Format, mode: str, negative: bool) -> int:
    """The bits of a magnitude; more than `largest` on overflow."""
    if size == 0:
        return 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, 1 - form.bias)
    count = integral(size / Fraction(2) ** (exponent - form.fraction_bits), mode, negative)
    return count + ((exponent + form.bias - 1) << form.fraction_bits)


def integral(size: Fraction, mode: str, negative: bool = False) -> int:
    """A magnitude as an integer."""
    whole, rest = divmod(size, 1)
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rna": rest >= Fraction(1, 2),
        "rz": False,
        "rm": negative and rest > 0,
        "rp": not negative and rest > 0,
    }[mode]
    return int(whole) + up


def signed_integral(value: Fraction, mode: str) -> int:
    """A number as an integer."""
    found = integral(abs(value), mode, value < 0)
    return -found if value < 0 else found


def is_nan(value: Value) -> bool:
    """Whether a value is NaN; a Fraction may be too large for math's test."""
    return isinstance(value, float) and math.isnan(value)


def is_infinite(value: Value) -> bool:
    """Whether it is an infinity."""
    return isinstance(value, float) and math.isinf(value)


def is_finite(*values: Value) -> bool:
    """Whether all values are finite."""
    return not any(is_nan(value) or is_infinite(value) for value in values)


def is_negative(value: Value) -> bool:
    """Whether the sign is set, also of zeros and NaNs."""
    return math.copysign(1.0, value) < 0 if isinstance(value, float) else value < 0


def add(x: Value, y: Value, mode: str = "rn") -> Value:
    """x + y"""
    if not is_finite(x, y):
        return float(x) + float(y)
    return Fraction(x) + Fraction(y) or _zero(x, y, mode)


def _zero(x: Value, y: Value, mode: str) -> float:
    """A sum that is exactly zero: it has the sign of two equal zeros, else minus when rounding
    down.
    """
    if x == 0 and y == 0 and is_negative(x) == is_negative(y):
        return float(x)
    return -0.0 if mode == "rm" else 0.0


def negated(x: Value) -> Value:
    """-x"""
    return -x


def subtract(x: Value, y: Value, mode: str = "rn") -> Value:
    """x - y"""
    return add(x, -y, mode)


def multiply(x: Value, y: Value, mode: str = "rn") -> Value:
    """x * y"""
    if is_finite(x, y) and x and y:
        return Fraction(x) * Fraction(y)
    return _small(x) * _small(y)


def _small(x: Value) -> float:
    """A float of the same class and sign, to compute with infinities and zeros."""
    return x if isinstance(x, float) else math.copysign(1.0, x)


def fused(x: Value, y: Value, z: Value, mode: str = "rn") -> Value:
    """x * y + z"""
    product = multiply(x, y)
    if is_finite(product) and not is_finite(z):
        return float(z)
    return add(product, z, mode)


def divide(x: Value, y: Value, mode: str = "rn") -> Value:
    """x / y"""
    if is_finite(x, y) and x and y:
        return Fraction(x) / Fraction(y)
    if y == 0:
        if x == 0 or is_nan(x):
            return math.nan
        return math.copysign(math.inf, _small(x) * math.copysign(1.0, y))
    return _small(x) / _small(y)


def root(x: Value, mode: str = "rn") -> Value:
    """The square root, exact enough to be rounded correctly in every mode."""
    if x == 0 or is_nan(x):
        return x
    if x < 0:
        return math.nan
    if is_infinite(x):
        return x
    value = Fraction(x)
    whole, inexact = _integer_root(value.numerator * value.denominator << 2 * PRECISE)
    return Fraction(2 * whole + inexact, value.denominator << (PRECISE + 1))


def _integer_root(number: int) -> tuple[int, bool]:
    found = math.isqrt(number)
    return found, found * found != number


def minimum(x: Value, y: Value, nan_wins: bool = False) -> Value:
    """The smaller; -0 is smaller than +0; NaN is ignored unless `nan_wins`."""
    if is_nan(x) or is_nan(y):
        return math.nan if nan_wins or (is_nan(x) and is_nan(y)) else y if is_nan(x) else x
    if x == y:
        return x if is_negative(x) else y
    return min(x, y)


def maximum(x: Value, y: Value, nan_wins: bool = False) -> Value:
    """The larger."""
    return -minimum(-x, -y, nan_wins)


def saturated(x: Value) -> Value:
    """Clamped to [0, 1]; NaN and values that are not above zero give +0."""
    if is_nan(x) or x <= 0:
        return 0.0
    return min(Fraction(x), Fraction(1)) if is_finite(x) else Fraction(1)


def rectified(x: Value) -> Value:
    """.relu: negative numbers and -0 become +0, NaN stays."""
    return x if is_nan(x) or x > 0 else 0.0
