"""What is read of a GPU through NVML, and what a refusal of it means."""

from __future__ import annotations

import os
import sys

import pytest

from evoengine.evaluate.nvml import GpuReading, Nvml, NvmlError, start_nvml
from tests.evaluate.fake_pynvml import BUS_ID, FakePynvml


def read(module: FakePynvml) -> GpuReading:
    return Nvml(module).gpu(BUS_ID).read()


def test_a_reading_has_every_figure_of_the_gpu_at_the_bus_id() -> None:
    found = read(FakePynvml())
    assert found == GpuReading(
        sm_clock_mhz=1980,
        memory_clock_mhz=3201,
        most_sm_clock_mhz=1980,
        reasons=0,
        temperature_c=41,
        power_mw=301_700,
        power_limit_mw=700_000,
        processes=(os.getpid(),),
    )
    assert (found.missing, found.throttled, found.is_idle) == ((), (), False)


@pytest.mark.parametrize(("functions", "missing"), [
    ({"nvmlDeviceGetClockInfo"}, ("sm_clock_mhz", "memory_clock_mhz")),
    ({"nvmlDeviceGetMaxClockInfo"}, ("most_sm_clock_mhz",)),
    ({"nvmlDeviceGetCurrentClocksEventReasons"}, ()),
    ({"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
     ("reasons",)),
    ({"nvmlDeviceGetTemperature"}, ()),
    ({"nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"}, ("temperature_c",)),
    ({"nvmlDeviceGetPowerUsage"}, ("power_mw",)),
    ({"nvmlDeviceGetEnforcedPowerLimit"}, ("power_limit_mw",)),
    ({"nvmlDeviceGetComputeRunningProcesses"}, ("processes",)),
])  # fmt: skip
def test_a_figure_that_is_refused_or_unknown_to_pynvml_is_missing_and_no_error(
    functions: set[str], missing: tuple[str, ...]
) -> None:
    for module in (FakePynvml(refused=functions), FakePynvml(lacking=functions)):
        assert read(module).missing == missing


def test_a_driver_that_is_too_old_for_a_call_gives_no_figure() -> None:
    found = read(FakePynvml(refused={"nvmlDeviceGetComputeRunningProcesses_v3"}))
    assert found.missing == ("processes",)


@pytest.mark.parametrize(("reasons", "idle", "words"), [
    (0x1, True, ()),
    (0x4, False, ("power limit",)),
    (0x21, True, ("temperature limit",)),
    (0x88, False, ("hardware slowdown", "power brake")),
    (0x8002, False, ("clocks set by a user", "reason 0x8000 of NVML")),
])  # fmt: skip
def test_each_reason_has_words_and_idleness_is_none(
    reasons: int, idle: bool, words: tuple[str, ...]
) -> None:
    module = FakePynvml()
    module.reasons = [reasons]
    found = read(module)
    assert (found.is_idle, found.throttled) == (idle, words)


def test_a_library_that_does_not_start_and_a_gpu_that_is_not_there_are_errors_with_their_reason() -> (
    None
):
    with pytest.raises(NvmlError, match=r"NVML does not start: refused"):
        Nvml(FakePynvml(refused={"nvmlInit"}))
    with pytest.raises(NvmlError, match=r"does not find the GPU 0000:99:00\.0: Not Found"):
        Nvml(FakePynvml()).gpu("0000:99:00.0")


def test_without_the_package_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlError, match="nvidia-ml-py is not installed"):
        start_nvml()
