"""What a modelled device reaches at most, from the figures that its times are modelled with."""

from __future__ import annotations

from evoengine.emulator.targets import TargetGpu
from evoengine.evaluate.floor import DevicePeaks


def modelled_peaks(target: TargetGpu) -> DevicePeaks:
    """The peaks of `target`; arithmetic for the units that it has."""
    clocks_per_s = target.clock_mhz * 1e6
    of_rates = {"fp32": 2 * target.rates.fma, "fp64": 2 * target.rates.fp64}
    per_clock = {**of_rates, **target.tensor}
    per_clock["fp64"] = max(of_rates["fp64"], target.tensor.get("fp64", 0.0))
    return DevicePeaks(
        l2_bytes=target.l2_bytes,
        l2_bytes_per_s=target.l2_gb_s * 1e9,
        dram_bytes_per_s=target.dram_gb_s * 1e9,
        launch_us=target.launch_us,
        flops_per_s={unit: rate * target.sms * clocks_per_s for unit, rate in per_clock.items()},
    )
