"""Where things are: packaged tasks, seeds and prompts; the folders of a run; the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import CandidateError, TaskError, hint

_PACKAGE = Path(__file__).resolve().parent


def _shipped(kind: str) -> Path:
    """The folder `kind` beside the package in a checkout, inside it in an installed wheel."""
    beside = _PACKAGE.parent / kind
    return (
        beside
        if (beside / ".." / "pyproject.toml").resolve().is_file() and beside.is_dir()
        else _PACKAGE / "shipped" / kind
    )


def tasks_dir() -> Path:
    """The packaged tasks."""
    return _shipped("tasks")


def seeds_dir() -> Path:
    """The packaged starting kernels."""
    return _shipped("seeds")


def prompts_dir() -> Path:
    """The packaged prompt templates."""
    return _shipped("prompts")


def starter_dir() -> Path:
    """The task that `evoengine init` copies."""
    return tasks_dir() / "starter"


def packaged_tasks() -> Iterator[Path]:
    """The packaged task files, by name."""
    return iter(sorted(tasks_dir().glob("*.yaml")))


def find_task(text: str) -> Path:
    """The task file that `text` names: a path, or the name of a packaged task."""
    if _is_file(Path(text)):
        return Path(text)
    names = [path.stem for path in packaged_tasks()]
    if text in names:
        return tasks_dir() / f"{text}.yaml"
    raise TaskError(f"no task {text!r}{hint(Path(text).stem, names)}")


def _is_file(path: Path) -> bool:
    """Whether a file can be reached there; a name too long or a closed folder is a no."""
    try:
        return path.is_file()
    except OSError:
        return False


def find_kernel(text: str, beside: Path | None = None) -> Path:
    """The kernel file that `text` names: a path (also relative to `beside` or its parent), or a
    packaged seed; raises CandidateError.
    """
    places = [Path(text)]
    if beside is not None:
        places += [beside / text, beside.parent / text]
    name = Path(text).name
    places.append(seeds_dir() / (name if name.endswith(".cu") else f"{name}.cu"))
    for place in places:
        if _is_file(place):
            return place
    known = [path.stem for path in sorted(seeds_dir().glob("*.cu"))]
    raise CandidateError(f"no kernel {text!r}{hint(Path(text).stem, known, 'packaged seeds')}")


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Where compiled code is kept between runs."""
    base = environ.get("EVOENGINE_CACHE_DIR")
    if base:
        return Path(base)
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evoengine"


@dataclass(frozen=True)
class RunPaths:
    """The folder of one run and everything in it; run.db is the truth, the rest can be rebuilt."""

    root: Path

    @property
    def database(self) -> Path:
        return self.root / "run.db"

    @property
    def lock(self) -> Path:
        return self.root / "run.lock"

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def elites(self) -> Path:
        return self.root / "elites"

    def elite(self, tier: str, place: int) -> Path:
        return self.elites / tier / str(place)

    @property
    def trials(self) -> Path:
        return self.root / "trials"

    def trial(self, number: int) -> Path:
        return self.trials / str(number)
