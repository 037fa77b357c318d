"""Mistakes between the tiles, parts and chunks of a kernel are named, with their cause and place."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

ATTENTION = OwnReference(
    "weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)\nreturn weights @ v",
    {"S": 64, "T": 128, "D": 32},
    {"q": ["S", "D"], "k": ["T", "D"], "v": ["T", "D"]},
    ["S", "D"],
    {"atol": 2e-5, "rtol": 2e-5, "rel_rmse": 1e-5},
)
CAUSAL = OwnReference(
    "scores = q @ k.transpose(-2, -1)\n"
    "hidden = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool, device=q.device)\n"
    "hidden = hidden.triu(k.shape[0] - q.shape[0] + 1)\n"
    "return torch.softmax(scores.masked_fill(hidden, float('-inf')), dim=-1) @ v",
    {"S": 61, "T": 98, "D": 32},
    {"q": ["S", "D"], "k": ["T", "D"], "v": ["T", "D"]},
    ["S", "D"],
)
PRODUCT = OwnReference(
    "return a @ b",
    {"M": 96, "N": 128, "K": 64},
    {"a": ["M", "K"], "b": ["K", "N"]},
    ["M", "N"],
)
SCAN = OwnReference(
    "return torch.cumsum(x, dim=-1)", {"N": 6, "L": 1024}, {"x": ["N", "L"]}, ["N", "L"]
)
NORM = OwnReference(
    "total = x + y\n"
    "centred = total - total.mean(dim=-1, keepdim=True)\n"
    "variance = (centred**2).mean(dim=-1, keepdim=True)\n"
    "return centred / torch.sqrt(variance + 1e-5)",
    {"N": 40, "C": 300},
    {"x": ["N", "C"], "y": ["N", "C"]},
    ["N", "C"],
)


def in_tiles(power: float) -> Mutant:
    """Online in tiles of 32, what was summed before rescaled by this power of the right factor."""

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        top = torch.full((q.shape[0], 1), -math.inf, dtype=q.dtype)
        total, summed = torch.zeros_like(top), torch.zeros(q.shape[0], v.shape[1], dtype=q.dtype)
        for keys, values in zip(k.split(32), v.split(32), strict=True):
            scores = q @ keys.T
            high = torch.maximum(top, scores.amax(-1, keepdim=True))
            shrink, weights = (power * (top - high)).exp(), (scores - high).exp()
            total = total * shrink + weights.sum(-1, keepdim=True)
            summed, top = summed * shrink + weights @ values, high
        return summed / total

    return attention


def by_maxima(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    parts = [(q @ keys.T, values) for keys, values in zip(k.split(64), v.split(64), strict=True)]
    shares = torch.stack([scores.amax(-1) for scores, _ in parts]).softmax(0)
    made = [scores.softmax(-1) @ values for scores, values in parts]
    return sum(  # type: ignore[return-value]
        share[:, None] * one for share, one in zip(shares, made, strict=True)
    )


def sum_sees_all(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    power = (q @ k.T).exp()
    return power.tril(k.shape[0] - q.shape[0]) @ v / power.sum(-1, keepdim=True)


def no_prefix(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    power = (q @ k.T).exp().tril()
    return power / power.sum(-1, keepdim=True) @ v


def other_swizzle(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    row, column = torch.arange(b.shape[0])[:, None], torch.arange(b.shape[1])
    chunk = (column // 8) ^ (row % 8) ^ (row // 2 % 4)
    return a @ b.gather(1, chunk * 8 + column % 8)


def kept_sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Five blocks take tiles of 32 x 32 in turn and never clear their sums."""
    made = a @ b
    for tile in range(5, 12):
        row, column = tile // 4 * 32, tile % 4 * 32
        other_row, other_column = (tile - 5) // 4 * 32, (tile - 5) % 4 * 32
        made[row : row + 32, column : column + 32] += made[
            other_row : other_row + 32, other_column : other_column + 32
        ]
    return made


def short_carry(x: torch.Tensor) -> torch.Tensor:
    parts = x.split(256, -1)
    begins = torch.stack([part[:, :-32].sum(-1) for part in parts]).cumsum(0)
    return torch.cat(
        [
            part.cumsum(-1) + (begins[number - 1][:, None] if number else 0)
            for number, part in enumerate(parts)
        ],
        -1,
    )


def of_x_alone(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    total = x + y
    variance = total.var(-1, keepdim=True, unbiased=False)
    return (x - total.mean(-1, keepdim=True)) / (variance + 1e-5).sqrt()


def third_twice(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    centred = x + y - (x + y).mean(-1, keepdim=True)
    squares = centred.unflatten(-1, (-1, 4)).square()
    variance = (squares[..., :3].sum((-1, -2)) + squares[..., 2].sum(-1))[:, None] / x.shape[-1]
    return centred / (variance + 1e-5).sqrt()


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "rescaled to base e": (
        ATTENTION, in_tiles(1 / math.log(2)),
        "what was summed before rescaled by a power of e, not of 2",
    ),
    "rescaled to base two": (
        ATTENTION, in_tiles(math.log(2)),
        "what was summed before rescaled by a power of 2, not of e",
    ),
    "merged by maxima": (ATTENTION, by_maxima, "merged by their maxima alone"),
    "offset of a tile": (
        ATTENTION, lambda q, k, v: (q @ k.T).softmax(-1) @ v[torch.arange(128) % 32],
        "v are read with the first 32 (0..31) in place of every tile of 32",
    ),
    "weights of the next lane": (
        ATTENTION,
        lambda q, k, v: (q @ k.T).softmax(-1) @ v.unflatten(0, (4, 32)).roll(-1, 1).flatten(0, 1),
        "of every 32 in place of each, off by one lane",
    ),
    "no mask in the sum": (CAUSAL, sum_sees_all, "The mask is missing in the sum"),
    "no prefix": (CAUSAL, no_prefix, "(the offset of its diagonal, a prefix) is missing"),
    "another swizzle": (PRODUCT, other_swizzle, "b is read with another XOR swizzle"),
    "kept sums": (PRODUCT, kept_sums, "The sums of `a @ b` are not set back to zero between tiles"),
    "short carry": (SCAN, short_carry, "leaves out the last 32 elements (the last warp)"),
    "one use of x": (NORM, of_x_alone, "x is used in place of total"),
    "third twice": (NORM, third_twice, "adds the third of every 4 elements twice"),
}  # fmt: skip


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_between_tiles_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
