"""Whether a compiler knows how many rounds a loop has when it starts."""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.ptx.syntax import Instruction, Register

_NARROW = frozenset(("s32", "u32", "b32"))
_WIDENED = frozenset((("s64", "s32"), ("u64", "u32"), ("s64", "u32")))


def may_wrap(body: Sequence[Instruction]) -> bool:
    """Whether the counter of a loop, whose whole body this is, may wrap around: it has 32 bits and
    grows by a number that is not a constant, in unsigned arithmetic as with `i += gridDim.x * 256`.

    Neither clang nor NVRTC unrolls such a loop, because its number of rounds is unknown (seen in
    the machine code that NVRTC 13.0 makes of tests/structures/histogram_in_shared.cu). PTX does not
    say which arithmetic it is, but LLVM gives a counter that cannot wrap 64 bits where it is an
    index, and extends one that can in every round.
    """
    written = {item.operands[0].name for item in body if _has_result(item)}
    grown: set[str] = set()
    for item in body:
        if item.op == "add" and _NARROW.intersection(item.modifiers):
            names = [operand.name for operand in item.operands if isinstance(operand, Register)]
            if len(names) == 3 and not written.issuperset(names[1:]):
                grown.update(names[:1], written.intersection(names[1:]))
    return any(
        isinstance(operand, Register) and operand.name in grown
        for item in body
        if _extends(item)
        for operand in item.operands[1:]
    )


def _has_result(item: Instruction) -> bool:
    return bool(item.operands) and isinstance(item.operands[0], Register)


def _extends(item: Instruction) -> bool:
    """Whether an instruction makes 64 bits of 32."""
    if item.op in ("mul", "mad"):
        return "wide" in item.modifiers
    return item.op == "cvt" and item.modifiers[-2:] in _WIDENED
