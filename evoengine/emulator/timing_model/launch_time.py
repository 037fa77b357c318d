"""A modelled time of a launch: what its counts would take on a target. Nothing here is measured.

For the SM with the most blocks it is asked how long each pipe is busy with its share (a bound of
throughput, as in the roofline model), and how long one block takes that has the SM for itself (its
latency): piece by piece of its code, because its barriers and chains keep its warps together, and
in a piece the chain of one warp or the pipe that the warps wait for. Blocks beside it fill its gaps
until a pipe is full: the two are put together, as in Hong and Kim's model (ISCA 2009), with a
smooth maximum. DRAM, L2 and the start of blocks are bounds of the whole device. A launch costs a
constant on top.

    L. Williams e.a., Roofline, CACM 52(4), 2009.
    S. Hong, H. Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level
    Parallelism Awareness, ISCA 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evoengine.emulator.targets import SCHEDULERS, SHARED_BYTES_PER_CLOCK, WARP, TargetGpu
from evoengine.emulator.timing_model.counts import CodePiece, Counts
from evoengine.emulator.timing_model.occupancy import Occupancy, occupancy

SECTOR_BYTES = 32
L2_BYTES_PER_CLOCK = 64  # from L2 to one SM: Jia e.a., arXiv 1903.07486; later papers see no more
# of a sector that is written, in sectors that are read: docs/measurements/h200-rates.json, stream_*
# in L2
STORE_COST = 1.9
# of the bandwidth on the data sheet that is reached: docs/measurements/h200-rates.json, stream_* in
# DRAM
DRAM_SHARE = 0.92
# of one SM to global memory: an assumption, conflicts of addresses not counted
ATOMIC_LANES_PER_CLOCK = 1.0

_SM_WIDE = ("shuffle", "lsu")  # shared by the four quarters of an SM
_OF_QUARTERS = ("fma", "imad", "alu", "half", "mufu", "fp64")


@dataclass(frozen=True)
class Calibration:
    """How sharp the smooth maxima are: 1 adds up, infinity is a plain maximum. The same for every
    kernel and target.

    The defaults order the configurations of docs/measurements/h200-configurations.json well, and so
    do their neighbours; docs/measurements/emulator-model.md says what becomes of a seed that had no
    part in the choice.
    """

    pipes: float = 3.0  # of the pipes among themselves
    latency: float = 1.5  # of the pipes and the latency of a block
    pieces: float = 3.0  # of the pipes and the chain within a piece of code


@dataclass(frozen=True)
class ModelledLaunch:
    """A modelled time in microseconds and what it is made of."""

    us: float
    # how long each pipe alone would take; `latency`: blocks one after the other
    bounds_us: Mapping[str, float]
    # the largest of them; `latency` only where no other is half of it, for the work of the pipes is
    # in it too
    limiter: str
    occupancy: Occupancy
    waves: float  # grid / blocks that the whole device holds at once


DEFAULT = Calibration()


def modelled(
    counts: Counts,
    *,
    target: TargetGpu,
    grid: Sequence[int],
    block: Sequence[int],
    registers: int,
    shared_bytes: int,
    cold: bool = False,
    calibration: Calibration = DEFAULT,
) -> ModelledLaunch:
    """The modelled time of one launch with `counts`, which may be those of a sample of its blocks.

    `registers` are those of one thread, `shared_bytes` static and dynamic ones of a block. `cold`:
    the caches hold nothing of the launch's data. Raises LaunchRefused where no block fits on the
    target.
    """
    blocks = math.prod(grid)
    if counts.blocks <= 0 or blocks < 1:
        raise ValueError(
            f"expected counts of at least one block, got {counts.blocks} blocks and a grid of"
            f" {tuple(grid)}"
        )
    occupancy_ = occupancy(
        target, threads=math.prod(block), registers=registers, shared_bytes=shared_bytes
    )
    launch = _Launch(
        counts.scaled(1.0 / counts.blocks),
        target,
        blocks,
        occupancy_,
        shared_bytes,
        cold,
        calibration,
    )
    clocks = launch.bounds()
    throughput = _smooth(
        (value for name, value in clocks.items() if name != "latency"), calibration.pipes
    )
    bounds = {name: value / target.clocks_per_us for name, value in clocks.items()}
    return ModelledLaunch(
        us=target.launch_us + launch.together(throughput, clocks["latency"]) / target.clocks_per_us,
        bounds_us=bounds,
        limiter=_limiter(bounds),
        occupancy=occupancy_,
        waves=blocks / (target.sms * occupancy_.blocks),
    )


@dataclass(frozen=True)
class _Launch:
    """One block's mean counts on a target; every method answers in clocks of an SM."""

    block: Counts
    target: TargetGpu
    blocks: int
    occupancy_: Occupancy
    shared_bytes: int
    cold: bool
    calibration: Calibration

    @property
    def most_blocks(self) -> int:
        """Blocks that the busiest SM runs."""
        return -(-self.blocks // self.target.sms)

    @property
    def resident_blocks(self) -> int:
        """Blocks that it runs at the same time."""
        return min(self.most_blocks, self.occupancy_.blocks)

    @property
    def skew(self) -> float:
        """What the block that does most does, in mean blocks."""
        return max(1.0, self.block.most_issued / self.block.issued) if self.block.issued else 1.0

    def together(self, throughput: float, latency: float) -> float:
        """A block alone takes its latency; those beside it fill its gaps until a pipe is full."""
        p = self.calibration.latency
        alone = (
            throughput / self.resident_blocks
        )  # its own part of the pipes' work is in its latency
        return float((max(0.0, throughput**p - alone**p) + latency**p) ** (1 / p))

    def bounds(self) -> dict[str, float]:
        heaviest = max(float(self.most_blocks), self.skew)
        clocks = {name: heaviest * value for name, value in self._of_one_block().items()}
        device = {
            "l2": self._l2(),
            "dram": self._dram(),
            "dispatch": self.blocks * self.target.dispatch_ns / 1000 * self.target.clocks_per_us,
        }
        return {name: value for name, value in (clocks | device).items() if value > 0} | {
            "latency": self._latency()
        }

    def _of_one_block(self) -> dict[str, float]:
        block = self.block
        clocks = self._pipes(
            block.instructions, block.flops, self._unevenness(block.warps * self.resident_blocks)
        )
        from_l1 = (
            (block.load_sectors + block.store_sectors + block.local_sectors)
            * SECTOR_BYTES
            / SHARED_BYTES_PER_CLOCK
        )
        # one data path for all three
        clocks["shared"] = (
            block.shared_wavefronts + block.instructions.get("shuffle", 0.0) + from_l1
        )
        clocks["l2_port"] = self._from_l2() * SECTOR_BYTES / L2_BYTES_PER_CLOCK
        clocks["atomic"] = block.atomics / ATOMIC_LANES_PER_CLOCK
        return clocks

    def _pipes(
        self, instructions: Mapping[str, float], flops: Mapping[str, float], uneven: float
    ) -> dict[str, float]:
        """How long each pipe is busy with these instructions of warps that spread over the quarters
        of the SM.
        """
        rates = self.target.rates
        clocks = {
            pipe: uneven * WARP * instructions.get(pipe, 0.0) / rates.of(pipe)
            for pipe in _OF_QUARTERS
        }
        clocks |= {pipe: WARP * instructions.get(pipe, 0.0) / rates.of(pipe) for pipe in _SM_WIDE}
        clocks["issue"] = uneven * sum(instructions.values()) / SCHEDULERS
        clocks["tensor"] = uneven * sum(
            count / self._tensor_rate(kind) for kind, count in flops.items()
        )
        return clocks

    def _tensor_rate(self, kind: str) -> float:
        """Operations a clock. Without a tensor unit for them, fp64 runs on its own pipe, anything
        else as half precision.
        """
        other = 2 * self.target.rates.fp64 if kind == "fp64" else self.target.tensor["f16"]
        return self.target.tensor.get(kind, other)

    @staticmethod
    def _unevenness(warps: float) -> float:
        """How much longer the fullest quarter of an SM takes than the mean of the four."""
        return math.ceil(max(1.0, warps) / SCHEDULERS) * SCHEDULERS / max(1.0, warps)

    def _from_l2(self) -> float:
        """Sectors of one block from L2, and to it, those that all blocks load once for each SM
        where L1 has room for them.
        """
        block = self.block
        room = self.target.l1_bytes - self.resident_blocks * (
            self.shared_bytes + self.target.shared_reserved
        )
        kept = block.common_sectors if block.common_sectors * SECTOR_BYTES <= room else 0.0
        return (
            max(0.0, block.l2_sectors - kept * (1 - 1 / self.most_blocks))
            + (STORE_COST - 1) * block.store_sectors
        )

    def _l2(self) -> float:
        nanoseconds = self.blocks * self._from_l2() * SECTOR_BYTES / self.target.l2_gb_s
        return nanoseconds / 1000 * self.target.clocks_per_us

    def _dram(self) -> float:
        if self._fits_l2 and not self.cold:
            return 0.0
        return (
            self.block.unique_bytes
            / (DRAM_SHARE * self.target.dram_gb_s)
            / 1000
            * self.target.clocks_per_us
        )

    @property
    def _fits_l2(self) -> bool:
        return self.block.unique_bytes <= self.target.l2_bytes

    def _latency(self) -> float:
        """One block after the other in the same place: as many as the busiest SM runs blocks one
        after the other.
        """
        rounds = math.ceil(self.most_blocks / self.occupancy_.blocks)
        return (
            max(rounds, self.skew) * self._one_block_latency()
            + (rounds - 1) * self.target.latencies.block
        )

    def _one_block_latency(self) -> float:
        """A block that has the SM for itself: piece by piece, because barriers and chains keep its
        warps together.
        """
        warps = max(1.0, self.block.warps)
        uneven = self._unevenness(warps)
        of = self._delays(warps)
        code = self.block.code
        at_best = sum(piece.times * piece.wavefronts for piece in code)
        conflicts = max(1.0, self.block.shared_wavefronts / at_best) if at_best else 1.0
        coalesced = sum(piece.times * piece.sectors for piece in code)
        of["sector"] = self._memory_clocks() / coalesced if coalesced else 0.0
        busy = sum(
            piece.times / warps * self._piece(piece, warps, uneven, conflicts, of) for piece in code
        )
        waits = self.block.delays.get("wait", 0.0) / warps
        unplaced = (
            self.block.atomics / ATOMIC_LANES_PER_CLOCK
            + self.block.local_sectors * SECTOR_BYTES / SHARED_BYTES_PER_CLOCK
        )
        return (
            unplaced
            + busy
            + (waits * max(0.0, self._memory_latency - busy / waits) if waits else 0.0)
        )

    def _piece(
        self,
        piece: CodePiece,
        warps: float,
        uneven: float,
        conflicts: float,
        of: Mapping[str, float],
    ) -> float:
        """All warps of a block go through a piece: its chain, or the pipe that has most to do."""
        clocks = [
            warps * value for value in self._pipes(piece.instructions, piece.flops, uneven).values()
        ]
        clocks.append(
            warps * (piece.wavefronts * conflicts + piece.instructions.get("shuffle", 0.0))
        )
        clocks.append(warps * piece.sectors * of["sector"])
        chain = sum(count * of.get(name, 0.0) for name, count in piece.delays.items())
        own = sum(piece.instructions.values())
        return _smooth(
            (_smooth(clocks, self.calibration.pipes), chain + own), self.calibration.pieces
        )

    def _memory_clocks(self) -> float:
        """How long a block needs for its global memory, when as many SMs as there are blocks for
        have their shares of L2 and DRAM.
        """
        sms = min(self.blocks, self.target.sms)
        port = self._from_l2() * SECTOR_BYTES / L2_BYTES_PER_CLOCK
        return max(port, sms * self._l2() / self.blocks, sms * self._dram() / self.blocks)

    @property
    def _memory_latency(self) -> float:
        latencies = self.target.latencies
        return latencies.l2 if self._fits_l2 and not self.cold else latencies.dram

    def _delays(self, warps: float) -> dict[str, float]:
        latencies = self.target.latencies
        of: dict[str, float] = {
            name: getattr(latencies, name)
            for name in ("fixed", "mufu", "fp64", "shuffle", "shared", "tensor")
        }
        of["barrier"] = latencies.barrier + latencies.barrier_warp * warps
        of["global"] = self._global_latency()
        return of

    def _global_latency(self) -> float:
        latencies, block = self.target.latencies, self.block
        if not block.load_sectors or not block.block_sectors:
            return self._memory_latency
        missed = min(1.0, block.block_sectors / block.load_sectors)
        return latencies.l1 + missed * (self._memory_latency - latencies.l1)


def _limiter(bounds: Mapping[str, float]) -> str:
    others = {name: value for name, value in bounds.items() if name != "latency"}
    largest = max(others, key=lambda name: others[name], default="latency")
    return largest if 2 * bounds[largest] >= bounds["latency"] else "latency"


def _smooth(values: Iterable[float], sharpness: float) -> float:
    """At least the largest, more where others are near it."""
    found = list(values)
    most_blocks = max(found, default=0.0)
    if most_blocks <= 0:
        return 0.0
    return float(
        most_blocks
        * math.fsum((value / most_blocks) ** sharpness for value in found) ** (1.0 / sharpness)
    )
