"""Loops that wait for others: where a warp must let the rest of its block run.

Warps of a block take turns, and keep theirs until a barrier. A warp that spins on a flag which
another warp of its block sets would never see it; so a `yield` is put at the head of every loop
whose end depends on what others write. Loops that merely read volatile memory keep their turn:
leaving and entering a warp costs its registers.
"""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Flow, suspends
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.syntax import Instruction

# PTX ISA 8.2: loads that see what other threads store
HEARS = frozenset(("volatile", "acquire", "relaxed", "mmio"))


def add_yields(flow: Flow) -> bool:
    """Puts a `yield` at the head of loops that wait for other warps; whether any had none yet."""
    changed = False
    for header in flow.loop_headers:
        body = _loop(flow, header)
        instructions = [item for number in body for item in flow.nodes[number].instructions]
        if (
            not instructions
            or any(suspends(item) for item in instructions)
            or not _waits(flow, body, instructions)
        ):
            continue
        flow.nodes[header].instructions.insert(
            0, Instruction("yield", (), (), None, instructions[0].line, "yield")
        )
        changed = True
    return changed


def _loop(flow: Flow, header: int) -> set[int]:
    """The blocks of the loop of `header`: those that reach a jump back to it without passing it."""
    before: dict[int, list[int]] = {}
    for number, node in enumerate(flow.nodes):
        for after in node.successors:
            before.setdefault(after, []).append(number)
    body, stack = {header}, [number for number in before.get(header, ()) if number >= header]
    while stack:
        number = stack.pop()
        if number not in body:
            body.add(number)
            stack += before.get(number, ())
    return body


def _waits(flow: Flow, body: set[int], instructions: list[Instruction]) -> bool:
    """Whether the end of a loop depends on a load that hears of others, or on the result of an
    atomic operation.
    """
    depends = {name for item in instructions if _hears(item) for name in written(item)}
    grown = bool(depends)
    while grown:
        before = len(depends)
        depends.update(
            name for item in instructions if depends & set(read(item)) for name in written(item)
        )
        grown = len(depends) > before
    leaving = [
        item
        for number in body
        for item in flow.nodes[number].instructions
        if item.guard and _leaves(flow, number, body, item)
    ]
    return any(item.guard and item.guard.register.name in depends for item in leaving)


def _hears(instruction: Instruction) -> bool:
    return instruction.op == "atom" or (
        instruction.op == "ld" and bool(HEARS & set(instruction.modifiers))
    )


def _leaves(flow: Flow, number: int, body: set[int], instruction: Instruction) -> bool:
    """Whether a guarded instruction may end the loop."""
    if instruction.op == "bra":
        return any(after not in body for after in flow.nodes[number].successors)
    return instruction.op in ("exit", "ret")
