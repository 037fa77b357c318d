"""Tiles between memory and registers: wmma.load and store beyond their buffers, ldmatrix, stmatrix,
movmatrix.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from tests.emulator.lower.small_kernels import (
    emulator,
    listed,
    load_registers,
    run,
    store_registers,
)

RNG = np.random.default_rng(9)
LAST_LINE_OUTSIDE = np.arange(15 * 16 + 8, dtype=np.float32)


def test_a_tile_beyond_its_buffer_is_found_and_not_read() -> None:
    body = f"""
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {listed("r", 0, 8)}, [%rd0], 16; {store_registers(0, 8, 1)}"""
    ran = run(body, [LAST_LINE_OUTSIDE, np.full((8, 32), 5, np.uint32)], checks=Checks())
    assert ran.kinds() == ["OUT_OF_BOUNDS"]
    assert not ran.arrays[1].any()


def test_a_tile_beyond_its_buffer_is_found_and_not_written() -> None:
    body = f"""
    mov.u32 %r0, 9; wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd0], {{{", ".join(["%r0"] * 8)}}}, 16;"""
    ran = run(body, [LAST_LINE_OUTSIDE], checks=Checks())
    assert ran.kinds() == ["OUT_OF_BOUNDS"]
    np.testing.assert_array_equal(ran.arrays[0], LAST_LINE_OUTSIDE)


def test_an_uninitialised_tile_of_shared_memory_is_found() -> None:
    body = (
        f"mov.u64 %q0, tile; wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {listed('r', 0, 8)},"
        " [%q0], 16;"
    )
    assert run(body, [], shared=512, checks=Checks()).kinds() == ["UNINITIALISED"]


WRITE_SHARED = (
    "mov.u64 %q0, tile; shl.b64 %q1, %wide, 2; add.s64 %q1, %q0, %q1; st.shared.v4.u32 [%q1], {%t,"
    " %t, %t, %t};"
)


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_a_tile_that_another_warp_writes_needs_a_barrier(barrier: str) -> None:
    body = (
        f"{WRITE_SHARED} {barrier} wmma.load.c.sync.aligned.row.m16n16k16.shared.f32"
        f" {listed('r', 0, 8)}, [%q0], 16;"
    )
    assert run(body, [], threads=64, shared=1024, checks=Checks()).kinds() == (
        [] if barrier else ["READ_AFTER_WRITE", "UNINITIALISED", "WRITE_AFTER_READ"]
    )


_libc = ctypes.CDLL(None)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


@pytest.mark.parametrize("stride", [16, 0xFFFFFFFF])
def test_no_tile_reaches_beyond_the_arena(stride: int) -> None:
    memory = emulator().memory
    end, page = memory.base + (1 << memory.bits), 4 * mmap.PAGESIZE
    lines = (
        [end - page]
        if stride == 16
        else [end - 64 - ((1 << memory.bits) // 256) * 4 * line - page // 2 for line in range(16)]
    )
    lines = [line // mmap.PAGESIZE * mmap.PAGESIZE for line in lines]
    for line in lines:
        assert not _libc.mprotect(line, page, mmap.PROT_READ | mmap.PROT_WRITE)
    try:
        memory.view(end - 64, 64)[:] = 7
        body = f"""
        mov.u64 %q0, {end - 16}; mov.u32 %r9, {stride};
        wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {listed("r", 0, 8)}, [%q0], %r9; {store_registers(0, 8, 0)}"""
        # an access beyond the end would end the process
        got = run(body, [np.zeros((8, 32), np.uint32)]).arrays[0]
        assert (got == 0x07070707).sum() == 16
    finally:
        for line in lines:
            _libc.madvise(ctypes.c_void_p(line), ctypes.c_size_t(page), 4)
            _libc.mprotect(line, page, 0)


# ---------------------------------------------------------------- ldmatrix and its kin

ROWS = "mov.u64 %q0, tile; shl.b64 %q1, %wide, 2; add.s64 %q1, %q0, %q1;"  # of 16 bytes, one a lane
MATRICES = RNG.integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_ldmatrix_gives_each_lane_its_pair(count: int, trans: str, checks: Checks | None) -> None:
    body = f"""
    {ROWS} mul.wide.u32 %q2, %lane, 16; add.s64 %q2, %rd0, %q2; ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%q2];
    st.shared.v4.u32 [%q1], {{%r10, %r11, %r12, %r13}};
    cvt.u32.u64 %r20, %q1; ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {listed("r", 0, count)}, [%r20];
    {store_registers(0, count, 1)}"""
    ran = run(body, [MATRICES, np.zeros((count, 32), np.uint32)], shared=512, checks=checks)
    held = MATRICES[:count].transpose(0, 2, 1) if trans else MATRICES[:count]
    np.testing.assert_array_equal(
        ran.arrays[1], np.ascontiguousarray(held).reshape(count, 64).view(np.uint32)
    )
    assert ran.kinds() == []


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("checks", [None, Checks()], ids=["", "checked"])
def test_stmatrix_puts_each_pair_where_ldmatrix_takes_it(
    count: int, trans: str, checks: Checks | None
) -> None:
    body = f"""
    mul.wide.u32 %q1, %lane, 16; add.s64 %q1, %rd1, %q1; {load_registers(0, count, 0)}
    stmatrix.sync.aligned.m8n8.x{count}{trans}.b16 [%q1], {listed("r", 0, count)};"""
    ran = run(body, [MATRICES[:count], np.zeros((count, 8, 8), np.uint16)], checks=checks)
    np.testing.assert_array_equal(
        ran.arrays[1], MATRICES[:count].transpose(0, 2, 1) if trans else MATRICES[:count]
    )
    assert ran.kinds() == []


def test_movmatrix_transposes_in_registers() -> None:
    body = (
        "ld.global.b32 %r0, [%own0]; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0; st.global.b32"
        " [%own1], %r1;"
    )
    got = run(body, [MATRICES[0], np.zeros((8, 8), np.uint16)]).arrays[1]
    np.testing.assert_array_equal(got, MATRICES[0].T)


def test_rows_outside_shared_memory_are_found_and_read_as_zero() -> None:
    body = f"""
    {ROWS} st.shared.v4.u32 [%q1], {{%lane, 1, 2, 3}}; setp.eq.u32 %p0, %lane, 5; @%p0 add.s64 %q1, %q1, 4096;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [%q1]; st.global.u32 [%own0], %r0;"""
    ran = run(body, [np.full(32, 9, np.uint32)], shared=512, checks=Checks())
    assert ran.kinds() == ["OUT_OF_BOUNDS"]
    assert ran.arrays[0].reshape(8, 4).tolist() == [
        [row, 1, 2, 3] if row != 5 else [0, 0, 0, 0] for row in range(8)
    ]


def test_inactive_lanes_name_no_row() -> None:
    body = f"""
    {ROWS} st.shared.v4.u32 [%q1], {{%lane, 1, 2, 3}}; setp.lt.u32 %p0, %lane, 8; @!%p0 mov.u64 %q1, 64; mov.u32 %r0, 9;
    @%p0 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r0}}, [%q1]; st.global.u32 [%own0], %r0;"""
    got = run(body, [np.zeros(32, np.uint32)], shared=512).arrays[0]
    assert got.tolist() == [0, 1, 2, 3, 1, 1, 2, 3] + [9] * 24
