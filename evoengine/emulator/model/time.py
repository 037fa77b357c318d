"""A modelled time of a launch: what its counts would take on a target. Nothing here is measured.

For the SM with the most blocks it is asked how long each pipe is busy with its share (a bound of
throughput, as in the roofline model), and how long one warp takes from beginning to end if it
never waits for another one (a bound of latency: the dependent chains of its basic blocks). The two
are put together as in Hong and Kim's model (ISCA 2009) with a smooth maximum: warps enough to
fill the pipes hide the latency, one alone shows all of it, and between the two neither is hidden
whole. DRAM and L2 are bounds of the whole device. A launch costs a constant on top.

    L. Williams e.a., Roofline, CACM 52(4), 2009.
    S. Hong, H. Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level
    Parallelism Awareness, ISCA 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evoengine.emulator.model.counts import Counts
from evoengine.emulator.model.occupancy import Occupancy, occupancy
from evoengine.emulator.targets import SCHEDULERS, SHARED_BYTES_PER_CLOCK, WARP, Target

SECTOR_BYTES = 32
L2_BYTES_PER_CLOCK = 64  # from L2 to one SM: Jia e.a., arXiv 1903.07486; later papers see no more
ATOMIC_LANES_PER_CLOCK = 1.0  # of one SM to global memory: an assumption, conflicts of addresses not counted

_SM_WIDE = ("shuffle", "lsu")  # shared by the four quarters of an SM
_OF_QUARTERS = ("fma", "imad", "alu", "half", "mufu", "fp64")


@dataclass(frozen=True)
class Calibration:
    """How sharp the two smooth maxima are: 1 adds up, infinity is a plain maximum. The same for every kernel and target.

    The defaults are a middle that was chosen before anything was measured.
    """

    pipes: float = 3.0  # of the pipes among themselves
    latency: float = 1.5  # of the pipes and the latency of a warp


@dataclass(frozen=True)
class Modelled:
    """A modelled time in microseconds and what it is made of."""

    us: float
    bounds_us: Mapping[str, float]  # how long each pipe alone would take; `latency`: the chains of one warp after the other
    limiter: str  # the largest of them
    occupancy: Occupancy
    waves: float  # grid / blocks that the whole device holds at once


DEFAULT = Calibration()


def modelled(
    counts: Counts,
    *,
    target: Target,
    grid: Sequence[int],
    block: Sequence[int],
    registers: int,
    shared_bytes: int,
    cold: bool = False,
    calibration: Calibration = DEFAULT,
) -> Modelled:
    """The modelled time of one launch with `counts`, which may be those of a sample of its blocks.

    `registers` are those of one thread, `shared_bytes` static and dynamic ones of a block. `cold`: the caches
    hold nothing of the launch's data. Raises LaunchRefused where no block fits on the target.
    """
    blocks = math.prod(grid)
    if counts.blocks <= 0 or blocks < 1:
        raise ValueError(f"expected counts of at least one block, got {counts.blocks} blocks and a grid of {tuple(grid)}")
    held = occupancy(target, threads=math.prod(block), registers=registers, shared_bytes=shared_bytes)
    launch = _Launch(counts.scaled(1.0 / counts.blocks), target, blocks, held, cold)
    clocks = launch.bounds()
    pipes = _smooth((value for name, value in clocks.items() if name != "latency"), calibration.pipes)
    total = _smooth((pipes, clocks["latency"]), calibration.latency)
    bounds = {name: value / target.clocks_per_us for name, value in clocks.items()}
    return Modelled(
        us=target.launch_us + total / target.clocks_per_us,
        bounds_us=bounds,
        limiter=max(bounds, key=lambda name: bounds[name]),
        occupancy=held,
        waves=blocks / (target.sms * held.blocks),
    )


@dataclass(frozen=True)
class _Launch:
    """One block's mean counts on a target; every method answers in clocks of an SM."""

    block: Counts
    target: Target
    blocks: int
    held: Occupancy
    cold: bool

    @property
    def most(self) -> int:
        """Blocks that the busiest SM runs."""
        return -(-self.blocks // self.target.sms)

    @property
    def heaviest(self) -> float:
        """How many mean blocks the busiest SM's work is: never less than the one block that does most."""
        return max(float(self.most), self.skew)

    @property
    def skew(self) -> float:
        return max(1.0, self.block.most_issued / self.block.issued) if self.block.issued else 1.0

    def bounds(self) -> dict[str, float]:
        of_block = self._of_one_block()
        clocks = {name: self.heaviest * value for name, value in of_block.items()}
        device = {"l2": self._l2(), "dram": self._dram()}
        return {name: value for name, value in (clocks | device).items() if value > 0} | {"latency": self._latency()}

    def _of_one_block(self) -> dict[str, float]:
        block, rates = self.block, self.target.rates
        uneven = self._unevenness()
        clocks = {pipe: uneven * WARP * block.instructions.get(pipe, 0.0) / rates.of(pipe) for pipe in _OF_QUARTERS}
        clocks |= {pipe: WARP * block.instructions.get(pipe, 0.0) / rates.of(pipe) for pipe in _SM_WIDE}
        clocks["issue"] = uneven * block.issued / SCHEDULERS
        clocks["tensor"] = uneven * sum(flops / self._tensor_rate(kind) for kind, flops in block.flops.items())
        from_l1 = (block.load_sectors + block.store_sectors + block.local_sectors) * SECTOR_BYTES / SHARED_BYTES_PER_CLOCK
        clocks["shared"] = block.shared_wavefronts + block.instructions.get("shuffle", 0.0) + from_l1  # one data path for all three
        clocks["l2_port"] = block.l2_sectors * SECTOR_BYTES / L2_BYTES_PER_CLOCK
        clocks["atomic"] = block.atomics / ATOMIC_LANES_PER_CLOCK
        return clocks

    def _tensor_rate(self, kind: str) -> float:
        """Operations a clock. Without a tensor unit for them, fp64 runs on its own pipe, anything else as half precision."""
        other = 2 * self.target.rates.fp64 if kind == "fp64" else self.target.tensor["f16"]
        return self.target.tensor.get(kind, other)

    def _unevenness(self) -> float:
        """How much longer the fullest quarter of an SM takes than the mean of the four."""
        warps = max(1.0, self.block.warps * min(self.most, self.held.blocks))
        return math.ceil(warps / SCHEDULERS) * SCHEDULERS / warps

    def _l2(self) -> float:
        nanoseconds = self.blocks * self.block.l2_sectors * SECTOR_BYTES / self.target.l2_gb_s
        return nanoseconds / 1000 * self.target.clocks_per_us

    def _dram(self) -> float:
        if self._fits_l2 and not self.cold:
            return 0.0
        return self.block.unique_bytes / self.target.dram_gb_s / 1000 * self.target.clocks_per_us

    @property
    def _fits_l2(self) -> bool:
        return self.block.unique_bytes <= self.target.l2_bytes

    def _latency(self) -> float:
        """One warp after the other on the same place: as many as the busiest SM runs blocks one after the other."""
        rounds = math.ceil(self.most / self.held.blocks)
        return max(rounds * self._warp(), self.skew * self._warp())

    def _warp(self) -> float:
        """A warp alone: its chains, its own issue slots, and what its waits for copies show."""
        warps = max(1.0, self.block.warps)
        each = {delay: count / warps for delay, count in self.block.delays.items()}
        latencies = self.target.latencies
        of: dict[str, float] = {
            name: getattr(latencies, name) for name in ("fixed", "mufu", "fp64", "shuffle", "shared", "tensor", "barrier")
        }
        of["global"] = self._global_latency()
        busy = sum(each.get(name, 0.0) * clocks for name, clocks in of.items()) + self.block.issued / warps
        waits = each.get("wait", 0.0)
        far = latencies.l2 if self._fits_l2 and not self.cold else latencies.dram
        return busy + (waits * max(0.0, far - busy / waits) if waits else 0.0)

    def _global_latency(self) -> float:
        latencies, block = self.target.latencies, self.block
        far = latencies.l2 if self._fits_l2 and not self.cold else latencies.dram
        if not block.load_sectors or not block.block_sectors:
            return far
        missed = min(1.0, block.block_sectors / block.load_sectors)
        return latencies.l1 + missed * (far - latencies.l1)


def _smooth(values: Iterable[float], sharpness: float) -> float:
    """At least the largest, more where others are near it."""
    found = list(values)
    most = max(found, default=0.0)
    if most <= 0:
        return 0.0
    return float(most * math.fsum((value / most) ** sharpness for value in found) ** (1.0 / sharpness))
