"""Uniform, affine and varying registers, and regions of divergence."""

from __future__ import annotations

import pytest

from evoengine.emulator.analyse.lane_variance import (
    UNIFORM,
    VARYING,
    Affine,
    Variance,
    meet,
    thread_index_variance,
)
from tests.emulator.analyse.small_functions import cfg, number, uniformity

T = "mov.u32 %r1, %tid.x; "


def variance(
    body: str, register: str = "%r2", block: tuple[int, int, int] = (128, 1, 1)
) -> Variance:
    return uniformity(T + body + " ret;", block).variance_of[register]


@pytest.mark.parametrize(
    ("name", "block", "expected"),
    [
        ("%tid.x", (64, 1, 1), Affine(1, aligned=True, is_thread_x=True)),
        ("%tid.x", (64, 4, 1), Affine(1, aligned=True, is_thread_x=True)),
        ("%tid.x", (7, 1, 1), Affine(1, aligned=True, is_thread_x=True)),
        ("%tid.x", (16, 2, 1), VARYING),
        ("%tid.y", (32, 8, 1), UNIFORM),
        ("%tid.y", (16, 8, 1), VARYING),
        ("%tid.y", (48, 1, 2), UNIFORM),
        ("%tid.z", (16, 2, 4), UNIFORM),
        ("%tid.z", (16, 1, 4), VARYING),
    ],
)
def test_the_variance_of_a_thread_index_follows_from_the_block(
    name: str, block: tuple[int, int, int], expected: Variance
) -> None:
    assert thread_index_variance(name, block) == expected


def test_thread_index_variances_match_enumeration() -> None:
    for block in [
        (x, y, z)
        for x in (1, 8, 16, 32, 33, 64, 96)
        for y in (1, 2, 4)
        for z in (1, 2, 3)
        if x * y * z <= 1024
    ]:
        lanes = [
            (t % block[0], t // block[0] % block[1], t // (block[0] * block[1]))
            for t in range(block[0] * block[1] * block[2])
        ]
        warps = [lanes[start : start + 32] for start in range(0, len(lanes), 32)]
        for axis, name in enumerate(("%tid.x", "%tid.y", "%tid.z")):
            found = thread_index_variance(name, block)
            if found is UNIFORM:
                assert all(len({lane[axis] for lane in warp}) == 1 for warp in warps), (block, name)
            elif isinstance(found, Affine):
                assert all(
                    lane[axis] == warp[0][axis] + place
                    for warp in warps
                    for place, lane in enumerate(warp)
                ), (block, name)
                assert all(warp[0][axis] % 32 == 0 for warp in warps)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add.u32 %r2, %r1, 5;", Affine(1)),
        ("shl.b32 %r2, %r1, 2;", Affine(4, aligned=True)),
        ("mul.lo.u32 %r2, %r1, 12;", Affine(12, aligned=True)),
        ("mad.lo.u32 %r2, %r1, 4, %r9;", Affine(4)),
        ("sub.u32 %r2, %r9, %r1;", Affine(-1)),
        ("sub.u32 %r2, %r1, %r1;", VARYING),
        ("shr.u32 %r2, %r1, 5;", UNIFORM),
        ("shr.u32 %r2, %r1, 4;", VARYING),
        ("and.b32 %r2, %r1, 31;", Affine(1, aligned=True)),
        ("and.b32 %r2, %r1, -32;", UNIFORM),
        ("and.b32 %r2, %r1, 7;", VARYING),
        ("shl.b32 %r3, %r1, 2; or.b32 %r2, %r3, 1;", Affine(4)),
        ("shl.b32 %r3, %r1, 2; or.b32 %r2, %r3, 5;", VARYING),
        ("mul.lo.u32 %r2, %r1, %r1;", VARYING),
        ("xor.b32 %r2, %r1, 1;", VARYING),
        ("mov.u32 %r2, %ctaid.x;", UNIFORM),
        ("mov.u32 %r2, %laneid;", Affine(1, aligned=True)),
        ("ld.global.u32 %r2, [%d1];", UNIFORM),
        ("ld.local.u32 %r2, [%d1];", VARYING),
        ("shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;", UNIFORM),
        ("shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;", VARYING),
        ("shfl.sync.idx.b32 %r2, %r1, 0, 7199, -1;", VARYING),
        ("vote.sync.ballot.b32 %r2, %p1, -1;", UNIFORM),
        ("redux.sync.add.s32 %r2, %r1, -1;", UNIFORM),
        ("atom.global.add.u32 %r2, [%d1], 1;", VARYING),
        ("activemask.b32 %r2;", UNIFORM),
    ],
)
def test_the_variance_of_a_result(body: str, expected: Variance) -> None:
    assert variance(body) == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("lt.u32 %p1, %r1, 64", UNIFORM),
        ("lt.u32 %p1, %r1, 60", VARYING),
        ("gt.s32 %p1, %r1, 63", UNIFORM),
        ("eq.u32 %p1, %r1, 0", VARYING),
    ],
)
def test_comparing_the_thread_index_with_a_multiple_of_32_is_uniform(
    test: str, expected: Variance
) -> None:
    assert variance(f"setp.{test};", "%p1") is expected


