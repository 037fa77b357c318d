"""What compiled code may demand of a device beyond its kernels: symbols from outside, memory that
outlives a launch, and stack.
"""

from __future__ import annotations

from pathlib import Path

from evoengine.candidate.arch import DeviceLimits
from evoengine.evaluate.candidate_refused import CandidateRefused
from evoengine.evaluate.compile.compile_unit import CompileResult
from evoengine.evaluate.compile.cubin_demands import CubinDemands, demands_of
from evoengine.evaluate.compile.ptxas_log import RECURSIVE_CALLS
from evoengine.records import Status

# Memory that outlives a launch could keep the outputs of earlier ones; counters, tables, printf's
# format strings and what headers declare (15 KiB) are smaller by far.
MAX_LASTING_BYTES = 64 * 1024
# Local arrays of honest kernels have up to 8 KiB. The driver reserves a stack for every thread that
# can be resident, whether it is used or not: 500 KB are 128 GiB on an H200.
MAX_STACK_BYTES = 16 * 1024
HEAP = frozenset({"malloc", "free", "__cuda_syscall_aligned_malloc"})


def check_cubin(result: CompileResult, limits: DeviceLimits) -> None:
    """Raise CandidateRefused for the first thing that the machine code may not demand."""
    try:
        demands = demands_of(Path(result.code_path).read_bytes())
    except ValueError as error:
        reason = f"its machine code cannot be read: {error}"
        raise CandidateRefused(Status.compile_error, reason) from None
    _check_symbols(demands)
    if demands.lasting_bytes > MAX_LASTING_BYTES:
        reason = (
            f"global variables and constants take {demands.lasting_bytes} bytes, allowed are"
            f" {MAX_LASTING_BYTES}; declare scratch instead"
        )
        raise CandidateRefused(Status.rejected, reason)
    _check_stack(result, demands, limits)


def _check_symbols(demands: CubinDemands) -> None:
    for name in demands.external_symbols:
        what = (
            f"malloc, new, free or delete ({name}), which is not allowed; declare scratch instead"
            if name in HEAP
            else f"{name!r} from outside of the file; allowed are printf and assert"
        )
        raise CandidateRefused(Status.rejected, f"device code uses {what}")
    for name in demands.managed_variables:
        reason = f"{name!r} is a __managed__ variable, which may not be: declare scratch instead"
        raise CandidateRefused(Status.rejected, reason)
    for name in demands.scoped_variables:
        reason = (
            f"inline PTX declares a variable inside of a function ({name}), which cannot get its"
            " first value again between launches: declare it in C++ instead"
        )
        raise CandidateRefused(Status.rejected, reason)


def _check_stack(result: CompileResult, demands: CubinDemands, limits: DeviceLimits) -> None:
    found = {item.kernel: item.local_bytes for item in result.resources}
    most = max([demands.stack_bytes, *found.values()])
    if most > MAX_STACK_BYTES:
        kernel = next((name for name, size in found.items() if size == most), "a function")
        depth = "" if most == demands.stack_bytes else f" ({RECURSIVE_CALLS} recursive calls)"
        gib = most * limits.resident_threads / 2**30
        reason = (
            f"{kernel} takes {most} bytes of stack a thread{depth}, allowed are {MAX_STACK_BYTES}:"
            f" the {limits.resident_threads} threads that fit on the device would take"
            f" {gib:.3g} GiB"
        )
        raise CandidateRefused(Status.over_limits, reason)
