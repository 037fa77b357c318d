"""From executions and accesses to counts."""

from __future__ import annotations

import pytest

from evoengine.emulator.check.findings import AccessCounts
from evoengine.emulator.model.observe import executed, with_accesses
from evoengine.emulator.ptx.program import Instruction, Register

A = Register("%a")
LOOP = [Instruction("fma", ("rn", "f32"), (A, A, A, A), None, 0, ""), Instruction("bra", (), (), None, 0, "")]
END = [Instruction("ret", (), (), None, 0, "")]


def test_code_counts_as_often_as_warps_went_through_it() -> None:
    found = executed([(LOOP, 100.0), (END, 4.0)], blocks=2, warps=4, unique_bytes=99)
    assert found.instructions == {"fma": 100, "control": 104}
    assert found.delays == {"fixed": 100}
    assert (found.blocks, found.warps, found.issued, found.unique_bytes) == (2, 4, 204, 99)


def test_code_that_never_ran_does_not_count() -> None:
    assert executed([(LOOP, 0.0)], blocks=1, warps=1).instructions == {}


def test_a_checked_sample_stands_for_all_blocks() -> None:
    sample = AccessCounts(
        shared_load_wavefronts=10,
        shared_store_wavefronts=5,
        async_bytes=256,
        global_loads=3,
        global_load_sectors=12,
        global_store_sectors=4,
        global_atomics=7,
        global_atomic_sectors=2,
        local_bytes=64,
    )
    found = with_accesses(executed([(END, 32.0)], blocks=8, warps=32), sample, blocks=2)
    assert found.shared_wavefronts == 4 * (15 + 2)
    assert (found.load_requests, found.load_sectors, found.store_sectors, found.copy_sectors) == (12, 48, 24, 32)
    assert (found.local_sectors, found.atomics) == (8, 28)
    assert found.l2_sectors == pytest.approx(48 + 24 + 32)
