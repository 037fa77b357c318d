"""Groups of contiguous registers: those of fragments, unless they conflict."""

from __future__ import annotations

import pytest

from evoengine.emulator.analyse.fragments import find_fragment_groups
from tests.emulator.analyse.small_functions import cfg

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8"


def groups(body: str, without: str = "") -> set[str]:
    """The groups, each as "r0 r1", without the percent signs; `without`: a register that cannot be
    grouped.
    """
    found = find_fragment_groups(cfg(body + " ret;"), lambda name: name != without)
    return {" ".join(name[1:] for name in names) for names in found}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            (
                f"{MMA} {{%r0,%r1,%r2,%r3}}, {{%r4,%r5,%r6,%r7}}, {{%r8,%r9}},"
                " {%r10,%r11,%r12,%r13};"
            ),
            {"r0 r1 r2 r3", "r4 r5 r6 r7", "r8 r9", "r10 r11 r12 r13"},
        ),
        (  # a part of what a load gives, in its order
            (
                f"{LOAD}.x4.shared.b16 {{%r4,%r5,%r6,%r7}}, [%r19];{MMA} {{%r0,%r1,%r2,%r3}},"
                " {%r8,%r9,%r10,%r11}, {%r6,%r7}, {%r0,%r1,%r2,%r3};"
            ),
            {"r0 r1 r2 r3", "r4 r5 r6 r7", "r8 r9 r10 r11"},
        ),
        (  # two loads for one fragment
            (
                f"{LOAD}.x2.shared.b16 {{%r4,%r5}}, [%r19]; {LOAD}.x2.shared.b16 {{%r6,%r7}},"
                f" [%r19];{MMA} {{%r0,%r1,%r2,%r3}}, {{%r4,%r5,%r6,%r7}}, {{%r8,%r9}},"
                " {%r0,%r1,%r2,%r3};"
            ),
            {"r0 r1 r2 r3", "r4 r5 r6 r7", "r8 r9"},
        ),
        (  # the first order stays
            (
                f"{LOAD}.x2.shared.b16 {{%r4,%r5}}, [%r19];"
                " stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r19], {%r5,%r4};"
            ),
            {"r4 r5"},
        ),
        (  # one register cannot follow itself
            (
                f"{LOAD}.x2.shared.b16 {{%r4,%r5}}, [%r19];"
                " stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r19], {%r4,%r5,%r4,%r5};"
            ),
            {"r4 r5"},
        ),
        ("add.s32 %r1, %r2, %r3;", set()),
    ],
)
def test_fragments_become_groups(body: str, expected: set[str]) -> None:
    assert groups(body) == expected


def test_a_fragment_with_a_register_that_cannot_be_grouped_is_left_alone() -> None:
    body = f"{LOAD}.x2.shared.b16 {{%r4,%r5}}, [%r19]; {LOAD}.x2.shared.b16 {{%r6,%r7}}, [%r19];"
    assert groups(body, without="%r5") == {"r6 r7"}
