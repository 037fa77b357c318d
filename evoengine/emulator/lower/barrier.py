"""bar.sync and bar.red: how a warp reports waiting lanes to the driver, and reads the result of
bar.red.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.value import Value
from evoengine.emulator.ptx.syntax import Instruction, Integer, Operand
from evoengine.emulator.run.abi import BARRIERS, WarpRecord


def arrive(cx: LoweringContext, instruction: Instruction, mask: str) -> None:
    """Records in the warp that the lanes of the i32 `mask` wait."""
    if instruction.op == "yield":
        _add_lanes(cx, _field(cx, WarpRecord.yielded.offset), mask)
        return
    cx.instruction = instruction
    site = str(cx.site(instruction))
    cx.ir.do(f"store i32 {site}, ptr {_field(cx, WarpRecord.waits_at.offset)}")
    if cx.checked:
        number = ("i32", site)
        cx.ir.call("void", "ev_check_wait", ("ptr", "%checker"), ("i32", "%warp_index"), number)
    operands = _number_and_count(instruction)
    count = cx.scalar(operands[1], 32) if len(operands) > 1 else "0"
    if count is None:
        raise cx.unsupported("a barrier whose count differs between lanes")
    for barrier, lanes in lanes_by_number(cx, operands[0], mask):
        _add_lanes(cx, _item(cx, WarpRecord.arrived.offset, barrier), lanes)
        expected = _item(cx, WarpRecord.expected.offset, barrier)
        before = cx.ir.get(f"load i32, ptr {expected}")
        here = cx.ir.get(f"icmp ne i32 {lanes}, 0")
        after = cx.ir.get(f"select i1 {here}, i32 {count}, i32 {before}")
        cx.ir.do(f"store i32 {after}, ptr {expected}")
    if instruction.has("red"):
        index = _barrier_index(cx, operands[0])
        predicate = cx.read(instruction.operands[-1], 1)
        bits = cx.ir.get(f"bitcast <{LANES} x i1> {cx.as_vector(predicate)} to i32")
        voted = cx.ir.get(f"and i32 {bits}, {mask}")
        _add_lanes(cx, _item(cx, WarpRecord.voted.offset, index), voted)


def lanes_by_number(cx: LoweringContext, number: Operand, mask: str) -> Iterator[tuple[str, str]]:
    """Each barrier that may be named with those lanes of the i32 `mask` that name it: one that is
    loaded may differ between lanes, as far as can be known before the kernel runs.
    """
    if cx.scalar(number, 32) is not None:
        yield _barrier_index(cx, number), mask
        return
    numbers = cx.as_vector(cx.read(number, 32))
    kept = cx.ir.get(f"and <{LANES} x i32> {numbers}, {cx.ir.splat(str(BARRIERS - 1), 'i32')}")
    for barrier in range(BARRIERS):
        own = cx.ir.splat(str(barrier), "i32")
        same = cx.ir.get(f"icmp eq <{LANES} x i32> {kept}, {own}")
        bits = cx.ir.get(f"bitcast <{LANES} x i1> {same} to i32")
        yield str(barrier), cx.ir.get(f"and i32 {bits}, {mask}")


def write_barrier_result(cx: LoweringContext, instruction: Instruction) -> None:
    """Writes the result of bar.red to its register, when lanes resume after the barrier."""
    if not instruction.has("red"):
        return
    cx.instruction = instruction
    index = _barrier_index(cx, _number_and_count(instruction)[0])
    votes = cx.ir.get(f"load i32, ptr {_item(cx, WarpRecord.votes.offset, index)}")
    voters = cx.ir.get(f"load i32, ptr {_item(cx, WarpRecord.voters.offset, index)}")
    if instruction.has("popc"):
        value = Value(UNIFORM, votes, 32)
    else:
        text = (
            f"icmp eq i32 {votes}, {voters}"
            if instruction.has("and")
            else f"icmp ne i32 {votes}, 0"
        )
        value = Value(UNIFORM, cx.ir.get(text), 1)
    cx.write(instruction.operands[0], value)


def _number_and_count(instruction: Instruction) -> list[Operand]:
    """The operands for the barrier's number and its optional thread count, without result and
    predicate of bar.red.
    """
    operands = list(instruction.operands)
    if instruction.has("red"):
        if len(operands) < 3:
            raise PtxError(f"`{instruction.text}` lacks a result, a number or a predicate")
        operands = operands[1:-1]
    return operands or [Integer(0)]


def _barrier_index(cx: LoweringContext, number: Operand) -> str:
    text = cx.scalar(number, 32)
    if text is None:
        raise cx.unsupported("a barrier whose number differs between lanes")
    return cx.ir.get(f"and i32 {text}, {BARRIERS - 1}")


def _add_lanes(cx: LoweringContext, at: str, mask: str) -> None:
    before = cx.ir.get(f"load i32, ptr {at}")
    cx.ir.do(f"store i32 {cx.ir.get(f'or i32 {before}, {mask}')}, ptr {at}")


def _field(cx: LoweringContext, offset: int) -> str:
    return cx.ir.get(f"getelementptr i8, ptr %warp, i64 {offset}")


def _item(cx: LoweringContext, offset: int, index: str) -> str:
    return cx.ir.get(f"getelementptr i32, ptr {_field(cx, offset)}, i32 {index}")
