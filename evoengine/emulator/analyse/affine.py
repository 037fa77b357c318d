"""Which instructions keep a ramp a ramp.

Kernels index memory with threadIdx.x: what these rules do not lose on the way from there to an
address becomes one plain vector access. A rule may be wrong about nothing but speed in one
direction only: VARYING is always true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, WARP, Ramp, Shape
from evoengine.emulator.ptx.syntax import Instruction, Register

# of a multiplication; beyond it 32 lanes times the stride comes near the width of an index
MAX_FACTOR = 1 << 16
MAX_SHIFT = 16
# 32 lanes of it span a quarter of the range of 32 bits: they wrap once at most
MAX_WRAPPING_STRIDE = 1 << 25
WHOLE = ("s32", "u32", "s64", "u64")
WHOLE_OR_BITS = (*WHOLE, "b32", "b64")


@dataclass(frozen=True)
class Sources:
    """What an instruction reads: shapes, and the values of integers that are known."""

    shapes: Sequence[Shape]
    values: Sequence[int | None]
    addressing: bool = True  # the result has no other use than to address memory

    def shape(self, place: int) -> Shape:
        """The shape of source `place`; VARYING where there is none."""
        return self.shapes[place] if place < len(self.shapes) else VARYING

    def value(self, place: int) -> int | None:
        """The integer that source `place` always is; None where it is not known."""
        return self.values[place] if place < len(self.values) else None


def ramp_rule(instruction: Instruction, sources: Sources) -> Shape:
    """The shape of the result of an instruction that reads at least one ramp."""
    rule = _RULES.get(instruction.op)
    return rule(instruction, sources) if rule else VARYING


def _move(instruction: Instruction, sources: Sources) -> Shape:
    is_plain = (
        len(sources.shapes) == 1
        and not instruction.has("shared")
        and isinstance(instruction.operands[0], Register)
    )
    return sources.shape(0) if is_plain else VARYING


def _convert_address(_: Instruction, sources: Sources) -> Shape:
    return sources.shape(0)


def _convert(instruction: Instruction, sources: Sources) -> Shape:
    ramp = sources.shape(0)
    if (
        len(instruction.modifiers) != 2
        or not all(item in WHOLE for item in instruction.modifiers)
        or not isinstance(ramp, Ramp)
    ):
        return VARYING
    to, source = instruction.modifiers
    return _widened(ramp, sources) if to[1:] == "64" and source[1:] == "32" else ramp


def _widened(ramp: Ramp, sources: Sources) -> Shape:
    """A ramp of 32 bits in 64: no ramp any more in a warp where it wraps.

    That of threadIdx.x does not wrap. In an address it does not matter: lanes on one side of the
    wrap are gigabytes away from those on the other, and do not touch memory there.
    """
    does_not_wrap = ramp.even and ramp.stride <= MAX_FACTOR
    return (
        ramp
        if does_not_wrap or (sources.addressing and abs(ramp.stride) <= MAX_WRAPPING_STRIDE)
        else VARYING
    )


def _add(instruction: Instruction, sources: Sources) -> Shape:
    if instruction.type not in WHOLE_OR_BITS or len(instruction.modifiers) != 1:
        return VARYING
    a, b = _stride(sources.shape(0)), _stride(sources.shape(1))
    if a is None or b is None:
        return VARYING
    stride = a + b if instruction.op == "add" else a - b
    return Ramp(stride) if stride else VARYING


def _multiply(instruction: Instruction, sources: Sources) -> Shape:
    if (
        instruction.has("cc")
        or not (instruction.has("lo") or instruction.has("wide"))
        or instruction.type not in WHOLE
    ):
        return VARYING
    ramp, factor = sources.shape(0), sources.value(1)
    if not isinstance(ramp, Ramp):
        ramp, factor = sources.shape(1), sources.value(0)
    if not isinstance(ramp, Ramp) or factor is None or not 0 < factor <= MAX_FACTOR:
        return VARYING
    if instruction.has("wide") and _widened(ramp, sources) is VARYING:
        return VARYING
    stride = ramp.stride * factor
    if instruction.op != "mad":
        return Ramp(stride, ramp.even)
    added = _stride(sources.shape(2))
    return VARYING if added is None or stride + added == 0 else Ramp(stride + added)


def _shift_left(instruction: Instruction, sources: Sources) -> Shape:
    ramp, by = sources.shape(0), sources.value(1)
    if (
        isinstance(ramp, Ramp)
        and by is not None
        and 0 <= by <= MAX_SHIFT
        and instruction.type in ("b32", "b64")
    ):
        return Ramp(ramp.stride << by, ramp.even)
    return VARYING


def _shift_right(_: Instruction, sources: Sources) -> Shape:
    """threadIdx.x / 32 is the same for the warp."""
    by = sources.value(1)
    # beyond the width it is no shift
    is_warp = (
        _counts_lanes(sources.shape(0)) and by is not None and WARP.bit_length() - 1 <= by < 32
    )
    return UNIFORM if is_warp else VARYING


def _and(_: Instruction, sources: Sources) -> Shape:
    """clang writes both x / 32 * c and x % 32 * c as a mask on a product: it has the bits in which
    lanes differ, or lacks them.
    """
    ramp, mask = sources.shape(0), sources.value(1)
    if (
        not (
            isinstance(ramp, Ramp)
            and ramp.even
            and ramp.stride > 0
            and ramp.stride & (ramp.stride - 1) == 0
        )
        or mask is None
    ):
        return VARYING
    lanes = (WARP - 1) * ramp.stride
    if mask & lanes == lanes:
        return Ramp(ramp.stride, even=True)
    return UNIFORM if mask & lanes == 0 else VARYING


def _or(_: Instruction, sources: Sources) -> Shape:
    """clang writes `base | offset` for sums without carries; of a ramp with 32 values the low bits
    are its own.
    """
    ramp, low = sources.shape(0), sources.value(1)
    if (
        isinstance(ramp, Ramp)
        and ramp.even
        and low is not None
        and 0 < low < ramp.stride
        and ramp.stride & (ramp.stride - 1) == 0
    ):
        return Ramp(ramp.stride)
    return VARYING


def _compare(instruction: Instruction, sources: Sources) -> Shape:
    """threadIdx.x < 64 is the same for the warp."""
    limit = sources.value(1)
    if (
        len(instruction.modifiers) != 2
        or not _counts_lanes(sources.shape(0))
        or limit is None
        or limit < 0
    ):
        return VARYING
    edge = {"lt": limit, "ge": limit, "gt": limit + 1, "le": limit + 1}.get(
        instruction.modifiers[0]
    )
    return UNIFORM if edge is not None and edge % WARP == 0 else VARYING


def _counts_lanes(shape: Shape) -> bool:
    """Whether it is a multiple of 32 plus the lane."""
    return isinstance(shape, Ramp) and shape.even and shape.stride == 1


def _stride(shape: Shape) -> int | None:
    if shape is UNIFORM:
        return 0
    return shape.stride if isinstance(shape, Ramp) else None


_RULES: dict[str, Callable[[Instruction, Sources], Shape]] = {
    "mov": _move,
    "cvta": _convert_address,
    "cvt": _convert,
    "add": _add,
    "sub": _add,
    "mul": _multiply,
    "mad": _multiply,
    "shl": _shift_left,
    "shr": _shift_right,
    "and": _and,
    "or": _or,
    "setp": _compare,
}
