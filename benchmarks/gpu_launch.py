"""A case of the corpus, launched on the GPU by NVRTC, CuPy and the driver; nothing is kept from one
case to the next.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import cupy
import numpy as np
from cupy.cuda import driver, function
from cupy_backends.cuda.libs import nvrtc

from evoengine.evaluate.compile.headers import find_headers
from evoengine.evaluate.compile.includes import PRELUDE, SHIM
from tests.emulator.corpus import Case, In, InOut, Kernel, Out, initial, results

# more dynamic shared memory than this must be asked for: CUDA C++ Programming Guide, 16.8.3
WITHOUT_ASKING = 48 * 1024
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: cuda.h


@dataclass(frozen=True)
class Launched:
    """What a launch left behind."""

    results: dict[int, np.ndarray]  # index of an argument -> its bits after the launch
    printed: str


def versions() -> dict[str, str]:
    """The device and what it was driven by."""
    number = cupy.cuda.runtime.driverGetVersion()
    return {
        "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
        "arch": architecture(),
        "driver supports CUDA": f"{number // 1000}.{number % 1000 // 10}",
        "NVRTC": ".".join(map(str, nvrtc.getVersion())),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
    }


def architecture() -> str:
    """Such as "sm_90"."""
    return f"sm_{cupy.cuda.Device(0).compute_capability}"


def launch(kernel: Kernel, case: Case) -> Launched:
    """One launch; raises nvrtc.NVRTCError with the log, or CUDADriverError."""
    cubin, name = compiled(kernel, case)
    module = function.Module()
    module.load(cubin)
    entry = module.get_function(name)
    if case.shared_bytes > WITHOUT_ASKING:
        driver.funcSetAttribute(entry.ptr, MAX_DYNAMIC_SHARED, case.shared_bytes)
    buffers = {
        index: cupy.asarray(initial(argument).reshape(-1).view(np.uint8))
        for index, argument in enumerate(case.args)
        if isinstance(argument, In | InOut | Out)
    }
    held = [_bytes(argument, buffers.get(index)) for index, argument in enumerate(case.args)]
    pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(item) for item in held))
    with captured_output() as printed:
        driver.launchKernel(
            entry.ptr, *case.grid, *case.block, case.shared_bytes, 0, ctypes.addressof(pointers), 0
        )
        cupy.cuda.runtime.deviceSynchronize()
    return Launched(
        {index: _copied(case, index, buffers[index]) for index in results(case)}, printed()
    )


def compiled(kernel: Kernel, case: Case) -> tuple[bytes, str]:
    """The cubin for this device, and the kernel's name in it."""
    folders = find_headers(nvrtc.getVersion()).folders
    options = [
        *(
            f"--gpu-architecture={architecture()}",
            "--std=c++17",
            "--device-as-default-execution-space",
            "--diag-suppress=47",
        ),
        *(f"-I{SHIM}", f"--pre-include={SHIM / PRELUDE}", *(f"-I{folder}" for folder in folders)),
        *(f"-D{name}={value}" for name, value in case.macros.items()),
    ]
    program = nvrtc.createProgram(kernel.source, f"{kernel.name}.cu", [], [])
    try:
        nvrtc.addNameExpression(program, case.kernel)
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError:
            print(nvrtc.getProgramLog(program), file=sys.stderr)
            raise
        return nvrtc.getCUBIN(program), nvrtc.getLoweredName(program, case.kernel)
    finally:
        nvrtc.destroyProgram(program)


@contextmanager
def captured_output() -> Iterator[Callable[[], str]]:
    """What the process writes to its standard output meanwhile, printf of kernels included."""
    libc = ctypes.CDLL(None)
    sys.stdout.flush()
    kept = os.dup(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output"
        text = ""
        with path.open("wb") as file:
            os.dup2(file.fileno(), 1)
            try:
                yield lambda: text
            finally:
                libc.fflush(None)
                os.dup2(kept, 1)
                os.close(kept)
        text = path.read_text(encoding="utf-8", errors="replace")


def _bytes(
    argument: In | InOut | Out | np.generic, buffer: cupy.ndarray | None
) -> ctypes.Array[ctypes.c_char]:
    raw = (
        argument.tobytes()
        if isinstance(argument, np.generic)
        else np.uint64(buffer.data.ptr if buffer is not None else 0).tobytes()
    )
    return ctypes.create_string_buffer(raw, len(raw))


def _copied(case: Case, index: int, buffer: cupy.ndarray) -> np.ndarray:
    argument = case.args[index]
    assert isinstance(argument, InOut | Out)
    form = initial(argument)
    return cupy.asnumpy(buffer).view(form.dtype).reshape(form.shape)
