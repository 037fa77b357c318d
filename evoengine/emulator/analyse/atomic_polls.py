"""Loads that only look whether an atomic operation on the same place is worth it, or with what.

`if (x > *most) atomicMax(most, x)`, or the first load of a loop around atomicCAS (CUDA C++
Programming Guide, atomic functions): others may write in between, atomically, and the kernel is
right all the same.
"""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Flow, suspends
from evoengine.emulator.analyse.registers import written
from evoengine.emulator.ptx.syntax import Address, Instruction, Register

_ATOMICS = ("atom", "red")


def looking_loads(flow: Flow) -> frozenset[int]:
    """The ids of the loads behind which an atomic operation on the same address may follow before
    any barrier.
    """
    aims = {
        aim
        for node in flow.nodes
        for item in node.instructions
        if item.op in _ATOMICS and (aim := _aim(item))
    }
    return frozenset(
        id(item)
        for number, node in enumerate(flow.nodes)
        for place, item in enumerate(node.instructions)
        if item.op == "ld"
        and (aim := _aim(item)) in aims
        and _reaches(flow, number, place + 1, aim)
    )


def _aim(instruction: Instruction) -> Address | None:
    """The address that a load or an atomic operation names."""
    return next((item for item in instruction.operands if isinstance(item, Address)), None)


def _reaches(flow: Flow, number: int, place: int, aim: Address | None) -> bool:
    seen = set[int]()
    waiting = [(number, place)]
    while waiting:
        number, place = waiting.pop()
        goes_on = True
        for item in flow.nodes[number].instructions[place:]:
            if item.op in _ATOMICS and _aim(item) == aim:
                return True
            if (suspends(item) and item.op != "yield") or (
                aim is not None
                and isinstance(aim.base, Register)
                and aim.base.name in written(item)
            ):
                goes_on = False
                break
        if goes_on:
            fresh = [
                after
                for after in flow.nodes[number].successors
                if after not in seen and after < len(flow.nodes)
            ]
            seen.update(fresh)
            waiting += [(after, 0) for after in fresh]
    return False
