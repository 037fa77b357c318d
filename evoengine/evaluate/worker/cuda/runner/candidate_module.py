"""The code of one case on the device: loaded anew, its variables reset, its launches prepared."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path

import cupy
import torch
from cupy.cuda import runtime
from cupy.cuda.function import Module
from cupy_backends.cuda.api import driver

from evoengine.candidate.binding import BoundLaunch, BufferArgument, ScalarArgument
from evoengine.evaluate.compile.cubin import variable_symbols
from evoengine.evaluate.worker.cuda.harness.driver_library import driver_library
from evoengine.evaluate.worker.cuda.harness.launch_arguments import LaunchArguments, Value
from evoengine.evaluate.worker.cuda.harness.runner_messages import Load
from evoengine.evaluate.worker.cuda.runner.buffer_fills import fill_step

_MAX_DYNAMIC_SHARED, _LOCAL_BYTES = 8, 3  # CUfunction_attribute of cuda.h
_FLOATS = {"float32": ctypes.c_float, "float64": ctypes.c_double}

Pointers = Mapping[str, int]  # buffer -> device address


class CandidateModule:
    """A candidate's code for one case, through the module that CuPy's RawModule holds.

    RawModule itself caches modules, and with them the variables that a candidate left behind.
    """

    def __init__(self, load: Load) -> None:
        self._code = Path(load.code_path).read_bytes()
        self._symbols = variable_symbols(self._code)
        self._names = load.functions
        self._launches = load.launches
        self._fills = load.fills
        self._shared: dict[str, int] = {}
        for launch in load.launches:
            most = max(self._shared.get(launch.kernel, 0), launch.shared_bytes)
            self._shared[launch.kernel] = most
        self._module: Module | None = None
        self._functions: dict[str, int] = {}
        self._variables: list[tuple[int, int, bytes]] = []  # address, bytes, first value

    @property
    def local_bytes(self) -> int:
        """The most local memory of a thread of its kernels, in bytes."""
        return max(
            (driver.funcGetAttribute(_LOCAL_BYTES, it) for it in self._functions.values()),
            default=0,
        )

    def reload(self) -> None:
        """Loads the code anew: machine code, variables and constants are those of the file."""
        self.unload()
        module = Module()
        module.load(self._code)
        self._module = module
        self._functions = {
            kernel: module.get_function(name).ptr for kernel, name in self._names.items()
        }
        for kernel, shared_bytes in self._shared.items():
            driver.funcSetAttribute(self._functions[kernel], _MAX_DYNAMIC_SHARED, shared_bytes)
        self._variables = [it for name in self._symbols if (it := self._snapshot(name))]

    def reset_variables(self, stream: int) -> None:
        """Gives every variable and constant its first value again, static ones too."""
        for address, size, value in self._variables:
            runtime.memcpyAsync(
                address, _address_of(value), size, runtime.memcpyHostToDevice, stream
            )

    def unload(self) -> None:
        """Unloads the code, and with it its variables."""
        self._functions, self._module, self._variables = {}, None, []

    def bind(self, pointers: Pointers) -> Callable[[int], None]:
        """A function that fills buffers and launches the whole plan on a stream, given by its
        handle.
        """
        filling = [fill_step(fill, pointers) for fill in self._fills]
        steps = [
            (self._functions[launch.kernel], launch, _arguments(launch, pointers))
            for launch in self._launches
        ]

        def run(stream: int) -> None:
            for step in filling:
                step(stream)
            for function, launch, arguments in steps:
                driver.launchKernel(
                    function,
                    *_three(launch.grid),
                    *_three(launch.block),
                    launch.shared_bytes,
                    stream,
                    arguments.address,
                    0,
                )

        return run

    def _snapshot(self, name: str) -> tuple[int, int, bytes] | None:
        """Address, bytes and value of a variable; None for the text of a printf, which has no name
        that the driver knows.
        """
        assert self._module is not None
        address, size = _variable(self._module, name)
        if not size:
            return None
        value = ctypes.create_string_buffer(size)
        runtime.memcpy(ctypes.addressof(value), address, size, runtime.memcpyDeviceToHost)
        return address, size, value.raw


_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND


def _address_of(value: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(value), ctypes.c_void_p).value or 0


def _variable(module: Module, name: str) -> tuple[int, int]:
    """The address and the bytes of a variable, which CuPy returns without its size; 0 bytes if the
    module has none of this name.
    """
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    code = driver_library().cuModuleGetGlobal_v2(
        ctypes.byref(address),
        ctypes.byref(size),
        ctypes.c_void_p(module.ptr),
        name.encode("utf-8", "surrogateescape"),
    )
    if code and code != _NOT_FOUND:
        raise cupy.cuda.driver.CUDADriverError(code)
    return address.value, size.value


def _arguments(launch: BoundLaunch, pointers: Pointers) -> LaunchArguments:
    return LaunchArguments(*(_value(argument, pointers) for argument in launch.args))


def _value(argument: BufferArgument | ScalarArgument, pointers: Pointers) -> Value:
    if isinstance(argument, BufferArgument):
        return ctypes.c_uint64(pointers[argument.buffer])
    if argument.dtype in _FLOATS:
        return _FLOATS[argument.dtype](argument.scalar)
    if argument.dtype in ("float16", "bfloat16"):
        kind = getattr(torch, argument.dtype)
        return ctypes.c_int16(int(torch.tensor(argument.scalar, dtype=kind).view(torch.int16)))
    # The driver copies as many bytes as the kernel's parameter has: 8 little-endian bytes serve
    # int, int64 and bool alike.
    return ctypes.c_int64(int(argument.scalar))


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z
