"""Which warps of a block wait at which barrier when none of them can go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.emulator.run.abi import BARRIERS, WarpRecord


@dataclass(frozen=True)
class BarrierWait:
    """The threads of a block that wait at one barrier."""

    barrier: int
    expected: int  # threads that it waits for; 0: all of the block that have not ended
    threads: int  # that are there
    warps: tuple[int, ...]
    site: int  # of the barrier, where the first of these warps waits


def barrier_waits(warps: int, count: int, warp_bytes: int) -> Iterator[BarrierWait]:
    """Those of the `count` warps whose records, of `warp_bytes` each, begin at the address
    `warps`.
    """
    records = [WarpRecord.from_address(warps + index * warp_bytes) for index in range(count)]
    for barrier in range(BARRIERS):
        here = {index: it for index, it in enumerate(records) if it.arrived[barrier]}
        if here:
            first = next(iter(here.values()))
            yield BarrierWait(
                barrier,
                first.expected[barrier],
                sum(it.arrived[barrier].bit_count() for it in here.values()),
                tuple(here),
                first.waits_at,
            )
