"""Indices whose numbers are those of another layout: strides, halves of a fragment, the row of a
matrix for its column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.moved_changes import last_summand
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_NUMBERS = 4  # that a kernel adds, or multiplies a place by
_MOST_SIZES = 6
_NEAREST = 4  # variables, the last declared first
_HALVES = re.compile(r"(\w+) (?:% 8 \+ \1 / 16 \* 8|/ 16 \* 8 \+ \1 % 8)")
_STRIPES = re.compile(r"(\w+) % 16")

Range = tuple[int, int]


def stride_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Sums of a place with other strides; arguments that repeat, shifted; rows of a number."""
    yield from _sums(code)
    yield from _repeated(code)
    yield from _rows(code)
    yield from _fragments(code)
    yield from _pairs(code)
    yield from _turns(code)


def _sums(code: KernelCode) -> Iterator[SourceChange]:
    """a * m + b made a + n * b, and b * N + a for another size N."""
    tokens, numbers = code.tokens, _numbers(code, "*")
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.extents.is_binary(position):
            continue
        if not code.function_places[position]:
            continue
        left, right = code.extents.operand_before(position), code.extents.operand_behind(position)
        left = last_summand(code, left), left[1]
        for scaled, plain in ((left, right), (right, left)):
            factor = _factor(code, scaled)
            if factor is None or plain[0] > plain[1]:
                continue
            place, size = factor
            one, other = tokens.source(scaled[0], place), tokens.source(*plain)
            sized = not size.isdigit()
            for new_size in [*numbers, *(code.sizes(position)[:_MOST_SIZES] if sized else [])]:
                new = f"({other}) * {new_size} + {one}"
                kind = "index transposed" if sized else "stride of the other one"
                yield code.replaced(left[0], right[1], new, kind)


def _factor(code: KernelCode, pair: Range) -> tuple[int, str] | None:
    """Of a product with a size or number as its last factor what is before it ends, and the size;
    None of anything else.
    """
    tokens, (first, last) = code.tokens, pair
    if last - first < 2 or tokens.text(last - 1) != "*":
        return None
    own = code.names.at(last) if tokens.kind(last) == "name" else None
    is_size = own is not None and own.sort == "int" and (own.is_parameter or own.name.isupper())
    return (last - 2, tokens.text(last)) if is_size or tokens.text(last).isdigit() else None


def _numbers(code: KernelCode, sign: str) -> list[str]:
    """The numbers from 2 that most often stand behind an operator."""
    tokens = code.tokens
    counts = Counter(
        tokens.text(place + 1)
        for place in range(len(tokens))
        if tokens.text(place) == sign
        and tokens.text(place + 1).isdigit()
        and 1 < int(tokens.text(place + 1)) <= 128
    )
    return [text for text, _ in counts.most_common(_MOST_NUMBERS)]


def _repeated(code: KernelCode) -> Iterator[SourceChange]:
    """An index or argument that a function has twice, moved by a number that is added elsewhere:
    the second half of a fragment must not be the first one again.
    """
    tokens, numbers = code.tokens, _numbers(code, "+")
    uses: dict[tuple[int, str, str], list[Range]] = {}
    for opening in range(1, len(tokens)):
        called = tokens.text(opening) in ("(", "[") and tokens.kind(opening - 1) == "name"
        if not called or not code.function_places[opening]:
            continue
        for first, last in code.extents.arguments(opening):
            atoms = {sort for _, _, sort in code.atoms_between(first, last)}
            if "int" in atoms and not atoms & {"float"}:
                key = (
                    code.function_of(opening),
                    tokens.text(opening - 1),
                    tokens.source(first, last),
                )
                uses.setdefault(key, []).append((first, last))
    for pairs in uses.values():
        for _, last in pairs if len(pairs) > 1 else ():
            for number in numbers:
                yield code.inserted(last, f" + {number}", "same place twice")


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """i made i + row * 4 in an index that has no product; 4 may be how far a loop over i goes."""
    numbers, loops = _numbers(code, "*"), _bounds(code)
    for _, first, last in code.indices:
        if "*" in code.tokens.source(first, last):
            continue
        own = {code.tokens.text(place) for place in range(first, last + 1)}
        near = [item for item in code.visible(last, "int") if not item.name.isupper()]
        near = [item for item in near if not item.is_parameter and item.name not in own]
        bounds = [bound for name in own if (bound := loops.get(name))]
        for item in near[:_NEAREST]:
            for number in dict.fromkeys([*bounds, *numbers]):
                new = f" + {item.name} * {number}"
                yield code.inserted(last, new, "row of an index missing, of a number")


