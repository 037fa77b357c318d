"""Of what power of two a register is a multiple, as a compiler knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evoengine.emulator.analyse.registers import written
from evoengine.emulator.ptx.syntax import Instruction, Integer, Operand, Register, Symbol

# NVRTC places arrays in shared memory at multiples of 16 where that lets it join loads
OF_VARIABLES = 16
_MOST = 1 << 20
_SAME = frozenset(("mov", "cvt", "cvta"))


def alignments(code: Sequence[Instruction]) -> Mapping[str, int]:
    """For each register of a kernel the largest power of two that is known to divide it, whatever
    writes it; at most 2^20.
    """
    writers = [(item, names[0]) for item in code if len(names := written(item)) == 1]
    found = {name: _MOST for item in code for name in written(item)}
    changed = True
    while changed:
        changed = False
        for item, name in writers:
            new = min(found[name], _of_result(item, found))
            changed |= new < found[name]
            found[name] = new
    return found


def _of_result(item: Instruction, found: Mapping[str, int]) -> int:
    known = [_of_operand(operand, found) for operand in item.operands[1:]]
    if item.op in _SAME and len(known) == 1:
        return known[0]
    if item.op in ("add", "sub", "or") and len(known) == 2:
        return min(known)
    if item.op == "and" and len(known) == 2:
        return max(known)
    if item.op == "shl" and isinstance(item.operands[-1], Integer):
        return min(_MOST, known[0] << min(item.operands[-1].value, 20))
    if item.op in ("mul", "mad") and "hi" not in item.modifiers and len(known) >= 2:
        product = min(_MOST, known[0] * known[1])
        return min([product, *known[2:]])
    if item.op == "selp" and len(known) == 3:
        return min(known[:2])
    return 1


def _of_operand(operand: Operand, found: Mapping[str, int]) -> int:
    if isinstance(operand, Register):
        return found.get(operand.name, 1)
    if isinstance(operand, Integer):
        return _power(operand.value)
    if isinstance(operand, Symbol):
        return min(OF_VARIABLES, _power(operand.offset))
    return 1


def _power(value: int) -> int:
    return min(_MOST, value & -value) if value else _MOST
