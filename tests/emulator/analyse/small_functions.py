"""Small PTX functions for tests of the analysis."""

from __future__ import annotations

from evoengine.emulator.analyse.cfg_builder import build_cfg
from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.uniformity import UniformityInfo, analyse_uniformity
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.syntax import Function

REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .shared .b8 tile[64];"


def function(body: str) -> Function:
    """A kernel of one pointer parameter with `body`; registers %p0-8, %r0-19, %d0-8."""
    return parse(
        f".version 8.3\n.target sm_89\n.entry k(.param .u64 a) {{ {REGISTERS}\n{body}\n}}"
    ).functions["k"]


def cfg(body: str) -> ControlFlowGraph:
    """The control flow graph of `body`."""
    return build_cfg(function(body))


def uniformity(body: str, block: tuple[int, int, int] = (128, 1, 1)) -> UniformityInfo:
    """The uniformity of the registers of `body`."""
    kernel = function(body)
    return analyse_uniformity(kernel, build_cfg(kernel), block)


def number(found: ControlFlowGraph, label: str) -> int:
    """The number of the block that begins at `label`."""
    return next(
        place
        for place, node in enumerate(found.nodes)
        if node.label.split(".")[0].lstrip("$") == label
    )
