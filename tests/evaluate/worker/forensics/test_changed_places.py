"""Tensors that are read at wrong indices, or taken for one another, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

TURNED = OwnReference(
    "first, second = x.chunk(2, dim=-1)\n"
    "c, s = cosine[:, None, :], sine[:, None, :]\n"
    "left = first * c - second * s\n"
    "return torch.cat((left, second * c + first * s), dim=-1)",
    {"B": 2, "S": 10, "H": 3, "D": 16},
    {"x": ["B", "S", "H", "D"], "cosine": ["S", "D / 2"], "sine": ["S", "D / 2"]},
    ["B", "S", "H", "D"],
)
BIASED = OwnReference(
    "return x.transpose(-2, -1) + bias[:, None]",
    {"B": 2, "M": 12, "N": 20},
    {"x": ["B", "M", "N"], "bias": ["N"]},
    ["B", "N", "M"],
)
SHARED = OwnReference(
    "keys = k.repeat_interleave(2, dim=0)\n"
    "values = v.repeat_interleave(2, dim=0)\n"
    "return (q @ keys.mT).softmax(-1) @ values",
    {"H": 6, "G": 3, "S": 20, "D": 8},
    {"q": ["H", "S", "D"], "k": ["G", "S", "D"], "v": ["G", "S", "D"]},
    ["H", "S", "D"],
)


def turned(
    x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor, **other: bool
) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    if other.get("pairs"):
        first, second = x[..., ::2], x[..., 1::2]
    c, s = cosine[:, None, :], sine[:, None, :]
    if other.get("heads"):
        place = torch.arange(10 * 3).view(10, 3) % 10
        c, s = cosine[place], sine[place]
    left = first * c - second * s
    right = second * c + (left if other.get("early") else first) * s
    if other.get("pairs"):
        return torch.stack((left, right), -1).flatten(-2)
    return torch.cat((left, right), -1)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.repeat(2, 1, 1).mT).softmax(-1) @ v.repeat(2, 1, 1)


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "pairs": (TURNED, lambda **given: turned(**given, pairs=True), "interleaved pairs"),
    "heads counted": (TURNED, lambda **given: turned(**given, heads=True), "in the other order"),
    "overwritten": (
        TURNED,
        lambda **given: turned(**given, early=True),
        "first is overwritten too early: its new value left",
    ),
    "other axis": (
        BIASED,
        lambda x, bias: x.mT + bias[:12],
        "bias[:, None] is indexed wrongly: by the index of the other axis",
    ),
    "modulo": (SHARED, attention, "k and v are read with the wrong mapping of indices"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_place_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))


ADDED = OwnReference(
    "out = torch.zeros(20, x.shape[1], dtype=x.dtype)\nreturn out.index_add(0, index.long(), x)",
    {"T": 60, "D": 12},
    {
        "x": ["T", "D"],
        "index": {
            "shape": ["T"],
            "dtype": "int32",
            "draw": {"dist": "uniform", "low": 0, "high": 20},
        },
    },
    ["20", "D"],
)


def overwritten(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(20, x.shape[1], dtype=x.dtype)
    for row, place in enumerate(index.tolist()):
        out[place] = x[row]
    return out


def indices_of_elements(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    at = torch.arange(x.numel()).view(x.shape) % len(index)
    return torch.zeros(20, x.shape[1], dtype=x.dtype).scatter_add(0, index.long()[at], x)


@pytest.mark.parametrize(
    ("mutant", "words"),
    [
        (overwritten, "rows are overwritten in place of being added"),
        (indices_of_elements, "index.long() is read at the wrong index"),
    ],
)
def test_a_wrong_sum_by_index_is_named(mutant: Mutant, words: str, tmp_path: Path) -> None:
    assert words.lower() in first_words(ADDED.diagnosed(ADDED.write(tmp_path), mutant)).lower()
