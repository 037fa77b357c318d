"""Sums that the lanes of a row do not share are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import diagnosed
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

NORM = OwnReference(
    "mean = x.mean(-1, keepdim=True)\n"
    "variance = (x - mean).square().mean(-1, keepdim=True)\n"
    "return (x - mean) * torch.rsqrt(variance + 1e-3)",
    {"N": 24, "C": 256}, {"x": ["N", "C"]}, ["N", "C"],
)  # fmt: skip
ROOT = OwnReference(
    "return x * torch.rsqrt((x * x).mean(-1, keepdim=True))",
    {"N": 24, "C": 256}, {"x": ["N", "C"]}, ["N", "C"],
)  # fmt: skip


def down(parts: torch.Tensor) -> torch.Tensor:
    """Shuffles down over 32 lanes: a lane beyond the end gives back its own."""
    for distance in (16, 8, 4, 2, 1):
        beyond = torch.cat([parts[:, distance:], parts[:, -distance:]], -1)
        parts = parts + beyond
    return parts


def with_totals(x: torch.Tensor, width: int, shuffle: Mutant) -> torch.Tensor:
    """The sum of a row as each of its places sees it."""
    lane = torch.arange(x.shape[-1]) // width % 32
    parts = torch.stack([x[:, lane == one].sum(-1) for one in range(32)], -1)
    return shuffle(parts)[:, lane]


def norm(x: torch.Tensor) -> torch.Tensor:
    apart = x - with_totals(x, 1, down) / 256
    return apart * torch.rsqrt(with_totals(apart.square(), 1, down) / 256 + 1e-3)


def without(distance: int) -> Mutant:
    def shuffle(parts: torch.Tensor) -> torch.Tensor:
        for one in (16, 8, 4, 2, 1):
            if one != distance:
                parts = parts + parts[:, torch.arange(32) ^ one]
        return parts

    return shuffle


def again(parts: torch.Tensor) -> torch.Tensor:
    """The step over 4 lanes goes over 2 again."""
    for distance in (16, 8, 2, 2, 1):
        parts = parts + parts[:, torch.arange(32) ^ distance]
    return parts


def root(width: int, shuffle: Mutant) -> Mutant:
    return lambda x: x * torch.rsqrt(with_totals(x * x, width, shuffle) / 256)


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "not broadcast": (NORM, norm, "the whole in the first lane alone, which is not broadcast"),
    "half": (ROOT, root(4, without(16)), "the shuffle over 16 of 32 lanes is missing"),
    "again": (
        ROOT,
        root(1, again),
        "the shuffle over 4 of 32 lanes goes over another distance again",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_lanes_with_results_of_their_own_are_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))


def test_totals_that_differ_between_columns_are_named() -> None:
    """Each of four lanes has 4 keys of every 16, and writes every fourth column."""

    def mutant(tensors: dict[str, torch.Tensor], scalars: dict[str, float]) -> torch.Tensor:
        scores = tensors["q"] @ tensors["k"].mT * scalars["scale"]
        power = scores.softmax(-1)
        key = torch.arange(scores.shape[-1]) // 4 % 4
        parts = [power[..., key == lane].sum(-1, keepdim=True) for lane in range(4)]
        out = power @ tensors["v"]
        for lane in range(4):
            out[..., lane::4] /= parts[lane] + parts[lane ^ 2]
        return out

    found = first_words(diagnosed("sdpa_l4", "full", mutant, seconds=9.0))  # type: ignore[arg-type]
    assert "the lanes that share a row do not have the same total" in found
    assert "leaves out keys 4..7 of every 8" in found


WEIGHTED = OwnReference(
    "return torch.softmax(x, dim=-1) @ v", {"M": 20, "N": 128, "K": 32},
    {"x": ["M", "N"], "v": ["N", "K"]}, ["M", "K"],
)  # fmt: skip


def halves_of_a_warp(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A lane has a key of every 32 and a column; lanes 0..15 and 16..31 have a maximum each."""
    tops = [torch.full((20,), -1e30).double() for _ in range(2)]
    made = torch.zeros(20, 32).double()
    sums = [torch.zeros(20).double() for _ in range(2)]
    for start in range(0, 128, 32):
        weights = []
        for half in range(2):
            own = x[:, start + 16 * half : start + 16 * half + 16]
            high = torch.maximum(tops[half], own.amax(-1))
            shrink, tops[half] = (tops[half] - high).exp(), high
            weights.append((own - high.unsqueeze(-1)).exp())
            sums[half] = sums[half] * shrink + weights[half].sum(-1)
            made[:, 16 * half : 16 * half + 16] *= shrink.unsqueeze(-1)
        made += torch.cat(weights, -1) @ v[start : start + 32]
    return made / (sums[0] + sums[1]).unsqueeze(-1)


def test_two_maxima_of_one_row_are_named(tmp_path: Path) -> None:
    found = first_words(WEIGHTED.diagnosed(WEIGHTED.write(tmp_path), halves_of_a_warp))
    assert "the two parts weigh their keys relative to different maxima" in found
