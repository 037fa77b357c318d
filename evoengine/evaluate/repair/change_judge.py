"""Decides whether a change that is right on the wrong inputs is right everywhere, and meant so.

A change that is right by chance is often right for the cases' sizes and the kernel's own tunables
alone: a step that happens to be one, a width that divides. What was meant is right for all that the
kernel declares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from enum import StrEnum

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.cheap_case import is_wrong, smaller_cases
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs, comparison
from evoengine.protocols import CompiledCase, Job, Purpose, no_progress
from evoengine.records import CaseCheck, Status

MOST_SIZES = 8  # small cases that are tried with the tunables as they are
MOST_TUNABLES = 6  # other values, one at a time
SIZES_OF_EACH = 2  # small cases for each of these


class Doubt(StrEnum):
    """Why a change that is right in every case need not be what was meant."""

    fails = "wrong with other sizes or tunables"
    skips = "lines of the kernel only stop running with it"


class ChangeJudge:
    """The judge of changed kernels of one candidate."""

    def __init__(
        self,
        candidate: Candidate,
        judge: Workbench,
        bench: Workbench,
        limits: DeviceLimits,
        wrong: WrongInputs,
        followed: Sequence[str],
    ) -> None:
        """`judge` gives whole verdicts for a device with `limits`; on `bench` changes are tried.
        `followed` are the small cases of an emulator beside a GPU, by name, on which a change is
        followed after a fault.
        """
        self._candidate = candidate
        self._lines: frozenset[int] | None = None  # that the candidate runs, once they are known
        self._judge = judge
        self._bench = bench
        self._limits = limits
        self._wrong = wrong
        self._followed = tuple(followed)

    async def wrong_elsewhere(self, changed: Candidate) -> str:
        """Why a changed kernel is not right everywhere; empty if it is. After a fault the emulator
        beside a GPU follows it on each small case, as the GPU shows no race.
        """
        why = await self._whole_verdict(changed)
        if why or not (self._followed and self._wrong.is_fault):
            return why
        cases = await self._compiled(changed, self._followed)
        return "fault" if await self._is_wrong_on(changed, cases) else ""

    async def _whole_verdict(self, changed: Candidate) -> str:
        """Why the whole verdict on it, hidden cases and checked mode included, is not correct;
        empty where it is.
        """
        compiled = await self._judge.compiler.compile(changed, self._limits, no_progress)
        if compiled.refusal is not None:
            return compiled.refusal.status.value
        job = Job(
            cases=compiled.cases,
            tier=changed.plan.precision,
            candidate=compiled.code_digest,
            purpose=Purpose.outputs,
        )
        # in a process that has run none of the changes, some of which write where they must not
        report = await self._judge.device.run(job, no_progress, verify=True)
        return "" if report.status is Status.correct else report.status.value

    async def further_doubt(self, changed: Candidate, change: SourceChange) -> Doubt | None:
        """Why a change that is right in every case need not be meant, by the small cases and by
        other declared values of tunables; None where nothing says so. Raises EvoError where a
        process fails.
        """
        sizes, others = self._sizes(), list(_other_tunables(changed))
        trials = [(changed, sizes), *((other, sizes[:SIZES_OF_EACH]) for other in others)]
        compiled = await asyncio.gather(*(self._compiled(*trial) for trial in trials))
        own = await self._launched(changed, compiled[0])
        if any(map(is_wrong, own)):
            return Doubt.fails
        for (kernel, _), cases in zip(trials[1:], compiled[1:], strict=True):
            if await self._is_wrong_on(kernel, cases):
                return Doubt.fails
        return Doubt.skips if await self._only_skips(change, own) else None

    async def _only_skips(self, change: SourceChange, checks: Sequence[CaseCheck]) -> bool:
        """Whether some lines of the candidate do not run any more with a change, on any of the
        small cases, which `checks` are of, and no others do: it may only keep what is wrong from
        running. False where an emulator does not count them.
        """
        if self._lines is None:
            cases = await self._compiled(self._candidate, self._sizes())
            self._lines = _lines_that_ran(await self._launched(self._candidate, cases))
        source = self._candidate.source
        ran = change.lines_before(source, _lines_that_ran(checks))
        own = change.lines(source)
        return bool(ran) and bool(self._lines - ran - own) and not ran - self._lines - own

    def _sizes(self) -> list[str]:
        """The small cases of the task, and the one that was wrong if it is one of its own."""
        task = self._bench.compiler.task
        known = [self._wrong.case] if self._wrong.case in task.cases else []
        names = [*known, *(name for case in task.cases for name in smaller_cases(task, case))]
        return list(dict.fromkeys(names))[:MOST_SIZES]

    async def _compiled(self, changed: Candidate, cases: Sequence[str]) -> tuple[CompiledCase, ...]:
        """Those of the small cases that it serves."""
        return await self._bench.compiler.compile_small(changed, cases, self._limits)

    async def _is_wrong_on(self, changed: Candidate, cases: tuple[CompiledCase, ...]) -> bool:
        """Whether one of the cases is wrong or at fault."""
        return any(map(is_wrong, await self._launched(changed, cases)))

    async def _launched(
        self, kernel: Candidate, cases: tuple[CompiledCase, ...]
    ) -> tuple[CaseCheck, ...]:
        """What a kernel does on the cases."""
        if not cases:
            return ()
        job = comparison(kernel, cases, self._wrong)
        return (await self._bench.device.run(job, no_progress)).checks


def _lines_that_ran(checks: Sequence[CaseCheck]) -> frozenset[int]:
    """The lines of the source that ran in launches; none where one of them was not counted."""
    work = [check.work for check in checks]
    if not all(work):
        return frozenset()
    return frozenset(line for item in work if item is not None for line in item.lines)


def _other_tunables(candidate: Candidate) -> Iterator[Candidate]:
    """The candidate with other values, one tunable at a time: of each the first, then more."""
    others = {
        name: [value for value in values if value != candidate.tunables[name]]
        for name, values in candidate.plan.tunables.items()
    }
    ordered = [
        (name, values[number])
        for number in range(max(map(len, others.values()), default=0))
        for name, values in others.items()
        if number < len(values)
    ]
    for name, value in ordered[:MOST_TUNABLES]:
        yield candidate.tuned({name: value})
