"""A five-point stencil in double precision with a fixed border."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("whole_tiles", 32, 16), _case("odd_sizes", 53, 27), _case("a_line", 40, 1)]


def _case(name: str, nx: int, ny: int) -> Case:
    u = np.random.default_rng(nx).standard_normal((ny, nx))
    expected = u.copy()
    neighbours = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
    expected[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (neighbours - 4 * u[1:-1, 1:-1])
    args = (In(u), Out((ny, nx), "float64"), np.int32(nx), np.int32(ny), np.float64(0.1))
    grid = (-(-nx // 16), -(-ny // 8), 1)
    return Case(name, "stencil_2d", grid, (16, 8, 1), args, {1: expected}, atol=1e-14, rtol=1e-14)
