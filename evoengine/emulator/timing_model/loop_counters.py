"""Which loops a compiler unrolls: not those whose number of rounds it does not know when they
start, nor those that are unrolled as often as they may be.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.function_body import NO_UNROLLING
from evoengine.emulator.ptx.syntax import Instruction, Integer, Register

# the factors by which clang unrolls a loop whose number of rounds it does not know
_BY_CLANG = (2, 4, 8)
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
    results = {name for item in body for name in written(item)}
    moved = {
        (name, source) for item in body if item.op == "mov" for name, source in [_names(item)[:2]]
    }
    grown: set[str] = set()
    for item in body:
        names = _names(item)
        if item.op != "add" or not _NARROW.intersection(item.modifiers) or "" in names:
            continue
        before = results.intersection(names[1:])
        if len(before) == 1 and any(
            name == names[0] or (name, names[0]) in moved for name in before
        ):
            grown.update(before, names[:1])
    return any(grown.intersection(_names(item)[1:]) for item in body if _extends(item))


def is_final(body: Sequence[Instruction]) -> bool:
    """Whether a loop must not be unrolled (further): `#pragma unroll` says how often, and clang has
    done so.
    """
    return any(item.op == "pragma" and item.has(NO_UNROLLING) for item in body)


def unrolled_by(body: Sequence[Instruction]) -> int:
    """How many rounds of a loop, whose whole body this is, clang has made one: it counts them in
    steps of so many.
    """
    guard = body[-1].guard
    ends = {guard.register.name} if guard is not None else set()
    compared = {
        name
        for item in body
        if item.op == "setp" and ends.intersection(written(item))
        for name in read(item)
    }
    steps = {
        abs(operand.value)
        for item in body
        if item.op == "add" and compared.intersection(written(item))
        for operand in item.operands
        if isinstance(operand, Integer)
    }
    return max(steps.intersection(_BY_CLANG), default=1)


def _names(item: Instruction) -> list[str]:
    """The registers that are its operands, "" for anything else."""
    return [operand.name if isinstance(operand, Register) else "" for operand in item.operands]


def _extends(item: Instruction) -> bool:
    """Whether an instruction makes 64 bits of 32."""
    if item.op in ("mul", "mad"):
        return "wide" in item.modifiers
    return item.op == "cvt" and item.modifiers[-2:] in _WIDENED
