"""Plans that give kernels wrong sizes and buffers: shared memory, scratch, grids, arguments."""

from __future__ import annotations

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.repair.change_order import ordered_changes
from evoengine.evaluate.repair.found_repairs import FoundRepairs
from evoengine.evaluate.repair.repair_finding import finding

SOURCE = """/* evoengine
name: sums
precision: fp32
tunables:
  THREADS: [128, 256]
  STAGES: [2, 4]
let:
  SLICES: ceil_div(L, 64)
  INPUT_BYTES: 4 * THREADS * STAGES
  OUTPUT_BYTES: 8 * THREADS
  SHARED: max(INPUT_BYTES, OUTPUT_BYTES)
scratch:
  first: {dtype: float32, shape: [SLICES, B * 8, N]}
  second: {dtype: float32, shape: [N]}
launches:
  - kernel: sums
    grid: [SLICES, B * 8]
    block: [THREADS]
    shared: SHARED
    args: [x, first, L, N, beta1, {value: 1 - beta1, dtype: float32}]
  - kernel: step
    grid: [SLICES]
    block: [THREADS]
    shared: 8 * THREADS * STAGES
    args: [first, second, N, beta2, {value: 1 - beta2, dtype: float32}]
  - kernel: sums
    grid: ["ceil_div(N, 256)", B * 8]
    block: [THREADS]
    shared: 8 * THREADS
    args: [second, out, SLICES, SLICES, beta1, {value: 1 - beta1, dtype: float32}]
*/
__global__ void sums(const float* x, float* out, int L, int N, float beta, float rest) {
    const int i = blockIdx.y / 8;
    if (i < N) out[i] = x[i] * beta + rest;
}

__global__ void step(const float* x, float* out, int N, float beta, float rest) {
    if (threadIdx.x < N) out[threadIdx.x] = x[threadIdx.x] * beta + rest;
}
"""
# kind of change, what is right, what is wrong, words of the sentence
MISTAKES = [
    ("shared memory of another size", "shared: 8 * THREADS\n", "shared: 4 * THREADS\n",
     "the wrong number of bytes of shared memory"),
    ("shared memory of another size", "shared: 8 * THREADS\n", "shared: 2 * THREADS\n", "too few"),
    ("shared memory of another size", "8 * THREADS * STAGES", "8 * THREADS", "beyond its end"),
    ("shared memory of another size", "INPUT_BYTES: 4", "INPUT_BYTES: 2", "shared memory"),
    ("size of the plan that nothing reads", "max(INPUT_BYTES, OUTPUT_BYTES)", "INPUT_BYTES",
     "the larger one"),
    ("grid without a factor", "[SLICES, B * 8]", "[SLICES, B]", "the grid is too small"),
    ("axis of scratch missing", "[SLICES, B * 8, N]", "[B * 8, N]", "it lacks an axis"),
    ("scratch without a factor", "[SLICES, B * 8, N]", "[SLICES, B, N]", "it lacks a factor"),
    ("buffer of another launch", "args: [second, out", "args: [first, out", "the wrong buffer"),
    ("sizes of the launch before", "out, SLICES, SLICES", "out, L, N", "the launch before it"),
    ("scalar of the plan that is alike", "1 - beta2", "1 - beta1", "the wrong scalar"),
    ("sign in a value of the plan", "1 - beta2", "1 + beta2", "grows where it must shrink"),
]  # fmt: skip

# likewise, with what the source has in place of what is right
FACTORS = [
    ("grid that lacks a factor", "ceil_div(N, 256)", "ceil_div(N * L, 256)", "ceil_div(N, 256)",
     "counts rows and not elements"),
    ("argument of the plan that lacks a factor", "first, L,", "first, L * N,", "first, L,",
     "too small a number"),
    ("size of the plan that lacks a factor", "shape: [N]", "shape: [N * L]", "shape: [N]",
     "a factor is missing"),
    ("size of the plan that lacks a factor", "ceil_div(L, 64)", "ceil_div(L * B, 64)",
     "ceil_div(L, 64)", "a factor is missing"),
    ("factor of the plan too many", "ceil_div(N, 256)", "ceil_div(N, 256)", "ceil_div(N, 4 * 256)",
     "a factor too many"),
    ("argument of the plan without a factor", "first, L,", "first, L,", "first, L * B,",
     "applied twice"),
    ("grid that lacks a factor", "ceil_div(N, 256)", "ceil_div(3 * N, 256)", "ceil_div(N, 256)",
     "the grid is too small"),
    ("arguments of the plan moved",
     "first, second, N, beta2, {value: 1 - beta2, dtype: float32}]",
     "first, second, N, beta2, {value: 1 - beta2, dtype: float32}]",
     "second, N, beta2, {value: 1 - beta2, dtype: float32}, first]", "the wrong order"),
    ("root in the plan missing", "{value: 1 - beta2", "{value: 1 / sqrt(beta2)",
     "{value: 1 / beta2", "the square root"),
]  # fmt: skip


def _parsed(right: str, wrong: str) -> Candidate:
    assert SOURCE.count(right) == 1
    return kernel_file.parse(SOURCE.replace(right, wrong))


@pytest.mark.parametrize(("kind", "right", "wrong", "said"), MISTAKES)
def test_a_change_of_the_plan_mends_it_and_says_what_was_wrong(
    kind: str, right: str, wrong: str, said: str
) -> None:
    candidate = _parsed(right, wrong)
    mending = [
        change
        for change, _ in ordered_changes(candidate)
        if change.kind == kind and change.applied(candidate.source) == SOURCE
    ]
    assert len(mending) == 1
    found = finding(candidate, FoundRepairs(changes=mending))
    assert found is not None and said in found.sentence, found


@pytest.mark.parametrize(("kind", "old", "right", "wrong", "said"), FACTORS)
def test_a_factor_of_a_size_is_mended(
    kind: str, old: str, right: str, wrong: str, said: str
) -> None:
    assert SOURCE.count(old) == 1
    candidate = kernel_file.parse(SOURCE.replace(old, wrong))
    mending = [
        change
        for change, _ in ordered_changes(candidate)
        if change.applied(candidate.source).replace(" ", "")
        == SOURCE.replace(old, right).replace(" ", "")
    ]
    assert kind in {change.kind for change in mending}
    found = finding(candidate, FoundRepairs(changes=[it for it in mending if it.kind == kind]))
    assert found is not None and said in found.sentence, found


def test_a_right_plan_has_none_of_those_that_need_a_sign_of_a_mistake() -> None:
    kinds = {change.kind for change, _ in ordered_changes(kernel_file.parse(SOURCE))}
    assert not kinds & {
        "size of the plan that nothing reads",
        "grid without a factor",
        "scratch without a factor",
    }
