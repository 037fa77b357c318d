"""What each round of a loop begins with, and what it leaves to the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.statement_blocks import BlockStatement, Loop, StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_OF_THREADS = re.compile(r"(?i)thread|lane|warp|\bt\b|\btid\b")
_MOST_TOGETHER = 6  # variables that are set back at once
_MOST_TURNED = 8  # variables that are never changed, of a kernel
_LONGEST = 24  # tokens of a first value
_SCALARS = ("int", "float")


def round_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Running values set back in each round or kept over all, shared arrays cleared, elements
    written back, values that never change changed.
    """
    blocks = StatementBlocks(code)
    loops = list(blocks.loops())
    yield from _begun_anew(code, blocks, loops)
    yield from _before_a_loop(code, blocks)
    yield from _kept(code, blocks, loops)
    yield from _cleared(code, blocks, loops)
    yield from _without_value(code, blocks)
    yield from _written_back(code, blocks)
    yield from _turned(code, blocks, loops)


def _begun_anew(
    code: KernelCode, blocks: StatementBlocks, loops: list[Loop]
) -> Iterator[SourceChange]:
    """`sum = 0.0f, top = -INFINITY` before a loop that uses them for more than adding up: set so
    at the begin of each round.
    """
    for loop in loops:
        opening = blocks.begin_of_body(loop)
        if opening is None:
            continue
        last = code.tokens.partners[opening]
        in_head = blocks.reads(loop.opening, opening)
        resets_of: dict[int, list[str]] = {}
        for item in _running(code, blocks, opening, last):
            if item.name not in in_head and _is_used(blocks, item.name, opening, last):
                reset = _first_text(code, blocks, item, opening)
                if reset:
                    resets_of.setdefault(item.declaration, []).append(reset)
        for resets in resets_of.values():
            several = resets if len(resets) > 1 else []
            for new in dict.fromkeys((" ".join(several[:_MOST_TOGETHER]), *resets)):
                if new:
                    yield code.inserted(opening, f" {new}", "begin of each round missing")


def _running(
    code: KernelCode, blocks: StatementBlocks, first: int, last: int
) -> Iterator[DeclaredName]:
    """The variables declared before a block with a value that are changed in it."""
    changed = blocks.changed(first, last)
    for item in sorted(code.names.visible(first), key=lambda one: one.position):
        if item.is_parameter or item.position < 0 or item.name not in changed:
            continue
        if item.sort not in ("pointer", "array") and not blocks.is_constant(item):
            yield item


def _first_text(
    code: KernelCode, blocks: StatementBlocks, item: DeclaredName, position: int
) -> str:
    """The statement that gives a variable its first value again; empty where it cannot."""
    first = blocks.first_value(item)
    if first is None or first[1] - first[0] > _LONGEST or not code.can_stand(*first, position):
        return ""
    return f"{item.name} = {code.tokens.source(*first)};"


def _is_used(blocks: StatementBlocks, name: str, first: int, last: int) -> bool:
    """Whether a block uses a variable for more than changing it."""
    for begin, end in blocks.code.statements:
        if first < begin and end < last and name in blocks.reads(begin, end):
            if name not in blocks.changed(begin, end):
                return True
            declares = bool(blocks.declared(begin, end))
            if declares or len(blocks.changed(begin, end)) > 1:
                return True
    return False


