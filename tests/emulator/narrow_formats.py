"""Narrow floating-point formats as tables of values: rounds by search, independent of the tested
conversions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Format:
    """A format, by the values of its non-negative finite codes (index = code), in ascending
    order.
    """

    values: Array  # (n,) float64, ascending, from 0
    infinity: int  # code that overflow gives; NaN where the format has no infinity
    nan: int
    sign: int  # the bit of the sign
    dtype: type

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return float(self.values[-1])

    def decode(self, codes: Array) -> Array:
        """float64 values of `codes`."""
        magnitude = np.asarray(codes).astype(np.int64) & (self.sign - 1)
        table = np.full(self.sign, np.nan)
        table[: len(self.values)] = self.values
        if self.infinity != self.nan:
            table[self.infinity] = np.inf
        return np.where(np.asarray(codes) & self.sign, -table[magnitude], table[magnitude])

    def encode(self, x: Array, mode: str = "rn", saturate: bool = False) -> Array:
        """Codes of float64 `x`; `mode` is rn (ties to even), rz, ru or rd; NaN gives the format's
        positive NaN.
        """
        x = np.asarray(x, np.float64)
        magnitude, negative = np.abs(x), np.signbit(x)
        step = self.values[-1] - self.values[-2]
        ladder = np.append(self.values, self.largest + step)  # the last stands for overflow
        low = np.searchsorted(self.values, magnitude, side="right") - 1
        low = np.where(np.isnan(x), 0, low)
        below, above = magnitude - ladder[low], ladder[low + 1] - magnitude
        up = {
            "rn": (above < below) | ((above == below) & (low % 2 == 1)),
            "rz": np.zeros(x.shape, bool),
            "ru": ~negative & (below > 0),
            "rd": negative & (below > 0),
        }[mode]
        code = low + up
        code = np.where(np.isinf(x), len(self.values), code)
        code = np.where(
            code >= len(self.values), len(self.values) - 1 if saturate else self.infinity, code
        )
        code = np.where(negative, code | self.sign, code)
        return np.where(np.isnan(x), self.nan, code).astype(self.dtype)

    def rounded(self, x: Array, mode: str = "rn") -> Array:
        """float64 `x` rounded to the format's values."""
        return self.decode(self.encode(x, mode))


def _format(
    exponent_bits: int, mantissa_bits: int, finite_codes: int, infinity: int, nan: int, dtype: type
) -> Format:
    code = np.arange(finite_codes)
    exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    significand = mantissa / (1 << mantissa_bits) + (exponent > 0)
    values = significand * np.exp2(np.maximum(exponent, 1) - bias)
    return Format(values, infinity, nan, 1 << (exponent_bits + mantissa_bits), dtype)


# NaN codes: what cvt writes on NVIDIA GPUs (PTX ISA, "cvt": canonical NaN of the destination).
HALF = _format(5, 10, 0x7C00, 0x7C00, 0x7FFF, np.uint16)
BFLOAT16 = _format(8, 7, 0x7F80, 0x7F80, 0x7FFF, np.uint16)
# OCP 8-bit Floating Point Specification 1.0: e4m3 has no infinity and one NaN a sign.
E4M3 = _format(4, 3, 0x7F, 0x7F, 0x7F, np.uint8)
E5M2 = _format(5, 2, 0x7C, 0x7C, 0x7F, np.uint8)


def tf32(x: Array) -> Array:
    """float32 `x` with ten bits of mantissa, ties away from zero as cvt.rna does; finite values
    only.
    """
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def special_floats() -> Array:
    """float32 values that are critical for conversions: zeros, denormals, limits, ties, infinities,
    NaN, and their neighbours.
    """
    limits = [form.values[1] for form in (HALF, BFLOAT16, E4M3, E5M2)] + [
        form.largest for form in (HALF, BFLOAT16, E4M3, E5M2)
    ]
    steps = [
        1.0,
        1 + 2.0**-11,
        1 + 3 * 2.0**-11,
        1 + 2.0**-8,
        1 + 3 * 2.0**-8,
        1.0625,
        1.1875,
        1.125,
        1.375,
        65520.0,
        464.0,
        480.0,
        61440.0,
    ]
    base = np.array(
        [
            0.0,
            2.0**-149,
            2.0**-126,
            2.0**-14,
            2.0**-6,
            3.4028234663852886e38,
            *limits,
            *(x / 2 for x in limits),
            *steps,
        ]
    )
    base = base.astype(np.float32)
    with np.errstate(over="ignore"):
        near = np.concatenate(
            [base, np.nextafter(base, np.float32(np.inf)), np.nextafter(base, np.float32(-1))]
        )
    return np.concatenate([near, -near, np.array([np.inf, -np.inf, np.nan], np.float32)])
