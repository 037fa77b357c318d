"""Conditions of masks that are off by one, forgotten or inverted are named."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import OwnReference, first_words

# a band of keys: not behind the query, and less than 4 before it
BAND = OwnReference(
    "at = torch.arange(x.shape[0])\n"
    "behind = at[:, None] - at\n"
    "seen = (behind >= 0) & (behind < 4)\n"
    "return (x @ x.mT).masked_fill(~seen, float('-inf')).softmax(-1) @ x",
    {"S": 40, "D": 8},
    {"x": ["S", "D"]},
    ["S", "D"],
)
BEHIND = torch.arange(40)[:, None] - torch.arange(40)


def attention(x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    return (x @ x.mT).masked_fill(~seen, -math.inf).softmax(-1) @ x


PLANTED: dict[str, tuple[torch.Tensor, str]] = {
    "one more": ((BEHIND >= 0) & (BEHIND <= 4), "`behind < 4` is off by one: <= in place of <"),
    "one less": ((BEHIND >= 0) & (BEHIND < 3), "`behind < 4` is off by one"),
    "whole tiles": (
        (BEHIND >= 0) & (BEHIND < 8),
        "partial tile (page, block) of 8 is read to its end",
    ),
    "no causality": (BEHIND < 4, "`behind >= 0` is missing"),
    "no band": (BEHIND >= 0, "`behind < 4` is missing"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_condition_is_named(name: str, tmp_path: Path) -> None:
    seen, words = PLANTED[name]
    found = BAND.diagnosed(BAND.write(tmp_path), lambda x: attention(x, seen))
    assert words in first_words(found)


ROUNDED = OwnReference(
    "return (x * 3).round() / 3", {"N": 8, "C": 50}, {"x": ["N", "C"]}, ["N", "C"]
)


@pytest.mark.parametrize(
    ("rounded", "words"), [(torch.floor, "rounded down"), (torch.trunc, "cut off toward zero")]
)
def test_another_rounding_is_named(
    rounded: Callable[[torch.Tensor], torch.Tensor], words: str, tmp_path: Path
) -> None:
    found = ROUNDED.diagnosed(ROUNDED.write(tmp_path), lambda x: rounded(x * 3) / 3)
    assert words in first_words(found)
