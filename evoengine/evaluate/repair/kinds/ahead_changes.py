"""Steps of a pipeline: which one is loaded ahead, which stage it goes to, how many copies may be on
their way, which warps wait for one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_STAGES = re.compile(r"\b([A-Z_]*(?:STAGES|RING|DEPTHS|BUFFERS|SLOTS)[A-Z_]*)\b")
_WAIT_COUNT = re.compile(r"wait\w*")
_ARRIVES, _WAITS = "arrive", "wait"

_MOST_GROUPS = 3  # that a wait may leave


def ahead_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Steps that are taken too early or too late, stages of another step, waits that lack."""
    yield from _asked(code)
    yield from _rounds(code)
    yield from _distances(code)
    yield from _by_the_step(code)
    yield from _parities(code)
    yield from _counts(code)
    yield from _roles(code)
    yield from _in_a_branch(code)
    yield from _braces(code)


def _asked(code: KernelCode) -> Iterator[SourceChange]:
    """`if (from + STEP < end) fetch(from)` made `fetch(from + STEP)`: what the condition asks."""
    tokens = code.tokens
    for first, last in code.conditions:
        if tokens.text(first - 2) != "if":
            continue
        sign = next((at for at in range(first, last) if tokens.text(at) in ("<", "<=")), 0)
        if sign <= first + 1 or tokens.text(sign - 2) not in ("+", "-"):
            continue
        asked, name = tokens.source(first, sign - 1), tokens.text(first)
        begin, end = code.body(last + 1)
        yield from _asked_in(code, begin, end, name, asked)
    yield from _asked_by_name(code)


def _asked_by_name(code: KernelCode) -> Iterator[SourceChange]:
    """The same with `const bool more = step + 1 < steps; if (more) fetch(step);`."""
    tokens = code.tokens
    for item in code.names.all:
        sign = item.position + 1
        if tokens.text(item.declaration) not in ("bool", "const") or tokens.text(sign) != "=":
            continue
        name = tokens.text(sign + 1)
        if tokens.text(sign + 2) != "+" or tokens.text(sign + 4) not in ("<", "<="):
            continue
        asked = tokens.source(sign + 1, sign + 3)
        for first, last in code.conditions:
            if first == last and tokens.text(first) == item.name and tokens.text(first - 2) == "if":
                yield from _asked_in(code, *code.body(last + 1), name, asked)


def _asked_in(
    code: KernelCode, begin: int, end: int, name: str, asked: str
) -> Iterator[SourceChange]:
    tokens = code.tokens
    for place in range(begin, end + 1):
        if tokens.text(place) != name or code.names.at(place) is None:
            continue
        before, behind = tokens.text(place - 1), tokens.text(place + 1)
        if before in ("(", ",", "[") and behind in (")", ",", "]"):
            yield code.replaced(place, place, asked, "step that its condition asks for")
        elif "*" in (before, behind):
            yield code.replaced(place, place, f"({asked})", "step that its condition asks for")


def _rounds(code: KernelCode) -> Iterator[SourceChange]:
    """`step % RING` made `(step - 1) % RING`, and of another step that is counted."""
    tokens, steps = code.tokens, _steps(code)
    for place in range(1, len(tokens)):
        is_stage = tokens.text(place) == "%" and _STAGES.fullmatch(tokens.text(place + 1))
        if not is_stage or tokens.kind(place - 1) != "name":
            continue
        own = code.names.at(place - 1)
        if own is None or own.sort != "int":
            continue
        kind = "stage of another step"
        for new in (f"({own.name} - 1)", f"({own.name} + 1)"):
            yield code.replaced(place - 1, place - 1, new, kind)
        for other in code.visible(place - 1, "int"):
            is_step = other.name in steps
            if is_step and other.name != own.name and not other.is_parameter:
                yield code.replaced(place - 1, place - 1, other.name, kind)


def _steps(code: KernelCode) -> set[str]:
    """The variables of which stages are the remainder, or that are some steps ahead of others."""
    found = set(re.findall(r"\b(\w+) % [A-Z]", code.tokens.code))
    found |= set(re.findall(r"\bfor \(int (\w+) = 0; \1 < ", code.tokens.code))
    return found | set(re.findall(r"\b(\w+) = \w+ \+ (?:[A-Z]\w*|\d)", code.tokens.code))


