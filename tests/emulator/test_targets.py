"""The table of GPUs: complete, sourced, and in a plausible order."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from evoengine.emulator.targets import FIGURES, TARGETS, TargetGpu, UnknownTarget, find, for_arch

ALL = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


@ALL
def test_every_figure_has_a_source(target: TargetGpu) -> None:
    assert set(target.sources) == set(FIGURES)
    assert all(len(source) > 10 for source in target.sources.values())


@ALL
def test_every_figure_is_positive(target: TargetGpu) -> None:
    assert all(
        value > 0
        for value in (
            target.sms,
            target.clock_mhz,
            target.dram_gb_s,
            target.l2_bytes,
            target.launch_us,
        )
    )
    assert all(
        value > 0
        for value in (*astuple(target.rates), *astuple(target.latencies), *target.tensor.values())
    )


@ALL
def test_memory_further_away_is_slower(target: TargetGpu) -> None:
    clocks = target.latencies
    assert clocks.fixed < clocks.mufu < clocks.shared <= clocks.l1 < clocks.l2 < clocks.dram
    assert target.l2_gb_s > target.dram_gb_s


@ALL
def test_a_block_never_gets_more_shared_memory_than_an_sm_has(target: TargetGpu) -> None:
    assert target.shared_per_block + target.shared_reserved <= target.shared_per_sm


@pytest.mark.parametrize(
    ("name", "kind", "tflops"),
    [
        ("t4", "f16", 65),
        ("a10", "f16", 125),
        ("l4", "f16", 121),
        ("l4", "fp8", 242.5),
        ("a100", "f16", 312),
        ("a100", "int8", 624),
        ("rtx4090", "f16", 165.2),
        ("l40s", "f16", 362),
        ("h100", "f16", 989 * 0.65 * 1980 / 1830),
    ],
)
def test_the_tensor_rates_multiply_up_to_the_peaks_of_the_data_sheets(
    name: str, kind: str, tflops: float
) -> None:
    target = find(name)
    assert target.tensor[kind] * target.sms * target.clock_mhz / 1e6 == pytest.approx(
        tflops, rel=0.02
    )


@pytest.mark.parametrize(
    ("name", "tflops"),
    [("l4", 30.3), ("a100", 19.5), ("h100", 66.9), ("a10", 31.2), ("rtx4090", 82.6), ("t4", 8.1)],
)
def test_the_fma_lanes_multiply_up_to_the_peaks_of_the_data_sheets(
    name: str, tflops: float
) -> None:
    target = find(name)
    assert 2 * target.rates.fma * target.sms * target.clock_mhz / 1e6 == pytest.approx(
        tflops, rel=0.02
    )


def test_an_h200_is_an_h100_with_more_bandwidth() -> None:
    h100, h200 = find("h100"), find("h200")
    assert h200.rates == h100.rates
    assert h200.dram_gb_s > h100.dram_gb_s


@pytest.mark.parametrize("name", ["h200", "H200", "NVIDIA H200", "nvidia-h200"])
def test_a_target_is_found_however_it_is_spelled(name: str) -> None:
    assert find(name) is TARGETS["h200"]


def test_an_unknown_target_is_refused_with_the_nearest_and_all_known_ones() -> None:
    with pytest.raises(
        UnknownTarget, match=r"no target 'h20'; did you mean 'h200'\? known: t4, a10, l4"
    ):
        find("h20")


def test_an_architecture_has_its_usual_target() -> None:
    assert for_arch("sm_89").name == "l4"
    assert for_arch("sm_90a").arch == "sm_90"
    with pytest.raises(UnknownTarget, match="no target of architecture 'sm_60'; known: sm_75"):
        for_arch("sm_60")
