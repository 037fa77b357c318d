"""What compiled kernels need, and which limits of the task's target that exceeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.compile.compile_unit import CompileResult
from evoengine.records import KernelResources
from evoengine.task.schema import Target


def resources_of(
    plans: list[CasePlan], results: dict[str, CompileResult]
) -> tuple[KernelResources, ...]:
    """What each kernel needs, with the largest dynamic shared memory and the largest block of its
    launches; equal ones are listed once.
    """
    found: dict[KernelResources, tuple[int, int]] = {}
    for plan in plans:
        for resources in results[plan.specialisation].resources:
            launches = [launch for launch in plan.launches if launch.kernel == resources.kernel]
            # the size of the whole cubin says nothing about one kernel
            same = resources.model_copy(update={"cubin_bytes": 0})
            shared, threads = found.get(same, (0, 0))
            found[same] = (
                max([shared, *(launch.shared_bytes for launch in launches)]),
                max([threads, *(math.prod(launch.block) for launch in launches)]),
            )
    return tuple(
        item.model_copy(update={"dynamic_shared_bytes": shared, "block_threads": threads})
        for item, (shared, threads) in found.items()
    )


def exceeded_limits(target: Target, resources: Iterable[KernelResources]) -> tuple[str, ...]:
    """One line for each limit of `target` that a kernel exceeds; this is reported and refuses
    nothing.
    """
    return tuple(line for item in resources for line in _exceeded(target, item))


def _exceeded(target: Target, kernel: KernelResources) -> Iterator[str]:
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    if target.registers and kernel.registers > target.registers:
        yield (
            f"{kernel.kernel}: {kernel.registers} registers on {target.arch}, target"
            f" {target.registers}"
        )
    if target.shared and shared > target.shared:
        yield (
            f"{kernel.kernel}: {shared} bytes of shared memory on {target.arch}, target"
            f" {target.shared}"
        )
