"""What a changed reference explains, and what it only comes near to by chance."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.evaluate.worker.forensics.compared_output import ComparedOutput
from evoengine.evaluate.worker.forensics.explained_share import Explained, ExplainedShare
from evoengine.evaluate.worker.gate import Gate

WHOLE: Any = SimpleNamespace(cut_output=lambda _name, value: value)
SHAPE = (64, 64)
ATOL = 0.02


def explained(value: torch.Tensor, reference: torch.Tensor, found: torch.Tensor) -> Explained:
    wrong = (value - reference).abs() > ATOL
    assert wrong.any()
    compared = ComparedOutput(
        name="out",
        axes=("M", "N"),
        dtype=torch.float16,
        value=value,
        reference=reference,
        wrong=wrong,
        unwritten=torch.zeros_like(wrong),
        gate=Gate(atol=ATOL, rtol=0.0, rel_rmse=0.01, rel_slice=1.0),
    )
    return ExplainedShare(WHOLE, [compared]).of({"out": found})


@pytest.fixture
def reference() -> torch.Tensor:
    return torch.randn(SHAPE, generator=torch.manual_seed(1), dtype=torch.float64)


def test_a_change_of_everything_does_not_explain_one_rounding_too_many(
    reference: torch.Tensor,
) -> None:
    noise = 0.003 * torch.randn(SHAPE, generator=torch.manual_seed(2), dtype=torch.float64)
    value, other = reference + noise, 1.008 * reference
    reference[5, 7], value[5, 7], other[5, 7] = 3.0, 3.027, 3.024
    assert explained(value, reference, other).share == 0.0


def test_a_change_that_right_elements_show_as_well_explains_one_wrong_element(
    reference: torch.Tensor,
) -> None:
    noise = 0.003 * torch.randn(SHAPE, generator=torch.manual_seed(2), dtype=torch.float64)
    reference.clamp_(-1, 1)
    reference[5, 7] = 4.0
    other = 1.008 * reference
    assert explained(other + noise, reference, other).share > 0.9


def test_a_change_of_wrong_elements_alone_is_told_from_nothing_else(
    reference: torch.Tensor,
) -> None:
    noise = 0.003 * torch.randn(SHAPE, generator=torch.manual_seed(2), dtype=torch.float64)
    other = reference.clone()
    other[:1, :8] = 0.0
    assert explained(other + noise, reference, other).share > 0.5
