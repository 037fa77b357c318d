"""Rows as JSON that every parser reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel


def dumps(value: BaseModel | Sequence[BaseModel] | Mapping[str, Any]) -> str:
    """`value` as indented JSON. Numbers that JSON has not become the words "NaN", "Infinity",
    "-Infinity".
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json"))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        return value.encode(
            "utf-8", "replace"
        ).decode()  # half a surrogate pair, as JSON replies can hold, is no text
    return value
