"""What NVIDIA's tools found, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import KernelProfile, SanitizerFinding
from evoengine.report import format

MOST_PIPES, MOST_STALLS = 4, 4
# Nsight Compute documentation, "Warp Stall Reasons"
_STALLS = {
    "long_scoreboard": "data from global or local memory",
    "short_scoreboard": "data from shared memory or special functions",
    "barrier": "other warps at a block barrier",
    "membar": "a memory fence",
    "mio_throttle": "the queue of shared memory and special functions",
    "lg_throttle": "the queue of global and local memory",
    "tex_throttle": "the queue of textures",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "imc_miss": "constants that are not in the cache",
    "no_instruction": "instructions that are not in the cache",
    "branch_resolving": "the target of a branch",
    "dispatch_stall": "the dispatcher",
    "drain": "stores before the exit",
    "wait": "a fixed delay between dependent instructions",
    "not_selected": "other warps that were chosen",
    "sleeping": "the end of a sleep",
    "gmma": "wgmma",
    "warpgroup_arrive": "warps of the same warpgroup",
    "misc": "other reasons",
}


def profile_report(found: Iterable[KernelProfile]) -> RenderableType:
    """Each launch with its figures, one line for each kind."""
    lines = []
    for item in found:
        lines.append(Text(format.printable(f"{item.case}: {item.kernel}"), style="bold"))
        lines += [Text(format.printable(f"  {line}")) for line in _profile_lines(item)]
    lines.append(
        Text(
            "measured by Nsight Compute with counters on, one launch at a time, with warm caches:"
            " times are not those of a verdict",
            style="dim",
        )
    )
    return Group(*lines)


def _profile_lines(item: KernelProfile) -> Iterator[str]:
    if item.us is not None:
        yield f"time: {item.us:.2f} us"
    used = [
        f"{name} {value:.0f}%"
        for name, value in (
            ("arithmetic and issue", item.compute_percent),
            ("memory system", item.memory_percent),
            ("DRAM", item.dram_percent),
        )
        if value is not None
    ]
    if used:
        yield f"of what the device can sustain: {', '.join(used)}"
    memory = []
    if item.dram_bytes_per_s is not None:
        memory.append(f"DRAM {item.dram_bytes_per_s / 1e9:.0f} GB/s")
    memory += [
        f"{name} hits {value:.0f}%"
        for name, value in (("L1", item.l1_hit_percent), ("L2", item.l2_hit_percent))
        if value is not None
    ]
    if memory:
        yield f"memory: {', '.join(memory)}"
    if item.pipes:
        pipes = ", ".join(f"{name} {value:.0f}%" for name, value in item.pipes[:MOST_PIPES])
        yield f"busiest pipes: {pipes}"
    if item.occupancy_percent is not None:
        yield f"occupancy reached: {item.occupancy_percent:.0f}% of the warps an SM can hold"
    if item.stalls:
        total = sum(value for _, value in item.stalls)
        reasons = ", ".join(
            f"{_STALLS.get(name, name)} {value / total:.0%}"
            for name, value in item.stalls[:MOST_STALLS]
        )
        yield f"warps waited for: {reasons}"


def sanitizer_report(
    found: Sequence[SanitizerFinding], tool: str, cases: Sequence[str]
) -> RenderableType:
    """Each finding with its lines and what the tool says of it, or that nothing was found."""
    if not found:
        return Text(f"{tool} found nothing in {', '.join(cases)}", style="green")
    lines = []
    for item in found:
        where = f" at {' and '.join(item.places)}" if item.places else ""
        times = f", {item.times} times" if item.times > 1 else ""
        head = f"{item.case}: {item.error.rstrip('.')}{where}{times}"
        lines.append(Text(format.printable(head), style="bold"))
        lines += [Text(format.printable(f"  {detail}")) for detail in item.details]
    return Group(*lines)