def _distances(code: KernelCode) -> Iterator[SourceChange]:
    """`next = step + 1` made `step + STAGES - 1`, and the other way round."""
    tokens, kind = code.tokens, "steps ahead"
    stages = list(dict.fromkeys(_STAGES.findall(tokens.code)))[:2]
    for place in range(1, len(tokens)):
        if tokens.text(place) != "+" or not code.function_places[place]:
            continue
        is_step = tokens.kind(place - 1) == "name" and code.names.at(place - 1) is not None
        if not is_step or code.in_index(place):
            continue
        behind = tokens.text(place + 1), tokens.text(place + 2), tokens.text(place + 3)
        if behind[0] == "1" and behind[1] in (";", ")", ",", "<"):
            for name in stages:
                yield code.replaced(place + 1, place + 1, f"{name} - 1", kind)
        elif behind[0] in stages and behind[1] == "-" and behind[2] == "1":
            yield code.replaced(place + 1, place + 3, "1", kind)
        elif behind[0] in stages and behind[1] in (";", ")", ",", "<"):
            yield code.inserted(place + 1, " - 1", kind)


def _by_the_step(code: KernelCode) -> Iterator[SourceChange]:
    """`fetch(row + ROWS)` made `fetch(row + stride)`, where a loop goes on by `row += stride`."""
    tokens = code.tokens
    for sign in range(1, len(tokens)):
        item = code.names.at(sign - 1) if tokens.text(sign) == "+=" else None
        if item is None or item.sort != "int":
            continue
        last = code.extents.last_of(sign, 0)
        step = tokens.source(sign + 1, last)
        if last > sign + 1:
            step = f"({step})"
        for place in range(item.position + 1, item.last):
            is_ahead = tokens.text(place) == "+" and tokens.text(place - 1) == item.name
            if not is_ahead or code.names.at(place - 1) != item:
                continue
            first, end = code.extents.operand_behind(place)
            is_other = first == end and tokens.source(first, end) != step
            if is_other and code.can_stand(sign + 1, last, place):
                yield code.replaced(first, end, step, "step of the loop, for what is ahead")


def _parities(code: KernelCode) -> Iterator[SourceChange]:
    """`(step & 1) * SIZE` made `(~step & 1) * SIZE`, and the other way round: the other buffer."""
    tokens, kind = code.tokens, "other buffer of two"
    for place in range(1, len(tokens)):
        if tokens.text(place) not in ("&", "%") or not code.function_places[place]:
            continue
        number = "1" if tokens.text(place) == "&" else "2"
        own = code.names.at(place - 1) if tokens.kind(place - 1) == "name" else None
        if tokens.text(place + 1) != number or own is None or own.sort != "int":
            continue
        if number == "2" and tokens.text(place + 2) not in ("]", ")"):
            continue
        if tokens.text(place - 2) == "~":
            yield code.replaced(place - 2, place - 1, own.name, kind)
        elif number == "1":
            yield code.replaced(place - 1, place - 1, f"~{own.name}", kind)
        else:
            yield code.replaced(place - 1, place - 1, f"({own.name} + 1)", kind)


def waiting_functions(code: KernelCode) -> set[str]:
    """The names of functions that wait for groups of copies."""
    return functions_with(code, re.compile("wait_group"))


def functions_with(code: KernelCode, text: re.Pattern[str]) -> set[str]:
    """The names of functions in whose body a token, such as the text of asm, has such a text."""
    tokens, found = code.tokens, set[str]()
    for place in range(len(tokens)):
        opening = code.function_of(place) if text.search(tokens.text(place)) else -1
        if opening > 0 and opening - 1 in tokens.partners:
            found.add(tokens.text(tokens.partners[opening - 1] - 1))
    return found


def _counts(code: KernelCode) -> Iterator[SourceChange]:
    """`wait<STAGES - 1>()` made `wait<STAGES - 2>()`: one group less may be on its way."""
    tokens, waiting = code.tokens, waiting_functions(code)
    spots = [
        (closing - 1, opening)
        for opening, closing in code.extents.template_arguments
        if _WAIT_COUNT.search(tokens.text(opening - 1)) or tokens.text(opening - 1) in waiting
    ]
    for opening in range(1, len(tokens)):
        is_count = tokens.text(opening) == "(" and opening in tokens.partners
        is_asm = tokens.text(opening - 1) == '"n"'
        if is_count and (is_asm or "wait" in tokens.text(opening - 1)):
            spots.append((tokens.partners[opening] - 1, opening))
    for place, opening in spots:
        text = tokens.text(place)
        if text.isdigit() and place > opening:
            is_less = tokens.text(place - 1) == "-"
            for other in (int(text) + 1, int(text) - 1):
                is_alone = place == opening + 1
                if other >= 0 and (is_less or is_alone):
                    yield code.replaced(place, place, str(other), "groups of copies by one")
        if place > opening + (text.isdigit()):  # a name, or a sum with one
            for count in range(_MOST_GROUPS):
                yield code.replaced(opening + 1, place, str(count), "too many copies pending")


