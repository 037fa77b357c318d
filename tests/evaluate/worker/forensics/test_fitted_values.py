"""Scalars with a value that nothing names, and the zeros behind the end of a dimension."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

SCALE = 1.5
SOFTMAX = OwnReference(
    "return torch.softmax(x * scale, dim=-1)",
    {"N": 48, "C": 96},
    {"x": ["N", "C"], "scale": {"value": str(SCALE), "dtype": "float32"}},
    ["N", "C"],
)
NEAREST = OwnReference(
    "return (points[:, None, :] - table[None, :, :]).square().sum(dim=2).amin(dim=1)",
    {"N": 96, "K": 41, "D": 8},
    {"points": ["N", "D"], "table": ["K", "D"]},
    ["N"],
)


def scaled(factor: float) -> Mutant:
    return lambda x: torch.softmax(factor * SCALE * x, dim=-1)


def padded(points: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    rows = torch.cat([table, table.new_zeros(7, 8)])
    return (points[:, None, :] - rows[None, :, :]).square().sum(dim=2).amin(dim=1)


MEANS = OwnReference("return x.mean(dim=1)", {"N": 64, "K": 41}, {"x": ["N", "K"]}, ["N"])
PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "digits exchanged": (SOFTMAX, scaled(1.4247 / 1.4427), "it is 0.9875 times what it should"),
    "a little less": (SOFTMAX, scaled(0.995), "it is 0.995 times what it should"),
    "far too large": (SOFTMAX, scaled(2.9), "it is 2.9 times what it should"),
    "wrong divisor": (MEANS, lambda x: x.sum(1) / 48, "is divided by the wrong number: by 48"),
    "zeros take part": (NEAREST, padded, "the zeros that fill the last tile of"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_it_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
