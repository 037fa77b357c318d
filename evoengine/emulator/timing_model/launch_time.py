"""Models the time that a launch with given counts would take on a target GPU. Nothing here is
measured.

For the SM with the most blocks the model computes how long each pipe is busy (a bound of
throughput, as in the roofline model), and how long one block takes that has the SM for itself (its
latency). The latency is summed over the pieces of its code, because barriers and dependency chains
keep its warps together; a piece takes as long as the chain of one warp or the busiest pipe. Other
resident blocks fill the gaps until a pipe is saturated: the two are combined, as in Hong and Kim's
model (ISCA 2009), with a smooth maximum. DRAM, L2 and the start of blocks are bounds of the whole
device. A launch costs a constant on top.

    L. Williams e.a., Roofline, CACM 52(4), 2009.
    S. Hong, H. Kim, An Analytical Model for a GPU Architecture with Memory-level and Thread-level
    Parallelism Awareness, ISCA 2009.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evoengine.emulator.targets import SCHEDULERS, WARP, TargetGpu
from evoengine.emulator.timing_model.counts import CodePiece, Counts
from evoengine.emulator.timing_model.memory_traffic import MemoryTraffic
from evoengine.emulator.timing_model.occupancy import Occupancy, occupancy
from evoengine.emulator.timing_model.tries import tries

# warp instructions of one SM with an atomic on global memory: an assumption; their sectors cost
# what stored ones do
ATOMICS_PER_CLOCK = 1.0
# passes of the whole device on one line of L2, in which lanes of a warp with distinct addresses in
# a sector share one: NVIDIA's Kepler GK110 whitepaper promises, on one address, one for each clock
# of L2. On an H200 and an H100 there were 0.6 for each clock of an SM in the kernels that consist
# of little else (tests/structures/segment_sums_queue.cu and count_positive_ballot.cu, on one
# address; histogram_global_atomics.cu, on the 16 of half a line)
ATOMICS_ON_LINE_PER_CLOCK = 0.6
# round trips to L2 of a hop from a block to the one that waits for it: that of the write, and that
# of the poll that finds it. An assumption; polls that have just missed it make it longer
TRIPS_OF_HOP = 2.0
# latency limits a launch where it is longer than this many times the largest other bound, because
# it includes the work of the pipes
LATENCY_LIMITS_FROM = 2

_SM_WIDE = ("shuffle", "lsu")  # shared by the four quarters of an SM
_OF_QUARTERS = ("fma", "imad", "alu", "half", "mufu", "fp64")


@dataclass(frozen=True)
class Calibration:
    """Exponents of the smooth maxima: 1 is a sum, infinity a plain maximum. The same for every
    kernel and target.

    The defaults order the configurations of docs/measurements/h200-configurations.json well, and so
    do nearby values; docs/measurements/emulator-model.md has the result for seeds that were not
    used in the choice.
    """

    pipes: float = 3.0  # between the pipes
    latency: float = 1.5  # between the pipes and the latency of a block
    pieces: float = 2.0  # between the pipes and the dependency chain within a piece of code


# What the latency of a block consists of; delays that are not named are those of arithmetic.
PART_OF_DELAY = {
    "global": "loads",
    "l2": "loads",
    "l1": "loads",
    "local": "loads",
    "line": "loads",
    "shared": "shared memory",
    "shuffle": "shuffles",
    "tensor": "tensor",
    "barrier": "barriers",
}
LATENCY_PARTS = (
    *dict.fromkeys(PART_OF_DELAY.values()),
    *("arithmetic", "issue", "pipes", "copies", "atomics"),
)


@dataclass(frozen=True)
class ModelledLaunch:
    """A modelled time in microseconds, and its components."""

    us: float
    # time of each pipe alone; `latency`: time of blocks one after the other
    bounds_us: Mapping[str, float]
    limiter: str  # the largest bound but `latency`, or that: LATENCY_LIMITS_FROM
    occupancy: Occupancy
    waves: float  # grid / blocks that are resident on the whole device at once
    # what a block alone on an SM spends its time with, by the names of LATENCY_PARTS, largest first
    latency_shares: Mapping[str, float]


DEFAULT = Calibration()


def model_launch(
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
    """The modelled time of one launch; `counts` may be those of a sample of its blocks.

    `registers` of one thread; `shared_bytes` of a block, static and dynamic. `cold`: the caches
    hold none of the launch's data. Raises LaunchRefused if no block fits on the target.
    """
    blocks = math.prod(grid)
    if counts.blocks <= 0 or blocks < 1:
        raise ValueError(
            f"expected counts of at least one block, got {counts.blocks} blocks and a grid of"
            f" {tuple(grid)}"
        )
    fit = occupancy(
        target, threads=math.prod(block), registers=registers, shared_bytes=shared_bytes
    )
    of_block = counts.scaled(1.0 / counts.blocks)
    memory = MemoryTraffic(of_block, target, blocks, fit, shared_bytes, cold)
    launch = _Launch(of_block, target, blocks, fit, memory, calibration)
    clocks = launch.bounds()
    others = [value for name, value in clocks.items() if name != "latency"]
    throughput = _smooth(others, calibration.pipes)
    largest = max(others, default=0.0)
    bounds = {name: value / target.clocks_per_us for name, value in clocks.items()}
    return ModelledLaunch(
        us=target.launch_us
        + launch.combined(throughput, largest, clocks["latency"]) / target.clocks_per_us,
        bounds_us=bounds,
        limiter=_limiter(bounds),
        occupancy=fit,
        waves=blocks / (target.sms * fit.blocks),
        latency_shares=launch.latency_shares(),
    )


@dataclass(frozen=True)
class _Launch:
    """The mean counts of one block on a target; every method returns SM clocks."""

    block: Counts
    target: TargetGpu
    blocks: int
    occupancy: Occupancy
    memory: MemoryTraffic
    calibration: Calibration

    @property
    def skew(self) -> float:
        """The instructions of the longest block, relative to the mean."""
        return max(1.0, self.block.most_issued / self.block.issued) if self.block.issued else 1.0

    def combined(self, throughput: float, largest: float, latency: float) -> float:
        """Combines throughput, of which `largest` is the largest bound, and latency: resident
        blocks fill one another's gaps until a pipe is saturated.
        """
        p = self.calibration.latency
        alone = (
            throughput / self.memory.resident_blocks
        )  # its own share of the pipes' work is in its latency
        together = (max(0.0, throughput**p - alone**p) + latency**p) ** (1 / p)
        return float(max(together, largest))

    def bounds(self) -> dict[str, float]:
        heaviest = max(float(self.memory.most_blocks), self.skew)
        clocks = {name: heaviest * value for name, value in self._of_one_block().items()}
        device = {
            "l2": self.memory.l2_clocks(),
            "dram": self.memory.dram_clocks(),
            "dispatch": self.blocks * self.target.dispatch_ns / 1000 * self.target.clocks_per_us,
        }
        others = max((*clocks.values(), *device.values()))
        on_line = max(self.block.same_line, self._tries_on_line(others))
        clocks["atomic"] = max(clocks["atomic"], on_line / ATOMICS_ON_LINE_PER_CLOCK)
        return {name: value for name, value in (clocks | device).items() if value > 0} | {
            "latency": self._latency()
        }

    def _tries_on_line(self, others: float) -> float:
        """Passes on the line of L2 that most lanes read before an atomic operation, `others`: the
        time of the launch without them.
        """
        at_once = self._at_once(others)
        if not at_once:
            return 0.0
        each = tries(at_once, self.block.go_on).tries / at_once
        # who comes later, and wants less, finds that it is done; who adds something tries, too
        times = self.block.visits / at_once if self.block.go_on >= 1 else 1.0
        return times * each * self.block.line_visits * at_once / self.block.visits

    def _at_once(self, others: float) -> float:
        """Lanes that read one address before any of them has changed it: while the first try goes
        to L2 and back, and waits there for the others on its line.
        """
        block = self.block
        if not block.visits:
            return 0.0
        window = self.target.latencies.l2 + block.line_visits / ATOMICS_ON_LINE_PER_CLOCK
        resident = self.target.sms * self.occupancy.blocks / self.blocks
        return block.visits * min(1.0, resident, window / others if others else 1.0)

    def _of_one_block(self) -> dict[str, float]:
        block = self.block
        clocks = self._pipes(
            block.instructions,
            block.flops,
            self._unevenness(block.warps * self.memory.resident_blocks),
        )
        # one data path for all three
        clocks["shared"] = (
            block.shared_wavefronts + block.instructions.get("shuffle", 0.0) + block.lines
        )
        clocks["l2_port"] = self.memory.port_clocks()
        clocks["atomic"] = block.atomics / ATOMICS_PER_CLOCK
        return clocks

    def _pipes(
        self, instructions: Mapping[str, float], flops: Mapping[str, float], uneven: float
    ) -> dict[str, float]:
        """Clocks that each pipe is busy with these instructions of warps spread over the quarters
        of the SM.
        """
        rates = self.target.rates
        clocks = {
            pipe: uneven * WARP * instructions.get(pipe, 0.0) / rates.of(pipe)
            for pipe in _OF_QUARTERS
        }
        by_either = uneven * WARP * instructions.get("either", 0.0)
        clocks["alu"], clocks["imad"] = _shared_out(
            by_either, (clocks["alu"], rates.alu), (clocks["imad"], rates.imad)
        )
        clocks |= {pipe: WARP * instructions.get(pipe, 0.0) / rates.of(pipe) for pipe in _SM_WIDE}
        clocks["issue"] = uneven * sum(instructions.values()) / SCHEDULERS
        clocks["tensor"] = uneven * sum(
            count / self._tensor_rate(kind) for kind, count in flops.items()
        )
        return clocks

    def _tensor_rate(self, kind: str) -> float:
        """Operations per clock. Without a tensor unit for it, fp64 runs on its own pipe, any other
        kind as half precision.
        """
        other = 2 * self.target.rates.fp64 if kind == "fp64" else self.target.tensor["f16"]
        return self.target.tensor.get(kind, other)

    @staticmethod
    def _unevenness(warps: float) -> float:
        """The time of the busiest quarter of an SM, relative to the mean of the four."""
        return math.ceil(max(1.0, warps) / SCHEDULERS) * SCHEDULERS / max(1.0, warps)

    def _latency(self) -> float:
        """The time of blocks that run one after the other on the busiest SM, and of flags that go
        from block to block through L2 where each waits for the one before.
        """
        rounds = math.ceil(self.memory.most_blocks / self.occupancy.blocks)
        return (
            max(rounds, self.skew) * self._one_block_latency()
            + (rounds - 1) * self.target.latencies.block
            + self.block.hops * TRIPS_OF_HOP * self.target.latencies.l2
            + self._rounds_of_tries() * self.target.latencies.l2
        )

    def _rounds_of_tries(self) -> float:
        """Changes of one address that follow one another, beyond the first one, which is in the
        block's own chain; each needs the value that the one before has left.
        """
        if not self.block.go_on:
            return 0.0
        return max(0.0, tries(self.block.visits, self.block.go_on).rounds - 1)

    def latency_shares(self) -> dict[str, float]:
        """The parts of `_one_block_latency` as shares of it, the largest first."""
        parts = self._one_block_parts
        whole = sum(parts.values())
        if whole <= 0:
            return {}
        largest_first = sorted(parts.items(), key=lambda part: -part[1])
        return {name: clocks / whole for name, clocks in largest_first if clocks > 0}

    def _one_block_latency(self) -> float:
        """The time of a block that has the SM for itself."""
        return sum(self._one_block_parts.values())

    @cached_property
    def _one_block_parts(self) -> dict[str, float]:
        """The parts of that time, by the names of LATENCY_PARTS: summed over its pieces of code,
        because barriers and chains keep its warps together.
        """
        warps = max(1.0, self.block.warps)
        uneven = self._unevenness(warps)
        of = self._delays(warps)
        code = self.block.code
        at_best = sum(piece.times * piece.wavefronts for piece in code)
        conflicts = max(1.0, self.block.shared_wavefronts / at_best) if at_best else 1.0
        copied = sum(piece.times * piece.copy_sectors for piece in code)
        coalesced = copied + sum(piece.times * piece.sectors for piece in code)
        of["sector"] = self.memory.block_clocks() / coalesced if coalesced else 0.0
        parts = dict.fromkeys(LATENCY_PARTS, 0.0)
        for piece in code:
            times = piece.times / warps
            found = self._piece_parts(piece, warps, uneven, conflicts, of)
            for name, clocks in found.items():
                parts[name] += times * clocks
        busy = sum(parts.values())
        waits = self.block.delays.get("wait", 0.0) / warps
        if copied:  # they go on beside all else, but share L2 and DRAM with other accesses
            moving = coalesced * of["sector"]
            parts["copies"] += _smooth((busy, moving), self.calibration.pieces) - busy
        parts["atomics"] += self.block.atomics / ATOMICS_PER_CLOCK
        if waits:
            parts["copies"] += waits * max(0.0, self.memory.latency - busy / waits)
        return parts

    def _piece_parts(
        self,
        piece: CodePiece,
        warps: float,
        uneven: float,
        conflicts: float,
        of: Mapping[str, float],
    ) -> dict[str, float]:
        """The time of all warps of a block in a piece of code, its chain or its busiest pipe,
        shared out among their parts.
        """
        clocks = [
            warps * value for value in self._pipes(piece.instructions, piece.flops, uneven).values()
        ]
        of_lanes = piece.wavefronts * conflicts + piece.instructions.get("shuffle", 0.0)
        clocks.append(warps * (of_lanes + piece.lines))
        clocks.append(warps * piece.sectors * of["sector"])
        chain = {name: count * of.get(name, 0.0) for name, count in piece.delays.items()}
        own = sum(piece.instructions.values())
        # warps that have ended, or wait for others, do not shorten the chain of the busiest one
        skew = max(1.0, self.block.warp_skew)
        pipes = _smooth(clocks, self.calibration.pipes)
        whole = _smooth((pipes, skew * (sum(chain.values()) + own)), self.calibration.pieces)
        parts = {"pipes": pipes, "issue": skew * own}
        for name, delay in chain.items():
            part = PART_OF_DELAY.get(name, "arithmetic")
            parts[part] = parts.get(part, 0.0) + skew * delay
        total = sum(parts.values())
        return {name: clocks * whole / total for name, clocks in parts.items()} if total else {}

    def _delays(self, warps: float) -> dict[str, float]:
        latencies = self.target.latencies
        of: dict[str, float] = {
            name: getattr(latencies, name)
            for name in ("fixed", "mufu", "fp64", "shuffle", "shared", "tensor")
        }
        # frames are walked again and again: what L1 loses of them, L2 keeps
        of["local"] = latencies.l1 + self.memory.frame_misses * (latencies.l2 - latencies.l1)
        of["barrier"] = latencies.barrier + latencies.barrier_warp * warps
        of["global"] = self.memory.load_latency()
        of["l2"] = self.memory.latency
        of["l1"] = latencies.l1 + (1.0 - self.memory.held) * (self.memory.latency - latencies.l1)
        of["line"] = 1.0
        return of


def _shared_out(
    lanes: float, one: tuple[float, float], other: tuple[float, float]
) -> tuple[float, float]:
    """The clocks that two pipes, of which each is given by its clocks so far and its rate, are busy
    with what either can do.
    """
    (first, rate), (second, other_rate) = one, other
    even = (lanes + first * rate + second * other_rate) / (rate + other_rate)
    if even <= first:
        return first, second + lanes / other_rate
    if even <= second:
        return first + lanes / rate, second
    return even, even


def _limiter(bounds: Mapping[str, float]) -> str:
    others = {name: value for name, value in bounds.items() if name != "latency"}
    largest = max(others, key=lambda name: others[name], default="latency")
    return largest if LATENCY_LIMITS_FROM * bounds[largest] >= bounds["latency"] else "latency"


def _smooth(values: Iterable[float], sharpness: float) -> float:
    """A smooth maximum: at least the largest value, more if others are near it."""
    found = list(values)
    most_blocks = max(found, default=0.0)
    if most_blocks <= 0:
        return 0.0
    return float(
        most_blocks
        * math.fsum((value / most_blocks) ** sharpness for value in found) ** (1.0 / sharpness)
    )
