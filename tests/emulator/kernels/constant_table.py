"""Constant memory: tables, a struct and a two-dimensional array."""

import zlib

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 150, 13), _case("one_byte_each", 40, 1)]


def _case(name: str, n: int, length: int) -> Case:
    data, i = np.random.default_rng(n).integers(0, 256, (n, length), dtype=np.uint8), np.arange(n)
    crc = np.array([zlib.crc32(row.tobytes()) for row in data], np.uint32)
    scaled = (0.5 * np.array([-1, 2, -30000])[i % 3] + ord("q")).astype(np.float32)
    points = np.array([[0.0, 0.5, 1.0], [-1.0, 1e-300, 3.0]])[i & 1, i % 3]
    args = (
        In(data),
        Out(n, "uint32"),
        Out(n, "float32"),
        Out(n, "float64"),
        np.int32(length),
        np.int32(n),
    )
    return Case(
        name,
        "constant_table",
        (-(-n // 64), 1, 1),
        (64, 1, 1),
        args,
        {1: crc, 2: scaled, 3: points},
    )
