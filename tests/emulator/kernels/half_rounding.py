"""Halves to integral halves and to integers: ties, signs, saturation, NaN."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    """Every 37th half, and the ties near zero; conversions saturate and turn NaN into 0."""
    ties = np.array(
        [
            0.5,
            1.5,
            2.5,
            -0.5,
            -1.5,
            -2.5,
            65504.0,
            32768.0,
            -32768.0,
            np.inf,
            -np.inf,
            np.nan,
            0.0,
            -0.0,
        ],
        np.float16,
    )
    x = np.concatenate([np.arange(0, 1 << 16, 37).astype(np.uint16).view(np.float16), ties])
    wide = x.astype(np.float64)
    known = np.nan_to_num(wide, nan=0.0, posinf=1e30, neginf=-1e30)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        integral = np.stack([np.ceil(wide), np.floor(wide), np.trunc(wide), np.rint(wide)])
    signed = [
        np.clip(f(known), -(2**31), 2**31 - 1) for f in (np.rint, np.trunc, np.ceil, np.floor)
    ]
    unsigned = np.clip(np.trunc(known), 0, 2**32 - 1)
    integers = np.stack([*signed, unsigned]).astype(np.int64).astype(np.uint32).view(np.int32)
    short = np.clip(np.trunc(known), -(2**15), 2**15 - 1).astype(np.int64).astype(np.uint16)
    shorts = np.stack(
        [short, np.clip(np.rint(known), 0, 2**16 - 1).astype(np.uint16), x.view(np.uint16)]
    )
    args = (
        In(x),
        Out((4, x.size), "float16"),
        Out((5, x.size), "int32"),
        Out((3, x.size), "uint16"),
        np.int32(x.size),
    )
    grid = (-(-x.size // 256), 1, 1)
    return [
        Case(
            "all_over",
            "half_rounding",
            grid,
            (256, 1, 1),
            args,
            {1: integral, 2: integers, 3: shorts},
        )
    ]
