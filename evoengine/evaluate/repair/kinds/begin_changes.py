"""Begins of ranges that are missing: the place of a part or a step is counted from zero."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

# Names for where a range begins: start, row_begin, firstRow, k0, and so on.
_BEGIN = re.compile(
    r"(?i)(?:\w+_)?(?:begin|start|first|base|from|origin|offset|lo)(?:_\w+)?|[a-z]+0"
    r"|\w*(?:Begin|Start|First|Base|Origin|Offset)|(?:begin|start|first|base|origin)[A-Z]\w*"
)
_POINTED = re.compile(r"\w+ \+ \w+")  # `weight + i`
_MOST_BEGINS = 3  # the last declared first


def begin_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`= p * PIECE` made `= begin + p * PIECE`, `(weight + i)` made `(weight + start + i)`."""
    tokens = code.tokens
    for first, last in code.values:
        text = tokens.source(first, last)
        names = [tokens.text(place) for place in range(first, last + 1)]
        if any(map(_BEGIN.fullmatch, names)):
            continue
        own = code.names.at(first)
        points = own is not None and own.sort == "pointer"
        is_product = "*" in names and "*" not in (names[0], tokens.text(first - 1))
        if not (_POINTED.fullmatch(text) if points else is_product):
            continue
        begins = [item.name for item in code.visible(first, "int") if _BEGIN.fullmatch(item.name)]
        for name in begins[:_MOST_BEGINS]:
            new = f"{names[0]} + {name} + {names[-1]}" if points else f"{name} + {text}"
            yield code.replaced(first, last, new, "begin of a range missing")
