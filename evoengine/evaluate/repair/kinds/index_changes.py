"""Indices taken from other accesses of the kernel."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 30  # tokens

Range = tuple[int, int]


def index_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every index, replaced by those of other accesses whose variables are known there."""
    tokens = code.tokens
    known: dict[str, tuple[int, int, str]] = {}
    for array, first, last in code.indices:
        if last - first < _LONGEST:
            known.setdefault(tokens.source(first, last), (first, last, tokens.text(array)))
    for array, first, last in code.indices:
        own = tokens.source(first, last)
        for text, (begin, end, other) in known.items():
            if text != own and code.can_stand(begin, end, first):
                same = other == tokens.text(array)
                kind = "index of the same array" if same else "index of another array"
                yield code.replaced(first, last, text, kind)
        for text, (begin, end, _) in known.items():
            if text != own:
                for other in code.with_other_name(begin, end, first):
                    if other != own and other not in known:
                        yield code.replaced(first, last, other, "index with another name")
    yield from _rows(code)


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """`mask[t]` made `mask[batch * S + t]`, where another place has that sum."""
    tokens, extents = code.tokens, code.extents
    sums: dict[str, dict[str, Range]] = {}  # by the last term
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.function_places[position]:
            continue
        left, right = extents.operand_before(position), extents.operand_behind(position)
        if left[0] >= left[1] or right[0] != right[1] or right[1] - left[0] > _LONGEST:
            continue
        text = tokens.source(left[0], right[1])
        if "*" in text and tokens.kind(right[0]) == "name":
            sums.setdefault(tokens.text(right[0]), {}).setdefault(text, (left[0], right[1]))
    for _, first, last in code.indices:
        for text, pair in sums.get(tokens.source(first, last), {}).items():
            if code.can_stand(*pair, first):
                yield code.replaced(first, last, text, "row of another index missing")
