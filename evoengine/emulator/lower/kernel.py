"""Lowers a kernel to one LLVM function that runs one warp.

Outside of regions of divergence, basic blocks become LLVM blocks with plain branches; in a region a
dispatcher (divergence.py) runs them under masks. At a barrier the function returns, and resumes
when it is called again (suspension.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evoengine.emulator.analyse.cfg_builder import build_cfg
from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, Node
from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.analyse.uniformity import analyse_uniformity
from evoengine.emulator.lower import function_entry
from evoengine.emulator.lower.basic_block import BlockLowering
from evoengine.emulator.lower.context import InstructionSite
from evoengine.emulator.lower.divergence import Divergence
from evoengine.emulator.lower.emitter import LANES
from evoengine.emulator.lower.extended_precision import explicit_carries
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.suspension import Suspensions
from evoengine.emulator.ptx.syntax import Function, Guard
from evoengine.emulator.run.abi import StopReason

FUNCTION = "warp"
# Touches every page of the stack frame in order, so that a frame that does not fit the stack hits
# the guard page.
PROBED = '"probe-stack"="inline-asm"'
# `!prof !0` on a branch: the first target is rare
RARELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'


@dataclass(frozen=True)
class LoweredKernel:
    """The LLVM IR of a kernel, and what is needed to run it."""

    ir: str
    cfg: ControlFlowGraph
    warp_bytes: int
    layout: Layout
    sites: list[InstructionSite]
    site_numbers: Mapping[int, int]  # `id()` of an instruction of `cfg` -> its index in `sites`

    @cached_property
    def lines(self) -> tuple[frozenset[int], ...]:
        """The source lines of each basic block of `cfg`."""
        return tuple(
            frozenset(item.line for item in node.instructions if item.line)
            for node in self.cfg.nodes
        )


def lower(
    function: Function,
    layout: Layout,
    block: tuple[int, int, int],
    *,
    checked: bool,
    vector_memory: bool,
) -> LoweredKernel:
    """Lowers `function`, whose calls are inlined, for thread blocks of `block` = (x, y, z) threads;
    raises Unsupported.
    """
    function = explicit_carries(function)
    cfg = build_cfg(function)
    uniformity = analyse_uniformity(function, cfg, block)
    return _KernelLowering(
        LoweredBody(
            function, cfg, uniformity, layout, block, checked=checked, vector_memory=vector_memory
        )
    ).lowered()


class _KernelLowering:
    def __init__(self, body: LoweredBody) -> None:
        self.body = body
        self.cx, self.ir, self.cfg, self.uniformity = body.cx, body.ir, body.cfg, body.uniformity
        self.divergence = Divergence(body)
        self.suspensions = Suspensions(body, self.divergence)
        self.block_lowering = BlockLowering(body)

    def lowered(self) -> LoweredKernel:
        """The whole function. Its entry is emitted last, because it branches to every resume
        point.
        """
        for number, node in enumerate(self.cfg.nodes):
            region = self.uniformity.region_of.get(number)
            if region is None:
                self._lower_convergent_block(number, node)
            else:
                self._lower_divergent_block(number, node, region)
        for index in range(len(self.uniformity.regions)):
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
        return LoweredKernel(
            f"{declarations}\n{text}\n{RARELY}\n",
            self.cfg,
            self.suspensions.warp_bytes,
            self.cx.layout,
            self.cx.sites,
            self.cx.site_numbers,
        )

    def _lower_entry(self) -> None:
        self.ir.place("entry")
        function_entry.declare_registers(self.body)
        for index in range(len(self.uniformity.regions)):
            self.divergence.declare(index)
            self.suspensions.declare(index)
        function_entry.load_fields(self.body)
        function_entry.number_threads(self.body)
        function_entry.load_resume(self.body)
        self.suspensions.resume()

    def _lower_dispatcher(self, index: int) -> None:
        """Emits the dispatcher: runs a region's blocks until no lane can go on; then all live lanes
        are at the join.
        """
        self.divergence.dispatch(index)
        self.suspensions.wait_if_parked(index)
        join = self.uniformity.regions[index].join
        if join == self.cfg.exit:
            self.body.leave(StopReason.done)
            return
        if join in self.body.partial_blocks:
            self.body.leave_if_none(self.body.live())
        self.divergence.enter(join)

    # ------------------------------------------------------------ where all lanes run

    def _lower_convergent_block(self, number: int, node: Node) -> None:
        self.ir.place(f"block{number}")
        self.body.activate_all(number)
        self.block_lowering.run(number, node, None)
        last = node.last
        if last is not None and node.suspension:
            self.suspensions.wait(number, last)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
        elif last is not None and last.op == "bra" and last.guard:
            self._branch(number, node, last.guard)
        elif node.successors:
            self.divergence.enter(node.successors[0])
        else:
            self.body.leave(StopReason.done)

    def _branch(self, number: int, node: Node, guard: Guard) -> None:
        condition = self.cx.guard(guard)
        if node.taken is None or node.fallthrough is None or node.taken == node.fallthrough:
            self.divergence.enter(node.successors[0])
        elif condition.variance is UNIFORM:
            targets = [
                (
                    self.ir.label() if target in self.uniformity.region_of else f"block{target}",
                    target,
                )
                for target in (node.taken, node.fallthrough)
            ]
            self.ir.do(f"br i1 {condition.text}, label %{targets[0][0]}, label %{targets[1][0]}")
            for label, target in targets:
                if target in self.uniformity.region_of:
                    self.ir.place(label)
                    self.divergence.enter(target)
        else:  # a divergent branch
            region = self.uniformity.region_of[
                node.fallthrough if node.taken == self.cfg.post_dominator[number] else node.taken
            ]
            taken = self.ir.get(f"bitcast <{LANES} x i1> {self.cx.as_vector(condition)} to i32")
            self.divergence.split(region, node.taken, node.fallthrough, taken, self.body.live())
            self.ir.do(f"br label %dispatch{region}")

    # ------------------------------------------------------------ where some lanes run

    def _lower_divergent_block(self, number: int, node: Node, region: int) -> None:
        self.ir.place(f"block{number}")
        self.body.activate(self.divergence.take(region, number))
        self.suspensions.meet(number, region)
        self.block_lowering.run(number, node, region)
        last, mask = node.last, self.cx.mask_bits
        if last is not None and node.suspension:
            self.suspensions.park(number, last)
        elif last is not None and last.op == "trap" and not last.guard:
            self.ir.do("unreachable")
            return
        elif (
            last is not None
            and last.op == "bra"
            and last.guard
            and node.taken is not None
            and node.fallthrough is not None
        ):
            self.divergence.split(
                region, node.taken, node.fallthrough, self.cx.guard_bits(last.guard), mask
            )
        elif not node.successors:
            self.body.mark_exited(mask)
        elif self.uniformity.region_of.get(node.successors[0]) == region:
            self.divergence.add(region, node.successors[0], mask)
        self.ir.do(f"br label %dispatch{region}")
