"""The corpora of planted bugs whose causes were written before they were diagnosed: each entry fits
its kernel, and its verdict on the emulator is the one that the manifest lists.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.bugs import BugWalk
from benchmarks.corpora import ROOT, path_of
from benchmarks.planted_bugs import (
    BUGS,
    BugManifest,
    HonestNumbers,
    PlantedBug,
    bug_manifest,
    bug_task,
)
from evoengine.records import Status

MANIFESTS = {
    name: bug_manifest(ROOT / "tests" / name)
    for name in (
        "bugs_second",
        "bugs_third",
        "bugs_fourth",
        "bugs_fifth",
        "bugs_sixth",
        "bugs_seventh",
        "bugs_eighth",
        "bugs_ninth",
        "bugs_tenth",
        "bugs_eleventh",
        "bugs_twelfth",
        "bugs_thirteenth",
        "bugs_fourteenth",
        "bugs_fifteenth",
        "bugs_sixteenth",
        "bugs_seventeenth",
        "bugs_eighteenth",
        "bugs_nineteenth",
        "bugs_twentieth",
        "bugs_twentyfirst",
        "bugs_twentysecond",
        "bugs_twentythird",
        "bugs_twentyfourth",
        "bugs_twentyfifth",
        "bugs_twentysixth",
        "bugs_twentyseventh",
        "bugs_twentyeighth",
        "bugs_twentyninth",
        "bugs_thirtieth",
        "bugs_thirtyfirst",
        "bugs_thirtysecond",
        "bugs_thirtythird",
        "bugs_thirtyfourth",
        "bugs_thirtyfifth",
        "bugs_thirtysixth",
    )
}
# Honest kernels in single precision, with the hardware's approximate division.
APPROXIMATED = {
    "adamw_quotient_approximated",
    "groups_inverse_approximated",
    "pivot_shares_approximated",
    "ring_quotient_approximated",
    "slabs_inverse_root_approximated",
    "teams_inverse_of_root_approximated",
    "moments_running_quotient_approximated",
    "carrier_quotient_approximated",
    "dmma_scale_by_rsqrtf",
    "segment_approximate_division",
    "folding_fast_division",
    "thief_fast_division",
    "abacus_reciprocal_root_in_hardware",
    "fixedsums_mean_of_one_float",
    "stash_root_approximated",
    "locker_approximate_division",
    "carousel_divides_approximately",
    "parity_approximate_division",
    "cobbler_approximate_division",
    "brew_hardware_division",
    "tundra_approximate_reciprocal",
    "sextant_approximate_quotient",
    "lapis_root_in_hardware",
    "yarrow_quick_reciprocal_root",
}
# They say where or how large an error is, not what causes it.
NO_CAUSE = (
    "the output is wrong",
    "elements of the output are wrong in case ragged",
    "37 of 640 elements are beyond the gate; the largest error is 3.2 at (1, 17)",
    "all outputs are NaN",
)


class Place(NamedTuple):
    """Where an entry stands."""

    corpus: str
    name: str

    @property
    def folder(self) -> Path:
        return ROOT / "tests" / self.corpus

    @property
    def entry(self) -> PlantedBug | HonestNumbers:
        manifest = MANIFESTS[self.corpus]
        return manifest.bugs.get(self.name) or manifest.honest[self.name]

    @property
    def files(self) -> tuple[Path, ...]:
        """The kernel, where it is one of the corpus itself."""
        return () if "/" in self.entry.file else (path_of(self.entry.file, self.folder),)


BUG_PLACES = [Place(corpus, name) for corpus, found in MANIFESTS.items() for name in found.bugs]
HONEST_PLACES = [
    Place(corpus, name) for corpus, found in MANIFESTS.items() for name in found.honest
]
PLACES = [*BUG_PLACES, *HONEST_PLACES]
TASKS = sorted({(place.corpus, place.entry.task) for place in PLACES})
every_corpus = pytest.mark.parametrize(("corpus", "manifest"), MANIFESTS.items(), ids=MANIFESTS)


def own_tasks(corpus: str, manifest: BugManifest) -> set[str]:
    """The tasks of the bugs that have a file in the folder of the corpus."""
    folder = ROOT / "tests" / corpus
    return {bug.task for bug in manifest.bugs.values() if (folder / f"{bug.task}.yaml").is_file()}


@pytest.mark.parametrize(
    ("corpus", "bugs", "honest", "tasks"),
    [
        ("bugs_second", 44, 10, 5),
        ("bugs_third", 60, 10, 2),
        ("bugs_fourth", 70, 10, 3),
        ("bugs_fifth", 75, 10, 5),
        ("bugs_sixth", 35, 5, 7),
        ("bugs_seventh", 46, 6, 5),
        ("bugs_eighth", 26, 3, 3),
        ("bugs_ninth", 38, 4, 6),
        ("bugs_tenth", 36, 4, 3),
        ("bugs_eleventh", 50, 5, 0),
        ("bugs_twelfth", 40, 3, 0),
        ("bugs_thirteenth", 40, 3, 0),
        ("bugs_fourteenth", 41, 5, 5),
        ("bugs_fifteenth", 40, 3, 5),
        ("bugs_sixteenth", 24, 2, 3),
        ("bugs_seventeenth", 40, 3, 5),
        ("bugs_eighteenth", 40, 3, 5),
        ("bugs_nineteenth", 40, 3, 0),
        ("bugs_twentieth", 38, 2, 0),
        ("bugs_twentyfirst", 10, 1, 0),
        ("bugs_twentysecond", 40, 3, 0),
        ("bugs_twentythird", 40, 3, 0),
        ("bugs_twentyfourth", 40, 3, 0),
        ("bugs_twentyfifth", 40, 3, 0),
        ("bugs_twentysixth", 40, 3, 0),
        ("bugs_twentyseventh", 40, 3, 0),
        ("bugs_twentyeighth", 40, 3, 0),
        ("bugs_twentyninth", 40, 3, 0),
        ("bugs_thirtieth", 40, 3, 0),
        ("bugs_thirtyfirst", 40, 3, 0),
        ("bugs_thirtysecond", 40, 3, 0),
        ("bugs_thirtythird", 40, 3, 0),
        ("bugs_thirtyfourth", 40, 3, 0),
        ("bugs_thirtyfifth", 40, 3, 0),
        ("bugs_thirtysixth", 40, 3, 0),
    ],
)
def test_a_corpus_is_large_and_has_tasks_of_its_own(
    corpus: str, bugs: int, honest: int, tasks: int
) -> None:
    manifest = MANIFESTS[corpus]
    own = own_tasks(corpus, manifest)
    assert len(manifest.bugs) >= bugs
    assert len(manifest.honest) >= honest
    assert len(own) >= tasks
    elsewhere = [found for name, found in MANIFESTS.items() if name != corpus]
    for other in (bug_manifest(BUGS), *elsewhere):
        assert own.isdisjoint(bug.task for bug in other.bugs.values())


@pytest.mark.parametrize("corpus", [name for name in MANIFESTS if name != "bugs_second"])
def test_a_later_corpus_has_no_kernel_of_another_one(corpus: str) -> None:
    own = {place.entry.file for place in PLACES if place.corpus == corpus}
    others = [bug_manifest(BUGS), *(found for name, found in MANIFESTS.items() if name != corpus)]
    elsewhere = {
        bug.file for other in others for bug in (*other.bugs.values(), *other.honest.values())
    }
    assert own.isdisjoint(elsewhere)


@every_corpus
def test_every_file_of_the_folder_is_used(corpus: str, manifest: BugManifest) -> None:
    entries = (*manifest.bugs.values(), *manifest.honest.values())
    folder = ROOT / "tests" / corpus
    tasks = {f"{entry.task}.yaml" for entry in entries}
    assert {path.name for path in folder.glob("*.cu")} <= {entry.file for entry in entries}
    assert {path.name for path in folder.glob("*.yaml")} - {"manifest.yaml"} <= tasks


@every_corpus
def test_no_cause_and_no_kernel_is_there_twice(corpus: str, manifest: BugManifest) -> None:
    bugs = manifest.bugs.values()
    folder = ROOT / "tests" / corpus
    assert len({bug.cause for bug in bugs}) == len(bugs)
    assert len({(bug.task, bug.text(folder)) for bug in bugs}) == len(bugs)


@pytest.mark.parametrize(("corpus", "task"), TASKS)
def test_every_task_has_small_cases(corpus: str, task: str) -> None:
    loaded = bug_task(task, folder=ROOT / "tests" / corpus)
    assert all(max(case.values()) <= 4096 for case in loaded.all_cases.values())


@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_an_entry_fits_its_kernel(place: Place) -> None:
    place.entry.candidate(place.folder)


@pytest.mark.parametrize("place", BUG_PLACES, ids="-".join)
def test_patterns_match_the_cause_and_no_sentence_without_one(place: Place) -> None:
    bug = place.entry
    assert isinstance(bug, PlantedBug)
    assert bug.replace is not None
    assert all(re.compile(pattern) for pattern in bug.says)
    assert bug.is_named_by((bug.cause,))
    assert not bug.is_named_by(NO_CAUSE)


@pytest.mark.parametrize("place", HONEST_PLACES, ids="-".join)
def test_an_honest_kernel_is_in_a_tier_of_low_precision(place: Place) -> None:
    precise = place.entry.candidate(place.folder).plan.precision == "fp32"
    assert precise is (place.name in APPROXIMATED)


@pytest.mark.sampled("place", one_in=120, files=lambda place: place.files)
@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_a_verdict_is_the_one_of_the_manifest(place: Place) -> None:
    entry = place.entry

    async def judged() -> str:
        walk = BugWalk(entry.task, "emulated", place.folder)
        try:
            return (await walk.judge(place.name, entry)).status
        finally:
            await walk.close()

    expected = entry.emulator if isinstance(entry, PlantedBug) else Status.correct
    assert asyncio.run(judged()) == expected
