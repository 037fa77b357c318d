"""Loads that poll an address before an atomic operation on the same address.

Examples: `if (x > *most) atomicMax(most, x)`, and the first load of a loop around atomicCAS (CUDA
C++ Programming Guide, atomic functions). Other threads may write atomically in between, and the
kernel is still correct.
"""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, suspends
from evoengine.emulator.analyse.registers import written
from evoengine.emulator.ptx.syntax import Address, Instruction, Register

_ATOMICS = ("atom", "red")


def find_poll_loads(cfg: ControlFlowGraph) -> frozenset[int]:
    """The `id()`s of the loads that an atomic operation on the same address may follow before any
    barrier.
    """
    addresses = {
        address
        for node in cfg.nodes
        for item in node.instructions
        if item.op in _ATOMICS and (address := _address(item))
    }
    return frozenset(
        id(item)
        for number, node in enumerate(cfg.nodes)
        for place, item in enumerate(node.instructions)
        if item.op == "ld"
        and (address := _address(item)) in addresses
        and _reaches(cfg, number, place + 1, address)
    )


def _address(instruction: Instruction) -> Address | None:
    """The address that a load or an atomic operation names."""
    return next((item for item in instruction.operands if isinstance(item, Address)), None)


def _reaches(cfg: ControlFlowGraph, number: int, place: int, address: Address | None) -> bool:
    seen = set[int]()
    waiting = [(number, place)]
    while waiting:
        number, place = waiting.pop()
        goes_on = True
        for item in cfg.nodes[number].instructions[place:]:
            if item.op in _ATOMICS and _address(item) == address:
                return True
            if (suspends(item) and item.op != "yield") or (
                address is not None
                and isinstance(address.base, Register)
                and address.base.name in written(item)
            ):
                goes_on = False
                break
        if goes_on:
            fresh = [
                after
                for after in cfg.nodes[number].successors
                if after not in seen and after < len(cfg.nodes)
            ]
            seen.update(fresh)
            waiting += [(after, 0) for after in fresh]
    return False
