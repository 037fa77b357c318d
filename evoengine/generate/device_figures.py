"""The figures of a device, in words for prompts: rates, bandwidths and latencies.

They are those of the timing model (emulator/targets.py, each with its source), on a GPU as well:
what is known of it does not depend on whether it is here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from evoengine.emulator import targets
from evoengine.emulator.targets import TargetGpu
from evoengine.emulator.timing_model.memory_traffic import (
    DRAM_SHARE,
    L2_BYTES_PER_CLOCK,
    STORE_COST,
)
from evoengine.generate.reference_source import PRODUCTS
from evoengine.records import Environment

_MMA_FLOPS = 2 * 16 * 8 * 16  # of one m16n8k16


def target_of(environment: Environment) -> TargetGpu | None:
    """The timing model's figures of this device; None where it has none."""
    name, _, title = environment.device.partition(" ")
    kind, _, target = name.partition(":")
    try:
        return targets.find(target if kind == "emulator" else title)
    except targets.UnknownTarget:
        return None


def figures(target: TargetGpu, operations: Collection[str], formats: Collection[str]) -> list[str]:
    """Sentences on what an SM and the whole device sustain, and on latencies; tensor instructions
    for `formats` (f16, fp8, ...) where the task has products.
    """
    tensor = list(_tensor(target, formats)) if PRODUCTS in operations else []
    return [_rates(target, tensor), _bandwidths(target), _latencies(target, bool(tensor))]


def _rates(target: TargetGpu, tensor: list[str]) -> str:
    rates = target.rates
    parts = [
        f"float32 {rates.fma:g}",
        f"integer multiply-add {rates.imad:g}",
        f"other integer {rates.alu:g}",
        f"half2 {rates.half:g}",
        f"ex2, rcp, rsqrt and their like {rates.mufu:g}",
        f"shuffle {rates.shuffle:g}",
        f"memory access {rates.lsu:g}",
    ]
    also = f"; {'; '.join(tensor)}" if tensor else ""
    return (
        f"Lanes per clock and SM at {target.clock_mhz:g} MHz (at most {targets.SCHEDULERS} warp"
        f" instructions are issued): {', '.join(parts)}{also}"
    )


def _tensor(target: TargetGpu, formats: Collection[str]) -> Iterator[str]:
    for name in formats:
        if rate := target.tensor.get(name):
            clocks = _MMA_FLOPS / rate
            yield f"mma.sync {name} {rate:.0f} operations (m16n8k16: {clocks:.2g} clocks)"


def _bandwidths(target: TargetGpu) -> str:
    l2 = target.l2_gb_s * 1000 / target.clocks_per_us / target.sms
    dram = DRAM_SHARE * target.dram_gb_s
    return (
        f"Shared memory {targets.SHARED_BYTES_PER_CLOCK} bytes per clock and SM; L2"
        f" {target.l2_gb_s:g} GB/s for all SMs ({l2:.0f} bytes per clock and SM), at most"
        f" {L2_BYTES_PER_CLOCK} to one SM, a stored byte costs {STORE_COST:g} loaded ones;"
        f" DRAM {dram:.0f} GB/s"
    )


def _latencies(target: TargetGpu, has_products: bool) -> str:
    of = target.latencies
    parts = [
        f"arithmetic {of.fixed:g}",
        f"special function {of.mufu:g}",
        f"shuffle {of.shuffle:g}",
        f"shared load {of.shared:g}",
        f"load from L1 {of.l1:g}, L2 {of.l2:g}, DRAM {of.dram:g}",
        *([f"mma {of.tensor:g}"] if has_products else []),
        f"__syncthreads {of.barrier:g} + {of.barrier_warp:g} for each warp of the block",
        f"the next block in place of a finished one {of.block:g}",
    ]
    return f"Latencies in clocks: {', '.join(parts)}"


def short_name(environment: Environment) -> str:
    """The name of the GPU without its number here, e.g. NVIDIA H200."""
    title = environment.device.partition(" ")[2] or environment.device
    return re.sub(r"\s*\(modelled.*\)$", "", title)
