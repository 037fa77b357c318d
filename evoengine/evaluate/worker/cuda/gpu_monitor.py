"""Reads the state of the GPU around timings: before the first sample and after the last one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import cupy

from evoengine.evaluate.gpu_processes import other_processes
from evoengine.evaluate.nvml import GpuReading, NvmlError, NvmlGpu, start_nvml
from evoengine.records import GpuState


class GpuMonitor:
    """The readings of one job."""

    def __init__(self, gpu: NvmlGpu | None) -> None:
        """Without a `gpu`, nothing is read and there is no state."""
        self._gpu = gpu
        self._readings: list[tuple[GpuReading, int | None]] = []

    def clear(self) -> None:
        """Forgets the job before."""
        self._readings.clear()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads before and after what is done inside, also when that fails; never meanwhile,
        because a call of NVML takes time of the driver.
        """
        self._read()
        try:
            yield
        finally:
            self._read()

    def state(self) -> GpuState | None:
        """The readings of the job as one; None if there are none."""
        if not self._readings:
            return None
        readings = [reading for reading, _ in self._readings]
        return state_of(readings, _most(others for _, others in self._readings))

    def _read(self) -> None:
        if self._gpu is not None:
            reading = self._gpu.read()
            self._readings.append((reading, other_processes(reading.processes)))


def monitor_of(ordinal: int) -> GpuMonitor:
    """The monitor of a CUDA device; one that reads nothing where NVML cannot be used, for which
    `evoengine doctor` has the reason.
    """
    try:
        return GpuMonitor(start_nvml().gpu(cupy.cuda.runtime.deviceGetPCIBusId(ordinal)))
    except NvmlError:
        return GpuMonitor(None)


def state_of(readings: Sequence[GpuReading], others: int | None) -> GpuState:
    """One or more readings as one state; `others` is the number of processes that are not ours."""
    busy = [one for one in readings if not one.is_idle]
    clocked = busy or readings
    reasons = [reason for one in readings for reason in one.throttled]
    known = any(one.reasons is not None for one in readings)
    power, limit = (
        _most(it.power_mw for it in readings),
        _most(it.power_limit_mw for it in readings),
    )
    return GpuState(
        sm_clock_mhz=_range(one.sm_clock_mhz for one in clocked),
        memory_clock_mhz=_range(one.memory_clock_mhz for one in clocked),
        most_sm_clock_mhz=_most(one.most_sm_clock_mhz for one in readings),
        idle=not busy,
        temperature_c=_most(one.temperature_c for one in readings),
        power_w=None if power is None else power / 1000,
        power_limit_w=None if limit is None else limit / 1000,
        throttled=tuple(dict.fromkeys(reasons)) if known else None,
        other_processes=others,
    )


def _most(figures: Iterable[int | None]) -> int | None:
    return max((figure for figure in figures if figure is not None), default=None)


def _range(figures: Iterable[int | None]) -> tuple[int, int] | None:
    known = [figure for figure in figures if figure is not None]
    return (min(known), max(known)) if known else None
