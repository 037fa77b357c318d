"""What compiled kernels may ask of a device: parameters, shared memory, registers, and what
cubin_rules allows.
"""

from __future__ import annotations

import math

from evoengine.candidate.arch import MAX_REGISTERS_PER_THREAD, WARP_SIZE, DeviceLimits
from evoengine.candidate.binding import (
    ITEM_BYTES,
    BoundLaunch,
    BufferArgument,
    CasePlan,
    ScalarArgument,
)
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.compile_unit import CompileResult
from evoengine.evaluate.cubin_rules import check_cubin
from evoengine.evaluate.hidden_case import without_sizes
from evoengine.evaluate.kernel_resources import resources_of
from evoengine.records import KernelResources, Status

# CUDA C++ Programming Guide 13.0, technical specifications, all of sm_75 to sm_120
REGISTERS_PER_BLOCK = 65536
REGISTER_UNIT = 8  # registers are allocated to a thread in units of this many
POINTER_BYTES = 8
INTEGERS = ("int64", "int32", "int8", "uint8", "bool")


def check_device_limits(
    plans: list[CasePlan], results: dict[str, CompileResult], limits: DeviceLimits
) -> None:
    """Raise CandidateRefused for the first limit of the device that a kernel breaks.

    `results` are by specialisation.
    """
    for hidden in (False, True):  # what holds in all cases is then reported in full
        with without_sizes(hidden):
            _check_plans([plan for plan in plans if plan.hidden is hidden], results, limits)


def _check_plans(
    plans: list[CasePlan], results: dict[str, CompileResult], limits: DeviceLimits
) -> None:
    for plan in plans:
        for launch in plan.launches:
            _check_parameters(launch, results[plan.specialisation])
    for item in resources_of(plans, results):
        _check_shared_memory(item, limits)
    for plan in plans:
        _check_registers(plan, results[plan.specialisation])
    for key in dict.fromkeys(plan.specialisation for plan in plans):
        check_cubin(results[key], limits)


def _check_parameters(launch: BoundLaunch, result: CompileResult) -> None:
    """A plan that passes too few arguments would have the driver read beyond them."""
    sizes = result.params.get(launch.kernel)
    if sizes is None:
        return
    if len(sizes) != len(launch.args):
        reason = (
            f"{launch.kernel} takes {len(sizes)} parameters, its launch passes {len(launch.args)}"
        )
        raise CandidateRefused(Status.rejected, reason)
    for position, (size, argument) in enumerate(zip(sizes, launch.args, strict=True), start=1):
        given, what = _size_and_name(argument)
        if size > POINTER_BYTES or (size != given and not _is_integer(argument)):
            reason = (
                f"{launch.kernel}: parameter {position} has {size} bytes, its launch passes {what}"
                f" ({given} bytes)"
            )
            raise CandidateRefused(Status.rejected, reason)


def _size_and_name(argument: BufferArgument | ScalarArgument) -> tuple[int, str]:
    if isinstance(argument, BufferArgument):
        return POINTER_BYTES, f"buffer {argument.buffer!r}"
    return ITEM_BYTES[argument.dtype], f"a {argument.dtype}"


def _is_integer(argument: BufferArgument | ScalarArgument) -> bool:
    """Whether it is passed with the size that the kernel declares."""
    return isinstance(argument, ScalarArgument) and argument.dtype in INTEGERS


def _check_shared_memory(kernel: KernelResources, limits: DeviceLimits) -> None:
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    if shared > limits.max_shared_bytes:
        reason = (
            f"{kernel.kernel} needs {shared} bytes of shared memory, {limits.arch} allows"
            f" {limits.max_shared_bytes}"
        )
        raise CandidateRefused(Status.over_limits, reason)


def _check_registers(plan: CasePlan, result: CompileResult) -> None:
    registers = {item.kernel: item.registers for item in result.resources}
    for launch in plan.launches:
        threads = _round_up(math.prod(launch.block), WARP_SIZE)
        each = min(
            MAX_REGISTERS_PER_THREAD + 1,
            _round_up(registers.get(launch.kernel, 0), REGISTER_UNIT),
        )
        if threads * each > REGISTERS_PER_BLOCK:
            reason = (
                f"{launch.kernel} needs {each} registers x {threads} threads, a block has"
                f" {REGISTERS_PER_BLOCK}"
            )
            raise CandidateRefused(Status.over_limits, reason)


def _round_up(value: int, unit: int) -> int:
    """The next multiple of `unit`."""
    return -(-value // unit) * unit
