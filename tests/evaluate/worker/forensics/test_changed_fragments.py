"""Mistakes inside of a product, a pack of elements or a table of places are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

PRODUCT = OwnReference(
    "return a @ b",
    {"M": 40, "N": 48, "K": 100},
    {"a": ["M", "K"], "b": ["K", "N"]},
    ["M", "N"],
)
BYTES = OwnReference(
    "return x @ (weight.to(x.dtype) - zero[:, None]).t()",
    {"M": 3, "N": 40, "K": 64},
    {
        "x": ["M", "K"],
        "weight": {"shape": ["N", "K"], "dtype": "int8"},
        "zero": ["N"],
    },
    ["M", "N"],
)
SCALED = OwnReference(
    "return x / x.norm(dim=-1, keepdim=True) * weight",
    {"N": 12, "C": 40},
    {"x": ["N", "C"], "weight": ["C"]},
    ["N", "C"],
)
GATHERED = OwnReference(
    "return x * table[position.long()]",
    {"T": 20, "P": 30, "D": 16},
    {
        "x": ["T", "D"],
        "table": ["P", "D"],
        "position": {
            "shape": ["T"],
            "dtype": "int32",
            "draw": {"dist": "uniform", "low": 0, "high": 30},
        },
    },
    ["T", "D"],
)
PARTS = OwnReference(
    "scores = 2 * (q @ k.mT)\nreturn torch.softmax(scores, dim=-1) @ v",
    {"H": 3, "S": 20, "D": 8},
    {name: ["H", "S", "D"] for name in "qkv"},
    ["H", "S", "D"],
)
STAGED = OwnReference(
    "return a @ b",
    {"M": 24, "N": 40, "K": 64},
    {"a": ["M", "K"], "b": ["K", "N"]},
    ["M", "N"],
)
ROOT = OwnReference(
    "return x / x.square().mean(dim=-1, keepdim=True).sqrt()",
    {"N": 12, "H": 4, "C": 40},
    {"x": ["N", "C"]},
    ["N", "C"],
)
HEADS = OwnReference(
    "return (q @ k.mT).softmax(-1) @ v",
    {"B": 2, "H": 3, "S": 20, "D": 8},
    {name: ["B", "H", "S", "D"] for name in "qkv"},
    ["B", "H", "S", "D"],
)


def repeated(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    at = torch.arange(100)
    inside = at < 96
    return a @ b[torch.where(inside, at // 32 * 32 + at % 16, at)]


def overlapping(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.stack([a[:, s : s + 35] @ b[s : s + 35] for s in (0, 34, 68)]).sum(0)


def of_bytes(x: torch.Tensor, weight: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    return x @ (weight.to(torch.uint8).double() - zero[:, None]).t()


def without_some_zeros(x: torch.Tensor, weight: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    offset = zero[:, None].repeat(1, 64)
    offset[:, 1::4] = 0
    return x @ (weight.double() - offset).t()


def of_even_neighbour(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / x.norm(dim=-1, keepdim=True) * weight[::2].repeat_interleave(2)


def in_order(x: torch.Tensor, table: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    return x * table[: len(position)]


def reversed_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT).softmax(-1) @ v.flip(0, 1)


def part_softmax(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = 2 * (q @ k.mT)
    parts = scores.split(10, -1)
    tops = [part.amax(-1, keepdim=True) for part in parts]
    top = scores.amax(-1, keepdim=True)
    weights = [(one - own).exp() * (own - top).exp2() for one, own in zip(parts, tops, strict=True)]
    power = torch.cat(weights, -1)
    return power / power.sum(-1, keepdim=True) @ v


def unswizzled(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    column, row = torch.arange(64), torch.arange(24).view(-1, 1)
    return a.gather(1, (column // 4 ^ row % 8) * 4 + column % 4) @ b


def up_to_own(x: torch.Tensor) -> torch.Tensor:
    squares = x.square().view(12, 4, 10).sum(-1).cumsum(-1).repeat_interleave(10, -1)
    return x / (squares / 40).sqrt()


def steps_of_first(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    groups = a.view(24, 2, 32)
    step = groups.abs().amax(-1, keepdim=True)
    return (groups / step * step[:1]).view(24, 64) @ b


def wrapped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    largest = a.abs().amax(-1, keepdim=True)
    return torch.where(a / largest > 127.5 / 128, -a, a) @ b


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "repeated": (PRODUCT, repeated, "the first half (16) of every 32 in place of both"),
    "overlapping": (PRODUCT, overlapping, "3 parts (splits) that overlap by one"),
    "bytes": (BYTES, of_bytes, "weight is read without its sign, as unsigned integers"),
    "zeros": (BYTES, without_some_zeros, "is missing (not applied) for the second of every 4"),
    "neighbour": (SCALED, of_even_neighbour, "that of the first of every 2 elements"),
    "gathered": (GATHERED, in_order, "position is ignored (missing): the number of the element"),
    "merged": (PARTS, part_softmax, "exp2 in place of exp in the weights of the merge"),
    "swizzle": (STAGED, unswizzled, "a is written to shared memory with an XOR swizzle"),
    "up to own": (ROOT, up_to_own, "is taken up to the own part (head) only"),
    "steps": (STAGED, steps_of_first, "with the steps (scales) of the first row for all rows"),
    "wrapped": (STAGED, wrapped, "the largest code of the quantised a wraps"),
    "heads": (HEADS, reversed_heads, "the heads of v, counted over B and H, are in reverse order"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_inside_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
