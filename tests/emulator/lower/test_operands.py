"""Unusual operands: carries, pairs of predicates, packed registers, parameters by address."""

from __future__ import annotations

import numpy as np
import pytest

from evoengine.emulator.device import Checks
from evoengine.emulator.emulator_errors import Unsupported
from tests.emulator.lower.small_kernels import emulator, run

LANES = np.arange(32, dtype=np.uint32)
BOTH = "selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p2; or.b32 %r9, %r2, %r3;"


def one_word(body: str, *arrays: np.ndarray) -> np.ndarray:
    """%r9 of every thread after `body`, in which %r0, %r1.. are the arrays' elements."""
    loads = " ".join(f"ld.global.u32 %r{place}, [%own{place}];" for place in range(len(arrays)))
    ran = run(
        f"{loads} {body} st.global.u32 [%own{len(arrays)}], %r9;",
        [*arrays, np.zeros(32, np.uint32)],
    )
    return ran.arrays[-1]


def test_a_carry_survives_a_branch_and_other_instructions() -> None:
    body = """
        add.cc.u32 %r2, %r0, %r1;
        setp.lt.u32 %p0, %lane, 7;
        @%p0 bra low;
        add.u32 %r3, %r2, 1;
        bra both;
    low:
        mul.lo.u32 %r3, %r2, 5;
    both:
        addc.u32 %r9, 100, 0;
    """
    a, b = LANES * np.uint32(0x0FFFFFFF), np.full(32, 0x80000000, np.uint32)
    carries = (a.astype(np.uint64) + b) >> np.uint64(32)
    assert (one_word(body, a, b) == 100 + carries).all()


def test_a_carry_is_kept_by_lanes_whose_guard_is_false() -> None:
    body = (
        "setp.lt.u32 %p0, %lane, 16; add.cc.u32 %r2, %r0, %r0; @%p0 add.cc.u32 %r2, 1, 1; addc.u32"
        " %r9, 0, 0;"
    )
    assert (one_word(body, np.full(32, 0x80000000, np.uint32)) == (LANES >= 16)).all()


def test_a_comparison_may_replace_the_predicate_that_it_combines() -> None:
    body = "setp.ge.u32 %p1, %lane, 8; setp.lt.and.u32 %p1|%p2, %lane, 16, %p1;" + BOTH
    want = np.where(LANES < 8, 0, np.where(LANES < 16, 1, 2))
    assert (one_word(body) == want).all()


def test_a_comparison_of_pairs_may_replace_the_predicate_that_it_combines() -> None:
    body = (
        "setp.lt.u32 %p1, %lane, 8; mov.b32 %r4, 0x3c003c00; setp.eq.and.f16x2 %p1|%p2, %r0, %r4,"
        " %p1;" + BOTH
    )
    given = np.where(LANES % 2 == 0, 0x3C000000, 0x3C003C00).astype(np.uint32)
    assert (one_word(body, given) == np.where(LANES < 8, np.where(LANES % 2 == 0, 2, 3), 0)).all()


def test_a_register_packed_from_others_differs_where_they_do() -> None:
    body = "cvt.u16.u32 %h0, %lane; cvt.u16.u32 %h1, %r0; mov.b32 %r9, {%h0, %h1};"
    assert (one_word(body, LANES * 3) == (LANES | LANES * 3 << 16)).all()


def test_the_opposite_of_a_predicate_differs_where_it_does() -> None:
    body = "setp.lt.u32 %p0, %lane, 5; not.pred %p1, %p0; setp.eq.or.u32 %p2, 1, 2, !%p0;" + BOTH
    assert (one_word(body) == np.where(LANES < 5, 0, 3)).all()


def test_indices_of_threads_stay_right_through_carries() -> None:
    body = "mad.lo.cc.u32 %r2, %t, 8, 4; madc.hi.u32 %r3, %t, 8, 0; add.u32 %r9, %r2, %r3;"
    assert (one_word(body) == LANES * 8 + 4).all()


@pytest.mark.parametrize("checks", [None, Checks()])
@pytest.mark.parametrize(
    "body",
    [
        "mov.b64 %x, p1; cvta.param.u64 %x, %x; add.u64 %x, %x, %w; ld.u32 %r, [%x+4];",
        "mov.b64 %x, p1; add.u64 %x, %x, %w; ld.param.u32 %r, [%x+4];",
        "mov.b64 %x, p1+4; cvta.param.u64 %x, %x; add.u64 %x, %x, %w; ld.u32 %r, [%x];",
    ],
)
def test_a_parameter_can_be_indexed_by_its_address(body: str, checks: Checks | None) -> None:
    device = emulator()
    ptx = f"""
    .version 8.4
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 p0, .param .align 4 .b8 p1[140]) {{
        .reg .b64 %x, %w, %out; .reg .b32 %r, %t;
        mov.u32 %t, %tid.x; mul.wide.u32 %w, %t, 4;
        {body}
        ld.param.u64 %out, [p0]; add.u64 %out, %out, %w; st.global.u32 [%out], %r;
        ret;
    }}"""
    program, out = device.load(ptx), device.memory.allocate(128)
    try:
        table = np.arange(35, dtype=np.uint32) * 11
        args = [out.to_bytes(8, "little"), table.tobytes()]
        report = program.launch("k", grid=(1, 1, 1), block=(32, 1, 1), args=args, checks=checks)
        assert (device.memory.view(out, 128).view(np.uint32) == table[1:33]).all()
        assert not report.findings
    finally:
        device.memory.free(out)
        program.close()


@pytest.mark.parametrize(
    "text",
    [
        "add.rn.ftz.bf16 %h0, %h1, %h2;",
        "ex2.approx.bf16 %h0, %h1;",
        "cvt.rn.satfinite.f16.f32 %h0, %r0;",
        "tanh.approx.ftz.f32 %r0, %r1;",
    ],
)
def test_an_unknown_special_register_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported, match=text.split()[0]):
        run(text, [LANES])
