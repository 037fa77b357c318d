"""PTX instructions that ptxas makes one machine instruction of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evoengine.emulator.timing_model.fused import fused
from evoengine.emulator.timing_model.instruction_mix import instruction_mix
from tests.emulator.analyse.small_functions import cfg


def pipes(code: str) -> Mapping[str, float]:
    """The machine instructions of some code by pipe."""
    found = cfg(f"{code} ret;")
    instead = fused(found)
    items = [instead.get(id(item), item) for node in found.nodes for item in node.instructions]
    mix = instruction_mix(items).instructions
    return {pipe: count for pipe, count in mix.items() if pipe != "control"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # three numbers are added at once, four are not
        ("add.s32 %r2, %r1, %r0; add.s32 %r3, %r2, %r5;", {"alu": 1}),
        (
            "add.s32 %r2, %r1, %r0; sub.s32 %r3, %r2, %r5; add.s32 %r4, %r3, %r6;",
            {"alu": 1, "either": 1},
        ),
        ("shl.b32 %r2, %r1, 3; add.s32 %r3, %r2, %r5;", {"alu": 1}),
        (
            "shl.b32 %r2, %r1, %r0; add.s32 %r3, %r2, %r5;",
            {"alu": 1, "either": 1},
        ),  # not by a constant
        ("add.s32 %r2, %r1, %r0; add.s32 %r3, %r2, %r5; add.s32 %r4, %r2, 1;", {"either": 3}),
        # any function of three words
        ("and.b32 %r2, %r1, %r0; xor.b32 %r3, %r2, %r5;", {"alu": 1}),
        ("not.b32 %r2, %r1; or.b32 %r3, %r2, %r5;", {"alu": 1}),
        ("and.b32 %r2, %r1, %r0; add.s32 %r3, %r2, %r5;", {"alu": 1, "either": 1}),
        # the address of an element, also of two lists
        ("mul.wide.s32 %d2, %r1, 4; add.s64 %d3, %d0, %d2;", {"imad": 2}),
        (
            "mul.wide.s32 %d2, %r1, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;",
            {"imad": 4},
        ),
        (
            "mul.wide.s32 %d2, %r1, 4; add.s64 %d3, %d0, %d2; sub.s64 %d4, 5, %d3;",
            {"imad": 2, "alu": 1, "either": 1},
        ),
        ("shl.b64 %d2, %d1, 2; add.s64 %d3, %d0, %d2;", {"alu": 1, "either": 1}),
        # a selection of what the register holds already is a move
        ("selp.b32 %r2, %r1, %r2, %p1;", {"either": 1}),
        ("selp.b32 %r2, %r1, %r3, %p1;", {"alu": 1}),
        # a rest follows from the quotient of the same numbers
        (
            "rem.s32 %r3, %r1, %r0; div.s32 %r2, %r1, %r0;",
            {"fma": 5, "alu": 8, "mufu": 3, "imad": 1},
        ),
        ("rem.s32 %r3, %r1, %r2;", {"fma": 5, "alu": 8, "mufu": 3}),
        # comparisons combine with a predicate
        (
            "setp.lt.s32 %p1, %r1, 5; setp.gt.s32 %p2, %r2, 5; and.pred %p3, %p1, %p2;"
            "not.pred %p4, %p3;",
            {"alu": 2},
        ),
    ],
)
def test_what_one_machine_instruction_does_counts_once(
    code: str, expected: Mapping[str, float]
) -> None:
    assert pipes(code) == expected


def test_what_another_block_has_computed_is_part_of_nothing() -> None:
    apart = "add.s32 %r2, %r1, %r0; @%p1 bra end; end: add.s32 %r3, %r2, %r5;"
    assert pipes(apart) == {"either": 2}


def test_a_part_under_a_condition_stays_an_instruction() -> None:
    assert pipes("@%p1 add.s32 %r2, %r1, %r0; add.s32 %r3, %r2, %r5;") == {"either": 2}
