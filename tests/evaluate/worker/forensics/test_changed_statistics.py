"""Statistics over any axes, of a part of their terms or of another row, are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import avg_pool2d, max_pool2d, pad

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.own_reference import Mutant, OwnReference, first_words

CHANNELS = OwnReference(
    "mean = x.mean((0, 2), keepdim=True)\n"
    "variance = (x - mean).square().mean((0, 2), keepdim=True)\n"
    "return (x - mean) / (variance + 1e-5).sqrt()",
    {"N": 4, "C": 6, "L": 32},
    {"x": ["N", "C", "L"]},
    ["N", "C", "L"],
)
MIXED = OwnReference(
    "return torch.einsum('bik,bkj->bij', a, b).softmax(1)",
    {"B": 2, "I": 24, "K": 16, "J": 10},
    {"a": ["B", "I", "K"], "b": ["B", "K", "J"]},
    ["B", "I", "J"],
)
GATED = OwnReference(
    "left, right = x.chunk(2, -1)\nreturn torch.nn.functional.silu(left) * right",
    {"N": 8, "C": 40},
    {"x": ["N", "C"]},
    ["N", "C / 2"],
)
POOLED = OwnReference(
    "return torch.nn.functional.avg_pool2d(x, 3, 2, 1)",
    {"N": 2, "C": 3, "H": 12, "W": 16},
    {"x": ["N", "C", "H", "W"]},
    ["N", "C", "H / 2", "W / 2"],
)


def normal(x: torch.Tensor, values: torch.Tensor, shift: int = 0) -> torch.Tensor:
    """Normalised with the statistics of some values, or of the next channel."""
    mean = values.mean((0, 2), keepdim=True)
    variance = (values - mean).square().mean((0, 2), keepdim=True)
    mean, variance = mean.roll(shift, 1), variance.roll(shift, 1)
    return (x - mean) / (variance + 1e-5).sqrt()


PLANTED: dict[str, tuple[OwnReference, Mutant, str]] = {
    "sample variance": (
        CHANNELS,
        lambda x: (x - x.mean((0, 2), True)) / (x.var((0, 2), keepdim=True) + 1e-5).sqrt(),
        "variance divides by N - 1",
    ),
    "next channel": (
        CHANNELS,
        lambda x: normal(x, x, -1),
        "mean and variance are taken from the next",
    ),
    "divided by one extent": (
        CHANNELS,
        lambda x: (x - 4 * x.mean((0, 2), True)) / spread(x),
        "mean is divided by the wrong number: by L (32)",
    ),
    "softmax of wrong axis": (MIXED, lambda a, b: (a @ b).softmax(2), "along the wrong axis"),
    "last product": (
        MIXED,
        lambda a, b: (a[..., :-1] @ b[:, :-1]).softmax(1),
        "leaves out the last product",
    ),
    "halves": (
        GATED,
        lambda x: torch.nn.functional.silu(x[:, 20:]) * x[:, :20],
        "halves (parts) are swapped",
    ),
    "maximum for mean": (
        POOLED,
        lambda x: max_pool2d(x, 3, 2, 1) * 0 + avg_pool2d(pad(x, (1, 1, 1, 1), "replicate"), 3, 2),
        "padding repeats the edge",
    ),
}


def spread(x: torch.Tensor) -> torch.Tensor:
    mean = 4 * x.mean((0, 2), keepdim=True)
    return ((x - mean).square().mean((0, 2), keepdim=True) + 1e-5).sqrt()


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_wrong_statistic_is_named(name: str, tmp_path: Path) -> None:
    reference, mutant, words = PLANTED[name]
    assert words in first_words(reference.diagnosed(reference.write(tmp_path), mutant))
