"""`evoengine init NAME`: a task, a reference and a kernel to start from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

MODEL = "starter"  # the name of the packaged files, and in them
SUFFIXES = (".yaml", ".py", ".cu")
LONGEST = 64  # characters: a run's folder is named after the task


def init(
    name: Annotated[str, typer.Argument(help="What the task is called: letters, digits and _.")],
    folder: Annotated[
        Path, typer.Option("--dir", help="Where the files are written; made when it is missing.")
    ] = Path(),
) -> None:
    """Write a small task that works, to start from.

    NAME.yaml, its reference NAME.py and a first kernel NAME.cu, explained by comments. It
    normalises rows (RMS norm): change the three files into your own task bit by bit. Nothing is
    overwritten.
    """
    from evoengine.errors import UsageError
    from evoengine.paths import starter_dir

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII) or len(name) > LONGEST:
        raise UsageError(
            f"expected a name of letters, digits and _ that begins with no digit, at most {LONGEST}"
            f" of them, got {name!r}"
        )
    texts = {
        folder / f"{name}{suffix}": _named(starter_dir() / f"{MODEL}{suffix}", name)
        for suffix in SUFFIXES
    }
    taken = [str(path) for path in texts if path.exists() or path.is_symlink()]
    if taken:
        raise UsageError(
            f"{', '.join(taken)} {'is' if len(taken) == 1 else 'are'} already there and would be"
            " overwritten; choose another name"
        )
    _write(texts)
    print("\n".join([*(f"wrote {path}" for path in texts), *_next(folder, name)]))


def _named(path: Path, name: str) -> str:
    return re.sub(rf"\b{MODEL}\b", name, path.read_text(encoding="utf-8"))


def _write(texts: dict[Path, str]) -> None:
    """All of them, or none; none over another file, also when one appears meanwhile."""
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
            f"  {program()} evaluate {kernel} --task {task}    # one verdict; --device emulator:"
            " without a GPU"
        ),
        f"  {program()} prompt {task}    # what a model would be sent",
        f"  {program()} run {task}    # the search",
    ]
