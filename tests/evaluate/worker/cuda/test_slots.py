"""Slots and their addresses, over memory files that stand for the driver's memory."""

from __future__ import annotations

import os
import random

import pytest

from evoengine.evaluate.worker.cuda.harness.virtual_memory import (
    PAGE_BYTES,
    AddressRange,
    PhysicalMemory,
    VirtualMemoryError,
    pages,
)
from evoengine.evaluate.worker.cuda.slots import (
    ALIGN_BYTES,
    GUARD_BYTES,
    SLACK_BYTES,
    Place,
    Slot,
    SlotPool,
    slot_size,
    somewhere,
)
from tests.evaluate.worker.cuda.host_device import HostDriver, host_bytes, install


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> HostDriver:
    return install(monkeypatch)


@pytest.fixture
def pool(driver: HostDriver) -> SlotPool:
    return SlotPool(0, AddressRange(0), 1 << 40)


def spans(driver: HostDriver) -> list[tuple[int, int]]:
    """First and last address of everything that is mapped, in order."""
    return sorted((address, address + size) for address, size in driver.mapped.items())


def test_a_page_is_free_on_both_sides_of_everything_even_in_a_crowded_range(
    driver: HostDriver,
) -> None:
    crowded = AddressRange(0, size=400 * PAGE_BYTES)
    for number in range(60):
        crowded.map(PhysicalMemory.create(0, (1 + number % 3) * PAGE_BYTES))
    found = spans(driver)
    edges = [crowded.start, *(edge for span in found for edge in span)]
    edges.append(crowded.start + crowded.size)
    gaps = [after - before for before, after in zip(edges[::2], edges[1::2], strict=True)]
    assert len(found) == 60 and min(gaps) >= PAGE_BYTES
    assert all(address % PAGE_BYTES == crowded.start % PAGE_BYTES for address, _ in found)


def test_addresses_are_drawn_anew_and_a_large_range_is_used_whole(driver: HostDriver) -> None:
    memory = PhysicalMemory.create(0, PAGE_BYTES)
    ranges = [AddressRange(0), AddressRange(0)]
    found = [[one.map(memory) - one.start for _ in range(64)] for one in ranges]
    assert not set(found[0]) & set(found[1])
    quarters = {4 * offset // ranges[0].size for offset in (*found[0], *found[1])}
    assert quarters == {0, 1, 2, 3}


def test_what_is_unmapped_makes_room(driver: HostDriver) -> None:
    narrow = AddressRange(0, size=3 * PAGE_BYTES + PAGE_BYTES)
    for _ in range(5):
        narrow.unmap(narrow.map(PhysicalMemory.create(0, PAGE_BYTES)))
    assert driver.mapped == {}


def test_two_mappings_of_one_exported_memory_share_its_bytes(driver: HostDriver) -> None:
    ours, theirs = AddressRange(0), AddressRange(0)
    memory = PhysicalMemory.create(0, PAGE_BYTES)
    descriptor = memory.export()
    first = ours.map(memory)
    second = theirs.map(PhysicalMemory.imported(descriptor, PAGE_BYTES))
    os.close(descriptor)
    host_bytes(first, PAGE_BYTES)[7] = 42
    assert int(host_bytes(second, PAGE_BYTES)[7]) == 42 and first != second


@pytest.mark.parametrize("granularity", [3 * 1024**2, 4 * 1024**2])
def test_a_device_with_other_pages_is_refused(
    monkeypatch: pytest.MonkeyPatch, granularity: int
) -> None:
    install(monkeypatch, HostDriver(granularity))
    with pytest.raises(VirtualMemoryError, match=rf"Granularity \({granularity} bytes\)"):
        AddressRange(0)


def test_smaller_pages_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, HostDriver(granularity=64 * 1024))
    assert AddressRange(0).size > 0


