"""The RUN argument: a name under the runs directory, or a path; and the command that resumes it."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evoengine.paths import RunPaths

RUNS_DIR = Path("runs")


def find_run(text: str, runs_dir: Path) -> RunPaths:
    """The folder that `text` names; whether a run is in it is for the store to say, which knows the near names."""
    from evoengine.errors import UsageError
    from evoengine.paths import RunPaths

    if not text.strip():
        raise UsageError("expected the name of a run or the path of its folder, got an empty text")
    given = Path(text)
    if given.name == "run.db":
        given = given.parent
    is_path = given.is_absolute() or len(given.parts) > 1 or given.parts in ((), ("..",))
    by_name = runs_dir / given
    if is_path or (not (by_name / "run.db").is_file() and (given / "run.db").is_file()):
        return RunPaths(given.resolve())
    return RunPaths(by_name)


def resume_command(paths: RunPaths) -> str:
    """What a shell in this folder needs to go on with the run."""
    return f"{program()} resume {_word(paths.root.name)} --runs-dir {_word(str(paths.root.parent))}"


def show_command(paths: RunPaths) -> str:
    """What a shell in this folder needs to look at the run."""
    return f"{program()} show {_word(paths.root.name)} --runs-dir {_word(str(paths.root.parent))}"


def _word(text: str) -> str:
    return shlex.quote(text)


def program() -> str:
    """How this program was called, so that the printed command works when it is pasted."""
    called = Path(sys.argv[0])
    if called.name == "evoengine" and called.is_file():
        on_path = shutil.which("evoengine")
        if on_path and called.samefile(on_path):
            return "evoengine"
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m evoengine" if called.name == "__main__.py" else "evoengine"
