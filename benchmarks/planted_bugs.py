"""The corpus of tests/bugs: its manifest, the kernels it describes, and when a diagnosis names a
cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from benchmarks.corpora import MANIFEST, ROOT, path_of, task_path
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.records import Frozen, Status
from evoengine.task.load import load_task
from evoengine.task.schema import Task

BUGS = ROOT / "tests" / "bugs"
NAMED_WITHIN = 2  # a cause counts as named if one of so many first findings names it

# Several heads, batches, tiles and slices, so that wrong ones differ from right ones; some shown
# sizes are odd, because a tail that only hidden sizes have may not be explained to a generator.
_ATTENTION: Mapping[str, Mapping[str, Any]] = {
    "cases": {
        "full": {"B": 2, "H": 3, "S": 192, "D": 64, "causal": False},
        "causal": {"B": 2, "H": 4, "S": 96, "D": 64, "causal": True},
        "wide_head": {"B": 1, "H": 2, "S": 77, "D": 128, "causal": False},
    },
    "hidden_cases": {"odd": {"B": 2, "H": 1, "S": 45, "D": 64, "causal": True}},
}
BUG_CASES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "sdpa_h200": _ATTENTION,
    "sdpa_l4": _ATTENTION,
    "matmul_fp16": {
        "cases": {
            "square": {"M": 128, "N": 192, "K": 256},
            "flat": {"M": 48, "N": 264, "K": 72},
            "ragged": {"M": 70, "N": 65, "K": 131},
        },
        "hidden_cases": {"odd": {"M": 77, "N": 130, "K": 33}},
    },
    "linear_gelu": {
        "cases": {"layer": {"M": 128, "N": 192, "K": 96}, "ragged": {"M": 70, "N": 65, "K": 72}},
        "hidden_cases": {"odd": {"M": 77, "N": 130, "K": 33}},
    },
    "layernorm": {
        "cases": {"rows": {"N": 33, "C": 1024}, "ragged": {"N": 5, "C": 1003}},
        "hidden_cases": {"odd": {"N": 7, "C": 333}},
    },
    "starter": {
        "cases": {"rows": {"N": 33, "C": 1024}, "ragged": {"N": 5, "C": 1003}},
        "hidden_cases": {"odd": {"N": 7, "C": 333}},
    },
    "adamw": {
        "cases": {"layer": {"N": 4096, "STEP": 10}, "ragged": {"N": 3001, "STEP": 3}},
        "hidden_cases": {"odd": {"N": 1003, "STEP": 5}},
    },
    "embedding_bag": {
        "cases": {
            "words": {"V": 4096, "D": 128, "T": 512, "BAGS": 48},
            "long_bags": {"V": 256, "D": 64, "T": 1024, "BAGS": 3},
            "ragged": {"V": 300, "D": 36, "T": 111, "BAGS": 97},
        },
        "hidden_cases": {"odd": {"V": 131, "D": 132, "T": 55, "BAGS": 40}},
    },
}


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
    """The manifest of tests/bugs: kernels by name."""

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


def bug_task_path(name: str) -> Path:
    """The file of a task of the corpus: one in its folder, a packaged one, or `starter`."""
    own = BUGS / f"{name}.yaml"
    return own if own.is_file() else task_path(name)


def bug_task(name: str, on_small_cases: bool = True) -> Task:
    """The task `name`, on sizes that the emulator runs in a second unless asked otherwise."""
    task = load_task(bug_task_path(name))
    if not on_small_cases:
        return task
    whole, small = task.model_dump(), BUG_CASES[name]
    objective = {**whole["objective"], "cases": list(small["cases"])}
    return Task.model_validate({**whole, **small, "objective": objective})
