"""Counters in global memory that are set back beside others, and factors that sums have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_GLOBAL = re.compile(
    r"__device__\s+(?:volatile\s+)?(?:unsigned|int|unsigned int)\s+(\w+)\s*(?:=[^;,]*)?;"
)
_MOST_FACTORS = 8


def global_reset_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`next_row = 0;` made `next_row = 0; finished = 0;`, and `sum = row_sum[r]` made
    `sum = row_sum[r] * fade[r]` where something else is scaled by fade[r].
    """
    tokens = code.tokens
    names = set(_GLOBAL.findall(tokens.code))
    for first, last in code.statements:
        own = tokens.text(first)
        if own in names and tokens.source(first + 1, last) == "= 0;":
            for other in sorted(names - {own}):
                yield code.inserted(last, f" {other} = 0;", "counter not set back, beside another")
    yield from _scaled(code)


def _scaled(code: KernelCode) -> Iterator[SourceChange]:
    """An element that is set, or added, times what another statement multiplies by."""
    tokens = code.tokens
    factors: dict[str, tuple[int, int]] = {}
    for first, last in code.statements:
        sign = next((at for at in range(first, last) if tokens.text(at) == "*="), None)
        if sign is not None and last - 1 > sign + 1:
            factors.setdefault(tokens.source(sign + 1, last - 1), (sign + 1, last - 1))
    for first, last in code.statements:
        sign = next((at for at in range(first, last) if tokens.text(at) in ("=", "+=")), None)
        if sign is None or not code.function_places[sign]:
            continue
        value = sign + 1, last - 1
        if value[0] > value[1] or code.extents.postfix(value[0]) != value[1]:
            continue
        for text, span in list(factors.items())[:_MOST_FACTORS]:
            if text not in tokens.source(*value) and code.can_stand(*span, last):
                yield code.inserted(value[1], f" * {text}", "factor missing, of another update")
