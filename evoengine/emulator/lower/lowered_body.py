"""What all parts of a lowered function share: the control flow graph, live lanes, returns to the
driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evoengine.emulator.analyse.atomic_polls import find_poll_loads
from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.data_registers import data_registers
from evoengine.emulator.analyse.early_exits import blocks_after_exits
from evoengine.emulator.analyse.fragments import find_fragment_groups
from evoengine.emulator.analyse.lane_variance import VARYING
from evoengine.emulator.analyse.liveness import live_across_suspensions
from evoengine.emulator.analyse.uniformity import UniformityInfo
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.saved_registers import SavedRegisters
from evoengine.emulator.ptx.syntax import TYPE_BITS, Function, Instruction
from evoengine.emulator.run.abi import BlockRecord, StopReason

GROUPED_BITS = 32  # width of the registers that may be contiguous


class LoweredBody:
    """The body of one lowered kernel."""

    def __init__(
        self,
        function: Function,
        cfg: ControlFlowGraph,
        uniformity: UniformityInfo,
        layout: Layout,
        block: tuple[int, int, int],
        *,
        checked: bool,
        vector_memory: bool,
    ) -> None:
        self.cfg, self.uniformity = cfg, uniformity
        fragment_groups = find_fragment_groups(
            cfg, partial(self._can_be_grouped, function.registers)
        )
        self.cx = LoweringContext(
            layout,
            uniformity,
            function.registers,
            fragment_groups,
            block,
            vector_memory=vector_memory,
            checked=checked,
            end=self.stop_here,
        )
        if checked:
            self.cx.data, self.cx.poll_loads = data_registers(function), find_poll_loads(cfg)
        self.saved = SavedRegisters(self.cx, live_across_suspensions(cfg, uniformity.regions))
        self.ir = self.cx.ir
        # the last warp has lanes without a thread
        has_partial_warp = block[0] * block[1] * block[2] % LANES != 0
        # blocks that run without some lanes
        self.partial_blocks = (
            frozenset(range(cfg.exit)) if has_partial_warp else blocks_after_exits(cfg, uniformity)
        )

    def _can_be_grouped(self, registers: Mapping[str, str], name: str) -> bool:
        """Whether a register may be grouped: <32 x i32>, and never read before it is written,
        because groups are not zeroed.
        """
        is_groupable = (
            TYPE_BITS.get(registers.get(name, "")) == GROUPED_BITS
            and self.uniformity.variance_of[name] is VARYING
        )
        return is_groupable and name not in self.cfg.nodes[0].live_in

    def fallthrough(self, number: int) -> int:
        """The fall-through successor of block `number`, or the exit."""
        fallthrough = self.cfg.nodes[number].fallthrough
        return self.cfg.exit if fallthrough is None else fallthrough

    # ------------------------------------------------------------ which lanes run

    def live(self) -> str:
        """The lanes that have not exited, as an i32."""
        return self.ir.get("load i32, ptr %live.slot")

    def activate_all(self, number: int) -> None:
        """Activates all live lanes for block `number`, without a mask if no lane can be missing
        there.
        """
        self.cx.in_region = False
        if number in self.partial_blocks:
            self._set_mask(self.live())
        else:
            self.cx.mask, self.cx.mask_bits = None, "-1"

    def activate(self, mask: str) -> None:
        """Activates the lanes of the i32 `mask`, in a region of divergence."""
        self.cx.in_region = True
        self._set_mask(mask)

    def restrict(self, mask: str) -> None:
        """Restricts the active lanes to those of the i32 `mask`."""
        self._set_mask(mask)

    def _set_mask(self, mask: str) -> None:
        self.cx.mask_bits = mask
        self.cx.mask = self.ir.get(f"bitcast i32 {mask} to <{LANES} x i1>")

    def mark_exited(self, mask: str) -> None:
        """Marks the lanes of the i32 `mask` as exited."""
        live = self.live()
        rest = self.ir.get(f"xor i32 {mask}, -1")
        self.ir.do(f"store i32 {self.ir.get(f'and i32 {live}, {rest}')}, ptr %live.slot")

    # ------------------------------------------------------------ leaving

    def leave(self, end: StopReason) -> None:
        """Emits a return to the driver."""
        self.ir.do(f"store i32 {self.live()}, ptr %live_in.at")
        self.ir.do(f"ret i32 {int(end)}")

    def leave_if_none(self, mask: str) -> None:
        """Emits a return to the driver as done, if the i32 `mask` is empty."""
        ir = self.ir
        none, over, on = ir.get(f"icmp eq i32 {mask}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {none}, label %{over}, label %{on}")
        ir.place(over)
        self.leave(StopReason.done)
        ir.place(on)

    def stop_here(self, end: StopReason) -> None:
        """Stops the warp within an instruction; code emitted after it is unreachable."""
        self.record_fault(self.cx.instruction)
        self.leave(end)
        self.ir.place(self.ir.label())

    def record_fault(self, instruction: Instruction | None) -> None:
        """Stores the site and the active lanes for the driver's error report."""
        site = self.cx.site(instruction)
        for offset, value in (
            (BlockRecord.fault_site.offset, site),
            (BlockRecord.fault_lanes.offset, self.cx.mask_bits),
        ):
            at = self.ir.get(f"getelementptr i8, ptr %block, i64 {offset}")
            self.ir.do(f"store i32 {value}, ptr {at}")
