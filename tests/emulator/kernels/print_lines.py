"""printf from several blocks; its lines come in any order."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 75, 32), _case("one_thread", 1, 1)]


def _case(name: str, n: int, block: int) -> Case:
    x = (np.arange(n) * 0.37 - 3).astype(np.float32)
    lines = [
        f"i={i} x={x[i]:.3f} hex={i * 0x01010101:08x} c={chr(97 + i % 26)}"
        f" s={'odd' if i & 1 else 'even'}%"
        for i in range(3, n, 20)
    ]
    if n > 5:
        lines.append(
            f"wide -5000000000 18446744073709551615 {42:5d}|{42:<5d}|{float(x[5]) * 1e10:e}"
        )
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name,
        "print_lines",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: np.arange(n, dtype=np.int32)},
        printed=(*lines, "no arguments"),
    )
