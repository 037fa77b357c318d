"""Sums of exponentials outside of a softmax whose parts have other maxima are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

WHOLE = OwnReference(
    "return x.logsumexp(-1, keepdim=True).expand(x.shape) - x",
    {"N": 9, "L": 320}, {"x": ["N", "L"]}, ["N", "L"],
)  # fmt: skip
LOGARITHMS = OwnReference(
    "return x.log_softmax(-1)", {"N": 9, "L": 320}, {"x": ["N", "L"]}, ["N", "L"]
)


def online(x: torch.Tensor, tile: int) -> torch.Tensor:
    """The logarithm of a sum that never is rescaled, (rows, 1)."""
    top, total = torch.full_like(x[:, :1], -1e30), torch.zeros_like(x[:, :1])
    for part in x.split(tile, -1):
        top = torch.maximum(top, part.amax(-1, keepdim=True))
        total = total + (part - top).exp().sum(-1, keepdim=True)
    return top + total.log()


def lanes(x: torch.Tensor) -> torch.Tensor:
    """32 lanes that take elements in turn, each with its own maximum."""
    own = x.unflatten(-1, (-1, 32))
    total = (own - own.amax(1, keepdim=True)).exp().sum((1, 2)).unsqueeze(-1)
    return x.amax(-1, keepdim=True) + total.log()


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "online": (WHOLE, lambda x: online(x, 64) - x, "running sum of exponentials is not rescaled"),
    "lanes": (WHOLE, lambda x: lanes(x) - x, "merged without rescaling each to the common maximum"),
    "online logarithms": (
        LOGARITHMS,
        lambda x: x - online(x, 32),
        "running sum of exponentials is not rescaled",
    ),
    "lanes of logarithms": (
        LOGARITHMS,
        lambda x: x - lanes(x),
        "merged without rescaling each to the common maximum",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_unscaled_sums_are_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words in found
