"""Stages of a buffer that is used in turns: the one in use for the other one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_STAGE = re.compile(
    r"(?i)(stage|buf|buffer|slot|phase|now|cur|current|half|pingpong|which|turn)\w*"
)
_PAIR = re.compile(r"__shared__ [^;{}]*?\b(\w+)\[2\]")  # an array of two parts


def stage_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`store(now)` made `store(now ^ 1)`, and the other way round."""
    tokens = code.tokens
    toggled = set(re.findall(r"(\w+) \^=? 1\b|1 - (\w+)", re.sub(r"\s+", " ", tokens.code)))
    of_two = set(re.findall(r"\b(\w+) = \w+ % 2\b|\b1 - (\w+)", tokens.code))
    subtracted = {name for pair in of_two for name in pair if name}
    wholes = set(code.values)
    names = {name for pair in toggled for name in pair if name}
    pairs = set(_PAIR.findall(tokens.code))
    for first, last, sort in code.atoms():
        if first != last or sort != "int" or not code.function_places[first]:
            continue
        name = tokens.text(first)
        of_a_pair = tokens.text(first - 1) == "[" and tokens.text(first - 2) in pairs
        is_stage = _STAGE.fullmatch(name) is not None and not _is_count(name)
        if name not in names and not is_stage and not of_a_pair:
            continue
        if tokens.text(first + 1) in ("=", "^=", "+=", "++") or tokens.text(first - 1) == "++":
            continue
        if tokens.text(first + 1) == "^" and tokens.text(first + 2) == "1":
            yield code.replaced(first, first + 2, name, "other stage of a buffer")
        else:
            is_whole = (first, last) in wholes
            other = f"1 - {name}" if name in subtracted else f"{name} ^ 1"
            new = other if is_whole else f"({other})"
            yield code.replaced(first, last, new, "other stage of a buffer")


def _is_count(name: str) -> bool:
    """Whether a name stands for how many there are, such as STAGES or buffers."""
    return name.isupper() or name.endswith("s")
