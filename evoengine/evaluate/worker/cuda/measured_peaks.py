"""What this device reaches at most: bandwidths, launches, arithmetic; measured once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from evoengine.evaluate.floor import DevicePeaks
from evoengine.evaluate.worker.cuda.baseline_replays import CapturedGraph
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.time_marks import Step
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PhysicalMemory, pages

DRAM_BYTES = 512 * 1024**2
L2_PART = 0.25  # of L2, read again and again
L2_TIMES = 16  # so that the beginning of a launch is a small part
LAUNCHES = 20
EMPTY_LAUNCHES = 200
SIDE = 4096  # of the square matrices of a product
# A better kernel than ours may reach more: no honest one may be refused for that.
ALLOWANCE = 1.2
# Architectures whose tensor cores are twice as fast where sums are f16, too.
_F16_SUMS_TWICE = (86, 89, 120, 121)
# The peak of a unit in products of f16, which is measured.
_OF_F16 = {"f16": 1.0, "bf16": 1.0, "tf32": 0.5, "fp8": 2.0, "int8": 2.0}
_OWN = {"fp32": torch.float32, "fp64": torch.float64}


def measure_peaks(harness: GpuHarness, units: Iterable[str]) -> DevicePeaks:
    """The peaks of the current device; arithmetic for these units alone."""
    launch_us = _time_us(harness, [lambda _: harness.kernels.nothing()], EMPTY_LAUNCHES)
    return DevicePeaks(
        l2_bytes=harness.l2_bytes,
        l2_bytes_per_s=_read_bandwidth(harness, pages(int(L2_PART * harness.l2_bytes)), L2_TIMES),
        dram_bytes_per_s=_read_bandwidth(harness, pages(max(DRAM_BYTES, 4 * harness.l2_bytes)), 1),
        launch_us=launch_us / ALLOWANCE,
        flops_per_s={unit: _flops(harness, unit) for unit in units},
    )


def _read_bandwidth(harness: GpuHarness, size: int, times: int) -> float:
    """Bytes a second at which a launch reads `size` bytes, `times` times."""
    memory = PhysicalMemory.create(harness.ordinal, size)
    address = harness.addresses.map(memory)
    us = _time_us(harness, [lambda _: harness.kernels.read_often(address, size, times)], LAUNCHES)
    harness.addresses.unmap(address)
    memory.release()
    return ALLOWANCE * size * times / us * 1e6


def _flops(harness: GpuHarness, unit: str) -> float:
    dtype = _OWN.get(unit, torch.float16)
    major, minor = torch.cuda.get_device_capability()
    left, right = (torch.randn(SIDE, SIDE, device="cuda", dtype=dtype) for _ in range(2))
    product: Callable[[], torch.Tensor] = lambda: left @ right  # noqa: E731 - bound twice
    product()
    us = _time_us(harness, [lambda _: product()], 3)
    factor = _OF_F16.get(unit, 1.0)
    if unit in _OF_F16 and 10 * major + minor in _F16_SUMS_TWICE:
        factor *= 2
    return float(ALLOWANCE * factor * 2 * SIDE**3 / us * 1e6)


def _time_us(harness: GpuHarness, steps: list[Step], times: int) -> float:
    """The shortest of three times of `steps`, repeated in a graph, in microseconds for one."""
    marked = harness.marks.around(0, steps * times)
    graph = CapturedGraph(marked, harness.stream.ptr, torch.cuda.graph_pool_handle())
    taken = []
    for _ in range(3):
        graph.replay()
        torch.cuda.current_stream().synchronize()
        taken.append(harness.marks.times(1).event_us[0])
    return min(taken) / times
