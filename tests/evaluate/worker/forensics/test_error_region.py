"""Regions in words: what is hit along each axis, and patterns over the last two."""

from __future__ import annotations

import pytest
import torch

from evoengine.evaluate.worker.forensics.error_region import axis_part, error_region


def hit(extent: int, *places: int) -> torch.Tensor:
    found = torch.zeros(extent, dtype=torch.bool)
    found[list(places)] = True
    return found


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (hit(8, *range(8)), ""),
        (hit(8, 3), "only index S = 3"),
        (hit(77, *range(64, 77)), "only the last 13 indices of 77 along S (64..76)"),
        (hit(77, 76), "only the last index of 77 along S (76)"),
        (hit(64, *range(16)), "only the first 16 indices of 64 along S (0..15)"),
        (hit(64, *range(16, 32)), "only indices S 16..31 of 64"),
        (hit(64, *range(1, 64, 2)), "at the last index (1) of every 2 along S"),
        (
            hit(128, *range(56, 64), *range(120, 128)),
            "at the last 8 indices (56..63) of every 64 along S",
        ),
        (hit(160, *range(10, 20), *range(50, 60), *range(90, 100), *range(130, 140)), "40"),
        (hit(100, 1, 5, 6, 50), "4 indices of 100 along S, scattered"),
    ],
)
def test_the_indices_of_an_axis_in_words(mask: torch.Tensor, words: str) -> None:
    found = axis_part("S", mask, hints=(40,)).words
    assert found == words or (words == "40" and found == "at indices 10..19 of every 40 along S")


def test_one_head_and_a_tile_of_rows() -> None:
    wrong = torch.zeros(2, 4, 64, 32, dtype=torch.bool)
    wrong[:, 2, 16:32] = True
    found = error_region(wrong, ("B", "H", "S", "D"))
    assert found.words == "only head H = 2, only rows S 16..31 of 64"
    assert found.density == 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda i, j: j > i, "only above the diagonal of M and N"),
        (lambda i, j: (i // 16 + j // 16) % 2 == 1, "8 of 16, every other one"),
        (lambda i, j: i // 16 == j // 16, "4 of 16, those on the diagonal"),
        (
            lambda i, j: (i % 16 < 8) & (j % 16 >= 8),
            "at the first 8 rows (0..7) of every 16 along M",
        ),
        (lambda i, j: (i + j) % 8 == 0, "the same 8 places of every 8x8 tile"),
    ],
)
def test_patterns_over_two_axes(make, words) -> None:
    row, column = torch.arange(64).view(-1, 1), torch.arange(64).view(1, -1)
    found = error_region(make(row, column).expand(64, 64), ("M", "N"))
    assert words in found.words


def test_scattered_elements_have_no_pattern() -> None:
    generator = torch.Generator().manual_seed(0)
    wrong = torch.rand(64, 96, generator=generator) < 0.02
    found = error_region(wrong, ("M", "N"))
    assert found.pattern == ""
    assert "scattered over the whole output" in found.words
