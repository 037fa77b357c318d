"""`evoengine init NAME`: writes a task, a reference and a kernel to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

STARTER = "starter"  # the name of the packaged files, also within them
SUFFIXES = (".yaml", ".py", ".cu")
LONGEST = 64  # characters: a run's folder is named after the task


def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of the task: letters, digits and _.")
    ],
    folder: Annotated[
        Path, typer.Option("--dir", help="Where to write the files; created if it is missing.")
    ] = Path(),
) -> None:
    """Write a small working task to start from.

    Writes the task NAME.yaml, its reference NAME.py and a first kernel NAME.cu, explained by
    comments. The task normalises rows (RMS norm): change the three files into your own task step
    by step. Existing files are not overwritten.
    """
    from evoengine.errors import UsageError
    from evoengine.paths import starter_dir

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII) or len(name) > LONGEST:
        raise UsageError(
            f"expected a name of at most {LONGEST} letters, digits and _ that does not begin with a"
            f" digit, got {name!r}"
        )
    texts = {
        folder / f"{name}{suffix}": _named(starter_dir() / f"{STARTER}{suffix}", name)
        for suffix in SUFFIXES
    }
    taken = [str(path) for path in texts if path.exists() or path.is_symlink()]
    if taken:
        raise UsageError(
            f"{', '.join(taken)} already {'exists' if len(taken) == 1 else 'exist'} and would be"
            " overwritten; choose another name"
        )
    _write(texts)
    print("\n".join([*(f"wrote {path}" for path in texts), *_next(folder, name)]))


def _named(path: Path, name: str) -> str:
    return re.sub(rf"\b{STARTER}\b", name, path.read_text(encoding="utf-8"))


def _write(texts: dict[Path, str]) -> None:
    """Writes all files or none; never over an existing file, even one that appears meanwhile."""
    from evoengine.errors import UsageError

    written: list[Path] = []
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise UsageError(f"--dir: the files cannot be written: {error}") from None


def _next(folder: Path, name: str) -> list[str]:
    import shlex

    from evoengine.command_line import program

    task, kernel = (shlex.quote(str(folder / f"{name}{suffix}")) for suffix in (".yaml", ".cu"))
    return [
        "next:",
        (
            f"  {program()} evaluate {kernel} --task {task}    # one verdict; uses the emulator if"
            " there is no GPU"
        ),
        f"  {program()} prompt {task}    # what a model would be sent",
        f"  {program()} run {task}    # the search",
    ]
