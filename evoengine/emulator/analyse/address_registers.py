"""Registers of which nothing becomes but addresses."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import TYPE_BITS, Address, Function, Instruction

ARITHMETIC = frozenset(("mov", "cvta", "add", "sub", "mul", "mad", "shl", "selp"))


def only_addresses(function: Function, flow: Flow) -> frozenset[str]:
    """The 64-bit registers that memory is addressed with, directly or after more arithmetic, and
    that have no other use.

    Cutting one to fewer bits is no use either: what a wrap changes is above them.
    """
    wide = {name for name, type_ in function.registers.items() if TYPE_BITS[type_] == 64}
    lost: list[str] = [name for name in function.registers if name not in wide]
    sources: dict[str, list[str]] = {}  # of the registers that arithmetic makes
    for instruction in (item for node in flow.nodes for item in node.instructions):
        if _keeps(instruction):
            for name in written(instruction):
                sources.setdefault(name, []).extend(read(instruction))
        else:
            lost += _used(instruction)
    seen = set(lost)
    while lost:
        fresh = [name for name in sources.get(lost.pop(), ()) if name not in seen]
        seen.update(fresh)
        lost += fresh
    return frozenset(wide - seen)


def _keeps(instruction: Instruction) -> bool:
    """Whether what an instruction makes of an address is one."""
    return instruction.op in ARITHMETIC and not (instruction.has("hi") or instruction.has("cc"))


def _used(instruction: Instruction) -> list[str]:
    """The registers that `instruction` uses as more than an address."""
    if (
        instruction.op == "cvt"
        and len(instruction.modifiers) == 2
        and TYPE_BITS.get(instruction.modifiers[0], 64) < 64
    ):
        return []
    pointing = {
        item.name
        for operand in instruction.operands
        if isinstance(operand, Address)
        for item in registers_of(operand)
    }
    plain = {
        item.name
        for operand in instruction.operands
        if not isinstance(operand, Address)
        for item in registers_of(operand)
    }
    return [name for name in read(instruction) if name not in pointing or name in plain]
