"""Loads cubins and launches bound plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cupy
import numpy
import torch

from evoengine.candidate.binding import BoundLaunch, BufferArgument, CasePlan, ScalarArgument
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Crashed
from evoengine.protocols import CompiledCase

PRINTF_BYTES = 64 * 1024  # the buffer of device printf between two synchronisations
HEAP_BYTES = 8 * 1024**2
_STICKY = (
    "ILLEGAL_ADDRESS",
    "MISALIGNED_ADDRESS",
    "INVALID_ADDRESS_SPACE",
    "INVALID_PC",
    "ILLEGAL_INSTRUCTION",
    "HARDWARE_STACK_ERROR",
    "LAUNCH_FAILED",
    "LAUNCH_TIMEOUT",
    "ASSERT",
    "ECC_UNCORRECTABLE",
    "CONTAINED",
)


_FLOATS: dict[str, type[numpy.floating[Any]]] = {
    "float16": numpy.float16,
    "float32": numpy.float32,
    "float64": numpy.float64,
}

_CUPY_ERRORS = (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError)
# torch before 2.8 has no type of its own for device errors.
CUDA_ERRORS = (
    *_CUPY_ERRORS,
    getattr(torch, "AcceleratorError", RuntimeError),
    torch.cuda.OutOfMemoryError,
)


def translate(error: Exception) -> Crashed | CannotLaunch:
    """A CUDA error that was raised while a candidate ran, as a failure of the candidate."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in text:
        return CannotLaunch(text)
    # torch's own kernels load: its other errors mean that the context is broken
    if not isinstance(error, _CUPY_ERRORS):
        return Crashed(text)
    sticky = any(
        name in str(error).upper().replace(" ", "_") for name in _STICKY
    ) or "device-side assert" in str(error)
    return Crashed(text) if sticky else CannotLaunch(text)


def limit_device() -> None:
    """Limits the device memory that printf and malloc give to kernels."""
    runtime = cupy.cuda.runtime
    runtime.deviceSetLimit(runtime.cudaLimitPrintfFifoSize, PRINTF_BYTES)
    runtime.deviceSetLimit(runtime.cudaLimitMallocHeapSize, HEAP_BYTES)


class CudaProgram:
    """The code of one case, loaded anew: its global variables have their initial values."""

    def __init__(self, compiled: CompiledCase) -> None:
        self._plan: CasePlan = compiled.plan
        # CuPy caches every module, and with it the globals that a candidate left behind
        cupy.clear_memo()
        module = cupy.RawModule(path=compiled.code_path)
        self._functions = {
            kernel: module.get_function(name) for kernel, name in compiled.functions.items()
        }
        most: dict[str, int] = {}
        for launch in compiled.plan.launches:
            most[launch.kernel] = max(most.get(launch.kernel, 0), launch.shared_bytes)
        for kernel, shared_bytes in most.items():
            self._functions[kernel].max_dynamic_shared_size_bytes = shared_bytes

    def prepare(self, pointers: Mapping[str, int], stream: torch.cuda.Stream) -> Callable[[], None]:
        """A call that launches the whole plan on `stream`; all other Python work is done here.

        `pointers` holds the device address of each buffer by name.
        """
        external = _as_cupy(stream)
        steps = [
            (self._functions[launch.kernel], launch, self._arguments(launch, pointers))
            for launch in self._plan.launches
        ]

        def run() -> None:
            with external:
                for function, launch, arguments in steps:
                    function(
                        _three(launch.grid),
                        _three(launch.block),
                        arguments,
                        shared_mem=launch.shared_bytes,
                    )

        return run

    def _arguments(
        self, launch: BoundLaunch, pointers: Mapping[str, int]
    ) -> tuple[numpy.generic, ...]:
        return tuple(_argument(argument, pointers) for argument in launch.args)


class _Handle:
    """A stream's handle in the CUDA stream protocol, which not all torch streams have."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream  # kept alive with the handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self._stream.cuda_stream)


def _as_cupy(stream: torch.cuda.Stream) -> cupy.cuda.Stream | cupy.cuda.ExternalStream:
    """torch's stream for CuPy; CuPy 14 replaced ExternalStream."""
    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Handle(stream))
    return cupy.cuda.ExternalStream(stream.cuda_stream)


def _argument(
    argument: BufferArgument | ScalarArgument, pointers: Mapping[str, int]
) -> numpy.generic:
    if isinstance(argument, BufferArgument):
        return numpy.uintp(pointers[argument.buffer])
    if argument.dtype == "bfloat16":  # numpy has no such type: an integer carries its two bytes
        return numpy.int16(
            torch.tensor(argument.scalar, dtype=torch.bfloat16).view(torch.int16).item()
        )
    if argument.dtype in _FLOATS:
        return _FLOATS[argument.dtype](argument.scalar)
    # The driver copies as many bytes as the kernel's parameter has: 8 little-endian bytes serve
    # int, int64 and bool alike.
    return numpy.int64(argument.scalar)


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z
