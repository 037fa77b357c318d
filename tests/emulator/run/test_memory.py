"""Device memory: buffers between red zones in one arena."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.run.memory import ALIGN_BYTES, APART_BYTES, RED, DeviceMemory
from evoengine.emulator.run.page_store import CHUNK_BYTES, STORE_BYTES

LIMIT = 1 << 30


@pytest.fixture
def memory() -> Iterator[DeviceMemory]:
    memory = DeviceMemory(LIMIT)
    yield memory
    memory.close()


def test_a_buffer_is_zero_aligned_and_within_the_arena(memory: DeviceMemory) -> None:
    for size in (0, 1, 511, 4096, 1 << 20):
        address = memory.allocate(size)
        assert address % ALIGN_BYTES == 0 and not memory.view(address, size).any()
        assert memory.base < address and address + size < memory.base + (1 << memory.bits)


def test_the_arena_is_aligned_to_its_size(memory: DeviceMemory) -> None:
    assert memory.base % (1 << memory.bits) == 0


def test_a_changed_byte_in_a_red_zone_is_noticed(memory: DeviceMemory) -> None:
    for place in (-1, 100, -4096, 100 + 4095):
        address = memory.allocate(100)
        assert not memory.red_zones_broken(address)
        byte = memory.view(address + place, 1)
        byte[0] = RED ^ 1
        assert memory.red_zones_broken(address)


def test_a_view_is_the_memory_itself(memory: DeviceMemory) -> None:
    address = memory.allocate(16)
    memory.view(address, 16).view(np.float32)[:] = [1, 2, 3, 4]
    assert memory.view(address + 4, 4).view(np.float32)[0] == 2


def test_every_allocation_is_zero_whatever_lay_there_before(
    memory: DeviceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evoengine.emulator.run.memory.secrets.randbelow", lambda _: 7)
    first = memory.allocate(5000, "first")
    second = memory.allocate(5000, "second")
    memory.view(first, 5000)[:] = 7
    memory.free(first)
    assert [item.name for item in memory.buffers.values()] == ["second"]
    again = memory.allocate(5000)
    assert again == first and not memory.view(again, 5000).any()
    memory.free(again)
    memory.free(second)
    assert memory.used_bytes == 0


def test_places_are_drawn_anew_with_unmapped_pages_around(memory: DeviceMemory) -> None:
    places = set()
    for _ in range(30):
        address = memory.allocate(5000)
        places.add(address)
        memory.free(address)
    assert len(places) == 30
    spans = sorted(memory._spans[memory.allocate(9000)] for _ in range(300))
    gaps = [later - start - size for (start, size), (later, _) in pairwise(spans)]
    assert min(gaps) >= APART_BYTES and len(set(gaps)) > 250


def test_large_buffers_get_the_pages_of_freed_ones_at_other_addresses(memory: DeviceMemory) -> None:
    size = 3 * CHUNK_BYTES + 5000
    first = memory.allocate(size)
    memory.view(first, size)[:] = 7
    memory.free(first)
    assert memory.kept_bytes == 3 * CHUNK_BYTES
    second = memory.allocate(size, zeroed=False)
    assert second != first and not memory.kept_bytes
    assert (memory.view(second, size) == 7).mean() > 0.9, "the pages themselves"
    assert not memory.red_zones_broken(second)
    memory.free(second)
    third = memory.allocate(size)
    assert not memory.view(third, size).any(), "zeroed unless it need not be"


def test_pages_of_freed_buffers_are_kept_up_to_a_limit(memory: DeviceMemory) -> None:
    for address in [memory.allocate(STORE_BYTES // 2) for _ in range(2)]:
        memory.free(address)
    kept = memory.kept_bytes
    memory.free(memory.allocate(LIMIT))
    assert STORE_BYTES - 2 * CHUNK_BYTES <= kept <= memory.kept_bytes <= STORE_BYTES


def test_buffers_that_find_no_place_at_random_get_the_lowest_one(
    memory: DeviceMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evoengine.emulator.run.memory.secrets.randbelow", lambda _: 7)
    found = [memory.allocate(100) for _ in range(5)]
    assert len(set(found)) == 5 and found[1:] == sorted(found[1:])


def test_many_buffers_freed_in_any_order_leave_one_free_range(memory: DeviceMemory) -> None:
    before = list(memory._free)
    chance = np.random.default_rng(0)
    alive: list[int] = []
    for _ in range(300):
        if alive and chance.random() < 0.5:
            memory.free(alive.pop(int(chance.integers(len(alive)))))
        else:
            alive.append(memory.allocate(int(chance.integers(20_000))))
    for address in alive:
        memory.free(address)
    assert memory._free == before


@pytest.mark.parametrize("size", [LIMIT + 1, 100 << 30, 1 << 62, -1])
def test_more_memory_than_the_device_has_is_refused(memory: DeviceMemory, size: int) -> None:
    with pytest.raises(LaunchRefused, match=f"scratch of {size} bytes"):
        memory.allocate(size, "scratch")
    assert memory.allocate(LIMIT)  # nothing is lost by it


def test_a_closed_device_gives_nothing_and_takes_nothing_back() -> None:
    memory = DeviceMemory(LIMIT)
    address = memory.allocate(8)
    memory.close()
    memory.close()
    memory.free(address)
    assert not memory.buffers
    with pytest.raises(LaunchRefused, match="the device is closed"):
        memory.allocate(8)


def test_strays_meet_empty_memory_while_surroundings_are_backed(memory: DeviceMemory) -> None:
    address = memory.allocate(100)
    for far in (-(1 << 22), 1 << 22):
        with memory.surroundings():
            beyond = memory.view(address + far, 1)
            assert beyond[0] == 0
            beyond[0] = 7
        with memory.surroundings():
            assert memory.view(address + far, 1)[0] == 0
    assert not memory.red_zones_broken(address)
    memory.view(address, 100)[:] = 1  # the buffer is still there
