"""An assignment that stands behind a variable in one block, and behind its namesake in none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.kinds.visible_names import has_meaning
from evoengine.evaluate.repair.source_change import SourceChange

_ASSIGNED = re.compile(r"([A-Za-z_][\w.]*(?:\[[^\]=]*\])*) = ([A-Za-z_]\w*);")
_MOST_PLACES = 12  # behind a variable


def like_block_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`top = fmaxf(m[i], x); ...` with `m[i] = top;` behind each of its statements, where another
    block of the kernel has that behind a `top` of its own.
    """
    tokens, blocks = code.tokens, list(StatementBlocks(code).blocks())
    for first, last in code.statements:
        text = tokens.source(first, last)
        found = _ASSIGNED.fullmatch(text)
        own = code.names.at(last - 1) if found else None
        if found is None or own is None or found[1] == own.name:
            continue
        for item in code.names.all:
            is_namesake = item.name == own.name and item.sort == own.sort and item != own
            if not is_namesake or item.is_parameter or item.position < 0:
                continue
            if re.search(rf"(?<![\w.]){re.escape(text)}", code.scope(item)):
                continue
            places = [
                it.last
                for _, items in blocks
                for it in items
                if item.position < it.last <= item.last
                and has_meaning(code, (first, last), it.last)
            ]
            for place in sorted(places)[:_MOST_PLACES]:
                yield code.inserted(place, f" {text}", "statement of a like block missing")
