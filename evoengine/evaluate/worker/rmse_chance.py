"""How far the relative RMSE of a kernel strays by chance, where few elements are most of an output.

The relative RMSE of an output of many like elements is that of the type of its numbers. Where a
few elements are much larger than the others, as on inputs with outliers, it is the error of those
few, which any kernel that rounds has large or small by chance: an honest one that rounds toward
zero, at 0.83 of the limit on normal inputs, was refused at 1.01 of it on some with outliers.
"""

from __future__ import annotations

import math

import torch

# Squares of the errors of rounding scatter by about their mean, so that the mean of n of them
# scatters by 1 / sqrt(n) of itself, and its root by half as much: these are four of its deviations.
DEVIATIONS_OF_A_ROOT = 2.0
# What as many elements scatter by is within the tolerance of a tier.
MANY_ELEMENTS = 256
# Of elements from N(0, 1) a third count; by itself the number is another one for every input set.
NORMAL_SHARE, LEAST_NORMAL_SHARE = 1 / 3, 1 / 8
PIECE_ELEMENTS = 1 << 22  # so that squares need little memory beside the reference


def chance_of(reference: torch.Tensor) -> float:
    """How many times the usual relative RMSE of an output may be found by chance: 1 where
    MANY_ELEMENTS or more count alike, 2.875 where one does.

    `reference` holds float64 values in any shape; those that are not finite do not count.
    """
    alike = elements_that_count(reference)
    if alike > LEAST_NORMAL_SHARE * reference.numel():
        alike = max(1.0, NORMAL_SHARE * reference.numel())
    if not 0 < alike < MANY_ELEMENTS:
        return 1.0
    return 1 + DEVIATIONS_OF_A_ROOT * (1 / math.sqrt(alike) - 1 / math.sqrt(MANY_ELEMENTS))


def elements_that_count(reference: torch.Tensor) -> float:
    """The number of elements alike that would scatter as these do, each weighted by its square:
    (sum of w)^2 / sum of w^2; 0 where all are 0.
    """
    pieces = reference.flatten().split(PIECE_ELEMENTS)
    largest = max((float(_finite(piece).abs().max()) for piece in pieces if len(piece)), default=0)
    if largest == 0:
        return 0.0
    total = total_of_squares = 0.0
    for piece in pieces:
        weights = (_finite(piece) / largest).square()
        total += float(weights.sum())
        total_of_squares += float(weights.square().sum())
    return total**2 / total_of_squares


def _finite(values: torch.Tensor) -> torch.Tensor:
    return values.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
