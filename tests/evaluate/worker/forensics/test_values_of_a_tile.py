"""Attention whose tile of values meets the wrong weights: what the first two findings say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch

from evoengine.evaluate.worker.inputs import Tensors
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import Scalars, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words

WARP, PITCH = 32, 36


def weights(given: Tensors, scalars: Scalars, causal: bool) -> torch.Tensor:
    scores = given["q"] @ given["k"].transpose(-1, -2) * scalars["scale"]
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    return scores.softmax(-1)


def own_weights(chosen: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Each lane has two columns, and multiplies every value by the weight of its own key."""
    out = torch.zeros_like(values)
    keys, columns = values.shape[-2:]
    for begin in range(0, keys, WARP):
        tile = values[..., begin : begin + WARP, :].sum(-2)
        for column in range(columns):
            key = begin + column // 2 % WARP
            if key < keys:
                out[..., column] += chosen[..., key] * tile[..., None, column]
    return out


def padded_pitch(chosen: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Tiles of 32 rows that are stored one after the other and read with padded ones."""
    keys, columns = values.shape[-2:]
    read = values.clone()
    for begin in range(0, keys, WARP):
        tile = values[..., begin : begin + WARP, :]
        filled = torch.nn.functional.pad(tile, (0, 0, 0, WARP - tile.shape[-2])).flatten(-2)
        for row in range(tile.shape[-2]):
            read[..., begin + row, :] = filled[..., row * PITCH : row * PITCH + columns]
    return chosen @ read


Mutant = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
MISTAKES: dict[str, tuple[Mutant, str]] = {
    "own weights": (own_weights, "each lane multiplies by its own .*: the shuffle .* own lane"),
    "pitch": (padded_pitch, f"tile of v .* wrong leading dimension .*, {PITCH} in place of 64"),
}


@of_some
@pytest.mark.parametrize("case", ["causal", "odd"])
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_named(name: str, case: str) -> None:
    mutant, said = MISTAKES[name]

    def computed(given: Tensors, scalars: Scalars) -> torch.Tensor:
        return mutant(weights(given, scalars, case == "causal"), given["v"])

    words = first_words(diagnosed("sdpa_l4", case, computed, seconds=30.0))
    assert re.search(said, words, re.IGNORECASE), words
