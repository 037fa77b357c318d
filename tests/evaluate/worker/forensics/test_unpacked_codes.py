"""Codes of four bits that are unpacked wrongly are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import OwnReference, first_words

PACKED = OwnReference(
    "codes = torch.stack((packed & 15, packed >> 4), dim=-1).flatten(1)\n"
    "return x @ (codes.to(x.dtype) - 8).T",
    {"M": 16, "N": 24, "K": 64},
    {
        "x": ["M", "K"],
        "packed": {
            "shape": ["N", "K // 2"],
            "dtype": "uint8",
            "draw": {"dist": "uniform", "low": 0, "high": 256},
        },
    },
    ["M", "N"],
)
Unpack = Callable[[torch.Tensor], torch.Tensor]


def low(packed: torch.Tensor) -> torch.Tensor:
    return packed.int() % 16


def high(packed: torch.Tensor) -> torch.Tensor:
    return packed.int() // 16


def signed(code: torch.Tensor) -> torch.Tensor:
    return (code + 8) % 16 - 8


PLANTED: dict[str, tuple[Unpack, Unpack, str]] = {
    "signed": (lambda p: signed(low(p)), lambda p: signed(high(p)), "The codes are sign-extended"),
    "low ones signed": (lambda p: signed(low(p)), high, "The codes of `packed & 15` are sign-ext"),
    "960 less": (low, lambda p: high(p) - 960, "`packed >> 4` (weights) are 960 too small"),
    "swapped": (high, low, "(nibbles, even and odd codes) are swapped"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_wrong_codes_are_named(name: str, tmp_path: Path) -> None:
    even, odd, words = PLANTED[name]

    def mutant(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        codes = torch.stack((even(packed), odd(packed)), dim=-1).flatten(1)
        return x @ (codes.to(x.dtype) - 8).T

    assert words in first_words(PACKED.diagnosed(PACKED.write(tmp_path), mutant))
