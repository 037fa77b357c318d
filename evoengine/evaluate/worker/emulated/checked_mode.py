"""Checked mode on one case: the whole grid where that is cheap, else a sample of its blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from evoengine.candidate.binding import BoundLaunch, BufferArgument
from evoengine.emulator.check.findings import AccessCounts, Check
from evoengine.emulator.device import Checks, LaunchReport
from evoengine.evaluate.worker.candidate_failures import Endless
from evoengine.evaluate.worker.check import written_by
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram
from evoengine.evaluate.worker.emulated.plan_state import State
from evoengine.records import CheckedRun
from evoengine.task.schema import Task

# Bytes that the accesses which are followed in one launch may ask for, and as many for its other
# instructions: from 0.1 to 0.4 seconds of one core over all seeds. Not a number of seconds: the
# same candidate is sampled the same way on every machine.
BUDGET = 100_000_000
INSTRUCTION_BYTES = 8  # that an instruction of a warp counts as
# Rounds of loops that are followed in one launch: 100 times what the blocks of the packaged seeds
# need that are followed. Endless loops that break rules in every round take two millionths of a
# second for each.
MOST_ROUNDS = 1 << 22
PROBES = 4  # blocks that tell what one costs
MOST_FINDINGS = 20  # lines; the first says the most

FLAGS = {"races": Check.RACES, "bounds": Check.BOUNDS, "init": Check.INIT, "async": Check.ASYNC}


def follow(
    task: Task, program: EmulatedProgram, arena: EmulatedArena, checks: Sequence[str]
) -> CheckedRun:
    """What checked mode finds on one case, whose buffers are filled; raises Finding as a launch
    does.

    Outputs and scratch hold nothing before the first launch that is given them; afterwards they
    count as written whole.
    """
    plan = program.compiled.plan
    written = written_by(task, plan)
    followed = _Followed(program, arena, written, _flags(checks))
    for position, launch in enumerate(plan.launches):
        followed.launch(launch, last=position + 1 == len(plan.launches))
        if followed.findings:
            break
    lines = tuple(followed.findings)[:MOST_FINDINGS]
    seen = followed.accesses
    return CheckedRun(
        checks=tuple(checks),
        blocks=followed.blocks,
        total_blocks=followed.total_blocks,
        findings=lines,
        shared_requests=seen.shared_loads + seen.shared_stores,
        shared_wavefronts=seen.shared_load_wavefronts + seen.shared_store_wavefronts,
        global_requests=seen.global_loads + seen.global_stores,
        global_sectors=seen.global_load_sectors + seen.global_store_sectors,
    )


class _Followed:
    """The launches of one plan, in turn."""

    def __init__(
        self, program: EmulatedProgram, arena: EmulatedArena, written: Sequence[str], flags: Check
    ) -> None:
        self.program = program
        self.arena = arena
        self.written = written
        self.flags = flags
        self.pointers = {name: arena.pointer(name) for name in arena.tensors}
        self.findings: dict[str, None] = {}  # lines, each once, in order
        self.blocks = 0
        self.total_blocks = 0
        self.accesses = AccessCounts()  # of these blocks
        self._empty = set(written)  # buffers that no launch was given yet

    def launch(self, launch: BoundLaunch, last: bool) -> None:
        """Follows some blocks, and more when they were cheap; afterwards all have run, where
        another launch comes.

        None are followed that go too many rounds, for blocks that wait for others never end in a
        sample; the whole grid then runs unfollowed, and raises Endless where it has no end either.
        """
        total = math.prod(launch.grid)
        self.total_blocks += total
        before = State(self.program, self.arena, self.written)
        try:
            followed = self._follow(launch, total, before)
        except Endless:
            followed = 0
        self.blocks += followed
        if not self.findings and (not followed or (followed < total and not last)):
            before.restore()
            self.program.run(launch, self.pointers)
        self._empty -= {
            argument.buffer for argument in launch.args if isinstance(argument, BufferArgument)
        }

    def _follow(self, launch: BoundLaunch, total: int, before: State) -> int:
        """How many of its blocks were followed."""
        chosen = sample(total, PROBES)
        report = self._run(launch, chosen)
        affordable = int(BUDGET * len(chosen) / max(1.0, work_of(report)))
        if len(chosen) < total and affordable > len(chosen) and not self.findings:
            before.restore()
            chosen = sample(total, affordable)
            report = self._run(launch, chosen)
        assert report.accesses is not None
        self.accesses += report.accesses
        return len(chosen)

    def _run(self, launch: BoundLaunch, chosen: list[int]) -> LaunchReport:
        empty = frozenset(self.pointers[name] for name in self._empty)
        report = self.program.run(
            launch, self.pointers, Checks(self.flags, empty), chosen, MOST_ROUNDS
        )
        self.findings |= dict.fromkeys(report.describe(item) for item in report.findings)
        return report


def work_of(report: LaunchReport) -> float:
    """What a launch in checked mode took, in the unit of BUDGET."""
    assert report.accesses is not None
    lengths = numpy.array([len(node.instructions) for node in report.lowered.cfg.nodes])
    found = report.accesses
    touched = (
        found.shared_bytes + found.global_load_bytes + found.global_store_bytes + found.local_bytes
    )
    return touched + INSTRUCTION_BYTES * float((report.counters[:, 0] * lengths).sum())


def sample(total: int, count: int) -> list[int]:
    """About `count` of `total` blocks: pairs of neighbours, which may touch each other's memory,
    from the first to the last.
    """
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
