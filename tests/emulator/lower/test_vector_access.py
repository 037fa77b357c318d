"""Vector loads and stores at scattered addresses: each lane's own row, of any width, under a
guard.
"""

from __future__ import annotations

import numpy as np
import pytest

from evoengine.emulator.device import Emulator
from tests.emulator.lower import small_kernels
from tests.emulator.lower.small_kernels import run

LANES = 32
FORMS = [(bits, count) for bits in (8, 16, 32, 64) for count in (2, 4, 8) if bits * count <= 256]
REGISTER = {8: "h", 16: "h", 32: "r", 64: "q"}


def _body(bits: int, count: int, guard: str) -> str:
    """Lane `l` moves row 31 - l of the first array to row (7 l) % 32 of the second."""
    size = bits * count // 8
    registers = "{" + ", ".join(f"%{REGISTER[bits]}{10 + item}" for item in range(count)) + "}"
    return f"""
    sub.u32 %r0, 31, %lane; mul.wide.u32 %q0, %r0, {size}; add.s64 %q1, %rd0, %q0;
    mul.lo.u32 %r1, %lane, 7; and.b32 %r1, %r1, 31; mul.wide.u32 %q2, %r1, {size}; add.s64 %q3, %rd1, %q2;
    and.b32 %r2, %lane, 3; setp.ne.u32 %p0, %r2, 1;
    {guard} ld.global.v{count}.b{bits} {registers}, [%q1];
    {guard} st.global.v{count}.b{bits} [%q3], {registers};"""


def _expected(rows: np.ndarray, guarded: bool) -> np.ndarray:
    found = np.zeros_like(rows)
    for lane in range(LANES):
        if not guarded or lane % 4 != 1:
            found[7 * lane % LANES] = rows[LANES - 1 - lane]
    return found


@pytest.mark.parametrize("guard", ["", "@%p0"])
@pytest.mark.parametrize(("bits", "count"), FORMS)
def test_every_lane_moves_its_own_row(bits: int, count: int, guard: str) -> None:
    rows = np.random.default_rng(bits + count).integers(
        0, 256, (LANES, bits * count // 8), dtype=np.uint8
    )
    got = run(_body(bits, count, guard), [rows, np.zeros_like(rows)]).arrays[1]
    np.testing.assert_array_equal(got, _expected(rows, bool(guard)))


def test_without_vector_instructions_of_the_host_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Emulator(target="l4", threads=1, without=("avx",))
    monkeypatch.setattr(small_kernels, "emulator", lambda: plain)
    try:
        for bits, count in FORMS:
            rows = np.random.default_rng(bits).integers(
                0, 256, (LANES, bits * count // 8), dtype=np.uint8
            )
            got = run(_body(bits, count, "@%p0"), [rows, np.zeros_like(rows)]).arrays[1]
            np.testing.assert_array_equal(got, _expected(rows, guarded=True))
    finally:
        plain.close()
