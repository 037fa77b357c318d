"""How many operands an instruction takes, where a wrong number would pass wrong pointers to a C
function.

clang copies inline PTX verbatim, so it was not checked before.
"""

from __future__ import annotations

from evoengine.emulator.ptx.syntax import Instruction

_COUNTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        ("neg", "abs", "bfind", "ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"), (2,)
    ),
    **dict.fromkeys(("add", "sub", "mul", "div"), (3,)),
    **dict.fromkeys(("min", "max"), (3, 4)),
    **dict.fromkeys(("fma", "mad", "sad", "prmt", "fns", "dp4a", "dp2a"), (4,)),
}


def has_valid_operand_count(instruction: Instruction) -> bool:
    """Whether the number of operands is one that PTX allows; true for instructions that are lowered
    without a C function.
    """
    counts = _conversion(instruction) if instruction.op == "cvt" else _COUNTS.get(instruction.op)
    return counts is None or len(instruction.operands) in counts


def _conversion(instruction: Instruction) -> tuple[int, ...]:
    """Two values become one in conversions of f32 to pairs alone."""
    if instruction.has("pack"):
        return 3, 4
    to, source = instruction.modifiers[-2:]
    return (3,) if to.endswith("x2") and source == "f32" else (2,)
