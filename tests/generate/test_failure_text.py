"""The shortest text that names the cause of a failure, from what NVRTC and the emulator said of
real kernels.
"""

from __future__ import annotations

import pytest

from evoengine.generate.failure_text import besides
from evoengine.records import Status

COMPILER = """\
kernel.cu(40): warning #177-D: variable "t" was declared but never referenced
      int t;
          ^

kernel.cu(62): error: explicit type is missing ("int" assumed)
  __global__ viod __launch_bounds__(THREADS)
             ^

kernel.cu(62): error: attribute "__launch_bounds__" does not apply here
  __global__ viod __launch_bounds__(THREADS)
                  ^

kernel.cu(62): error: attribute "__global__" does not apply here
  __global__ viod __launch_bounds__(THREADS)
  ^

kernel.cu(63): error: expected a ";"
  matmul(const __half* __restrict__ a) {
  ^

4 errors detected in the compilation of "kernel.cu".
"""
RACE = (
    "race: no __syncthreads() between the write at line 58 (thread {}) and the read at line {}"
    " (thread {}) of shared+{}, which came first (block 0, {} times)"
)


def test_of_a_compilers_output_the_first_errors_are_quoted_and_no_warnings() -> None:
    reason = 'kernel.cu(62): error: explicit type is missing ("int" assumed)'
    assert besides(Status.compile_error, reason, COMPILER).split("\n") == [
        "  __global__ viod __launch_bounds__(THREADS)",
        "             ^",
        'kernel.cu(62): error: attribute "__launch_bounds__" does not apply here',
        "  __global__ viod __launch_bounds__(THREADS)",
        "                  ^",
        'kernel.cu(62): error: attribute "__global__" does not apply here',
        "  __global__ viod __launch_bounds__(THREADS)",
        "  ^",
    ]


def test_findings_that_differ_in_threads_and_addresses_alone_are_one() -> None:
    lines = [
        (32, 85, 16, 640, 64),
        (34, 85, 16, 672, 64),
        (32, 89, 8, 5696, 160),
        (34, 89, 8, 5, 1),
    ]
    races = [RACE.format(*line) for line in lines]
    reason = f"{races[0]} (following every access on square)"
    assert besides(Status.fault, reason, "\n".join(races)) == races[2]


@pytest.mark.parametrize(
    ("status", "detail", "kept"),
    [
        (
            Status.wrong_result,
            "the reason\nworst at (0, 3)\nworst at (0, 4)",
            "worst at (0, 3)\nworst at (0, 4)",
        ),
        (Status.crash, "", ""),
        (
            Status.compile_error,
            "kernel.cu:3:1: error: clang says so",
            "kernel.cu:3:1: error: clang says so",
        ),
        (Status.compile_error, "kernel.cu(4): warning: alone", "kernel.cu(4): warning: alone"),
    ],
)
def test_other_details_stay_as_they_are(status: Status, detail: str, kept: str) -> None:
    assert besides(status, "the reason", detail) == kept
