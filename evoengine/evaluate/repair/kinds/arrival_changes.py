"""Arrivals at a barrier that others wait for, before what they announce is done."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_ARRIVES = re.compile(r"\bbar(?:rier)?(?:\.cta)?\.arrive|mbarrier\.arrive|arrive", re.IGNORECASE)
_FUNCTION = re.compile(r"\bvoid\s+(\w+)\s*\([^;{}]*\)\s*\{([^{}]*)\}")
_MOST_STATEMENTS = 6  # that it is moved over


def arrival_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`announce(full); fill(tile);` made `fill(tile); announce(full);`."""
    tokens, blocks = code.tokens, StatementBlocks(code)
    arriving = {name for name, body in _FUNCTION.findall(tokens.code) if _ARRIVES.search(body)}
    for _, items in blocks.blocks():
        for number, item in enumerate(items):
            name = tokens.text(item.first)
            text = tokens.source(item.first, item.last)
            is_arrival = name in arriving or (_ARRIVES.search(text) and len(text) < 200)
            if not is_arrival or not item.is_simple:
                continue
            for behind in items[number + 1 : number + 1 + _MOST_STATEMENTS]:
                dropped = code.replaced(item.first, item.last, ";", "")
                put = code.inserted(behind.last, f" {text}", "")
                yield together([dropped, put], "arrival before the work")
