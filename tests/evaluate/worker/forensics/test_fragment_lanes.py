"""Fragments of other lanes, lanes that take turns in one operand alone, and tiles exchanged
crosswise are named.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

PRODUCT = OwnReference(
    "return (a @ b) * 0.5", {"M": 64, "N": 48, "K": 64}, {"a": ["M", "K"], "b": ["K", "N"]},
    ["M", "N"],
)  # fmt: skip
CAUSAL = OwnReference(
    "scores = q @ k.T\n"
    "hidden = torch.ones(scores.shape, dtype=torch.bool).triu(1)\n"
    "return scores.masked_fill(hidden, float('-inf')).softmax(-1) @ v",
    {"S": 96, "D": 16}, {"q": ["S", "D"], "k": ["S", "D"], "v": ["S", "D"]}, ["S", "D"],
)  # fmt: skip


def rows_of_other_lanes(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Lane l multiplies row l / 4 and loads row l % 8 of the left operand."""
    made = a.clone()
    for top in range(0, 64, 16):
        for start in range(0, 64, 16):
            for lane in range(32):
                for low in (0, 8):
                    for far in (0, 8):
                        place = start + far + lane % 4 * 2
                        row = top + low
                        made[row + lane // 4, place : place + 2] = a[
                            row + lane % 8, place : place + 2
                        ]
    return made @ b * 0.5


def in_turn_and_in_a_row(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Four lanes: pairs lane, lane + 4, ... of the left meet pairs 8 * lane, 8 * lane + 1, ..."""
    total = torch.zeros(64, 48, dtype=a.dtype)
    for lane in range(4):
        for i in range(8):
            left, right = 2 * (i * 4 + lane), 2 * (lane * 8 + i)
            total += a[:, left : left + 2] @ b[right : right + 2]
    return total * 0.5


def crosswise(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.nn.functional.pad(a @ b * 0.5, (0, 16))
    right = out.clone()
    for row in (0, 32):
        for column in (0, 32):
            out[row : row + 16, column + 16 : column + 32] = right[
                row + 16 : row + 32, column : column + 16
            ]
            out[row + 16 : row + 32, column : column + 16] = right[
                row : row + 16, column + 16 : column + 32
            ]
    return torch.where(torch.arange(64) < 32, out, right)[:, :48]


def zeros_in_tiles(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores, at = q @ k.T, torch.arange(96)
    seen = at <= at.unsqueeze(1)
    scores = scores.masked_fill(~seen, 0.0)
    beyond = at // 32 > at.unsqueeze(1) // 32
    return scores.masked_fill(beyond, -math.inf).softmax(-1) @ v


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "other lanes": (PRODUCT, rows_of_other_lanes, "row lane % 8, not lane / 4"),
    "in turn": (PRODUCT, in_turn_and_in_a_row, "lanes that take turns in one place and lie in a"),
    "crosswise": (PRODUCT, crosswise, "of every four 16x16 tiles (fragments) the two off the"),
    "zeros": (CAUSAL, zeros_in_tiles, "tiles on the diagonal get 0 in place of minus infinity"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_exchanged_places_are_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
