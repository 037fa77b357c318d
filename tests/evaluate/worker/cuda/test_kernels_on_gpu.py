"""Our kernels (kernels.cu) against torch, on a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy
import pytest
import torch

from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.worker.arena import GUARD, POISON
from evoengine.evaluate.worker.cuda.dealing import FLAG, deal_rows, slot_row
from evoengine.evaluate.worker.cuda.examination import device_bytes
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.harness_kernels import DTYPES
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES
from evoengine.evaluate.worker.cuda.measured_peaks import measure_peaks
from evoengine.evaluate.worker.cuda.output_comparison import _FIGURES
from evoengine.evaluate.worker.cuda.slots import Place
from evoengine.evaluate.worker.gate import Gate
from evoengine.evaluate.worker.slices import tiny_of
from tests.evaluate.worker.cuda.compared_outputs import (
    INFINITE_GATES,
    compared_pairs,
    refuse_other_figures,
    refuse_other_verdicts,
    table_of,
)
from tests.evaluate.worker.infinite_references import FLOATS, infinite_cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not cuda_devices().names, reason="needs a CUDA device"),
]

SIZES = (1, 15, 16, 17, 255, 4097, 100_003, PAGE_BYTES - 65536, PAGE_BYTES - 65535, 3_000_001)
SHAPES = (
    (1,),
    (31,),
    (1000,),
    (100_003,),
    (7, 333),
    (64, 31),  # rows below the size of a slice
    (5, 3, 64),
    (6, 8, 16),
    (2, 2, 4, 8),
    (3, 40_000),  # long rows
    (3000, 32),
)


@pytest.fixture(scope="module")
def harness() -> Iterator[GpuHarness]:
    stream = torch.cuda.Stream(0)
    with torch.cuda.stream(stream):
        yield GpuHarness(0, stream)
        torch.cuda.synchronize()


def dealt(harness: GpuHarness) -> list[tuple[Place, torch.Tensor | None]]:
    """A slot of each size with a source, and one without, as they were dealt."""
    sources = [torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda") for size in SIZES]
    places = harness.slots.place([*SIZES, *SIZES])
    pairs = list(zip(places, [*sources, *[None] * len(SIZES)], strict=True))
    deal_rows(harness, [slot_row(place, source) for place, source in pairs])
    torch.cuda.synchronize()
    return pairs


def slot_of(place: Place) -> torch.Tensor:
    return device_bytes(place.slot.address, place.slot.size)


def audited(harness: GpuHarness, count: int) -> list[int]:
    """The flags of the slots that were dealt last."""
    torch.cuda.synchronize()
    flags = harness.flags.clear(FLAG.itemsize * count)
    harness.kernels.audit(harness.slot_table.address, count, flags)
    return [int(flag) for flag in harness.flags.read(numpy.zeros(count, dtype=FLAG))]


def test_slots_are_written_whole_at_any_size_and_place(harness: GpuHarness) -> None:
    for _ in range(3):
        for place, source in dealt(harness):
            wanted = torch.full((place.slot.size,), GUARD, dtype=torch.uint8, device="cuda")
            own = wanted[place.offset : place.offset + place.size]
            own.copy_(source) if source is not None else own.fill_(POISON)
            assert torch.equal(slot_of(place), wanted), place


def test_an_audit_finds_any_changed_byte_and_says_whose(harness: GpuHarness) -> None:
    pairs = dealt(harness)
    count = len(pairs)
    assert audited(harness, count) == [0] * count
    for at in ("first", "last", "before", "after", "slot's first", "slot's last"):
        wanted = []
        for place, source in pairs:
            end = place.offset + place.size
            byte = {
                "first": place.offset,
                "last": end - 1,
                "before": place.offset - 1,
                "after": end,
                "slot's first": 0,
                "slot's last": place.slot.size - 1,
            }[at]
            if not 0 <= byte < place.slot.size:
                wanted.append(0)
                continue
            slot_of(place)[byte] ^= 0x40
            own = place.offset <= byte < end
            wanted.append((1 if source is not None else 0) if own else 2)
        assert audited(harness, count) == wanted, at
        deal_rows(
            harness,
            [slot_row(place, source) for place, source in pairs],
        )
    assert audited(harness, count) == [0] * count


def test_both_kinds_of_changes_are_found_together_and_an_output_may_change(
    harness: GpuHarness,
) -> None:
    pairs = dealt(harness)
    for place, _ in pairs:
        slot_of(place).fill_(0x11)
    wanted = [3 if source is not None else 2 for _, source in pairs]
    assert audited(harness, len(pairs)) == wanted
    for place, _ in pairs:
        slot_of(place)[place.offset : place.offset + place.size] = 0x22
    assert audited(harness, len(pairs)) == wanted


@pytest.mark.parametrize("name", DTYPES)
def test_comparisons_have_the_figures_of_the_gate(harness: GpuHarness, name: str) -> None:
    pairs = compared_pairs(name, SHAPES, torch.device("cuda"))
    torch.cuda.synchronize()
    figures = harness.figures.clear(_FIGURES.itemsize * len(pairs))
    table = harness.comparisons.write(table_of(pairs))
    harness.kernels.compare(table, len(pairs), figures)
    refuse_other_figures(harness.figures.read(numpy.zeros(len(pairs), dtype=_FIGURES)), pairs)


@pytest.mark.parametrize("gate", INFINITE_GATES, ids=["exact", "rtol"])
@pytest.mark.parametrize("name", FLOATS)
def test_an_infinity_passes_only_where_the_reference_is_the_same_one(
    harness: GpuHarness, name: str, gate: Gate
) -> None:
    cases = infinite_cases(name, torch.device("cuda"))
    pairs = [(case.output, case.reference) for case in cases]
    torch.cuda.synchronize()
    figures = harness.figures.clear(_FIGURES.itemsize * len(pairs))
    harness.kernels.compare(harness.comparisons.write(table_of(pairs, gate)), len(pairs), figures)
    raw = harness.figures.read(numpy.zeros(len(pairs), dtype=_FIGURES))
    refuse_other_verdicts(raw, cases, gate)


def test_errors_below_the_smallest_number_count_as_none(harness: GpuHarness) -> None:
    """A reference that underflows: a slice may differ by the smallest subnormal number."""
    reference = torch.full((4, 64), 1e-9, dtype=torch.float64, device="cuda")
    output = torch.zeros(4, 64, dtype=torch.float16, device="cuda")
    output[2] = 2 * tiny_of(torch.float16)
    pairs = [(output, reference)]
    torch.cuda.synchronize()
    figures = harness.figures.clear(_FIGURES.itemsize)
    harness.kernels.compare(harness.comparisons.write(table_of(pairs)), 1, figures)
    raw = harness.figures.read(numpy.zeros(1, dtype=_FIGURES))
    refuse_other_figures(raw, pairs)
    assert raw[0]["worst_row"] > 1


def test_the_devices_clock_goes_in_nanoseconds(harness: GpuHarness) -> None:
    stamps = torch.zeros(2, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    began = time.perf_counter()
    harness.kernels.stamp(stamps.data_ptr())
    torch.cuda.synchronize()
    time.sleep(0.05)
    harness.kernels.stamp(stamps.data_ptr() + 8)
    torch.cuda.synchronize()
    host_us = (time.perf_counter() - began) * 1e6
    first, second = stamps.tolist()
    assert 50_000 <= (second - first) / 1000 <= host_us + 1000


def test_the_measured_peaks_are_those_of_a_gpu(harness: GpuHarness) -> None:
    peaks = measure_peaks(harness, ["f16", "fp32"])
    assert 1e11 < peaks.dram_bytes_per_s < peaks.l2_bytes_per_s < 1e14
    assert 0.1 < peaks.launch_us < 20
    assert 1e12 < peaks.flops_per_s["fp32"] < peaks.flops_per_s["f16"] < 1e16
