"""Global memory: races within a block and between blocks, accesses out of bounds and uninitialised
reads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack

import pytest

from evoengine.emulator.check.findings import DATA, POLL, Access, FindingKind, Space
from tests.emulator.check.checker_driver import FULL, GLOBAL, CheckerDriver, Launch, row


@pytest.fixture
def launch() -> Iterator[Launch]:
    with Launch(blocks=8) as launch:
        yield launch


@pytest.fixture
def machine(launch: Launch) -> Iterator[CheckerDriver]:
    with CheckerDriver(launch, threads=64) as machine:
        yield machine


def test_warps_of_a_block_race_without_a_barrier_and_not_with_one(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    machine.store(0, row(x), site=1)
    machine.barrier()
    machine.load(1, row(x), site=2)
    assert launch.kinds() == []
    machine.store(0, row(x), site=3)
    machine.load(1, row(x), site=4)
    assert [(f.kind.name, f.site, f.other_site) for f in launch.findings()] == [
        ("WRITE_AFTER_READ", 3, 2),
        ("READ_AFTER_WRITE", 4, 3),
    ]


def test_in_place_shift_without_a_barrier_is_found_between_lanes_and_between_warps(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    for warp in range(2):
        machine.load(warp, row(x + 128 * warp), site=1)
        machine.load(warp, row(x + 128 * warp + 4), site=2)
        machine.warp_sync(warp)
        machine.store(warp, row(x + 128 * warp), site=3)
    assert [(f.kind.name, f.thread, f.other_thread, f.offset) for f in launch.findings()] == [
        ("WRITE_AFTER_READ", 32, 31, 128)
    ]


def test_two_blocks_that_write_the_same_bytes_race(launch: Launch, machine: CheckerDriver) -> None:
    x = launch.buffer(4096)
    machine.store(0, row(x), site=1)
    machine.block(3)
    machine.store(0, row(x + 64), site=1)
    (found,) = launch.findings()
    assert (found.kind, found.block, found.other_block, found.offset, found.times) == (
        FindingKind.WRITE_AFTER_WRITE,
        3,
        0,
        64,
        16,
    )


@pytest.mark.parametrize("first", ["load", "store"])
def test_a_block_that_reads_what_another_writes_races_in_either_order(
    launch: Launch, machine: CheckerDriver, first: str
) -> None:
    x = launch.buffer(4096)
    steps = [machine.load, machine.store] if first == "load" else [machine.store, machine.load]
    for block, step in enumerate(steps):
        machine.block(block)
        step(0, row(x))
    assert launch.kinds() == ["WRITE_AFTER_READ" if first == "load" else "READ_AFTER_WRITE"]


def test_blocks_may_read_the_same_and_write_apart(launch: Launch, machine: CheckerDriver) -> None:
    x, y = launch.buffer(4096), launch.buffer(4096)
    for block in range(8):
        machine.block(block)
        machine.load(0, row(x))
        machine.store(0, row(y + 128 * block))
    assert launch.kinds() == []


@pytest.mark.parametrize("nbytes", [1, 2])
def test_neighbouring_bytes_may_be_written_by_different_blocks(
    launch: Launch, machine: CheckerDriver, nbytes: int
) -> None:
    x = launch.buffer(4096)
    for block in range(4 // nbytes):
        machine.block(block)
        machine.store(0, row(x + nbytes * block, 4), bytes=nbytes)
    assert launch.kinds() == []
    machine.block(7)
    machine.load(0, row(x, 4), bytes=nbytes, site=9)
    assert [(f.other_block, f.site) for f in launch.findings()] == [(0, 9)]


def test_atomics_of_many_blocks_do_not_race(launch: Launch, machine: CheckerDriver) -> None:
    x = launch.buffer(4096)
    for block in range(8):
        machine.block(block)
        for warp in range(2):
            machine.global_atomic(warp, x)
    assert launch.kinds() == []


def test_a_plain_store_races_with_another_blocks_atomic(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    machine.global_atomic(0, x)
    machine.block(1)
    machine.store(0, [x], mask=1)
    assert launch.kinds() == ["WRITE_AFTER_WRITE"]


def last_block_pattern(launch: Launch, machine: CheckerDriver, *, fence: bool) -> list[str]:
    """Every block leaves a partial sum and counts itself; the last one reads all of them and resets
    the counter.
    """
    partial, counter = launch.buffer(4096), launch.buffer(4)
    for block in range(8):
        machine.block(block)
        machine.store(0, [partial + 4 * block], mask=1)
        if fence:
            machine.fence(0)
        machine.global_atomic(0, [counter], mask=1)
        machine.barrier()
    machine.load(0, row(partial, lanes=8), mask=0xFF)
    machine.store(0, [counter], mask=1)
    return launch.kinds()


def test_the_last_block_may_read_what_the_others_published(
    launch: Launch, machine: CheckerDriver
) -> None:
    assert last_block_pattern(launch, machine, fence=True) == []


def test_the_last_block_may_not_without_the_threadfence(
    launch: Launch, machine: CheckerDriver
) -> None:
    assert last_block_pattern(launch, machine, fence=False) == ["READ_AFTER_WRITE"]


def test_what_is_written_after_the_publication_is_not_published(
    launch: Launch, machine: CheckerDriver
) -> None:
    x, flag = launch.buffer(4096), launch.buffer(4)
    machine.fence(0)
    machine.global_atomic(0, [flag], mask=1)
    machine.store(0, row(x))
    machine.block(1)
    machine.global_atomic(0, [flag], mask=1)
    machine.load(0, row(x))
    assert launch.kinds() == ["READ_AFTER_WRITE"]


def test_a_volatile_flag_publishes_like_an_atomic(launch: Launch, machine: CheckerDriver) -> None:
    x, flag = launch.buffer(4096), launch.buffer(4)
    machine.store(0, row(x))
    machine.fence(0)
    machine.access(Space.GLOBAL, Access.STRONG_WRITE, 0, [flag], mask=1)
    machine.block(1)
    machine.access(Space.GLOBAL, Access.STRONG_READ, 0, [flag], mask=1)
    machine.load(0, row(x))
    assert launch.kinds() == []


def test_a_plain_poll_of_another_blocks_atomic_is_allowed(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    for block in range(3):
        machine.block(block)
        machine.load(0, [x], mask=1)
        machine.global_atomic(0, [x], mask=1)
    assert launch.kinds() == []


def test_the_next_launch_is_ordered_after_this_one_and_keeps_what_was_written(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096, initialised=False)
    machine.store(0, row(x))
    launch.c.launch_next(launch.handle, 8)
    machine.block(5)
    machine.load(1, row(x))
    machine.store(0, row(x + 256))
    assert launch.kinds() == []
    machine.load(0, row(x + 512))
    assert launch.kinds() == ["UNINITIALISED"]


def test_two_checkers_of_a_launch_see_each_others_blocks(launch: Launch) -> None:
    x = launch.buffer(4096)
    with CheckerDriver(launch) as one, CheckerDriver(launch) as two:
        one.block(0)
        two.block(1)
        one.store(0, row(x))
        two.store(0, row(x))
    assert [(f.block, f.other_block) for f in launch.findings()] == [(1, 0)]


@pytest.mark.parametrize(
    ("place", "buffer", "offset", "distance"),
    [
        (1000, 0, 1000, 4),
        (-4, 0, -4, -4),
        (998, 0, 998, 2),
        (4096 * 2 - 8, 1, -8, -8),
        (4096 * 2 + 64, 1, 64, 4),
    ],
)
def test_an_access_out_of_bounds_names_the_nearest_buffer_and_the_distance(
    launch: Launch, machine: CheckerDriver, place: int, buffer: int, offset: int, distance: int
) -> None:
    first = launch.buffer(1000)
    assert launch.buffer(64) - first == 8192
    assert machine.load(0, [first + place], mask=1) == 0
    (found,) = launch.findings()
    assert (found.kind, found.buffer, found.offset, found.distance) == (
        FindingKind.OUT_OF_BOUNDS,
        buffer,
        offset,
        distance,
    )


def test_only_the_lanes_out_of_bounds_are_stopped(launch: Launch, machine: CheckerDriver) -> None:
    x = launch.buffer(100)
    assert machine.store(0, row(x)) == (1 << 25) - 1


def test_without_any_buffer_the_address_is_named(launch: Launch, machine: CheckerDriver) -> None:
    machine.load(0, [64], mask=1)
    assert [(f.buffer, f.offset) for f in launch.findings()] == [(-1, 64)]


def test_a_vector_must_be_aligned_to_its_size(launch: Launch, machine: CheckerDriver) -> None:
    x = launch.buffer(4096)
    assert machine.load(0, row(x + 4, 16), bytes=16) == 0
    assert [(f.kind.name, f.offset, f.times) for f in launch.findings()] == [("MISALIGNED", 4, 32)]


def test_scratch_is_uninitialised_until_written_byte_by_byte(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096, initialised=False)
    machine.store(0, row(x, 2), bytes=2)
    machine.load(0, row(x, 2), bytes=2)
    assert launch.kinds() == []
    machine.load(0, [x + 62 + 2], mask=1, bytes=4)
    (found,) = launch.findings()
    assert (found.kind, found.offset) == (FindingKind.UNINITIALISED, 64)


def test_an_unaligned_buffer_is_checked_to_its_last_byte(
    launch: Launch, machine: CheckerDriver
) -> None:
    launch.c.buffer(launch.handle, GLOBAL + (1 << 20) + 4, 8200, 0, 5)
    x = GLOBAL + (1 << 20) + 4
    for start in range(0, 8192, 128):
        assert machine.store(0, row(x + start)) == FULL
    assert machine.store(0, [x + 8196], mask=1) == 1
    assert machine.store(0, [x + 8200], mask=1) == 0
    assert launch.kinds() == ["OUT_OF_BOUNDS"]


def test_memory_beyond_the_shadow_budget_is_counted(launch: Launch, machine: CheckerDriver) -> None:
    x = launch.buffer(64 << 20)
    for page in range(0, 64 << 20, 32 * 4096):
        machine.load(0, row(x + page, 4096))
    assert 0 < launch.c.unchecked_bytes(launch.handle) < 64 << 20
    assert machine.load(0, [x + (64 << 20)], mask=1) == 0
    assert launch.kinds() == ["OUT_OF_BOUNDS"]


def test_checkers_on_several_host_threads_agree_on_one_shadow() -> None:
    blocks, mine, threads = 64, 128, 4
    with Launch(blocks) as launch, ExitStack() as open_machines:
        x, y, counter = (
            launch.buffer(blocks * mine, initialised=False),
            launch.buffer(mine),
            launch.buffer(4),
        )
        machines = [
            open_machines.enter_context(CheckerDriver(launch, threads=32)) for _ in range(threads)
        ]

        def run(index: int) -> None:
            for block in range(index, blocks, threads):
                machines[index].block(block)
                machines[index].load(0, row(y))
                machines[index].store(0, row(x + mine * block, 4))
                machines[index].warp_sync(0)
                machines[index].store(0, row(x + mine * block, 1), bytes=1)
                machines[index].global_atomic(0, counter)
                machines[index].store(0, [y + 4 * (block % 32)], mask=1, site=1)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(threads)))
        assert {found.buffer for found in launch.findings()} == {1}


def test_published_data_is_read_safely_only_by_a_block_that_read_a_flag(
    launch: Launch, machine: CheckerDriver
) -> None:
    x, flag = launch.buffer(4096), launch.buffer(4)
    machine.store(0, row(x))
    machine.fence(0)
    machine.global_atomic(0, [flag], mask=1)
    machine.block(1)
    machine.load(0, row(x))
    assert launch.kinds() == ["READ_AFTER_WRITE"]


def test_lanes_that_store_to_the_same_word_in_one_instruction_do_not_race(
    launch: Launch, machine: CheckerDriver
) -> None:
    machine.store(0, launch.buffer(4096))
    assert launch.kinds() == []


def test_words_that_were_written_can_be_read_byte_by_byte(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096, initialised=False)
    machine.store(0, row(x))
    machine.barrier()
    machine.load(1, row(x, 1), bytes=1)
    assert launch.kinds() == []
    machine.load(1, [x + 128], bytes=1, mask=1)
    assert launch.kinds() == ["UNINITIALISED"]


def read_back(
    launch: Launch,
    machine: CheckerDriver,
    writing: Access,
    reading: int,
    *,
    fence: bool,
    mine: bool = False,
) -> list[str]:
    """A block writes a word strongly and counts itself; another counts itself, perhaps after
    writing as well, and reads the word.
    """
    x, counter = launch.buffer(4096), launch.buffer(4)
    for block in range(2):
        machine.block(block)
        if block == 0 or mine:
            machine.access(Space.GLOBAL, writing, 0, [x], mask=1, site=1)
        if fence:
            machine.fence(0)
        machine.barrier()
        machine.global_atomic(0, [counter], mask=1)
        machine.barrier()
    machine.c.access(machine.handle, 0, 1, Space.GLOBAL, reading, 4, (ctypes.c_uint64 * 32)(x), 2)
    return launch.kinds()


@pytest.mark.parametrize("mine", [False, True])
@pytest.mark.parametrize("reading", [Access.READ, Access.STRONG_READ])
@pytest.mark.parametrize("writing", [Access.ATOMIC, Access.STRONG_WRITE])
def test_data_written_by_strong_stores_needs_a_fence_too(
    launch: Launch, machine: CheckerDriver, writing: Access, reading: Access, mine: bool
) -> None:
    assert read_back(launch, machine, writing, reading | DATA, fence=False, mine=mine) == [
        "READ_AFTER_WRITE"
    ]


@pytest.mark.parametrize("reading", [Access.READ | DATA, Access.STRONG_READ | DATA])
@pytest.mark.parametrize("writing", [Access.ATOMIC, Access.STRONG_WRITE])
def test_with_the_fence_it_is_ordered(
    launch: Launch, machine: CheckerDriver, writing: Access, reading: int
) -> None:
    assert read_back(launch, machine, writing, reading, fence=True, mine=True) == []


@pytest.mark.parametrize("reading", [Access.READ, Access.STRONG_READ])
def test_a_value_that_controls_something_may_be_read_without_a_fence(
    launch: Launch, machine: CheckerDriver, reading: Access
) -> None:
    assert read_back(launch, machine, Access.ATOMIC, reading, fence=False) == []


def test_atomics_of_other_blocks_in_an_earlier_launch_are_ordered(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    for block in range(2):
        machine.block(block)
        machine.global_atomic(0, [x], mask=1)
    machine.barrier()
    machine.c.launch_next(launch.handle, 2)
    machine.block(0)
    machine.global_atomic(0, [x], mask=1)
    machine.c.access(
        machine.handle, 0, 1, Space.GLOBAL, Access.READ | DATA, 4, (ctypes.c_uint64 * 32)(x), 2
    )
    assert launch.kinds() == []


def test_a_poll_before_an_atomic_does_not_race_within_a_block(
    launch: Launch, machine: CheckerDriver
) -> None:
    x = launch.buffer(4096)
    for warp in range(2):
        machine.c.access(
            machine.handle,
            warp,
            1,
            Space.GLOBAL,
            Access.READ | POLL,
            4,
            (ctypes.c_uint64 * 32)(x),
            2,
        )
        machine.global_atomic(warp, [x], mask=1)
    assert launch.kinds() == []
    machine.load(0, [x], mask=1)
    assert launch.kinds() == ["READ_AFTER_WRITE"]


def test_atomic_operations_are_recorded_in_the_order_in_which_they_are_executed(
    launch: Launch, machine: CheckerDriver
) -> None:
    """The block that counts itself last may reset the counter: no other has it after that one."""
    counter = launch.buffer(4)
    with CheckerDriver(launch, threads=64) as other, ThreadPoolExecutor(1) as pool:
        machine.block(1)
        other.block(0)
        machine.fence(0)
        other.fence(0)
        other.global_atomic(0, counter, mask=1, performed=False)
        begun = pool.submit(machine.global_atomic, 0, counter, mask=1)
        assert not wait([begun], timeout=0.2).done, "it overtook one that was not executed yet"
        other.c.performed(other.handle)
        begun.result()
        machine.store(0, counter, mask=1)
    assert launch.kinds() == []


@pytest.mark.parametrize("polls", [True, False])
def test_a_block_that_has_read_a_flag_may_reset_it_plainly(
    launch: Launch, machine: CheckerDriver, polls: bool
) -> None:
    flag, another = launch.buffer(4), launch.buffer(4)
    with CheckerDriver(launch, threads=64) as other:
        other.block(0)
        machine.block(1)
        other.fence(0)
        other.access(Space.GLOBAL, Access.STRONG_WRITE, 0, flag, mask=1)
        machine.access(Space.GLOBAL, Access.STRONG_READ, 0, flag if polls else another, mask=1)
        machine.store(0, flag, mask=1)
    assert launch.kinds() == ([] if polls else ["WRITE_AFTER_WRITE"])
