"""Softmaxes with one part done wrongly are named."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.nn.functional import pad

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

ROWS = OwnReference(
    "return torch.softmax(x, dim=-1)", {"N": 24, "C": 200}, {"x": ["N", "C"]}, ["N", "C"],
    {"atol": 1e-6, "rtol": 1e-4, "rel_rmse": 1e-5},
)  # fmt: skip


def shares(x: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Divided by the sum over some columns alone."""
    power = x.exp()
    return power / (power * counted).sum(-1, keepdim=True)


AT = torch.arange(200)
PLANTED: dict[str, tuple[Mutant, str]] = {
    "not divided": (
        lambda x: (x - x.amax(-1, keepdim=True)).exp(),
        "The softmax is not normalised",
    ),
    "base two": (lambda x: (x * math.log(2)).softmax(-1), "Exp2 is taken without the factor"),
    "half a warp": (lambda x: shares(x, AT % 32 < 16), "half"),
    "first warp": (lambda x: shares(x, AT // 32 % 4 > 0), "(those of the first warp)"),
    "padding counts": (
        lambda x: pad(x, (0, 56)).softmax(-1)[:, :200],
        "the padding beyond the end of a row",
    ),
    "last column": (lambda x: shares(x, AT < 199), "the last element"),
    "one tile of the sum": (lambda x: shares(x, AT < 192), "last"),
    "split merged without its maximum": (
        lambda x: (
            torch.cat([(part - part.amax(-1, True)).exp() for part in x.split(100, -1)], -1)
            / (x - x.amax(-1, True)).exp().sum(-1, True)
        ),
        "merged without rescaling to the common maximum",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_softmax_is_named(name: str, tmp_path: Path) -> None:
    mutant, words = PLANTED[name]
    found = first_words(ROWS.diagnosed(ROWS.write(tmp_path), mutant))
    assert words.lower() in found.lower()
