"""How often clang has unrolled a loop already."""

from __future__ import annotations

import pytest

from evoengine.emulator.ptx.syntax import Guard, Instruction, Integer, Operand, Register
from evoengine.emulator.timing_model.loop_counters import unrolled_by


def _do(op: str, modifier: str, *operands: Operand, guard: Guard | None = None) -> Instruction:
    return Instruction(op, (modifier,), operands, guard, 0, op)


@pytest.mark.parametrize(("step", "rounds"), [(1, 1), (-2, 2), (4, 4), (-8, 8), (256, 1)])
def test_a_counter_that_grows_by_two_counts_two_rounds(step: int, rounds: int) -> None:
    counter, end, sums = Register("%i"), Register("%p"), Register("%s")
    body = [
        _do("add", "s32", sums, sums, Integer(8)),
        _do("add", "s32", counter, counter, Integer(step)),
        _do("setp", "eq", end, counter, Integer(0)),
        _do("bra", "uni", guard=Guard(end, False)),
    ]
    assert unrolled_by(body) == rounds
