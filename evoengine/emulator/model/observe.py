"""From what the emulator noted during a launch to counts: executions of code by warps, accesses of checked mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evoengine.emulator.check.findings import AccessCounts
from evoengine.emulator.model.counts import Counts, Tally
from evoengine.emulator.model.mix import mix
from evoengine.emulator.ptx.program import Instruction

SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128


def executed(code: Iterable[tuple[Sequence[Instruction], float]], *, blocks: float, warps: float, unique_bytes: float = 0.0) -> Counts:
    """Counts of instructions and chains, from (straight-line code, how many warps in all went through it).

    `blocks` that were run, and `warps` in all of them; `unique_bytes` of global memory that the whole grid touches.
    """
    tally = Tally()
    for instructions, times in code:
        if times:
            item = mix(instructions)
            tally.add(item.instructions, item.flops, item.delays, times)
    return Counts(
        blocks=blocks, warps=warps, instructions=tally.instructions, flops=tally.flops, delays=tally.delays, unique_bytes=unique_bytes
    )


def with_accesses(counts: Counts, accesses: AccessCounts, blocks: float) -> Counts:
    """`counts` with the traffic of `blocks` blocks that ran in checked mode, scaled to as many as were counted."""
    factor = counts.blocks / blocks
    shared = accesses.shared_load_wavefronts + accesses.shared_store_wavefronts + accesses.async_bytes / WAVEFRONT_BYTES
    return replace(
        counts,
        shared_wavefronts=factor * shared,
        load_requests=factor * accesses.global_loads,
        store_requests=factor * accesses.global_stores,
        load_sectors=factor * accesses.global_load_sectors,
        store_sectors=factor * (accesses.global_store_sectors + accesses.global_atomic_sectors),
        copy_sectors=factor * accesses.async_bytes / SECTOR_BYTES,
        local_sectors=factor * accesses.local_bytes / SECTOR_BYTES,
        atomics=factor * accesses.global_atomics,
    )
