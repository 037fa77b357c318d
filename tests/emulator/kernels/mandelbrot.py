"""The Mandelbrot set: a loop with a break at a different time in every lane."""

import numpy as np

from tests.emulator.corpus import Case, Out


def cases() -> list[Case]:
    return [_case("whole_warps", 64, 32, 0.04, 200), _case("odd_sizes", 45, 29, 0.05, 1000)]


def _case(name: str, width: int, height: int, step: float, iterations: int) -> Case:
    left, top, step = np.float32(-2.0), np.float32(-0.7), np.float32(step)
    cx = np.broadcast_to(left + np.arange(width, dtype=np.float32) * step, (height, width))
    cy = np.broadcast_to(
        (top + np.arange(height, dtype=np.float32) * step)[:, None], (height, width)
    )
    zx, zy, counts = np.zeros_like(cx), np.zeros_like(cy), np.zeros(cx.shape, np.uint16)
    alive = np.ones(cx.shape, bool)
    for _ in range(iterations):
        xx, yy = zx * zx, zy * zy
        alive &= ~(xx + yy > 4)
        zy = np.where(alive, np.float32(2) * zx * zy + cy, zy)
        zx = np.where(alive, xx - yy + cx, zx)
        counts += alive
    args = (
        Out(counts.shape, "uint16"),
        np.int32(width),
        np.int32(height),
        left,
        top,
        step,
        np.int32(iterations),
    )
    return Case(
        name, "mandelbrot", (-(-width // 16), -(-height // 4), 1), (16, 4, 1), args, {0: counts}
    )
