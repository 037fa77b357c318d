"""Reads a task file: YAML beside a plain torch reference.

Every error message names file, line and column.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from evoengine.errors import CandidateError, TaskError
from evoengine.paths import find_kernel
from evoengine.task import yaml_source
from evoengine.task.functions import check_defines
from evoengine.task.schema import Task
from evoengine.task.yaml_source import YamlSource


def load_task(path: Path) -> Task:
    """The task in the file at `path`; raises TaskError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TaskError(
            f"no task file {str(path)!r}; `evoengine tasks` lists the packaged ones"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path}: cannot be read: {error}") from None
    try:
        source = yaml_source.load(text, str(path))
        if not isinstance(source.data, dict):
            raise source.error(
                (),
                "expected a mapping with name, reference, dims, ..., got"
                f" {type(source.data).__name__}",
            )
        task = validated(source)
    except yaml_source.YamlError as error:
        raise TaskError(str(error)) from None
    _check_files(task, path, source)
    return task


def validated(source: YamlSource) -> Task:
    """The task in `source`; raises YamlError with the place of the first error."""
    try:
        return Task.model_validate(source.data)
    except ValidationError as error:
        raise source.explain(error, Task) from None


def _check_files(task: Task, path: Path, source: YamlSource) -> None:
    """Raises TaskError unless every Python function that the task names is in a file beside it and
    every starting kernel is beside it or packaged.
    """
    for place, reference in task.functions.items():
        file_name, _, function = reference.partition(":")
        file = path.parent / file_name
        if not file.is_file():
            raise TaskError(f"{source.at(place)}: no file {str(file)!r}")
        check_defines(file, function, source.at(place))
    for position, kernel in enumerate(task.seeds_from):
        try:
            find_kernel(kernel, path.parent)
        except CandidateError as error:
            raise TaskError(f"{source.at(('seeds_from', position))}: {error}") from None
