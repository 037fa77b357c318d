"""Checked mode on one case: the whole grid where that is cheap, else a sample of its blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy

from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, LaunchReport
from evoengine.evaluate.worker.check import written_by
from evoengine.evaluate.worker.emulated.memory import EmulatedArena
from evoengine.evaluate.worker.emulated.program import Program
from evoengine.plan import Launch
from evoengine.records import CheckedRun
from evoengine.task import Task

# Warp instructions that are followed in one launch, seconds of one core. A number of instructions and not of seconds: the
# same candidate is sampled the same way on every machine.
BUDGET = 20_000_000
PROBES = 4  # blocks that tell what one costs
MOST_FINDINGS = 20  # lines; the first says the most

FLAGS = {"races": Check.RACES, "bounds": Check.BOUNDS, "init": Check.INIT, "async": Check.ASYNC}


def follow(task: Task, program: Program, arena: EmulatedArena, checks: Sequence[str]) -> CheckedRun:
    """What checked mode finds on one case, whose buffers are filled; raises Finding as a launch does.

    Outputs and scratch hold nothing before the first launch. What one launch writes counts as written for the next.
    """
    plan, findings = program.compiled.plan, dict[str, None]()
    pointers = {name: arena.pointer(name) for name in arena.tensors}
    empty = frozenset(pointers[name] for name in written_by(task, plan))
    followed = total = 0
    for position, launch in enumerate(plan.launches):
        blocks = math.prod(launch.grid)
        chosen = affordable(program, launch, pointers)
        wanted = Checks(_flags(checks), frozenset() if position else empty)
        report = program.run(launch, pointers, wanted, chosen)
        findings |= dict.fromkeys(report.describe(item) for item in report.findings)
        followed, total = followed + (blocks if chosen is None else len(chosen)), total + blocks
        if chosen is not None and position + 1 < len(plan.launches):
            program.run(launch, pointers)  # the next launch reads what all blocks write
    return CheckedRun(checks=tuple(checks), blocks=followed, total_blocks=total, findings=tuple(findings)[:MOST_FINDINGS])


def affordable(program: Program, launch: Launch, pointers: Mapping[str, int]) -> list[int] | None:
    """The blocks to follow, by linear index; None: all of them."""
    total = math.prod(launch.grid)
    if total <= PROBES:
        return None
    probed = program.run(launch, pointers, blocks=sample(total, PROBES))
    each = work_of(probed) / PROBES
    count = max(PROBES, int(BUDGET / max(1.0, each)))
    return None if count >= total else sample(total, count)


def work_of(report: LaunchReport) -> float:
    """The warp instructions of PTX that a launch has run."""
    lengths = numpy.array([len(node.instructions) for node in report.lowered.flow.nodes])
    return float((report.counters[:, 0] * lengths).sum())


def sample(total: int, count: int) -> list[int]:
    """About `count` of `total` blocks: pairs of neighbours, which may touch each other's memory, from the first to the last."""
    if count >= total:
        return list(range(total))
    pairs = max(2, count // 2)
    starts = [round(number * (total - 2) / (pairs - 1)) for number in range(pairs)]
    return sorted({block for start in starts for block in (start, start + 1)})


def _flags(checks: Sequence[str]) -> Check:
    found = Check(0)
    for name in checks:
        found |= FLAGS[name]
    return found
