"""Registers of which nothing becomes but addresses."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.emulator.analyse.graph import Flow
from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.program import TYPE_BITS, Address, Function, Instruction

ARITHMETIC = frozenset(("mov", "cvta", "add", "sub", "mul", "mad", "shl", "selp"))


def only_addresses(function: Function, flow: Flow) -> frozenset[str]:
    """The 64-bit registers that memory is addressed with, directly or after more arithmetic, and that have no other use.

    Cutting one to fewer bits is no use either: what a wrap changes is above them.
    """
    found = {name for name, type_ in function.registers.items() if TYPE_BITS[type_] == 64}
    instructions = [item for node in flow.nodes for item in node.instructions]
    while True:
        lost = {name for item in instructions for name in _used(item, found)} & found
        if not lost:
            return frozenset(found)
        found -= lost


def _used(instruction: Instruction, addresses: set[str]) -> Iterator[str]:
    """The registers that `instruction` uses as more than an address."""
    names = read(instruction)
    if not names:
        return
    keeps = instruction.op in ARITHMETIC and not (instruction.has("hi") or instruction.has("cc"))
    if keeps and all(name in addresses for name in written(instruction)):
        return
    if instruction.op == "cvt" and TYPE_BITS.get(instruction.modifiers[-2], 64) < 64 and len(instruction.modifiers) == 2:
        return
    pointing = {item.name for operand in instruction.operands if isinstance(operand, Address) for item in registers_of(operand)}
    plain = {item.name for operand in instruction.operands if not isinstance(operand, Address) for item in registers_of(operand)}
    yield from (name for name in names if name not in pointing or name in plain)
