"""Findings as text."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from evoengine.emulator.check.findings import (
    COUNT_FIELDS,
    Finding,
    FindingKind,
    FindingRecord,
    Space,
)

RACE = Finding(FindingKind.READ_AFTER_WRITE, Space.SHARED, -1, 4, 512, 0, 37, 2, 5, 1, 0, 0, 1024)
LINES = {1: "line 40", 2: "line 42"}


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            RACE,
            (
                "race: thread 37 reads shared+512 at line 42 that thread 5 wrote at line 40,"
                " without a barrier between (block 0, 1024 times)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.WRITE_AFTER_READ, times=1),
            (
                "race: thread 37 writes shared+512 at line 42 that thread 5 read at line 40,"
                " without a barrier between (block 0)"
            ),
        ),
        (
            replace(
                RACE,
                kind=FindingKind.WRITE_AFTER_WRITE,
                space=Space.GLOBAL,
                buffer=1,
                block=3,
                times=1,
            ),
            (
                "race: thread 37 writes out+512 at line 42 that thread 5 of block 0 wrote at line"
                " 40, without ordering between the blocks (block 3)"
            ),
        ),
        (
            replace(
                RACE,
                kind=FindingKind.OUT_OF_BOUNDS,
                space=Space.GLOBAL,
                buffer=0,
                distance=4,
                times=2,
            ),
            (
                "out of bounds: thread 37 accesses 4 bytes at x+512 at line 42, 4 bytes beyond its"
                " end (block 0, 2 times)"
            ),
        ),
        (
            replace(
                RACE,
                kind=FindingKind.OUT_OF_BOUNDS,
                space=Space.GLOBAL,
                buffer=7,
                offset=-8,
                distance=-8,
                times=1,
            ),
            (
                "out of bounds: thread 37 accesses 4 bytes at buffer 7-8 at line 42, 8 bytes before"
                " its start (block 0)"
            ),
        ),
        (
            replace(
                RACE,
                kind=FindingKind.OUT_OF_BOUNDS,
                space=Space.GLOBAL,
                buffer=-1,
                offset=-16,
                times=1,
            ),
            (
                "out of bounds: thread 37 accesses 4 bytes at an address at line 42,"
                " far from any buffer (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.UNINITIALISED, space=Space.LOCAL, times=1),
            "uninitialised: thread 37 reads local+512 at line 42, which was never written (block 0)",
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_READ, times=1),
            (
                "async copy: thread 37 reads shared+512 at line 42 before the copy of thread 5 at"
                " line 40 was waited for (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_WRITE, times=1),
            (
                "async copy: thread 37 writes shared+512 at line 42 before the copy of thread 5 at"
                " line 40 was waited for (block 0)"
            ),
        ),
    ],
)
def test_a_finding_names_threads_place_lines_and_block(finding: Finding, expected: str) -> None:
    assert finding.describe(LINES.get, ("x", "out")) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(FindingKind))
def test_every_kind_has_its_line(kind: FindingKind) -> None:
    assert "thread 37" in replace(RACE, kind=kind).describe()


def test_the_structures_have_the_layout_that_c_asserts() -> None:
    assert ctypes.sizeof(FindingRecord) == 72
    assert len(COUNT_FIELDS) == 28
