"""Counters in global memory that are set back beside others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_GLOBAL = re.compile(
    r"__device__\s+(?:volatile\s+)?(?:unsigned|int|unsigned int)\s+(\w+)\s*(?:=[^;,]*)?;"
)


def global_reset_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`next_row = 0;` made `next_row = 0; finished = 0;`."""
    tokens = code.tokens
    names = set(_GLOBAL.findall(tokens.code))
    for first, last in code.statements:
        own = tokens.text(first)
        if own in names and tokens.source(first + 1, last) == "= 0;":
            for other in sorted(names - {own}):
                yield code.inserted(last, f" {other} = 0;", "counter not set back, beside another")
