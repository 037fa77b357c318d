"""A transpose through a padded tile in shared memory, for elements of 1, 2, 4 and 8 bytes."""

import numpy as np

from tests.emulator.corpus import Case, In, Out

TYPES = {"float": "float32", "double": "float64", "unsigned char": "uint8", "short": "int16"}


def cases() -> list[Case]:
    sizes = {"float": (96, 64), "double": (33, 65), "unsigned char": (70, 31), "short": (1, 50)}
    return [_case(kind, *size) for kind, size in sizes.items()]


def _case(kind: str, rows: int, cols: int) -> Case:
    x = (np.random.default_rng(rows).random((rows, cols)) * 200).astype(TYPES[kind])
    args = (In(x), Out((cols, rows), TYPES[kind]), np.int32(rows), np.int32(cols))
    grid = (-(-cols // 32), -(-rows // 32), 1)
    return Case(
        kind.replace(" ", "_"), f"transpose_tiled<{kind}>", grid, (32, 8, 1), args, {1: x.T}
    )
