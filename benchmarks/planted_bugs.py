"""The corpora of planted bugs (tests/bugs, tests/bugs_second, up to tests/bugs_thirtysixth): their
manifests, the kernels they describe, and when a diagnosis names a cause.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from benchmarks import small_cases
from benchmarks.corpora import MANIFEST, ROOT, path_of, task_path
from benchmarks.small_cases import SMALL_CASES, Corpus
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.records import Frozen, Status
from evoengine.task.load import load_task
from evoengine.task.schema import Task

BUGS = ROOT / "tests" / "bugs"
NAMED_WITHIN = 2  # a cause counts as named if one of so many first findings names it


class CorpusKernel(Frozen):
    """A kernel file, as it is or with one place of it replaced."""

    task: str
    file: str  # in the folder of the corpus, or with slashes below the root of the repository
    replace: tuple[str, str] | None = None  # what is there once, and what comes in its place

    def text(self, folder: Path = BUGS) -> str:
        """The text of the kernel; raises ValueError unless `replace` fits exactly one place."""
        text = path_of(self.file, folder).read_text(encoding="utf-8")
        if self.replace is None:
            return text
        old, new = self.replace
        if (count := text.count(old)) != 1:
            raise ValueError(f"{self.file}: expected {old!r} once, found it {count} times")
        return text.replace(old, new)

    def planted_lines(self, folder: Path = BUGS) -> range:
        """The lines of the kernel in which the replacement stands, and where it has fewer lines
        those beside it, because what is missing can be put there; none without a replacement.
        """
        if self.replace is None:
            return range(0)
        old, new = self.replace
        before = path_of(self.file, folder).read_text(encoding="utf-8").partition(old)[0]
        first, breaks = before.count("\n") + 1, new.count("\n")
        beside = 1 if old.count("\n") > breaks or not new.strip() else 0
        return range(first - beside, first + breaks + 1 + beside)

    def candidate(self, folder: Path = BUGS) -> Candidate:
        """The kernel parsed; raises CandidateError, ValueError."""
        return kernel_file.parse(self.text(folder), Path(self.file).name)


class PlantedBug(CorpusKernel):
    """A wrong kernel with one bug whose cause is known."""

    cause: str  # what an engineer who has found it would say
    says: tuple[str, ...]  # patterns: a sentence that names the cause matches at least one
    emulator: Status = Status.wrong_result  # its verdict there

    def is_named_by(self, sentences: Sequence[str]) -> bool:
        """Whether one of the sentences names the cause."""
        return any(
            re.search(pattern, sentence, re.IGNORECASE)
            for pattern in self.says
            for sentence in sentences
        )


class HonestNumbers(CorpusKernel):
    """A kernel that is correct in its tier although it rounds a lot: it has no bug to find."""

    style: str


class BugManifest(Frozen):
    """The manifest of a corpus of planted bugs: kernels by name."""

    bugs: dict[str, PlantedBug]
    honest: dict[str, HonestNumbers]


def bug_manifest(folder: Path = BUGS) -> BugManifest:
    """The manifest in `folder`; raises ValueError where it is wrong."""
    path = folder / MANIFEST
    try:
        return BugManifest.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path}: {place}: {first['msg']}") from None


def bug_task_path(name: str, folder: Path = BUGS) -> Path:
    """The file of a task of the corpus in `folder`: one beside its manifest, a packaged one, or
    `starter`.
    """
    own = folder / f"{name}.yaml"
    return own if own.is_file() else task_path(name)


def bug_task(name: str, on_small_cases: bool = True, folder: Path = BUGS) -> Task:
    """The task `name`, on sizes that the emulator runs in a second unless asked otherwise. A task
    that has no small cases in the table has such sizes in its own file.
    """
    task = load_task(bug_task_path(name, folder))
    if not on_small_cases or Corpus.bugs not in SMALL_CASES.get(task.name, {}):
        return task
    return small_cases.on_small_cases(task, Corpus.bugs)
