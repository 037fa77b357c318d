"""Each entry of the second corpus of planted bugs fits its kernel, and its verdict on the emulator
is the one that the manifest lists.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from benchmarks.bugs import BugWalk
from benchmarks.corpora import path_of
from benchmarks.planted_bugs import (
    BUGS,
    CorpusKernel,
    HonestNumbers,
    PlantedBug,
    bug_manifest,
    bug_task,
)
from evoengine.records import Status

FOLDER = Path(__file__).parent
MANIFEST = bug_manifest(FOLDER)
ENTRIES: dict[str, PlantedBug | HonestNumbers] = {**MANIFEST.bugs, **MANIFEST.honest}
# They say where or how large an error is, not what causes it.
NO_CAUSE = (
    "the output is wrong",
    "elements of the output are wrong in case ragged",
    "37 of 640 elements are beyond the gate; the largest error is 3.2 at (1, 17)",
    "all outputs are NaN",
)


def test_the_corpus_is_large_and_covers_many_tasks_of_its_own() -> None:
    own = {bug.task for bug in MANIFEST.bugs.values() if (FOLDER / f"{bug.task}.yaml").is_file()}
    assert len(MANIFEST.bugs) >= 44
    assert len(MANIFEST.honest) >= 10
    assert len(own) >= 5
    assert own.isdisjoint(bug.task for bug in bug_manifest(BUGS).bugs.values())


def test_every_file_of_the_folder_is_used() -> None:
    kernels = {entry.file for entry in ENTRIES.values()}
    tasks = {f"{entry.task}.yaml" for entry in ENTRIES.values()}
    assert {path.name for path in FOLDER.glob("*.cu")} <= kernels
    assert {path.name for path in FOLDER.glob("*.yaml")} - {"manifest.yaml"} <= tasks


@pytest.mark.parametrize("task", sorted({entry.task for entry in ENTRIES.values()}))
def test_every_task_has_small_cases(task: str) -> None:
    loaded = bug_task(task, folder=FOLDER)
    assert all(max(case.values()) <= 1024 for case in loaded.all_cases.values())


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_entry_fits_its_kernel(entry: CorpusKernel) -> None:
    entry.candidate(FOLDER)


@pytest.mark.parametrize("bug", MANIFEST.bugs.values(), ids=MANIFEST.bugs)
def test_patterns_match_the_cause_and_no_sentence_without_one(bug: PlantedBug) -> None:
    assert bug.replace is not None
    assert all(re.compile(pattern) for pattern in bug.says)
    assert bug.is_named_by((bug.cause,))
    assert not bug.is_named_by(NO_CAUSE)


@pytest.mark.parametrize("entry", MANIFEST.honest.values(), ids=MANIFEST.honest)
def test_an_honest_kernel_is_in_a_tier_of_low_precision(entry: HonestNumbers) -> None:
    assert entry.candidate(FOLDER).plan.precision != "fp32"


@pytest.mark.sampled(
    "name",
    one_in=35,
    files=lambda name: () if "/" in ENTRIES[name].file else (path_of(ENTRIES[name].file, FOLDER),),
)
@pytest.mark.parametrize("name", ENTRIES)
def test_a_verdict_is_the_one_of_the_manifest(name: str) -> None:
    entry = ENTRIES[name]

    async def judged() -> str:
        walk = BugWalk(entry.task, "emulated", FOLDER)
        try:
            return (await walk.judge(name, entry)).status
        finally:
            await walk.close()

    expected = entry.emulator if isinstance(entry, PlantedBug) else Status.correct
    assert asyncio.run(judged()) == expected
