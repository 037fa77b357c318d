"""Limits that are missing: a value that counts only under a condition, a minimum, a reset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.term_changes import sorts_between, spots_of
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 12  # tokens of a condition that is repeated
_CODES = re.compile(r"char|int8|codes|quant|nibble", re.IGNORECASE)
# least and largest codes of 8 and 4 bits
_CODE_RANGES = ((-128, 127), (-127, 127), (0, 255), (-8, 7), (0, 15))
_MOST_CONDITIONS = 10  # of a kernel
_VECTORS = (2, 4, 8, 16)  # elements
_AS_VECTOR = re.compile(
    r"reinterpret_cast|\b(?:u?int|float|double|half|__half|ushort|uchar)[248]\b"
)
_NEAREST = 60  # tokens behind a condition

_ONE_THREAD = re.compile(r"(threadIdx\.x|\w+) == 0")
_MOST_COUNTS = 8
_SET_BACK = re.compile(r"\w+ = -?(\d[\w.]*|INFINITY|FLT_MAX);")
_STORE = re.compile(r"atomicAdd\(|[\w.\[\]() *+]*\] = ")


def condition_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Values limited, left out under conditions, and set back in each round of a loop."""
    yield from _conditional(code)
    yield from _limited(code)
    yield from _limited_terms(code)
    yield from _limited_codes(code)
    yield from _reset(code)
    yield from _whole_vectors(code)
    yield from _counts(code)


def _conditional(code: KernelCode) -> Iterator[SourceChange]:
    """A value that counts only where a comparison of the kernel holds."""
    tokens = code.tokens
    known: dict[str, tuple[int, int]] = {}
    for first, last in code.conditions:
        if last - first < _LONGEST and not code.is_left_where(last):
            known.setdefault(tokens.source(first, last), (first, last))
    for first, last in code.values:
        sorts = sorts_between(code, first, last)
        text = tokens.source(first, last)
        if not sorts & {"float", "array"} or "?" in text or text.startswith("&"):
            continue
        for condition, pair in list(known.items())[:_MOST_CONDITIONS]:
            if code.can_stand(*pair, first):
                new = f"(({condition}) ? {text} : 0.0f)"
                yield code.replaced(first, last, new, "condition of a value missing")


def _whole_vectors(code: KernelCode) -> Iterator[SourceChange]:
    """`n + 1 < N` made `N % 2 == 0 && n + 1 < N`: two at once only where a row has whole pairs.
    `n + 8 <= end` made `pitch % 8 == 0 && n + 8 <= end`, for each size that the function multiplies
    by, where what follows reads or writes vectors.
    """
    tokens = code.tokens
    for first, last in code.conditions:
        condition = tokens.source(first, last)
        for found in re.finditer(r"\+ (\d+) (<=?) (\w+)", condition):
            count = int(found[1]) + (found[2] == "<")
            if count not in _VECTORS:
                continue
            behind = tokens.source(last, min(last + _NEAREST, len(tokens) - 1))
            sizes = _pitches(code, first) if _AS_VECTOR.search(behind) else []
            for size in dict.fromkeys((found[3], *sizes)):
                new = f"{size} % {count} == 0 && {condition}"
                yield code.replaced(first, last, new, "whole vectors only")


def _pitches(code: KernelCode, place: int) -> list[str]:
    """The sizes by which the function that a token stands in multiplies, of those it is given."""
    given = [item.name for item in code.visible(place, "int") if item.is_parameter]
    opening = code.function_of(place)
    text = code.tokens.source(opening, code.tokens.partners.get(opening, place))
    return [name for name in given if re.search(rf"\* *{name}\b", text)]


def _counts(code: KernelCode) -> Iterator[SourceChange]:
    """`1.0f / S` made `1.0f / max(tokens, 1)`: divided by what was counted."""
    tokens = code.tokens
    for position in range(len(tokens)):
        is_division = tokens.text(position) == "/" and code.extents.is_binary(position)
        if not is_division or not code.function_places[position]:
            continue
        first, last = code.extents.operand_behind(position)
        if first != last or sorts_between(code, first, last) != {"int"}:
            continue
        for item in code.visible(first, "int"):
            if not item.is_parameter and not item.name.isupper():
                new = f"max({item.name}, 1)"
                yield code.replaced(first, last, new, "name for another as a divisor, counted")


def _limited(code: KernelCode) -> Iterator[SourceChange]:
    """A whole number kept within bounds, a variance above zero."""
    tokens = code.tokens
    for first, last in code.values:
        text = tokens.source(first, last)
        sorts = sorts_between(code, first, last)
        if sorts == {"int"}:
            for item in code.visible(first, "int"):
                if item.is_parameter and item.name not in text:
                    yield code.replaced(first, last, f"min({text}, {item.name})", "bound missing")
                    new = f"min({text}, {item.name} - 1)"
                    yield code.replaced(first, last, new, "bound missing")
            yield code.replaced(first, last, f"max({text}, 0)", "bound missing")
        elif sorts & {"float", "array"}:
            yield code.replaced(first, last, f"fmaxf({text}, 0.0f)", "clamp missing")
            for limit in ("127.0f", "448.0f"):
                if limit in tokens.code:
                    new = f"fminf(fmaxf({text}, -{limit}), {limit})"
                    yield code.replaced(first, last, new, "clamp missing")


