"""Blocks, warps, barriers and fuel, on the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.emulator_errors import LaunchRefused, OutOfFuel, Trapped
from tests.emulator.lower.small_kernels import emulator, kernel

WORDS = 1 << 14
NUMBERED = (
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %t; mul.wide.u32 %q1,"
    " %r3, 4; add.s64 %q2, %rd0, %q1;"
)


@pytest.fixture
def three() -> Iterator[Emulator]:
    device = Emulator("l4", threads=3)
    yield device
    device.close()


def launch(
    body: str,
    device: Emulator | None = None,
    *,
    grid: int = 1,
    block: int = 32,
    fuel: int | None = None,
    blocks: Sequence[int] | None = None,
    checks: Checks | None = None,
) -> tuple[np.ndarray, LaunchReport]:
    """The words of an initially zero array that `body` writes to, and the report."""
    device = device or emulator()
    program = device.load(kernel(body, arrays=1, shared=1024))
    address = device.memory.allocate(4 * WORDS)
    try:
        report = program.launch(
            "k",
            grid=(grid, 1, 1),
            block=(block, 1, 1),
            args=[address.to_bytes(8, "little")],
            fuel=fuel,
            blocks=blocks,
            checks=checks,
        )
        return device.memory.view(address, 4 * WORDS).view(np.uint32).copy(), report
    finally:
        device.memory.free(address)
        program.close()


HASHED = (
    NUMBERED
    + " mad.lo.u32 %r4, %r3, -1640531527, 12345; shr.u32 %r5, %r4, 15; xor.b32 %r4, %r4, %r5;"
    " st.global.u32 [%q2], %r4;"
)


def test_host_threads_give_what_one_gives(three: Emulator) -> None:
    one, first = launch(HASHED, grid=200, block=64)
    many, second = launch(HASHED, three, grid=200, block=64)
    assert np.array_equal(one, many) and len(np.unique(one[: 200 * 64])) > 12000
    assert first.blocks_run == second.blocks_run == 200
    assert np.array_equal(first.counters, second.counters) and np.array_equal(
        first.block_work, second.block_work
    )


def test_only_the_chosen_blocks_run(three: Emulator) -> None:
    body = NUMBERED + " st.global.u32 [%q2], 1;"
    for device in (emulator(), three):
        found, report = launch(body, device, grid=50, block=32, blocks=[3, 49, 7])
        assert (
            np.flatnonzero(found.reshape(-1, 32).all(axis=1)).tolist() == [3, 7, 49]
            and found.sum() == 96
        )
        assert (report.blocks_run, report.blocks) == (3, 50)
    assert launch(body, grid=50, blocks=[])[1].blocks_run == 0


@pytest.mark.parametrize("wrong", [-1, 50, 1 << 70])
def test_a_block_outside_of_the_grid_is_refused(wrong: int) -> None:
    with pytest.raises(LaunchRefused, match=f"block {wrong} was chosen from a grid of 50 blocks"):
        launch("", grid=50, blocks=[0, wrong])


@pytest.mark.parametrize("block", [1, 31, 32, 33, 63, 1000, 1024])
def test_lanes_without_a_thread_do_nothing(block: int) -> None:
    found, report = launch(
        "st.global.u32 [%own0], 1; atom.global.add.u32 %r1, [%rd0+40000], 1;", block=block
    )
    assert found[:2000].sum() == block and found[10000] == block
    assert report.warps == -(-block // 32)


@pytest.mark.parametrize("block", [32, 33, 256, 1024])
def test_bar_red_counts_the_block(block: int) -> None:
    body = """
    and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; setp.lt.u32 %p2, %t, 5000; setp.gt.u32 %p3, %t, 5000;
    bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p4, 0, %p2; bar.red.or.pred %p5, 0, %p3;
    bar.red.and.pred %p6, 0, %p1; bar.red.or.pred %p7, 0, %p1;
    selp.u32 %r3, 1, 0, %p4; selp.u32 %r4, 2, 0, %p5; selp.u32 %r5, 4, 0, %p6; selp.u32 %r6, 8, 0, %p7;
    or.b32 %r3, %r3, %r4; or.b32 %r5, %r5, %r6; or.b32 %r3, %r3, %r5; shl.b32 %r2, %r2, 8; or.b32 %r3, %r3, %r2;
    st.global.u32 [%own0], %r3;"""
    found, _ = launch(body, block=block)
    assert set(found[:block].tolist()) == {(block // 2) << 8 | 1 | 8}


def test_a_barrier_lets_all_warps_see_what_was_written_before() -> None:
    body = """
    mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2; add.u32 %r9, %t, 1; st.shared.u32 [%r3], %r9; bar.sync 0;
    mov.u32 %r4, 255; sub.u32 %r4, %r4, %t; shl.b32 %r4, %r4, 2; add.u32 %r4, %r1, %r4; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%own0], %r5;"""
    assert launch(body, block=256)[0][:256].tolist() == list(range(256, 0, -1))


def test_a_barrier_for_some_warps_waits_for_no_others() -> None:
    """The first two warps meet 64 threads strong; the other two never come."""
    body = """
    setp.ge.u32 %p1, %t, 64; @%p1 bra out; mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2;
    st.shared.u32 [%r3], %t; bar.sync 5, 64;
    mov.u32 %r4, 63; sub.u32 %r4, %r4, %t; shl.b32 %r4, %r4, 2; add.u32 %r4, %r1, %r4; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%own0], %r5; out:"""
    found, _ = launch(body, block=128)
    assert found[:64].tolist() == list(range(63, -1, -1)) and not found[64:].any()


def test_waiting_lanes_are_not_blocked_by_exited_lanes() -> None:
    found, _ = launch(
        "setp.ge.u32 %p1, %t, 40; @%p1 exit; bar.sync 0; st.global.u32 [%own0], 1;", block=96
    )
    assert found.sum() == 40


def test_barriers_on_both_sides_of_a_branch_are_reached_by_their_own_lanes() -> None:
    body = """
    setp.lt.u32 %p1, %t, 48; @%p1 bra few; bar.sync 1; st.global.u32 [%own0], 2; bra meet;
    few: bar.sync 1; st.global.u32 [%own0], 1; meet: bar.sync 2; ld.global.u32 %r1, [%own0]; add.u32 %r1, %r1, 10;
    st.global.u32 [%own0], %r1;"""
    assert launch(body, block=96)[0][:96].tolist() == [11] * 48 + [12] * 48


def test_a_barrier_that_others_never_reach_ends_the_launch_and_names_the_block() -> None:
    """One warp waits at 1, the other at 2."""
    body = "setp.lt.u32 %p1, %t, 32; @%p1 bra one; bar.sync 2; bra end; one: bar.sync 1; end:"
    with pytest.raises(
        OutOfFuel,
        match=re.escape(
            "deadlock: threads of block 4 wait at a barrier that the others never reach: barrier 1"
            " at `bar.sync 1` waits for all threads, and 32 are there (warp 0); barrier 2 at"
            " `bar.sync 2` waits for all threads, and 32 are there (warp 1)"
        ),
    ):
        launch(body, grid=9, block=64, blocks=[4])


def test_a_count_that_no_block_has_is_never_met() -> None:
    said = "barrier 1 at `bar.sync 1, 2048` waits for 2048 threads, and 64 are there (warps 0 to 1)"
    with pytest.raises(OutOfFuel, match=re.escape(said)):
        launch("bar.sync 1, 2048;", block=64)


ENDLESS = {
    "empty": "loop: bra loop;",
    "counting": "loop: add.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, %r1; @!%p1 bra loop;",
    "divergent": "setp.lt.u32 %p1, %t, 7; @%p1 bra out; loop: add.u32 %r1, %r1, %t; bra loop; out:",
    "divergent at its end": "loop: add.u32 %r1, %r1, 1; setp.eq.u32 %p1, %t, 3; @%p1 bra loop;",
    "waits for memory": (
        "loop: ld.volatile.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra loop;"
    ),
    "barrier": "loop: bar.sync 0; bra loop;",
    "two entries": (
        "setp.eq.u32 %p1, %t, 0; @%p1 bra second; first: add.u32 %r1, %r1, 1; second: add.u32 %r2,"
        " %r2, 1; bra first;"
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_fuel_ends_endless_loops(name: str) -> None:
    with pytest.raises(OutOfFuel, match=r"out of fuel in a loop at .* \(block 0, warp \d\)"):
        launch(ENDLESS[name], block=64, fuel=20_000)


def test_a_launch_that_ran_out_of_fuel_tells_what_left_its_memory() -> None:
    """What else was found may be the fault of the early end."""
    body = """
    st.global.u32 [%rd0], %t;
    loop: st.global.u32 [%rd0+-4], %r1; add.u32 %r1, %r1, 1; bra loop;"""
    with pytest.raises(OutOfFuel) as found:
        launch(body, block=64, fuel=20_000, checks=Checks())
    lines = found.value.strays
    assert lines and all("out of bounds" in line for line in lines), lines
    assert any("4 bytes before its start" in line for line in lines), lines
    with pytest.raises(OutOfFuel) as without:
        launch(body.replace("+-4", "+4"), block=64, fuel=20_000, checks=Checks())
    assert without.value.strays == ()


def test_writes_of_other_warps_end_a_spin_loop() -> None:
    """The first warp spins until the last one, which runs later, has stored."""
    body = """
    setp.lt.u32 %p1, %t, 32; @!%p1 bra write; loop: ld.volatile.global.u32 %r1, [%rd0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra loop; bra end;
    write: mov.u32 %r2, 5; st.volatile.global.u32 [%rd0], %r2; end:"""
    assert launch(body, block=128, fuel=20_000)[0][0] == 5


def test_a_grid_too_large_to_end_burns_fuel_too() -> None:
    with pytest.raises(
        OutOfFuel,
        match="out of fuel at the start of block 1000: earlier blocks used up the launch's budget",
    ):
        launch("", grid=2**31 - 1, block=64, fuel=2000)


def test_one_thread_without_fuel_stops_the_others(three: Emulator) -> None:
    with pytest.raises(OutOfFuel, match="out of fuel"):
        launch("", three, grid=2**31 - 1, block=64, fuel=2000)


def test_no_fuel_at_all_runs_nothing() -> None:
    with pytest.raises(OutOfFuel, match="start of block 0"):
        launch("", fuel=0)


def test_a_trap_names_its_line_and_only_lanes_that_reach_it_count() -> None:
    with pytest.raises(Trapped, match=r"`trap` \(block 2, warp 1\)"):
        launch(
            "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 2; setp.eq.u32 %p2, %t, 40; and.pred %p1,"
            " %p1, %p2; @!%p1 bra on; trap; on:",
            grid=3,
            block=64,
        )
    launch(
        "setp.gt.u32 %p1, %t, 99; @%p1 trap; setp.lt.u32 %p2, %t, 16; @%p2 bra on; setp.gt.u32 %p3,"
        " %t, 5; @%p3 exit; trap; on:",
        block=64,
    )


def test_a_block_in_a_region_does_not_run_without_active_lanes() -> None:
    """Behind a guarded exit that all lanes of the arm take there is a read of an address that is
    nowhere.
    """
    body = """
    setp.lt.u32 %p1, %t, 16; @%p1 bra on; setp.gt.u32 %p2, %t, 5; @%p2 exit; ld.global.u32 %r1, [%q9];
    st.global.u32 [%rd0], %r1; on: st.global.u32 [%own0], 1;"""
    assert launch(body)[0].sum() == 16


def test_a_launch_leaves_no_buffer_behind(three: Emulator) -> None:
    before = dict(three.memory.buffers)
    for _ in range(3):
        launch(HASHED, three, grid=20)
        with pytest.raises(OutOfFuel, match="fuel"):
            launch(ENDLESS["empty"], three, fuel=100)
    assert three.memory.buffers == before


def test_a_launch_that_strays_far_ends_and_the_process_goes_on(three: Emulator) -> None:
    # the first page is never backed; the next ones are where the window of buffers is drawn there
    body = f"{NUMBERED} setp.eq.u32 %p1, %r1, 40; @%p1 mov.u64 %q2, 0; st.global.u32 [%q2], 1;"
    for device in (emulator(), three):
        with device.memory.surroundings():
            for _ in range(3):
                with pytest.raises(Trapped, match=r"block 40 access memory that is not there"):
                    launch(body, device, grid=50)
            found, _ = launch(body, device, grid=40)
        assert found.sum() == 40 * 32
    found, report = launch(HASHED, three, grid=200, block=64)
    assert report.blocks_run == 200
