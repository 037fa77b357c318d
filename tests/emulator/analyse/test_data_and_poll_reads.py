"""What a value that is read is used for: data, or a poll before an atomic operation."""

from __future__ import annotations

import pytest

from evoengine.emulator.analyse.atomic_polls import find_poll_loads
from evoengine.emulator.analyse.data_registers import data_registers
from tests.emulator.analyse.small_functions import cfg, function

LOAD = "ld.param.u64 %d1, [a]; ld.volatile.global.u32 %r1, [%d1];"


@pytest.mark.parametrize(
    ("behind", "is_data"),
    [
        (
            "add.f32 %r2, %r1, %r3; setp.lt.f32 %p1, %r2, 0f00000000; @%p1 bra end;",
            True,
        ),  # what is computed from it decides
        ("st.global.u32 [%d1], %r1;", True),
        (
            (
                "add.u32 %r2, %r1, 1; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; st.global.u32 [%d1],"
                " %r3;"
            ),
            True,
        ),
        ("mov.b64 %d2, {%r1, %r2}; st.global.u64 [%d1], %d2;", True),
        ("red.global.add.f32 [%d1], %r1;", True),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra end;", False),
        ("shr.u32 %r2, %r1, 8; setp.eq.u32 %p1, %r2, 0; @%p1 bra end;", False),
        ("atom.global.cas.b32 %r2, [%d1], %r1, 5; st.global.u32 [%d1], %r2;", False),
        ("red.global.add.u32 [%d1], %r1;", False),
        (
            "cvt.u64.u32 %d2, %r1; add.u64 %d3, %d1, %d2; st.global.u32 [%d3], 1;",
            False,
        ),  # an address
        ("st.shared.u32 [tile], %r1;", False),  # others may decide by it
        ("", False),  # it is never read
    ],
)
def test_data_registers_control_nothing(behind: str, is_data: bool) -> None:
    assert ("%r1" in data_registers(function(f"{LOAD} {behind} end: ret;"))) == is_data


@pytest.mark.parametrize(
    ("body", "polls"),
    [
        (
            (
                "ld.global.u32 %r1, [%d1]; setp.lt.u32 %p1, %r1, 5; @%p1 bra end;"
                " red.global.max.u32 [%d1], 5;"
            ),
            True,
        ),
        (
            (
                "ld.shared.u32 %r1, [tile]; more: atom.shared.cas.b32 %r2, [tile], %r1, 5;"
                " setp.ne.u32 %p1, %r1, %r2; @%p1 bra more;"
            ),
            True,
        ),
        ("red.global.max.u32 [%d1], 5; ld.global.u32 %r1, [%d1];", False),  # it comes too late
        ("ld.global.u32 %r1, [%d1]; bar.sync 0; red.global.max.u32 [%d1], 5;", False),
        ("ld.global.u32 %r1, [%d1+4]; red.global.max.u32 [%d1], 5;", False),
        (
            "ld.global.u32 %r1, [%d1]; add.u64 %d1, %d1, 4; red.global.max.u32 [%d1], 5;",
            False,
        ),  # by then another place
    ],
)
def test_a_poll_comes_before_an_atomic_operation_on_the_same_address(
    body: str, polls: bool
) -> None:
    found = cfg(f"ld.param.u64 %d1, [a]; {body} end: ret;")
    loads = [
        item
        for node in found.nodes
        for item in node.instructions
        if item.op == "ld" and not item.has("param")
    ]
    assert [id(item) in find_poll_loads(found) for item in loads] == [polls]
