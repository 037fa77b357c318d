"""What checked mode is asked to look for, and the report of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy

from evoengine.emulator.analyse.control_flow_graph import waits_for_block
from evoengine.emulator.check.finding_words import words_of
from evoengine.emulator.check.findings import (
    AccessCounts,
    Check,
    Contention,
    Finding,
    FindingKind,
    SiteCounts,
    Space,
)
from evoengine.emulator.check.shared_arrays import shared_array
from evoengine.emulator.emulator_errors import Deadlock, KernelFault, OutOfFuel, Trapped
from evoengine.emulator.lower.context import InstructionSite
from evoengine.emulator.lower.kernel import LoweredKernel
from evoengine.emulator.run.abi import StopReason
from evoengine.emulator.run.barrier_waits import BarrierWait
from evoengine.emulator.run.host_thread import LaunchFault
from evoengine.emulator.run.memory import Buffer

ALL_CHECKS = Check.RACES | Check.BOUNDS | Check.INIT | Check.ASYNC
MOST_WAITS = 3  # barriers that a deadlock names


_IN_ORDER = {
    FindingKind.READ_AFTER_WRITE: ("write", "read"),
    FindingKind.WRITE_AFTER_READ: ("read", "write"),
}
_LATER_ROUND = (
    "; a barrier stands between these lines, so the {ahead} is of a later round (of a loop, or a"
    " call) than the {behind}: a barrier is missing after the {behind} at {line}"
)


@dataclass(frozen=True)
class Checks:
    """What checked mode looks for, and which global buffers are initialised before the launch.

    `uninitialised`: addresses of buffers that must be written before they are read.
    """

    which: Check = ALL_CHECKS
    uninitialised: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LaunchReport:
    """The result of a launch."""

    blocks_run: int
    blocks: int  # of the grid
    warps: int  # of a block
    printed: str
    findings: tuple[Finding, ...]
    accesses: AccessCounts | None  # None outside checked mode
    # int64 [basic blocks, 2]: executions by warps, and by lanes
    counters: numpy.ndarray = field(repr=False)
    lowered: LoweredKernel = field(repr=False)
    # uint64 [thread blocks run, 2^16 at most]: PTX warp instructions that each executed
    block_work: numpy.ndarray = field(repr=False)
    # uint64 [first thread blocks run, warps]: the same for each warp
    warp_work: numpy.ndarray = field(repr=False)
    # of each instruction that accessed memory, by its index in lowered.sites; empty outside
    # checked mode
    site_accesses: tuple[SiteCounts, ...] = ()
    contention: Contention = field(default_factory=Contention)
    buffers: tuple[Buffer, ...] = ()  # by the index in findings
    rounds: int = 0  # of loops that one host thread ran, at most

    def describe(self, finding: Finding) -> str:
        """A finding in one line, with the candidate's source lines."""
        return describe(finding, self.lowered, self.buffers) + self._later_round(finding)

    def _later_round(self, race: Finding) -> str:
        """Where a barrier stands between the lines of a race in shared memory, which is said to be
        missing there: the access that came first is that of a warp which is a round ahead.
        """
        names = _IN_ORDER.get(race.kind)
        if names is None or race.space is not Space.SHARED or race.is_early_read:
            return ""
        sites = self.lowered.sites
        first, second = (sites[one].line for one in (race.other_site, race.site))
        if not (race.is_between_warps and any(first < line < second for line in self._barriers)):
            return ""
        ahead, behind = names
        return _LATER_ROUND.format(ahead=ahead, behind=behind, line=f"line {second}")

    @cached_property
    def _barriers(self) -> frozenset[int]:
        """The lines of barriers of the block."""
        ends = (node.last for node in self.lowered.cfg.nodes)
        return frozenset(it.line for it in ends if it is not None and waits_for_block(it))


def describe(finding: Finding, lowered: LoweredKernel, buffers: Sequence[Buffer]) -> str:
    """A finding in one line, with the candidate's source lines."""
    sites = lowered.sites
    return words_of(
        finding,
        lambda site: describe_site(sites, site),
        [item.name for item in buffers],
        access=_access(sites, finding.site),
        shapes=[item.shape for item in buffers],
        array=lambda offset: shared_array(offset, lowered.layout.shared),
    )


def _access(sites: Sequence[InstructionSite], site: int) -> str:
    """What an instruction does to memory; a cp.async reads one and writes another."""
    text = sites[site].text if 0 <= site < len(sites) else ""
    operation = text.split(".", 1)[0]
    return {"ld": "reads", "ldu": "reads", "st": "writes"}.get(operation, "accesses")


def describe_site(sites: Sequence[InstructionSite], site: int) -> str:
    """The candidate's line of an instruction, the one near it if the compiler has moved it, or its
    PTX if no line is known.
    """
    if not 0 <= site < len(sites):
        return "an unknown line"
    found = sites[site]
    if not found.line and found.near:
        return f"line {found.near} or near it"
    return f"line {found.line}" if found.line else f"`{found.text}`"


def fault_error(
    fault: LaunchFault,
    sites: Sequence[InstructionSite],
    printed: str,
    strays: tuple[str, ...] = (),
) -> KernelFault:
    """The error for a launch that stopped early; `printed` is the kernel's output until then,
    `strays` as of KernelFault.
    """
    if fault.end is StopReason.deadlock:
        return Deadlock(_deadlock_words(fault, sites), strays)
    if fault.end is StopReason.strayed:
        return Trapped(f"threads of block {fault.block} access memory that is not there", strays)
    # reported by the driver, before the first instruction of a block
    if fault.end is StopReason.no_fuel and fault.site >= len(sites):
        return OutOfFuel(
            f"out of fuel at the start of block {fault.block}: earlier blocks used up the launch's"
            " budget of loop iterations",
            strays,
        )
    where = f"{describe_site(sites, fault.site)} (block {fault.block}, warp {fault.warp})"
    if fault.end is StopReason.no_fuel:
        return OutOfFuel(
            f"out of fuel in a loop at {where}: it is endless, or waits for a block that runs"
            " later",
            strays,
        )
    lines = printed.strip().splitlines()
    return Trapped(f"the kernel trapped at {where}" + (f": {lines[-1]}" if lines else ""), strays)


def _deadlock_words(fault: LaunchFault, sites: Sequence[InstructionSite]) -> str:
    head = f"deadlock: threads of block {fault.block} wait at a barrier that the others never reach"
    waits = [_wait_words(wait, sites) for wait in fault.waits[:MOST_WAITS]]
    return f"{head}: {'; '.join(waits)}" if waits else head


def _wait_words(wait: BarrierWait, sites: Sequence[InstructionSite]) -> str:
    first, last = wait.warps[0], wait.warps[-1]
    if first == last:
        warps = f"warp {first}"
    elif len(wait.warps) == last - first + 1:
        warps = f"warps {first} to {last}"
    else:
        warps = f"{len(wait.warps)} of the warps {first} to {last}"
    asked = f"{wait.expected} threads" if wait.expected else "all threads"
    return (
        f"barrier {wait.barrier} at {describe_site(sites, wait.site)} waits for {asked}, and"
        f" {wait.threads} are there ({warps})"
    )
