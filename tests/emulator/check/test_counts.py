"""What accesses cost: bank conflicts and sectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evoengine.emulator.check.findings import AccessCounts
from tests.emulator.check.machine import Machine, on_machine, row


@pytest.fixture
def machine() -> Iterator[Machine]:
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
    machine: Machine, addresses: list[int], nbytes: int, wavefronts: int
) -> None:
    machine.read(0, addresses, bytes=nbytes, site=7)
    counts = machine.counts()
    assert (counts.shared_loads, counts.shared_load_wavefronts, counts.shared_bytes) == (1, wavefronts, 32 * nbytes)
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
def test_sectors_are_counted_once_for_a_request(machine: Machine, addresses: list[int], nbytes: int, sectors: int) -> None:
    x = machine.launch.buffer(8192)
    machine.load(0, [x + address for address in addresses], bytes=nbytes)
    machine.store(0, [x + address for address in addresses], bytes=nbytes)
    machine.global_atomic(0, [x + address for address in addresses], bytes=nbytes)
    counts = machine.counts()
    assert (counts.global_load_sectors, counts.global_store_sectors, counts.global_atomic_sectors) == (sectors,) * 3
    assert (counts.global_loads, counts.global_stores, counts.global_atomics) == (1, 1, 1)
    assert counts.global_load_bytes == 32 * nbytes


def test_counts_of_two_checkers_add_up() -> None:
    one, two = AccessCounts(shared_loads=1, barriers=2), AccessCounts(shared_loads=3, global_loads=1)
    assert one + two == AccessCounts(shared_loads=4, barriers=2, global_loads=1)
