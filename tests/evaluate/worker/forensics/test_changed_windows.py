"""Convolutions with a wrong border are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import avg_pool2d, conv1d, conv2d, pad

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

IMAGES = OwnReference(
    "return torch.nn.functional.conv2d(x, weight, padding=1)",
    {"N": 2, "C": 3, "K": 4, "H": 9, "W": 11},
    {"x": ["N", "C", "H", "W"], "weight": ["K", "C", "3", "3"]},
    ["N", "K", "H", "W"],
)
WAVES = OwnReference(
    "return torch.nn.functional.conv1d(torch.nn.functional.pad(x, (3, 0)), weight)",
    {"N": 2, "C": 3, "K": 4, "L": 150},
    {"x": ["N", "C", "L"], "weight": ["K", "C", "4"]},
    ["N", "K", "L"],
)


def wrapped(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The column before the first of a row is the last one of the row above."""
    tall = pad(x, (0, 0, 1, 1)).flatten(2)
    wide = pad(tall, (1, 1))
    rows = [wide[..., 11 * row : 11 * row + 13] for row in range(11)]
    return conv2d(torch.stack(rows, 2), weight)


def tiles(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([conv1d(pad(one, (3, 0)), weight) for one in x.split(64, -1)], -1)


SUMS = OwnReference(
    "return torch.nn.functional.pad(x, (2, 2)).unfold(1, 5, 1).sum(-1)",
    {"N": 4, "L": 150}, {"x": ["N", "L"]}, ["N", "L"],
)  # fmt: skip


def walked(x: torch.Tensor) -> torch.Tensor:
    """Five values in registers, which at the start of every 32 begin one place too far."""
    wide, out = pad(x, (2, 4)), torch.empty_like(x)
    for start in range(0, x.shape[-1], 32):
        window = [wide[:, start + 1 + j] for j in range(4)]
        for at in range(start, min(start + 32, x.shape[-1])):
            window.append(wide[:, at + 4])
            out[:, at] = torch.stack(window).sum(0)
            window.pop(0)
    return out


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "edge repeated": (
        IMAGES,
        lambda x, weight: conv2d(pad(x, (1, 1, 1, 1), mode="replicate"), weight),
        "The padding repeats the edge",
    ),
    "row wraps": (IMAGES, wrapped, "wraps into the row before or after"),
    "shifted": (
        IMAGES,
        lambda x, weight: conv2d(pad(x, (0, 2, 1, 1)), weight),
        "shifted by 1 ahead",
    ),
    "flipped": (
        IMAGES,
        lambda x, weight: conv2d(x, weight.flip(-1, -2), padding=1),
        "weight is flipped along its last two axes",
    ),
    "taps reversed": (
        WAVES,
        lambda x, weight: conv1d(pad(x, (3, 0)), weight.flip(-1)),
        "in reverse order",
    ),
    "begun too far": (SUMS, walked, "filled one place too far ahead"),
    "no halo": (WAVES, tiles, "The halo before every tile of 64 is missing"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_border_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))


def pooled(padding_counts: bool) -> OwnReference:
    return OwnReference(
        f"return torch.nn.functional.avg_pool2d(x, 3, 2, 1, count_include_pad={padding_counts})",
        {"N": 2, "C": 3, "H": 19, "W": 23, "HO": 10, "WO": 12},
        {"x": ["N", "C", "H", "W"]},
        ["N", "C", "HO", "WO"],
    )


def mean_of_windows(
    x: torch.Tensor, top: int = 0, right: int = 23, columns: bool = True
) -> torch.Tensor:
    """The sums of windows by the places from row `top` on and up to column `right`."""
    row, column = torch.arange(10) * 2 - 1, torch.arange(12) * 2 - 1
    high = (row + 3).clamp(max=19) - row.clamp(min=top)
    wide = (column + 3).clamp(max=right) - column.clamp(min=0)
    return avg_pool2d(x, 3, 2, 1) * 9 / (high.view(-1, 1) * (wide if columns else 1))


POOLS: dict[str, tuple[bool, Mutant, str]] = {
    "above": (False, lambda x: mean_of_windows(x, top=-1), "counts places above the image"),
    "right": (False, lambda x: mean_of_windows(x, right=24), "counts places right of the image"),
    "all padding": (False, lambda x: avg_pool2d(x, 3, 2, 1), "the flag is ignored or inverted"),
    "no padding": (True, mean_of_windows, "leaves out the padding outside of the image"),
    "rows alone": (False, lambda x: mean_of_windows(x, columns=False), "rows alone"),
}


@of_some
@pytest.mark.parametrize("name", POOLS)
def test_a_wrong_divisor_of_a_pool_is_named(name: str, tmp_path: Path) -> None:
    padding_counts, mutant, words = POOLS[name]
    reference = pooled(padding_counts)
    found = first_words(reference.diagnosed(reference.write(tmp_path), mutant))
    assert words.lower() in found.lower()
