"""Sizes of which an array has more: it is padded to whole tiles, and the size is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_COUNTED = (
    re.compile(r"\b(\w+): *ceil_div\(\w+, *(\w+)\)"),  # in the plan
    re.compile(r"\b(\w+) = \(\w+ \+ (\w+) - 1\) / \2\b"),
)


def padded_size_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`head * n * D` made `head * (tiles * 32) * D`, where `tiles` is `ceil_div(n, 32)`: the array
    has whole tiles.
    """
    tokens = code.tokens
    tiles = dict(pair for pattern in _COUNTED for pair in pattern.findall(code.source))
    for place in range(1, len(tokens)):
        own = code.names.at(place) if tokens.kind(place) == "name" else None
        is_factor = "*" in (tokens.text(place - 1), tokens.text(place + 1))
        if own is None or not own.is_parameter or own.sort != "int" or not is_factor:
            continue
        for item in code.visible(place, "int") if own.name not in tiles else ():
            if item.name in tiles:
                new = f"({item.name} * {tiles[item.name]})"
                yield code.replaced(place, place, new, "size without its padding")
