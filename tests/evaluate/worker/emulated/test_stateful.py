"""Kernels whose launches change what they read: every pass over them finds what a GPU's would."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evoengine import candidate as candidates
from evoengine import task as tasks
from evoengine.config import CHECKS
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.workers import emulator_device
from evoengine.evaluate.local import LocalExecutor
from evoengine.records import Status, Verdict

KERNELS = Path(__file__).parent / "stateful"
TASK = """
name: NAME
reference: reference.py:NAME
dims: {N: int}
inputs: {x: {shape: [N], dtype: int32}}
outputs: {out: {shape: ["SIZE"], dtype: int32}}
cases: {small: {N: 65536}}
tiers: {exact: {atol: 0, rel_rmse: 1e-9}}
objective: {cases: [small]}
baselines: {torch: reference.py:NAME}
limits: {emulator_launch_s: 60, emulator_evaluate_s: 100}
budget: {trials: 1}
"""
REFERENCE = """
import torch

def double(x):
    return 2 * x

def sort(x):
    return x.sort().values

def sum(x):
    return x.sum().reshape(1)
"""
SIZES = {"double": "N", "sort": "N", "sum": "1"}


def judged(folder: Path, task_name: str, *sources: str, fresh: bool = False) -> list[Verdict]:
    """The verdicts on `sources` of one executor."""
    (folder / "reference.py").write_text(REFERENCE)
    path = folder / f"{task_name}.yaml"
    path.write_text(TASK.replace("NAME", task_name).replace("SIZE", SIZES[task_name]))

    async def run() -> list[Verdict]:
        device = emulator_device("l4", CHECKS, folder / "answers")
        executor = LocalExecutor(tasks.load(path), str(path), CompilePool(1), device, front=CompilePool(1, module=CLANG))
        try:
            await executor.start()
            return [await executor.evaluate(candidates.parse(source), lambda _: None, fresh) for source in sources]
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*/*.cu")), ids=lambda path: path.stem)
def test_an_honest_kernel_with_a_memory_is_correct_and_is_modelled(path: Path, tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, path.parent.name, path.read_text())
    assert verdict.status is Status.correct, f"{verdict.reason}\n{verdict.detail}"
    assert verdict.checks[0].checked is not None and verdict.modelled


def test_a_launch_of_which_a_sample_was_followed_ran_once_before_the_next(tmp_path: Path) -> None:
    (verdict,) = judged(tmp_path, "sum", (KERNELS / "sum" / "too_long_to_follow.cu").read_text())
    checked = verdict.checks[0].checked
    assert verdict.status is Status.correct and checked is not None, verdict.reason
    assert 8 <= checked.blocks < checked.total_blocks == 257


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
    "in place": "  - {kernel: begin, grid: [256], block: [256], args: [n, 4]}\n  - {kernel: add, grid: [256], block: [256], args: [n]}",
    "by a variable": "  - {kernel: begin, grid: [256], block: [256], args: [n, 4]}\n  - {kernel: raise, grid: [1], block: [1], args: []}",
}


def test_a_launch_is_modelled_on_what_the_launches_before_it_left_once(tmp_path: Path) -> None:
    verdicts = judged(tmp_path, "double", *(LOOPS.replace("LAUNCHES", way) for way in WAYS.values()))
    assert [verdict.status for verdict in verdicts] == [Status.correct] * 3, [verdict.reason for verdict in verdicts]
    found = [next(launch for launch in verdict.modelled[0].launches if launch.kernel == "use") for verdict in verdicts]
    assert found[0] == found[1] == found[2]