def _before_a_loop(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """A sum set to zero before a second loop that adds up in it."""
    tokens = code.tokens
    for opening, items in blocks.blocks():
        for loop in items:
            if tokens.text(loop.first) != "for" or tokens.text(loop.first - 1) not in "{};":
                continue
            for item in _running(code, blocks, loop.first, loop.last):
                before = blocks.changed(code.function_of(opening), loop.first - 1)
                near = blocks.first_value(item)
                is_new = item.position > opening and item.name not in blocks.changed(
                    item.position + 1, loop.first - 1
                )
                adds = re.search(
                    rf"\b{item.name}\b[\w.]* (\+=|=)", tokens.source(loop.first, loop.last)
                )
                if is_new or near is None or not adds or item.name not in before:
                    continue
                reset = _first_text(code, blocks, item, loop.first)
                if not re.search(r"= (0|0\.0*f?|-INFINITY|-?1e\d+f?);", reset):
                    reset = f"{item.name} = 0;" if item.sort in _SCALARS else ""
                if reset:
                    yield code.inserted(loop.first - 1, f" {reset}", "begin of a sum missing")


def _kept(code: KernelCode, blocks: StatementBlocks, loops: list[Loop]) -> Iterator[SourceChange]:
    """`float state = 0.0f` in each round of a loop put before the loop."""
    tokens = code.tokens
    for loop in loops:
        is_block = tokens.text(loop.first) == "{" and tokens.text(loop.place - 1) in ("{", "}", ";")
        if not is_block:
            continue
        changed = blocks.changed(loop.opening, loop.last)
        for item in blocks.items(loop.first):
            own = [one for one in code.names.all if item.first <= one.position <= item.last]
            if not item.is_simple or not own or own[0].declaration > item.first + 1:
                continue
            if any(blocks.is_constant(one) or blocks.is_shared(one) for one in own):
                continue
            names = {one.name for one in own}
            is_state = names <= changed and "=" in tokens.source(item.first, item.last)
            parts = blocks.reads(item.first, item.last) - names
            if not is_state or parts & changed or blocks.declared(loop.opening, loop.last) & parts:
                continue
            moved = [
                code.replaced(item.first, item.last, "", ""),
                code.inserted(loop.place - 1, f" {tokens.source(item.first, item.last)}", ""),
            ]
            yield together(moved, "state begun in each round")


def _cleared(
    code: KernelCode, blocks: StatementBlocks, loops: list[Loop]
) -> Iterator[SourceChange]:
    """A shared array set to zero at the begin of the kernel and of each round of a loop."""
    tokens = code.tokens
    for item in code.names.all:
        if item.sort != "array" or item.is_parameter or not blocks.is_shared(item):
            continue
        if tokens.text(item.position + 2) == "]":
            continue  # its size is given by the launch
        clear = (
            f"for (unsigned evo_i = threadIdx.x; evo_i < sizeof({item.name}) / 4; evo_i +="
            f" blockDim.x) reinterpret_cast<int*>({item.name})[evo_i] = 0; __syncthreads();"
        )
        text = tokens.source(item.position, item.last)
        is_sum = re.search(
            rf"atomic\w+\(&?{item.name}\b|{item.name}(\[[^;=]*\])+ *\+=|\+\+{item.name}\b"
            rf"|\b{item.name}(\[[^;=]*\])+\+\+",
            text,
        )
        if is_sum:
            end = blocks.last_of(item.position)
            yield code.inserted(end, f" {clear}", "array not cleared")
        for loop in loops:
            opening = blocks.begin_of_body(loop)
            if opening is None or not item.position < opening <= item.last:
                continue
            head = tokens.source(loop.opening, loop.closing)
            own = item.name in blocks.changed(opening, tokens.partners[opening])
            if own and not _OF_THREADS.search(head):
                yield code.inserted(opening, f" __syncthreads(); {clear}", "array not cleared")


def _without_value(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`float sums[4];` that is added to and never set: it begins with zeros."""
    tokens = code.tokens
    for item in code.names.all:
        is_own = item.sort in ("array", *_SCALARS) and not item.is_parameter
        if not is_own or item.position < 0 or blocks.is_shared(item):
            continue
        last = item.position
        while tokens.text(last + 1) == "[":
            last = tokens.partners[last + 1]
        if tokens.text(last + 1) not in (";", ",") or not code.function_places[item.position]:
            continue
        signs = {
            tokens.text(code.extents.postfix(place) + 1)
            for place in blocks.changes(last + 1, item.last)
            if tokens.text(place) == item.name
        }
        if "+=" in signs and "=" not in signs:
            yield code.inserted(last, " = {}" if last > item.position else " = 0", "begin missing")


def _written_back(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum = next[t]` that is changed afterwards, and never given back: `next[t] = sum`."""
    tokens = code.tokens
    for item in code.names.all:
        value = blocks.first_value(item)
        block = tokens.enclosing[item.position] if item.position >= 0 else -1
        if value is None or block < 0 or tokens.text(block) != "{" or blocks.is_constant(item):
            continue
        source = code.names.at(value[0])
        is_element = code.extents.postfix(value[0]) == value[1] and tokens.text(value[1]) == "]"
        if source is None or not is_element or source.sort not in ("array", "pointer"):
            continue
        end = tokens.partners.get(block, block)
        is_read_only = source.sort == "pointer" and blocks.is_constant(source)
        rest = blocks.changed(value[1] + 1, end)
        if is_read_only or item.name not in rest or source.name in rest or end - 1 <= value[1]:
            continue
        new = f" {tokens.source(*value)} = {item.name};"
        yield code.inserted(end - 1, new, "value not written back")


def _turned(code: KernelCode, blocks: StatementBlocks, loops: list[Loop]) -> Iterator[SourceChange]:
    """A variable that is no constant and that nothing changes, though a loop uses it."""
    tokens = code.tokens
    unchanged = [
        item
        for item in code.names.all
        if item.sort in _SCALARS
        and not item.is_parameter
        and blocks.first_value(item) is not None
        and not blocks.is_constant(item)
        and item.name not in blocks.changed(item.position + 1, item.last)
        and tokens.text(item.position + 2) not in ("[", "{")
    ]
    for item in unchanged[:_MOST_TURNED]:
        for loop in loops:
            is_block = tokens.text(loop.first) == "{" and loop.last == tokens.partners[loop.first]
            if not is_block or not item.position < loop.place <= item.last:
                continue
            if item.name not in blocks.reads(loop.first, loop.last):
                continue
            yield from _turned_in(code, blocks, item, BlockStatement(loop.first, loop.last, False))


def _turned_in(
    code: KernelCode, blocks: StatementBlocks, item: DeclaredName, body: BlockStatement
) -> Iterator[SourceChange]:
    kind = "value that never changes"
    others = [
        other.name
        for other in code.visible(body.last, item.sort)
        if other.position > body.first
        and blocks.first_value(other) is not None
        and other not in code.unread  # unread_changes has those
    ]
    for other in others[:_MOST_TURNED]:
        yield code.inserted(body.last - 1, f" {item.name} = {other};", kind)
    if item.sort == "int":
        for new in (f"{item.name} ^= 1;", f"++{item.name};"):
            yield code.inserted(body.last - 1, f" {new}", kind)
