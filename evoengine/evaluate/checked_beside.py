"""Checked mode beside a GPU: candidates are also followed on the emulator, in a process of the CPU.

A GPU shows no missing barrier as long as the result is right; the emulator names both its lines. No
first verdict waits for it: a candidate is followed when nobody else is, the newest one first, and
a verification, which counts, waits for what was found.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass

from evoengine.candidate.arch import DeviceLimits, limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import EvoError
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.followed_cases import FollowedCases
from evoengine.evaluate.hidden_case import HIDDEN_CASE, report_without_sizes
from evoengine.protocols import CompiledCase, Device, Job, Report
from evoengine.records import CheckedRun, Environment, Status
from evoengine.task.schema import Input, Output, Task, shape_of

# For all cases of a candidate. The packaged seeds take seconds; a verification waits no longer.
LIMIT_S = 60.0
MEMORY_BYTES = 8 << 30  # of the process, and of each that makes machine code for it
THREADS = 2  # the graders, compilers and torch's work for them need the others
# Those that no verification waits for: as many as are in flight, by default.
MOST_WAITING = 8
PROBLEM_CHARACTERS = 300
NOTICE = (
    "candidates are not followed in checked mode, so races and early reads that leave every result"
    " right are not found: "
)


@dataclass(eq=False)
class _Asked:
    """A candidate that was asked for."""

    candidate: Candidate
    found: asyncio.Future[FollowedCases]
    wanted: bool = True
    is_awaited: bool = False  # by a verdict that counts


class CheckedBeside:
    """Follows candidates one after the other; closing is safe at any time and more than once."""

    def __init__(
        self,
        task: Task,
        task_path: str,
        clang: CompilePool,
        make_device: Callable[[str], Device],
        limit_s: float = LIMIT_S,
    ) -> None:
        """`make_device` makes the emulator of a GPU of an architecture such as sm_90, or raises
        EvoError; `limit_s` is the time in which all cases of a candidate must be followed.
        """
        self._task = task
        self._task_path = task_path
        self._clang = clang
        self._compiler = CandidateCompiler(task, None, clang)
        self._make_device = make_device
        self._limit_s = limit_s
        self._problem = ""  # why no candidate can be followed
        self._limits: DeviceLimits | None = None
        self._device: Device | None = None
        self._is_started = False  # the device
        self._asked: dict[tuple[str, str], _Asked] = {}  # by candidate, with those that are done
        self._waiting: list[_Asked] = []  # oldest first
        self._serving: asyncio.Task[None] | None = None

    async def start(self, environment: Environment) -> tuple[str, ...]:
        """Starts the compiler for the GPU of `environment`; the notices say what is missing."""
        try:
            self._limits = limits_of(environment)
            self._device = self._make_device(environment.arch)
            await self._clang.start()
        except EvoError as error:
            self._problem = str(error)
            return (f"{NOTICE}{error}",)
        return ()

    def begin(self, candidate: Candidate) -> None:
        """Follows `candidate` as soon as the process is free, unless newer ones come before it."""
        if self._problem:
            return
        if (known := self._asked.get(_key_of(candidate))) is not None:
            known.wanted = True
            return
        asked = _Asked(candidate, asyncio.get_running_loop().create_future())
        self._asked[_key_of(candidate)] = asked
        self._waiting.append(asked)
        for old in [item for item in self._waiting if not item.is_awaited][:-MOST_WAITING]:
            self._forget(old)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())

    def drop(self, candidate: Candidate) -> None:
        """Takes `candidate`, which takes no place, out of the queue; no case of it is begun."""
        asked = self._asked.get(_key_of(candidate))
        if asked is None or asked.is_awaited:
            return
        asked.wanted = False
        if asked in self._waiting:
            self._forget(asked)

    async def result(self, candidate: Candidate) -> FollowedCases:
        """What is found on `candidate`, which is followed next; at most once."""
        self.begin(candidate)
        asked = self._asked.get(_key_of(candidate))
        if asked is None:
            return FollowedCases(problem=self._problem)
        asked.wanted = asked.is_awaited = True
        return await asyncio.shield(asked.found)

    async def close(self) -> None:
        """Ends every process."""
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
        for asked in [*self._asked.values()]:
            asked.found.cancel()
        await self._compiler.close()
        if self._device is not None:
            await self._device.close()
        await self._clang.close()

    def _forget(self, asked: _Asked) -> None:
        """Leaves `asked` as if it had never been asked for."""
        if asked in self._waiting:
            self._waiting.remove(asked)
        del self._asked[_key_of(asked.candidate)]
        asked.found.cancel()

    def _next(self) -> _Asked:
        """One that a verdict waits for, else the newest."""
        chosen = next((item for item in self._waiting if item.is_awaited), self._waiting[-1])
        self._waiting.remove(chosen)
        return chosen

    async def _serve(self) -> None:
        while self._waiting:
            asked = self._next()
            following = asyncio.create_task(self._follow(asked))
            try:
                await asyncio.wait([following])
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            if error := following.exception():
                asked.found.set_exception(error)
                asked.found.exception()  # a verdict that waits raises it; nobody need wait
            elif not asked.wanted:
                self._forget(asked)
            else:
                asked.found.set_result(following.result())

    async def _follow(self, asked: _Asked) -> FollowedCases:
        try:
            return await self._follow_cases(asked)
        except EvoError as error:  # the process was killed, or a function of the task failed
            return FollowedCases(problem=_line(str(error)))

    async def _follow_cases(self, asked: _Asked) -> FollowedCases:
        if (device := await self._started_device()) is None:
            return FollowedCases(problem=self._problem)
        assert self._limits is not None
        compiled = await self._compiler.compile(asked.candidate, self._limits, _no_progress)
        if refusal := compiled.refusal:
            return FollowedCases(problem=_line(f"{refusal.status.value}: {refusal.reason}"))
        runs: dict[str, CheckedRun] = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limit_s):
                for case in sorted(compiled.cases, key=self._order):
                    if not asked.wanted:
                        break
                    job = Job(
                        cases=(case,),
                        tier=compiled.tier,
                        candidate=compiled.code_digest,
                        only_checked=True,
                    )
                    report = await device.run(job, _no_progress)
                    if run := _run_in(report):
                        runs[case.plan.case] = run
                    if report.status is not Status.correct:
                        return _ended(runs, report_without_sizes(report), case, len(compiled.cases))
                return FollowedCases(runs)
        late = f"stopped after {self._limit_s:g} s"
        return FollowedCases(runs, problem=_share(late, len(runs), len(compiled.cases)))

    async def _started_device(self) -> Device | None:
        """The emulator, started for the first candidate: importing torch takes seconds of a core.

        None if it does not start; that is the problem of all candidates then.
        """
        assert self._device is not None
        if not self._is_started and not self._problem:
            try:
                await self._device.start(self._task, self._task_path)
            except EvoError as error:
                self._problem = _line(str(error))
            self._is_started = True
        return None if self._problem else self._device

    def _order(self, case: CompiledCase) -> tuple[bool, int]:
        """Small cases first; hidden ones last, because a fault there is told without its lines."""
        scope = self._task.scope(case.plan.case)
        tensors: list[Input | Output] = [*self._task.inputs.values(), *self._task.outputs.values()]
        elements = sum(
            math.prod(shape_of(spec.shape, scope)) for spec in tensors if spec.shape is not None
        )
        return case.plan.hidden, elements


def _key_of(candidate: Candidate) -> tuple[str, str]:
    """Equal for identical candidates; of the whole file, because findings name its lines."""
    return candidate.source_digest, digest_json(candidate.tunables)


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


def _no_progress(_: str) -> None: ...
