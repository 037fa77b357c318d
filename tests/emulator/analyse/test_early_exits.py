"""Blocks that some lanes reach after others have exited."""

from __future__ import annotations

import pytest

from evoengine.emulator.analyse.cfg_builder import build_cfg
from evoengine.emulator.analyse.early_exits import blocks_after_exits
from evoengine.emulator.analyse.uniformity import analyse_uniformity
from tests.emulator.analyse.small_functions import function, number

PARTS = "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; setp.gt.u32 %p2, %r9, 7; mov.u32 %r2, 0;"
LOOP = "again: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 9; @%p3 bra again;"


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        (f"{PARTS} {LOOP} tail: add.u32 %r3, %r2, 1; ret;", set()),
        (
            f"{PARTS} {LOOP} @%p1 ret; st.shared.u32 [tile], %r2; ret;",
            set(),
        ),  # only the rest of the block follows
        (f"{PARTS} @%p1 ret; {LOOP} ret;", {"again"}),
        (f"{PARTS} @%p2 ret; {LOOP} ret;", set()),  # all of them, or none
        (
            f"{PARTS} @%p1 bra tail; @%p2 ret; tail: add.u32 %r3, %r2, 1; {LOOP} ret;",
            {"tail", "again"},
        ),  # only some lanes come to it
    ],
)
def test_blocks_after_a_divergent_exit(body: str, labels: set[str]) -> None:
    kernel = function(body)
    cfg = build_cfg(kernel)
    found = blocks_after_exits(cfg, analyse_uniformity(kernel, cfg, (128, 1, 1)))
    assert {
        label for label in ("again", "tail") if label in body and number(cfg, label) in found
    } == labels
