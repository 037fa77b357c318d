"""Refuses a stored run whose settings, task or device this version cannot read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evoengine.config import RunConfig
from evoengine.errors import StoreError
from evoengine.records import Environment, Frozen, RunInfo
from evoengine.task.schema import Task


def refuse_unknown_settings(info: RunInfo, database: Path) -> None:
    """Raises StoreError for a run in `database` that another version wrote, with keys that this one
    does not know.
    """
    parts: dict[str, tuple[type[Frozen], Any]] = {
        "settings": (RunConfig, info.config),
        "task": (Task, info.task),
    }
    if info.environment is not None:
        parts["device"] = (Environment, info.environment)
    for name, (model, stored) in parts.items():
        try:
            model.model_validate(stored)
        except ValidationError as error:
            first = error.errors()[0]
            raise StoreError(
                f"{database}: this version of evoengine cannot read the {name} of the run:"
                f" {'.'.join(map(str, first['loc']))}: {first['msg']}; it was begun by version"
                f" {info.version}"
            ) from None
