"""Values of the function under construction, and literals as LLVM writes them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import VARYING, Variance
from evoengine.emulator.lower.emitter import LANES

IOTA = "<" + ", ".join(f"i32 {lane}" for lane in range(LANES)) + ">"
_WORDS = {"true": -1, "false": 0}  # as signed numbers of one bit


@dataclass(frozen=True)
class Value:
    """An integer of `bits` bits; `text` is LLVM's scalar if UNIFORM, the base if Affine, <32 x
    i`bits`> if VARYING.
    """

    variance: Variance
    text: str
    bits: int

    @property
    def is_vector(self) -> bool:
        """Whether `text` holds a vector."""
        return self.variance is VARYING

    @property
    def number(self) -> int | None:
        """The signed number of a scalar literal; None for a value that is not a literal."""
        if self.is_vector or self.text.startswith("%"):
            return None
        return _WORDS[self.text] if self.text in _WORDS else int(self.text)


def literal(number: int, bits: int) -> str:
    """An integer as LLVM writes it: wrapped to `bits`, signed."""
    number &= (1 << bits) - 1
    if bits == 1:
        return "true" if number else "false"
    return str(number - (1 << bits) if number >> (bits - 1) else number)


def affine_steps(stride: int, bits: int) -> str:
    """The constant <32 x i`bits`> of 0, stride, 2 * stride..."""
    return "<" + ", ".join(f"i{bits} {literal(lane * stride, bits)}" for lane in range(LANES)) + ">"


def float_pattern(pattern: int, width: int, bits: int) -> int:
    """The bits of a float literal that is written in `width` bits and used in `bits` (0f for f64
    and the other way round).
    """
    if (width, bits) == (32, 64):
        return int(
            struct.unpack(
                "<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", pattern))[0])
            )[0]
        )
    if (width, bits) == (64, 32):
        value = struct.unpack("<d", struct.pack("<Q", pattern))[0]
        try:
            return int(struct.unpack("<I", struct.pack("<f", value))[0])
        except OverflowError:  # beyond f32: infinity, as rounding to nearest gives
            return 0xFF800000 if value < 0 else 0x7F800000
    return pattern


def lane_masks(which: str) -> str | None:
    """%lanemask_eq, le, lt, ge, gt for all lanes, as a constant; None for another name."""
    rules: dict[str, Callable[[int], int]] = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: ~((2 << lane) - 1),
        "ge": lambda lane: ~((1 << lane) - 1),
    }
    if which not in rules:
        return None
    return "<" + ", ".join(f"i32 {literal(rules[which](lane), 32)}" for lane in range(LANES)) + ">"
