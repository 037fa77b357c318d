"""Mistakes of the packaged tasks whose cause has a plain name: what the first two findings say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from evoengine.evaluate.worker.inputs import Tensors
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import UNWRITTEN, Scalars, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words


def turned(given: Tensors, _: Scalars) -> torch.Tensor:
    """Every tile of 32 x 32 is transposed in its place."""
    product = given["a"] @ given["b"]
    tiles = product.unflatten(0, (-1, 32)).unflatten(2, (-1, 32)).permute(0, 2, 3, 1)
    return tiles.permute(0, 2, 1, 3).reshape(product.shape)


def exchanged_blocks(given: Tensors, _: Scalars) -> torch.Tensor:
    """Tile (i, j) is computed from the rows and columns of tile (j, i)."""
    product = given["a"] @ given["b"]
    tiles = product.unflatten(0, (-1, 32)).unflatten(2, (-1, 32)).permute(2, 1, 0, 3)
    return tiles.reshape(product.shape)


def parts_to_the_end(given: Tensors, _: Scalars) -> torch.Tensor:
    """Three parts of the depth, each a multiple of 32 long, that all go on to its end."""
    depth = given["a"].shape[1]
    third = -(-depth // 3)
    part = -(-third // 32) * 32
    begins = range(0, depth, part)
    return torch.stack([given["a"][:, at:] @ given["b"][at:] for at in begins]).sum(0)


def attention(given: Tensors, scalars: Scalars, k: str, v: str) -> torch.Tensor:
    scores = given["q"] @ given[k].transpose(-1, -2) * scalars["scale"]
    return scores.softmax(-1) @ given[v]


def not_squared(given: Tensors, s: Scalars) -> Tensors:
    first = s["beta1"] * given["first"] + (1 - s["beta1"]) * given["gradient"]
    second = s["beta2"] * given["second"] + (1 - s["beta2"]) * given["gradient"]
    size = (second / s["correction2"]).sqrt() + s["eps"]
    kept = given["parameter"] * (1 - s["rate"] * s["decay"])
    parameter = kept - s["rate"] * (first / s["correction1"]) / size
    return {"parameter": parameter, "first": first, "second": second}


def without_empty_bags(given: Tensors, _: Scalars) -> torch.Tensor:
    offsets = given["offsets"].long()
    rows = given["table"][given["indices"].long()]
    bags = torch.searchsorted(offsets, torch.arange(len(rows)), right=True) - 1
    sums = torch.zeros(len(offsets) - 1, rows.shape[1], dtype=torch.float64)
    sums.index_add_(0, bags, rows)
    return torch.where((offsets.diff() == 0)[:, None], UNWRITTEN, sums)


Mutant = Callable[[Tensors, Scalars], Any]
MISTAKES: dict[str, tuple[str, str, Mutant, str]] = {
    "turned tiles": (
        "matmul_fp16", "square", turned,
        r"every 32x32 tile \(fragment\) is transposed in its place",
    ),
    "exchanged blocks": (
        "matmul_fp16", "square", exchanged_blocks,
        r"tile \(i, j\) of 32x32 holds tile \(j, i\): .* exchanged",
    ),
    "parts": (
        "matmul_fp16", "flat", parts_to_the_end,
        r"later products several times, once more in each of 3 parts .* to the very end",
    ),
    "k and v": (
        "sdpa_l4", "full", lambda t, s: attention(t, s, "v", "k"),
        "k and v are swapped",
    ),
    "not normalised": (
        "layernorm", "rows", lambda t, _: t["x"] * t["weight"] + t["bias"],
        "is missing, left out as a whole: x is used in place of",
    ),
    "not squared": ("adamw", "odd", not_squared, "gradient is not squared"),
    "empty bags": (
        "embedding_bag", "bags", without_empty_bags,
        "never written: .* these are the empty ones .*, whose offsets do not differ",
    ),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", MISTAKES)
def test_the_mistake_is_named(name: str) -> None:
    task, case, mutant, said = MISTAKES[name]
    words = first_words(diagnosed(task, case, mutant, seconds=30.0))
    assert re.search(said, words, re.IGNORECASE), words
