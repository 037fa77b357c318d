"""What a launch loads and stores on its way through L1, L2 and DRAM, and how long that takes."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.targets import WARP, TargetGpu
from evoengine.emulator.timing_model.counts import SECTOR_BYTES, Counts
from evoengine.emulator.timing_model.occupancy import Occupancy

# from L2 to one SM: Jia et al., arXiv 1903.07486; later papers measure no more
L2_BYTES_PER_CLOCK = 64
# sectors that L2 reads in the time in which it looks up a line, of which lanes that are far from
# one another ask for one sector each: from tests/structures/gather_scalars.cu, case near, and
# csr_product_warp_rows.cu on an H100
SECTORS_OF_LOOKUP = 1.7
# cost of writing a sector relative to reading one: docs/measurements/h200-rates.json, stream_* in
# L2
STORE_COST = 1.9
# achievable share of the data sheet's bandwidth: docs/measurements/h200-rates.json, stream_* in
# DRAM
DRAM_SHARE = 0.92
# part of a cache up to which all that was accessed stays in it; of L2:
# docs/measurements/h200-rates.json, stream_read, has the same speed up to 32 of 50 MiB; between
# that and all of it, an estimate
CACHE_KEEPS = 0.65


@dataclass(frozen=True)
class MemoryTraffic:
    """The mean counts of one block, and the blocks that run beside it; times are in SM clocks."""

    block: Counts
    target: TargetGpu
    blocks: int
    occupancy: Occupancy
    shared_bytes: int
    cold: bool

    @property
    def most_blocks(self) -> int:
        """The number of blocks that the busiest SM runs."""
        return -(-self.blocks // self.target.sms)

    @property
    def resident_blocks(self) -> int:
        """The number of blocks that it runs at the same time."""
        return min(self.most_blocks, self.occupancy.blocks)

    def _from_l2(self) -> float:
        """Sectors of one block from and to L2; sectors that all blocks load count once for each SM
        if they fit L1.
        """
        block = self.block
        fits = block.common_sectors * SECTOR_BYTES <= self._l1_room
        kept = block.common_sectors if fits else 0.0
        return (
            max(0.0, self._missed_loads - kept * (1 - 1 / self.most_blocks))
            + block.store_sectors
            + block.copy_sectors
            + (STORE_COST - 1) * block.store_sectors
            + self.frame_misses * block.local_sectors
        )

    @property
    def _missed_loads(self) -> float:
        """Sectors that a block's loads find in L2 only: each once, and those that L1 has no room
        for again and again, as if loads came in no order.
        """
        loads, distinct = self.block.load_sectors, self.block.block_sectors
        if not 0 < distinct < loads:
            return loads
        return min(
            loads,
            max(distinct + (loads - distinct) * (1.0 - self.held), distinct + self._far_loads),
        )

    @property
    def _far_loads(self) -> float:
        """Sectors of a block that warps load again when L1 has lost them, because all warps of the
        SM have loaded more than it has room for in between.
        """
        between = self._reload_bytes * self.resident_blocks
        return self.block.reloads * _lost(between, max(1.0, self._l1_room))

    @property
    def _reload_bytes(self) -> float:
        """What all warps of a block load, in the mean, before a warp loads a sector again."""
        block = self.block
        if not block.reloads:
            return 0.0
        return block.reload_span / block.reloads * SECTOR_BYTES * max(1.0, block.warps)

    @property
    def held(self) -> float:
        """The part of what a block loads that L1 keeps for the next load, beside local memory."""
        wanted = self.block.block_sectors * SECTOR_BYTES + self._frames_on_sm
        return min(1.0, max(0.0, self._l1_room) / wanted) if wanted else 1.0

    @property
    def _frames_on_sm(self) -> float:
        """Bytes of local memory of all threads that an SM runs at the same time."""
        return WARP * self.block.warps * self.resident_blocks * self.block.frame_bytes

    @property
    def _l1_room(self) -> float:
        """Bytes of an SM that are not shared memory."""
        return self.target.l1_bytes - self.resident_blocks * (
            self.shared_bytes + self.target.shared_reserved
        )

    @property
    def frame_misses(self) -> float:
        """The share of local memory that L1 has no room for, beside shared memory and what is
        loaded from global memory. Arrays are walked from end to end, so that what was used least
        recently goes before it is needed again: of more than has room nothing stays.
        """
        return 1.0 if self.block.frame_bytes and self.held < 1.0 else 0.0

    def _lookups(self) -> float:
        """The time of L2 for lines that loads and atomics of a block ask for in part, beyond that
        for their sectors, in sectors.
        """
        block = self.block
        missed = self._missed_loads / block.load_sectors if block.load_sectors else 0.0
        loads = missed * (SECTORS_OF_LOOKUP * block.load_lines - block.load_sectors)
        atomics = SECTORS_OF_LOOKUP * block.atomic_lines - block.atomic_sectors
        return max(0.0, loads) + max(0.0, atomics)

    def port_clocks(self) -> float:
        """The time in which one block's sectors go between L2 and its SM."""
        return self._from_l2() * SECTOR_BYTES / L2_BYTES_PER_CLOCK

    def l2_clocks(self) -> float:
        """The time that L2 takes for the whole launch."""
        moved = self._from_l2() + self._lookups()
        nanoseconds = self.blocks * moved * SECTOR_BYTES / self.target.l2_gb_s
        return nanoseconds / 1000 * self.target.clocks_per_us

    def dram_clocks(self) -> float:
        """The time that DRAM takes for the whole launch."""
        return (
            (self._beyond_l2 * self._touched_bytes + self._reloaded_bytes)
            / (DRAM_SHARE * self.target.dram_gb_s)
            / 1000
            * self.target.clocks_per_us
        )

    @property
    def _reloaded_bytes(self) -> float:
        """Bytes of DRAM that are loaded again, where all that blocks which run at the same time
        load and store before that is more than L2 keeps.
        """
        block = self.block
        if not block.reloads:
            return 0.0
        stored = 1.0 + block.store_sectors / block.load_sectors if block.load_sectors else 1.0
        running = min(self.blocks, self.target.sms * self.occupancy.blocks)
        between = min(self._reload_bytes * stored * running, self._touched_bytes)
        lost = _lost(between, self.target.l2_bytes)
        return self.blocks * self._far_loads * SECTOR_BYTES * lost

    @property
    def _beyond_l2(self) -> float:
        """The share of what the launch accesses that comes from DRAM. L2 is a cache of lines in
        sets, and in halves: it begins to lose lines before it is full, and keeps none of a buffer
        that is walked from end to end when it is.
        """
        if self.cold:
            return 1.0
        return _lost(self._touched_bytes, self.target.l2_bytes)

    @property
    def _touched_bytes(self) -> float:
        """Bytes of global memory that the launch accesses, and of the local memory of all SMs."""
        sms = min(self.blocks, self.target.sms)
        return self.block.unique_bytes + sms * self._frames_on_sm

    def block_clocks(self) -> float:
        """The time of a block's global memory traffic, when all SMs with blocks share L2 and
        DRAM.
        """
        sms = min(self.blocks, self.target.sms)
        return max(
            self.port_clocks(),
            sms * self.l2_clocks() / self.blocks,
            sms * self.dram_clocks() / self.blocks,
        )

    @property
    def latency(self) -> float:
        """The mean time of an access that finds nothing in L1."""
        latencies = self.target.latencies
        return latencies.l2 + self._beyond_l2 * (latencies.dram - latencies.l2)

    def load_latency(self) -> float:
        """The mean time of a load."""
        latencies, block = self.target.latencies, self.block
        if not block.load_sectors or not block.block_sectors:
            return self.latency
        missed = self._missed_loads / block.load_sectors
        return latencies.l1 + missed * (self.latency - latencies.l1)


def _lost(between: float, room: float) -> float:
    """The share that a cache with so much room has lost of what was accessed so many bytes before;
    it begins to lose lines before it is full.
    """
    return min(1.0, max(0.0, (between / room - CACHE_KEEPS) / (1.0 - CACHE_KEEPS)))
