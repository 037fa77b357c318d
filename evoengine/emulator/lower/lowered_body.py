"""What all parts of the function under construction share: the flow, which lanes live, how a warp
leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evoengine.emulator.analyse.atomic_polls import looking_loads
from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.analyse.data_registers import data_registers
from evoengine.emulator.analyse.early_exits import after_ends
from evoengine.emulator.analyse.fragments import strips_of
from evoengine.emulator.analyse.lane_variance import VARYING
from evoengine.emulator.analyse.liveness import alive_while_waiting
from evoengine.emulator.analyse.uniformity import Shapes
from evoengine.emulator.lower.context import Context
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.saved_registers import Saved
from evoengine.emulator.ptx.syntax import TYPE_BITS, Function, Instruction
from evoengine.emulator.run.abi import BlockRecord, End

STRIP_BITS = 32  # of the registers that may lie side by side


class LoweredBody:
    """The body of one kernel's function."""

    def __init__(
        self,
        function: Function,
        flow: Flow,
        shapes: Shapes,
        layout: Layout,
        block: tuple[int, int, int],
        *,
        checked: bool,
        vector_memory: bool,
    ) -> None:
        self.flow, self.shapes = flow, shapes
        strips = strips_of(flow, partial(self._fits_a_strip, function.registers))
        self.cx = Context(
            layout,
            shapes,
            function.registers,
            strips,
            block,
            vector_memory=vector_memory,
            checked=checked,
            end=self.end_within,
        )
        if checked:
            self.cx.data, self.cx.looks = data_registers(function), looking_loads(flow)
        self.saved = Saved(self.cx, alive_while_waiting(flow, shapes.regions))
        self.ir = self.cx.ir
        everywhere = block[0] * block[1] * block[2] % LANES != 0  # a warp has lanes that never were
        # blocks that some lanes may miss
        self.in_part = frozenset(range(flow.exit)) if everywhere else after_ends(flow, shapes)

    def _fits_a_strip(self, registers: Mapping[str, str], name: str) -> bool:
        """A vector of 32 bits; not one that may be read before it is written, for strips do not
        begin as zeros.
        """
        of_strips = (
            TYPE_BITS.get(registers.get(name, "")) == STRIP_BITS and self.shapes.of[name] is VARYING
        )
        return of_strips and name not in self.flow.nodes[0].live_in

    def falls(self, number: int) -> int:
        """The block behind block `number`, or the flow's exit."""
        falls = self.flow.nodes[number].falls
        return self.flow.exit if falls is None else falls

    # ------------------------------------------------------------ which lanes run

    def live(self) -> str:
        """An i32 of the lanes that have not ended."""
        return self.ir.get("load i32, ptr %live.slot")

    def run_all(self, number: int) -> None:
        """From here on, in block `number`, all lanes run but those that have ended, or never were;
        without such it needs no mask.
        """
        self.cx.in_region = False
        if number in self.in_part:
            self._set_mask(self.live())
        else:
            self.cx.mask, self.cx.mask_bits = None, "-1"

    def run_some(self, mask: str) -> None:
        """From here on the lanes of the i32 `mask` run."""
        self.cx.in_region = True
        self._set_mask(mask)

    def narrow(self, mask: str) -> None:
        """From here on only the lanes of `mask` of those that ran."""
        self._set_mask(mask)

    def _set_mask(self, mask: str) -> None:
        self.cx.mask_bits = mask
        self.cx.mask = self.ir.get(f"bitcast i32 {mask} to <{LANES} x i1>")

    def kill(self, mask: str) -> None:
        """The lanes of `mask` have ended."""
        live = self.live()
        rest = self.ir.get(f"xor i32 {mask}, -1")
        self.ir.do(f"store i32 {self.ir.get(f'and i32 {live}, {rest}')}, ptr %live.slot")

    # ------------------------------------------------------------ leaving

    def leave(self, end: End) -> None:
        """Returns to the driver."""
        self.ir.do(f"store i32 {self.live()}, ptr %live_in.at")
        self.ir.do(f"ret i32 {int(end)}")

    def leave_if_none(self, mask: str) -> None:
        """Returns to the driver as done where no lane is in `mask`."""
        ir = self.ir
        none, over, on = ir.get(f"icmp eq i32 {mask}, 0"), ir.label(), ir.label()
        ir.do(f"br i1 {none}, label %{over}, label %{on}")
        ir.place(over)
        self.leave(End.done)
        ir.place(on)

    def end_within(self, end: End) -> None:
        """Ends the warp from within an instruction; what follows is never reached."""
        self.note_fault(self.cx.instruction)
        self.leave(end)
        self.ir.place(self.ir.label())

    def note_fault(self, instruction: Instruction | None) -> None:
        """Tells the driver where this was."""
        site = self.cx.site(instruction)
        for offset, value in (
            (BlockRecord.fault_site.offset, site),
            (BlockRecord.fault_lanes.offset, self.cx.mask_bits),
        ):
            at = self.ir.get(f"getelementptr i8, ptr %block, i64 {offset}")
            self.ir.do(f"store i32 {value}, ptr {at}")
