"""Shared and local memory: accesses out of bounds, misaligned, or uninitialised; generic addresses;
barriers under divergence.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.check.finding_words import words_of
from evoengine.emulator.check.findings import Access, FindingKind, Space
from tests.emulator.check.checker_driver import FULL, CheckerDriver, on_machine, row

SHARED, LOCAL = 1 << 45, 1 << 46  # windows of generic addresses


@pytest.fixture
def machine() -> Iterator[CheckerDriver]:
    yield from on_machine(threads=64, shared=1000, local=64)


def kinds(machine: CheckerDriver) -> list[str]:
    return machine.launch.kinds()


def test_shared_memory_ends_where_the_launch_said(machine: CheckerDriver) -> None:
    assert machine.write(0, row(900)) == (1 << 25) - 1
    (found,) = machine.launch.findings()
    assert (found.kind, found.space, found.offset, found.distance, found.thread) == (
        FindingKind.OUT_OF_BOUNDS,
        Space.SHARED,
        1000,
        4,
        25,
    )


def test_a_negative_offset_is_before_the_start(machine: CheckerDriver) -> None:
    assert machine.write(0, [-8], mask=1) == 0
    assert [(f.offset, f.distance) for f in machine.launch.findings()] == [(-8, -8)]


@pytest.mark.parametrize("offset", [(1 << 32) + 8, -(1 << 33) + 8])
def test_an_offset_of_64_bits_whose_low_half_looks_right_is_stopped(
    machine: CheckerDriver, offset: int
) -> None:
    assert machine.write(0, [0, offset], mask=0b11) == 0b01
    assert [(f.kind.name, f.offset) for f in machine.launch.findings()] == [
        ("OUT_OF_BOUNDS", offset)
    ]


def test_a_misaligned_shared_vector_is_stopped(machine: CheckerDriver) -> None:
    assert machine.write(0, [0, 8, 16], bytes=16, mask=0b111) == 0b101
    assert [(f.kind.name, f.offset) for f in machine.launch.findings()] == [("MISALIGNED", 8)]


def test_shared_memory_starts_uninitialised_in_every_block(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.block(1)
    machine.read(0, row(0), site=3)
    (found,) = machine.launch.findings()
    assert (found.kind, found.offset, found.times, found.other_thread) == (
        FindingKind.UNINITIALISED,
        0,
        32,
        -1,
    )


def test_the_first_uninitialised_byte_is_named(machine: CheckerDriver) -> None:
    machine.write(0, [0, 4, 12], mask=0b111)
    machine.read(0, [0], mask=1, bytes=16)
    assert ("UNINITIALISED", 8) in [(f.kind.name, f.offset) for f in machine.launch.findings()]


@pytest.mark.parametrize(
    ("pitch", "gap"), [(80, 16), (68, 4), (128, 64), (132, 0)], ids=lambda value: str(value)
)
def test_a_narrow_gap_in_what_one_instruction_wrote_names_it(
    machine: CheckerDriver, pitch: int, gap: int
) -> None:
    rows = [first * pitch + at * 4 for first in range(2) for at in range(16)]
    machine.write(0, rows, site=5)
    machine.read(0, [64], mask=1, bytes=4, site=6)
    (found,) = machine.launch.findings()
    assert (found.kind, found.offset, found.distance) == (FindingKind.UNINITIALISED, 64, gap)
    assert found.other_site == (5 if gap else -1)


def test_a_gap_between_two_instructions_is_one_of_their_line_alone(machine: CheckerDriver) -> None:
    machine.write(0, [0], mask=1, site=5)
    machine.write(0, [8], mask=1, site=6)
    machine.read(0, [4], mask=1, site=7)
    machine.read(0, [12], mask=1, site=8)
    gap, behind = machine.launch.findings()
    assert (gap.distance, gap.other_site, gap.end_site) == (4, 5, 6)
    assert "in a gap of 4 bytes in what line 9 wrote" in words_of(gap, lambda site: "line 9")
    assert "gap" not in words_of(gap, "line {}".format)
    assert (behind.distance, behind.other_site) == (0, -1)


def test_the_ends_of_shared_memory_are_no_gap(machine: CheckerDriver) -> None:
    machine.write(0, [8, 988], mask=0b11, site=5)
    machine.read(0, [4, 996], mask=0b11, site=6)
    assert [found.distance for found in machine.launch.findings()] == [0]


def test_an_atomic_reads_what_it_changes(machine: CheckerDriver) -> None:
    machine.atomic(0, [0], mask=1)
    assert kinds(machine) == ["UNINITIALISED"]


def access(
    machine: CheckerDriver,
    space: Space,
    kind: Access,
    address: list[int],
    mask: int = FULL,
    bytes: int = 4,
    warp: int = 0,
) -> int:
    return machine.access(space, kind, warp, address, mask=mask, bytes=bytes)


def test_local_memory_is_the_threads_own(machine: CheckerDriver) -> None:
    assert access(machine, Space.LOCAL, Access.WRITE, [8] * 32) == FULL
    access(machine, Space.LOCAL, Access.READ, [8] * 32)
    assert kinds(machine) == []
    access(machine, Space.LOCAL, Access.READ, [8] * 32, warp=1)
    assert [(f.kind.name, f.space.name, f.thread) for f in machine.launch.findings()] == [
        ("UNINITIALISED", "LOCAL", 32)
    ]


def test_local_memory_ends_with_the_frame(machine: CheckerDriver) -> None:
    assert access(machine, Space.LOCAL, Access.WRITE, [60, 64, -4], mask=0b111) == 1
    assert access(machine, Space.LOCAL, Access.WRITE, [8], mask=1, bytes=16) == 0
    assert [(f.kind.name, f.offset, f.distance, f.times) for f in machine.launch.findings()] == [
        ("OUT_OF_BOUNDS", 64, 4, 2),
        ("MISALIGNED", 8, 0, 1),
    ]


def test_generic_addresses_are_checked_in_their_own_space(machine: CheckerDriver) -> None:
    x = machine.launch.buffer(64)
    machine.c.windows(machine.handle, SHARED, LOCAL)
    mixed = [SHARED + 16, LOCAL + 64 * 1 + 8, x + 4, x + 64]
    assert access(machine, Space.GENERIC, Access.WRITE, mixed, mask=0b1111) == 0b0111
    assert [(f.space.name, f.buffer) for f in machine.launch.findings()] == [("GLOBAL", 0)]
    machine.read(0, [16], mask=1)
    access(machine, Space.LOCAL, Access.READ, [8], mask=0b10)
    assert len(kinds(machine)) == 1
    counts = machine.counts()
    assert (counts.shared_stores, counts.global_stores, counts.local_stores) == (1, 1, 1)


def test_another_threads_frame_is_out_of_bounds(machine: CheckerDriver) -> None:
    machine.c.windows(machine.handle, SHARED, LOCAL)
    assert access(machine, Space.GENERIC, Access.WRITE, [LOCAL + 64], mask=1) == 0
    assert [(f.space.name, f.kind.name) for f in machine.launch.findings()] == [
        ("LOCAL", "OUT_OF_BOUNDS")
    ]


def test_a_barrier_that_part_of_a_warp_reaches_names_both_parts(machine: CheckerDriver) -> None:
    machine.c.divergent_barrier(machine.handle, 1, 0x0000FFFE, 0x0001FFFF, 9)
    (found,) = machine.launch.findings()
    assert (found.kind, found.thread, found.other_thread, found.site) == (
        FindingKind.DIVERGENT_BARRIER,
        33,
        32,
        9,
    )


def test_a_barrier_that_all_live_lanes_reach_is_not_a_finding(machine: CheckerDriver) -> None:
    machine.c.divergent_barrier(machine.handle, 1, 0x0001FFFF, 0x0001FFFF, 9)
    assert kinds(machine) == []
