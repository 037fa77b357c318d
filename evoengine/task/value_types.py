"""The types of values that several models of a task file share."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from evoengine.task import expression, yaml_source
from evoengine.task.expression import ExpressionError


def _expression_text(value: Any) -> str:
    if not isinstance(value, str | int | float):
        raise ValueError(f"expected an expression, got {yaml_source.shown(value)}")
    try:
        return expression.parse(value).text
    except ExpressionError as error:
        raise ValueError(str(error)) from None


def _function_reference(value: str) -> str:
    if not re.fullmatch(r"[\w./-]+\.py:[A-Za-z_]\w*", value):
        raise ValueError("expected FILE.py:FUNCTION, e.g. sdpa.py:forward")
    return value


Formula = Annotated[str, BeforeValidator(_expression_text)]
FunctionRef = Annotated[str, AfterValidator(_function_reference)]
