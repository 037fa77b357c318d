"""The figures of a device in a prompt are those of the timing model."""

from __future__ import annotations

import pytest

from benchmarks.prompt_requests import ON_EMULATOR, ON_GPU
from evoengine.emulator import targets
from evoengine.emulator.targets import TARGETS
from evoengine.generate.device_figures import figures, short_name, target_of
from evoengine.generate.reference_source import PRODUCTS


def test_a_device_is_found_by_its_name_on_a_gpu_and_by_its_target_on_the_emulator() -> None:
    assert target_of(ON_EMULATOR) == target_of(ON_GPU) == targets.find("h200")
    unknown = ON_GPU.model_copy(update={"device": "cuda:0 NVIDIA Thing"})
    assert target_of(unknown) is None
    assert short_name(ON_EMULATOR) == short_name(ON_GPU) == "NVIDIA H200"


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_its_rates_bandwidths_and_latencies(name: str) -> None:
    target = targets.find(name)
    rates, bandwidths, latencies = figures(target, {PRODUCTS}, ["f16", "fp8"])
    assert f"at {target.clock_mhz:g} MHz" in rates and f"float32 {target.rates.fma:g}" in rates
    assert ("mma.sync fp8" in rates) == ("fp8" in target.tensor)
    assert f"L2 {target.l2_gb_s:g} GB/s" in bandwidths
    assert f"DRAM {target.latencies.dram:g}, mma {target.latencies.tensor:g}" in latencies


def test_a_task_without_products_has_no_tensor_rates() -> None:
    text = " ".join(figures(targets.find("h200"), set(), ["f16"]))
    assert "mma" not in text and "ex2" in text
