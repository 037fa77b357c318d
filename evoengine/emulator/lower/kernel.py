"""One kernel as one LLVM function that runs one warp.

Where all lanes go the same way, blocks of the flow become blocks of LLVM with plain branches; in a
region of divergence they are run by a dispatcher (pending.py) under masks. At a barrier the
function returns, and goes on when it is called again (suspension.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.analyse.cfg_builder import flow_of
from evoengine.emulator.analyse.control_flow_graph import Flow, Node
from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.analyse.uniformity import shapes_of
from evoengine.emulator.lower import function_entry
from evoengine.emulator.lower.basic_block import BasicBlock
from evoengine.emulator.lower.context import Site
from evoengine.emulator.lower.divergence import Divergence
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.extended_precision import explicit_carries
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.suspension import Suspensions
from evoengine.emulator.ptx.syntax import Function, Guard
from evoengine.emulator.run.abi import End

FUNCTION = "warp"
# Touches every page of its frame in order, so that one that is larger than what is left of the
# stack ends in the guard page.
PROBED = '"probe-stack"="inline-asm"'
RARELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'  # !prof !0 on a branch: its first way


@dataclass(frozen=True)
class Lowered:
    """The LLVM IR of a kernel and what running it needs."""

    ir: str
    flow: Flow
    warp_bytes: int
    layout: Layout
    sites: list[Site]


def lower(
    function: Function,
    layout: Layout,
    block: tuple[int, int, int],
    *,
    checked: bool,
    vector_memory: bool,
) -> Lowered:
    """Lowers `function`, whose calls are inlined, for thread blocks of `block`; raises
    Unsupported.
    """
    function = explicit_carries(function)
    flow = flow_of(function)
    shapes = shapes_of(function, flow, block)
    return _Kernel(
        LoweredBody(
            function, flow, shapes, layout, block, checked=checked, vector_memory=vector_memory
        )
    ).lowered()


class _Kernel:
    def __init__(self, body: LoweredBody) -> None:
        self.body = body
        self.cx, self.ir, self.flow, self.shapes = body.cx, body.ir, body.flow, body.shapes
        self.pending = Divergence(body)
        self.suspensions = Suspensions(body, self.pending)
        self.straight = BasicBlock(body)

    def lowered(self) -> Lowered:
        """The whole function. Its entry is made last, because it branches to every place where the
        warp may go on.
        """
        for number, node in enumerate(self.flow.nodes):
            region = self.shapes.region_of.get(number)
            if region is None:
                self._lower_for_all(number, node)
            else:
                self._lower_for_some(number, node, region)
        for index in range(len(self.shapes.regions)):
            self._lower_dispatcher(index)
        rest, self.ir.lines = self.ir.lines, []
        self._lower_entry()
        text = "\n".join(
            [
                f"define i32 @{FUNCTION}(ptr noalias %warp, ptr noalias %block) {PROBED} {{",
                *self.ir.lines,
                *rest,
                "}",
            ]
        )
        declarations = "\n".join(self.ir.declarations.values())
        return Lowered(
            f"{declarations}\n{text}\n{RARELY}\n",
            self.flow,
            self.suspensions.warp_bytes,
            self.cx.layout,
            self.cx.sites,
        )

    def _lower_entry(self) -> None:
        self.ir.place("entry")
        function_entry.declare_registers(self.body)
        for index in range(len(self.shapes.regions)):
            self.pending.declare(index)
            self.suspensions.declare(index)
        function_entry.load_fields(self.body)
        function_entry.number_threads(self.body)
        function_entry.load_resume(self.body)
        self.suspensions.resume()

    def _lower_dispatcher(self, index: int) -> None:
        """Runs a region's blocks until no lane can go on; then all that live are at the join."""
        self.pending.dispatch(index)
        self.suspensions.wait_if_parked(index)
        join = self.shapes.regions[index].join
        if join == self.flow.exit:
            self.body.leave(End.done)
            return
        if join in self.body.in_part:
            self.body.leave_if_none(self.body.live())
        self.pending.enter(join)

    # ------------------------------------------------------------ where all lanes run

    def _lower_for_all(self, number: int, node: Node) -> None:
        self.ir.place(f"block{number}")
        self.body.run_all(number)
        self.straight.run(number, node, None)
        last = node.last
        if last is not None and node.waits:
            self.suspensions.wait(number, last)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
        elif last is not None and last.op == "bra" and last.guard:
            self._branch(number, node, last.guard)
        elif node.successors:
            self.pending.enter(node.successors[0])
        else:
            self.body.leave(End.done)

    def _branch(self, number: int, node: Node, guard: Guard) -> None:
        condition = self.cx.guard(guard)
        if node.taken is None or node.falls is None or node.taken == node.falls:
            self.pending.enter(node.successors[0])
        elif condition.shape is UNIFORM:
            ways = [
                (self.ir.label() if way in self.shapes.region_of else f"block{way}", way)
                for way in (node.taken, node.falls)
            ]
            self.ir.do(f"br i1 {condition.text}, label %{ways[0][0]}, label %{ways[1][0]}")
            for label, way in ways:
                if way in self.shapes.region_of:
                    self.ir.place(label)
                    self.pending.enter(way)
        else:  # lanes part here
            region = self.shapes.region_of[
                node.falls if node.taken == self.flow.post_dominator[number] else node.taken
            ]
            taken = self.ir.get(f"bitcast <{LANES} x i1> {self.cx.spread(condition)} to i32")
            self.pending.split(region, node.taken, node.falls, taken, self.body.live())
            self.ir.do(f"br label %dispatch{region}")

    # ------------------------------------------------------------ where some lanes run

    def _lower_for_some(self, number: int, node: Node, region: int) -> None:
        self.ir.place(f"block{number}")
        self.body.run_some(self.pending.take(region, number))
        self.straight.run(number, node, region)
        last, mask = node.last, self.cx.mask_bits
        if last is not None and node.waits:
            self.suspensions.park(number, last)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
            return
        elif (
            last is not None
            and last.op == "bra"
            and last.guard
            and node.taken is not None
            and node.falls is not None
        ):
            self.pending.split(region, node.taken, node.falls, self.cx.guard_bits(last.guard), mask)
        elif not node.successors:
            self.body.kill(mask)
        elif self.shapes.region_of.get(node.successors[0]) == region:
            self.pending.add(region, node.successors[0], mask)
        self.ir.do(f"br label %dispatch{region}")
