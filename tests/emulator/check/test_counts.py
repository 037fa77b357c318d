"""The cost of accesses: bank conflicts and sectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.check.findings import AccessCounts
from tests.emulator.check.checker_driver import CheckerDriver, on_machine, row


@pytest.fixture
def machine() -> Iterator[CheckerDriver]:
    yield from on_machine(threads=32, shared=32768)


@pytest.mark.parametrize(
    ("addresses", "nbytes", "wavefronts"),
    [
        (row(0), 4, 1),
        ([64] * 32, 4, 1),
        (row(0, 8), 4, 2),
        (row(0, 128), 4, 32),
        (row(0, 132), 4, 1),
        (row(0, 1), 1, 1),
        (row(0, 2), 2, 1),
        (row(0, 8), 8, 2),
        (row(0, 16), 16, 4),
        (row(0, 128), 16, 32),
        (row(0, 144), 16, 4),
        ([128 * lane + 16 * (lane % 8) for lane in range(32)], 16, 4),
        ([128 * (lane % 8) for lane in range(32)], 4, 8),
    ],
)
def test_wavefronts_are_the_most_words_that_one_bank_must_give(
    machine: CheckerDriver, addresses: list[int], nbytes: int, wavefronts: int
) -> None:
    machine.read(0, addresses, bytes=nbytes, site=7)
    counts = machine.counts()
    assert (counts.shared_loads, counts.shared_load_wavefronts, counts.shared_bytes) == (
        1,
        wavefronts,
        32 * nbytes,
    )
    site = machine.site_counts()[7]
    assert (site.requests, site.units, site.bytes) == (1, wavefronts, 32 * nbytes)


@pytest.mark.parametrize(
    ("addresses", "nbytes", "sectors"),
    [
        (row(0), 4, 4),
        (row(4), 4, 5),
        ([0] * 32, 4, 1),
        (row(0, 64), 4, 32),
        (row(0, 16), 16, 16),
        (row(0)[::-1], 4, 4),
        ([128 * (lane % 3) for lane in range(32)], 4, 3),
    ],
)
def test_sectors_are_counted_once_for_a_request(
    machine: CheckerDriver, addresses: list[int], nbytes: int, sectors: int
) -> None:
    x = machine.launch.buffer(8192)
    machine.load(0, [x + address for address in addresses], bytes=nbytes)
    machine.store(0, [x + address for address in addresses], bytes=nbytes)
    machine.global_atomic(0, [x + address for address in addresses], bytes=nbytes)
    counts = machine.counts()
    assert (
        counts.global_load_sectors,
        counts.global_store_sectors,
        counts.global_atomic_sectors,
    ) == (sectors,) * 3
    assert (counts.global_loads, counts.global_stores, counts.global_atomics) == (1, 1, 1)
    assert counts.global_load_bytes == 32 * nbytes


@pytest.mark.parametrize(
    ("addresses", "nbytes", "wavefronts"),
    [
        ([0] * 32, 8, 1),
        ([0] * 32, 16, 2),
        ([16 * (lane // 16) for lane in range(32)], 8, 1),
        ([16 * (lane // 8) for lane in range(32)], 16, 2),
        ([16 * (lane // 2) for lane in range(32)], 8, 2),
        ([16 * (lane // 4) for lane in range(32)], 8, 1),
        ([16 * (lane // 2) for lane in range(32)], 16, 2),
        ([16 * (lane % 8) for lane in range(32)], 8, 2),
        ([16 * (lane % 8) for lane in range(32)], 16, 4),
        ([16 * (lane % 4) for lane in range(32)], 16, 4),
    ],
)
def test_wide_loads_of_neighbours_of_the_same_words_are_merged(
    machine: CheckerDriver, addresses: list[int], nbytes: int, wavefronts: int
) -> None:
    """As measured on an NVIDIA H200: docs/measurements/h200-rates.json, shared_load8 and
    shared_load16.
    """
    machine.read(0, addresses, bytes=nbytes)
    assert machine.counts().shared_load_wavefronts == wavefronts


def test_sectors_that_a_block_loads_again_count_once_for_it_and_copies_do_not_count(
    machine: CheckerDriver,
) -> None:
    x = machine.launch.buffer(1 << 20)
    for start in (0, 0, 4096, 128):
        machine.load(0, row(x + start))
    machine.copy(0, row(0, 16), row(x + 65536, 16))
    counts = machine.counts()
    assert (counts.block_sectors, counts.launch_sectors) == (12, 12)
    assert (counts.global_load_sectors, counts.async_sectors, counts.async_wavefronts) == (
        16 + 16,
        16,
        4,
    )
    machine.block(1)
    machine.load(0, row(x))
    machine.load(0, row(x + 8192))
    counts = machine.counts()
    assert (counts.block_sectors, counts.launch_sectors) == (20, 16)


def test_many_sectors_are_all_remembered(machine: CheckerDriver) -> None:
    x = machine.launch.buffer(1 << 23)
    for _ in range(2):
        for start in range(0, 1 << 23, 2048 * 32):
            machine.load(0, row(x + start, 2048))
    assert machine.counts().block_sectors == (1 << 23) // 2048


def test_counts_of_two_checkers_add_up() -> None:
    one, two = (
        AccessCounts(shared_loads=1, barriers=2),
        AccessCounts(shared_loads=3, global_loads=1),
    )
    assert one + two == AccessCounts(shared_loads=4, barriers=2, global_loads=1)
