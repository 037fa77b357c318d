"""uchar4, short2, int2, int4, float4, double2 and longlong2 as elements of buffers."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 333, 64), _case("one_element", 1, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    pixels = rng.integers(0, 256, (n, 4), dtype=np.uint8)
    boxes = rng.integers(-1000, 1000, (n, 4), dtype=np.int32)
    points = rng.standard_normal((n, 2))
    steps = rng.integers(-32768, 32768, (n, 2), dtype=np.int16)
    colours = pixels.astype(np.float32)
    colours[:, :3] *= colours[:, 3:] / 256
    wide = pixels.astype(np.int64)
    grey = ((wide[:, 0] * 77 + wide[:, 1] * 150 + wide[:, 2] * 29) >> 8).astype(np.uint8)
    centres = np.trunc((boxes[:, :2] + boxes[:, 2:]) / 2).astype(np.int32)
    long = steps.astype(np.int64)
    args = (
        In(pixels),
        Out((n, 4), "float32"),
        Out(n, "uint8"),
        In(boxes),
        Out((n, 2), "int32"),
        In(points),
        Out(n, "float64"),
        In(steps),
        Out((n, 2), "int64"),
        np.int32(n),
    )
    expected = {
        1: colours,
        2: grey,
        4: centres,
        6: (points**2).sum(1),
        8: np.stack([long.prod(1), long.sum(1)], 1),
    }
    return Case(name, "vector_types", (-(-n // block), 1, 1), (block, 1, 1), args, expected)
