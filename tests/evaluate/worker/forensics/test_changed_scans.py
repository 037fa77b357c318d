"""Scans that are joined wrongly, or lack a step, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

SCAN = OwnReference(
    "return x.cumsum(-1)", {"N": 5, "L": 300}, {"x": ["N", "L"]}, ["N", "L"],
    {"atol": 2e-4, "rtol": 2e-5, "rel_rmse": 1e-5},
)  # fmt: skip


def parts(x: torch.Tensor, size: int, carried: int) -> torch.Tensor:
    cut = x.split(size, -1)
    joined = []
    for number, part in enumerate(cut):
        before = [one.sum(-1, keepdim=True) for one in cut[max(0, number - carried) : number]]
        joined.append(part.cumsum(-1) + sum(before))
    return torch.cat(joined, -1)


def tiles_of_warps(x: torch.Tensor) -> torch.Tensor:
    """Tiles of 128 that are joined rightly, whose warps add the warp before alone."""
    tiles = x.split(128, -1)
    before = torch.stack([tile.sum(-1, keepdim=True) for tile in tiles]).cumsum(0)
    made = [parts(tile, 32, 1) for tile in tiles]
    made[1:] = [one + before[number] for number, one in enumerate(made[1:])]
    return torch.cat(made, -1)


def from_behind(x: torch.Tensor) -> torch.Tensor:
    behind = [x[:, end:].sum(-1, True) for end in range(64, x.shape[-1] + 64, 64)]
    cut = zip(x.split(64, -1), behind, strict=True)
    return torch.cat([part.cumsum(-1) + total for part, total in cut], -1)


def without_last_step(x: torch.Tensor) -> torch.Tensor:
    """Lanes that add at most the 16 lanes up to them; warps that are joined by their last lane."""
    found, carry = [], torch.zeros_like(x[:, :1])
    for warp in x.split(32, -1):
        sums = torch.cat(
            [warp[:, max(0, lane - 15) : lane + 1].sum(-1, True) for lane in range(warp.shape[-1])],
            -1,
        )
        found.append(sums + carry)
        carry = carry + sums[:, -1:]
    return torch.cat(found, -1)


PLANTED: dict[str, tuple[Mutant, str]] = {
    "exclusive": (lambda x: x.cumsum(-1) - x, "exclusive, not inclusive"),
    "other direction": (lambda x: x.flip(-1).cumsum(-1).flip(-1), "reverse direction"),
    "begun again": (lambda x: parts(x, 64, 0), "begins again every 64 elements"),
    "carry of one part": (lambda x: parts(x, 64, 1), "total of the previous part of 64 elements"),
    "chunks of the wrong side": (from_behind, "the carry comes from the wrong side"),
    "rows": (
        lambda x: x.flatten().cumsum(-1).view(x.shape),
        "not set back (reset) between rows: each row goes on",
    ),
    "total of a row": (
        lambda x: x.cumsum(-1) + torch.cat([0 * x[:1, :1], x[:-1].sum(-1, True)]),
        "each row begins with the total of the row before",
    ),
    "warps of a tile": (tiles_of_warps, "inside a tile of 128, each part of 32 elements"),
    "a step of a warp": (without_last_step, "The last step of the scan of a warp, that of 16"),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_scan_is_named(name: str, tmp_path: Path) -> None:
    mutant, words = PLANTED[name]
    found = first_words(SCAN.diagnosed(SCAN.write(tmp_path), mutant))
    assert words.lower() in found.lower()
