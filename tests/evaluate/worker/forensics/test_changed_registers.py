"""Mistakes in half of a fragment's rows, and at the end of the keys of an attention, are named."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

ATTENTION = "return torch.softmax(q @ k.mT * 0.5, dim=-1) @ v"
MASKED = """scores = q @ k.mT * 0.5
hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
return torch.softmax(scores.masked_fill(hidden, -float("inf")), dim=-1) @ v"""
SHAPE = ["H", "S", "D"]
GIVEN = {"q": SHAPE, "k": SHAPE, "v": SHAPE}
PLAIN = OwnReference(ATTENTION, {"H": 3, "S": 96, "D": 32}, GIVEN, SHAPE)
ODD = OwnReference(ATTENTION, {"H": 3, "S": 77, "D": 32}, GIVEN, SHAPE)
CAUSAL = OwnReference(MASKED, {"H": 3, "S": 96, "D": 32}, GIVEN, SHAPE)
SCALED = OwnReference(
    "return (x @ weight.mT) * scale.unsqueeze(-1) + bias",
    {"M": 64, "N": 48, "K": 40},
    {"x": ["M", "K"], "weight": ["N", "K"], "scale": ["M"], "bias": ["N"]},
    ["M", "N"],
)
Given = torch.Tensor


def places(rows: int, columns: int) -> tuple[Given, Given]:
    return torch.arange(rows).unsqueeze(1).expand(rows, columns), torch.arange(columns).expand(
        rows, columns
    )


def masked(q: Given, k: Given, v: Given, moved: bool = True, tiled: int = 0) -> Given:
    """With the mask of the row eight above in the second half of every sixteen, or of a tile."""
    scores = q @ k.mT * 0.5
    row, column = places(*scores.shape[-2:])
    own = row - row % 16 // 8 * 8 if moved else row
    key = column % tiled if tiled else column
    return scores.masked_fill(key > own, -math.inf).softmax(-1) @ v


def rescaled(q: Given, k: Given, v: Given, which: str) -> Given:
    """An online softmax in tiles of 32 whose accumulators take factors of other rows."""
    scores = q @ k.mT * 0.5
    top = torch.full(scores.shape[:-1], -math.inf, dtype=scores.dtype)
    total, made = torch.zeros_like(top), torch.zeros_like(v)
    row, column = places(*v.shape[-2:])
    for part, values in zip(scores.split(32, -1), v.split(32, -2), strict=True):
        high = torch.maximum(top, part.amax(-1))
        shrink = (top - high).exp()
        weights = (part - high.unsqueeze(-1)).exp()
        total = total * shrink + weights.sum(-1)
        factor = {
            "parity": shrink[..., row - row % 16 // 8 * 8 + column % 2 * 8],
            "first": shrink[..., row - row % 16 // 8 * 8],
            "half": shrink.unsqueeze(-1).where(row % 16 < 8, torch.ones(())),
        }[which]
        made = (
            made * factor.where(top.unsqueeze(-1) > -math.inf, torch.zeros(())) + weights @ values
        )
        top = high
    return made / total.unsqueeze(-1)


def divided(q: Given, k: Given, v: Given) -> Given:
    scores = q @ k.mT * 0.5
    power = (scores - scores.amax(-1, keepdim=True)).exp()
    row, column = places(*v.shape[-2:])
    return (power @ v) / power.sum(-1)[..., row - row % 16 // 8 * 8 + column % 2 * 8]


def again(q: Given, k: Given, v: Given, more: int, alone: bool) -> Given:
    """The last key counted more often."""
    power = (q @ k.mT * 0.5).exp()
    counts = torch.ones(power.shape[-1], dtype=power.dtype)
    counts[-1] += more
    return (power if alone else power * counts) @ v / (power * counts).sum(-1, keepdim=True)


def scaled(x: Given, weight: Given, scale: Given, bias: Given, which: str) -> Given:
    product = x @ weight.mT
    row, column = places(*product.shape)
    if which == "row":
        return product * scale[row - row % 16 // 8 * 8 + column % 2 * 8] + bias
    return product * scale.unsqueeze(-1) + bias[column - column % 2 + row % 16 // 8]


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "mask of the upper rows": (CAUSAL, masked, "the mask of the rows eight above"),
    "mask without the tile of keys": (
        CAUSAL,
        lambda **given: masked(**given, moved=False, tiled=32),
        "the mask lacks the offset of the tile",
    ),
    "no mask": (
        CAUSAL,
        lambda q, k, v: (q @ k.mT * 0.5).softmax(-1) @ v,
        "the mask is missing",
    ),
    "factor by the wrong half": (
        PLAIN,
        lambda **given: rescaled(**given, which="parity"),
        "rescaled by the factor of another row",
    ),
    "factor of the first half": (
        PLAIN,
        lambda **given: rescaled(**given, which="first"),
        "rescaled by the factor of another row",
    ),
    "half is not rescaled": (
        PLAIN,
        lambda **given: rescaled(**given, which="half"),
        "are not rescaled when the maximum grows",
    ),
    "total of the other half": (
        PLAIN,
        divided,
        "divided by the sum (the denominator) of another row",
    ),
    "last key twice in the sum": (
        ODD,
        lambda **given: again(**given, more=1, alone=True),
        "last element",
    ),
    "last key up to the tile": (
        ODD,
        lambda **given: again(**given, more=19, alone=True),
        "up to the end of the tile of 32",
    ),
    "last key up to the tile everywhere": (
        ODD,
        lambda **given: again(**given, more=19, alone=False),
        "up to the end of the tile of 32",
    ),
    "scale of the other half": (
        SCALED,
        lambda **given: scaled(**given, which="row"),
        "is that of the row eight above or below in every second column",
    ),
    "bias of the half": (
        SCALED,
        lambda **given: scaled(**given, which="column"),
        "bias is that of the column that the half of a fragment's rows says",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_the_mistake_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
