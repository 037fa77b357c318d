"""From a candidate to what a device can run: bound plans, code, resources, and refusals on the way.

A GPU runs the cubins of NVRTC. The emulator runs the PTX of clang; there NVRTC, where it is
installed, is the gate: what it refuses is refused, and it tells registers and spills.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from evoengine.candidate.arch import (
    MAX_REGISTERS_PER_THREAD,
    WARP_SIZE,
    DeviceLimits,
    limits_of_arch,
)
from evoengine.candidate.binding import (
    ITEM_BYTES,
    BoundLaunch,
    BufferArgument,
    CasePlan,
    OverLimits,
    bind,
)
from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest_json
from evoengine.errors import CandidateError, hint
from evoengine.evaluate.compile import cubin
from evoengine.evaluate.compile.includes import check_includes
from evoengine.evaluate.compile.pool import CompilePool, CompileResult, CompileUnit
from evoengine.protocols import CompiledCase, Progress
from evoengine.records import KernelResources, Status, Verdict
from evoengine.task.schema import Task
from evoengine.task.yaml_source import shown

# CUDA C++ Programming Guide 13.0, technical specifications, all of sm_75 to sm_120
REGISTERS_PER_BLOCK = 65536
REGISTER_UNIT = 8  # registers are given to threads in eights
DETAIL_BYTES = 4096
# What outlives a launch could hold the answers of earlier ones; counters, tables and the texts of
# printf are smaller by far.
LASTING_BYTES = 64 * 1024
TOO_MUCH_SHARED = "uses too much shared data"  # what ptxas says of static arrays beyond 48 KiB


@dataclass
class CompiledCandidate:
    """What compiling found out so far."""

    tier: str
    cases: tuple[CompiledCase, ...] = ()
    resources: tuple[KernelResources, ...] = ()
    target_exceeds: tuple[str, ...] = ()
    code_digest: str = ""
    results: list[CompileResult] = field(default_factory=list)


class CandidateRefused(Exception):  # noqa: N818 - a finding about a candidate, not a fault of ours
    """The candidate ends here; `verdict` says why."""

    def __init__(
        self, build: CompiledCandidate, status: Status, reason: str, detail: str = ""
    ) -> None:
        super().__init__(reason)
        self.build = build
        self.verdict = Verdict(
            status=status, reason=reason.strip().splitlines()[0], detail=detail[:DETAIL_BYTES]
        )


class CandidateCompiler:
    """Compiles candidates of one task."""

    def __init__(
        self, task: Task, pool: CompilePool | None, front: CompilePool | None = None
    ) -> None:
        """`pool` makes cubins, `front` the emulator's PTX; without a pool nobody tells resources,
        without a front there is no emulator.
        """
        if pool is None and front is None:
            raise ValueError("a builder needs a compiler")
        self.task = task
        self.pool = pool
        self.front = front
        self._under_way: set[asyncio.Task[CompileResult]] = set()

    async def build(
        self, candidate: Candidate, limits: DeviceLimits, progress: Progress
    ) -> CompiledCandidate:
        """Machine code for every case on the device, and the target's resources; raises Refused."""
        build = CompiledCandidate(tier=candidate.plan.precision)
        plans = self._bind(build, candidate, limits)
        progress("compiling")
        target_plans, problem = self._target_plans(candidate)
        target = (
            self.task.target
            if target_plans and self.task.target and self.task.target.arch != limits.arch
            else None
        )
        device_tasks = self._begin(self.pool, candidate, plans, limits.arch)
        target_tasks = (
            self._begin(self.pool, candidate, target_plans, target.arch) if target else {}
        )
        front_tasks = self._begin(self.front, candidate, plans, limits.arch)
        device = await self._results(build, device_tasks)
        try:
            target_results = await self._results(CompiledCandidate(build.tier), target_tasks)
        except CandidateRefused as refused:
            target_plans, target_results, problem = [], {}, refused.verdict.reason
        self._keep_device_limits(build, plans, device, limits)
        run = await self._results(build, front_tasks) if self.front else device
        build.cases = tuple(_compiled(plan, run[plan.specialisation], device) for plan in plans)
        named = device or run  # machine code where there is any: two sources can have the same
        build.code_digest = digest_json(
            [
                [
                    named[plan.specialisation].code_digest,
                    plan.model_dump(mode="json", exclude={"macros"}),
                ]
                for plan in plans
            ]
        )
        self._report_target(build, target_plans, target_results, problem)
        return build

    async def close(self) -> None:
        """Ends compilations that nobody waits for any more."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _bind(
        self, build: CompiledCandidate, candidate: Candidate, limits: DeviceLimits
    ) -> list[CasePlan]:
        if candidate.plan.precision not in self.task.tiers:
            tier = candidate.plan.precision
            known = hint("", self.task.tiers)
            reason = f"precision: no tier {tier!r} in task {self.task.name}{known}"
            raise CandidateRefused(build, Status.rejected, reason)
        try:
            check_includes(candidate.code)
            return [bind(candidate, self.task, case, limits) for case in self.task.all_cases]
        except OverLimits as error:
            raise CandidateRefused(build, Status.over_limits, str(error)) from None
        except CandidateError as error:
            raise CandidateRefused(build, Status.rejected, str(error)) from None

    def _begin(
        self, pool: CompilePool | None, candidate: Candidate, plans: list[CasePlan], arch: str
    ) -> dict[str, asyncio.Task[CompileResult]]:
        """The compilation of every specialisation by `pool`, under way; none without a pool."""
        if pool is None:
            return {}
        try:
            units = {plan.specialisation: self._unit(candidate, plan, arch) for plan in plans}
        except ValidationError as error:
            # the last barrier: what header and plan let through ends this candidate, not the run
            raise CandidateRefused(
                CompiledCandidate(candidate.plan.precision), Status.rejected, _unfit(error)
            ) from None
        tasks = {key: asyncio.create_task(pool.compile(unit)) for key, unit in units.items()}
        for task in tasks.values():
            self._under_way.add(task)
            task.add_done_callback(self._done)
        return tasks

    def _done(self, task: asyncio.Task[CompileResult]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # who waited has seen it; who stopped waiting need not

    async def _results(
        self, build: CompiledCandidate, tasks: dict[str, asyncio.Task[CompileResult]]
    ) -> dict[str, CompileResult]:
        """One result for each specialisation; the first that failed, in the order of cases, ends
        the candidate.

        The others are then left to finish: to cancel one is to kill its compiler, and the next
        candidate would wait for a new one.
        """
        results = {}
        try:
            for key, task in tasks.items():
                results[key] = await task
                _refuse_failed(build, results[key], gated=bool(build.resources))
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            raise
        return results

    def _unit(self, candidate: Candidate, plan: CasePlan, arch: str) -> CompileUnit:
        kernels = tuple(sorted({launch.kernel for launch in plan.launches}))
        limits = self.task.limits
        return CompileUnit(
            code=candidate.code,
            name=compiled_as(candidate),
            arch=arch,
            macros=plan.macros,
            kernels=kernels,
            timeout_s=limits.compile_s,
            memory_bytes=limits.compile_memory,
        )

    def _target_plans(self, candidate: Candidate) -> tuple[list[CasePlan], str]:
        """The visible cases bound on the task's target; what fails there is reported, not fatal."""
        if self.task.target is None:
            return [], ""
        limits = limits_of_arch(self.task.target.arch)
        try:
            return [bind(candidate, self.task, case, limits) for case in self.task.cases], ""
        except CandidateError as error:
            return [], str(error)

    def _keep_device_limits(
        self,
        build: CompiledCandidate,
        plans: list[CasePlan],
        results: dict[str, CompileResult],
        limits: DeviceLimits,
    ) -> None:
        if not results:
            return
        build.resources = resources_of(plans, results)
        for plan in plans:
            result = results[plan.specialisation]
            for launch in plan.launches:
                _check_parameters(build, launch, result)
        for item in build.resources:
            shared = item.static_shared_bytes + item.dynamic_shared_bytes
            if shared > limits.max_shared_bytes:
                reason = (
                    f"{item.kernel} needs {shared} bytes of shared memory, {limits.arch} allows"
                    f" {limits.max_shared_bytes}"
                )
                raise CandidateRefused(build, Status.over_limits, reason)
        _check_registers(build, plans, results)
        for result in results.values():
            _check_lasting(build, Path(result.code_path).read_bytes())

    def _report_target(
        self,
        build: CompiledCandidate,
        plans: list[CasePlan],
        results: dict[str, CompileResult],
        problem: str,
    ) -> None:
        target = self.task.target
        if target is None:
            return
        if problem:
            build.target_exceeds = (f"{target.arch}: {problem}",)
            return
        found = resources_of(plans, results) if results else build.resources
        build.resources += found if results else ()
        exceeds = []
        for item in found:
            shared = item.static_shared_bytes + item.dynamic_shared_bytes
            if target.registers and item.registers > target.registers:
                exceeds.append(
                    f"{item.kernel}: {item.registers} registers on {target.arch}, target"
                    f" {target.registers}"
                )
            if target.shared and shared > target.shared:
                exceeds.append(
                    f"{item.kernel}: {shared} bytes of shared memory on {target.arch}, target"
                    f" {target.shared}"
                )
        build.target_exceeds = tuple(exceeds)


