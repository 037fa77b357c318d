"""Mistakes that engineers and models make, in references of no corpus: what is said first."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch.nn.functional import conv2d

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

Given = torch.Tensor
PLANE = ["H", "S", "D"]
ROTARY = OwnReference(
    """half = x.shape[-1] // 2
rate = 10000.0 ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
angle = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype).unsqueeze(1) * rate
a, b = x[..., :half], x[..., half:]
return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)""",
    {"H": 3, "S": 40, "D": 32},
    {"x": PLANE},
    PLANE,
)
WINDOW = OwnReference(
    """scores = q @ k.mT * 0.3
at = torch.arange(scores.shape[-1], device=q.device)
away = at.unsqueeze(1) - at
hidden = (away < 0) | (away >= 16)
return torch.softmax(scores.masked_fill(hidden, -float("inf")), dim=-1) @ v""",
    {"H": 3, "S": 80, "D": 32},
    dict.fromkeys("qkv", PLANE),
    PLANE,
)
GROUPS = OwnReference(
    "return torch.nn.functional.group_norm(x, 4, weight, bias)",
    {"N": 3, "C": 12, "P": 40},
    {"x": ["N", "C", "P"], "weight": ["C"], "bias": ["C"]},
    ["N", "C", "P"],
)
GRADIENT = OwnReference(
    "inner = (grad * p).sum(-1, keepdim=True)\nreturn p * (grad - inner) * 0.5",
    {"N": 32, "C": 70},
    {"p": ["N", "C"], "grad": ["N", "C"]},
    ["N", "C"],
)
STATES = OwnReference(
    """state = torch.zeros_like(x[:, 0])
out = []
for t in range(x.shape[1]):
    state = state * torch.exp(-rate * step[:, t]) + step[:, t] * x[:, t]
    out.append(state)
return torch.stack(out, dim=1)""",
    {"B": 2, "T": 64, "C": 24},
    {"x": ["B", "T", "C"], "step": ["B", "T", "C"], "rate": ["C"]},
    ["B", "T", "C"],
)
BAGS = OwnReference(
    """rows = table[index]
