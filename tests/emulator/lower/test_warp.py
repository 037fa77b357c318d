"""Warp-level instructions, against a model of one lane after another."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import OutOfFuel, Unsupported
from tests.emulator.lower.small_kernels import run

LANES = 32
VALUES = (np.arange(LANES, dtype=np.uint32) * 2654435761 % 7 + 3).astype(np.uint32)
REDUCTIONS = {
    "add.u32": lambda a, b: a + b & 0xFFFFFFFF,
    "min.u32": min,
    "max.u32": max,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


def _lanes(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


@pytest.mark.parametrize("operation", REDUCTIONS)
@pytest.mark.parametrize("running", [0xFFFFFFFF, 0x00F0FF01])
def test_redux_combines_the_active_lanes(operation: str, running: int) -> None:
    body = f"""
    shr.u32 %r0, {running}, %lane; and.b32 %r0, %r0, 1; setp.eq.u32 %p0, %r0, 1;
    ld.global.u32 %r1, [%own0]; mov.u32 %r2, 77;
    @!%p0 bra END;
    redux.sync.{operation} %r2, %r1, {running};
    END: st.global.u32 [%own1], %r2;"""
    got = run(body, [VALUES, np.zeros(LANES, np.uint32)]).arrays[1]
    all_ = reduce(REDUCTIONS[operation], [int(VALUES[lane]) for lane in _lanes(running)])
    assert got.tolist() == [all_ if running >> lane & 1 else 77 for lane in range(LANES)]


@pytest.mark.parametrize(
    ("operation", "model"), [("min.s32", min), ("max.s32", max), ("add.s32", lambda a, b: a + b)]
)
def test_redux_knows_signs_and_groups_of_lanes(operation: str, model) -> None:  # type: ignore[no-untyped-def]
    values = np.where(np.arange(LANES) % 3 == 0, -1 - np.arange(LANES), np.arange(LANES)).astype(
        np.int32
    )
    body = f"""
    and.b32 %r0, %lane, 24; mov.u32 %r1, 255; shl.b32 %r1, %r1, %r0;
    ld.global.u32 %r2, [%own0]; redux.sync.{operation} %r3, %r2, %r1; st.global.u32 [%own1], %r3;"""
    got = run(body, [values, np.zeros(LANES, np.int32)]).arrays[1]
    assert got.tolist() == [
        reduce(model, values[lane & 24 : (lane & 24) + 8].tolist()) for lane in range(LANES)
    ]


def test_redux_of_a_partial_warp_counts_only_its_threads() -> None:
    got = run(
        "mov.u32 %r0, 1; redux.sync.add.u32 %r1, %r0, -1; st.global.u32 [%own0], %r1;",
        [np.zeros(45, np.uint32)],
        threads=45,
    )
    assert got.arrays[0].tolist() == [32] * 32 + [13] * 13


@pytest.mark.parametrize("bits", [32, 64])
def test_match_any_gives_the_lanes_with_the_same_value(bits: int) -> None:
    widen = "cvt.u64.u32 %q0, %r0; shl.b64 %q0, %q0, 33;" if bits == 64 else ""
    body = (
        f"ld.global.u32 %r0, [%own0]; {widen} match.any.sync.b{bits} %r1,"
        f" {'%q0' if bits == 64 else '%r0'}, -1; st.global.u32 [%own1], %r1;"
    )
    got = run(body, [VALUES, np.zeros(LANES, np.uint32)]).arrays[1]
    assert got.tolist() == [
        sum(1 << other for other in range(LANES) if VALUES[other] == VALUES[lane])
        for lane in range(LANES)
    ]


def test_match_any_stays_within_the_active_lanes() -> None:
    body = """
    setp.lt.u32 %p0, %lane, 11; mov.u32 %r1, 5; ld.global.u32 %r0, [%own0];
    @%p0 match.any.sync.b32 %r1, %r0, 0x7ff;
    st.global.u32 [%own1], %r1;"""
    got = run(body, [VALUES, np.zeros(LANES, np.uint32)]).arrays[1]
    want = [
        sum(1 << other for other in range(11) if VALUES[other] == VALUES[lane]) if lane < 11 else 5
        for lane in range(LANES)
    ]
    assert got.tolist() == want


def test_match_all_finds_the_groups_that_agree() -> None:
    values = np.where(np.arange(LANES) // 8 == 2, np.arange(LANES), 9).astype(np.uint32)
    body = """
    and.b32 %r0, %lane, 24; mov.u32 %r1, 255; shl.b32 %r1, %r1, %r0; ld.global.u32 %r2, [%own0];
    match.all.sync.b32 %r3|%p0, %r2, %r1; selp.u32 %r4, 1, 0, %p0;
    st.global.u32 [%own1], %r3; st.global.u32 [%own2], %r4;"""
    _, masks, flags = run(body, [values, *np.zeros((2, LANES), np.uint32)]).arrays
    assert masks.tolist() == [0 if lane // 8 == 2 else 255 << (lane & 24) for lane in range(LANES)]
    assert flags.tolist() == [int(lane // 8 != 2) for lane in range(LANES)]


def test_elect_chooses_one_active_lane() -> None:
    body = """
    setp.ge.u32 %p0, %lane, 6; mov.u32 %r0, 99; mov.u32 %r1, 99;
    @!%p0 bra END;
    elect.sync %r0|%p1, 0xffffffc0; selp.u32 %r1, 1, 0, %p1;
    END: st.global.u32 [%own0], %r0; st.global.u32 [%own1], %r1;"""
    leader, chosen = run(body, list(np.zeros((2, LANES), np.uint32))).arrays
    assert leader.tolist() == [99] * 6 + [6] * 26
    assert chosen.tolist() == [99] * 6 + [1] + [0] * 25


EXCHANGE = """
    mov.u64 %q0, tile; cvt.u64.u32 %q1, %lane; shl.b64 %q1, %q1, 2; add.s64 %q2, %q0, %q1; st.shared.u32 [%q2], %lane;
    {between}
    xor.b64 %q1, %q1, 4; add.s64 %q2, %q0, %q1; ld.shared.u32 %r1, [%q2]; st.global.u32 [%own0], %r1;"""


@pytest.mark.parametrize(
    "between",
    [
        "redux.sync.add.u32 %r9, %lane, -1;",
        "match.any.sync.b32 %r9, %lane, -1;",
        "elect.sync %r9|%p0, -1;",
        "bar.warp.sync -1;",
    ],
)
def test_synchronised_lanes_are_ordered(between: str) -> None:
    ran = run(
        EXCHANGE.format(between=between), [np.zeros(LANES, np.uint32)], shared=128, checks=Checks()
    )
    assert ran.kinds() == []
    assert ran.arrays[0].tolist() == [lane ^ 1 for lane in range(LANES)]


def test_unsynchronised_lanes_race() -> None:
    ran = run(
        EXCHANGE.format(between=""), [np.zeros(LANES, np.uint32)], shared=128, checks=Checks()
    )
    assert len(ran.report.findings) == 1


@pytest.mark.parametrize(
    "text", ["redux.sync.min.NaN.f32 %f0, %f1, -1", "redux.sync.mul.u32 %r0, %r1, -1"]
)
def test_unknown_forms_are_refused(text: str) -> None:
    with pytest.raises(Unsupported, match="redux"):
        run(f"{text};", [np.zeros(LANES, np.uint32)])


HANDED_OVER = """
    mov.u64 %q0, tile; cvt.u64.u32 %q1, %lane; shl.b64 %q1, %q1, 2; add.s64 %q0, %q0, %q1;
    setp.lt.u32 %p0, %t, 32; @!%p0 bra CONSUMER;
    st.shared.u32 [%q0], %t; {arrive} bra END;
    CONSUMER: {wait} ld.shared.u32 %r0, [%q0]; st.global.u32 [%own0], %r0;
    END:"""


def test_a_warp_that_arrives_does_not_wait_and_counts_after_its_exit() -> None:
    body = HANDED_OVER.format(arrive="bar.arrive 3, 64;", wait="bar.sync 3, 64;")
    ran = run(body, [np.full(64, 7, np.uint32)], threads=64, shared=128, checks=Checks())
    assert ran.arrays[0].tolist() == [7] * 32 + list(range(32))
    assert ran.kinds() == []


def test_an_arrival_at_another_barrier_releases_no_warp() -> None:
    body = HANDED_OVER.format(arrive="bar.arrive 4, 64;", wait="bar.sync 3, 64;")
    with pytest.raises(OutOfFuel, match="barrier"):
        run(body, [np.full(64, 7, np.uint32)], threads=64, shared=128)
