"""Kernels whose launches change what they read: every pass over them finds what a GPU's would."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.records import Status
from tests.evaluate.worker.emulated.judging import judged

KERNELS = Path(__file__).parent / "stateful"


@pytest.mark.parametrize("task_name", ["double", "sort", "sum"])
def test_honest_kernels_with_a_memory_are_correct_and_are_modelled(
    task_name: str, tmp_path: Path
) -> None:
    paths = sorted((KERNELS / task_name).glob("*.cu"))
    verdicts = dict(
        zip(
            [path.stem for path in paths],
            judged(tmp_path, task_name, *(path.read_text() for path in paths)),
            strict=True,
        )
    )
    assert {
        name: verdict.reason
        for name, verdict in verdicts.items()
        if verdict.status is not Status.correct
    } == {}
    assert verdicts and all(
        verdict.checks[0].checked and verdict.modelled for verdict in verdicts.values()
    )
    for verdict in (found for name, found in verdicts.items() if name == "too_long_to_follow"):
        checked = verdict.checks[0].checked
        assert checked is not None and 8 <= checked.blocks < checked.total_blocks == 257, (
            "a sample was followed, and the whole ran once"
        )


LOOPS = """/* evoengine
name: loops
precision: exact
scratch: {n: {dtype: int32, shape: [N]}}
launches:
LAUNCHES
  - {kernel: use, grid: ["N // 256"], block: [256], args: [x, n, out]}
  - {kernel: end, grid: [1], block: [1], args: []}
*/
__device__ int factor = 1;
extern "C" __global__ void begin(int* n, int first) { n[blockIdx.x * 256 + threadIdx.x] = first; }
extern "C" __global__ void add(int* n) { n[blockIdx.x * 256 + threadIdx.x] += 4; }
extern "C" __global__ void raise() { factor += 1; }
extern "C" __global__ void end() { factor = 1; }
extern "C" __global__ void use(const volatile int* x, const int* n, int* out) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    for (int k = 0; k < n[i] * factor; ++k) x[(i + 256 * k) % 65536];
    out[i] = 2 * x[i];
}
"""
WAYS = {  # to have `use` go eight rounds
    "at once": "  - {kernel: begin, grid: [256], block: [256], args: [n, 8]}",
    "in place": (
        "  - {kernel: begin, grid: [256], block: [256], args: [n, 4]}\n  - {kernel: add, grid:"
        " [256], block: [256], args: [n]}"
    ),
    "by a variable": (
        "  - {kernel: begin, grid: [256], block: [256], args: [n, 4]}\n  - {kernel: raise, grid:"
        " [1], block: [1], args: []}"
    ),
}


def test_a_launch_is_modelled_on_what_the_launches_before_it_left_once(tmp_path: Path) -> None:
    verdicts = judged(
        tmp_path, "double", *(LOOPS.replace("LAUNCHES", way) for way in WAYS.values())
    )
    assert [verdict.status for verdict in verdicts] == [Status.correct] * 3, [
        verdict.reason for verdict in verdicts
    ]
    found = [
        next(launch for launch in verdict.modelled[0].launches if launch.kernel == "use")
        for verdict in verdicts
    ]
    assert found[0] == found[1] == found[2]


def test_a_second_verdict_on_a_kernel_with_a_memory_models_the_same_time(tmp_path: Path) -> None:
    source = (KERNELS / "sort" / "counting_sort.cu").read_text()
    (first,), (second,) = (
        judged(tmp_path, "sort", source, verify=verify) for verify in (False, True)
    )
    times = [[launch.us for launch in report.modelled[0].launches] for report in (first, second)]
    # where an element comes to lie depends on which block came first, and so do sectors
    assert times[0] == pytest.approx(times[1], rel=0.01)
    assert second.checks[0].checked is None
