"""From what the emulator noted during a launch to counts: executions of code by warps, accesses of
checked mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evoengine.emulator.check.findings import AccessCounts
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.timing_model.counts import Counts, Piece, Tally
from evoengine.emulator.timing_model.instruction_mix import BlockMix, mix

if TYPE_CHECKING:
    from evoengine.emulator.device import LaunchReport

SECTOR_BYTES = 32


def counts_of(fast: LaunchReport, checked: LaunchReport, *, unique_bytes: float = 0.0) -> Counts:
    """What a launch did: `fast` is its report for the whole grid, `checked` one in checked mode of
    some of its blocks.

    `unique_bytes` of global memory that the whole grid touches. Raises ValueError where `checked`
    counted no accesses.
    """
    if checked.accesses is None:
        raise ValueError("expected a report of checked mode, got one without counts of accesses")
    times = fast.counters[:, 0].tolist()
    code = [
        (mix(node.instructions, repeats=position in node.successors), times[position])
        for position, node in enumerate(fast.lowered.flow.nodes)
    ]
    counts = tallied(
        code, blocks=fast.blocks_run, warps=fast.blocks_run * fast.warps, unique_bytes=unique_bytes
    )
    return with_accesses(
        with_works(counts, fast.works.tolist()), checked.accesses, checked.blocks_run
    )


def executed(
    code: Iterable[tuple[Sequence[Instruction], float]],
    *,
    blocks: float,
    warps: float,
    unique_bytes: float = 0.0,
) -> Counts:
    """Counts of instructions and chains, from (straight-line code, how many warps in all went
    through it).

    `blocks` that were run, and `warps` in all of them; `unique_bytes` of global memory that the
    whole grid touches.
    """
    mixes = ((mix(instructions), times) for instructions, times in code)
    return tallied(mixes, blocks=blocks, warps=warps, unique_bytes=unique_bytes)


def tallied(
    code: Iterable[tuple[BlockMix, float]],
    *,
    blocks: float,
    warps: float,
    unique_bytes: float = 0.0,
) -> Counts:
    """As `executed`, from the mix of each piece of code."""
    tally = Tally()
    pieces = []
    for item, times in code:
        if times:
            tally.add(item.instructions, item.flops, item.delays, times)
            pieces.append(
                Piece(
                    times, item.instructions, item.flops, item.delays, item.wavefronts, item.sectors
                )
            )
    return Counts(
        blocks=blocks,
        warps=warps,
        instructions=tally.instructions,
        flops=tally.flops,
        delays=tally.delays,
        unique_bytes=unique_bytes,
        pieces=tuple(pieces),
    )


def with_works(counts: Counts, works: Sequence[float]) -> Counts:
    """`counts` with the instructions of the block that had most; `works` of each block in any unit,
    such as instructions of PTX.
    """
    whole = sum(works)
    return (
        replace(counts, most_issued=counts.issued / counts.blocks * max(works) * len(works) / whole)
        if whole
        else counts
    )


def with_accesses(counts: Counts, accesses: AccessCounts, blocks: float) -> Counts:
    """`counts` with the traffic of `blocks` blocks that ran in checked mode, scaled to as many as
    were counted.
    """
    factor = counts.blocks / blocks
    shared = (
        accesses.shared_load_wavefronts
        + accesses.shared_store_wavefronts
        + accesses.async_wavefronts
    )
    return replace(
        counts,
        shared_wavefronts=factor * shared,
        load_requests=factor * max(0, accesses.global_loads - accesses.async_copies),
        store_requests=factor * accesses.global_stores,
        load_sectors=factor * (accesses.global_load_sectors - accesses.async_sectors),
        store_sectors=factor * (accesses.global_store_sectors + accesses.global_atomic_sectors),
        copy_sectors=factor * accesses.async_sectors,
        block_sectors=factor * accesses.block_sectors,
        common_sectors=max(0.0, (accesses.block_sectors - accesses.launch_sectors) / (blocks - 1))
        if blocks > 1
        else 0.0,
        local_sectors=factor * accesses.local_bytes / SECTOR_BYTES,
        atomics=factor * accesses.global_atomics,
    )
