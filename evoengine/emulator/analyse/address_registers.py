"""Registers that are used for nothing but memory addresses."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.registers import read, registers_of, written
from evoengine.emulator.ptx.syntax import TYPE_BITS, Address, Function, Instruction

ARITHMETIC = frozenset(("mov", "cvta", "add", "sub", "mul", "mad", "shl", "selp"))


def address_only_registers(function: Function, cfg: ControlFlowGraph) -> frozenset[str]:
    """The 64-bit registers whose only use is to address memory, directly or after more arithmetic.

    A truncation does not count as another use: a wrap changes only the bits above.
    """
    wide = {name for name, type_ in function.registers.items() if TYPE_BITS[type_] == 64}
    lost: list[str] = [name for name in function.registers if name not in wide]
    sources: dict[str, list[str]] = {}  # operands of the registers that arithmetic computes
    for instruction in (item for node in cfg.nodes for item in node.instructions):
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
    """Whether the result of an instruction on an address is an address again."""
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
