"""CSR matrix times vector with 1, 8 and 32 lanes a row; empty and long rows."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("thread_a_row", 1, 201),
        _case("eight_lanes_a_row", 8, 77),
        _case("warp_a_row", 32, 33),
    ]


def _case(name: str, lanes: int, rows: int) -> Case:
    rng = np.random.default_rng(rows)
    lengths = rng.integers(0, 40, rows)
    lengths[rows // 2] = 0
    row_ptr = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
    col_idx = rng.integers(0, rows, row_ptr[-1], dtype=np.int32)
    vals, x = (
        rng.standard_normal(row_ptr[-1]).astype(np.float32),
        rng.standard_normal(rows).astype(np.float32),
    )
    expected = np.bincount(
        np.repeat(np.arange(rows), lengths), vals.astype(np.float64) * x[col_idx], rows
    )
    args = (In(row_ptr), In(col_idx), In(vals), In(x), Out(rows, "float32"), np.int32(rows))
    grid = (-(-rows * lanes // 64), 1, 1)
    return Case(
        name, f"spmv_csr<{lanes}>", grid, (64, 1, 1), args, {4: expected}, atol=1e-5, rtol=1e-5
    )
