"""Checked mode beside a GPU: candidates are also followed on the emulator, in processes of the CPU.

A GPU shows no missing barrier as long as the result is right; the emulator names both its lines. No
first verdict waits for it: a candidate is followed as soon as an emulator is free, the newest one
first, and a verification, which counts, waits for what was found.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import EvoError
from evoengine.evaluate.case_follower import CaseFollower
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.followed_cases import FollowedCases
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.protocols import Device, Report
from evoengine.records import Environment
from evoengine.task.schema import Task

# For all cases of a candidate. The packaged seeds take seconds; a verification waits no longer.
LIMIT_S = 60.0
MEMORY_BYTES = 8 << 30  # of an emulator, and of each process that makes machine code for it
# A candidate has several specialisations, which are compiled at the same time.
THREADS = 3
# With THREADS for each, the graders, compilers and torch's work for them keep a quarter.
CORES_PER_EMULATOR = 4
MOST_EMULATORS = 6  # on the largest machines; each holds torch and the task's inputs
# Those that no verification waits for: as many as are in flight, by default.
MOST_WAITING = 8
NOTICE = (
    "candidates are not followed in checked mode, so races and early reads that leave every result"
    " right are not found: "
)


def emulators_here() -> int:
    """How many emulators this machine has room for beside a GPU's work."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores // CORES_PER_EMULATOR, memory // (2 * MEMORY_BYTES), MOST_EMULATORS))


@dataclass(eq=False)
class _Asked:
    """A candidate that was asked for."""

    candidate: Candidate
    found: asyncio.Future[FollowedCases]
    wanted: bool = True
    is_awaited: bool = False  # by a verdict that counts
    waits_briefly: bool = False  # a verdict that is the same without it


class CheckedBeside:
    """Follows as many candidates at once as it has emulators; closing is safe at any time and more
    than once.
    """

    def __init__(
        self,
        task: Task,
        task_path: str,
        clang: CompilePool,
        make_device: Callable[[str], Device],
        limit_s: float = LIMIT_S,
        emulators: int = 1,
    ) -> None:
        """`make_device` makes an emulator of a GPU of an architecture such as sm_90, or raises
        EvoError; `limit_s` is the time in which all cases of a candidate must be followed.
        """
        self._task = task
        self._task_path = task_path
        self._clang = clang
        self._compiler = CandidateCompiler(task, None, clang)
        self._make_device = make_device
        self._limit_s = limit_s
        self._emulators = emulators
        self._problem = ""  # why no candidate can be followed
        self._is_closed = False
        self._followers: list[CaseFollower] = []
        self._idle: list[CaseFollower] = []
        self._asked: dict[tuple[str, str], _Asked] = {}  # by candidate, with those that are done
        self._waiting: list[_Asked] = []  # oldest first
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self, environment: Environment) -> tuple[str, ...]:
        """Starts the compiler for the GPU of `environment`; the notices say what is missing."""
        try:
            limits = limits_of(environment)
            self._followers = [
                CaseFollower(
                    self._task,
                    self._task_path,
                    self._compiler,
                    limits,
                    self._make_device(environment.arch),
                    self._limit_s,
                )
                for _ in range(self._emulators)
            ]
            await self._clang.start()
        except EvoError as error:
            self._problem = str(error)
            return (f"{NOTICE}{error}",)
        self._idle = [*self._followers]
        return ()

    def begin(self, candidate: Candidate) -> None:
        """Follows `candidate` as soon as an emulator is free, unless newer ones come before it."""
        if self._problem:
            return
        if (known := self._asked.get(_key_of(candidate))) is not None:
            known.wanted = True
            return
        asked = _Asked(candidate, asyncio.get_running_loop().create_future())
        self._asked[_key_of(candidate)] = asked
        self._waiting.append(asked)
        others = [item for item in self._waiting if not item.is_awaited and not item.waits_briefly]
        for old in others[:-MOST_WAITING]:
            self._forget(old)
        self._serve_waiting()

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
        asked = self._begun(candidate)
        if asked is None:
            return FollowedCases(problem=self._problem)
        asked.is_awaited = True
        return await asyncio.shield(asked.found)

    async def fault(self, candidate: Candidate, wait_s: float) -> Report | None:
        """The fault of `candidate`, if one is found in `wait_s`: its verdict is the same without
        it, so those that count go first.
        """
        asked = self._begun(candidate)
        if asked is None:
            return None
        asked.waits_briefly = True
        try:
            async with asyncio.timeout(wait_s):
                return (await asyncio.shield(asked.found)).fault
        except TimeoutError:
            asked.waits_briefly = False
            self.drop(candidate)
            return None

    @asynccontextmanager
    async def lent(self, most: int) -> AsyncIterator[Sequence[Workbench]]:
        """Up to `most` emulators that follow nothing meanwhile, some of them not started yet; none
        where all are busy, or none works.
        """
        count = 0 if self._problem else min(most, len(self._idle))
        # those that were used last have started: they come first
        followers = [self._idle.pop() for _ in range(count)]
        try:
            yield [Workbench(self._compiler, item.device, item.start) for item in followers]
        finally:
            if not self._is_closed:
                self._idle += reversed(followers)
                self._serve_waiting()

    async def close(self) -> None:
        """Ends every process."""
        self._is_closed = True
        serving, self._idle = [*self._serving], []
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for asked in [*self._asked.values()]:
            asked.found.cancel()
        await self._compiler.close()
        await asyncio.gather(*(follower.close() for follower in self._followers))
        await self._clang.close()

    def _begun(self, candidate: Candidate) -> _Asked | None:
        """What was asked for `candidate`, now if not before; None where none can be followed."""
        self.begin(candidate)
        return self._asked.get(_key_of(candidate))

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

    def _serve_waiting(self) -> None:
        """Lets emulators that are free follow those that wait, one each."""
        for _ in range(min(len(self._waiting), len(self._idle))):
            # the last one that was used has started
            serving = asyncio.create_task(self._serve(self._idle.pop()))
            self._serving.add(serving)
            serving.add_done_callback(self._serving.discard)

    async def _serve(self, follower: CaseFollower) -> None:
        """Follows candidates on one emulator until none waits."""
        while self._waiting:
            asked = self._next()
            following = asyncio.create_task(self._follow(follower, asked))
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
        self._idle.append(follower)

    async def _follow(self, follower: CaseFollower, asked: _Asked) -> FollowedCases:
        await self._start(follower)
        if self._problem:
            return FollowedCases(problem=self._problem)
        return await follower.follow(asked.candidate, lambda: asked.wanted)

    async def _start(self, follower: CaseFollower) -> None:
        """Starts an emulator, unless none of them works."""
        if not self._problem:
            try:
                await follower.start()
            except EvoError as error:
                self._problem = str(error).strip().partition("\n")[0]


def _key_of(candidate: Candidate) -> tuple[str, str]:
    """Equal for identical candidates; of the whole file, because findings name its lines."""
    return candidate.source_digest, digest_json(candidate.tunables)
