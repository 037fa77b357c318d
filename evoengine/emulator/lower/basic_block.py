"""Lowers the instructions of one basic block, with its execution counters and its fuel."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Node, suspends
from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.emulator_errors import Unsupported
from evoengine.emulator.lower.dispatch import HANDLERS
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.operand_counts import has_valid_operand_count
from evoengine.emulator.ptx.syntax import Guard, Instruction
from evoengine.emulator.run.abi import StopReason

# Handlers expect operands and types as the ISA defines them; any other form raises one of these.
MALFORMED = (LookupError, TypeError, ValueError, AttributeError, StopIteration)


class BlockLowering:
    """Lowers the code between the entry of a basic block and the jump at its end."""

    def __init__(self, body: LoweredBody) -> None:
        self._body = body
        self._ir = body.ir
        self._cx = body.cx

    def run(self, number: int, node: Node, region: int | None) -> None:
        """Lowers block `number`; `region` is the index of its region of divergence, if any."""
        self._count(number, region is not None)
        self._spend_fuel(number, node)
        for place, instruction in enumerate(node.instructions):
            self._cx.instruction = instruction
            if instruction.op in ("ret", "exit") and instruction.guard is not None:
                self._exit(instruction.guard, region)
            elif suspends(instruction) or (
                instruction.op in ("bra", "ret", "exit") and place == len(node.instructions) - 1
            ):
                return
            else:
                self._lower_instruction(instruction)

    def _exit(self, guard: Guard, region: int | None) -> None:
        """Lowers a guarded exit: some lanes exit here; if none goes on, the rest of the block is
        skipped, so that a block never runs without active lanes.
        """
        ir, mask = self._ir, self._cx.mask_bits
        condition = self._cx.guard_bits(guard)
        self._body.mark_exited(ir.get(f"and i32 {condition}, {mask}"))
        rest = ir.get(f"and i32 {mask}, {ir.get(f'xor i32 {condition}, -1')}")
        if region is None:
            self._body.leave_if_none(rest)
            # a uniform guard: if any lane goes on, all do
            if self._cx.guard(guard).variance is UNIFORM:
                return
        else:
            on = ir.label()
            ir.do(f"br i1 {ir.get(f'icmp eq i32 {rest}, 0')}, label %dispatch{region}, label %{on}")
            ir.place(on)
        self._body.restrict(rest)

    def _lower_instruction(self, instruction: Instruction) -> None:
        handler = HANDLERS.get(instruction.op)
        if handler is None:
            raise self._cx.unsupported()
        before = self._cx.mask, self._cx.mask_bits
        if instruction.guard is not None:
            self._guard(instruction.guard)
        try:
            if not has_valid_operand_count(instruction):
                raise ValueError(f"{len(instruction.operands)} operands")
            handler(self._cx, instruction)
        except MALFORMED as error:
            raise Unsupported(
                f"{instruction.text}: wrong operands or types for {instruction.op}",
                instruction.line,
            ) from error
        self._cx.mask, self._cx.mask_bits = before

    def _guard(self, guard: Guard) -> None:
        """Restricts the active lanes to those whose guard holds."""
        condition = self._cx.as_vector(self._cx.guard(guard))
        mask = (
            condition
            if self._cx.mask is None
            else self._ir.get(f"and <{LANES} x i1> {condition}, {self._cx.mask}")
        )
        self._cx.mask = mask
        self._cx.mask_bits = self._ir.get(f"bitcast <{LANES} x i1> {mask} to i32")

    def _count(self, number: int, is_masked: bool) -> None:
        """Adds to the block's two counters: executions by warps, and by lanes."""
        ir, lanes = self._ir, str(LANES)
        if is_masked:
            lanes = ir.get(f"zext i32 {ir.intrinsic('ctpop', 'i32', self._cx.mask_bits)} to i64")
        for place, amount in ((0, "1"), (1, lanes)):
            at = ir.get(f"getelementptr i64, ptr %counters, i64 {2 * number + place}")
            before = ir.get(f"load i64, ptr {at}")
            ir.do(f"store i64 {ir.get(f'add i64 {before}, {amount}')}, ptr {at}")

    def _spend_fuel(self, number: int, node: Node) -> None:
        """Takes one unit of fuel for one loop iteration: every cycle contains a loop header."""
        if number not in self._body.cfg.loop_headers:
            return
        ir = self._ir
        left = ir.get(f"sub i64 {ir.get('load i64, ptr %fuel')}, 1")
        ir.do(f"store i64 {left}, ptr %fuel")
        empty, over, on = ir.get(f"icmp slt i64 {left}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {empty}, label %{over}, label %{on}, !prof !0")
        ir.place(over)
        self._body.record_fault(node.instructions[0] if node.instructions else None)
        self._body.leave(StopReason.no_fuel)
        ir.place(on)
