"""Partial results that are read in another layout than they are written in are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from evoengine.candidate.binding import ScratchBuffer
from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

PRODUCT = OwnReference(
    "return (a @ b) * 0.1", {"B": 2, "M": 24, "N": 20, "K": 96},
    {"a": ["B", "M", "K"], "b": ["B", "K", "N"]}, ["B", "M", "N"],
)  # fmt: skip
NORM = OwnReference(
    "return x / x.square().mean(-1, keepdim=True).sqrt()",
    {"M": 40, "K": 96}, {"x": ["M", "K"]}, ["M", "K"],
)  # fmt: skip
ATTENTION = OwnReference(
    "out = []\nfor head in range(x.shape[0]):\n"
    "    out.append(torch.softmax(x[head], dim=-1) @ v[head])\nreturn torch.stack(out)",
    {"H": 3, "M": 32, "N": 96, "K": 16},
    {"x": ["H", "M", "N"], "v": ["H", "N", "K"]}, ["H", "M", "K"],
)  # fmt: skip


def split_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Three parts, written [split, batch, row] and read [batch, row, split]."""
    parts = torch.stack([x @ y for x, y in zip(a.split(32, -1), b.split(32, -2), strict=True)])
    stored = parts.reshape(-1, b.shape[-1])
    rows = torch.arange(len(stored) // 3)
    read = sum(stored[rows * 3 + split] for split in range(3))
    return read.view(*a.shape[:2], -1) * 0.1  # type: ignore[union-attr]


def split_norm(x: torch.Tensor) -> torch.Tensor:
    stored = torch.stack([part.square().sum(-1) for part in x.split(32, -1)]).flatten()
    rows = torch.arange(x.shape[0])
    total = stored[rows * 3] + stored[rows * 3 + 1] + stored[rows * 3 + 2]
    return x / (total / x.shape[1]).sqrt().unsqueeze(-1)


def split_attention(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Three parts, written [head, split, row] and read [split, head, row]."""
    heads, rows = x.shape[:2]
    sums = torch.stack([part.exp().sum(-1) for part in x.split(32, -1)], 1).flatten()
    made = torch.stack(
        [p.exp() @ w for p, w in zip(x.split(32, -1), v.split(32, -2), strict=True)], 1
    ).flatten(0, 2)
    place = torch.arange(heads * rows)
    at = [split * heads * rows + place for split in range(3)]
    total = sum(sums[one] for one in at)
    whole = sum(made[one] for one in at)
    return (whole / total.unsqueeze(-1)).view(heads, rows, -1)  # type: ignore[union-attr]


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "product": (PRODUCT, split_product, "[split, plane (head), row] and read in the order [plane"),
    "norm": (NORM, split_norm, "written in the order [split, plane (head), row]"),
    "attention": (ATTENTION, split_attention, "layouts of the partial results (parts, splits)"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_parts_in_another_layout_are_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    scratch = {"parts": ScratchBuffer(dtype="float32", shape=(3, 1000))}
    path = reference.write(tmp_path)
    found = first_words(reference.diagnosed(path, mutant, {"PARTS": 3}, scratch))
    assert words in found


def test_a_kernel_without_scratch_has_no_parts_there(tmp_path: Path) -> None:
    path = PRODUCT.write(tmp_path)
    assert "scratch" not in first_words(PRODUCT.diagnosed(path, split_product, {"PARTS": 3}))
