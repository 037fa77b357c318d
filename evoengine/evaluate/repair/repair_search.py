"""Searches for the one change of a wrong kernel with which every output is right.

Many changes write where they must not, or never end. That costs a GPU a process each time, half a
second, and an emulator nothing: so beside a GPU they are tried on emulators where those have a
small case that shows the mistake, and the GPU judges those that are right there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError, EvoError
from evoengine.evaluate.repair.change_judge import ChangeJudge
from evoengine.evaluate.repair.change_order import header_end, ordered_changes
from evoengine.evaluate.repair.change_queue import ChangeQueue
from evoengine.evaluate.repair.cheap_case import (
    is_small_enough,
    is_wrong,
    smaller_cases,
)
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.kinds.difference_changes import difference_changes
from evoengine.evaluate.repair.repair_job import changed_candidate
from evoengine.evaluate.repair.repair_walk import RepairWalk
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs, comparison
from evoengine.protocols import Progress, no_progress
from evoengine.records import CaseCheck

LOOKED_AT = 6  # small cases at once, of which one is to show the mistake
CHOICE_S = 8.0  # in which an emulator beside a GPU must show the mistake
SLOW_S = 1.5  # of a case there, with its compilation and the reference of its inputs


class RepairSearch:
    """The search for what a device finds wrong."""

    def __init__(
        self,
        judge: Workbench,
        limits: DeviceLimits,
        emulators: Sequence[Workbench] = (),
        clock: Callable[[], float] = time.monotonic,
        likes: Sequence[Candidate] = (),
        only_likes: bool = False,
    ) -> None:
        """`judge` decides whether a changed kernel is right; `emulators` are beside a GPU, `limits`
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
        self._emulators = emulators
        # how the candidate does on the cases where it is wrong, without alternatives
        self.alone: dict[str, CaseCheck] = {}
        self._followed: tuple[str, ...] = ()  # small cases that an emulator beside a GPU launched

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

        def ordered() -> ChangeQueue:
            return ChangeQueue(candidate, told, self.likes, self.only_likes)

        # to order the changes takes seconds, in which other processes show what is wrong
        ordering = asyncio.create_task(asyncio.to_thread(ordered))
        starting = [asyncio.create_task(bench.start()) for bench in self._emulators]
        try:
            until = began + seconds
            found = await self._find(candidate, wrong, until, progress, ordering, ordered)
            found.seconds = self.clock() - began
            return found
        finally:
            await asyncio.gather(ordering, *starting, return_exceptions=True)

    async def find_in_plan(
        self, candidate: Candidate, seconds: float, progress: Progress
    ) -> FoundRepairs:
        """The first change of a launch plan that cannot be built with which the plan of every case
        can be, and every output is right; found in at most about `seconds`. Raises as `find` does.
        """
        progress("looking for the change of the plan that makes it right")
        began, found = self.clock(), FoundRepairs()
        case = next(iter(self._judge.compiler.task.cases))
        judge = ChangeJudge(
            candidate, self._judge, self._judge, self.limits, WrongInputs(case, 0), ()
        )
        changes = await asyncio.to_thread(ordered_changes, candidate)
        for change, _ in changes:
            if found.changes or self.clock() - began > seconds:
                break
            changed = self._with_a_plan(candidate, change)
            if changed is not None:
                found.launched += 1
                if not await judge.wrong_elsewhere(changed):
                    found.changes.append(change)
        found.seconds = self.clock() - began
        return found

    def _with_a_plan(self, candidate: Candidate, change: SourceChange) -> Candidate | None:
        """The candidate with a change of its header, if its plan can be built for each case."""
        if any(piece.end > header_end(candidate) for piece in change.pieces):
            return None
        try:
            changed = changed_candidate(candidate, change)
            for case in self._judge.compiler.task.all_cases:
                bind(changed, self._judge.compiler.task, case, self.limits)
        except CandidateError:
            return None
        return changed

    async def _find(
        self,
        candidate: Candidate,
        wrong: WrongInputs,
        until: float,
        progress: Progress,
        ordering: Awaitable[ChangeQueue],
        ordered: Callable[[], ChangeQueue],
    ) -> FoundRepairs:
        async def walked(wrong: Sequence[WrongInputs], queue: ChangeQueue) -> FoundRepairs:
            walk = RepairWalk(
                candidate,
                wrong,
                self._emulators if self._is_beside else (self.bench,),
                queue,
                self.alone,
                ChangeJudge(
                    candidate, self._judge, self.bench, self.limits, wrong[0], self._followed
                ),
                self.limits,
                until,
                progress,
                self.clock,
            )
            await walk.run()
            return walk.found

        chosen = await self._choose_bench(candidate, wrong)
        if self.only_likes and not self.bench.is_emulator:  # a search needs its GPU
            return FoundRepairs()
        if wrong.is_fault and not self.bench.is_emulator:  # which alone shows it
            if not wrong.has_outputs:
                return FoundRepairs()
            chosen = [replace(wrong, is_fault=False)]
        try:
            return await walked(chosen, await ordering)
        except EvoError as error:
            if self.only_likes or self.bench is self._judge or not wrong.has_outputs:
                raise
            progress(f"note: the emulator gave up: {error}; changes are tried on the GPU")
            self.bench = self._judge
            return await walked([replace(wrong, is_fault=False)], ordered())

    @property
    def _is_beside(self) -> bool:
        """Whether changes are tried on an emulator beside the GPU."""
        return bool(self._emulators) and self.bench is self._emulators[0]

    async def _choose_bench(self, candidate: Candidate, wrong: WrongInputs) -> list[WrongInputs]:
        """Chooses where changes are tried, and returns the inputs on which: those of the same
        number of the small cases on which an emulator finds the candidate wrong, the smallest
        first. Where there are none they are `wrong`, and the judge tries; a GPU launches in no
        time.
        """
        self.alone, self._followed = {}, ()
        for bench in (*self._emulators[:1], self._judge):
            if bench.is_emulator:
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
        task, is_beside = self.bench.compiler.task, self._is_beside
        names = smaller_cases(task, wrong.case)
        if is_beside and is_small_enough(task, wrong.case):
            names.append(wrong.case)
        try:
            await self.bench.start()
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
        report = await self.bench.device.run(comparison(candidate, cases, wrong), no_progress)
        if is_beside and self.clock() - began > SLOW_S * len(cases):
            return []
        self.alone = {check.case: check for check in report.checks if is_wrong(check)}
        self._followed = tuple(check.case for check in report.checks) if is_beside else ()
        return [replace(wrong, case=case) for case in self.alone]
