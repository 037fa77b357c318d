"""Searches for the one change of a wrong kernel with which every output is right.

Many changes write where they must not, or never end. That costs a GPU a process each time, half a
second, and an emulator nothing: so beside a GPU they are tried on an emulator where it has a small
case that shows the mistake, and the GPU judges those that are right there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, EvoError
from evoengine.evaluate.repair.change_queue import ChangeQueue
from evoengine.evaluate.repair.changed_launches import ChangedLaunches, ignore
from evoengine.evaluate.repair.cheap_case import (
    is_small_enough,
    is_wrong,
    smaller_cases,
)
from evoengine.evaluate.repair.kinds.difference_changes import difference_changes
from evoengine.evaluate.repair.repair_job import (
    ChangeCompiler,
    CompiledChanges,
    changed_candidate,
)
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import SwitchedChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs, comparison
from evoengine.protocols import Job, Progress, Purpose
from evoengine.records import CaseCheck, Status

LOOKED_AT = 6  # small cases at once, of which one is to show the mistake
CHOICE_S = 8.0  # in which an emulator beside a GPU must show the mistake
SLOW_S = 1.5  # of a case there, with its compilation and the reference of its inputs
# Changes that are right on a small case and wrong on others: then the next larger one is taken.
MOST_REFUTED = 2
# After the first change that makes all right, others are looked for as long as this share of the
# time so far, because a second one shows that the first need not be what was meant.
MORE_SHARE = 0.25
MORE_S = 3.0  # at most


@dataclass
class FoundRepairs:
    """The changes that make every output right, the likeliest first, and what was tried."""

    changes: list[SourceChange] = field(default_factory=list)
    known: int = 0  # changes of the kernel altogether
    launched: int = 0
    compilations: int = 0
    refuted: int = 0  # right on the wrong inputs, wrong elsewhere
    seconds: float = 0.0


class RepairSearch:
    """The search for what a device finds wrong."""

    def __init__(
        self,
        judge: Workbench,
        limits: DeviceLimits,
        emulator: Workbench | None = None,
        clock: Callable[[], float] = time.monotonic,
        likes: Sequence[Candidate] = (),
        only_likes: bool = False,
    ) -> None:
        """`judge` decides whether a changed kernel is right; `emulator` is beside a GPU, `limits`
        are that GPU's. `likes` are kernels of the task that are right: where a candidate differs
        from one that is like it, what that one has is tried first; with `only_likes` nothing else,
        and only where an emulator tries it.
        """
        self.likes = likes
        self.only_likes = only_likes
        self.limits = limits
        self.clock = clock
        self.bench = judge  # where changes are tried
        self._judge = judge
        self._emulator = emulator
        # how the candidate does on the cases where it is wrong, without alternatives
        self.alone: dict[str, CaseCheck] = {}

    async def find(
        self,
        candidate: Candidate,
        wrong: WrongInputs,
        seconds: float,
        progress: Progress,
        told: Sequence[str] = (),
    ) -> FoundRepairs:
        """The changes of `candidate` that make it right everywhere, found in at most about
        `seconds`; those of which the findings `told` speak come first. Raises WorkerError,
        DeviceError and ToolchainError where a process fails before anything was found.
        """
        if self.only_likes and not any(
            any(difference_changes(candidate, like)) for like in self.likes
        ):
            return FoundRepairs()
        progress("looking for the change that makes it right")
        began = self.clock()

        async def walked(wrong: Sequence[WrongInputs]) -> FoundRepairs:
            left = seconds - (self.clock() - began)
            walk = _Walk(self, candidate, wrong, left, progress, told)
            await walk.run()
            walk.found.seconds = self.clock() - began
            return walk.found

        chosen = await self._choose_bench(candidate, wrong)
        if self.only_likes and not self.bench.is_emulator:  # a search needs its GPU
            return FoundRepairs()
        if wrong.is_fault and not self.bench.is_emulator:  # which alone shows it
            if not wrong.has_outputs:
                return FoundRepairs()
            chosen = [replace(wrong, is_fault=False)]
        try:
            return await walked(chosen)
        except EvoError as error:
            if self.only_likes or self.bench is self._judge or not wrong.has_outputs:
                raise
            progress(f"note: the emulator gave up: {error}; changes are tried on the GPU")
            self.bench = self._judge
            return await walked([replace(wrong, is_fault=False)])

    async def _choose_bench(self, candidate: Candidate, wrong: WrongInputs) -> list[WrongInputs]:
        """Chooses where changes are tried, and returns the inputs on which: those of the same
        number of the small cases on which an emulator finds the candidate wrong, the smallest
        first. Where there are none they are `wrong`, and the judge tries; a GPU launches in no
        time.
        """
        self.alone = {}
        for bench in (self._emulator, self._judge):
            if bench is not None and bench.is_emulator:
                self.bench = bench
                found = await self._small_wrong_ones(candidate, wrong)
                if found:
                    return found
        self.bench = self._judge
        return [wrong]

    async def _small_wrong_ones(
        self, candidate: Candidate, wrong: WrongInputs
    ) -> list[WrongInputs]:
        """None of them where no small case is wrong, and on an emulator beside a GPU also where
        launches take longer than the GPU's would with all its crashes.
        """
        task, is_beside = self.bench.compiler.task, self.bench is self._emulator
        names = smaller_cases(task, wrong.case)
        if is_beside and is_small_enough(task, wrong.case):
            names.append(wrong.case)
        try:
            async with asyncio.timeout(CHOICE_S if is_beside else None):
                for first in range(0, len(names), LOOKED_AT):
                    looked_at = names[first : first + LOOKED_AT]
                    found = await self._wrong_ones(looked_at, candidate, wrong, is_beside)
                    if found:
                        return found
        except (EvoError, TimeoutError):
            pass
        return []

    async def _wrong_ones(
        self, names: Sequence[str], candidate: Candidate, wrong: WrongInputs, is_beside: bool
    ) -> list[WrongInputs]:
        """Those of the cases on which the candidate is wrong, where launches are quick enough."""
        began = self.clock()
        cases = await self.bench.compiler.compile_small(candidate, names, self.limits)
        if not cases:
            return []
        report = await self.bench.device.run(comparison(candidate, cases, wrong), ignore)
        if is_beside and self.clock() - began > SLOW_S * len(cases):
            return []
        self.alone = {check.case: check for check in report.checks if is_wrong(check)}
        return [replace(wrong, case=case) for case in self.alone]

    async def wrong_elsewhere(self, changed: Candidate) -> str:
        """Why the whole verdict on it, hidden cases and checked mode included, is not correct;
        empty where it is.
        """
        compiled = await self._judge.compiler.compile(changed, self.limits, ignore)
        if compiled.refusal is not None:
            return compiled.refusal.status.value
        job = Job(
            cases=compiled.cases,
            tier=changed.plan.precision,
            candidate=compiled.code_digest,
            purpose=Purpose.outputs,
        )
        # in a process that has run none of the changes, some of which write where they must not
        report = await self._judge.device.run(job, ignore, verify=True)
        return "" if report.status is Status.correct else report.status.value


class _Walk:
    """One search: the changes in their order, as long as there is time."""

    def __init__(
        self,
        search: RepairSearch,
        candidate: Candidate,
        wrong: Sequence[WrongInputs],
        seconds: float,
        progress: Progress,
        told: Sequence[str],
    ) -> None:
        """Changes are tried on the first of `wrong`, and on the next when it shows too little."""
        self.found = FoundRepairs()
        self._search = search
        self._candidate = candidate
        self._wrong, *self._larger = wrong
        self._progress = progress
        self._clock = search.clock
        self._began = self._clock()
        self._ends = self._began + seconds
        self._compiler = self._compiler_of_case()
        self._launches = ChangedLaunches(candidate, search.bench, search.alone, search.clock)
        self._refuted = 0  # on this case
        self._knows_plain_code = False
        self._queue = ChangeQueue(candidate, told, search.likes, search.only_likes)
        self.found.known = len(self._queue)

    async def run(self) -> None:
        """Tries changes until time is up. What was found stays found if a process fails later."""
        try:
            await self._try_all()
        except EvoError as error:
            if not self.found.changes:
                raise
            self._progress(f"note: the search for further changes was given up: {error}")
        self.found.compilations += self._compiler.compilations

    def _compiler_of_case(self) -> ChangeCompiler:
        bench = self._search.bench
        return ChangeCompiler(
            self._candidate, self._wrong.case, bench.compiler, self._search.limits
        )

    def _take_larger_case(self) -> None:
        self.found.compilations += self._compiler.compilations
        self._wrong = self._larger.pop(0)
        self._compiler = self._compiler_of_case()
        self._refuted = 0
        self._knows_plain_code = False

    async def _try_all(self) -> None:
        following = self._compile(self._queue.taken())
        try:
            while following is not None and self._clock() < self._ends:
                compiled = await following
                following = self._compile(self._queue.taken())
                if compiled is not None:
                    await self._try(compiled)
                    self._compiler.discard(compiled)
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    def _compile(
        self, taken: Sequence[SwitchedChange] | SourceChange | None
    ) -> asyncio.Task[CompiledChanges | None] | None:
        """The compilation of changes, begun; None where there are none."""
        if taken is None:
            return None
        if isinstance(taken, SourceChange):
            return asyncio.create_task(self._compiler.alone(taken))
        return asyncio.create_task(self._compiler.together(taken))

    async def _try(self, compiled: CompiledChanges) -> None:
        """Launches each change of a code; the whole verdict decides on those that are right."""
        launched = await self._launches.launched(compiled, self._wrong, self._ends)
        if launched.is_spoiled:
            await self._know_plain_code()
            self._queue.split(compiled.changes)
            return
        self.found.launched += len(compiled.changes)
        self._queue.saw(launched)
        self._progress(f"looking for the change that makes it right: {self.found.launched} tried")
        for number, change in enumerate(launched.right_ones):
            if self.found.changes and self._clock() >= self._ends:
                break  # a whole verdict takes seconds, and one is enough when time is up
            await self._verify(change)
            if self._refuted >= MOST_REFUTED and self._larger and not self.found.changes:
                self._take_larger_case()
                self._queue.again(launched.right_ones[number + 1 :])
                break

    async def _know_plain_code(self) -> None:
        """Once: what the kernel does in a code that has no changes, to tell which ones spoil it."""
        if self._knows_plain_code:
            return
        self._knows_plain_code = True
        compiled = await self._compiler.together(())
        if compiled is not None:
            await self._launches.compare_with(compiled, self._wrong, self._ends)
            self._compiler.discard(compiled)

    async def _verify(self, change: SourceChange) -> None:
        try:
            changed = changed_candidate(self._candidate, change)
        except CandidateError:
            return
        if why := await self._search.wrong_elsewhere(changed):
            self.found.refuted += 1
            self._refuted += 1
            self._progress(f"note: right on the inputs that were wrong, {why} on others")
            return
        self.found.changes.append(change)
        now = self._clock()
        self._ends = min(self._ends, now + min(MORE_S, MORE_SHARE * (now - self._began)))
