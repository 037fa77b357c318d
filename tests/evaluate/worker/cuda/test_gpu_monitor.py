"""The readings of a job as one state."""

from __future__ import annotations

import pytest
import torch

from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.nvml import Nvml
from evoengine.evaluate.worker.cuda.gpu_monitor import GpuMonitor, monitor_of
from evoengine.records import GpuState
from tests.evaluate.fake_pynvml import BUS_ID, FakePynvml


def state(clocks: list[int], reasons: list[int]) -> GpuState:
    """The state after two cases were timed."""
    module = FakePynvml(processes=())
    module.sm_clocks, module.reasons = clocks, reasons
    monitor = GpuMonitor(Nvml(module).gpu(BUS_ID))
    for _ in range(2):
        with monitor.reading():
            pass
    found = monitor.state()
    assert found is not None
    return found


def test_a_state_has_the_range_of_clocks_and_the_most_of_the_rest() -> None:
    assert state([1980, 1755, 1900, 1980], [0]) == GpuState(
        sm_clock_mhz=(1755, 1980),
        memory_clock_mhz=(3201, 3201),
        most_sm_clock_mhz=1980,
        temperature_c=41,
        power_w=301.7,
        power_limit_w=700.0,
        throttled=(),
        other_processes=None,  # this process is not among those on the GPU
    )


def test_each_reason_is_named_once_in_the_order_in_which_it_was_seen() -> None:
    found = state([1980], [0x20, 0x4, 0x24, 0])
    assert found.throttled == ("temperature limit", "power limit")
    assert found.remarks == ("throttled: temperature limit, power limit",)


def test_the_clocks_of_an_idle_gpu_count_only_where_it_was_idle_each_time() -> None:
    found = state([345, 1980, 345, 1965], [0x1, 0, 0x1, 0])
    assert (found.sm_clock_mhz, found.idle, found.remarks) == ((1965, 1980), False, ())
    found = state([345, 1980], [0x1])
    assert (found.sm_clock_mhz, found.idle, found.remarks) == ((345, 1980), True, ())


def test_a_busy_gpu_far_below_its_highest_clock_is_remarked() -> None:
    assert state([1980, 1484], [0]).remarks == ("below its usual clock",)
    assert state([1980, 1485], [0]).remarks == ()


def test_a_gpu_that_tells_nothing_has_a_state_without_figures() -> None:
    everything = {name for name in dir(FakePynvml) if name.startswith("nvmlDeviceGet")}
    module = FakePynvml(refused=everything - {"nvmlDeviceGetHandleByPciBusId"})
    monitor = GpuMonitor(Nvml(module).gpu(BUS_ID))
    with monitor.reading():
        pass
    assert monitor.state() == GpuState()


def test_there_is_no_state_before_a_reading_after_clear_and_without_nvml() -> None:
    monitor = GpuMonitor(Nvml(FakePynvml()).gpu(BUS_ID))
    assert monitor.state() is None
    with monitor.reading():
        pass
    assert monitor.state() is not None
    monitor.clear()
    assert monitor.state() is None
    without = GpuMonitor(None)
    with without.reading():
        pass
    assert without.state() is None


@pytest.mark.gpu
@pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device")
def test_a_gpu_that_computes_has_plausible_figures() -> None:
    pytest.importorskip("pynvml", reason="needs the package nvidia-ml-py")
    monitor = monitor_of(0)
    matrix = torch.rand(4096, 4096, device="cuda:0")
    with monitor.reading():
        for _ in range(200):
            matrix = torch.nn.functional.normalize(matrix @ matrix)
        # read while it computes: the launches above are not waited for
    torch.cuda.synchronize()
    found = monitor.state()
    assert found is not None, "NVML is there and does not find this GPU"
    assert found.sm_clock_mhz is not None and found.most_sm_clock_mhz is not None
    assert 100 <= found.sm_clock_mhz[0] <= found.sm_clock_mhz[1] <= found.most_sm_clock_mhz
    assert found.memory_clock_mhz is not None and found.memory_clock_mhz[1] > 100
    assert found.temperature_c is not None and 5 < found.temperature_c < 110
    assert found.power_w is not None and found.power_limit_w is not None
    assert 1 < found.power_w < 2 * found.power_limit_w
    assert found.throttled is not None
    assert found.other_processes is None or found.other_processes >= 0
