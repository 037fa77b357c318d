"""Counts from executions and accesses."""

from __future__ import annotations

import pytest

from evoengine.emulator.check.findings import AccessCounts, Check
from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.emulator.ptx.syntax import Instruction, Register
from evoengine.emulator.timing_model.instruction_mix import instruction_mix
from evoengine.emulator.timing_model.launch_counts import (
    counts_from_mixes,
    counts_from_reports,
    with_accesses,
    with_block_work,
)
from evoengine.emulator.timing_model.work_queues import takes_work

A = Register("%a")
LOOP = instruction_mix(
    [
        Instruction("fma", ("rn", "f32"), (A, A, A, A), None, 0, ""),
        Instruction("bra", (), (), None, 0, ""),
    ]
)
END = instruction_mix([Instruction("ret", (), (), None, 0, "")])


def test_code_counts_as_often_as_warps_executed_it() -> None:
    found = counts_from_mixes([(LOOP, 100.0), (END, 4.0)], blocks=2, warps=4, unique_bytes=99)
    assert found.instructions == {"fma": 100, "control": 104}
    assert found.delays == {"fixed": 100}
    assert (found.blocks, found.warps, found.issued, found.unique_bytes) == (2, 4, 204, 99)


def test_code_that_never_ran_does_not_count() -> None:
    assert counts_from_mixes([(LOOP, 0.0)], blocks=1, warps=1).instructions == {}


def test_a_checked_sample_stands_for_all_blocks() -> None:
    sample = AccessCounts(
        shared_load_wavefronts=10,
        shared_store_wavefronts=5,
        async_copies=1,
        async_bytes=256,
        async_sectors=8,
        async_wavefronts=2,
        global_loads=4,
        global_load_sectors=20,
        block_sectors=10,
        launch_sectors=7,
        global_store_sectors=4,
        global_atomics=7,
        global_atomic_sectors=2,
        local_bytes=64,
    )
    found = with_accesses(counts_from_mixes([(END, 32.0)], blocks=8, warps=32), sample, blocks=2)
    assert found.shared_wavefronts == 4 * (15 + 2)
    assert (found.load_requests, found.load_sectors, found.store_sectors, found.copy_sectors) == (
        12,
        48,
        24,
        32,
    )
    assert (found.local_sectors, found.atomics) == (8, 28)
    assert (found.block_sectors, found.common_sectors) == (40, 3)
    assert found.l2_sectors == pytest.approx(40 + 24 + 32)


def test_checked_blocks_count_for_the_work_that_they_did() -> None:
    sample = AccessCounts(global_store_sectors=40, block_sectors=10, launch_sectors=7)
    counts = counts_from_mixes([(END, 32.0)], blocks=8, warps=32)
    found = with_accesses(counts, sample, blocks=2, worth=8)  # two emptied the queue of eight
    assert (found.store_sectors, found.block_sectors, found.common_sectors) == (40, 10, 3)


def test_the_longest_block_is_measured_in_instructions() -> None:
    counts = with_block_work(counts_from_mixes([(END, 30.0)], blocks=3, warps=30), [100, 300, 200])
    assert counts.most_issued == pytest.approx(15)  # of 30 in all, three sixths
    assert with_block_work(counts, []) == counts


SUM = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry sum(.param .u64 x, .param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
$L:
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r4, [%rd4];
    add.u32 %r3, %r3, %r4;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra $L;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd5, %rd2, %rd3;
    st.global.u32 [%rd5], %r3;
    ret;
}
"""


def test_a_launch_is_counted_from_a_fast_run_and_a_checked_one() -> None:
    emulator = Emulator(target="l4", threads=2)
    try:
        x, out = emulator.memory.allocate(256, "x"), emulator.memory.allocate(256, "out")
        args = [address.to_bytes(8, "little") for address in (x, out)]
        program = emulator.load(SUM)
        fast = program.launch("sum", grid=(32, 1, 1), block=(32, 1, 1), args=args)
        checked = program.launch(
            "sum", grid=(32, 1, 1), block=(32, 1, 1), args=args, checks=Checks(Check(0))
        )
    finally:
        emulator.close()
    found = counts_from_reports(fast, checked, unique_bytes=256)
    rounds = 32 * 33 / 2  # block i goes round i + 1 times
    assert (found.blocks, found.warps, found.unique_bytes) == (32, 32, 256)
    assert found.load_sectors == rounds
    # eight numbers a sector
    assert found.block_sectors == sum(-(-count // 8) for count in range(1, 33))
    assert found.common_sectors == pytest.approx((found.block_sectors - 4) / 31)
    loads = found.delays["l1"] + found.delays["l2"]
    # the loop is unrolled by four, and what is left over of its rounds runs one by one
    assert loads == pytest.approx(sum(n // 4 + n % 4 for n in range(1, 33)))
    assert max(fast.block_work) == fast.block_work[31] and sum(fast.block_work) > 0
    assert found.most_issued == pytest.approx(
        found.issued * max(fast.block_work) / sum(fast.block_work)
    )
    assert (
        sum(piece.times * piece.instructions.get("lsu", 0) for piece in found.pieces)
        == found.instructions["lsu"]
    )
    with pytest.raises(ValueError, match="checked mode"):
        counts_from_reports(fast, fast)


QUEUE = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry queue(.param .u64 ticket, .param .u64 out)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [ticket];
    ld.param.u64 %rd2, [out];
$L:
    atom.global.add.u32 %r1, [%rd1], 1;
    setp.ge.u32 %p1, %r1, 4096;
    @%p1 bra $END;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r1;
    bra $L;
$END:
    ret;
}
"""


def test_blocks_that_take_work_from_a_queue_share_it_evenly() -> None:
    emulator = Emulator(target="l4", threads=1)
    try:
        ticket, out = emulator.memory.allocate(4, "ticket"), emulator.memory.allocate(16384, "out")
        args = [address.to_bytes(8, "little") for address in (ticket, out)]
        program = emulator.load(QUEUE)

        def run(checks: Checks | None = None, blocks: list[int] | None = None) -> LaunchReport:
            emulator.memory.view(ticket, 4)[:] = 0
            return program.launch(
                "queue", grid=(16, 1, 1), block=(32, 1, 1), args=args, checks=checks, blocks=blocks
            )

        fast, followed, sampled = run(), run(Checks(Check(0))), run(Checks(Check(0)), [0, 15])
    finally:
        emulator.close()
    whole, sample = (counts_from_reports(fast, report) for report in (followed, sampled))
    assert max(fast.block_work) > 10 * min(fast.block_work)  # the first block does it all here
    assert whole.most_issued == sample.most_issued == 0  # unknown: no block counts as the longest
    assert whole.store_sectors > 4096 / 8
    assert sample.store_sectors == pytest.approx(whole.store_sectors, rel=0.15)


def test_an_atomic_at_the_end_of_a_block_is_no_queue() -> None:
    emulator = Emulator(target="l4", threads=1)
    try:
        total = emulator.memory.allocate(4, "total")
        emulator.memory.view(total, 4)[:] = 0
        once = QUEUE.replace("bra $L;", "bra $END;")  # one ticket a thread
        out = emulator.memory.allocate(16384, "out")
        args = [address.to_bytes(8, "little") for address in (total, out)]
        program = emulator.load(once)
        report = program.launch("queue", grid=(4, 1, 1), block=(32, 1, 1), args=args)
    finally:
        emulator.close()
    assert not takes_work(report.lowered.cfg)
