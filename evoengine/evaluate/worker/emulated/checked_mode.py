"""Checked mode on one case: the whole grid where that is cheap, else a sample of its blocks."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy

from evoengine.candidate.binding import BoundLaunch, BufferArgument
from evoengine.emulator.check.findings import AccessCounts, Check
from evoengine.emulator.device import Checks, LaunchReport
from evoengine.evaluate.worker.candidate_failures import BlockDeadlock, LaunchTimeout
from evoengine.evaluate.worker.check import poisoned_for, written_by
from evoengine.evaluate.worker.emulated.emulated_arena import EmulatedArena
from evoengine.evaluate.worker.emulated.emulated_program import EmulatedProgram
from evoengine.evaluate.worker.emulated.plan_state import PlanState
from evoengine.evaluate.worker.emulated.unwritten_values import (
    depends_on_unwritten,
    is_unwritten_read,
)
from evoengine.records import CheckedRun
from evoengine.task.schema import Task

# Bytes that the followed accesses of one launch may request, other instructions counted as bytes,
# too: from 0.1 to 0.4 seconds of one core for the packaged seeds. Not a number of seconds, because
# the same candidate must be sampled the same way on every machine.
BUDGET = 100_000_000
INSTRUCTION_BYTES = 8  # one instruction of a warp counts as so many
# Loop rounds that are followed in one launch: 100 times those of the packaged seeds' followed
# blocks. A loop that runs away through memory has a finding in every round, which takes 2 to 8
# microseconds: such a launch ends after the first number.
FEW_ROUNDS, MAX_ROUNDS = 1 << 18, 1 << 22
# Where a sample of blocks waits for others, the first ones of the grid are followed, so many at
# most, for so many rounds.
MOST_FIRST, FIRST_ROUNDS = 512, 1 << 20
PROBES = 4  # blocks that are run to estimate the cost of one
MAX_FINDINGS = 20  # lines; the first ones matter most

FLAGS = {"races": Check.RACES, "bounds": Check.BOUNDS, "init": Check.INIT, "async": Check.ASYNC}


def follow(
    task: Task,
    program: EmulatedProgram,
    arena: EmulatedArena,
    checks: Sequence[str],
    most_rounds: int = MAX_ROUNDS,
) -> CheckedRun:
    """The result of checked mode on one case, whose buffers are filled; raises CandidateFailure.
    Blocks with more than `most_rounds` loop rounds are not followed.

    Outputs and scratch count as uninitialized until a launch was given them, and as initialized
    whole afterwards.
    """
    plan = program.compiled.plan
    written = written_by(task, plan)
    empty = set(poisoned_for(task, plan)) - {fill.buffer for fill in plan.fills}
    followed = _Followed(program, arena, written, empty, _flags(checks), most_rounds)
    for position, launch in enumerate(plan.launches):
        followed.launch(launch, last=position + 1 == len(plan.launches))
        if followed.findings:
            break
    lines = tuple(followed.findings)[:MAX_FINDINGS]
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
    """Follows the launches of one plan in turn, and adds up what it finds."""

    def __init__(
        self,
        program: EmulatedProgram,
        arena: EmulatedArena,
        written: Sequence[str],
        empty: Collection[str],
        flags: Check,
        most_rounds: int,
    ) -> None:
        self._most_rounds = most_rounds
        self.program = program
        self.arena = arena
        self.written = written
        self.flags = flags
        self.pointers = arena.pointers
        self.findings: dict[str, None] = {}  # lines without duplicates, in order
        self.blocks = 0
        self.total_blocks = 0
        self.accesses = AccessCounts()  # of these blocks
        # buffers that hold nothing, and that no launch was given yet
        self._uninitialized = set(empty)

    def launch(self, launch: BoundLaunch, last: bool) -> None:
        """Follows some blocks, and more when they were cheap; runs the whole grid where another
        launch comes.

        Blocks that exceed the most rounds are not followed, because blocks that wait for others
        never end in a sample: the whole grid then runs without checks, and raises LaunchTimeout
        where it does not end either. Strays that were seen until then count: what a block waits for
        does not make it leave its memory, and without checks they could end this process. So does a
        deadlock within a block: no other block can end it.
        """
        total = math.prod(launch.grid)
        self.total_blocks += total
        before = PlanState(self.program, self.arena, self.written)
        try:
            followed = self._follow(launch, total, before)
        except LaunchTimeout as late:
            followed = 0
            stuck = (str(late),) if isinstance(late, BlockDeadlock) else ()
            self.findings |= dict.fromkeys((*stuck, *late.strays))
        self.blocks += followed
        if not self.findings and (not followed or (followed < total and not last)):
            before.restore()
            self.program.run(launch, self.pointers)
        self._uninitialized -= {
            argument.buffer for argument in launch.args if isinstance(argument, BufferArgument)
        }

    def _follow(self, launch: BoundLaunch, total: int, before: PlanState) -> int:
        """The number of blocks that were followed."""
        chosen = sample(total, PROBES)
        few = FEW_ROUNDS if len(chosen) < total else self._most_rounds
        try:
            report = self._run(launch, chosen, before, min(few, self._most_rounds))
        except LaunchTimeout as late:
            if not _may_wait(late) or few >= self._most_rounds:
                raise
            return self._follow_first(launch, total, before)
        affordable = int(BUDGET * len(chosen) / max(1.0, work_of(report)))
        if len(chosen) < total and affordable > len(chosen) and not self.findings:
            before.restore()
            chosen = sample(total, affordable)
            report = self._run(launch, chosen, before)
        assert report.accesses is not None
        self.accesses += report.accesses
        return len(chosen)

    def _follow_first(self, launch: BoundLaunch, total: int, before: PlanState) -> int:
        """The number of blocks that were followed where a sample does not end soon: those from the
        first one on, which wait for nobody behind them, else the sample for as long as may be.
        """
        for chosen, most in (
            (list(range(min(total, MOST_FIRST))), min(FIRST_ROUNDS, self._most_rounds)),
            (sample(total, PROBES), self._most_rounds),
        ):
            before.restore()
            try:
                report = self._run(launch, chosen, before, most)
            except LaunchTimeout as late:
                if not _may_wait(late) or most == self._most_rounds:
                    raise
                continue
            assert report.accesses is not None
            self.accesses += report.accesses
            return len(chosen)
        raise AssertionError("the last attempt returns or raises")

    def _run(
        self, launch: BoundLaunch, chosen: list[int], before: PlanState, most: int | None = None
    ) -> LaunchReport:
        report = self._launched(launch, chosen, self.flags, before, most or self._most_rounds)
        found = report.findings
        reads = [item for item in found if is_unwritten_read(item)]
        if reads and not self._depends_on_unwritten(launch, chosen, before):
            found = tuple(item for item in found if item not in reads)
        self.findings |= dict.fromkeys(report.describe(item) for item in found)
        return report

    def _depends_on_unwritten(
        self, launch: BoundLaunch, chosen: list[int], before: PlanState
    ) -> bool:
        return depends_on_unwritten(
            self.program,
            lambda: self._launched(
                launch, chosen, self.flags | Check.BOUNDS, before, self._most_rounds
            ),
            before,
        )

    def _launched(
        self,
        launch: BoundLaunch,
        chosen: list[int],
        flags: Check,
        before: PlanState,
        most: int,
    ) -> LaunchReport:
        """Raises LaunchTimeout after FEW_ROUNDS at most with strays, else after `most` rounds."""
        checks = Checks(flags, frozenset(self.pointers[name] for name in self._uninitialized))
        try:
            return self.program.run(launch, self.pointers, checks, chosen, min(FEW_ROUNDS, most))
        except LaunchTimeout as late:
            if late.strays or most <= FEW_ROUNDS:
                raise
        before.restore()
        return self.program.run(launch, self.pointers, checks, chosen, most)


def _may_wait(late: LaunchTimeout) -> bool:
    """Whether blocks that did not end may wait for others, as nothing else is known of them."""
    return not late.strays and not isinstance(late, BlockDeadlock)


def work_of(report: LaunchReport) -> float:
    """The work of a launch in checked mode, in the bytes of BUDGET."""
    assert report.accesses is not None
    found = report.accesses
    touched = (
        found.shared_bytes + found.global_load_bytes + found.global_store_bytes + found.local_bytes
    )
    return touched + INSTRUCTION_BYTES * float(instructions_of(report))


def instructions_of(report: LaunchReport) -> int:
    """The instructions that the warps of a launch ran."""
    lengths = numpy.array([len(node.instructions) for node in report.lowered.cfg.nodes])
    return int((report.counters[:, 0] * lengths).sum())


def lines_of(report: LaunchReport) -> set[int]:
    """The lines of the source of which the warps of a launch ran an instruction."""
    lines = report.lowered.lines  # once for all launches of a code: a search has thousands
    ran = numpy.flatnonzero(report.counters[:, 0])
    return set[int]().union(*(lines[number] for number in ran))


def sample(total: int, count: int) -> list[int]:
    """The numbers of about `count` of `total` blocks, ascending: pairs of neighbours, which may
    touch each other's memory, spread from the first to the last.
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
