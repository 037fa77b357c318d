"""Compiles a candidate for a device: bound plans, machine code, and the resources of its kernels.

A GPU runs the cubins of NVRTC. The emulator runs the PTX of clang; there NVRTC, where it is
installed, compiles first: a source that it refuses is refused, and it reports registers and
spills.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from evoengine.candidate.arch import DeviceLimits, limits_of_arch
from evoengine.candidate.binding import CasePlan, bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import CandidateError
from evoengine.evaluate.bound_plans import bound_plans
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit
from evoengine.evaluate.compile_failure import compile_unit_problem, refuse_failed
from evoengine.evaluate.device_limits import check_device_limits
from evoengine.evaluate.hidden_case import HIDDEN_CASE, without_sizes
from evoengine.evaluate.kernel_resources import exceeded_limits, resources_of
from evoengine.evaluate.tier_instructions import check_tier_instructions
from evoengine.protocols import CompiledCase, Progress
from evoengine.records import KernelResources, Status, Verdict
from evoengine.task.schema import Task
from evoengine.task.small_cases import versions

MOST_SMALL = 6  # cases that are compiled to show what is wrong in a hidden one
Compilations = dict[str, asyncio.Task[CompileResult]]  # by specialisation


@dataclass
class CompiledCandidate:
    """The result of compiling a candidate; with a `refusal` it has no cases."""

    tier: str
    cases: tuple[CompiledCase, ...] = ()
    resources: tuple[KernelResources, ...] = ()  # on the device, then on the task's target
    target_exceeds: tuple[str, ...] = ()
    code_digest: str = ""
    refusal: Verdict | None = None


class CandidateCompiler:
    """Compiles candidates of one task."""

    def __init__(
        self, task: Task, nvrtc: CompilePool | None, clang: CompilePool | None = None
    ) -> None:
        """`clang` makes the emulator's PTX and is None for a GPU; without `nvrtc` an emulator does
        not know registers and spills.
        """
        if nvrtc is None and clang is None:
            raise ValueError("expected a pool of NVRTC or of clang processes, got neither")
        self.task = task
        self.nvrtc = nvrtc
        self.clang = clang
        self._running: set[asyncio.Task[CompileResult]] = set()

    async def compile(
        self, candidate: Candidate, limits: DeviceLimits, progress: Progress
    ) -> CompiledCandidate:
        """Machine code for every case on a device with `limits`, and the resources on the task's
        target; or a refusal that says what is wrong with the candidate.
        """
        compiled = CompiledCandidate(candidate.plan.precision)
        try:
            await self._compile(compiled, candidate, limits, progress)
        except CandidateRefused as refused:
            compiled.refusal = await self._told_in_the_open(refused.verdict, candidate, limits)
        return compiled

    async def _told_in_the_open(
        self, refusal: Verdict, candidate: Candidate, limits: DeviceLimits
    ) -> Verdict:
        """`refusal`; of one in a hidden case, of which no more may be said, with a small case where
        the same happens. Not with the compiler's words: a candidate chooses what they show.
        """
        if HIDDEN_CASE not in refusal.reason:
            return refusal
        for case in _small_cases(self.task)[:MOST_SMALL]:
            try:
                plan = bind(candidate, self.task, case, limits)
                started = self._start(self.nvrtc or self.clang, candidate, [plan], limits.arch)
                await self._results(started)
            except CandidateError:  # nobody has asked it to serve this case
                continue
            except CandidateRefused as refused:
                if refused.verdict.status is refusal.status:
                    where = f"{refusal.reason}; the same for {case}"
                    return refusal.model_copy(update={"reason": where})
        return refusal

    async def compile_small(
        self, candidate: Candidate, cases: Sequence[str], limits: DeviceLimits
    ) -> tuple[CompiledCase, ...]:
        """Machine code for these small cases of the task on a device with `limits`, without those
        for which the candidate cannot be built: nobody has asked it to serve them.
        """
        plans = list[CasePlan]()
        for case in cases:
            with suppress(CandidateError):
                plans.append(bind(candidate, self.task, case, limits))
        built: dict[str, CompileResult] = {}
        with suppress(CandidateRefused):
            started = self._start(self.clang or self.nvrtc, candidate, plans, limits.arch)
            for key, task in started.items():
                with suppress(CandidateRefused):
                    built |= await self._results({key: task})
        return tuple(
            _compiled_case(plan, built[plan.specialisation], built)
            for plan in plans
            if plan.specialisation in built
        )

    async def close(self) -> None:
        """Cancels the compilations that are still running."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _compile(
        self,
        compiled: CompiledCandidate,
        candidate: Candidate,
        limits: DeviceLimits,
        progress: Progress,
    ) -> None:
        plans = bound_plans(candidate, self.task, limits)
        progress("compiling")
        target_plans, problem = self._target_plans(candidate)
        cubin_tasks = self._start(self.nvrtc, candidate, plans, limits.arch)
        target_tasks = self._start_for_target(candidate, target_plans, limits)
        ptx_tasks = self._start(self.clang, candidate, plans, limits.arch)
        hidden = _only_hidden(plans)
        cubins = await self._results(cubin_tasks, hidden)
        try:
            target_results = await self._results(target_tasks)
        except CandidateRefused as refused:
            target_plans, target_results, problem = [], {}, refused.verdict.reason
        if cubins:
            # names and figures of other specialisations could tell the sizes of hidden cases
            compiled.resources = resources_of([plan for plan in plans if not plan.hidden], cubins)
            check_device_limits(plans, cubins, limits)
        code = cubins
        if self.clang is not None:
            code = await self._results(ptx_tasks, hidden, bool(compiled.resources))
        check_tier_instructions(self.task, compiled.tier, plans, cubins or code, limits.arch)
        compiled.cases = tuple(
            _compiled_case(plan, code[plan.specialisation], cubins) for plan in plans
        )
        compiled.code_digest = _code_digest(plans, cubins or code)
        self._report_target(compiled, target_plans, target_results, problem)

    def _start(
        self, pool: CompilePool | None, candidate: Candidate, plans: list[CasePlan], arch: str
    ) -> Compilations:
        """Starts to compile every specialisation with `pool`; nothing without a pool."""
        if pool is None:
            return {}
        units = {plan.specialisation: self.unit(candidate, plan, arch) for plan in plans}
        tasks = {key: asyncio.create_task(pool.compile(unit)) for key, unit in units.items()}
        for task in tasks.values():
            self._running.add(task)
            task.add_done_callback(self._forget)
        return tasks

    def _start_for_target(
        self, candidate: Candidate, plans: list[CasePlan], limits: DeviceLimits
    ) -> Compilations:
        """Starts to compile for the task's target, unless the device has its architecture."""
        target = self.task.target
        if not plans or target is None or target.arch == limits.arch:
            return {}
        return self._start(self.nvrtc, candidate, plans, target.arch)

    def _forget(self, task: asyncio.Task[CompileResult]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            # marks it as retrieved: `_results` has raised it, or the candidate was refused before
            task.exception()

    async def _results(
        self, tasks: Compilations, hidden: Set[str] = frozenset(), nvrtc_accepts: bool = False
    ) -> dict[str, CompileResult]:
        """One result for each specialisation; raises CandidateRefused for the first that failed, in
        the order of cases. The logs of `hidden` ones are not shown.

        The others are then left to finish: to cancel one would kill its compiler, and the next
        candidate would wait for a new one.
        """
        results = {}
        try:
            for key, task in tasks.items():
                results[key] = await task
                with without_sizes(key in hidden):
                    refuse_failed(results[key], nvrtc_accepts)
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            raise
        return results

    def unit(self, candidate: Candidate, plan: CasePlan, arch: str) -> CompileUnit:
        """What is compiled for one case; raises CandidateRefused."""
        limits = self.task.limits
        try:
            return CompileUnit(
                code=candidate.code,
                name=compiler_file_name(candidate),
                arch=arch,
                macros=plan.macros,
                kernels=tuple(sorted({launch.kernel for launch in plan.launches})),
                timeout_s=limits.compile_s,
                memory_bytes=limits.compile_memory,
            )
        except ValidationError as error:
            # the last barrier: what header and plan let through ends this candidate, not the run
            with without_sizes(plan.hidden):
                raise CandidateRefused(Status.rejected, compile_unit_problem(error)) from None

    def _target_plans(self, candidate: Candidate) -> tuple[list[CasePlan], str]:
        """The visible cases bound on the task's target; a failure is reported and not fatal."""
        if self.task.target is None:
            return [], ""
        limits = limits_of_arch(self.task.target.arch)
        try:
            return [bind(candidate, self.task, case, limits) for case in self.task.cases], ""
        except CandidateError as error:
            return [], str(error)

    def _report_target(
        self,
        compiled: CompiledCandidate,
        plans: list[CasePlan],
        results: dict[str, CompileResult],
        problem: str,
    ) -> None:
        target = self.task.target
        if target is None:
            return
        if problem:
            compiled.target_exceeds = (f"{target.arch}: {problem}",)
            return
        on_target = resources_of(plans, results) if results else compiled.resources
        compiled.resources += on_target if results else ()
        compiled.target_exceeds = exceeded_limits(target, on_target)


def compiler_file_name(candidate: Candidate) -> str:
    """The file name that compilers see: the same for all trials of a kernel, so that the cache
    finds it.
    """
    return f"{candidate.plan.name}.cu"


def _small_cases(task: Task) -> list[str]:
    """Small versions of the shown cases, the smallest first."""
    sizes = {
        name: task.most_elements(it)
        for case in task.cases
        for name, it in versions(task, case).items()
    }
    return sorted(sizes, key=lambda name: sizes[name])


def _only_hidden(plans: list[CasePlan]) -> frozenset[str]:
    """The specialisations that no case but hidden ones uses."""
    shown = {plan.specialisation for plan in plans if not plan.hidden}
    return frozenset(plan.specialisation for plan in plans) - shown


def _compiled_case(
    plan: CasePlan, code: CompileResult, cubins: dict[str, CompileResult]
) -> CompiledCase:
    """One case as the device runs it, with the resources that NVRTC reports."""
    resources = cubins[plan.specialisation].resources if cubins else ()
    return CompiledCase(
        plan=plan, code_path=code.code_path, functions=code.functions, resources=resources
    )


def _code_digest(plans: list[CasePlan], results: dict[str, CompileResult]) -> str:
    """The digest of code and plans: two sources with the same one are the same candidate."""
    return digest_json(
        [
            [
                results[plan.specialisation].code_digest,
                plan.model_dump(mode="json", exclude={"macros"}),
            ]
            for plan in plans
        ]
    )
