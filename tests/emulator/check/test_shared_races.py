"""Races on shared memory: found if two accesses are unordered, and only then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.check.findings import (
    ALL_CHECKS,
    Access,
    Check,
    FindingKind,
    Space,
    causes_first,
)
from tests.emulator.check.checker_driver import FULL, CheckerDriver, Launch, on_machine, row

LOW, HIGH = 0x0000FFFF, 0xFFFF0000


@pytest.fixture
def machine() -> Iterator[CheckerDriver]:
    yield from on_machine(threads=128, shared=4096)


def kinds(machine: CheckerDriver) -> list[str]:
    return machine.launch.kinds()


def test_reading_another_warps_write_without_a_barrier_is_a_race_and_names_both_accesses(
    machine: CheckerDriver,
) -> None:
    machine.write(0, row(512), site=40)
    machine.read(1, row(512), site=42)
    (found,) = machine.launch.findings()
    assert (found.kind, found.offset, found.thread, found.other_thread) == (
        FindingKind.READ_AFTER_WRITE,
        512,
        32,
        0,
    )
    assert (found.site, found.other_site, found.block, found.times) == (42, 40, 0, 32)


def test_a_barrier_orders_write_and_read(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.barrier()
    machine.read(1, row(0))
    assert kinds(machine) == []


def test_writing_over_what_another_warp_still_reads_is_a_race(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.barrier()
    machine.read(1, row(0), site=3)
    machine.read(0, row(0), site=4)
    machine.write(0, row(0), site=5)
    assert [
        (found.kind.name, found.other_thread, found.other_site)
        for found in machine.launch.findings()
    ] == [("WRITE_AFTER_READ", 32, 3)]


@pytest.mark.parametrize("reader", [1, 2, 3])
def test_the_reader_is_found_however_many_others_read_later(
    machine: CheckerDriver, reader: int
) -> None:
    machine.write(0, row(0))
    machine.barrier()
    machine.read(reader, row(0), site=reader)
    machine.arrive(reader, 1)
    for warp in {1, 2, 3} - {reader}:
        machine.read(warp, row(0), site=9)
    machine.barrier([0, *({1, 2, 3} - {reader})], 2)
    machine.write(0, row(0), site=5)
    assert [found.other_site for found in machine.launch.findings()] == [reader]


def test_a_write_that_a_read_did_not_wait_for_is_told_from_one_that_comes_again(
    machine: CheckerDriver,
) -> None:
    machine.read(0, row(0), site=1)
    machine.write(1, row(0), site=2)
    early, unwritten = causes_first(machine.launch.findings()[::-1])
    assert early.is_early_read and (early.site, early.other_site) == (2, 1)
    assert (unwritten.kind, unwritten.site) == (FindingKind.UNINITIALISED, 1)
    machine.barrier()
    machine.read(0, row(0), site=1)
    machine.write(1, row(0), site=2)
    kinds_and_early = [(item.kind.name, item.is_early_read) for item in machine.launch.findings()]
    assert kinds_and_early.count(("WRITE_AFTER_READ", True)) == 1
    assert kinds_and_early.count(("WRITE_AFTER_READ", False)) == 1


def test_two_warps_are_named_rather_than_two_lanes_of_one(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.read(0, [4], mask=1, site=2)
    machine.read(1, [4], mask=1, site=2)
    machine.read(0, [8], mask=1, site=2)
    (found,) = machine.launch.findings()
    assert (found.thread, found.other_thread, found.times) == (32, 1, 3)


def test_two_warps_that_write_the_same_bytes_race(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.write(1, row(0))
    assert kinds(machine) == ["WRITE_AFTER_WRITE"]


def test_lanes_of_a_warp_race_until_they_are_synchronised(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.read(0, row(0)[::-1], site=2)
    assert [(found.thread, found.other_thread) for found in machine.launch.findings()] == [(0, 31)]
    machine.write(1, row(512), site=1)
    machine.warp_sync(1)
    machine.read(1, row(512)[::-1], site=3)
    assert len(machine.launch.findings()) == 1


def test_a_threads_accesses_to_its_own_bytes_are_ordered(machine: CheckerDriver) -> None:
    for _ in range(3):
        machine.write(0, row(0))
        machine.read(0, row(0))
    assert kinds(machine) == []


def test_lanes_that_read_a_word_together_race_with_the_lane_that_writes_it(
    machine: CheckerDriver,
) -> None:
    machine.write(0, 0, mask=1)
    machine.barrier()
    machine.read(0, 0, site=7)
    machine.write(0, 0, mask=1, site=8)
    assert [(found.kind.name, found.other_thread) for found in machine.launch.findings()] == [
        ("WRITE_AFTER_READ", 1)
    ]


def test_synchronising_half_a_warp_orders_that_half_only(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.warp_sync(0, LOW)
    machine.read(0, [4 * (lane ^ 1) for lane in range(16)], mask=LOW, site=2)
    assert kinds(machine) == []
    machine.read(0, [4 * (lane ^ 1) for lane in range(16, 32)], mask=HIGH, site=3)
    assert [found.site for found in machine.launch.findings()] == [3]


def test_two_halves_that_were_synchronised_apart_are_unordered(
    machine: CheckerDriver,
) -> None:
    machine.write(0, row(0), site=1)
    machine.warp_sync(0, LOW)
    machine.warp_sync(0, HIGH)
    machine.read(0, [4 * (lane ^ 16) for lane in range(32)], site=2)
    assert kinds(machine) == ["READ_AFTER_WRITE"]


def test_order_is_transitive_between_lanes(machine: CheckerDriver) -> None:
    machine.write(0, 0, mask=1)
    machine.warp_sync(0, 0b11)
    machine.warp_sync(0, 0b110)
    machine.read(0, 0, mask=0b100)
    assert kinds(machine) == []


def test_the_last_warp_of_odd_length_is_synchronised_by_its_own_lanes() -> None:
    with Launch() as launch, CheckerDriver(launch, threads=40) as machine:
        machine.write(1, row(0, lanes=8), mask=0xFF)
        machine.warp_sync(1, 0xFF)
        machine.read(1, row(0, lanes=8)[::-1], mask=0xFF)
        assert launch.kinds() == []


def test_a_barrier_of_two_warps_says_nothing_about_a_third(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.barrier([0, 1], 1)
    machine.read(1, row(0), site=2)
    machine.read(2, row(0), site=3)
    assert [found.site for found in machine.launch.findings()] == [3]


def test_order_is_transitive_between_barriers(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.barrier([0, 1], 1)
    machine.barrier([1, 2], 2)
    machine.read(2, row(0))
    assert kinds(machine) == []


def test_producer_and_consumer_with_two_named_barriers(machine: CheckerDriver) -> None:
    """The producer arrives at `full` and waits at `empty`; the consumer does the opposite."""
    full, empty = 1, 2
    machine.arrive(1, empty)
    for _ in range(4):
        machine.barrier([0], empty)
        machine.write(0, row(0))
        machine.arrive(0, full)
        machine.barrier([1], full)
        machine.read(1, row(0))
        machine.arrive(1, empty)
    assert kinds(machine) == []


def mixed(machine: CheckerDriver) -> list[tuple[int, int]]:
    """The barriers at which a warp may meet other warps than it should, and the warp."""
    found = [item for item in machine.launch.findings() if item.kind is FindingKind.MIXED_BARRIER]
    return [(item.offset, item.thread // 32) for item in found]


def test_two_groups_that_share_a_barrier_may_mix(machine: CheckerDriver) -> None:
    machine.barrier([0, 1], 3)
    machine.c.wait(machine.handle, 2, 7)
    machine.barrier([2, 3], 3)
    (found,) = machine.launch.findings()
    assert (found.kind, found.offset) == (FindingKind.MIXED_BARRIER, 3)
    assert (found.thread, found.other_thread, found.site) == (64, 0, 7)


@pytest.mark.parametrize("between", [None, [1, 2], [0, 1, 2, 3]])
def test_groups_that_use_a_barrier_after_one_another_do_not_mix(
    machine: CheckerDriver, between: list[int] | None
) -> None:
    machine.barrier([0, 1], 3)
    if between:
        machine.barrier(between, 4)
    machine.barrier([2], 5)
    machine.barrier([2, 3] if between != [1, 2] else [1, 2], 3)
    assert mixed(machine) == ([] if between else [(3, 2)])


def test_warps_that_wait_alone_do_not_mix(machine: CheckerDriver) -> None:
    for warp in (0, 1, 0, 2):
        machine.barrier([warp], 1)
    assert kinds(machine) == []


def test_a_warp_that_knows_of_an_arrival_alone_may_come_too_early(machine: CheckerDriver) -> None:
    """What the arriving warp does next is not behind the meeting."""
    machine.arrive(0, 1)
    machine.barrier([1], 1)
    machine.barrier([0, 2], 2)
    machine.barrier([2, 3], 1)
    assert mixed(machine) == [(1, 2)]


def test_a_producer_that_writes_on_after_it_arrived_races(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.arrive(0, 1)
    machine.write(0, row(0), site=5)
    machine.barrier([1], 1)
    machine.read(1, row(0), site=6)
    assert [(found.site, found.other_site) for found in machine.launch.findings()] == [(6, 5)]


def test_double_buffering_with_one_barrier_a_step_is_in_order(machine: CheckerDriver) -> None:
    for step in range(6):
        buffer = step % 2 * 2048
        for warp in range(4):
            machine.write(warp, row(buffer + warp * 512, 16), bytes=16)
        machine.barrier()
        for warp in range(4):
            machine.read(warp, row(buffer + (warp ^ 1) * 512, 16), bytes=16)
    assert kinds(machine) == []


def test_a_single_buffer_with_one_barrier_a_step_is_not(machine: CheckerDriver) -> None:
    for _ in range(2):
        for warp in range(4):
            machine.write(warp, row(warp * 512, 16), bytes=16)
        machine.barrier()
        for warp in range(4):
            machine.read(warp, row((warp ^ 1) * 512, 16), bytes=16)
    assert kinds(machine) == ["WRITE_AFTER_READ"]


def test_a_warp_synchronous_reduction_needs_every_syncwarp(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    for half in (16, 8, 4, 2, 1):
        machine.warp_sync(0)
        machine.read(0, row(4 * half, lanes=half), mask=(1 << half) - 1)
        machine.read(0, row(0, lanes=half), mask=(1 << half) - 1)
        machine.warp_sync(0)
        machine.write(0, row(0, lanes=half), mask=(1 << half) - 1)
    assert kinds(machine) == []
    machine.read(0, 0, mask=0b10)
    assert kinds(machine) == ["READ_AFTER_WRITE"]


@pytest.mark.parametrize("nbytes", [1, 2])
def test_neighbouring_bytes_of_a_word_belong_to_different_threads(
    machine: CheckerDriver, nbytes: int
) -> None:
    machine.write(0, row(0, 4), site=1)
    machine.barrier()
    for warp in range(4):
        machine.write(warp, row(nbytes * warp, 4 * nbytes), bytes=nbytes, site=2)
    for warp in range(4):
        machine.read(warp, row(nbytes * warp, 4 * nbytes), bytes=nbytes, site=3)
    assert kinds(machine) == []
    machine.read(0, row(0, 4), site=4)
    assert [found.site for found in machine.launch.findings()] == [4]


def test_records_of_words_are_kept_when_granules_are_split(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.read(1, [3], bytes=1, mask=1, site=2)
    assert [(found.other_site, found.offset) for found in machine.launch.findings()] == [(1, 3)]


def test_atomics_do_not_race_with_atomics_and_do_with_plain_accesses(
    machine: CheckerDriver,
) -> None:
    machine.write(0, row(0))
    machine.barrier()
    for warp in range(4):
        machine.atomic(warp, 0)
    assert kinds(machine) == []
    machine.read(1, 0, mask=1)
    machine.write(2, 0, mask=1)
    assert kinds(machine) == ["READ_AFTER_WRITE", "WRITE_AFTER_WRITE", "WRITE_AFTER_READ"]


def test_an_atomic_races_with_the_plain_write_before_it(machine: CheckerDriver) -> None:
    machine.write(0, 0, mask=1)
    machine.atomic(1, 0, mask=1)
    assert kinds(machine) == ["WRITE_AFTER_WRITE"]


def test_volatile_does_not_order_the_lanes_of_a_warp(machine: CheckerDriver) -> None:
    machine.access(Space.SHARED, Access.STRONG_WRITE, 0, row(0))
    machine.access(Space.SHARED, Access.STRONG_READ, 0, row(0)[::-1])
    assert kinds(machine) == ["READ_AFTER_WRITE"]


def test_lanes_that_write_the_same_word_are_counted_and_reported_only_on_demand() -> None:
    for checks, expected in (
        (ALL_CHECKS, []),
        (ALL_CHECKS | Check.SAME_ADDRESS, ["SAME_ADDRESS_WRITE"]),
    ):
        with Launch() as launch, CheckerDriver(launch, checks=checks) as machine:
            machine.write(0, 0)
            assert launch.kinds() == expected
            assert machine.counts().same_address_writes == 31


def test_another_block_starts_without_records(machine: CheckerDriver) -> None:
    machine.write(0, row(0))
    machine.block(1)
    machine.write(1, row(0))
    assert kinds(machine) == []


def test_a_race_in_a_loop_is_one_finding_with_a_count(machine: CheckerDriver) -> None:
    for _ in range(100):
        machine.write(0, [0], mask=1, site=1)
        machine.read(1, [0], mask=1, site=2)
        machine.barrier()
    assert [found.times for found in machine.launch.findings()] == [100]


def test_the_table_is_bounded_and_says_what_it_dropped() -> None:
    with Launch() as launch, CheckerDriver(launch, sites=1000) as machine:
        for site in range(300):
            machine.write(0, [0], mask=1, site=site)
            machine.read(1, [0], mask=1, site=site)
            machine.barrier()
        assert len(launch.findings()) == 256
        assert launch.c.findings_dropped(launch.handle) == 44


def test_only_the_requested_checks_are_made() -> None:
    with Launch() as launch, CheckerDriver(launch, checks=Check.BOUNDS) as machine:
        machine.write(0, row(0))
        machine.read(1, row(0))
        assert machine.read(0, row(1024 - 64)) == FULL >> 16
        assert launch.kinds() == ["OUT_OF_BOUNDS"]
    with Launch() as launch, CheckerDriver(launch, checks=Check(0)) as machine:
        assert machine.read(0, row(1024 - 64)) == FULL
        assert launch.kinds() == []


def test_an_exited_warp_counts_at_barriers_of_the_whole_block(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.c.exit(machine.handle, 0)
    machine.c.exit(machine.handle, 3)
    machine.barrier([1, 2])
    machine.read(1, row(0), site=2)
    assert kinds(machine) == []


def test_an_exited_warp_does_not_count_at_a_barrier_of_other_warps(machine: CheckerDriver) -> None:
    machine.write(0, row(0), site=1)
    machine.c.exit(machine.handle, 0)
    machine.barrier([1, 2])
    machine.read(1, row(0), site=2)
    assert [(found.site, found.other_site) for found in machine.launch.findings()] == [(2, 1)]


def test_the_last_warp_that_is_left_still_races_with_itself(machine: CheckerDriver) -> None:
    for warp in (1, 2, 3):
        machine.c.exit(machine.handle, warp)
    machine.barrier([0])
    machine.write(0, row(0))
    machine.read(0, row(0)[::-1])
    assert kinds(machine) == ["READ_AFTER_WRITE"]


def test_accesses_in_an_earlier_block_are_ordered_for_warps_that_never_synchronise(
    machine: CheckerDriver,
) -> None:
    machine.write(2, row(0))
    machine.block(1)
    machine.barrier([0, 1])
    machine.write(0, row(0))
    assert kinds(machine) == []
