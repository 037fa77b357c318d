"""The state of a GPU from NVML, the driver's library behind nvidia-smi: no context, no torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from evoengine.evaluate.cuda_driver import cuda_devices

PACKAGE = "nvidia-ml-py"
_IDLE = 0x1  # nvmlClocksEventReasonGpuIdle
# nvmlClocksEventReason... of nvml.h, the last two as nvmlClocksThrottleReason...
_REASONS = {
    0x2: "clocks set by a user",
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x10: "clocks kept equal to those of other GPUs",
    0x20: "temperature limit",
    0x40: "temperature limit of the hardware",
    0x80: "power brake",
    0x100: "clocks set for a display",
    0x200: "limit of the board",
    0x400: "limit for reliability",
}
_REASON_BITS = 64


class NvmlError(Exception):
    """NVML cannot be used; the message says why."""


@dataclass(frozen=True)
class GpuReading:
    """One look at a GPU; a figure that NVML does not give is None."""

    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    most_sm_clock_mhz: int | None
    reasons: int | None  # why it does not run faster: the bits of nvmlClocksEventReasons
    temperature_c: int | None
    power_mw: int | None
    power_limit_mw: int | None
    processes: tuple[int, ...] | None  # ids of the processes that compute on it

    @property
    def is_idle(self) -> bool:
        """Whether it lowers its clocks because it has nothing to do."""
        return bool(self.reasons and self.reasons & _IDLE)

    @property
    def throttled(self) -> tuple[str, ...]:
        """The reasons in words, but for idleness."""
        reasons = (self.reasons or 0) & ~_IDLE
        bits = [1 << place for place in range(_REASON_BITS) if reasons >> place & 1]
        return tuple(_REASONS.get(bit, f"reason {bit:#x} of NVML") for bit in bits)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the figures that NVML does not give."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name) is None)


class Nvml:
    """The started library."""

    def __init__(self, module: Any) -> None:
        """`module` is pynvml; raises NvmlError if its library does not start."""
        self._module = module
        # some functions of pynvml raise the second for a driver that is too old, which older
        # versions do not have
        mismatch = getattr(module, "NVMLLibraryMismatchError", module.NVMLError)
        self._errors: tuple[type[Exception], ...] = (module.NVMLError, mismatch)
        self._demand("does not start", module.nvmlInit)
        self.driver = str(self._demand("does not answer", module.nvmlSystemGetDriverVersion))

    def gpu(self, bus_id: str) -> NvmlGpu:
        """The GPU at a PCI bus id, which no environment variable renumbers; raises NvmlError."""
        find = self._module.nvmlDeviceGetHandleByPciBusId
        return NvmlGpu(self, self._demand(f"does not find the GPU {bus_id}", find, bus_id))

    def read(self, handle: Any) -> GpuReading:
        """One look at the GPU with this handle, in a few milliseconds."""
        module = self._module
        running = self.figure(handle, "nvmlDeviceGetComputeRunningProcesses")
        return GpuReading(
            sm_clock_mhz=self.figure(handle, "nvmlDeviceGetClockInfo", module.NVML_CLOCK_SM),
            memory_clock_mhz=self.figure(handle, "nvmlDeviceGetClockInfo", module.NVML_CLOCK_MEM),
            most_sm_clock_mhz=self.figure(
                handle, "nvmlDeviceGetMaxClockInfo", module.NVML_CLOCK_SM
            ),
            reasons=self._either(
                handle,
                # the driver and pynvml have one of the two names, or both
                "nvmlDeviceGetCurrentClocksEventReasons",
                "nvmlDeviceGetCurrentClocksThrottleReasons",
            ),
            temperature_c=self._either(
                handle,
                "nvmlDeviceGetTemperature",  # until CUDA 14
                "nvmlDeviceGetTemperatureV",
                module.NVML_TEMPERATURE_GPU,
            ),
            power_mw=self.figure(handle, "nvmlDeviceGetPowerUsage"),
            power_limit_mw=self.figure(handle, "nvmlDeviceGetEnforcedPowerLimit"),
            processes=None if running is None else tuple(int(one.pid) for one in running),
        )

    def figure(self, handle: Any, function: str, *arguments: Any) -> Any:
        """The result of a function of pynvml; None where GPU, driver or pynvml do not have it, or
        this process may not ask.
        """
        if not hasattr(self._module, function):
            return None
        try:
            return getattr(self._module, function)(handle, *arguments)
        except self._errors:
            return None

    def _either(self, handle: Any, first: str, second: str, *arguments: Any) -> Any:
        found = self.figure(handle, first, *arguments)
        return self.figure(handle, second, *arguments) if found is None else found

    def _demand(self, problem: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._errors as error:
            raise NvmlError(f"NVML {problem}: {error}") from error


@dataclass(frozen=True)
class NvmlGpu:
    """One GPU of the library."""

    nvml: Nvml
    handle: Any

    def read(self) -> GpuReading:
        """One look at it, in a few milliseconds."""
        return self.nvml.read(self.handle)

    def memory_share(self) -> float | None:
        """How much of its memory is in use; None where NVML does not say."""
        memory = self.nvml.figure(self.handle, "nvmlDeviceGetMemoryInfo")
        return None if memory is None else float(memory.used / memory.total)


def start_nvml() -> Nvml:
    """NVML through NVIDIA's Python package; raises NvmlError."""
    try:
        module = importlib.import_module("pynvml")
    except ImportError:
        raise NvmlError(f"the Python package {PACKAGE} is not installed") from None
    return Nvml(module)


def memory_share(ordinal: int) -> float | None:
    """How much of the memory of this CUDA device is in use; None where nobody can tell."""
    found = cuda_devices()
    try:
        return start_nvml().gpu(found.bus_ids[ordinal]).memory_share()
    except (NvmlError, IndexError):
        return None
