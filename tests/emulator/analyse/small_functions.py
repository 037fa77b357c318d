"""Functions of a few PTX instructions, analysed but not run."""

from __future__ import annotations

from evoengine.emulator.analyse.cfg_builder import flow_of
from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.analyse.uniformity import Shapes, shapes_of
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.ptx.syntax import Function

REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %d<9>; .shared .b8 tile[64];"


def function(body: str) -> Function:
    """A kernel of one pointer parameter with `body`; registers %p0-8, %r0-19, %d0-8."""
    return parse(
        f".version 8.3\n.target sm_89\n.entry k(.param .u64 a) {{ {REGISTERS}\n{body}\n}}"
    ).functions["k"]


def flow(body: str) -> Flow:
    """Its control flow."""
    return flow_of(function(body))


def shapes(body: str, block: tuple[int, int, int] = (128, 1, 1)) -> Shapes:
    """The shapes of its registers."""
    kernel = function(body)
    return shapes_of(kernel, flow_of(kernel), block)


def number(found: Flow, label: str) -> int:
    """The number of the block that begins at `label`."""
    return next(
        place
        for place, node in enumerate(found.nodes)
        if node.label.split(".")[0].lstrip("$") == label
    )
