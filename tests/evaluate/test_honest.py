"""No honest kernel is refused: the whole corpus fits its tasks, and a sample is judged on the
emulator.

CORPUS_SEED draws the sample of an earlier run again; CORPUS_SAMPLE is the number of kernels of each
task (0: all of them).
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.corpora import (
    HONEST,
    MORE_SMALL_CASES,
    Honest,
    honest,
    parsed,
    path_of,
    small_task,
    task_path,
)
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.config import CHECKS
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Verdict
from evoengine.task.load import load_task

SEED = int(os.environ.get("CORPUS_SEED") or random.SystemRandom().randrange(10**6))
SAMPLE = int(os.environ.get("CORPUS_SAMPLE") or 3)
CORPUS = honest()
# without the packaged seeds, which have slashes in their names
OWN = {name: entry for name, entry in CORPUS.items() if path_of(name, HONEST).parent == HONEST}
TASKS = sorted({entry.task for entry in OWN.values()})


def test_the_manifest_names_every_file_and_no_other() -> None:
    assert set(OWN) == {path.name for path in HONEST.glob("*.cu")}
    assert all(path_of(name, HONEST).is_file() and entry.style for name, entry in CORPUS.items())


def test_the_corpus_is_large_and_covers_every_task() -> None:
    count = Counter(entry.task for entry in OWN.values())
    assert sum(count.values()) >= 45
    assert min(count[task] for task in ("sdpa_h200", "layernorm", "matmul_fp16")) >= 10
    assert count["sdpa_l4"] + count["starter"] >= 8


def test_no_style_stands_twice() -> None:
    styles = [entry.style for entry in CORPUS.values()]
    assert sorted(set(styles)) == sorted(styles)


@pytest.mark.parametrize(("name", "entry"), OWN.items(), ids=list(OWN))
def test_an_honest_kernel_is_named_after_its_file_and_binds_for_every_case(
    name: str, entry: Honest
) -> None:
    path = path_of(name, HONEST)
    task, candidate = load_task(task_path(entry.task)), parsed(path)
    assert candidate.plan.name == path.stem
    assert candidate.plan.summary
    assert candidate.plan.precision in task.tiers
    for case in task.all_cases:
        assert bind(candidate, task, case, limits_of_arch("sm_90")).launches


def sample_of(task: str) -> list[str]:
    """The names of kernels of `task`, drawn with the seed."""
    names = [name for name, entry in OWN.items() if entry.task == task]
    if SAMPLE and len(names) > SAMPLE:
        names = random.Random(f"{SEED} {task}").sample(names, SAMPLE)  # noqa: S311
    return names


def judge(task: str, names: list[str], cache: Path) -> list[Verdict]:
    """The verdicts of one executor on the emulator, with all its checks, on small cases."""

    async def run() -> list[Verdict]:
        executor = LocalExecutor(
            small_task(task, MORE_SMALL_CASES),
            str(task_path(task)),
            CompilePool(1),
            emulator_device("h200", CHECKS, cache),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            found = (parsed(path_of(name, HONEST)) for name in names)
            return [await executor.evaluate(candidate, lambda _: None) for candidate in found]
        finally:
            await executor.close()

    return asyncio.run(run())


@pytest.mark.timeout(600)
@pytest.mark.parametrize("task", TASKS)
def test_the_emulator_refuses_no_honest_kernel_of_a_sample(task: str, tmp_path: Path) -> None:
    names = sample_of(task)
    print(f"CORPUS_SEED={SEED}: {', '.join(names)}")
    surprises = {
        name: f"{verdict.status}: {verdict.reason}\n{verdict.detail}"
        for name, verdict in zip(names, judge(task, names, tmp_path), strict=True)
        if verdict.status is not OWN[name].emulator
    }
    assert not surprises, f"CORPUS_SEED={SEED}"
