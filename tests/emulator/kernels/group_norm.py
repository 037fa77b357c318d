"""Group norm with SiLU on half images."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves


def _case(name: str, images: int, channels: int, groups: int, pixels: int, threads: int) -> Case:
    x = halves(pixels, images, channels, pixels) + np.float16(1)
    weight, bias = halves(channels, 2, channels)
    grouped = x.astype(np.float64).reshape(images, groups, -1)
    centred = grouped - grouped.mean(axis=2, keepdims=True)
    normal = (centred / np.sqrt((centred**2).mean(axis=2, keepdims=True) + 1e-5)).reshape(x.shape)
    y = normal * weight.astype(np.float64)[:, None] + bias.astype(np.float64)[:, None]
    sizes = (np.int32(channels), np.int32(groups), np.int32(pixels), np.float32(1e-5))
    args = (In(x), In(weight), In(bias), Out(x.shape, "float16"), *sizes)
    expected = {3: y / (1 + np.exp(-y))}
    grid, block = (groups, images, 1), (threads, 1, 1)
    return Case(
        name, "group_norm", grid, block, args, expected, atol=1e-3, rtol=2e-3, gpu=Close(1e-3, 2e-3)
    )


def cases() -> list[Case]:
    """Groups smaller than a block, and larger ones of an odd number of pixels."""
    return [_case("small", 2, 4, 2, 9, 64), _case("odd_pixels", 2, 12, 3, 49, 128)]
