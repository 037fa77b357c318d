"""The CUDA devices of this machine, from the driver alone: no context, no torch, a few
milliseconds.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from evoengine.errors import DeviceError

NAME_BYTES = 256

# CUdevice_attribute of cuda.h
_ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "sm_count": 16,
    "max_shared_bytes": 97,
    "l2_bytes": 38,
}


@dataclass(frozen=True)
class CudaDevices:
    """The devices by number; where there are none, `problem` says why."""

    names: tuple[str, ...]
    driver: str = ""
    problem: str = ""
    bus_ids: tuple[str, ...] = ()  # of the devices on the PCI bus, as NVML knows them


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
    return CudaDevices(
        names,
        f"{version.value // 1000}.{version.value % 1000 // 10}",
        problem,
        tuple(_bus_id(driver, ordinal) for ordinal in range(count.value)),
    )


def _name(driver: ctypes.CDLL, ordinal: int) -> str:
    handle, text = ctypes.c_int(), ctypes.create_string_buffer(NAME_BYTES)
    driver.cuDeviceGet(ctypes.byref(handle), ordinal)
    driver.cuDeviceGetName(text, NAME_BYTES, handle)
    return text.value.decode(errors="replace")


def _bus_id(driver: ctypes.CDLL, ordinal: int) -> str:
    handle, text = ctypes.c_int(), ctypes.create_string_buffer(NAME_BYTES)
    driver.cuDeviceGet(ctypes.byref(handle), ordinal)
    driver.cuDeviceGetPCIBusId(text, NAME_BYTES, handle)
    return text.value.decode(errors="replace")


@dataclass(frozen=True)
class CudaFacts:
    """One device as the driver describes it."""

    name: str
    major: int  # of its compute capability
    minor: int
    sm_count: int
    max_shared_bytes: int  # per block, opt-in
    l2_bytes: int
    memory_bytes: int

    @property
    def arch(self) -> str:
        """The architecture that code is compiled for, e.g. sm_90."""
        return f"sm_{self.major}{self.minor}"


def cuda_facts(ordinal: int) -> CudaFacts:
    """What the driver reports about a device; raises DeviceError where it does not answer."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DeviceError("no NVIDIA driver (libcuda.so.1 is not there)") from None
    handle, memory = ctypes.c_int(), ctypes.c_size_t()
    codes = [
        driver.cuInit(0),
        driver.cuDeviceGet(ctypes.byref(handle), ordinal),
        driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle),
    ]
    figures = {}
    for name, attribute in _ATTRIBUTES.items():
        figure = ctypes.c_int()
        codes.append(driver.cuDeviceGetAttribute(ctypes.byref(figure), attribute, handle))
        figures[name] = figure.value
    if any(codes):
        raise DeviceError(
            f"the NVIDIA driver does not describe device {ordinal}: it returns"
            f" {next(code for code in codes if code)}"
        )
    return CudaFacts(name=_name(driver, ordinal), memory_bytes=memory.value, **figures)
