"""Sizes from 0 to the whole row."""

import numpy as np

from tests.emulator.corpus import Case, In, Out

PITCH, TILE = 80, 67


def cases() -> list[Case]:
    random = np.random.default_rng(5)
    return [
        _case("random_bytes", random.integers(0, 256, (32, PITCH))),
        _case("few_values", random.integers(6, 9, (32, PITCH))),
    ]


def _case(name: str, values: np.ndarray) -> Case:
    source = values.astype(np.uint8)
    sizes = np.linspace(0, PITCH - 1, 32).astype(np.int32)
    rows, orders = zip(
        *(_row(t, source[t], int(size)) for t, size in enumerate(sizes)), strict=True
    )
    args = (
        In(source),
        Out((32, PITCH), "uint8"),
        In(sizes),
        np.int32(PITCH),
        Out((32, 2), "int32"),
    )
    return Case(
        name,
        "bytes_moved",
        (1, 1, 1),
        (32, 1, 1),
        args,
        {1: np.stack(rows), 4: np.array(orders, np.int32)},
    )


def _row(t: int, source: np.ndarray, size: int) -> tuple[np.ndarray, tuple[int, int]]:
    row = bytearray([7]) * PITCH
    row[1 : 1 + size] = source[:size].tobytes()
    own = row[:TILE]
    own[3:5] = bytes([t, t])
    own[5 : 5 + size // 2] = own[: size // 2]
    row[3 : 3 + size // 3] = row[8 : 8 + size // 3]
    row[-9:] = own[1:10]
    return np.frombuffer(bytes(row), np.uint8), (int(row[:TILE] < own), row.find(7))
