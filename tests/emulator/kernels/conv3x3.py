"""A 3 x 3 convolution with zero padding, several channels and images."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_sizes", 2, 3, 19, 33), _case("smaller_than_the_filter", 1, 2, 1, 2)]


def _case(name: str, images: int, channels: int, h: int, w: int) -> Case:
    rng = np.random.default_rng(h)
    image = rng.standard_normal((images, channels, h, w)).astype(np.float32)
    weights = rng.standard_normal((channels, 3, 3)).astype(np.float32)
    padded = np.pad(image.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros((images, h, w))
    for dy in range(3):
        for dx in range(3):
            expected += np.einsum(
                "bchw,c->bhw", padded[:, :, dy : dy + h, dx : dx + w], weights[:, dy, dx]
            )
    args = (
        In(image),
        In(weights),
        Out((images, h, w), "float32"),
        np.int32(channels),
        np.int32(h),
        np.int32(w),
    )
    grid = (-(-w // 16), -(-h // 8), images)
    return Case(name, "conv3x3", grid, (16, 8, 1), args, {2: expected}, atol=1e-5, rtol=1e-5)
