"""Follows the cases of one candidate after the other in checked mode, on one emulator."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from functools import partial

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import EvoError
from evoengine.evaluate.compile_candidate import CandidateCompiler, CompiledCandidate
from evoengine.evaluate.fault_in_the_open import told_in_the_open
from evoengine.evaluate.followed_cases import FollowedCases
from evoengine.evaluate.hidden_case import HIDDEN_CASE, report_without_sizes
from evoengine.evaluate.told_fault import findings_of
from evoengine.protocols import CompiledCase, Device, Job, Purpose, Report, no_progress
from evoengine.records import CheckedRun, Status
from evoengine.task.schema import Input, Output, Task, shape_of
from evoengine.task.small_cases import smaller_versions

PROBLEM_CHARACTERS = 300
SMALL_S = 20.0  # for the small versions together
MOST_SMALL = 3
# Faults that do not depend on the sizes of a case: what is missing is an order of accesses.
OF_ORDER = ("race", "async copy", "mixed barrier", "divergent barrier", "deadlock")


class CaseFollower:
    """One emulator; closing is safe at any time and more than once."""

    def __init__(
        self,
        task: Task,
        task_path: str,
        compiler: CandidateCompiler,
        limits: DeviceLimits,
        device: Device,
        limit_s: float,
    ) -> None:
        """`limits` are those of the GPU; all cases of a candidate are followed in `limit_s`."""
        self._task = task
        self._task_path = task_path
        self._compiler = compiler
        self._limits = limits
        self.device = device
        self._limit_s = limit_s
        self._is_started = False
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Starts the emulator, which takes seconds of a core, unless it runs; raises EvoError."""
        async with self._starting:
            if not self._is_started:
                await self.device.start(self._task, self._task_path)
                self._is_started = True

    async def close(self) -> None:
        """Ends the emulator's processes."""
        await self.device.close()

    async def follow(self, candidate: Candidate, is_wanted: Callable[[], bool]) -> FollowedCases:
        """What is found on the cases of `candidate`; no case is begun once it is not wanted."""
        try:
            compiled = await self._compiler.compile(candidate, self._limits, no_progress)
            if refusal := compiled.refusal:
                return FollowedCases(problem=_line(f"{refusal.status.value}: {refusal.reason}"))
            return await self._follow_cases(candidate, compiled, is_wanted)
        except EvoError as error:  # the process was killed, or a function of the task failed
            return FollowedCases(problem=_line(str(error)))

    async def _follow_cases(
        self, candidate: Candidate, compiled: CompiledCandidate, is_wanted: Callable[[], bool]
    ) -> FollowedCases:
        runs: dict[str, CheckedRun] = {}
        cases = sorted(compiled.cases, key=self._order)
        ended: tuple[Report, Job] | None = None
        problem = ""
        try:
            async with asyncio.timeout(self._limit_s):
                for number, case in enumerate(cases):
                    if not is_wanted():
                        break
                    job = Job(
                        cases=(case,),
                        tier=compiled.tier,
                        candidate=compiled.code_digest,
                        purpose=Purpose.checked_mode,
                        upcoming=tuple(cases[number + 1 :]),
                    )
                    report = await self.device.run(job, no_progress)
                    if run := _run_in(report):
                        runs[case.plan.case] = run
                    if report.status is not Status.correct:
                        ended = report_without_sizes(report), job
                        break
        except TimeoutError:
            problem = _share(f"stopped after {self._limit_s:g} s", len(runs), len(cases))
        if ended is None and is_wanted() and (problem or any(it.sampled for it in runs.values())):
            fault = await self._fault_of_a_small_one(candidate, compiled)
            if fault is not None:
                return FollowedCases(runs, fault=fault)
        if ended is None:
            return FollowedCases(runs, problem=problem)
        report = await self._in_the_open(*ended, candidate)
        return _ended(runs, report, ended[1].cases[0], len(cases))

    async def _fault_of_a_small_one(
        self, candidate: Candidate, compiled: CompiledCandidate
    ) -> Report | None:
        """The fault on a small version of a shown case, of which all blocks are followed: what
        happens between blocks is seldom seen in a few of many. Not of every kind: a kernel need
        not reach its own memory for sizes that no case has, but it may have no race there.
        """
        task = self._task
        names = [name for case in task.cases for name in smaller_versions(task, case)[:1]]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SMALL_S):
                for case in await self._compiler.compile_small(
                    candidate, names[:MOST_SMALL], self._limits
                ):
                    job = Job(
                        cases=(case,),
                        tier=compiled.tier,
                        candidate=compiled.code_digest,
                        purpose=Purpose.checked_mode,
                    )
                    report = await self.device.run(job, no_progress)
                    if report.status is Status.fault and report.reason.startswith(OF_ORDER):
                        return report.model_copy(update={"forensics": findings_of(report)})
        return None

    async def _in_the_open(self, report: Report, job: Job, candidate: Candidate) -> Report:
        """As told_in_the_open, with a time limit of its own: what was found in time counts."""
        compile_small = partial(self._compiler.compile_small, candidate, limits=self._limits)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limit_s):
                return await told_in_the_open(
                    report, job, self._task, self.device, compile_small, no_progress
                )
        return report

    def _order(self, case: CompiledCase) -> tuple[bool, int]:
        """Small cases first; hidden ones last, because a fault there is told without its lines."""
        scope = self._task.scope(case.plan.case)
        tensors: list[Input | Output] = [*self._task.inputs.values(), *self._task.outputs.values()]
        elements = sum(
            math.prod(shape_of(spec.shape, scope)) for spec in tensors if spec.shape is not None
        )
        return case.plan.hidden, elements


def _run_in(report: Report) -> CheckedRun | None:
    """What was found on the one case of a report; None if it was not followed to an end."""
    return next((check.checked for check in report.checks), None)


def _ended(
    runs: dict[str, CheckedRun], report: Report, case: CompiledCase, cases: int
) -> FollowedCases:
    """The end of the cases by `report`: a fault, or what kept `case` from being followed."""
    if report.status is Status.fault:
        return FollowedCases(runs, fault=report)
    name = HIDDEN_CASE if case.plan.hidden else case.plan.case
    words = f"{report.status.value}: {report.reason}"
    named = words if name in words else f"{words} ({name})"
    return FollowedCases(runs, problem=_share(_line(named), len(runs), cases))


def _share(words: str, followed: int, cases: int) -> str:
    return f"{words}; followed on {followed} of {cases} cases"


def _line(words: str) -> str:
    """The first line of `words`, cut to what a table can show."""
    return next(iter(words.strip().splitlines()), "no reason was given")[:PROBLEM_CHARACTERS]