def _limited_terms(code: KernelCode) -> Iterator[SourceChange]:
    """a - b made a - max(b, 0), where a place may lie before the first one, or a - min(b, N)."""
    tokens = code.tokens
    whole = set(code.values)
    for first, last in spots_of(code):
        is_term = tokens.text(first - 1) in ("-", "+") or tokens.text(last + 1) in ("-", "+")
        if (first, last) in whole or not is_term or sorts_between(code, first, last) != {"int"}:
            continue
        if code.in_index(first):
            continue
        text = tokens.source(first, last)
        yield code.replaced(first, last, f"max({text}, 0)", "bound of a term missing")
        for item in code.visible(first, "int"):
            is_size = item.is_parameter and (not item.name.isupper() or len(item.name) == 1)
            if is_size and item.name not in text:
                new = f"min({text}, {item.name})"
                yield code.replaced(first, last, new, "bound of a term missing")


def _limited_codes(code: KernelCode) -> Iterator[SourceChange]:
    """A whole number kept within the codes of a few bits, where a kernel makes such."""
    if not _CODES.search(code.tokens.code):
        return
    for first, last in code.values:
        text = code.tokens.source(first, last)
        is_whole = sorts_between(code, first, last) == {"int"} or "__float2int" in text
        if not is_whole or "min(" in text or code.in_index(first) or code.loop_of(first):
            continue
        for least, largest in _CODE_RANGES:
            if str(largest) in code.source or largest == 127:
                new = f"max({least}, min({largest}, {text}))"
                yield code.replaced(first, last, new, "clamp of a code missing")


def _reset(code: KernelCode) -> Iterator[SourceChange]:
    """A sum that begins anew in each round of a loop around it."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "for" or position + 1 not in tokens.partners:
            continue
        body = tokens.partners[position + 1] + 1
        if tokens.text(body) != "{" or not code.function_places[position]:
            continue
        inside = {tokens.text(place) for place in range(body, tokens.partners.get(body, body))}
        for item in code.visible(body, "float"):
            if not item.is_parameter and item.name in inside:
                yield code.inserted(body, f" {item.name} = 0.0f;", "reset missing")
    yield from _reset_behind(code)
    yield from _reset_of_sibling(code)
    yield from _for_one_thread(code)


def _for_one_thread(code: KernelCode) -> Iterator[SourceChange]:
    """`if (threadIdx.x == 0) totals[threadIdx.x] = 0;` made one with `threadIdx.x < ROWS`."""
    for first, last in code.conditions:
        found = _ONE_THREAD.fullmatch(code.tokens.source(first, last))
        own = code.names.at(first)
        is_thread = found is not None and (own is None or own.sort == "int")
        if found is None or not is_thread or not code.function_places[first]:
            continue
        for name in code.constants(first)[:_MOST_COUNTS]:
            new = f"{found[1]} < {name}"
            yield code.replaced(first, last, new, "one thread where several are meant")


def _reset_of_sibling(code: KernelCode) -> Iterator[SourceChange]:
    """`low = 0.0f;` made `low = 0.0f; high = 0.0f;` where both are declared together, and nothing
    of the function sets `high`.
    """
    tokens = code.tokens
    for first, last in code.statements:
        item = code.names.at(first)
        if item is None or not _SET_BACK.fullmatch(tokens.source(first, last)):
            continue
        opening = code.function_of(first)
        function = range(opening, tokens.partners.get(opening, opening))
        for other in code.names.all:
            is_beside = other.declaration == item.declaration and other != item
            is_set = any(
                tokens.text(place + 1) == "=" and place != other.position
                for place in function
                if tokens.text(place) == other.name
            )
            if is_beside and not is_set:
                new = f" {other.name} = {tokens.source(first + 2, last)}"
                yield code.inserted(last, new, "reset missing, of a sibling")


def _reset_behind(code: KernelCode) -> Iterator[SourceChange]:
    """A sum that begins anew behind the statement that stores it, in a loop."""
    tokens = code.tokens
    sums = {
        tokens.text(place - 1)
        for place in range(1, len(tokens))
        if tokens.text(place) == "+=" and tokens.kind(place - 1) == "name"
    }
    for first, last in code.statements:
        text = tokens.source(first, last)
        stored = _STORE.match(text)
        for name in sorted(sums) if stored else ():
            item = next((it for it in code.visible(first, "float") if it.name == name), None)
            is_read = stored and re.search(rf"\b{name}\b", text[stored.end() :])
            if item is not None and is_read and not item.is_parameter:
                new = f"{{ {text} {name} = 0.0f; }}"
                yield code.replaced(first, last, new, "reset missing, behind its store")
