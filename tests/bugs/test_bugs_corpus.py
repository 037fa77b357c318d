"""The corpus of planted bugs: what its manifest promises, and a sample of it judged on the emulator."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.planted_bugs import (
    BUGS,
    CorpusKernel,
    HonestNumbers,
    PlantedBug,
    bug_manifest,
    bug_task,
    bug_task_path,
)
from benchmarks.small_cases import SMALL_CASES, Corpus
from evoengine.candidate.arch import limits_of_arch
from evoengine.candidate.binding import bind
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.records import Status, Verdict
from evoengine.task.load import load_task
from tests.evaluate.kept_fork_server import kept

MANIFEST_OF_BUGS = bug_manifest()
PLANTED = MANIFEST_OF_BUGS.bugs
ROUNDING = MANIFEST_OF_BUGS.honest
# what the code of a tiled kernel has, and a loop of one thread over its inputs has not
TILED = re.compile(r"__shared__|mma|cp\.async|__shfl")
# sentences that say no more than the status
EMPTY = (
    "the output is wrong",
    "31 of 4096 elements are outside the tolerance",
    "the largest error is 0.37 at out[3, 17], expected 1.25, got 1.62",
    "there is an error in case square",
)
every_kernel = pytest.mark.parametrize(
    "entry", [*PLANTED.values(), *ROUNDING.values()], ids=[*PLANTED, *ROUNDING]
)
every_bug = pytest.mark.parametrize("bug", PLANTED.values(), ids=list(PLANTED))


def judged(entry: CorpusKernel) -> Verdict:
    """The verdict on one kernel on the emulator, with all its checks, on small cases."""

    async def run() -> Verdict:
        executor = LocalExecutor(
            bug_task(entry.task),
            str(bug_task_path(entry.task)),
            CompilePool(1),
            kept().device("h200"),
            clang=CompilePool(1, module=CLANG),
        )
        try:
            await executor.start()
            return await executor.evaluate(entry.candidate(), lambda _: None)
        finally:
            await executor.close()

    return kept().run(run())


@pytest.mark.timeout(600)
@pytest.mark.sampled("name", one_in=30)
@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_bug_of_a_sample_is_found_by_the_emulator(name: str) -> None:
    verdict = judged(PLANTED[name])
    assert verdict.status is PLANTED[name].emulator, verdict.reason


def test_the_corpus_has_bugs_in_many_tasks_and_honest_kernels() -> None:
    assert len(PLANTED) >= 48
    assert len({bug.task for bug in PLANTED.values()}) >= 5
    assert len(ROUNDING) >= 12
    assert set(PLANTED).isdisjoint(ROUNDING)
    with_cases = {task for task, found in SMALL_CASES.items() if Corpus.bugs in found}
    assert {entry.task for entry in (*PLANTED.values(), *ROUNDING.values())} <= with_cases


def test_every_file_of_the_folder_is_in_the_manifest() -> None:
    named = {entry.file for entry in (*PLANTED.values(), *ROUNDING.values())}
    assert {path.name for path in BUGS.glob("*.cu")} == {name for name in named if "/" not in name}


def test_at_least_half_of_the_bugs_are_in_kernels_with_tiles_or_shuffles() -> None:
    tiled = [name for name, bug in PLANTED.items() if TILED.search(bug.text())]
    assert 2 * len(tiled) >= len(PLANTED)


@every_kernel
def test_a_kernel_parses_and_binds_for_every_case_small_or_whole(entry: CorpusKernel) -> None:
    candidate = entry.candidate()
    for task in (bug_task(entry.task), load_task(bug_task_path(entry.task))):
        assert candidate.plan.precision in task.tiers
        for case in task.all_cases:
            assert bind(candidate, task, case, limits_of_arch("sm_90")).launches


def test_no_cause_and_no_kernel_is_there_twice() -> None:
    causes = Counter(bug.cause for bug in PLANTED.values())
    kernels = Counter((bug.task, bug.text()) for bug in PLANTED.values())
    assert not [cause for cause, count in causes.items() if count > 1]
    assert not [kernel for kernel, count in kernels.items() if count > 1]
    assert len({entry.text() for entry in ROUNDING.values()}) == len(ROUNDING)


@every_bug
def test_patterns_accept_the_cause_and_no_sentence_that_says_nothing(bug: PlantedBug) -> None:
    assert bug.is_named_by([bug.cause])
    assert not [sentence for sentence in EMPTY if bug.is_named_by([sentence])]


@every_bug
def test_a_bug_is_wrong_or_a_fault(bug: PlantedBug) -> None:
    assert bug.emulator in (Status.wrong_result, Status.fault)


def test_a_replacement_that_fits_no_single_place_is_refused() -> None:
    file = "seeds/layernorm.cu"
    for old, count in (("no such words", 0), ("__syncthreads();", 2)):
        entry = HonestNumbers(task="layernorm", file=file, replace=(old, ""), style="s")
        with pytest.raises(
            ValueError, match=rf"{file}: expected '.*' once, found it {count} times"
        ):
            entry.text()


def test_a_manifest_with_an_unknown_key_is_refused_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(
        "bugs: {a: {task: t, file: f, colour: red}}\nhonest: {}"
    )
    with pytest.raises(ValueError, match=r"manifest.yaml: bugs\.a\."):
        bug_manifest(tmp_path)
