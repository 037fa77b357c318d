"""Which CUDA devices are there, asked of the driver alone: no context, no torch, a few milliseconds."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

NAME_BYTES = 256


@dataclass(frozen=True)
class CudaDevices:
    """The devices by number; where there are none, `problem` says why."""

    names: tuple[str, ...]
    driver: str = ""
    problem: str = ""


def cuda_devices() -> CudaDevices:
    """What the NVIDIA driver of this machine reports."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return CudaDevices((), problem="no NVIDIA driver (libcuda.so.1 is not there)")
    code = driver.cuInit(0)
    if code:
        return CudaDevices((), problem=f"the NVIDIA driver does not start (cuInit returns {code})")
    count, version = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    names = tuple(_name(driver, ordinal) for ordinal in range(count.value))
    problem = "" if names else "the NVIDIA driver finds no device"
    return CudaDevices(names, f"{version.value // 1000}.{version.value % 1000 // 10}", problem)


def _name(driver: ctypes.CDLL, ordinal: int) -> str:
    handle, text = ctypes.c_int(), ctypes.create_string_buffer(NAME_BYTES)
    driver.cuDeviceGet(ctypes.byref(handle), ordinal)
    driver.cuDeviceGetName(text, NAME_BYTES, handle)
    return text.value.decode(errors="replace")
