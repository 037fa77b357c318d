"""Images that are interpolated at other places are named, with the axis."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import interpolate

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

IMAGES = OwnReference(
    "return torch.nn.functional.interpolate(\n"
    "    x, size=(33, 50), mode='bilinear', align_corners=False\n"
    ")",
    {"N": 2, "C": 3, "H": 12, "W": 20},
    {"x": ["N", "C", "H", "W"]},
    ["N", "C", "33", "50"],
)


def resized(x: torch.Tensor, rows: bool, columns: bool) -> torch.Tensor:
    """Both axes, each with its corners aligned or not."""
    tall = interpolate(x, size=(33, 20), mode="bilinear", align_corners=rows)
    return interpolate(tall, size=(33, 50), mode="bilinear", align_corners=columns)


def without_half(x: torch.Tensor) -> torch.Tensor:
    """Columns from i * 20 / 50."""
    tall = interpolate(x, size=(33, 20), mode="bilinear", align_corners=False)
    at = torch.arange(50, dtype=torch.float64) * 20 / 50
    low = at.long()
    return tall[..., low] + (tall[..., (low + 1).clamp(max=19)] - tall[..., low]) * (at - low)


PLANTED: dict[str, tuple[Mutant, str]] = {
    "corners": (lambda x: resized(x, True, True), "The corners are aligned"),
    "corners of rows": (lambda x: resized(x, True, False), "Along the rows, the corners"),
    "corners of columns": (lambda x: resized(x, False, True), "Along the columns, the corners"),
    "half": (without_half, "Along the columns, the half pixel is missing"),
    "nearest": (lambda x: interpolate(x, size=(33, 50), mode="nearest"), "nearest element"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_another_place_is_named(name: str, tmp_path: Path) -> None:
    mutant, words = PLANTED[name]
    assert words in first_words(IMAGES.diagnosed(IMAGES.write(tmp_path), mutant))
