"""Convolutions and pools of torch, written out as windows, so that each step can be changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

Pair = int | tuple[int, ...] | list[int]


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor:
    """As torch's conv2d."""
    (down, across), (above, left) = pair(stride), pair(padding)
    height, width = weight.shape[-2:]
    (apart_down, apart) = pair(dilation)
    padded = torch.nn.functional.pad(x, (left, left, above, above))
    tall = padded.unfold(2, (height - 1) * apart_down + 1, down)
    if apart_down > 1:
        tall = tall.index_select(-1, _spread(x, height, apart_down))
    windows = tall.unfold(3, (width - 1) * apart + 1, across)
    if apart > 1:
        windows = windows.index_select(-1, _spread(x, width, apart))
    n, _, rows, columns = windows.shape[:4]
    taps = windows.reshape(n, groups, -1, rows * columns, height * width)
    taps = taps.transpose(2, 3).reshape(n, groups, rows * columns, -1)
    filters = weight.reshape(groups, weight.shape[0] // groups, -1).mT
    sums = taps @ filters
    found = sums.transpose(2, 3).reshape(n, -1, rows, columns)
    return found if bias is None else found + bias.view(-1, 1, 1)


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor:
    """As torch's conv1d."""
    (step,), (left,) = _single(stride), _single(padding)
    (apart,) = _single(dilation)
    padded = torch.nn.functional.pad(x, (left, left))
    windows = padded.unfold(2, (weight.shape[-1] - 1) * apart + 1, step)
    if apart > 1:
        windows = windows.index_select(-1, _spread(x, weight.shape[-1], apart))
    n, _, length = windows.shape[:3]
    taps = windows.reshape(n, groups, -1, length, weight.shape[-1])
    taps = taps.transpose(2, 3).reshape(n, groups, length, -1)
    filters = weight.reshape(groups, weight.shape[0] // groups, -1).mT
    sums = taps @ filters
    found = sums.transpose(2, 3).reshape(n, -1, length)
    return found if bias is None else found + bias.view(-1, 1)


def max_pool2d(
    x: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """As torch's max_pool2d."""
    if pair(dilation) != (1, 1) or ceil_mode or return_indices:
        raise ValueError("dilated, or with indices")
    (height, width), (above, left) = pair(kernel_size), pair(padding)
    down, across = pair(kernel_size if stride is None else stride)
    padded = torch.nn.functional.pad(x, (left, left, above, above), value=-math.inf)
    windows = padded.unfold(-2, height, down).unfold(-2, width, across)
    return windows.flatten(-2).amax(-1)


def avg_pool2d(
    x: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """As torch's avg_pool2d."""
    if ceil_mode:
        raise ValueError("windows that begin beyond the end")
    (height, width), (above, left) = pair(kernel_size), pair(padding)
    down, across = pair(kernel_size if stride is None else stride)
    padded = torch.nn.functional.pad(x, (left, left, above, above))
    windows = padded.unfold(-2, height, down).unfold(-2, width, across)
    if count_include_pad or divisor_override is not None or not (above or left):
        if divisor_override is None:
            return windows.flatten(-2).mean(-1)
        return windows.flatten(-2).sum(-1) / divisor_override
    starts = (
        tuple(row * down - above for row in range(windows.shape[-4])),
        tuple(column * across - left for column in range(windows.shape[-3])),
    )
    counts = counted_places(starts, (height, width), (x.shape[-2], x.shape[-1]))
    sums = windows.flatten(-2).sum(-1)
    return sums / torch.tensor(counts, dtype=x.dtype, device=x.device)


def counted_places(
    starts: tuple[Sequence[int], Sequence[int]],
    sizes: tuple[int, int],
    extents: tuple[int, int],
    clamped: Sequence[bool] = (True, True, True, True),
) -> list[list[int]]:
    """How many places of each window lie in the image, by where windows begin; with some of its
    four edges (above, below, left, right) not `clamped`, those beyond them count as well.
    """
    spans = []
    for axis in (0, 1):
        above, below = clamped[2 * axis : 2 * axis + 2]
        spans.append(
            [
                (min(one + sizes[axis], extents[axis]) if below else one + sizes[axis])
                - (max(one, 0) if above else one)
                for one in starts[axis]
            ]
        )
    return [[rows * columns for columns in spans[1]] for rows in spans[0]]


def _spread(x: Tensor, count: int, apart: int) -> Tensor:
    """The places of so many taps."""
    return torch.arange(0, count * apart, apart, device=x.device)


def pair(value: Pair) -> tuple[int, ...]:
    """A number along each of two axes, given as one or as two."""
    return (value, value) if isinstance(value, int) else tuple(value)


def _single(value: Pair) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)