def compiled_as(candidate: Candidate) -> str:
    """The file name that compilers are told: one that is the same for all trials of a kernel, so
    that the cache finds it.
    """
    return f"{candidate.plan.name}.cu"


def resources_of(
    plans: list[CasePlan], results: dict[str, CompileResult]
) -> tuple[KernelResources, ...]:
    """What each kernel needs, with the largest dynamic shared memory that a plan gives it; what is
    the same stands once.
    """
    found: dict[KernelResources, int] = {}
    for plan in plans:
        for resources in results[plan.specialisation].resources:
            dynamic = max(
                (
                    launch.shared_bytes
                    for launch in plan.launches
                    if launch.kernel == resources.kernel
                ),
                default=0,
            )
            # the size of the whole cubin says nothing about one kernel
            same = resources.model_copy(update={"cubin_bytes": 0})
            found[same] = max(dynamic, found.get(same, 0))
    return tuple(
        item.model_copy(update={"dynamic_shared_bytes": dynamic}) for item, dynamic in found.items()
    )


def _compiled(plan: CasePlan, run: CompileResult, device: dict[str, CompileResult]) -> CompiledCase:
    """What the device runs, with the resources that NVRTC tells of it."""
    resources = device[plan.specialisation].resources if device else ()
    return CompiledCase(
        plan=plan, code_path=run.code_path, functions=run.functions, resources=resources
    )


