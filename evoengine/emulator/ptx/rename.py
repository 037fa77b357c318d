"""Copies instructions with registers, symbols and labels renamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evoengine.emulator.ptx.syntax import (
    Address,
    Function,
    Guard,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)

_JUMPS = ("bra", "brx")


class Renamer:
    """Appends the suffix to every register, and maps names by `symbols` and `labels`."""

    def __init__(self, suffix: str, symbols: Mapping[str, str], labels: Mapping[str, str]) -> None:
        self.suffix = suffix
        self.symbols = symbols
        self.labels = labels
        self._known: dict[Operand, Operand] = {}

    def instruction(self, old: Instruction) -> Instruction:
        """A renamed copy of `old`, with the same text."""
        if old.op in _JUMPS:
            operands = (*map(self.operand, old.operands[:-1]), self._target(old.operands[-1]))
        else:
            operands = tuple(map(self.operand, old.operands))
        guard = old.guard and Guard(self._register(old.guard.register), old.guard.negated)
        return Instruction(old.op, old.modifiers, operands, guard, old.line, old.text, old.near)

    def operand(self, old: Operand) -> Operand:
        """A renamed copy of `old`, or `old` itself if it has no names."""
        found = self._known.get(old)
        if found is None:
            found = self._known[old] = self._renamed(old)
        return found

    def _renamed(self, old: Operand) -> Operand:
        match old:
            case Register():
                return self._register(old)
            case Symbol():
                return Symbol(self.symbols.get(old.name, old.name), old.offset)
            case Address(base=Register() | Symbol() as base):
                return replace(old, base=self.operand(base))  # type: ignore[arg-type]  # a register stays one, a symbol too
            case Vector():
                return Vector(tuple(map(self.operand, old.items)))
            case Pair():
                return Pair(self.operand(old.first), self.operand(old.second))
            case Not():
                return Not(self._register(old.register))
        return old

    def _register(self, old: Register) -> Register:
        return Register(old.name + self.suffix)

    def _target(self, old: Operand) -> Operand:
        if isinstance(old, Vector):
            return Vector(tuple(map(self._target, old.items)))
        return Symbol(self.labels[old.name]) if isinstance(old, Symbol) else old


def with_variables_renamed(function: Function, names: Mapping[str, str]) -> Function:
    """A copy of `function` in which the variables in `names` have their new names."""
    renamer = Renamer("", names, {block.label: block.label for block in function.blocks})
    variables: dict[str, Variable] = {}
    for variable in function.variables.values():
        name = names.get(variable.name, variable.name)
        variables[name] = replace(variable, name=name)
    blocks = [
        replace(block, instructions=[renamer.instruction(old) for old in block.instructions])
        for block in function.blocks
    ]
    return replace(function, variables=variables, blocks=blocks)
