"""The corpora of tests/cheats and tests/honest: their manifests, and when a cheat counts as
accepted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from benchmarks.small_cases import Corpus, on_small_cases
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.paths import find_task, starter_dir
from evoengine.records import Frozen, Status, Verdict
from evoengine.task.load import load_task
from evoengine.task.schema import Task

ROOT = Path(__file__).resolve().parent.parent
CHEATS, HONEST = ROOT / "tests" / "cheats", ROOT / "tests" / "honest"
MANIFEST = "manifest.yaml"
# A cheat with a shorter time than its twin's by more than this factor has gained. Two verdicts on
# one kernel differ by up to 5 %.
NOISE = 1.05


class Cheat(Frozen):
    """One entry of the manifest of tests/cheats, which explains the fields."""

    task: str
    family: str
    what: str
    twin: str
    expect: tuple[Status, ...]
    harmless: bool = False
    must_not_say: tuple[str, ...] = ()
    emulator_lacks: bool = False
    emulator_accepts: str = ""
    seen_on_0_1_0: float | str | None = None
    why_not: str = ""


class Honest(Frozen):
    """One entry of the manifest of tests/honest."""

    task: str
    style: str
    emulator: Status = Status.correct  # its verdict on the emulator


@dataclass(frozen=True)
class Judged:
    """A final verdict, and the score of the twin under the same conditions."""

    verdict: Verdict
    twin: Verdict | None = None

    @property
    def text(self) -> str:
        """What a generator may read of the verdict."""
        return f"{self.verdict.reason}\n{self.verdict.detail}"

    @property
    def gain(self) -> float | None:
        """The twin's time over the candidate's; None where either has no time."""
        if self.verdict.score is None or self.twin is None or self.twin.score is None:
            return None
        return self.twin.score.value / self.verdict.score.value


def cheats(folder: Path = CHEATS) -> dict[str, Cheat]:
    """The entries of the corpus of cheats by file name; raises ValueError for a wrong manifest."""
    return _read(folder / MANIFEST, TypeAdapter(dict[str, Cheat]))


def honest(folder: Path = HONEST) -> dict[str, Honest]:
    """The entries of the corpus of honest kernels by file name; raises ValueError for a wrong
    manifest.
    """
    return _read(folder / MANIFEST, TypeAdapter(dict[str, Honest]))


def parsed(path: Path) -> Candidate:
    """The kernel file at `path`; raises CandidateError."""
    return kernel_file.parse(path.read_text(encoding="utf-8"), path.name)


def path_of(name: str, folder: Path) -> Path:
    """The file of an entry: in the folder of its manifest, or with slashes below the root."""
    return ROOT / name if "/" in name else folder / name


def why_accepted(cheat: Cheat, judged: Judged, emulated: bool = False) -> str:
    """Why this verdict lets the cheat through; empty if it does not."""
    for pattern in cheat.must_not_say:
        if found := re.search(pattern, judged.text):
            return f"its verdict says {found[0]!r}"
    status = judged.verdict.status
    if status is Status.unsupported and not cheat.emulator_lacks:
        return "unsupported is no refusal of it"
    if status is not Status.correct or (emulated and cheat.emulator_accepts):
        return ""
    if not cheat.harmless:
        return "correct"
    if judged.gain is None:
        return "correct, and its twin has no time to compare with"
    return f"{judged.gain:.2f} times as fast as its twin" if judged.gain > NOISE else ""


def is_expected(cheat: Cheat, status: Status, emulated: bool = False) -> bool:
    """Whether the manifest lists this status; `fault` of the emulator's checked mode always
    counts.
    """
    return (
        status in cheat.expect
        or (status is Status.correct and (cheat.harmless or bool(cheat.emulator_accepts)))
        or (emulated and (status is Status.fault or status is Status.unsupported))
    )


def why_refused(entry: Honest, verdict: Verdict, emulated: bool = False) -> str:
    """Why an honest kernel was refused; empty if it was not."""
    if verdict.status in (Status.correct, entry.emulator if emulated else Status.correct):
        return ""
    return f"{verdict.status}: {verdict.reason}"


def task_path(name: str) -> Path:
    """The file of a packaged task, or of `starter`, the one that `evoengine init` copies."""
    return starter_dir() / "starter.yaml" if name == "starter" else find_task(name)


def small_task(name: str, corpus: Corpus) -> Task:
    """The task `name` with its gates, on the small cases of a corpus."""
    return on_small_cases(load_task(task_path(name)), corpus)


def _read(path: Path, adapter: TypeAdapter[Any]) -> Any:
    try:
        return adapter.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path}: {place}: {first['msg']}") from None
