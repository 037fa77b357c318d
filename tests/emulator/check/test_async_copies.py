"""cp.async: bytes are available after the thread has waited, and to other threads after a barrier
after that.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.check.findings import NOT_COMMITTED, NOT_WAITED, FindingKind
from tests.emulator.check.checker_driver import FULL, CheckerDriver, Launch, row


@pytest.fixture
def machine() -> Iterator[CheckerDriver]:
    with Launch() as launch:
        launch.buffer(65536)
        with CheckerDriver(launch, threads=64, shared=8192) as machine:
            yield machine


X = 1 << 40


def copy_tile(machine: CheckerDriver, offset: int, site: int = 1) -> None:
    for warp in range(2):
        machine.copy(
            warp, row(offset + 512 * warp, 16), row(X + offset + 512 * warp, 16), site=site
        )
        machine.commit(warp)


def use_tile(machine: CheckerDriver, offset: int, site: int = 2) -> None:
    for warp in range(2):
        machine.read(warp, row(offset + 512 * (warp ^ 1), 16), bytes=16, site=site)


def wait(machine: CheckerDriver, pending: int) -> None:
    for warp in range(2):
        machine.wait(warp, pending)


def test_waiting_and_a_barrier_make_a_copy_readable_for_all(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    wait(machine, 0)
    machine.barrier()
    use_tile(machine, 0)
    assert machine.launch.kinds() == []


def test_reading_before_waiting_is_found_even_by_the_thread_itself(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    machine.read(0, row(0, 16), bytes=16, site=2)
    (found,) = machine.launch.findings()
    assert (found.kind, found.thread, found.other_thread, found.site, found.other_site) == (
        FindingKind.ASYNC_READ,
        0,
        0,
        2,
        1,
    )


def test_a_barrier_does_not_replace_waiting(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    machine.barrier()
    use_tile(machine, 0)
    assert machine.launch.kinds() == ["ASYNC_READ"]


def test_waiting_does_not_replace_a_barrier(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    wait(machine, 0)
    machine.read(0, row(0, 16), bytes=16)
    assert machine.launch.kinds() == []
    use_tile(machine, 0)
    assert machine.launch.kinds() == ["READ_AFTER_WRITE"]


def pipeline(machine: CheckerDriver, pending: int) -> list[str]:
    """Two stages: while one tile is used the next is under way."""
    copy_tile(machine, 0)
    for step in range(4):
        copy_tile(machine, 1024 * ((step + 1) % 2))
        wait(machine, pending)
        machine.barrier()
        use_tile(machine, 1024 * (step % 2))
        machine.barrier()
    return machine.launch.kinds()


def test_a_pipeline_of_two_stages_waits_for_all_but_one_group(machine: CheckerDriver) -> None:
    assert pipeline(machine, 1) == []


def test_waiting_for_one_group_too_few_is_found(machine: CheckerDriver) -> None:
    assert "ASYNC_READ" in pipeline(machine, 2)


def test_copying_over_a_tile_that_others_still_read_is_a_race(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    wait(machine, 0)
    machine.barrier()
    use_tile(machine, 0)
    copy_tile(machine, 0, site=7)
    assert [(f.kind.name, f.site) for f in machine.launch.findings()] == [("WRITE_AFTER_READ", 7)]


def test_writing_where_a_copy_is_pending_is_found(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    machine.barrier()
    machine.write(0, row(0), site=5)
    assert [(f.kind.name, f.site) for f in machine.launch.findings()] == [("ASYNC_WRITE", 5)]


def test_copies_that_were_not_committed_are_not_waited_for(machine: CheckerDriver) -> None:
    machine.copy(0, row(0, 16), row(X, 16))
    machine.wait(0, 0)
    machine.read(0, row(0, 16), bytes=16)
    assert [(f.kind.name, f.distance) for f in machine.launch.findings()] == [
        ("ASYNC_READ", NOT_COMMITTED)
    ]
    machine.commit(0)
    machine.wait(0, 0)
    machine.read(0, row(0, 16), bytes=16, site=9)
    assert machine.launch.kinds() == ["ASYNC_READ"]


@pytest.mark.parametrize("later", [0, 1, 3])
def test_a_copy_in_flight_says_how_many_groups_the_last_wait_may_leave(
    machine: CheckerDriver, later: int
) -> None:
    for tile in range(later + 1):
        copy_tile(machine, 1024 * tile)
    wait(machine, later + 1)
    copy_tile(machine, 6144)  # committed after the wait: it does not change what that must be
    machine.read(0, row(0, 16), bytes=16, site=2)
    (found,) = machine.launch.findings()
    assert (found.kind, found.distance) == (FindingKind.ASYNC_READ, later)


def test_a_copy_that_was_committed_and_never_waited_for_says_so(machine: CheckerDriver) -> None:
    wait(machine, 0)
    copy_tile(machine, 0)
    machine.read(0, row(0, 16), bytes=16)
    assert [found.distance for found in machine.launch.findings()] == [NOT_WAITED]


def test_lanes_count_their_groups_each(machine: CheckerDriver) -> None:
    machine.copy(0, row(0, 16), row(X, 16))
    machine.commit(0)
    machine.copy(0, row(512, 16, 16), row(X, 16, 16), mask=0xFFFF)
    machine.commit(0, 0xFFFF)
    machine.wait(0, 1)
    machine.read(0, row(0, 16, 16), bytes=16, mask=0xFFFF)
    assert machine.launch.kinds() == []
    machine.read(0, row(256, 16, 16), bytes=16, mask=0xFFFF0000)
    assert machine.launch.kinds() == ["ASYNC_READ"]


def test_bytes_that_are_not_copied_are_zero_and_their_source_is_not_accessed(
    machine: CheckerDriver,
) -> None:
    beyond = X + 65536
    assert machine.copy(0, row(0, 16), [beyond] * 32, source=0) == FULL
    assert machine.copy(0, row(512, 16), [beyond - 4] * 32, source=4) == FULL
    machine.commit(0)
    machine.wait(0, 0)
    machine.read(0, row(0, 16), bytes=16)
    machine.read(0, row(512, 16), bytes=16)
    assert machine.launch.kinds() == []
    assert machine.copy(0, row(0, 16), [beyond] * 32, source=4) == 0
    assert machine.launch.kinds() == ["OUT_OF_BOUNDS"]


def test_a_copy_beyond_shared_memory_is_stopped(machine: CheckerDriver) -> None:
    assert machine.copy(0, row(8192 - 256, 16), row(X, 16)) == 0xFFFF
    assert [(f.kind.name, f.space.name) for f in machine.launch.findings()] == [
        ("OUT_OF_BOUNDS", "SHARED")
    ]


def test_copies_pending_at_the_end_are_not_a_finding_and_do_not_reach_the_next_block(
    machine: CheckerDriver,
) -> None:
    copy_tile(machine, 0)
    machine.block(1)
    for warp in range(2):
        machine.write(warp, row(512 * warp, 16), bytes=16)
    machine.barrier()
    use_tile(machine, 0)
    assert machine.launch.kinds() == []


def test_copies_are_counted(machine: CheckerDriver) -> None:
    copy_tile(machine, 0)
    counts = machine.counts()
    assert (
        counts.async_copies,
        counts.async_bytes,
        counts.global_load_bytes,
        counts.global_load_sectors,
    ) == (2, 1024, 1024, 32)


@pytest.mark.parametrize("source", [3, 5, 11, 16])
def test_a_part_of_a_source_may_cross_pages_of_the_shadow(
    machine: CheckerDriver, source: int
) -> None:
    machine.copy(
        0, row(0, 16), [X + 4096 * (1 + lane % 8) - 2 for lane in range(32)], source=source
    )
    assert machine.counts().async_copies == 1
