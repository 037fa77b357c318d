"""Registers that are best kept side by side in memory: those that a tensor instruction takes or
gives together.

The C code of these instructions wants the registers of a fragment one right behind the other. Where
they lie so anyway, nothing is copied: of a kernel that does little else, that was a quarter of its
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.ptx.syntax import Instruction, Operand, Register, Vector

OF_FRAGMENTS = frozenset(("mma", "wmma", "ldmatrix", "stmatrix"))


def strips_of(flow: Flow, fits: Callable[[str], bool]) -> list[tuple[str, ...]]:
    """Disjoint sequences of registers for which `fits` holds, such that most fragments are a part
    of one, in order.
    """
    chains = _Chains()
    for node in flow.nodes:
        for instruction in node.instructions:
            for names in fragments_of(instruction):
                if all(map(fits, names)):
                    chains.join(names)
    return chains.all()


def fragments_of(instruction: Instruction) -> Iterator[tuple[str, ...]]:
    """The names of the registers of each fragment of a tensor instruction."""
    if instruction.op in OF_FRAGMENTS:
        for operand in instruction.operands:
            if names := names_of(operand):
                yield names


def names_of(operand: Operand) -> tuple[str, ...]:
    """The registers of an operand, each another one; none where it is no list of registers."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    names = tuple(item.name for item in items if isinstance(item, Register))
    return names if len(set(names)) == len(items) else ()


class _Chains:
    """Registers in sequences; each is in one."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}

    def join(self, names: tuple[str, ...]) -> None:
        """Makes one sequence of these, where they are whole sequences and registers that are in
        none.
        """
        place = 0
        while place < len(names):
            known = self._of.get(names[place], names[place : place + 1])
            if names[place : place + len(known)] != known:
                return
            place += len(known)
        self._of.update(dict.fromkeys(names, names))

    def all(self) -> list[tuple[str, ...]]:
        """Every sequence."""
        return list(dict.fromkeys(self._of.values()))