def _bounds(code: KernelCode) -> dict[str, str]:
    """The number below which the variable of a loop stays."""
    tokens, found = code.tokens, {}
    for place in range(len(tokens)):
        number = tokens.text(place + 2)
        is_bound = tokens.text(place + 1) == "<" and tokens.text(place + 3) == ";"
        if is_bound and number.isdigit() and code.loop_of(place) is not None:
            found[tokens.text(place)] = number
    return found


def _fragments(code: KernelCode) -> Iterator[SourceChange]:
    """The addresses of the four tiles of ldmatrix, two of them exchanged."""
    for first, last in code.statements:
        text = code.tokens.source(first, last)
        start = code.tokens.span(first, last)[0] + code.offset
        for one, column, row, other in (
            (_HALVES, "{} / 8 % 2 * 8", "{} % 16", "{} / 16 * 8"),
            (_STRIPES, "{} / 16 * 8", "{} % 8 + {} / 16 * 8", "{} / 8 % 2 * 8"),
        ):
            found = one.search(text)
            place = text.find(column.format(found[1])) if found else -1
            if found and place >= 0:
                name = found[1]
                length = len(column.format(name))
                pair = [
                    _at(start + found.start(), found[0], row.replace("{}", name)),
                    _at(start + place, text[place : place + length], other.format(name)),
                ]
                yield together(pair, "tiles of a fragment exchanged")


def _at(start: int, old: str, new: str) -> SourceChange:
    return SourceChange(start, start + len(old), new, "")


def _pairs(code: KernelCode) -> Iterator[SourceChange]:
    """i = 2 * p, j = i + 1 made i = p, j = i + N, and the other way round."""
    tokens = code.tokens
    for first, last in code.statements:
        for place in range(first, last):
            is_name = tokens.kind(place) == "name" and tokens.text(place + 1) == "+"
            if not is_name or tokens.text(place - 1) != "=" or tokens.text(place + 3) != ";":
                continue
            begin = _assigned(code, tokens.text(place), first, place)
            if begin is None:
                continue
            for new, halves in _other_pair(code, begin, place):
                pair = [halves, code.replaced(place + 2, place + 2, new, "")]
                yield together(pair, "layout of two")


def _assigned(code: KernelCode, name: str, first: int, end: int) -> Range | None:
    """The value that a statement gives a name before a place."""
    tokens = code.tokens
    for place in range(first, end):
        if tokens.text(place) == name and tokens.text(place + 1) == "=":
            return place + 2, code.extents.last_of(place + 1, 0)
    return None


def _other_pair(code: KernelCode, value: Range, place: int) -> Iterator[tuple[str, SourceChange]]:
    """What is added for the second one of a pair, with the change of the first."""
    tokens, (first, last) = code.tokens, value
    if tokens.text(place + 2) == "1":
        for at in range(first, last):
            if tokens.text(at) == "2" and tokens.text(at + 1) == "*":
                for item in code.visible(first, "int")[: 2 * _NEAREST]:
                    yield item.name, code.replaced(at, at + 1, "", "")
    elif tokens.kind(place + 2) == "name" and tokens.kind(last) == "name":
        yield "1", code.replaced(last, last, f"2 * {tokens.text(last)}", "")


def _turns(code: KernelCode) -> Iterator[SourceChange]:
    """Heads in groups for heads in turns: i % n made i / (m / n), and i / (m / n) made i % n."""
    tokens = code.tokens
    for place in range(len(tokens)):
        text = tokens.text(place)
        if text not in ("/", "%") or not code.extents.is_binary(place):
            continue
        first, last = code.extents.operand_behind(place)
        if first == last and text == "%" and code.function_places[place]:
            for size in code.sizes(place)[:_MOST_SIZES]:
                if size != tokens.text(first):
                    new = f"/ ({size} / {tokens.text(first)})"
                    yield code.replaced(place, last, new, "groups for turns")
        elif text == "/" and last == first + 4 and tokens.text(first + 2) == "/":
            new = f"% {tokens.text(last - 1)}"
            yield code.replaced(place, last, new, "groups for turns")
