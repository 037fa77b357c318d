"""Guards that are missing: the second one of a pair that may lie beyond the end, the own part
among those of all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.header_changes import grid_sizes
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_NEAREST = 200  # tokens before a store in which the check of the first one of a pair stands
_FIRST = re.compile(r"\(!?\w+(?: [!=]= \w+)?\)")
_OWN = re.compile(r"= *blockIdx\.[xyz] *[,;]")


def guard_changes(code: KernelCode) -> Iterator[SourceChange]:
    """A condition put before a statement, or in front of a round."""
    yield from _second_of_a_pair(code)
    yield from _own_part(code)
    yield from _begun_with_a_part(code)
    yield from _one_block(code)
    yield from _too_many(code)


def _second_of_a_pair(code: KernelCode) -> Iterator[SourceChange]:
    """`to[0] = x; to[1] = y;` made `to[0] = x; if (c + 1 < N) to[1] = y;` behind a check of c."""
    tokens = code.tokens
    for first, last in code.statements:
        index = first + 1
        if tokens.text(index) != "[" or index not in tokens.partners:
            continue
        closing = tokens.partners[index]
        is_second = tokens.text(closing - 1) == "1" and tokens.text(closing - 2) in ("[", "+")
        if not is_second or tokens.text(closing + 1) != "=":
            continue
        for condition in _checks_before(code, first):
            new = f"if ({condition}) {tokens.source(first, last)}"
            yield code.replaced(first, last, new, "second of a pair unchecked")


def _checks_before(code: KernelCode, place: int) -> Iterator[str]:
    """`c + 1 < N` for each c < N, and c >= N, before a place, the nearest first."""
    tokens, found = code.tokens, set[str]()
    for sign in range(place - 1, max(place - _NEAREST, 0), -1):
        is_name = tokens.kind(sign - 1) == "name" and tokens.kind(sign + 1) == "name"
        if tokens.text(sign) not in ("<", ">=") or not is_name:
            continue
        if tokens.text(sign - 2) == "." or not code.can_stand(sign - 1, sign + 1, place):
            continue
        condition = f"{tokens.text(sign - 1)} + 1 < {tokens.text(sign + 1)}"
        if condition not in found:
            found.add(condition)
            yield condition


def _begun_with_a_part(code: KernelCode) -> Iterator[SourceChange]:
    """`float total = sums[e];` made `float total = 0.0f;` where a loop adds to it."""
    tokens = code.tokens
    for item in code.names.all:
        start = item.position + 1
        if item.sort != "float" or item.is_parameter or tokens.text(start) != "=":
            continue
        last = code.extents.last_of(start, 0)
        is_element = tokens.kind(start + 1) == "name" and tokens.text(start + 2) == "["
        if not is_element or tokens.partners.get(start + 2) is None:
            continue
        added = any(
            tokens.text(place) == item.name
            and tokens.text(place + 1) == "+="
            and code.names.at(place) == item
            for place in range(last, item.last)
        )
        if added:
            yield code.replaced(start + 1, last, "0.0f", "sum begun with a part")


def _too_many(code: KernelCode) -> Iterator[SourceChange]:
    """`if (turn == 0) sum = 0;` made `sum = 0;`."""
    tokens = code.tokens
    for first, last in code.statements:
        closing = first - 1
        opening = tokens.partners.get(closing, 0)
        if tokens.text(closing) != ")" or tokens.text(opening - 1) != "if":
            continue
        condition = tokens.source(opening, closing)
        if tokens.text(last + 1) != "else" and _FIRST.fullmatch(condition):
            statement = tokens.source(first, last)
            yield code.replaced(opening - 1, last, statement, "guard too many")


def _one_block(code: KernelCode) -> Iterator[SourceChange]:
    """`if (tid < rest)` made `if (blockIdx.x == gridDim.x - 1 && tid < rest)`, or block 0: in a
    kernel in which each block would do the same.
    """
    tokens = code.tokens
    for first, last in code.conditions:
        text = tokens.source(first, last)
        if tokens.text(first - 2) != "if" or "blockIdx" in text:
            continue
        if not code.in_kernel(first):
            continue
        wrapped = f"({text})" if "||" in text else text
        for block in ("gridDim.x - 1", "0"):
            new = f"blockIdx.x == {block} && {wrapped}"
            yield code.replaced(first, last, new, "work of one block alone")


def _own_part(code: KernelCode) -> Iterator[SourceChange]:
    """`for (int i = 0; i < parts; ++i) {` with `if (i == part) continue;` in front, where `part` is
    the own one, by the index of the block.
    """
    tokens = code.tokens
    blocks = StatementBlocks(code)
    for loop in blocks.loops():
        ends = code.head_ends(loop.opening)
        if tokens.text(loop.place) != "for" or len(ends) != 2:
            continue
        sign = ends[0] + 2
        if tokens.text(sign) != "<" or tokens.text(sign - 2) != ";":
            continue
        round_name = tokens.text(sign - 1)
        for own in _own_numbers(code, loop.place, round_name, tokens.source(sign + 1, ends[1] - 1)):
            guard = f"if ({round_name} == {own}) continue;"
            if tokens.text(loop.first) == "{":
                yield code.inserted(loop.first, f" {guard}", "own part counted again")
            else:
                body = tokens.source(loop.first, loop.last)
                new = f"{{ {guard} {body} }}"
                yield code.replaced(loop.first, loop.last, new, "own part counted again")


def _own_numbers(code: KernelCode, place: int, other_than: str, count: str) -> Iterator[str]:
    """The variables that hold an index of the block at a place, and those indices themselves of
    which there are `count`.
    """
    tokens = code.tokens
    for own in code.visible(place, "int"):
        begins = own.position + 1
        if own.position < 0 or own.name == other_than:
            continue
        if _OWN.match(tokens.code, tokens.tokens[begins].start):
            yield own.name
    sizes = {(axis, size.strip("\"' ")) for axis, size in grid_sizes(code.source[: code.offset])}
    for axis in "xyz":
        if count == f"gridDim.{axis}" or (axis, count) in sizes:
            yield f"blockIdx.{axis}"
