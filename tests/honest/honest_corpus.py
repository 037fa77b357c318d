"""The honest kernels, their manifest, and the tasks on sizes that a CPU emulates in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.paths import find_task, seeds_dir, starter_dir
from evoengine.records import Status
from evoengine.task.load import load_task
from evoengine.task.schema import Task

FOLDER = Path(__file__).resolve().parent
MANIFEST = FOLDER / "manifest.yaml"

_ATTENTION = {
    "full": {"B": 1, "H": 3, "S": 128, "D": 64, "causal": False},
    "causal": {"B": 2, "H": 2, "S": 77, "D": 64, "causal": True},
    "wide_head": {"B": 1, "H": 2, "S": 96, "D": 128, "causal": False},
}
_SHORT_ATTENTION = {"single": {"B": 2, "H": 1, "S": 1, "D": 64, "causal": True}}
# Enough blocks that queues, splits and counters of the kernels have something to do.
_CASES: dict[str, dict[str, Any]] = {
    "sdpa_l4": _ATTENTION,
    "sdpa_h200": _ATTENTION,
    "layernorm": {"rows": {"N": 33, "C": 1024}, "few": {"N": 3, "C": 8192}},
    "matmul_fp16": {
        "square": {"M": 128, "N": 192, "K": 256},
        "flat": {"M": 48, "N": 264, "K": 72},
    },
    "starter": {"rows": {"N": 33, "C": 1024}, "broad": {"N": 5, "C": 4096}},
}


@dataclass(frozen=True)
class HonestKernel:
    """One line of the manifest."""

    path: Path
    task: str
    style: str
    emulator: Status  # its verdict on the emulator

    @property
    def candidate(self) -> Candidate:
        """The kernel file, parsed."""
        return kernel_file.parse(self.path.read_text(encoding="utf-8"), self.path.name)


@cache
def honest_kernels() -> tuple[HonestKernel, ...]:
    """Every kernel of the manifest, the seeds included."""
    lines = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    return tuple(
        HonestKernel(
            path=_path(name),
            task=line["task"],
            style=line["style"],
            emulator=Status(line.get("emulator", "correct")),
        )
        for name, line in lines.items()
    )


def _path(name: str) -> Path:
    folder, _, file_name = name.rpartition("/")
    return (seeds_dir() if folder == "seeds" else FOLDER) / file_name


def task_path(name: str) -> Path:
    """The file of a packaged task, or of `starter`, the one that `evoengine init` copies."""
    return starter_dir() / "starter.yaml" if name == "starter" else find_task(name)


@cache
def whole_task(name: str) -> Task:
    """The task as it is packaged."""
    return load_task(task_path(name))


@cache
def small_task(name: str) -> Task:
    """The task with its gates, distributions and seeds on small cases; the hidden ones of attention
    are replaced too, the others are small already.
    """
    changes: dict[str, Any] = {
        "cases": _CASES[name],
        "objective": {"cases": list(_CASES[name])},
    }
    if name.startswith("sdpa"):
        changes["hidden_cases"] = _SHORT_ATTENTION
    return Task.model_validate({**whole_task(name).model_dump(), **changes})
