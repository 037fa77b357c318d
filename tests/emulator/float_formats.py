"""Floating-point formats, including those that numpy lacks: values and distances in representable
numbers.
"""

from __future__ import annotations

import numpy as np

# Bits of the exponent and of the fraction. E4M3 has no infinity and one NaN: FP8 Formats for Deep
# Learning, arXiv:2209.05433.
_FP8 = {"float8_e4m3": (4, 3), "float8_e5m2": (5, 2)}


def values(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The values of `bits` (as stored: bfloat16 in uint16, fp8 in uint8); float64 for
    floating-point formats, else unchanged.
    """
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in _FP8:
        return _fp8_values(dtype)[bits]
    with np.errstate(invalid="ignore"):  # garbage may hold signalling NaNs
        return bits.astype(np.float64) if bits.dtype.kind == "f" else bits


def bfloat16(numbers: np.ndarray) -> np.ndarray:
    """The bits of the bfloat16 nearest to each of `numbers` (float32), ties to even; uint16."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FFF), rounded)


def distance(one: np.ndarray, other: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of each pair in representable numbers, 0 for equal bits; uint64.

    Two NaNs have distance 0, a NaN and a number 2^63, -0 and +0 have 1.
    """
    bits = np.dtype(f"uint{one.dtype.itemsize * 8}") if one.dtype.kind != "V" else None
    if bits is None or not dtype.startswith(("float", "bfloat")):
        return (_bytes(one) != _bytes(other)).any(axis=-1).astype(np.uint64)
    first, second = (
        _ordered(np.ascontiguousarray(item).view(bits), dtype) for item in (one, other)
    )
    gap = np.maximum(first, second) - np.minimum(first, second)
    nan_one, nan_other = np.isnan(values(one, dtype)), np.isnan(values(other, dtype))
    return np.where(
        nan_one & nan_other, np.uint64(0), np.where(nan_one | nan_other, np.uint64(1 << 63), gap)
    )


def _ordered(bits: np.ndarray, dtype: str) -> np.ndarray:
    """Integers in the order of the numbers, 1 apart for neighbours; uint64."""
    width = np.uint64(bits.dtype.itemsize * 8 - 1)
    wide = bits.astype(np.uint64)
    top = np.uint64(1) << width
    mantissa = wide & (top - np.uint64(1))
    return np.where(wide & top, top - np.uint64(1) - mantissa, top + mantissa)


def _bytes(array: np.ndarray) -> np.ndarray:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, -1)


def _fp8_values(dtype: str) -> np.ndarray:
    exponent_bits, fraction_bits = _FP8[dtype]
    bits = np.arange(256)
    exponent, fraction = (
        (bits >> fraction_bits) & ((1 << exponent_bits) - 1),
        bits & ((1 << fraction_bits) - 1),
    )
    bias = (1 << (exponent_bits - 1)) - 1
    scale = np.where(exponent == 0, 2.0 ** (1 - bias), 2.0 ** (exponent - bias))
    number = scale * ((exponent > 0) + fraction / (1 << fraction_bits))
    if dtype == "float8_e4m3":
        number = np.where((exponent == 15) & (fraction == 7), np.nan, number)
    else:
        number = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), number)
    return np.where(bits & 0x80, -number, number)
