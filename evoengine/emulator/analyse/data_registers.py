"""Registers that hold pure data: values that go into results but do not control anything.

A flag or a ticket that a thread waits for controls where it goes on; a value that it polls before
an atomic operation controls that operation. A value that is only computed with and stored controls
nothing, so the thread that reads it relies on it being final.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import Function, Instruction

_FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"))
# Flags are never computed with in floating point: an operand of one of these is data, whatever the
# result is used for.
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
# The operands of one of these control whatever its result controls. fmt: off
_PASSING = frozenset(
    (
        "mov",
        "cvt",
        "add",
        "sub",
        "mul",
        "mad",
        "mul24",
        "mad24",
        "sad",
        "min",
        "max",
        "abs",
        "neg",
        "not",
        "and",
        "or",
        "xor",
        "lop3",
        "shl",
        "shr",
        "shf",
        "prmt",
        "bfe",
        "bfi",
        "popc",
        "clz",
        "brev",
        "selp",
        "shfl",
        "dp4a",
        "dp2a",
        "copysign",
    )
)
# fmt: on


def data_registers(function: Function) -> frozenset[str]:
    """The registers that are read but never reach a comparison, an address, an atomic operation or
    a store to memory other than global.
    """
    instructions = [item for block in function.blocks for item in block.instructions]
    used = {name for item in instructions for name in read(item)}
    controlling = {name for item in instructions for name in _controls_by_itself(item)}
    passing = [
        (written(item), read(item))
        for item in instructions
        if item.op in _PASSING and not _is_arithmetic(item)
    ]
    changed = True
    while changed:
        before = len(controlling)
        for results, sources in passing:
            if not controlling.isdisjoint(results):
                controlling.update(sources)
        changed = len(controlling) > before
    return frozenset(used - controlling)


def _is_arithmetic(instruction: Instruction) -> bool:
    return instruction.op in _ARITHMETIC and instruction.type in _FLOATS


def _controls_by_itself(instruction: Instruction) -> Iterator[str]:
    """The registers of `instruction` that control something, whatever its result is used for."""
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
