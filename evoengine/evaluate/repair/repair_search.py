"""Searches for the one change of a wrong kernel with which every output is right."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.changed_kernels import ChangedKernel, ChangedKernels
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.protocols import Device, Job, Progress
from evoengine.records import Status

AHEAD = 3  # kernels that are compiled while one runs
# After the first change that makes all right, others are looked for as long as this share of the
# time so far, because a second one shows that the first need not be what was meant.
MORE_SHARE = 0.25
MORE_S = 3.0  # at most


@dataclass(frozen=True)
class WrongInputs:
    """The inputs on which a candidate was wrong: a case, and the number of the set within it."""

    case: str
    number: int


@dataclass
class FoundRepairs:
    """The changes that make every output right, the likeliest first, and what was tried."""

    changes: list[SourceChange] = field(default_factory=list)
    compiled: int = 0
    launched: int = 0
    known: int = 0  # changes of the kernel altogether
    seconds: float = 0.0


class RepairSearch:
    """The search on one device."""

    def __init__(
        self,
        compiler: CandidateCompiler,
        device: Device,
        limits: DeviceLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._compiler = compiler
        self._device = device
        self._limits = limits
        self._clock = clock

    async def find(
        self, candidate: Candidate, wrong: WrongInputs, seconds: float, progress: Progress
    ) -> FoundRepairs:
        """The changes of `candidate` that make it right everywhere, found in at most about
        `seconds`; raises WorkerError, DeviceError and ToolchainError.
        """
        found, began = FoundRepairs(), self._clock()
        changes = ordered_changes(candidate)
        found.known = len(changes)
        ends = began + seconds
        progress("looking for the change that makes it right")
        kernels = ChangedKernels(candidate, wrong.case, self._compiler, self._limits)
        async with aclosing(kernels.kernels(changes, AHEAD)) as compiled:
            async for kernel in compiled:
                if self._clock() >= ends:
                    break
                found.launched += 1
                if await self._is_right(kernel, wrong):
                    if await self._is_right_everywhere(kernel, progress):
                        found.changes.append(kernel.change)
                        now = self._clock()
                        ends = min(ends, now + min(MORE_S, MORE_SHARE * (now - began)))
                kernels.discard(kernel)
        found.compiled, found.seconds = kernels.compiled, self._clock() - began
        return found

    async def _is_right(self, kernel: ChangedKernel, wrong: WrongInputs) -> bool:
        """Whether the outputs are right on the inputs on which they were wrong."""
        job = Job(
            cases=(kernel.case,),
            tier=kernel.candidate.plan.precision,
            candidate=kernel.built.code_digest,
            checked=False,
            only_outputs=True,
            only_set=wrong.number,
        )
        report = await self._device.run(job, _ignore)
        return report.status is Status.correct

    async def _is_right_everywhere(self, kernel: ChangedKernel, progress: Progress) -> bool:
        """Whether the whole verdict on it is correct, hidden cases and checked mode included."""
        compiled = await self._compiler.compile(kernel.candidate, self._limits, progress)
        if compiled.refusal is not None:
            return False
        job = Job(
            cases=compiled.cases,
            tier=kernel.candidate.plan.precision,
            candidate=compiled.code_digest,
            only_outputs=True,
        )
        report = await self._device.run(job, _ignore)
        return report.status is Status.correct


def _ignore(_: str) -> None:
    """Drops the progress of single kernels."""
