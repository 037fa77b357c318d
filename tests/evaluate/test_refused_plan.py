"""A plan that cannot be built for a hidden case is told with sizes of our own, and mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.refused_plan import told_of_plan
from evoengine.records import DiagnosisKind, Status, Verdict
from evoengine.task.load import load_task
from evoengine.task.schema import Task
from evoengine.task.small_cases import least_versions
from tests.evaluate.kept_fork_server import kept

TASK = """\
name: doubled
reference: doubled.py:forward
dims: {N: {multiple_of: 2}, B: int}
inputs:
  x: {shape: [B, N], dtype: float32}
outputs:
  out: {shape: [B, N], dtype: float32}
cases:
  plain: {N: 64, B: 3}
  long: {N: 320, B: 40}
hidden_cases:
  few: {N: 6, B: 1}
tiers:
  fp32: {atol: 1e-6, rel_rmse: 1e-6}
objective: {cases: [plain]}
baselines: {torch.mul: doubled.py:forward}
budget: {trials: 8}
"""
SOURCE = """\
/* evoengine
name: doubled
precision: fp32
let:
  TILES: ceil_div(N, 32)
launches:
  - kernel: doubled
    grid: [TILES, B]
    block: [32]
    args: [x, out, N]
*/
__global__ void doubled(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[blockIdx.y * n + i] = 2 * x[blockIdx.y * n + i];
}
"""
LIMITS = limits_of_arch("sm_90")


@pytest.fixture(name="task")
def small_task(tmp_path: Path) -> Task:
    (tmp_path / "doubled.py").write_text("def forward(x):\n    return 2 * x\n")
    (tmp_path / "doubled.yaml").write_text(TASK)
    return load_task(tmp_path / "doubled.yaml")


def refusal(candidate: Candidate, task: Task) -> Verdict:
    with pytest.raises(CandidateError) as raised:
        for case in task.all_cases:
            bind(candidate, task, case, LIMITS)
    return Verdict(status=Status.rejected, reason=str(raised.value))


def wrong(old: str, new: str) -> Candidate:
    assert SOURCE.count(old) == 1
    return kernel_file.parse(SOURCE.replace(old, new), "kernel.cu")


def test_our_own_sizes_are_the_same_whatever_a_hidden_case_is(task: Task) -> None:
    sizes = dict(least_versions(task))
    assert list(sizes) == [
        "plain with N=2",
        "plain with N=2, B=1",
        "long with N=2",
        "long with B=1",
        "long with N=2, B=1",
    ]
    other = task.model_copy(update={"hidden_cases": {"few": {"N": 2, "B": 7}}})
    assert dict(least_versions(other)) == sizes


def test_a_grid_rounded_down_is_told_with_a_size_of_our_own(task: Task) -> None:
    candidate = wrong("ceil_div(N, 32)", "N // 32")
    told = told_of_plan(refusal(candidate, task), candidate, task, LIMITS)
    assert told.forensics is not None
    (found,) = told.forensics.diagnoses
    assert found.kind is DiagnosisKind.plan
    assert "'TILES' is 0 in case plain with N=2" in found.sentence
    assert "'N // 32' rounds down" in found.sentence
    assert "few" not in found.sentence


def test_a_product_of_sizes_that_is_rounded_down_is_told_with_all_of_them_small(task: Task) -> None:
    candidate = wrong("ceil_div(N, 32)", "B * B * N // 16")
    told = told_of_plan(refusal(candidate, task), candidate, task, LIMITS)
    assert told.forensics is not None
    (found,) = told.forensics.diagnoses
    assert "'TILES' is 0 in case plain with N=2, B=1" in found.sentence


def test_a_grid_without_blocks_in_a_shown_case_is_told_as_well(task: Task) -> None:
    candidate = wrong("ceil_div(N, 32)", "N // 128")
    told = told_of_plan(refusal(candidate, task), candidate, task, LIMITS)
    assert told.forensics is not None
    assert "'N // 128' rounds down" in told.forensics.diagnoses[0].sentence


@pytest.mark.parametrize("formula", ["N // 0", "4 if N > 30 else 1 // (N - N)"])
def test_nothing_is_said_of_other_refusals(task: Task, formula: str) -> None:
    candidate = wrong("ceil_div(N, 32)", formula)
    refused = refusal(candidate, task)
    assert told_of_plan(refused, candidate, task, LIMITS) == refused


def test_the_plan_is_mended_and_the_change_said_first(task: Task, tmp_path: Path) -> None:
    candidate = wrong("ceil_div(N, 32)", "N // 32")

    async def judged() -> Verdict:
        executor = LocalExecutor(
            task,
            str(tmp_path / "doubled.yaml"),
            CompilePool(1),
            kept().device("h200"),
            clang=CompilePool(1, module=CLANG),
            repair_s=200.0,
        )
        try:
            await executor.start()
            return await executor.evaluate(candidate, lambda _: None)
        finally:
            await executor.close()

    verdict = kept().run(judged())
    assert verdict.status is Status.rejected
    assert verdict.forensics is not None
    first, second = verdict.forensics.diagnoses
    assert first.kind is DiagnosisKind.changed_source
    assert '"TILES: ceil_div(N, 32)"' in first.sentence
    assert "every output of every case is right" in first.sentence
    assert second.kind is DiagnosisKind.plan
    assert verdict.phases_s["repair"] > 0
