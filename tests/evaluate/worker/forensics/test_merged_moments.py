"""Rows whose means and variances are taken in parts: mistakes of the merge are named, in a reference
that writes its results into the parts of a split tensor.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import pad

from tests.evaluate.worker.forensics.mistakes import of_some
from tests.evaluate.worker.forensics.mutated import Mutant, diagnosed
from tests.evaluate.worker.forensics.own_reference import first_words

Part = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # count, mean, squared deviations
Statistics = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # of rows


def normalised(statistics: Statistics) -> Mutant:
    """Layer norm with these means and variances."""

    def mutant(tensors, scalars):
        x = tensors["x"]
        mean, variance = (one[:, None] for one in statistics(x))
        root = torch.sqrt(variance + scalars["eps"])
        return (x - mean) / root * tensors["weight"] + tensors["bias"]

    return mutant


def moments(x: torch.Tensor, part: torch.Tensor, count: int) -> Part:
    sizes = part.bincount(minlength=count).double()
    mean = x.new_zeros(x.shape[0], count).index_add_(1, part, x) / sizes.clamp_min(1)
    squares = torch.zeros_like(mean).index_add_(1, part, (x - mean[:, part]) ** 2)
    return sizes.expand_as(mean), mean, squares


def quarters(x: torch.Tensor) -> Part:
    return moments(x, torch.arange(x.shape[1]) // -(-x.shape[1] // 4), 4)


def without_the_spread_between(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.mean(1), quarters(x)[2].sum(1) / x.shape[1]


def last_quarter_full(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sizes, means, squares = quarters(x)
    mean = (means * sizes[0, 0]).sum(1) / x.shape[1]
    apart = (means - mean[:, None]) ** 2 * sizes
    return mean, (squares + apart).sum(1) / x.shape[1]


def squares_of_other_rows(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Squares that were written as [rows, quarters] and are read as [quarters, rows]."""
    sizes, means, squares = quarters(x)
    between = ((means - x.mean(1, keepdim=True)) ** 2 * sizes).sum(1)
    return x.mean(1), (squares.reshape(4, -1).sum(0) + between) / x.shape[1]


def tree(threads: int, vector: int, merge: Callable[[Part, Part], Part]) -> Statistics:
    """Every thread's elements, merged over the lanes of a warp and then over the warps."""

    def over_lanes(parts: Part) -> Part:
        width = 32
        while width > 1:
            width //= 2
            first, second = (
                tuple(one[..., start : start + width] for one in parts) for start in (0, width)
            )
            parts = merge(first, second)
        return tuple(one[..., 0] for one in parts)

    def statistics(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        own = moments(x, torch.arange(x.shape[1]) // vector % threads, threads)
        warps = over_lanes(tuple(one.reshape(x.shape[0], -1, 32) for one in own))
        count, mean, squares = over_lanes(tuple(pad(one, (0, 32 - threads // 32)) for one in warps))
        return mean, squares / count

    return statistics


def merged(counted: bool, weighted: bool) -> Callable[[Part, Part], Part]:
    def merge(first: Part, second: Part) -> Part:
        count = first[0] + second[0]
        share = second[0] / count.clamp_min(1)
        apart = second[1] - first[1]
        between = apart**2 * share * (first[0] if counted else 1)
        step = share if weighted else 0.5 * (count > 0)
        return count, first[1] + apart * step, first[2] + second[2] + between

    return merge


PLANTED: dict[str, tuple[str, Statistics, str]] = {
    "without the spread between": (
        "odd",
        without_the_spread_between,
        "lacks the spread between the means of its parts",
    ),
    "last quarter full": ("odd", last_quarter_full, "weighs its short last part as a full one"),
    "squares of other rows": (
        "odd",
        squares_of_other_rows,
        "the squares of its parts are read as [parts, rows]",
    ),
    "distance without count": (
        "rows",
        tree(384, 4, merged(counted=False, weighted=True)),
        "squared distance of their means is not multiplied by the count",
    ),
    "halfway between unequal parts": (
        "odd",
        tree(384, 1, merged(counted=True, weighted=False)),
        "mean and variance are wrong because when two parts are merged, their mean is taken halfway",
    ),
}


@of_some
@pytest.mark.parametrize("name", PLANTED)
def test_a_mistake_in_a_merge_is_named(name: str) -> None:
    case, statistics, words = PLANTED[name]
    found = first_words(diagnosed("layernorm", case, normalised(statistics), threads=384))
    assert words in found, found


def test_the_statistics_of_these_merges_without_a_mistake_are_right() -> None:
    x = torch.randn(7, 333, dtype=torch.float64)
    mean, variance = tree(384, 1, merged(counted=True, weighted=True))(x)
    assert torch.allclose(mean, x.mean(1)) and torch.allclose(variance, x.var(1, unbiased=False))
