"""Tries the changes of a kernel in their order, on one emulator or several, or on a GPU.

An emulator launches one change after the other on one core. Where a machine has cores for several
emulators, each takes the next changes that are left, so that as many more are tried in the time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, EvoError
from evoengine.evaluate.repair.change_judge import ChangeJudge, Doubt
from evoengine.evaluate.repair.change_queue import ChangeQueue
from evoengine.evaluate.repair.changed_launches import ChangedLaunches
from evoengine.evaluate.repair.found_repairs import MUCH_WORK, FoundRepairs
from evoengine.evaluate.repair.plan_changes import PlanChanges
from evoengine.evaluate.repair.repair_job import (
    ChangeCompiler,
    CompiledChanges,
    changed_candidate,
)
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.switched_change import SwitchedChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs
from evoengine.protocols import CompiledCase, Progress
from evoengine.records import CaseCheck

AHEAD = 2  # codes that are compiled while another one is launched
# Changes that are right on a small case and wrong on others: then the next larger one is taken.
MOST_REFUTED = 2
# After the first change that makes all right, others are looked for as long as this share of the
# time so far, because a second one shows that the first need not be what was meant.
MORE_SHARE = 0.25
MORE_S = 3.0  # at most
# Where the first one is doubtful: a part of it may be enough, or with it the kernel does much more.
DOUBTFUL_S = 8.0
# Of a kind, of those that need not be what was meant; a whole verdict takes seconds.
MOST_ALIKE = 2
MOST_SKIPPING = 4  # changes of one line that only keep others from running
# After a fault a change is launched so many times more: a race shows itself by chance, and a GPU
# does not show it at all.
AGAIN = 4
AGAIN_S = 2.0  # that these may take where the time is up


class RepairWalk:
    """One walk through the changes of a candidate, as long as there is time."""

    def __init__(
        self,
        candidate: Candidate,
        wrong: Sequence[WrongInputs],
        benches: Sequence[Workbench],
        queue: ChangeQueue,
        alone: dict[str, CaseCheck],
        judge: ChangeJudge,
        limits: DeviceLimits,
        until: float,
        progress: Progress,
        clock: Callable[[], float],
    ) -> None:
        """Changes are tried on the first of `wrong`, and on the next when it shows too little.

        `benches` are alike; `alone` says how the candidate does, by case, without alternatives to
        it; `judge` decides on those that are right there. No change is begun after `until`, a time
        of `clock`.
        """
        self.found = FoundRepairs(known=len(queue))
        self._candidate = candidate
        self._wrong, *self._larger = wrong
        self._benches = benches
        self._queue = queue
        self._alone = alone
        self._judge = judge
        self._limits = limits
        self._progress = progress
        self._clock = clock
        self._began = clock()
        self._ends = until
        self._compiler = self._compiler_of_case()
        self._refuted = 0  # on this case
        self._one_at_a_time = asyncio.Lock()  # of whole verdicts, and of the code without changes
        self._knows_plain_code = False

    async def run(self) -> None:
        """Tries changes until time is up. What was found stays found if a process fails later, and
        the other benches go on; raises EvoError where all of them failed and nothing was found.
        """
        lanes = [asyncio.create_task(self._try_on(bench)) for bench in self._benches]
        try:
            await asyncio.wait(lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)
        failures = [error for lane in lanes if (error := lane.exception()) is not None]
        for error in failures:
            if not isinstance(error, EvoError):
                raise error
        if len(failures) == len(lanes) and not self.found.changes:
            raise failures[0]
        for error in failures:
            self._progress(f"note: the search for further changes was given up: {error}")
        self.found.compilations += self._compiler.compilations

    def _compiler_of_case(self) -> ChangeCompiler:
        compiler = self._benches[0].compiler
        return ChangeCompiler(self._candidate, self._wrong.case, compiler, self._limits)

    def _take_larger_case(self) -> None:
        self.found.compilations += self._compiler.compilations
        self._wrong = self._larger.pop(0)
        self._compiler = self._compiler_of_case()
        self._refuted = 0
        self._knows_plain_code = False

    async def _try_on(self, bench: Workbench) -> None:
        """Tries what is left on one bench; the next changes are compiled meanwhile."""
        await bench.start()
        launches = ChangedLaunches(self._candidate, bench, self._alone, self._clock)
        coming = deque(asyncio.create_task(self._next_compiled()) for _ in range(AHEAD))
        try:
            while coming and self._clock() < self._ends:
                compiled = await coming.popleft()
                if compiled is None:
                    continue
                coming.append(asyncio.create_task(self._next_compiled()))
                if compiled.is_shared and compiled.case != self._wrong.case:
                    self._queue.again(compiled.changes)  # on the larger case that was taken
                    self._compiler.discard(compiled)
                    continue
                launches.upcoming = self._codes_after(coming[0])
                try:
                    await self._try(compiled, launches)
                finally:
                    self._compiler.discard(compiled)
        finally:
            for task in coming:
                task.cancel()
            for left in await asyncio.gather(*coming, return_exceptions=True):
                if isinstance(left, CompiledChanges):
                    self._compiler.discard(left)

    async def _next_compiled(self) -> CompiledChanges | None:
        """The next changes that compile; None where none are left."""
        while (taken := self._queue.taken()) is not None:
            compiled = await self._compiled(taken)
            if compiled is not None:
                self._queue.alone(compiled.left_out)
                if compiled.changes:
                    return compiled
        return None

    def _codes_after(
        self, following: asyncio.Task[CompiledChanges | None]
    ) -> tuple[CompiledCase, ...]:
        """One case of each code that is launched after this one: of the next changes, where they
        are compiled, and of the kernel as it is, of which there are further plans.
        """
        ended = following.done() and not following.cancelled() and following.exception() is None
        ahead = following.result() if ended else None
        plain = self._compiler.plain
        return (*(ahead.cases[:1] if ahead else ()), *((plain,) if plain else ()))

    async def _compiled(
        self, taken: Sequence[SwitchedChange] | PlanChanges | SourceChange
    ) -> CompiledChanges | None:
        """Changes with their code; None where they do not compile."""
        if isinstance(taken, SourceChange):
            return await self._compiler.alone(taken)
        if isinstance(taken, PlanChanges):
            return await self._compiler.of_plan(taken)
        return await self._compiler.together(taken)

    async def _try(self, compiled: CompiledChanges, launches: ChangedLaunches) -> None:
        """Launches each change of a code; the whole verdict decides on those that are right."""
        launched = await launches.launched(compiled, self._wrong, self._ends)
        if launched.is_spoiled:
            await self._know_plain_code(launches)
            self._queue.split(compiled.changes)
            return
        self.found.launched += len(compiled.changes)
        self._queue.saw(launched)
        self._progress(f"looking for the change that makes it right: {self.found.launched} tried")
        right_ones = compiled.smallest_first(launched.right_ones)
        for number, change in enumerate(right_ones):
            if self._wrong.is_fault and not await self._is_right_again(change, compiled, launches):
                continue
            async with self._one_at_a_time:
                if self.found.changes and self._clock() >= self._ends:
                    break  # a whole verdict takes seconds, and one is enough when time is up
                await self._verify(change, launched.work_with(change))
            if self._refuted >= MOST_REFUTED and self._larger and not self.found.changes:
                self._take_larger_case()
                self._queue.again(right_ones[number + 1 :])
                break

    async def _is_right_again(
        self, change: SourceChange, compiled: CompiledChanges, launches: ChangedLaunches
    ) -> bool:
        """Whether a change is right in each of some further launches."""
        case = compiled.cases[compiled.changes.index(change)]
        again = replace(compiled, changes=(change,), cases=(case,), unchanged=None)
        until = max(self._ends, self._clock() + AGAIN_S)
        for _ in range(AGAIN):
            if not (await launches.launched(again, self._wrong, until)).right_ones:
                return False
        return True

    async def _know_plain_code(self, launches: ChangedLaunches) -> None:
        """Once: what the kernel does in a code that has no changes, to tell which ones spoil it."""
        async with self._one_at_a_time:
            if self._knows_plain_code:
                return
            self._knows_plain_code = True
            compiled = await self._compiler.together(())
            if compiled is not None:
                await launches.compare_with(compiled, self._wrong, self._ends)
                self._compiler.discard(compiled)

    def _is_one_of_many(self, change: SourceChange) -> bool:
        """Whether changes like it were found that need not be what was meant."""
        source = self._candidate.source
        alike = [item for item in self.found.changes if item.kind == change.kind]
        line = change.line(source)
        near = [item for item in alike if item.line(source) == line]
        by_chance = sum(item in self.found.by_chance for item in near)
        avoids = len(alike) >= MOST_ALIKE and self._queue.may_avoid(change)
        skipping = sum(item.line(source) == line for item in self.found.skipping)
        return avoids or by_chance >= MOST_ALIKE or skipping >= MOST_SKIPPING

    async def _verify(self, change: SourceChange, work: float | None) -> None:
        if self._is_one_of_many(change):
            return
        try:
            changed = changed_candidate(self._candidate, change)
        except CandidateError:
            return
        if why := await self._judge.wrong_elsewhere(changed):
            self.found.refuted += 1
            self._refuted += 1
            self._progress(f"note: right on the inputs that were wrong, {why} on others")
            return
        self.found.changes.append(change)
        if work is not None:
            self.found.work[change] = work
        if self._queue.may_avoid(change):
            return
        doubt = await self._judge.further_doubt(changed, change)
        if doubt is not None:
            by_doubt = {Doubt.fails: self.found.by_chance, Doubt.skips: self.found.skipping}
            by_doubt[doubt].append(change)
            return
        is_doubtful = self._queue.take_parts_first(change) or (work or 1.0) > MUCH_WORK
        now = self._clock()
        more = DOUBTFUL_S if is_doubtful else min(MORE_S, MORE_SHARE * (now - self._began))
        self._ends = min(self._ends, now + more)
