"""Plans with a launch too few, in the wrong order, or with scratch that holds something else."""

from __future__ import annotations

import pytest

from evoengine.candidate import kernel_file
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding

SOURCE = """/* evoengine
name: column_sums
precision: fp32
scratch:
  parts: {dtype: float32, shape: [M, N], init: 0}
launches:
  - kernel: clear
    grid: ["ceil_div(N, 128)"]
    block: [128]
    args: [out, N]
  - kernel: column_sums
    grid: ["ceil_div(N, 128)", 8]
    block: [128]
    args: [x, parts, out, M, N]
*/
__global__ void clear(float* out, int count) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < count) out[i] = 0.0f;
}

__global__ void __launch_bounds__(128) column_sums(const float* x, float* parts, float* out, int M, int N) {
    const int n = blockIdx.x * 128 + threadIdx.x;
    for (int m = blockIdx.y; m < M; m += 8) if (n < N) atomicAdd(&out[n], x[m * N + n]);
}
"""
CLEAR = SOURCE[SOURCE.index("  - kernel: clear") : SOURCE.index("  - kernel: column_sums")]
SUMS = SOURCE[SOURCE.index("  - kernel: column_sums") : SOURCE.index("*/")]
MISTAKES = {
    "launch missing": (CLEAR, "", "a kernel is not launched"),
    "launches exchanged": (CLEAR + SUMS, SUMS + CLEAR, "two launches are in the wrong order"),
    "scratch not filled": (", init: 0", "", "a scratch buffer is not initialised"),
    "scratch filled with another": ("init: 0", "init: -inf", "or with the wrong value"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_one_change_of_the_plan_mends_it_and_says_what_was_wrong(kind: str) -> None:
    right, wrong, said = MISTAKES[kind]
    assert SOURCE.count(right) == 1
    candidate = kernel_file.parse(SOURCE.replace(right, wrong))
    mending = [
        change
        for change, _ in ordered_changes(candidate)
        if change.applied(candidate.source) == SOURCE
    ]
    assert [change.kind for change in mending] == [kind]
    told = finding(candidate, FoundRepairs(changes=mending))
    assert told is not None and said in told.sentence, told


def test_a_kernel_whose_parameters_are_unknown_is_not_launched() -> None:
    source = SOURCE.replace(CLEAR, "").replace("float* out, int count", "float* to, int count")
    kinds = {change.kind for change, _ in ordered_changes(kernel_file.parse(source))}
    assert "launch missing" not in kinds


def test_a_kernel_whose_macros_hold_brackets_has_changes_of_its_plan_alone() -> None:
    source = SOURCE.replace(
        "if (i < count) out[i] = 0.0f;", "if (i < count) OPEN if (i >= 0) OPEN out[i] = 0.0f; } }"
    )
    found = kernel_file.parse(
        source.replace("__global__ void clear", "#define OPEN {\n//\n__global__ void clear")
    )
    begin = found.source.index("*/")
    changes = [change for change, _ in ordered_changes(found)]
    assert changes and all(change.start < begin for change in changes)