def test_meet_is_the_best_variance_that_holds_for_both() -> None:
    assert meet(Affine(4, aligned=True), Affine(4)) == Affine(4)
    assert (
        meet(Affine(4), Affine(8)) is VARYING
        and meet(Affine(4), UNIFORM) is VARYING
        and meet(UNIFORM, UNIFORM) is UNIFORM
    )


def test_a_pointer_that_runs_through_an_array_stays_affine() -> None:
    body = (
        "mul.wide.u32 %d1, %r1, 4; L: add.s64 %d1, %d1, 512; add.u32 %r3, %r3, 1; setp.lt.u32 %p1,"
        " %r3, 9; @%p1 bra L;"
    )
    assert variance(body, "%d1") == Affine(4) and variance(body, "%r3") is UNIFORM


def test_results_of_unwritten_registers_still_have_a_variance() -> None:
    assert variance("mov.b64 %d1, {%r1, %r9};", "%d1") is VARYING
    assert (
        variance(
            "xor.b32 %r5, %r1, 1; L: add.u32 %r2, %r2, %r5; setp.lt.u32 %p1, %r9, 9; @%p1 bra L;"
        )
        is VARYING
    )


def test_a_register_written_in_divergent_code_varies_unless_it_is_local_to_the_block() -> None:
    body = (
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra J; mov.u32 %r2, 1; add.u32 %r3, %r9, 1; add.u32 %r2,"
        " %r2, %r3; J: st.global.u32 [%d1], %r2;"
    )
    assert variance(body) is VARYING and variance(body, "%r3") is UNIFORM


def test_a_guarded_write_is_uniform_only_under_a_uniform_guard() -> None:
    assert variance("setp.lt.u32 %p1, %r1, 7; @%p1 mov.u32 %r2, 1;") is VARYING
    assert variance("setp.lt.u32 %p1, %r9, 7; @%p1 mov.u32 %r2, 1;") is UNIFORM


# ---------------------------------------------------------------- regions

PART = T + "setp.lt.u32 %p1, %r1, 7; "


def test_a_uniform_branch_opens_no_region() -> None:
    assert not uniformity(
        "setp.lt.u32 %p1, %r9, 7; @%p1 bra J; add.u32 %r2, %r2, 1; J: ret;"
    ).regions


def test_a_region_reaches_from_a_branch_to_its_reconvergence_point() -> None:
    body = PART + "@%p1 bra B; A: add.u32 %r2, %r1, 1; bra J; B: add.u32 %r2, %r1, 2; J: ret;"
    found, graph = uniformity(body), cfg(body)
    (region,) = found.regions
    assert set(region.blocks) == {number(graph, "A"), number(graph, "B")} and region.join == number(
        graph, "J"
    )
    assert number(graph, "J") not in found.region_of


def test_a_branch_within_a_region_belongs_to_it() -> None:
    body = (
        PART
        + "@%p1 bra J; A: setp.eq.u32 %p2, %r1, 9; @%p2 bra K; B: add.u32 %r2, %r1, 2; K: add.u32"
        " %r3, %r1, 3; J: ret;"
    )
    found = uniformity(body)
    (region,) = found.regions
    assert len(region.blocks) == 3 and region.join == number(cfg(body), "J")


def test_two_branches_one_after_the_other_are_two_regions() -> None:
    body = (
        PART
        + "@%p1 bra J; add.u32 %r2, %r1, 2; J: add.u32 %r3, %r9, 1; @%p1 bra K; add.u32 %r4, %r1,"
        " 2; K: ret;"
    )
    assert [region.join for region in uniformity(body).regions] == [
        number(cfg(body), "J"),
        number(cfg(body), "K"),
    ]


def test_a_loop_that_lanes_leave_at_different_times_is_a_region_with_its_header() -> None:
    body = T + "L: add.u32 %r2, %r2, %r1; setp.lt.u32 %p1, %r2, 99; @%p1 bra L; E: ret;"
    (region,) = uniformity(body).regions
    assert region.blocks == (number(cfg(body), "L"),) and region.join == number(cfg(body), "E")


def test_a_loop_left_only_by_guarded_exits_has_the_exit_as_join() -> None:
    body = (
        PART
        + "@%p1 bra L; ret; L: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 99; @!%p2 exit; bra L;"
    )
    found, graph = uniformity(body), cfg(body)
    assert [region.join for region in found.regions] == [graph.exit]


def test_lanes_do_not_wait_at_the_join_for_lanes_at_a_barrier() -> None:
    body = PART + "@%p1 bra J; bar.sync 0; A: add.u32 %r2, %r1, 1; J: add.u32 %r3, %r1, 1; ret;"
    found, graph = uniformity(body), cfg(body)
    (region,) = found.regions
    assert region.join == graph.exit and number(graph, "J") in region.blocks
    without = PART + "@%p1 bra J; add.u32 %r2, %r1, 1; J: add.u32 %r3, %r1, 1; ret;"
    assert uniformity(without).regions[0].join == number(cfg(without), "J")
