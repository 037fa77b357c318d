"""Where the lanes of a warp may have diverged, for the model of time."""

from __future__ import annotations

import pytest

from evoengine.emulator.timing_model.diverging_code import diverging_code
from tests.emulator.analyse.small_functions import cfg, number

# A branch around `skipped`; `end` is where its lanes meet again.
BRANCH = "{before} setp.lt.u32 %p1, {register}, 5; @%p1 bra end; skipped: {inside} end: ret;"


def parted(before: str, register: str, inside: str = "add.u32 %r9, %r9, 1;") -> set[str]:
    """The labels of the blocks that may run without all lanes of a warp."""
    body = BRANCH.format(before=before, register=register, inside=inside)
    found = cfg(body)
    names = {number(found, label): label for label in ("skipped", "end")}
    return {names.get(block, "before") for block in diverging_code(found)}


@pytest.mark.parametrize(
    "before",
    [
        "mov.u32 %r1, %tid.x;",
        "mov.u32 %r1, %tid.y;",  # one value a warp in many blocks, but a compiler knows no size
        "mov.u32 %r1, %tid.z;",
        "mov.u32 %r1, %laneid;",
        "ld.global.u32 %r1, [%d0];",
        "ld.shared.u32 %r1, [tile];",
        "ld.u32 %r1, [%d0];",
        "ld.local.u32 %r1, [%d0];",
        "atom.global.add.u32 %r1, [%d0], 1;",
        "shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;",
    ],
)
def test_lanes_may_part_where_a_value_differs_between_them(before: str) -> None:
    assert parted(before, "%r1") == {"skipped"}


@pytest.mark.parametrize(
    "before",
    [
        "mov.u32 %r1, 7;",
        "mov.u32 %r1, %ctaid.x;",
        "mov.u32 %r1, %ntid.x;",
        "ld.param.u32 %r1, [a];",
        "ld.const.u32 %r1, [%d0];",
        "mov.u32 %r5, %tid.x; mov.u32 %r1, %ctaid.x;",  # differs, but decides nothing
    ],
)
def test_lanes_stay_together_where_a_value_is_one_for_the_block(before: str) -> None:
    assert parted(before, "%r1") == set()


def test_a_value_differs_that_is_computed_from_one_that_does() -> None:
    chain = "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; add.u32 %r3, %r2, %r4;"
    assert parted(chain, "%r3") == {"skipped"}
    assert parted(chain, "%r4") == set()


def test_a_value_differs_that_a_later_round_of_a_loop_makes_differ() -> None:
    found = cfg(
        "mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, %tid.x;"
        " loop: setp.lt.u32 %p1, %r1, 5; @%p1 bra end;"
        " inside: mov.u32 %r1, %r2; mov.u32 %r2, %r3; bra loop;"
        " end: ret;"
    )
    loop, inside, end = (number(found, label) for label in ("loop", "inside", "end"))
    assert diverging_code(found) == {loop, inside}  # who leaves waits at the end
    assert end not in diverging_code(found)


def test_a_branch_within_parted_code_adds_what_it_parts_and_nothing_behind() -> None:
    found = cfg(
        "mov.u32 %r1, %laneid; setp.lt.u32 %p1, %r1, 5; @%p1 bra end;"
        " outer: mov.u32 %r3, %ctaid.x; setp.lt.u32 %p2, %r3, 5; @%p2 bra middle;"
        " inner: add.u32 %r9, %r9, 1;"
        " middle: add.u32 %r9, %r9, 2;"
        " end: ret;"
    )
    labels = ("outer", "inner", "middle")
    assert diverging_code(found) == {number(found, label) for label in labels}


def test_both_sides_of_a_branch_are_parted_and_the_code_behind_it_is_not() -> None:
    found = cfg(
        "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 5; @%p1 bra other;"
        " one: add.u32 %r9, %r9, 1; bra end;"
        " other: add.u32 %r9, %r9, 2;"
        " end: add.u32 %r9, %r9, 3; ret;"
    )
    assert diverging_code(found) == {number(found, label) for label in ("one", "other")}


def test_lanes_that_meet_no_barrier_together_stay_parted_to_the_exit() -> None:
    found = parted("mov.u32 %r1, %tid.x;", "%r1", inside="bar.sync 0;")
    assert found >= {"skipped", "end"}


def test_code_without_branches_is_never_parted() -> None:
    assert diverging_code(cfg("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 1; ret;")) == frozenset()
