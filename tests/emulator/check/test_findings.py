"""Findings as text."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import pytest

from evoengine.emulator.check.buffer_shape import BufferShape
from evoengine.emulator.check.finding_words import words_of
from evoengine.emulator.check.findings import (
    COUNT_FIELDS,
    Finding,
    FindingKind,
    FindingRecord,
    Space,
    causes_first,
)

RACE = Finding(FindingKind.READ_AFTER_WRITE, Space.SHARED, -1, 4, 512, 0, 37, 2, 5, 1, 0, 0, 1024)
LINES = {1: "line 40", 2: "line 42"}


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (
            RACE,
            (
                "race: no __syncthreads() between the write at line 40 (thread 5) and the read at"
                " line 42 (thread 37) of shared+512 (block 0, 1024 times)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.WRITE_AFTER_READ, other_thread=36, times=1),
            (
                "race: no __syncwarp() between the read at line 40 (thread 36) and the write at line"
                " 42 (thread 37) of shared+512 (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.WRITE_AFTER_READ, distance=1, times=1),
            (
                "race: no __syncthreads() between the write at line 42 (thread 37) and the read at"
                " line 40 (thread 5) of shared+512, which came first (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.WRITE_AFTER_READ, other_site=2, times=1),
            (
                "race: no __syncthreads() and no atomic operation between the read at line 42"
                " (thread 5) and the write at line 42 (thread 37) of shared+512 (block 0)"
            ),
        ),
        (
            replace(
                RACE,
                kind=FindingKind.READ_AFTER_WRITE,
                space=Space.GLOBAL,
                buffer=1,
                block=3,
                times=1,
            ),
            (
                "race: thread 37 reads out+512 at line 42 that thread 5 of block 0 wrote at line 40;"
                " blocks of a launch run in any order unless atomic operations with"
                " __threadfence() order them (block 3)"
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
                " 40, without an atomic operation; blocks of a launch run in any order (block 3)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.MIXED_BARRIER, offset=3, other_site=2, times=1),
            (
                "mixed barrier: the warps of thread 5 (line 42) and thread 37 (line 42) wait at"
                " barrier 3 with different warps, and nothing orders them: either may go on with"
                " those of the other; each group of warps needs a number of its own, or the barrier"
                " must count all of them (block 0)"
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
            replace(
                RACE, kind=FindingKind.UNINITIALISED, space=Space.LOCAL, other_site=-1, times=1
            ),
            (
                "uninitialised: thread 37 reads local+512 at line 42, local memory, an array of the"
                " thread, to which nothing was written before (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.UNINITIALISED, distance=16, times=1),
            (
                "uninitialised: thread 37 reads shared+512 at line 42, shared memory to which"
                " nothing was written before; it lies in a gap of 16 bytes in what line 40 wrote, as"
                " when padded rows are read with another leading dimension (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_READ, times=1),
            (
                "async copy: thread 37 reads shared+512 at line 42 before the cp.async at line 40"
                " (thread 5) is complete; the cp.async.wait_group between them must be 0, in that"
                " thread, with __syncthreads() after it, or a stage is meant that is not being"
                " filled (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_READ, other_thread=37, distance=1, times=1),
            (
                "async copy: thread 37 reads shared+512 at line 42 before the cp.async at line 40"
                " (thread 37) is complete; the cp.async.wait_group between them must be 1 or"
                " less (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_READ, other_thread=37, distance=-1, times=1),
            (
                "async copy: thread 37 reads shared+512 at line 42 before the cp.async at line 40"
                " (thread 37) is complete; its group is not committed: cp.async.commit_group and"
                " wait_group are missing (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_READ, distance=-2, times=1),
            (
                "async copy: thread 37 reads shared+512 at line 42 before the cp.async at line 40"
                " (thread 5) is complete; cp.async.wait_group is missing between them, in that"
                " thread, with __syncthreads() after it (block 0)"
            ),
        ),
        (
            replace(RACE, kind=FindingKind.ASYNC_WRITE, distance=-3, times=1),
            (
                "async copy: thread 37 writes shared+512 at line 42 before the cp.async at line 40"
                " (thread 5) is complete (block 0)"
            ),
        ),
    ],
)
def test_a_finding_names_threads_place_lines_and_block(finding: Finding, expected: str) -> None:
    assert words_of(finding, LINES.get, ("x", "out")) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", list(FindingKind))
def test_every_kind_has_its_line(kind: FindingKind) -> None:
    assert "thread 37" in words_of(replace(RACE, kind=kind))


def test_a_race_in_shared_memory_is_why_nothing_was_written_there_yet() -> None:
    unwritten = replace(RACE, kind=FindingKind.UNINITIALISED, site=1, other_site=-1)
    other = replace(unwritten, site=7)
    early = replace(RACE, kind=FindingKind.WRITE_AFTER_READ, distance=1)
    late = replace(early, distance=0)
    assert causes_first((unwritten, other, early)) == (early, unwritten, other)
    assert causes_first((unwritten, other, late)) == (late, unwritten, other)
    elsewhere = replace(RACE, space=Space.GLOBAL)
    assert causes_first((unwritten, elsewhere)) == (unwritten, elsewhere)


def test_races_between_warps_come_before_those_of_lanes() -> None:
    lanes = replace(RACE, other_thread=36)
    beyond = replace(RACE, kind=FindingKind.OUT_OF_BOUNDS, site=9)
    assert causes_first((lanes, beyond, RACE)) == (beyond, RACE, lanes)
    assert causes_first((lanes, beyond)) == (lanes, beyond)
    elsewhere = replace(RACE, space=Space.GLOBAL)
    assert causes_first((lanes, elsewhere)) == (lanes, elsewhere)
    of_two_blocks = replace(lanes, other_block=4)
    assert causes_first((lanes, of_two_blocks)) == (of_two_blocks, lanes)


def test_races_of_an_instruction_that_leaves_its_buffer_come_after_that() -> None:
    race = replace(RACE, kind=FindingKind.WRITE_AFTER_WRITE, space=Space.GLOBAL, buffer=1, block=3)
    stray = replace(race, kind=FindingKind.OUT_OF_BOUNDS)
    assert causes_first((race, stray)) == (stray, race)
    elsewhere = replace(stray, site=race.site + 1)
    assert causes_first((race, elsewhere)) == (race, elsewhere)


def test_elements_are_named_by_row_and_column_where_the_shape_is_known() -> None:
    race = replace(RACE, kind=FindingKind.WRITE_AFTER_WRITE, space=Space.GLOBAL, buffer=1, block=3)
    shapes = [None, BufferShape((64, 70), 4)]
    said = words_of(race, "line {}".format, ["x", "out"], shapes=shapes)
    assert "writes out+512 (row 1, column 58) at line 2" in said
    said = words_of(replace(race, buffer=0), "line {}".format, ["x", "out"], shapes=shapes)
    assert "writes x+512 at line 2" in said


def test_the_structures_have_the_layout_that_c_asserts() -> None:
    assert ctypes.sizeof(FindingRecord) == 80
    assert len(COUNT_FIELDS) == 31
