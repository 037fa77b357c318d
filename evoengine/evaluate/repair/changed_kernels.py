"""Compiles changed kernels for one case, ahead of the device, and leaves out those whose machine
code was there before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import CandidateError
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.pool import CompilePool, CompileResult
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.protocols import CompiledCase


@dataclass(frozen=True)
class ChangedKernel:
    """A kernel with one change, compiled for one case."""

    change: SourceChange
    candidate: Candidate
    case: CompiledCase
    built: CompileResult


class ChangedKernels:
    """The kernels that follow from changes of one candidate, in their order."""

    def __init__(
        self, candidate: Candidate, case: str, compiler: CandidateCompiler, limits: DeviceLimits
    ) -> None:
        self._candidate = candidate
        self._case = case
        self._compiler = compiler
        self._limits = limits
        pool = compiler.clang or compiler.nvrtc
        assert pool is not None
        self._pool: CompilePool = pool
        self._seen: set[str] = set()
        self.compiled = 0  # those that went through the compiler

    async def kernels(
        self, changes: Sequence[SourceChange], ahead: int
    ) -> AsyncIterator[ChangedKernel]:
        """Each kernel that compiles and whose machine code is new; `ahead` are compiled meanwhile.

        The candidate itself comes first and is not yielded.
        """
        await self._compile(None, self._candidate)
        waiting: deque[asyncio.Task[ChangedKernel | None]] = deque()
        following = self._started(changes)
        try:
            for task in following:
                waiting.append(task)
                if len(waiting) > ahead:
                    found = await waiting.popleft()
                    if found is not None:
                        yield found
            while waiting:
                found = await waiting.popleft()
                if found is not None:
                    yield found
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def _started(
        self, changes: Sequence[SourceChange]
    ) -> Iterator[asyncio.Task[ChangedKernel | None]]:
        for change in changes:
            try:
                changed = kernel_file.parse(
                    change.applied(self._candidate.source), self._candidate.header.name
                )
                changed = changed.tuned(self._tunables_of(changed), undeclared_values=True)
            except CandidateError:
                continue
            yield asyncio.create_task(self._compile(change, changed))

    def _tunables_of(self, changed: Candidate) -> dict[str, int]:
        """The values chosen for the candidate, unless the change is one of the values."""
        if changed.plan.tunables != self._candidate.plan.tunables:
            return {}
        return self._candidate.tunables

    def discard(self, kernel: ChangedKernel) -> None:
        """Removes the machine code of a kernel that was judged."""
        self._pool.discard(kernel.built)

    async def _compile(
        self, change: SourceChange | None, changed: Candidate
    ) -> ChangedKernel | None:
        plan = self._plan(changed)
        if plan is None:
            return None
        try:
            unit = self._compiler.unit(changed, plan, self._limits.arch)
        except CandidateRefused:
            return None
        self.compiled += 1
        built = await self._pool.compile(unit, keep=False)
        if built.status != "ok":
            return None
        code_digest = digest_json(
            [built.code_digest, plan.model_dump(mode="json", exclude={"macros"})]
        )
        if code_digest in self._seen:
            self._pool.discard(built)
            return None
        self._seen.add(code_digest)
        if change is None:
            return None
        compiled = CompiledCase(plan=plan, code_path=built.code_path, functions=built.functions)
        return ChangedKernel(change, changed, compiled, built)

    def _plan(self, changed: Candidate) -> CasePlan | None:
        try:
            return bind(changed, self._compiler.task, self._case, self._limits)
        except CandidateError:
            return None