def _roles(code: KernelCode) -> Iterator[SourceChange]:
    """`if (round >= RING) wait_at(empty)`, where the other warps arrive at a barrier that none
    waits for; and `arrive_at(full)` at the end of a loop whose barrier is waited for.
    """
    tokens = code.tokens
    calls: dict[str, dict[str, str]] = {_ARRIVES: {}, _WAITS: {}}
    for first, last in code.statements:
        found = re.fullmatch(r"(\w*(arrive|wait)\w*)\((.+)\);", tokens.source(first, last))
        if found is not None and "%" in found[3]:
            calls[found[2]].setdefault(found[3], found[1])
    names = {word: next(iter(found.values()), "") for word, found in calls.items()}
    if not all(names.values()):
        return
    blocks = StatementBlocks(code)
    for text in calls[_ARRIVES]:
        counted = re.search(r"\b(\w+) % (\w+)", text)
        if text in calls[_WAITS] or counted is None or "- 1" in text:
            continue
        new = f" if ({counted[1]} >= {counted[2]}) {names[_WAITS]}({text});"
        yield from _at_begins(code, blocks, counted[1], new)
    for text in calls[_WAITS]:
        counted = re.search(r"\b(\w+) % (\w+)", text)
        if text not in calls[_ARRIVES] and counted is not None:
            yield from _at_ends(code, blocks, counted[1], f" {names[_ARRIVES]}({text});")


def _at_begins(
    code: KernelCode, blocks: StatementBlocks, name: str, new: str
) -> Iterator[SourceChange]:
    for opening, _ in blocks.blocks():
        if name in {item.name for item in code.names.visible(opening + 1)}:
            yield code.inserted(opening, new, "wait for an emptied stage missing")


def _at_ends(
    code: KernelCode, blocks: StatementBlocks, name: str, new: str
) -> Iterator[SourceChange]:
    for opening, _ in blocks.blocks():
        end = code.tokens.partners[opening]
        if name in {item.name for item in code.names.visible(end)} and end - 1 > opening:
            yield code.inserted(end - 1, new, "stage never given back")


def _in_a_branch(code: KernelCode) -> Iterator[SourceChange]:
    """A wait for copies at the end of the branch before a barrier, whose copies it is for."""
    tokens = code.tokens
    known = [
        tokens.source(first, last)
        for first, last in code.statements
        if re.match(
            r"__pipeline_wait_prior|cp_async_wait|asm[^;]*wait_", tokens.source(first, last)
        )
    ]
    if "__pipeline_memcpy_async" in tokens.code:
        known.append("__pipeline_wait_prior(0);")
    waits = list(dict.fromkeys(text for text in known if len(text) < 90))[:2]
    for place in range(2, len(tokens)) if waits else ():
        is_barrier = tokens.text(place) == "__syncthreads" and tokens.text(place - 1) == "}"
        opening = tokens.partners.get(place - 1, place)
        if is_barrier and tokens.text(opening - 1) == ")" and place - 2 > opening:
            for text in waits:
                yield code.inserted(place - 2, f" {text}", "wait for copies missing")


def _braces(code: KernelCode) -> Iterator[SourceChange]:
    """`if (more) { load(); commit(); }` made `if (more) load(); commit();`."""
    blocks = StatementBlocks(code)
    for opening, items in blocks.blocks():
        text = code.tokens.text
        head = code.tokens.partners.get(opening - 1, 0) - 1
        closing = code.tokens.partners[opening]
        if len(items) != 2 or text(head) != "if" or text(closing + 1) == "else":
            continue
        second = code.tokens.source(items[1].first, items[1].last)
        if re.search(r"commit|sync|wait|\+\+|[-+*^]?=", second):
            braces = [code.replaced(place, place, "", "") for place in (opening, closing)]
            yield together(braces, "last statement of a branch for all")
