"""Machine code and NVIDIA's tools in words."""

from __future__ import annotations

import json

from evoengine.records import SanitizerFinding
from evoengine.report import as_json
from evoengine.report.resource_tables import machine_code_lines
from evoengine.report.rows_from_store import resource_rows
from evoengine.report.tool_reports import profile_report, sanitizer_report
from tests.candidate.test_machine_facts import CODE, kernel
from tests.evaluate.test_tool_outputs import PROFILE
from tests.report.test_views import show

OLD = kernel("sm_90", 64, 0, 0)


def test_machine_code_is_told_line_by_line_and_not_of_earlier_verdicts() -> None:
    rows = resource_rows([OLD, kernel("sm_90", 64, 0, 256, CODE)], None)
    lines = [line.plain for line in machine_code_lines(rows)]
    assert lines[:3] == [
        "machine code (counted, not measured)",
        "k (sm_90)",
        "  4 blocks of 256 threads fit on an SM: 32 of 64 warps (50%), limited by registers",
    ]
    assert lines.count("k (sm_90)") == 1
    assert machine_code_lines(resource_rows([OLD], None)) == []


def test_json_has_the_counts_and_the_words() -> None:
    (row,) = json.loads(as_json.dumps(resource_rows([kernel("sm_90", 64, 0, 256, CODE)], None)))
    assert row["machine_code"]["tensor_shapes"] == [["mma m16n8k16", 16]]
    assert row["block_threads"] == 256
    assert "3 block barriers in loops" in row["facts"]


def test_a_profile_in_words() -> None:
    from evoengine.evaluate.profiler_output import profiles

    text = show(profile_report(profiles(PROFILE, "main")), width=200)
    for words in (
        'main: adamw(float *, "x")',
        "time: 31.46 us",
        "arithmetic and issue 52%, memory system 88%, DRAM 86%",
        "memory: DRAM 2131 GB/s, L1 hits 12%",
        "busiest pipes: fma 45%, alu 20%",
        "occupancy reached: 71% of the warps an SM can hold",
        "warps waited for: data from global or local memory 87%, other warps at a block barrier 13%",
    ):
        assert words in text, words
    nothing = profiles(PROFILE, "main")[0].model_copy(
        update={"us": None, "pipes": (), "stalls": (), "occupancy_percent": None}
    )
    assert "time:" not in show(profile_report([nothing]), width=200)


def test_findings_in_words() -> None:
    finding = SanitizerFinding(
        case="main",
        error="Invalid __global__ write of size 4 bytes",
        places=("row_sums.cu:31",),
        details=("by thread (0,0,0) in block (7,0,0)",),
        times=2,
    )
    text = show(sanitizer_report([finding], "memcheck", ("main",)), width=200)
    assert text.splitlines()[:2] == [
        "main: Invalid __global__ write of size 4 bytes at row_sums.cu:31, 2 times",
        "  by thread (0,0,0) in block (7,0,0)",
    ]
    clean = show(sanitizer_report([], "memcheck", ("main", "large")))
    assert clean.strip() == "memcheck found nothing in main, large"
