"""Waiting for other blocks, which no count of instructions measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.spin_loops import SEES_OTHER_THREADS, natural_loop
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.timing_model.loop_entries import entries

_STORES = frozenset(("st", "red", "cp"))


def without_waiting(cfg: ControlFlowGraph, times: Sequence[float]) -> list[float]:
    """`times`, executions of each basic block by warps, with one round of each loop that only waits
    for what other threads write.

    How often such a loop goes round depends on the order in which the emulator runs blocks, one
    after the other; on a GPU they run at the same time.
    """
    found = list(times)
    for header, body in _waiting_loops(cfg):
        entered = entries(cfg, header, body, times)
        for number in body:
            found[number] = min(found[number], entered)
    return found


def waits(cfg: ControlFlowGraph) -> bool:
    """Whether a kernel has such a loop."""
    return any(True for _ in _waiting_loops(cfg))


def _waiting_loops(cfg: ControlFlowGraph) -> Iterator[tuple[int, set[int]]]:
    """The header and the blocks of each loop that only waits."""
    for header in cfg.loop_headers:
        if any(item.op == "yield" for item in cfg.nodes[header].instructions):
            body = natural_loop(cfg, header)
            items = (item for number in body for item in cfg.nodes[number].instructions)
            if all(_only_waits(item) for item in items):
                yield header, body


def _only_waits(item: Instruction) -> bool:
    """Whether an instruction does no work of its own: it stores nothing, and loads at most what
    other threads write.
    """
    if item.op == "ld":
        return "param" in item.modifiers or bool(SEES_OTHER_THREADS.intersection(item.modifiers))
    return item.op not in _STORES