def _unfit(error: ValidationError) -> str:
    """What no compiler can be given, in one line."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"it cannot be given to a compiler: {place}: {first['msg']}, got {shown(first['input'])}"


def _refuse_failed(build: CompiledCandidate, result: CompileResult, gated: bool) -> None:
    """`gated`: NVRTC has compiled this source, so whatever clang and our headers make of it is
    their fault.
    """
    if result.status == "ok":
        return
    if result.status == "unsupported" or gated:
        reason = result.log.strip() or f"the emulator's compiler ended with {result.status}"
        raise CandidateRefused(
            build,
            Status.unsupported,
            reason if result.status == "unsupported" else f"not for the emulator: {reason}",
            result.log,
        )
    if result.status == "refused":
        raise CandidateRefused(build, Status.rejected, result.log)
    if result.status == "timeout":
        raise CandidateRefused(
            build, Status.timeout, f"compiling took longer than {result.seconds:.0f} s", result.log
        )
    if result.status == "out_of_memory":
        raise CandidateRefused(
            build, Status.compile_error, "compiling took more memory than allowed", result.log
        )
    status = Status.over_limits if TOO_MUCH_SHARED in result.log else Status.compile_error
    raise CandidateRefused(build, status, first_error(result.log), result.log)


def first_error(log: str) -> str:
    """The first line of a compiler's log that tells of an error."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next(
        (line for line in lines if "error" in line.lower()),
        lines[0] if lines else "the compiler failed and said nothing",
    )


def _check_parameters(build: CompiledCandidate, launch: BoundLaunch, result: CompileResult) -> None:
    """A plan that passes too few arguments would have the driver read beyond them."""
    wanted = result.params.get(launch.kernel)
    if wanted is None:
        return
    if len(wanted) != len(launch.args):
        raise CandidateRefused(
            build,
            Status.rejected,
            f"{launch.kernel} takes {len(wanted)} parameters, its launch passes {len(launch.args)}",
        )
    for position, (size, argument) in enumerate(zip(wanted, launch.args, strict=True), start=1):
        given = 8 if isinstance(argument, BufferArgument) else ITEM_BYTES[argument.dtype]
        is_integer = not isinstance(argument, BufferArgument) and argument.dtype in (
            "int64",
            "int32",
            "int8",
            "uint8",
            "bool",
        )
        if size > 8 or (size != given and not is_integer):
            what = (
                f"buffer {argument.buffer!r}"
                if isinstance(argument, BufferArgument)
                else f"a {argument.dtype}"
            )
            reason = (
                f"{launch.kernel}: parameter {position} has {size} bytes, its launch passes {what}"
                f" ({given} bytes)"
            )
            raise CandidateRefused(build, Status.rejected, reason)


def _check_lasting(build: CompiledCandidate, machine_code: bytes) -> None:
    """Device memory that no launch plan declares stays as it was left, so no candidate has much of
    it.
    """
    try:
        kept, allocates = cubin.global_bytes(machine_code), cubin.allocates(machine_code)
    except ValueError as error:
        raise CandidateRefused(
            build, Status.compile_error, f"its machine code cannot be read: {error}"
        ) from None
    if kept > LASTING_BYTES:
        raise CandidateRefused(
            build,
            Status.rejected,
            f"global variables take {kept} bytes, allowed are {LASTING_BYTES}; declare scratch"
            " instead",
        )
    if allocates:
        raise CandidateRefused(
            build,
            Status.rejected,
            "device code calls malloc or new, which is not allowed; declare scratch instead",
        )


def _check_registers(
    build: CompiledCandidate, plans: list[CasePlan], results: dict[str, CompileResult]
) -> None:
    for plan in plans:
        registers = {item.kernel: item.registers for item in results[plan.specialisation].resources}
        for launch in plan.launches:
            # registers are given to whole warps
            threads = -(-math.prod(launch.block) // WARP_SIZE) * WARP_SIZE
            each = min(
                MAX_REGISTERS_PER_THREAD + 1,
                -(-registers.get(launch.kernel, 0) // REGISTER_UNIT) * REGISTER_UNIT,
            )
            if threads * each > REGISTERS_PER_BLOCK:
                reason = (
                    f"{launch.kernel} needs {each} registers x {threads} threads, a block has"
                    f" {REGISTERS_PER_BLOCK}"
                )
                raise CandidateRefused(build, Status.over_limits, reason)