kept = (index != 0).to(table.dtype).unsqueeze(-1)
return (rows * kept).sum(1) / kept.sum(1).clamp_min(1)""",
    {"V": 8, "N": 20, "L": 12, "D": 32},
    {
        "table": ["V", "D"],
        "index": {
            "shape": ["N", "L"],
            "dtype": "int64",
            "draw": {"dist": "uniform", "low": 0, "high": 8},
        },
    },
    ["N", "D"],
)
IMAGES = OwnReference(
    "return torch.nn.functional.conv2d(x, weight, stride=2, padding=1)",
    {"N": 2, "C": 4, "K": 6, "H": 16, "W": 20, "HO": 8, "WO": 10},
    {"x": ["N", "C", "H", "W"], "weight": ["K", "C", "3", "3"]},
    ["N", "K", "HO", "WO"],
)


def rotated(
    x: Given, sign: int = 1, base: float = 10000.0, pairs: bool = False, swapped: bool = False
) -> Given:
    at = torch.arange(16, dtype=torch.float64)
    angle = torch.arange(40, dtype=torch.float64).unsqueeze(1) * base ** (-at / 16)
    a, b = (x[..., 0::2], x[..., 1::2]) if pairs else x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin() * sign
    second = b * sin + a * cos if swapped else b * cos + a * sin
    parts = a * cos - b * sin, second
    return torch.stack(parts, -1).flatten(-2) if pairs else torch.cat(parts, -1)


def window_of_tiles(q: Given, k: Given, v: Given) -> Given:
    """The far end of the window is checked for whole tiles of 16 keys."""
    at = torch.arange(80)
    row, key = at.unsqueeze(1), at
    hidden = (key > row) | (key < (row - 15) // 16 * 16)
    return (q @ k.mT * 0.3).masked_fill(hidden, -math.inf).softmax(-1) @ v


def groups_in_turn(x: Given, weight: Given, bias: Given) -> Given:
    values = x.view(3, 3, 4, 40).transpose(1, 2).reshape(3, 4, -1)
    spread = values.var(-1, keepdim=True, unbiased=False) + 1e-5
    normal = (values - values.mean(-1, keepdim=True)) / spread.sqrt()
    normal = normal.view(3, 4, 3, 40).transpose(1, 2).reshape(3, 12, 40)
    return normal * weight[:, None] + bias[:, None]


def gradient(p: Given, grad: Given, twice: bool = False, inner: bool = True) -> Given:
    total = (grad * p).sum(-1, keepdim=True) if inner else 0.0
    return p * (p if twice else 1) * (grad - total) * 0.5


def states(x: Given, step: Given, rate: Given) -> Given:
    """Chunks of 16 that begin with an empty state."""
    state, out = torch.zeros_like(x[:, 0]), []
    for t in range(64):
        before = state * (-rate * step[:, t]).exp() if t % 16 else torch.zeros_like(state)
        state = before + step[:, t] * x[:, t]
        out.append(state)
    return torch.stack(out, 1)


def mean_over_all(table: Given, index: Given) -> Given:
    return (table[index] * (index != 0).double().unsqueeze(-1)).sum(1) / 12


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "rotated the other way": (ROTARY, lambda x: rotated(x, sign=-1), "has the wrong sign"),
    "pairs for halves": (
        ROTARY,
        lambda x: rotated(x, pairs=True),
        "are paired where elements i and i + 16",
    ),
    "another base": (ROTARY, lambda x: rotated(x, base=1000.0), "a constant (number, base, eps)"),
    "cos for sin": (ROTARY, lambda x: rotated(x, swapped=True), "cos and sin are exchanged"),
    "window of whole tiles": (WINDOW, window_of_tiles, "is checked for whole tiles of 16 columns"),
    "groups in turn": (GROUPS, groups_in_turn, "the parts of C are mapped wrongly"),
    "factor twice": (GRADIENT, lambda **it: gradient(**it, twice=True), "p is applied twice"),
    "no inner sum": (GRADIENT, lambda **it: gradient(**it, inner=False), "inner is missing"),
    "chunks without state": (STATES, states, "the carry of the chunk before is missing"),
    "padding in the mean": (BAGS, mean_over_all, "in every row: a constant"),
    "no stride": (
        IMAGES,
        lambda x, weight: conv2d(x, weight, padding=1)[:, :, :8, :10],
        "the stride of the windows is missing",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_the_mistake_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()


CHOSEN = OwnReference(
    "kept = target >= 0\n"
    "shares = torch.softmax(x, dim=1)\n"
    "wanted = torch.nn.functional.one_hot(target.long().clamp(min=0), x.shape[1]).to(x.dtype)\n"
    "return torch.where(kept[:, None], shares - wanted, 0)",
    {"N": 24, "V": 200},
    {
        "x": ["N", "V"],
        "target": {
            "shape": ["N"],
            "dtype": "int32",
            "draw": {"dist": "uniform", "low": -1, "high": 3},
        },
    },
    ["N", "V"],
)


def test_a_change_that_right_rows_contradict_is_no_cause(tmp_path: Path) -> None:
    """With target + 1 the ignored rows are what was written, but for one element of each."""

    def not_ignored(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wanted = torch.nn.functional.one_hot(target.long().clamp(min=0), x.shape[1])
        return torch.softmax(x, dim=1) - wanted * (target >= 0)[:, None]

    found = CHOSEN.diagnosed(CHOSEN.write(tmp_path), not_ignored).diagnoses
    assert "condition always true" in found[0].sentence
    assert "target + 1" not in found[0].sentence


def test_a_mistake_that_is_made_in_some_places_is_told_with_these(tmp_path: Path) -> None:
    reference = OwnReference(
        "return torch.tanh(x) * scale[None, :].expand(x.shape) + x.roll(1, 1)",
        {"N": 40, "C": 64},
        {"x": ["N", "C"], "scale": ["C"]},
        ["N", "C"],
    )
    found = reference.diagnosed(
        reference.write(tmp_path),
        lambda x, scale: torch.tanh(x) * torch.cat((scale[:32], torch.ones(32))) + x.roll(1, 1),
    ).diagnoses[0]
    assert found.sentence.endswith("Where: out, only the last 32 columns of 64 along C (32..63).")
    assert "scale" in found.sentence
