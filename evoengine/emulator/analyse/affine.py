"""The rules by which instructions map affine operands to affine results.

Kernels index memory with threadIdx.x. Where the address is still affine after these rules, the
access becomes one contiguous vector access. VARYING is always a correct answer and only costs
speed; any other answer must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, WARP, Affine, Variance
from evoengine.emulator.ptx.syntax import Instruction, Register

# Largest factor of a multiplication; beyond it, 32 lanes times the stride nears the width of an
# index.
MAX_FACTOR = 1 << 16
MAX_SHIFT = 16
# 32 lanes with this stride span a quarter of the 32-bit range, so they wrap at most once.
MAX_WRAPPING_STRIDE = 1 << 25
WHOLE = ("s32", "u32", "s64", "u64")
WHOLE_OR_BITS = (*WHOLE, "b32", "b64")


@dataclass(frozen=True)
class SourceOperands:
    """The source operands of an instruction: their variance, and the values of known integers."""

    variances: Sequence[Variance]
    values: Sequence[int | None]
    addressing: bool = True  # the result has no other use than to address memory

    def variance(self, index: int) -> Variance:
        """The variance of source operand `index`; VARYING where there is none."""
        return self.variances[index] if index < len(self.variances) else VARYING

    def value(self, index: int) -> int | None:
        """The constant value of source operand `index`; None where it is not a known integer."""
        return self.values[index] if index < len(self.values) else None


def affine_rule(instruction: Instruction, sources: SourceOperands) -> Variance:
    """The variance of the result of an instruction that reads at least one affine operand."""
    rule = _RULES.get(instruction.op)
    return rule(instruction, sources) if rule else VARYING


def _move(instruction: Instruction, sources: SourceOperands) -> Variance:
    is_plain = (
        len(sources.variances) == 1
        and not instruction.has("shared")
        and isinstance(instruction.operands[0], Register)
    )
    return sources.variance(0) if is_plain else VARYING


def _convert_address(_: Instruction, sources: SourceOperands) -> Variance:
    return sources.variance(0)


def _convert(instruction: Instruction, sources: SourceOperands) -> Variance:
    affine = sources.variance(0)
    if (
        len(instruction.modifiers) != 2
        or not all(item in WHOLE for item in instruction.modifiers)
        or not isinstance(affine, Affine)
    ):
        return VARYING
    to, source = instruction.modifiers
    return _widened(affine, sources) if to[1:] == "64" and source[1:] == "32" else affine


def _widened(affine: Affine, sources: SourceOperands) -> Variance:
    """A 32-bit affine value widened to 64 bits; VARYING if it may wrap within a warp.

    threadIdx.x does not wrap. In an address a wrap does not matter: lanes on one side of it are
    gigabytes away from those on the other, and do not access memory there.
    """
    does_not_wrap = affine.aligned and affine.stride <= MAX_FACTOR
    return (
        affine
        if does_not_wrap or (sources.addressing and abs(affine.stride) <= MAX_WRAPPING_STRIDE)
        else VARYING
    )


def _add(instruction: Instruction, sources: SourceOperands) -> Variance:
    if instruction.type not in WHOLE_OR_BITS or len(instruction.modifiers) != 1:
        return VARYING
    a, b = _stride(sources.variance(0)), _stride(sources.variance(1))
    if a is None or b is None:
        return VARYING
    stride = a + b if instruction.op == "add" else a - b
    return Affine(stride) if stride else VARYING


def _multiply(instruction: Instruction, sources: SourceOperands) -> Variance:
    if (
        instruction.has("cc")
        or not (instruction.has("lo") or instruction.has("wide"))
        or instruction.type not in WHOLE
    ):
        return VARYING
    affine, factor = sources.variance(0), sources.value(1)
    if not isinstance(affine, Affine):
        affine, factor = sources.variance(1), sources.value(0)
    if not isinstance(affine, Affine) or factor is None or not 0 < factor <= MAX_FACTOR:
        return VARYING
    if instruction.has("wide") and _widened(affine, sources) is VARYING:
        return VARYING
    stride = affine.stride * factor
    if instruction.op != "mad":
        return Affine(stride, affine.aligned)
    added = _stride(sources.variance(2))
    return VARYING if added is None or stride + added == 0 else Affine(stride + added)


def _shift_left(instruction: Instruction, sources: SourceOperands) -> Variance:
    affine, by = sources.variance(0), sources.value(1)
    if (
        isinstance(affine, Affine)
        and by is not None
        and 0 <= by <= MAX_SHIFT
        and instruction.type in ("b32", "b64")
    ):
        return Affine(affine.stride << by, affine.aligned)
    return VARYING


def _shift_right(_: Instruction, sources: SourceOperands) -> Variance:
    """Uniform for threadIdx.x / 32, which is the same in the whole warp."""
    by = sources.value(1)
    # a shift by 32 or more gives 0
    is_warp = (
        _counts_lanes(sources.variance(0)) and by is not None and WARP.bit_length() - 1 <= by < 32
    )
    return UNIFORM if is_warp else VARYING


def _and(_: Instruction, sources: SourceOperands) -> Variance:
    """clang writes both x / 32 * c and x % 32 * c as a mask on a product: the mask keeps all bits
    in which lanes differ, or none of them.
    """
    affine, mask = sources.variance(0), sources.value(1)
    if (
        not (
            isinstance(affine, Affine)
            and affine.aligned
            and affine.stride > 0
            and affine.stride & (affine.stride - 1) == 0
        )
        or mask is None
    ):
        return VARYING
    lanes = (WARP - 1) * affine.stride
    if mask & lanes == lanes:
        return Affine(affine.stride, aligned=True)
    return UNIFORM if mask & lanes == 0 else VARYING


def _or(_: Instruction, sources: SourceOperands) -> Variance:
    """clang writes `base | offset` for sums without carries: the low bits of the affine value are
    0.
    """
    affine, low = sources.variance(0), sources.value(1)
    if (
        isinstance(affine, Affine)
        and affine.aligned
        and low is not None
        and 0 < low < affine.stride
        and affine.stride & (affine.stride - 1) == 0
    ):
        return Affine(affine.stride)
    return VARYING


def _compare(instruction: Instruction, sources: SourceOperands) -> Variance:
    """Uniform for comparisons such as threadIdx.x < 64, which have one result in the whole warp."""
    limit = sources.value(1)
    if (
        len(instruction.modifiers) != 2
        or not _counts_lanes(sources.variance(0))
        or limit is None
        or limit < 0
    ):
        return VARYING
    edge = {"lt": limit, "ge": limit, "gt": limit + 1, "le": limit + 1}.get(
        instruction.modifiers[0]
    )
    return UNIFORM if edge is not None and edge % WARP == 0 else VARYING


def _counts_lanes(variance: Variance) -> bool:
    """Whether the value is a multiple of 32 plus the lane."""
    return isinstance(variance, Affine) and variance.aligned and variance.stride == 1


def _stride(variance: Variance) -> int | None:
    if variance is UNIFORM:
        return 0
    return variance.stride if isinstance(variance, Affine) else None


_RULES: dict[str, Callable[[Instruction, SourceOperands], Variance]] = {
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
