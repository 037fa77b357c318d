"""Groups of registers that tensor instructions use together and that are kept contiguous in memory.

The C code of these instructions takes the registers of a fragment as one contiguous array. Where
the registers already are contiguous, nothing is copied; the copies took a quarter of the time of a
kernel that does little else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.ptx.syntax import Instruction, Operand, Register, Vector

OF_FRAGMENTS = frozenset(("mma", "wmma", "ldmatrix", "stmatrix"))


def find_fragment_groups(
    cfg: ControlFlowGraph, can_be_grouped: Callable[[str], bool]
) -> list[tuple[str, ...]]:
    """Disjoint sequences of registers for which `can_be_grouped` holds; most fragments are a
    contiguous part of one.
    """
    groups = _Groups()
    for node in cfg.nodes:
        for instruction in node.instructions:
            for names in fragments_of(instruction):
                if all(map(can_be_grouped, names)):
                    groups.join(names)
    return groups.all()


def fragments_of(instruction: Instruction) -> Iterator[tuple[str, ...]]:
    """The names of the registers of each fragment of a tensor instruction."""
    if instruction.op in OF_FRAGMENTS:
        for operand in instruction.operands:
            if names := names_of(operand):
                yield names


def names_of(operand: Operand) -> tuple[str, ...]:
    """The registers of an operand; empty if it is not a list of distinct registers."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    names = tuple(item.name for item in items if isinstance(item, Register))
    return names if len(set(names)) == len(items) else ()


class _Groups:
    """Disjoint sequences of registers."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[str, ...]] = {}

    def join(self, names: tuple[str, ...]) -> None:
        """Joins `names` to one sequence, if they consist of whole sequences and ungrouped
        registers.
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
