"""Statements in the wrong order: exchanged, moved over others, into a loop or out of one, parts of
one statement between commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.statement_blocks import (
    ORDERED,
    BlockStatement,
    StatementBlocks,
)
from evoengine.evaluate.repair.source_change import SourceChange

_FARTHEST = 3  # statements that one is moved over
_MOST_PARTS = 6  # of a statement, between commas
_LONGEST = 100  # tokens of a statement that is moved
_GIVEN = re.compile(r"([\w.\[\]]+) = ([\w.\[\]]+);")
_GUARD = re.compile(r"if \([^;{}]*\) (?:continue|break|return);")
_LEAVES = re.compile(r"return|break|continue|goto|using|typedef|static_assert|__shared__")


def order_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Statements exchanged and moved where their order counts."""
    blocks = StatementBlocks(code)
    yield from _parts(code)
    for opening, items in blocks.blocks():
        yield from _exchanged(code, blocks, items)
        yield from _behind_a_guard(code, blocks, items)
        for number, item in enumerate(items):
            if not _can_move(code, blocks, item):
                continue
            if not item.is_simple:
                yield from _over_compound(code, blocks, items, number)
                continue
            yield from _over_simple(code, blocks, items, number)
            yield from _over_compound(code, blocks, items, number)
            yield from _into_a_loop(code, blocks, items, number)
            yield from _out_of_a_block(code, blocks, opening, items, number)


def _can_move(code: KernelCode, blocks: StatementBlocks, item: BlockStatement) -> bool:
    """Whether a statement declares nothing and does not leave what is around it."""
    is_short = item.last - item.first <= _LONGEST
    text = code.tokens.source(item.first, item.last) if is_short else ""
    if not item.is_simple:
        head = code.tokens.partners.get(item.first + 1, item.first)
        is_plain = code.tokens.text(head + 1) != "{" and code.tokens.text(item.first) != "{"
        return bool(text) and is_plain and not _LEAVES.search(text)
    return bool(text) and not _LEAVES.match(text) and not blocks.declared(item.first, item.last)


def _behind_a_guard(
    code: KernelCode, blocks: StatementBlocks, items: Sequence[BlockStatement]
) -> Iterator[SourceChange]:
    """`count += n; if (place >= end) continue;` with the count behind the condition."""
    for item, guard in pairwise(items):
        if not item.is_simple or guard.is_simple or not _can_move(code, blocks, item):
            continue
        if _GUARD.match(code.tokens.source(guard.first, guard.last)):
            yield _moved(code, item, guard.last, "statement before its guard")


def _exchanged(
    code: KernelCode, blocks: StatementBlocks, items: Sequence[BlockStatement]
) -> Iterator[SourceChange]:
    """Two statements one behind the other of which one changes what the other has."""
    for one, other in pairwise(items):
        is_simple = one.is_simple and other.is_simple and other.first == one.last + 1
        if not is_simple or not blocks.depend(one, other):
            continue
        texts = [code.tokens.source(item.first, item.last) for item in (one, other)]
        own = blocks.declared(one.first, one.last) & blocks.reads(other.first, other.last)
        leaves = any(re.match(r"return|break|continue", text) for text in texts)
        if not own and not leaves:
            kind = "statements in the wrong order"
            if _takes_a_difference(*texts):
                kind = "value replaced before its difference"
            yield code.replaced(one.first, other.last, f"{texts[1]} {texts[0]}", kind)


def _takes_a_difference(one: str, other: str) -> bool:
    """Whether `top = newer;` stands before `factor = exp2f(top - newer);`, which is one then."""
    given = _GIVEN.fullmatch(one)
    return given is not None and (
        f"{given[1]} - {given[2]}" in other or f"{given[2]} - {given[1]}" in other
    )


def _parts(code: KernelCode) -> Iterator[SourceChange]:
    """`top = v, sum *= f(top)` in another order."""
    tokens = code.tokens
    for first, last in code.statements:
        if code.declares(first, last):
            continue
        commas = [
            place
            for place in range(first, last)
            if tokens.text(place) == "," and tokens.enclosing[place] == tokens.enclosing[first]
        ]
        ends = [*commas, last]
        begins = [first, *(place + 1 for place in commas)]
        parts = [tokens.source(begin, end - 1) for begin, end in zip(begins, ends, strict=True)]
        if not 1 < len(parts) <= _MOST_PARTS or tokens.text(first) in ("return", "using"):
            continue
        if not tokens.has_any(first, last, ASSIGNMENTS):
            continue
        orders = [parts[::-1], [parts[-1], *parts[:-1]], [*parts[1:], parts[0]]]
        orders += [
            [*parts[:number], parts[number + 1], parts[number], *parts[number + 2 :]]
            for number in range(len(parts) - 1)
        ]
        for new in dict.fromkeys(", ".join(order) for order in orders):
            yield code.replaced(first, last - 1, new, "parts in the wrong order")


