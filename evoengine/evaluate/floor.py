"""The least time that a case can take on a device: nothing that is right can be faster.

The bytes that a call must move go through L2 at its measured bandwidth; those that are not in L2
when the call begins come from DRAM; the operations that the task declares take the measured peak
of the unit that they may use; and a call is at least one launch. All of these overlap, so the
longest counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from evoengine.candidate.moved_bytes import bytes_of
from evoengine.evaluate.worker.candidate_failures import BelowFloor
from evoengine.records import Frozen
from evoengine.task import expression
from evoengine.task.schema import Task

# Peaks are measured with kernels of ours, which may stay below what a better one reaches.
MARGIN = 0.9


class DevicePeaks(Frozen):
    """What a device reaches at most, as measured on it."""

    l2_bytes: int
    l2_bytes_per_s: float
    dram_bytes_per_s: float
    launch_us: float  # of one call of a kernel that does nothing, in a long graph
    flops_per_s: dict[str, float] = {}  # by unit: see task.schema.ArithmeticUnit


@dataclass(frozen=True)
class Floor:
    """The least time of a call, in microseconds, and what it comes from."""

    us: float
    reason: str


class Floors(NamedTuple):
    """The least times with inputs in L2, as far as they fit, and with L2 flushed."""

    hot: Floor
    cold: Floor

    def scored(self, task: Task) -> Floor:
        """The one of the times that score a candidate."""
        return self.cold if task.objective.cache == "cold" else self.hot


def floors_of(task: Task, case: str, tier: str, peaks: DevicePeaks) -> Floors:
    """The floors of one call of `case` by a kernel of `tier`."""
    read, written = bytes_of(task, case)
    common = [
        Floor(peaks.launch_us, "one launch"),
        _transfer(read + written, peaks.l2_bytes_per_s, "L2"),
        *_arithmetic(task, case, tier, peaks),
    ]
    beyond_l2 = max(0, read - peaks.l2_bytes)
    return Floors(
        hot=_longest([*common, _transfer(beyond_l2, peaks.dram_bytes_per_s, "DRAM")]),
        cold=_longest([*common, _transfer(read, peaks.dram_bytes_per_s, "DRAM")]),
    )


def refuse_below_floor(time_us: float, floor: Floor) -> None:
    """Raises BelowFloor if a call is said to take less time than it can."""
    if time_us < MARGIN * floor.us:
        raise BelowFloor(
            f"a call took {time_us:.3g} us, which cannot be: {floor.reason} takes at least"
            f" {floor.us:.3g} us here"
        )


def _arithmetic(task: Task, case: str, tier: str, peaks: DevicePeaks) -> list[Floor]:
    """The time of the declared operations; none where they, their unit or its peak are unknown."""
    work = task.work
    unit = task.tiers[tier].unit or (work.unit if work else None)
    if work is None or work.flops is None or unit not in peaks.flops_per_s:
        return []
    flops = float(expression.parse(work.flops).evaluate(task.scope(case)))
    peak = peaks.flops_per_s[unit]
    reason = f"{flops:.3g} operations at {peak / 1e12:.3g} Tflop/s of {unit}"
    return [Floor(1e6 * flops / peak, reason)]


def _transfer(size: int, bytes_per_s: float, place: str) -> Floor:
    reason = f"{size} bytes at {bytes_per_s / 1e12:.3g} TB/s of {place}"
    return Floor(1e6 * size / bytes_per_s, reason)


def _longest(floors: list[Floor]) -> Floor:
    return max(floors, key=lambda floor: floor.us)
