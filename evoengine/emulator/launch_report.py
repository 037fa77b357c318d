"""What is asked of a launch, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy

from evoengine.emulator.check.findings import AccessCounts, Check, Finding
from evoengine.emulator.emulator_errors import KernelFault, OutOfFuel, Trapped
from evoengine.emulator.lower.context import Site
from evoengine.emulator.lower.kernel import Lowered
from evoengine.emulator.run.abi import End
from evoengine.emulator.run.host_thread import Fault

ALL_CHECKS = Check.RACES | Check.BOUNDS | Check.INIT | Check.ASYNC


@dataclass(frozen=True)
class Checks:
    """What checked mode looks for, and which global buffers hold something before the launch.

    `uninitialised` are addresses of buffers that must be written before they are read.
    """

    which: Check = ALL_CHECKS
    uninitialised: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LaunchReport:
    """What a launch did."""

    blocks_run: int
    blocks: int  # of the grid
    warps: int  # of a block
    printed: str
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None  # None outside checked mode
    # [blocks of the flow, 2]: executions by warps, and by lanes
    counters: numpy.ndarray = field(repr=False)
    lowered: Lowered = field(repr=False)
    # instructions of PTX by warps, of each block that was run; of the first 2^16 at most
    works: numpy.ndarray = field(repr=False)
    buffers: tuple[str, ...] = ()  # names, by the index that findings give

    def describe(self, finding: Finding) -> str:
        """One line on a finding, with the candidate's lines."""
        return finding.describe(lambda site: place_of(self.lowered.sites, site), self.buffers)


def place_of(sites: Sequence[Site], site: int) -> str:
    """The candidate's line of an instruction, or its PTX where that is not known."""
    if not 0 <= site < len(sites):
        return "an unknown place"
    found = sites[site]
    return f"line {found.line}" if found.line else f"`{found.text}`"


def fault_of(fault: Fault, sites: Sequence[Site], printed: str) -> KernelFault:
    """The error for a launch that ended early; `printed` is what the kernel said until then."""
    if fault.end is End.deadlock:
        return OutOfFuel(
            f"threads of block {fault.block} wait at a barrier that the others never reach"
        )
    # the driver's own: before a block's first instruction
    if fault.end is End.no_fuel and fault.site >= len(sites):
        return OutOfFuel(
            f"out of fuel at the start of block {fault.block}: the blocks before it took all of it"
        )
    where = f"{place_of(sites, fault.site)} (block {fault.block}, warp {fault.warp})"
    if fault.end is End.no_fuel:
        return OutOfFuel(
            f"out of fuel in a loop at {where}: it never ends, or waits for a block that runs later"
        )
    said = printed.strip().splitlines()
    return Trapped(f"the kernel ended itself at {where}" + (f": {said[-1]}" if said else ""))
