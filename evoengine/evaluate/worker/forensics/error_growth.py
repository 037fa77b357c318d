"""How the size of the error changes along the axes of an output."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.lead import Lead, figure
from evoengine.records import DiagnosisKind

BINS = 16
LEAST_EXTENT = 32
GROWTH = 2.0  # from the first quarter of an axis to its last
STEADY = 0.85  # rank correlation of size and place


def growth_leads(compared: ComparedOutput) -> Iterator[Lead]:
    """An axis along which the error grows steadily: what is summed along it loses accuracy."""
    usable = compared.value.isfinite() & compared.reference.isfinite()
    error = (compared.value - compared.reference).masked_fill(~usable, 0).square()
    for axis, name in enumerate(compared.axes):
        extent = error.shape[axis]
        if extent < LEAST_EXTENT or error.numel() < 4 * LEAST_EXTENT:
            continue
        others = [other for other in range(error.dim()) if other != axis]
        along = error.mean(dim=others) if others else error
        size = extent // BINS * BINS
        bins = along[:size].view(BINS, -1).mean(1).sqrt()
        first, last = float(bins[: BINS // 4].mean()), float(bins[-BINS // 4 :].mean())
        if first <= 0 or last / first < GROWTH or _rank_correlation(bins) < STEADY:
            continue
        power = math.log(last / first) / math.log(7)  # the middles of both quarters: 1/8, 7/8
        yield Lead(
            DiagnosisKind.low_precision,
            f"The error of {compared.name} grows along {name}, {figure(last / first)} times from"
            " its first quarter to its last: something that is carried along it loses accuracy.",
            0.6,
            0.8,
            {"axis": name, "growth": last / first, "power": round(power, 2)},
        )


def _rank_correlation(values: torch.Tensor) -> float:
    ranks = values.argsort().argsort().double()
    places = torch.arange(values.numel(), dtype=torch.float64)
    return float(torch.corrcoef(torch.stack([ranks, places]))[0, 1])
