"""The readers of what Nsight Compute and compute-sanitizer write."""

from __future__ import annotations

import pytest

from evoengine.evaluate import profiler_output, sanitizer_output

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","dram__bytes.sum.per_second",'
    '"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed","gpu__time_duration.sum",'
    '"l1tex__t_sector_hit_rate.pct","lts__t_sector_hit_rate.pct",'
    '"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",'
    '"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",'
    '"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",'
    '"sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"sm__warps_active.avg.pct_of_peak_sustained_active",'
    '"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",'
    '"smsp__average_warps_issue_stalled_long_scoreboard_not_issued_per_issue_active.ratio",'
    '"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",'
    '"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"'
)
UNITS = (
    '"","","","","","","","","","","","byte/second","%","%","ns","%","%","%","%","%","%","%",'
    '"inst","inst","inst","inst"'
)
ROW = (
    '"0","4711","python3.11","gpu","adamw(float *, ""x"")","1","14","(256, 1, 1)","(4096, 1, 1)",'
    '"0","9.0","2,131,000,000,000.5","88.50","86.25","31,456","12.5","n/a","20.5","31","44.75",'
    '"52.1","71.3","1.5","9.25","9.75","1.00"'
)
PROFILE = f"""==PROF== Connected to process 4711 (/usr/bin/python3.11)
==PROF== Profiling "adamw" - 0: 0%....50%....100% - 19 passes
==PROF== Disconnected from process 4711
{HEADER}
{UNITS}
{ROW}
"""


def test_a_profile_is_read_with_its_units() -> None:
    (found,) = profiler_output.profiles(PROFILE, "main")
    assert (found.case, found.kernel) == ("main", 'adamw(float *, "x")')
    assert found.us == pytest.approx(31.456)
    assert found.dram_bytes_per_s == pytest.approx(2.131e12)
    assert (found.compute_percent, found.memory_percent, found.dram_percent) == (52.1, 88.5, 86.25)
    assert (found.l1_hit_percent, found.l2_hit_percent) == (12.5, None)
    assert found.occupancy_percent == 71.3
    assert found.pipes == (("fma", 44.75), ("alu", 20.5))
    assert found.stalls == (("long_scoreboard", 9.75), ("barrier", 1.5))


def test_a_time_in_an_unknown_unit_is_not_guessed() -> None:
    (found,) = profiler_output.profiles(PROFILE.replace('"ns"', '"cycle"'), "main")
    assert found.us is None


def test_a_log_without_launches_and_one_that_breaks_off_give_no_profile() -> None:
    assert profiler_output.profiles("==WARNING== No kernels were profiled.\n", "main") == ()
    assert profiler_output.profiles(f"{HEADER}\n{UNITS}\n{ROW[:90]}", "main") == ()
    assert profiler_output.profiles(HEADER, "main") == ()


MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at row_sums(const float *, float *)+0x90 in row_sums.cu:31
=========     by thread (0,0,0) in block (7,0,0)
=========     Access at 0x7f6d5fc00400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f6d5fc00000 of size 1,024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: cuLaunchKernel [0x2f3a] in libcuda.so.1
=========
========= Invalid __global__ write of size 4 bytes
=========     at row_sums(const float *, float *)+0x90 in row_sums.cu:31
=========     by thread (1,0,0) in block (7,0,0)
=========     Access at 0x7f6d5fc00404 is out of bounds
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on \
CUDA API call to cuStreamSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: cuStreamSynchronize [0x2f3a] in libcuda.so.1
=========
========= Error: process didn't terminate successfully
========= Target application returned an error
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at rows+0xb0 in rows.cu:5
=========     and Read access at rows+0x150 in /tmp/src/rows.cu:9 [96 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_equal_errors_are_one_finding_and_what_follows_from_them_is_none() -> None:
    (found,) = sanitizer_output.findings(MEMCHECK, "main")
    assert found.error == "Invalid __global__ write of size 4 bytes"
    assert (found.places, found.times, found.case) == (("row_sums.cu:31",), 2, "main")
    assert found.details == (
        "at row_sums(const float *, float *)+0x90 in row_sums.cu:31",
        "by thread (0,0,0) in block (7,0,0)",
        "Access at 0x7f6d5fc00400 is out of bounds",
        "and is 1 bytes after the nearest allocation at 0x7f6d5fc00000 of size 1,024 bytes",
    )


def test_an_error_of_the_launch_alone_is_a_finding() -> None:
    launch = MEMCHECK[MEMCHECK.index("========= Program hit") :]
    (found,) = sanitizer_output.findings(launch, "main")
    assert found.error.startswith("Program hit CUDA_ERROR_LAUNCH_FAILED")


def test_a_race_names_both_lines() -> None:
    (found,) = sanitizer_output.findings(RACECHECK, "main")
    assert found.places == ("rows.cu:5", "rows.cu:9")
    assert found.error.startswith("Error: Race reported between Write access")


def test_a_clean_log_is_complete_and_a_failed_tool_is_not() -> None:
    clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
    assert sanitizer_output.findings(clean, "main") == ()
    assert sanitizer_output.is_complete(clean)
    # what version 2026.4 writes about a program without CUDA
    failed = (
        "========= COMPUTE-SANITIZER\n"
        "========= Error: process didn't terminate successfully\n"
        "=========     The application may have hit an error when dereferencing Unified Memory\n"
        "========= Error: Target application terminated before first instrumented API call\n"
    )
    assert sanitizer_output.findings(failed, "main") == ()
    assert not sanitizer_output.is_complete(failed)
