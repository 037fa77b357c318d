"""Calls of functions without a body: our math functions, printf's vprintf, and a failed assert."""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.front.externals import EXTERNALS, ExternalFunction
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.trap import trap
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Operand, Symbol, Vector
from evoengine.emulator.run.abi import BlockRecord

PRINTF, ASSERTION = 0, 1  # kinds of run/printing.py


def call(cx: LoweringContext, instruction: Instruction) -> None:
    """call (results), function, (arguments): what `inline_calls` leaves."""
    results, function, arguments = instruction.operands[:3]
    if not (
        isinstance(results, Vector)
        and isinstance(function, Symbol)
        and isinstance(arguments, Vector)
    ):
        raise cx.unsupported()
    if function.name in EXTERNALS:
        _mathematical(cx, EXTERNALS[function.name], results.items, arguments.items)
    elif function.name == "vprintf" and len(arguments.items) == 2:
        _print(cx, results.items, arguments.items)
    elif function.name == "__assertfail" and arguments.items:
        _fail(cx, instruction, arguments.items[0])
    else:
        raise cx.unsupported(f"there is no function {function.name}")


def _mathematical(
    cx: LoweringContext,
    external: ExternalFunction,
    results: tuple[Operand, ...],
    arguments: tuple[Operand, ...],
) -> None:
    """ev_call_NAME(lanes of each argument, lanes of the result)."""
    if len(arguments) != len(external.arguments) or len(results) != 1:
        raise cx.unsupported(
            f"{external.name} has {len(external.arguments)} arguments and a result"
        )
    widths = [TYPE_BITS[type_] for type_ in external.arguments]
    given = [(bits, cx.vector(item, bits)) for item, bits in zip(arguments, widths, strict=True)]
    bits = TYPE_BITS[external.result]
    (found,) = cx.call_lanes(f"ev_call_{external.function}", given, [bits])
    cx.write(results[0], Value(VARYING, found, bits))


def _print(
    cx: LoweringContext, results: tuple[Operand, ...], arguments: tuple[Operand, ...]
) -> None:
    """vprintf(format, arguments): lane by lane; the result is how many arguments were printed, as
    CUDA defines it.
    """
    text, buffer = (cx.vector(item, 64) for item in arguments)
    counts = _printed(cx, text, buffer, PRINTF)
    for result in results:
        low = cx.ir.get(f"trunc <32 x i64> {cx.from_lanes(counts, 64)} to <32 x i32>")
        cx.write(result, Value(VARYING, low, 32))


def _printed(cx: LoweringContext, text: str, buffer: str, kind: int) -> str:
    """Calls the launch's print callback; returns a pointer to its <32 x i64> results, in place of
    the buffers.
    """
    place = BlockRecord.print.offset if kind == PRINTF else BlockRecord.fail.offset
    at = cx.ir.get(f"getelementptr i8, ptr %block, i64 {place}")
    function = cx.ir.get(f"load ptr, ptr {at}")
    formats, buffers = cx.lanes(0, 64, text), cx.lanes(1, 64, buffer)
    with cx.only_if(cx.ir.get(f"icmp ne i32 {cx.mask_bits}, 0")):
        cx.ir.do(
            f"call void {function}(ptr %block, i32 {cx.mask_bits}, ptr {formats}, ptr {buffers},"
            f" i32 {kind})"
        )
    return buffers


def _fail(cx: LoweringContext, instruction: Instruction, message: Operand) -> None:
    """__assertfail(message, file, line, function, bytes of a character): prints the message and
    ends the launch.
    """
    _printed(cx, cx.vector(message, 64), "zeroinitializer", ASSERTION)
    trap(cx, instruction)


HANDLERS = {"call": call}
