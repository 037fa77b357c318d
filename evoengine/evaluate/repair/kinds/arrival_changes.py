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
_CALL = re.compile(r"(?:if \([^{};]*\) )?(\w+)\([^{};]*;")  # under a condition or without one
_LONGEST = 200  # characters of a statement that arrives
_MOST_STATEMENTS = 6  # that it is moved over


def arrival_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`announce(full); fill(tile);` made `fill(tile); announce(full);`."""
    tokens, blocks = code.tokens, StatementBlocks(code)
    arriving = {name for name, body in _FUNCTION.findall(tokens.code) if _ARRIVES.search(body)}
    for _, items in blocks.blocks():
        for number, item in enumerate(items):
            text = " ".join(tokens.source(item.first, item.last).split())
            call = _CALL.fullmatch(text)
            is_arrival = call is not None and call[1] in arriving
            is_short = len(text) < _LONGEST and "{" not in text
            is_whole = item.is_simple or text.startswith("if (")
            is_arrival |= is_short and is_whole and _ARRIVES.search(text) is not None
            if not is_arrival:
                continue
            for behind in items[number + 1 : number + 1 + _MOST_STATEMENTS]:
                dropped = code.replaced(item.first, item.last, ";", "")
                put = code.inserted(behind.last, f" {text}", "")
                yield together([dropped, put], "arrival before the work")
