"""Interprets one thread of a kernel of integer instructions, to check that inlining preserves its
results.
"""

from __future__ import annotations

from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Function,
    Instruction,
    Integer,
    Operand,
    Register,
    Symbol,
)


def run(function: Function, steps: int = 10_000) -> dict[str, int]:
    """The final registers, as unsigned numbers."""
    registers: dict[str, int] = {}
    index = {block.label: number for number, block in enumerate(function.blocks)}
    block = place = 0
    for _ in range(steps):
        if place == len(function.blocks[block].instructions):
            block, place = block + 1, 0
            continue
        instruction = function.blocks[block].instructions[place]
        place += 1
        guard = instruction.guard
        if guard and bool(registers[guard.register.name]) == guard.negated:
            continue
        if instruction.op in ("ret", "exit"):
            return registers
        if instruction.op == "bra":
            target = instruction.operands[0]
            assert isinstance(target, Symbol)
            block, place = index[target.name], 0
            continue
        target = instruction.operands[0]
        assert isinstance(target, Register)
        width = TYPE_BITS[function.registers[target.name]]
        registers[target.name] = _value(instruction, registers) & ((1 << width) - 1)
    raise AssertionError(f"did not end in {steps} steps")


def _value(instruction: Instruction, registers: dict[str, int]) -> int:
    values = [_read(operand, registers, instruction.type) for operand in instruction.operands[1:]]
    match instruction.op:
        case "mov" | "cvt":
            return values[0]
        case "add":
            return values[0] + values[1]
        case "sub":
            return values[0] - values[1]
        case "mul":
            return values[0] * values[1]
        case "setp":
            return int(
                {
                    "eq": values[0] == values[1],
                    "ne": values[0] != values[1],
                    "ge": values[0] >= values[1],
                }[instruction.modifiers[0]]
            )
    raise AssertionError(f"no rule for {instruction.text}")


def _read(operand: Operand, registers: dict[str, int], kind: str) -> int:
    assert isinstance(operand, (Register, Integer))
    bits = TYPE_BITS[kind]
    value = (operand.value if isinstance(operand, Integer) else registers[operand.name]) & (
        (1 << bits) - 1
    )
    return value - (1 << bits) if kind.startswith("s") and value >> (bits - 1) else value
