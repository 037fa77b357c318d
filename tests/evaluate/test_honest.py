"""No honest kernel is refused: the whole corpus fits its tasks, and a sample is judged on the
emulator.
"""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.corpora import (
    HONEST,
    Honest,
    honest,
    parsed,
    path_of,
    small_task,
    task_path,
)
from benchmarks.small_cases import Corpus
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Verdict
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept
from tests.sampling import Entry, Sampling

SAMPLE = 8
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


def sample_of(sampling: Sampling, task: str) -> list[str]:
    """The names of kernels of `task`: one of each task and of each verdict is drawn."""
    entries = [
        Entry(name, (entry.task, entry.emulator), (HONEST / name,)) for name, entry in OWN.items()
    ]
    names = [entry.name for entry in sampling.draw("honest kernels", entries, SAMPLE)]
    return [name for name in names if OWN[name].task == task]


def judge(task: str, names: list[str]) -> list[Verdict]:
    """The verdicts of one executor on the emulator, with all its checks, on small cases."""

    async def run() -> list[Verdict]:
        executor = LocalExecutor(
            small_task(task, Corpus.honest),
            str(task_path(task)),
            CompilePool(1),
            kept().device("h200"),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            found = (parsed(path_of(name, HONEST)) for name in names)
            return [await executor.evaluate(candidate, lambda _: None) for candidate in found]
        finally:
            await executor.close()

    return kept().run(run())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("task", TASKS)
def test_the_emulator_refuses_no_honest_kernel_of_a_sample(task: str, sampling: Sampling) -> None:
    names = sample_of(sampling, task)
    surprises = {
        name: f"{verdict.status}: {verdict.reason}\n{verdict.detail}"
        for name, verdict in zip(names, judge(task, names), strict=True)
        if verdict.status is not OWN[name].emulator
    }
    assert not surprises, sampling.described
