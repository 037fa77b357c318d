"""The Python files that a task depends on: those that it names, and what they import from beside
them.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from evoengine.task.schema import Task


def python_files(task: Task, task_path: Path) -> dict[str, Path]:
    """The files by their paths from the task's folder, sorted; imports of imports included.

    An import is looked up beside the file that the task names, in packages too; what is installed
    elsewhere, or imported by a computed name, is not found.
    """
    folder = task_path.parent
    found: dict[str, Path] = {}
    for name in sorted({name.split(":")[0] for name in task.functions.values()}):
        found[name] = folder / name
        for path in _imported(folder / name):
            found.setdefault(Path(os.path.relpath(path, folder)).as_posix(), path)
    return dict(sorted(found.items()))


def _imported(first: Path) -> set[Path]:
    """The modules beside `first` that it imports, directly or through others."""
    waiting, seen = [first], {first}
    while waiting:
        for path in _imports_of(waiting.pop(), first.parent):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
    return seen - {first}


def _imports_of(path: Path, top: Path) -> Iterator[Path]:
    """The files below `top`, or for relative imports beside `path`, that `path` imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # the worker that imports it says what is wrong
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(top, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else top
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files(base, [*module, alias.name])


def _files(base: Path, names: Sequence[str]) -> Iterator[Path]:
    """The files of a module and of the packages that it is in, as far as they lie below `base`."""
    for end in range(1, len(names) + 1):
        place = base.joinpath(*names[:end])
        for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if file.is_file():
                yield file
