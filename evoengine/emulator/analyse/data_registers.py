"""Which registers hold data alone: values that go into results, but decide nothing.

What a thread waits for, a flag or a ticket, decides where it goes on; what it looks at before an
atomic operation decides that operation. A value that is only computed with and stored decides
nothing: whoever reads it relies on it being the final one.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import Function, Instruction

_FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"))
# Nobody computes with a flag in floating point: what goes into one of these is data, whatever
# becomes of the result.
_ARITHMETIC = frozenset(
    (
        "add",
        "sub",
        "mul",
        "fma",
        "mad",
        "div",
        "min",
        "max",
        "rcp",
        "sqrt",
        "rsqrt",
        "ex2",
        "lg2",
        "sin",
        "cos",
        "tanh",
        "atom",
        "red",
    )
)
_ATOMIC = ("atom", "red")
# What goes into one of these decides what its result decides.
# fmt: off
_PASSING = frozenset((
    "mov", "cvt", "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "min", "max", "abs", "neg",
    "not", "and", "or", "xor", "lop3",
    "shl", "shr", "shf", "prmt", "bfe", "bfi", "popc", "clz", "brev", "selp", "shfl", "dp4a",
    "dp2a", "copysign",
))
# fmt: on


def data_registers(function: Function) -> frozenset[str]:
    """The registers that somebody reads and that reach no comparison, address, atomic operation or
    memory that is not global.
    """
    instructions = [item for block in function.blocks for item in block.instructions]
    used = {name for item in instructions for name in read(item)}
    deciding = {name for item in instructions for name in _decides_by_itself(item)}
    passing = [
        (written(item), read(item))
        for item in instructions
        if item.op in _PASSING and not _is_arithmetic(item)
    ]
    grew = True
    while grew:
        before = len(deciding)
        for results, sources in passing:
            if not deciding.isdisjoint(results):
                deciding.update(sources)
        grew = len(deciding) > before
    return frozenset(used - deciding)


def _is_arithmetic(instruction: Instruction) -> bool:
    return instruction.op in _ARITHMETIC and instruction.type in _FLOATS


def _decides_by_itself(instruction: Instruction) -> Iterator[str]:
    """The registers of `instruction` that decide something, whatever becomes of its result."""
    if instruction.guard:
        yield instruction.guard.register.name
    if instruction.op in _PASSING or (
        _is_arithmetic(instruction) and instruction.op not in _ATOMIC
    ):
        return
    if _is_arithmetic(instruction) or (instruction.op == "st" and instruction.has("global")):
        address = instruction.operands[1 if instruction.op == "atom" else 0]
        yield from (register.name for register in registers_of(address))
    else:
        yield from read(instruction)
