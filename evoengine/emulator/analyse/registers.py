"""Which registers an instruction reads and writes."""

from __future__ import annotations

from evoengine.emulator.ptx.syntax import (
    Address,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Vector,
)

# PTX ISA 9.7: instructions whose first operand is not a result.
WRITES_NOTHING = frozenset(
    ("st", "bra", "brx", "ret", "exit", "trap", "brkpt", "red", "fence", "membar", "nanosleep",
     "cp", "prefetch", "prefetchu", "stmatrix", "discard", "applypriority", "pmevent",
     "griddepcontrol", "setmaxnreg", "yield", "pragma")
)  # fmt: skip


def written(instruction: Instruction) -> list[str]:
    """The names of the registers that `instruction` writes."""
    if not _has_result(instruction) or not instruction.operands:
        return []
    return [item.name for item in registers_of(instruction.operands[0])]


def read(instruction: Instruction) -> list[str]:
    """The names of the registers that `instruction` reads, including its guard."""
    sources = instruction.operands[1:] if _has_result(instruction) else instruction.operands
    names = [item.name for operand in sources for item in registers_of(operand)]
    if instruction.guard:
        names.append(instruction.guard.register.name)
    return names


def _has_result(instruction: Instruction) -> bool:
    """Whether the first operand is a result, including the unused result `_`."""
    if instruction.op in ("bar", "barrier"):
        return instruction.has("red")
    return not (
        instruction.op in WRITES_NOTHING or (instruction.op == "wmma" and instruction.has("store"))
    )


def registers_of(operand: Operand) -> list[Register]:
    """Every register in an operand, in order."""
    match operand:
        case Register():
            return [operand]
        case Not(register):
            return [register]
        case Address(base, _):
            return registers_of(base)
        case Vector(items):
            return [register for item in items for register in registers_of(item)]
        case Pair(first, second):
            return registers_of(first) + registers_of(second)
        case _:
            return []
