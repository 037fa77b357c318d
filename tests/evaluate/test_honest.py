"""No honest kernel is refused: the whole corpus fits its tasks, and a sample is judged on the
emulator.

CORPUS_SEED draws the sample of an earlier run again; CORPUS_SAMPLE is the number of kernels of each
task (0: all of them).
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.config import CHECKS
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Verdict
from tests.honest.honest_corpus import (
    FOLDER,
    HonestKernel,
    honest_kernels,
    small_task,
    task_path,
    whole_task,
)

SEED = int(os.environ.get("CORPUS_SEED") or random.SystemRandom().randrange(10**6))
SAMPLE = int(os.environ.get("CORPUS_SAMPLE") or 3)
OWN = [kernel for kernel in honest_kernels() if kernel.path.parent == FOLDER]
TASKS = sorted({kernel.task for kernel in OWN})

own = pytest.mark.parametrize("kernel", OWN, ids=lambda kernel: kernel.path.stem)


def test_the_manifest_names_every_file_and_no_other() -> None:
    assert {kernel.path.name for kernel in OWN} == {path.name for path in FOLDER.glob("*.cu")}
    assert all(kernel.path.is_file() and kernel.style for kernel in honest_kernels())


def test_the_corpus_is_large_and_covers_every_task() -> None:
    count = {task: sum(kernel.task == task for kernel in OWN) for task in TASKS}
    assert sum(count.values()) >= 45
    assert min(count[task] for task in ("sdpa_h200", "layernorm", "matmul_fp16")) >= 10
    assert count["sdpa_l4"] + count["starter"] >= 8


def test_no_style_stands_twice() -> None:
    styles = [kernel.style for kernel in honest_kernels()]
    assert sorted(set(styles)) == sorted(styles)


@own
def test_an_honest_kernel_is_named_after_its_file_and_binds_for_every_case(
    kernel: HonestKernel,
) -> None:
    task, candidate = whole_task(kernel.task), kernel.candidate
    assert candidate.plan.name == kernel.path.stem
    assert candidate.plan.summary
    assert candidate.plan.precision in task.tiers
    for case in task.all_cases:
        assert bind(candidate, task, case, limits_of_arch("sm_90")).launches


def sample_of(task: str) -> list[HonestKernel]:
    """Kernels of `task`, drawn with the seed."""
    kernels = [kernel for kernel in OWN if kernel.task == task]
    if SAMPLE and len(kernels) > SAMPLE:
        kernels = random.Random(f"{SEED} {task}").sample(kernels, SAMPLE)  # noqa: S311
    return kernels


def judge(task: str, kernels: list[HonestKernel], cache: Path) -> list[Verdict]:
    """The verdicts of one executor on the emulator, with all its checks, on small cases."""

    async def run() -> list[Verdict]:
        executor = LocalExecutor(
            small_task(task),
            str(task_path(task)),
            CompilePool(1),
            emulator_device("h200", CHECKS, cache),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            return [await executor.evaluate(kernel.candidate, lambda _: None) for kernel in kernels]
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task", TASKS)
def test_the_emulator_refuses_no_honest_kernel_of_a_sample(task: str, tmp_path: Path) -> None:
    kernels = sample_of(task)
    print(f"CORPUS_SEED={SEED} draws {[kernel.path.stem for kernel in kernels]}")
    for kernel, verdict in zip(kernels, judge(task, kernels, tmp_path), strict=True):
        assert verdict.status is kernel.emulator, (
            f"{kernel.path.name} (CORPUS_SEED={SEED}): {verdict.reason}\n{verdict.detail}"
        )
