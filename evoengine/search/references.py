"""The digests of a task's Python files; a run stores them, because verdicts depend on the files."""

from __future__ import annotations

from pathlib import Path

from evoengine.digest import digest
from evoengine.errors import TaskError
from evoengine.records import RunInfo
from evoengine.task.python_files import python_files
from evoengine.task.schema import Task


def reference_digests(task: Task, task_path: Path) -> dict[str, str]:
    """The Python files that the task names, and those beside them that they import -> the digest of
    each.
    """
    return {file: digest(path.read_bytes()) for file, path in python_files(task, task_path).items()}


def refuse_changed_references(info: RunInfo) -> None:
    """Raises TaskError if a file is missing or has changed since the run began, because verdicts
    against two references cannot be compared.
    """
    task_path = Path(info.task_path)
    for file, before in info.references.items():
        path = task_path.parent / file
        if not path.is_file():
            raise TaskError(f"run {info.name} needs {str(path)!r}, which is missing")
        if digest(path.read_bytes()) != before:
            raise TaskError(
                f"{path} changed since run {info.name} began: start a new run, or restore the file"
            )
