"""The kernels that judge the model of time (tests/structures/manifest.yaml), bound for a device."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import yaml

from benchmarks.configurations import TIMEOUT_S
from benchmarks.corpora import ROOT, parsed, path_of
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import CasePlan, bind
from evoengine.evaluate.compile.compile_unit import CompileUnit
from evoengine.paths import find_task
from evoengine.records import Frozen
from evoengine.task.load import load_task

STRUCTURES = ROOT / "tests" / "structures"
Group = Literal["fit", "measure", "seen", "blind", "blind_second", "blind_third", "blind_fourth"]
GROUPS: tuple[str, ...] = get_args(Group)
FITTED_SHARE = 1 / 3  # of each task's structures that were drawn: groups `fit` and `measure`


class Structure(Frozen):
    """One entry of the manifest of tests/structures; `task` is packaged, or a file beside it."""

    task: str
    cases: tuple[str, ...]
    group: Group

    @property
    def task_path(self) -> Path:
        """The file of its task; raises TaskError."""
        own = STRUCTURES / f"{self.task}.yaml"
        return own if own.is_file() else find_task(self.task)


class Structures(Frozen):
    """The manifest of tests/structures: entries by file name, and the seed of their groups."""

    draw_seed: int
    structures: dict[str, Structure]


@dataclass(frozen=True)
class StructureCase:
    """One structure on one case, bound for a device."""

    name: str  # its file's, without the folder
    path: Path
    structure: Structure
    plan: CasePlan
    unit: CompileUnit

    @property
    def key(self) -> str:
        """What names it in a file of counts."""
        return f"{self.name} {self.plan.case}"


def manifest(folder: Path = STRUCTURES) -> Structures:
    """The manifest of a folder of structures."""
    text = (folder / "manifest.yaml").read_text(encoding="utf-8")
    return Structures.model_validate(yaml.safe_load(text))


def drawn(names: Iterable[str], task: str, seed: int) -> set[str]:
    """Which of a task's structures may be fitted."""
    ordered = sorted(names)
    count = round(len(ordered) * FITTED_SHARE)
    return set(random.Random(f"{seed} {task}").sample(ordered, count))  # noqa: S311


def bound(
    limits: DeviceLimits, only: Sequence[str] | None = None, groups: Sequence[str] = GROUPS
) -> list[StructureCase]:
    """Every structure of these groups on each of its cases, or those of the names in `only`."""
    entries = manifest().structures
    known = {Path(name).stem for name in entries}
    if unknown := set(only or ()) - known:
        sys.exit(f"no structure {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")
    return [
        _bound(path_of(name, STRUCTURES), entry, case, limits)
        for name, entry in entries.items()
        if entry.group in groups and (not only or Path(name).stem in only)
        for case in entry.cases
    ]


def _bound(path: Path, entry: Structure, case: str, limits: DeviceLimits) -> StructureCase:
    candidate = parsed(path)
    plan = bind(candidate, load_task(entry.task_path), case, limits)
    unit = CompileUnit(
        code=candidate.code,
        name=path.name,
        arch=limits.arch,
        macros=plan.macros,
        kernels=tuple(sorted({launch.kernel for launch in plan.launches})),
        timeout_s=TIMEOUT_S,
    )
    return StructureCase(path.stem, path, entry, plan, unit)