def _moved(code: KernelCode, item: BlockStatement, behind: int, kind: str) -> SourceChange:
    """A statement put behind the token at `behind`."""
    text = code.tokens.source(item.first, item.last)
    pieces = [
        code.replaced(item.first, item.last, "", ""),
        code.inserted(behind, f" {text}", ""),
    ]
    return together(pieces, kind)


def _fits(
    code: KernelCode, blocks: StatementBlocks, item: BlockStatement, over: Sequence[BlockStatement]
) -> bool:
    """Whether a statement still means the same before or behind others that it is moved over."""
    names = blocks.reads(item.first, item.last) | blocks.changed(item.first, item.last)
    return not any(names & blocks.declared(one.first, one.last) for one in over if one.is_simple)


def _over_simple(
    code: KernelCode, blocks: StatementBlocks, items: Sequence[BlockStatement], number: int
) -> Iterator[SourceChange]:
    """A statement moved over two or three others, up or down."""
    item = items[number]
    for count in range(2, _FARTHEST + 1):
        down, up = items[number + 1 : number + 1 + count], items[max(0, number - count) : number]
        for over, behind in (
            (down, down[-1].last if down else 0),
            (up, up[0].first - 1 if up else 0),
        ):
            if len(over) < count or not any(blocks.depend(item, one) for one in over):
                continue
            if over is up and not _fits(code, blocks, item, up):
                continue
            farthest = over[-1] if over is down else over[0]
            if blocks.depend(item, farthest) and all(one.is_simple for one in over):
                yield _moved(code, item, behind, "statement moved over others")


def _over_compound(
    code: KernelCode, blocks: StatementBlocks, items: Sequence[BlockStatement], number: int
) -> Iterator[SourceChange]:
    """A statement moved over a loop, an `if` or a block beside it, and over a statement more."""
    item, kind = items[number], "statement before or behind a block"
    for step, nearby in ((1, items[number + 1 : number + 4]), (-1, items[:number][-3:][::-1])):
        found = [place for place, one in enumerate(nearby) if not one.is_simple]
        for place in found[:1]:
            over = nearby[: place + 1]
            if not blocks.depend(item, over[-1]) or (
                step < 0 and not _fits(code, blocks, item, over)
            ):
                continue
            is_same = step > 0 and len(over) == 1 and not item.is_simple
            if is_same and _can_move(code, blocks, over[0]):
                continue  # as the other one moved up
            behind = over[-1].last if step > 0 else over[-1].first - 1
            yield _moved(code, item, behind, kind)


def _into_a_loop(
    code: KernelCode, blocks: StatementBlocks, items: Sequence[BlockStatement], number: int
) -> Iterator[SourceChange]:
    """A statement before a loop that belongs to the begin of each round."""
    item, tokens = items[number], code.tokens
    following = next((one for one in items[number + 1 : number + 3] if not one.is_simple), None)
    if following is None or tokens.text(following.first) != "for":
        return
    for loop in blocks.loops():
        is_it = loop.place == following.first
        opening = blocks.begin_of_body(loop) if is_it else None
        if opening is not None and blocks.depend(item, following):
            yield _moved(code, item, opening, "statement of each round")


def _out_of_a_block(
    code: KernelCode,
    blocks: StatementBlocks,
    opening: int,
    items: Sequence[BlockStatement],
    number: int,
) -> Iterator[SourceChange]:
    """The first or last statement of a loop or an `if` put before or behind it."""
    item, tokens = items[number], code.tokens
    head = tokens.partners.get(opening - 1, -1) - 1
    if tokens.text(opening - 1) != ")" or tokens.text(head) not in ("for", "if", "while"):
        return
    names = blocks.reads(item.first, item.last) | blocks.changed(item.first, item.last)
    if names & blocks.declared(head, item.first - 1):
        return
    last = blocks.last_of(head)
    is_order = ORDERED.search(tokens.source(item.first, item.last)) is not None
    if item is items[-1] and (is_order or tokens.text(head) != "if"):
        yield _moved(code, item, last, "statement in a block")
    if item is items[0] and tokens.text(head - 1) in ("{", "}", ";"):
        yield _moved(code, item, head - 1, "statement in a block")
