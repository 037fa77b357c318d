"""How far apart rows are where a fragment is read or written: the leading dimension of WMMA."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_CALLS = ("load_matrix_sync", "store_matrix_sync")
_LEADING = 2  # the place of the argument in both
_LAYOUT = 3  # the place of the layout, where a call has one
_OTHER_LAYOUT = {"row_major": "col_major", "col_major": "row_major"}
_LENGTHS = ("8", "16", "32")  # of sides of fragments
_PADDING = ("8", "4")  # elements that rows in shared memory are longer by

Range = tuple[int, int]


def pitch_changes(code: KernelCode) -> Iterator[SourceChange]:
    """The leading dimension of a call made another size of the kernel, one with padding, or one
    without.
    """
    tokens, kind = code.tokens, "leading dimension of another"
    for place in range(len(tokens)):
        if tokens.text(place) not in _CALLS or tokens.text(place + 1) != "(":
            continue
        arguments = code.extents.arguments(place + 1)
        if len(arguments) <= _LEADING:
            continue
        first, last = arguments[_LEADING]
        own = tokens.source(first, last)
        others = [*code.sizes(place), *(f"{own} + {more}" for more in _PADDING)]
        if tokens.text(last - 1) == "+" and first < last - 1:
            others.append(tokens.source(first, last - 2))
        for other in others:
            if other != own:
                yield code.replaced(first, last, other, kind)
        if len(arguments) > _LAYOUT:
            yield from _turned(code, (first, last), arguments[_LAYOUT], others)


def _turned(
    code: KernelCode, leading: Range, layout: Range, others: list[str]
) -> Iterator[SourceChange]:
    """The other layout together with another leading dimension: `8, mem_row_major` for `32,
    mem_col_major`.
    """
    text = code.tokens.source(*layout)
    turned = re.sub("row_major|col_major", lambda it: _OTHER_LAYOUT[it[0]], text)
    if turned == text:
        return
    for other in dict.fromkeys((*others, *_LENGTHS)):
        if other != code.tokens.source(*leading):
            pair = [code.replaced(*leading, other, ""), code.replaced(*layout, turned, "")]
            yield together(pair, "layout and leading dimension of another")
