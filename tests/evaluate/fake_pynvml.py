"""An object with the names of NVIDIA's module pynvml that the engine uses, over figures of a test."""

# ruff: noqa: N802, N815 - the names are those of pynvml

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace

BUS_ID = "0000:19:00.0"
HANDLE = object()


class FakePynvml:
    """An H200; what is `refused` raises NVMLError, what is `lacking` is no attribute."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        """The base of what pynvml raises."""

    class NVMLLibraryMismatchError(Exception):
        """Raised for a driver that is too old; it has another base."""

    def __init__(
        self,
        refused: Collection[str] = (),
        lacking: Collection[str] = (),
        processes: Sequence[int] | None = None,
    ) -> None:
        """`processes` are those on the GPU; by default this one alone."""
        self.refused, self.lacking = refused, lacking
        self.processes = (os.getpid(),) if processes is None else processes
        self.sm_clocks = [1980]  # of one reading after the other; the last one stays
        self.reasons = [0]
        self.on_power: Callable[[], None] = lambda: None

    def __getattribute__(self, name: str) -> object:
        found = object.__getattribute__(self, name)
        if not name.startswith("nvml"):
            return found
        if name in self.lacking:
            raise AttributeError(name)
        if name in self.refused:
            return self._refuse
        return found

    def _refuse(self, *_: object) -> None:
        raise self.NVMLError("refused")

    def nvmlInit(self) -> None: ...

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlDeviceGetHandleByPciBusId(self, bus_id: str) -> object:
        if bus_id != BUS_ID:
            raise self.NVMLError("Not Found")
        return HANDLE

    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int:
        assert handle is HANDLE
        return next_of(self.sm_clocks) if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetMaxClockInfo(self, handle: object, kind: int) -> int:
        assert (handle, kind) == (HANDLE, self.NVML_CLOCK_SM)
        return 1980

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: object) -> int:
        assert handle is HANDLE
        return next_of(self.reasons)

    nvmlDeviceGetCurrentClocksThrottleReasons = nvmlDeviceGetCurrentClocksEventReasons

    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int:
        assert (handle, sensor) == (HANDLE, self.NVML_TEMPERATURE_GPU)
        return 41

    nvmlDeviceGetTemperatureV = nvmlDeviceGetTemperature

    def nvmlDeviceGetPowerUsage(self, handle: object) -> int:
        assert handle is HANDLE
        self.on_power()
        return 301_700

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: object) -> int:
        assert handle is HANDLE
        return 700_000

    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[SimpleNamespace]:
        assert handle is HANDLE
        if "nvmlDeviceGetComputeRunningProcesses_v3" in self.refused:
            raise self.NVMLLibraryMismatchError("the driver is too old")
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in self.processes]


def next_of(figures: list[int]) -> int:
    """The first figure, which leaves unless it is the last one."""
    return figures.pop(0) if len(figures) > 1 else figures[0]
