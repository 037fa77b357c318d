"""Rows as JSON that every parser accepts."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel


def dumps(value: BaseModel | Sequence[BaseModel] | Mapping[str, Any]) -> str:
    """`value` as indented JSON. NaN and infinities, which JSON lacks, become the strings "NaN",
    "Infinity" and "-Infinity".
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
        # a JSON reply can hold half a surrogate pair, which UTF-8 cannot encode
        return value.encode("utf-8", "replace").decode()
    return value
