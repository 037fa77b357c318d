from __future__ import annotations

import math

import pytest
import torch

from evoengine.evaluate.worker import rmse_chance
from evoengine.evaluate.worker.gate import errors_of, gate_of
from evoengine.evaluate.worker.rmse_chance import chance_of, elements_that_count
from evoengine.task.schema import Tier

FP16 = Tier(atol=2e-3, rtol=1e-3, rel_rmse=5e-4)


def outputs_with_outliers(seed: int, size: int = 4096, outliers: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(size, generator=generator, dtype=torch.float64)
    values[torch.randperm(size, generator=generator)[:outliers]] *= 1000
    return values


def rounded_toward_zero(values: torch.Tensor) -> torch.Tensor:
    """To float16, all of whose larger bits are kept."""
    mantissa, exponent = torch.frexp(values)
    return torch.ldexp(torch.trunc(mantissa * 2**11), exponent - 11)


@pytest.mark.parametrize(
    ("size", "chance"), [(1, 2.875), (12, 1.875), (300, 1.075), (768, 1.0), (10_000, 1.0)]
)
def test_elements_alike_all_count(size: int, chance: float) -> None:
    alike = torch.full((size,), -3e200, dtype=torch.float64)
    assert elements_that_count(alike) == pytest.approx(size)
    assert chance_of(alike) == pytest.approx(chance)


def test_normal_numbers_have_the_same_chance_whatever_they_are() -> None:
    for size in (2, 30, 500):
        found = {chance_of(torch.randn(size, dtype=torch.float64)) for _ in range(20)}
        assert len(found) == 1, size


def test_only_what_is_large_and_finite_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    values = torch.full((8, 16), 1e-3, dtype=torch.float64)
    assert chance_of(values * 0) == 1.0
    assert chance_of(values[:0]) == 1.0
    values[1, 2] = values[7, 3] = 5e3
    assert elements_that_count(values) == pytest.approx(2)
    values[3, 3], values[4, 4] = math.inf, math.nan
    assert elements_that_count(values) == pytest.approx(2)
    monkeypatch.setattr(rmse_chance, "PIECE_ELEMENTS", 7)
    assert elements_that_count(values) == pytest.approx(2)


def test_a_kernel_that_rounds_toward_zero_passes_whatever_the_outliers() -> None:
    refused_without = 0
    for seed in range(300):
        reference = outputs_with_outliers(seed)
        output = rounded_toward_zero(reference)
        gate = gate_of(FP16, None, chance=chance_of(reference))
        assert gate.passes(errors_of(output, reference, gate)), seed
        usual = gate_of(FP16, None)
        refused_without += not usual.passes(errors_of(output, reference, usual))
    assert refused_without > 20  # else the sets say nothing about chance


def test_outputs_of_many_elements_have_the_limit_of_the_tier() -> None:
    reference = torch.randn(1 << 10, dtype=torch.float64)
    assert gate_of(FP16, None, chance=chance_of(reference)) == gate_of(FP16, None)
