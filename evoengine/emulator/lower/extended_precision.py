"""Extended precision: add.cc, addc, sub.cc, subc, mad.cc, madc.

PTX keeps the carry in an implicit condition code. Here it is an ordinary predicate, which
`explicit_carries` adds to the operands, so that register analysis sees it: "d|carry" as result, the
carry-in as the last source.
"""

from __future__ import annotations

from dataclasses import replace

from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.ptx.syntax import TYPE_BITS, Block, Function, Instruction, Pair, Register

CARRY = Register("%carry.flag")  # PTX names have no dots
_CONSUMERS = ("addc", "subc", "madc")


def explicit_carries(function: Function) -> Function:
    """The same function with carries as operands; the function itself if it uses no carries."""
    if not any(_has_carry(item) for block in function.blocks for item in block.instructions):
        return function
    blocks = [
        Block(
            block.label,
            [_explicit(item) if _has_carry(item) else item for item in block.instructions],
        )
        for block in function.blocks
    ]
    return replace(function, blocks=blocks, registers={**function.registers, CARRY.name: "pred"})


def _has_carry(instruction: Instruction) -> bool:
    return instruction.op in _CONSUMERS or (
        instruction.op in ("add", "sub", "mad") and instruction.has("cc")
    )


def _explicit(instruction: Instruction) -> Instruction:
    if not instruction.operands:
        raise PtxError(f"`{instruction.text}` has no operands")
    target, *sources = instruction.operands
    if instruction.op in _CONSUMERS:
        sources.append(CARRY)
    return replace(
        instruction, operands=(Pair(target, CARRY) if instruction.has("cc") else target, *sources)
    )


def with_carry(cx: LoweringContext, instruction: Instruction) -> None:
    """One of these instructions, with its carry (or borrow) among the operands."""
    bits, ir, target = TYPE_BITS[instruction.type], cx.ir, instruction.operands[0]
    consumes, multiplies = instruction.op in _CONSUMERS, instruction.op in ("mad", "madc")
    subtracts = instruction.op in ("sub", "subc")
    count = 3 if multiplies else 2
    values = [cx.read(operand, bits) for operand in instruction.operands[1 : 1 + count]]
    if consumes:
        values.append(cx.read(instruction.operands[1 + count], 1))
    if multiplies:
        values[:2] = [
            cx.compute(
                values[:2], bits, lambda vector, a, b: _product(cx, instruction, vector, a, b)
            )
        ]

    def total(vector: bool, a: str, b: str, *carry: str) -> str:
        """The sum or difference with one more bit."""
        kind = integer(bits + 1, vector)
        operation = "sub" if subtracts else "add"
        x, y = (ir.get(f"zext {integer(bits, vector)} {item} to {kind}") for item in (a, b))
        text = ir.get(f"{operation} {kind} {x}, {y}")
        for item in carry:
            text = ir.get(
                f"{operation} {kind} {text},"
                f" {ir.get(f'zext {integer(1, vector)} {item} to {kind}')}"
            )
        return text

    def low(vector: bool, *items: str) -> str:
        return ir.get(
            f"trunc {integer(bits + 1, vector)} {total(vector, *items)} to {integer(bits, vector)}"
        )

    def over(vector: bool, *items: str) -> str:
        kind = integer(bits + 1, vector)
        by = f"splat (i{bits + 1} {bits})" if vector else str(bits)
        return ir.get(
            f"trunc {kind} {ir.get(f'lshr {kind} {total(vector, *items)}, {by}')} to"
            f" {integer(1, vector)}"
        )

    result = cx.compute(values, bits, low)
    if isinstance(target, Pair):
        carry_out = cx.compute(values, 1, over)
        cx.write(target.first, result)
        cx.write(target.second, carry_out)
    else:
        cx.write(target, result)


def _product(cx: LoweringContext, instruction: Instruction, vector: bool, a: str, b: str) -> str:
    """The low or the high half of a product."""
    bits, ir = TYPE_BITS[instruction.type], cx.ir
    small, large = integer(bits, vector), integer(2 * bits, vector)
    if not instruction.has("hi"):
        return ir.get(f"mul {small} {a}, {b}")
    how = "sext" if instruction.type.startswith("s") else "zext"
    x, y = (ir.get(f"{how} {small} {item} to {large}") for item in (a, b))
    whole = ir.get(
        f"lshr {large} {ir.get(f'mul {large} {x}, {y}')},"
        f" {f'splat (i{2 * bits} {bits})' if vector else bits}"
    )
    return ir.get(f"trunc {large} {whole} to {small}")


HANDLERS = dict.fromkeys(_CONSUMERS, with_carry)
