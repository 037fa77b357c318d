"""The loops of a kernel's machine code: which instructions lie in one.

A loop is what an edge back to a dominating block closes. Every branch of 20,000 in kernels for
sm_75 to sm_120 decodes to the label that nvdisasm prints for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.emulator.analyse.dominance import (
    dominators,
    loop_body,
    post_order,
    reversed_edges,
)
from evoengine.evaluate.compile import opcodes

Word = tuple[int, int]  # the lower and the upper 64 bits of an instruction
_ALWAYS = 7  # the predicate PT
_PLAIN = 4  # operands of a branch that depends on its predicate alone
_PLAIN_SOURCE = 0x380_0000  # the second predicate that some branches have: PT


def in_loops(words: Sequence[Word], compute: int) -> frozenset[int] | None:
    """The numbers of the instructions that lie in a loop; None where a branch takes its target from
    a register, so that loops are not known.
    """
    if any(low & 0x1FF in (opcodes.BRX, opcodes.JMX) for low, _ in words):
        return None
    return frozenset().union(*_natural_loops(_successors(words, compute)).values())


def _successors(words: Sequence[Word], compute: int) -> list[list[int]]:
    """The instructions that can follow each one that can be reached.

    BSYNC continues where the last BSSY of its barrier register said that threads meet.
    """
    result: list[list[int]] = [[] for _ in words]
    seen, waiting = set[int](), [(0, dict[int, int]())]
    while waiting:
        number, meetings = waiting.pop()
        if number in seen or not 0 <= number < len(words):
            continue
        seen.add(number)
        low, high = words[number]
        opcode, barrier = low & 0x1FF, low >> 16 & 15
        if opcode == opcodes.BSSY:
            meetings = meetings | {barrier: number + 1 + _offset(low) // 4}
        after = []
        if opcode == opcodes.BRA:
            after.append(number + 1 + _branch_offset(low, compute) // 4)
        elif opcode == opcodes.BSYNC:
            after.append(meetings.get(barrier, number + 1))
        ends = opcode in (opcodes.BRA, opcodes.EXIT, opcodes.RET) and _is_plain(low, high)
        if not (ends or (opcode == opcodes.BSYNC and low >> 12 & 15 == _ALWAYS)):
            after.append(number + 1)
        result[number] = [item for item in after if 0 <= item < len(words)]
        waiting += [(item, meetings) for item in result[number]]
    return result


def _is_plain(low: int, high: int) -> bool:
    """Whether a branch, an exit or a return is taken always."""
    return (
        low >> 12 & 15 == _ALWAYS and low >> 9 & 7 == _PLAIN and high & 0xFFC_0000 == _PLAIN_SOURCE
    )


def _offset(low: int) -> int:
    """From the next instruction on, in units of 4 bytes."""
    value = low >> 34
    return value - (1 << 30) if value >> 29 else value


def _branch_offset(low: int, compute: int) -> int:
    return _offset(low) if compute < 90 else _offset(low) << 8 | low >> 16 & 0xFF


def _natural_loops(after: list[list[int]]) -> dict[int, set[int]]:
    """The instructions of each loop by its first one."""
    if not after:
        return {}
    before, order = reversed_edges(after, len(after)), post_order(after, 0)
    found = dominators(order, before)
    rank = {number: place for place, number in enumerate(order)}
    bodies: dict[int, set[int]] = {}
    for number in order:
        for header in after[number]:
            if _dominates(found, rank, header, number):
                bodies.setdefault(header, {header}).update(loop_body(before, header, (number,)))
    return bodies


def _dominates(found: dict[int, int], rank: dict[int, int], upper: int, lower: int) -> bool:
    while rank[lower] < rank[upper]:
        lower = found[lower]
    return lower == upper
