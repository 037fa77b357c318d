"""Calls the C runtime with numpy arrays, for this host and for hosts with fewer CPU features."""

from __future__ import annotations

import ctypes
import fcntl
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from evoengine.emulator.run.jit import cache_home
from evoengine.emulator.run.native import NativeRuntime, load_runtime

LANES = 32
VARIANTS = {
    "whole": (),
    "avx2": ("avx512", "avx10", "amx"),
    "no_f16c": ("avx512", "avx10", "amx", "f16c", "fma"),
}


def host_features(without: tuple[str, ...]) -> str:
    llvm.initialize_native_target()
    found = llvm.get_host_cpu_features()
    for name in list(found):
        found[name] = found[name] and not name.startswith(without or ("\0",))
    return str(found.flatten())


@cache
def native(variant: str) -> NativeRuntime:
    cache_home().mkdir(parents=True, exist_ok=True)
    # one process of a run compiles it, which takes half a minute of a core; the others find it
    with (cache_home() / f"tests-{variant}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return load_runtime(
            llvm.get_host_cpu_name(), host_features(VARIANTS[variant]), cache_home()
        )


def aligned(array: Any) -> np.ndarray:
    """A copy that is aligned to 64 bytes, as the runtime requires."""
    array = np.ascontiguousarray(array)
    space = np.zeros(array.nbytes + 64, np.uint8)
    start = -space.ctypes.data % 64
    copy = space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Runtime:
    """One variant's functions."""

    def __init__(self, variant: str) -> None:
        self.variant = variant

    @cached_property
    def native(self) -> NativeRuntime:
        """The compiled runtime; only when a test needs it, so that tests can be collected without
        clang.
        """
        return native(self.variant)

    def call(self, name: str, *arguments: Any, returns: Any = None) -> Any:
        """Calls a C function with pointers to arrays and with integers."""
        types = [
            ctypes.c_void_p if isinstance(argument, np.ndarray) else ctypes.c_uint64
            for argument in arguments
        ]
        values = [
            argument.ctypes.data if isinstance(argument, np.ndarray) else int(argument)
            for argument in arguments
        ]
        return ctypes.CFUNCTYPE(returns, *types)(self.native.address(name))(*values)

    def lanes(self, name: str, result: Any, *arguments: Any) -> np.ndarray:
        """The result of a lane-wise function for arrays of any common length, 32 elements at a
        time.
        """
        arrays = [np.ascontiguousarray(argument) for argument in arguments]
        count = len(arrays[0])
        padded = [np.resize(array, -(-count // LANES) * LANES) for array in arrays]
        out = np.empty(len(padded[0]), result)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(padded) + 1))(
            self.native.address(name)
        )
        buffers = [aligned(array[:LANES]) for array in padded]
        y = aligned(np.zeros(LANES, result))
        pointers = [buffer.ctypes.data for buffer in (*buffers, y)]
        for start in range(0, len(out), LANES):
            for buffer, array in zip(buffers, padded, strict=True):
                buffer[:] = array[start : start + LANES]
            function(*pointers)
            out[start : start + LANES] = y
        return out[:count]