@pytest.mark.parametrize(
    ("size", "whole"),
    [
        (1, 1),
        (PAGE_BYTES - SLACK_BYTES, 1),
        (PAGE_BYTES - SLACK_BYTES + 1, 2),
        (PAGE_BYTES, 2),
        (5 * PAGE_BYTES + 3, 6),
    ],
)
def test_a_slot_is_whole_pages_with_room_to_spare(size: int, whole: int) -> None:
    assert slot_size(size) == whole * PAGE_BYTES == pages(size + SLACK_BYTES)


def test_a_buffer_lies_anywhere_between_guards_aligned_as_cudamalloc_aligns(
    driver: HostDriver,
) -> None:
    size = PAGE_BYTES - SLACK_BYTES - 77
    slot = Slot(1, slot_size(size), 0, PhysicalMemory.create(0, slot_size(size)))
    offsets = [somewhere(slot, size, random.SystemRandom()).offset for _ in range(3000)]
    assert all(offset % ALIGN_BYTES == 0 for offset in offsets)
    first, last = GUARD_BYTES, slot.size - size - GUARD_BYTES
    assert min(offsets) == first and last - ALIGN_BYTES < max(offsets) <= last
    assert len(set(offsets)) == (last - first) // ALIGN_BYTES + 1, "every place is used"


def test_no_two_buffers_share_a_slot_and_the_next_replay_finds_others(pool: SlotPool) -> None:
    sizes = [300, PAGE_BYTES, 300, 5 * PAGE_BYTES] * 4
    replays = [pool.place(sizes) for _ in range(20)]
    for places in replays:
        assert [place.size for place in places] == sizes
        assert len({place.slot.number for place in places}) == len(sizes)
        assert all(fits(place) for place in places)
    firsts = [places[0] for places in replays]
    assert len({place.slot.number for place in firsts}) > 3
    assert len({place.address for place in firsts}) > 15


def fits(place: Place) -> bool:
    end = place.offset + place.size + GUARD_BYTES
    return place.offset >= GUARD_BYTES and place.slot.size == slot_size(place.size) >= end


def test_slots_are_made_once_and_a_quarter_more_than_needed(
    pool: SlotPool, driver: HostDriver
) -> None:
    for _ in range(10):
        pool.place([300] * 8)
    assert len(driver.created) == 10
    assert pool.total_bytes == 10 * PAGE_BYTES == sum(driver.created.values())


def test_what_holds_no_buffer_now_is_known_and_slots_of_other_sizes_once(pool: SlotPool) -> None:
    small = {place.slot for place in pool.place([300] * 8)}
    assert len(pool.idle) == 2 and not small & set(pool.idle)
    large = {place.slot for place in pool.place([5 * PAGE_BYTES] * 4)}
    assert len(pool.idle) == 9 and small < set(pool.idle) and not large & set(pool.idle)
    pool.place([5 * PAGE_BYTES] * 4)
    assert len(pool.idle) == 1, "no replay has used small ones since they were overwritten"


def test_slots_of_other_sizes_are_freed_above_the_limit_and_named_for_the_runner(
    driver: HostDriver,
) -> None:
    pool = SlotPool(0, AddressRange(0), limit_bytes=12 * PAGE_BYTES)
    pool.place([300] * 4)
    assert pool.shrink([5 * PAGE_BYTES]) == [], "the limit is not exceeded"
    large = pool.place([5 * PAGE_BYTES] * 2)
    gone = pool.shrink([5 * PAGE_BYTES])
    assert sorted(gone) == [1, 2, 3, 4, 5]
    assert set(driver.created.values()) == {6 * PAGE_BYTES} == set(driver.mapped.values())
    assert pool.shrink([5 * PAGE_BYTES]) == [], "what the next replay needs stays"
    assert not {place.slot.number for place in large} & set(gone)


def test_a_device_that_is_full_says_so_and_stays_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, HostDriver(memory_bytes=8 * PAGE_BYTES))
    pool = SlotPool(0, AddressRange(0), 1 << 40)
    with pytest.raises(VirtualMemoryError, match="cuMemCreate returns 2") as caught:
        pool.place([300] * 9)
    assert caught.value.out_of_memory
    assert len(pool.place([300] * 6)) == 6
