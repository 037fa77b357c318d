"""First values of variables: those of its neighbour, of another place, of a part, of a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

ZERO = re.compile(r"0(\.0*)?f?")
_NEXT_NAME = 4  # tokens between a value and the name behind it: `; const int x`
_LONGEST = 30  # tokens of a value

Range = tuple[int, int]


def first_value_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Changes of the first values of variables and of their types."""
    values = first_values(code)
    for one, other in pairwise(values):
        if 0 < other[0].position - one[1][1] <= _NEXT_NAME:
            yield from _exchanged(code, one[1], other[1])
            yield from _next_part(code, one[1], other)
            yield from _edges(code, one[1], other[1])
            yield from _read(code, one, other)
            yield from _read(code, other, one)
    for item, value in values:
        yield from _own(code, item, value)
    yield from _signs(code)
    yield from _casts(code)
    yield from _narrow(code)


def first_values(code: KernelCode) -> list[tuple[DeclaredName, Range]]:
    """Each variable that has a first value, with the tokens of it."""
    found = []
    for item in code.names.all:
        sign = item.position + 1
        if item.position >= 0 and code.tokens.text(sign) == "=" and not item.is_parameter:
            last = code.extents.last_of(sign, 0)
            while code.tokens.text(last + 1) in ("?", ":"):
                last = code.extents.last_of(last + 1, 0)
            if sign < last <= sign + _LONGEST and code.function_places[sign]:
                found.append((item, (sign + 1, last)))
    return sorted(found, key=lambda pair: pair[0].position)


def _exchanged(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """low = x & 15, high = x >> 4 for low = x >> 4, high = x & 15."""
    first, second = code.tokens.source(*one), code.tokens.source(*other)
    if first != second and _names(first) == _names(second) and one[1] - one[0] > 1:
        pair = [code.replaced(*one, second, ""), code.replaced(*other, first, "")]
        yield together(pair, "first values exchanged")


@lru_cache(maxsize=1 << 12)
def _names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\b[A-Za-z_]\w*", text))


def _next_part(
    code: KernelCode, one: Range, other: tuple[DeclaredName, Range]
) -> Iterator[SourceChange]:
    """`first = n * part / PARTS, last = n * (part + 1) / PARTS`: a part ends where the next one
    begins.
    """
    item, value = other
    text = code.tokens.source(*one)
    if item.sort != "int" or "/" not in text or "*" not in text or "%" in text:
        return
    for first, last, sort in code.atoms_between(*one):
        own = code.names.at(first) if first == last else None
        is_part = own is None or not (own.is_parameter or own.name.isupper())
        if sort == "int" and is_part and code.tokens.text(first - 1) != "[":
            piece = first, last, f"({code.tokens.source(first, last)} + 1)"
            new = code.tokens.rewritten(*one, [piece])
            yield code.replaced(*value, new, "begin of the next part")


def _edges(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """y = at / N, x = at % N both one less: a tile begins with its edge."""
    first, second = code.tokens.source(*one), code.tokens.source(*other)
    split = re.search(r"\b(\w+) / \w+", first), re.search(r"\b(\w+) % \w+", second)
    if split[0] is None or split[1] is None:
        split = re.search(r"\b(\w+) / \w+", second), re.search(r"\b(\w+) % \w+", first)
    if split[0] is None or split[1] is None or split[0][1] != split[1][1]:
        return
    subtracted = re.findall(r"\s- ([A-Z]\w*|\d)\b(?!\s*[*/%])", code.tokens.code)
    for number in list(dict.fromkeys(["1", *subtracted]))[:4]:
        pair = [code.inserted(place, f" - {number}", "") for place in (one[1], other[1])]
        yield together(pair, "edge of both coordinates missing")


def _read(
    code: KernelCode, one: tuple[DeclaredName, Range], other: tuple[DeclaredName, Range]
) -> Iterator[SourceChange]:
    """`before = 0.0f, here = value(i)` made `before = value(i - 1)`: the first is read, too."""
    (own, zero), (like, value) = one, other
    text = code.tokens.source(*value)
    reads = re.search(r"[A-Za-z_]\w*[(\[]", text) is not None
    if not ZERO.fullmatch(code.tokens.source(*zero)) or own.sort != "float" != like.sort:
        return
    if not reads or like.sort != "float" or "shfl" in text or not code.can_stand(*value, zero[0]):
        return
    for first, last, sort in code.atoms_between(*value):
        item = code.names.at(first) if first == last else None
        if sort != "int" or (item is not None and (item.is_parameter or item.name.isupper())):
            continue
        for step in ("- 1", "+ 1"):
            piece = first, last, f"{code.tokens.source(first, last)} {step}"
            new = code.tokens.rewritten(*value, [piece])
            yield code.replaced(*zero, new, "first value that is read")


def _own(code: KernelCode, item: DeclaredName, value: Range) -> Iterator[SourceChange]:
    """`before = sum - own`: a scan that leaves out the own number, of which `sum` is one of all
    up to it.
    """
    tokens = code.tokens
    if "__shfl_up_sync" not in tokens.code or item.sort not in ("int", "float"):
        return
    scope = code.scope(item)
    if not re.search(rf"\b{item.name} \+=", scope):
        return
    for first, last, sort in code.atoms_between(*value):
        if sort != item.sort or first != last or code.in_index(first):
            continue
        own = tokens.text(first)
        for place, end, _ in code.atoms_between(item.position, item.last):
            if place != end or tokens.text(place) != item.name or tokens.text(end + 1) == "-":
                continue
            before, behind = tokens.text(place - 1), tokens.text(end + 1)
            is_read = before in ("+", "=", "(", "return") and behind in ("+", ";", ",", ")")
            if (
                is_read
                and code.can_stand(first, last, place)
                and "shfl" not in tokens.text(place - 4)
            ):
                yield code.inserted(end, f" - {own}", "own number of a scan")


def _signs(code: KernelCode) -> Iterator[SourceChange]:
    """int made unsigned where bits are moved to the right, and back where it may be negative."""
    tokens = code.tokens
    done: set[int] = set()
    for item in code.names.all:
        place = item.declaration
        if item.position < 0 or place in done or item.sort not in ("int", "pointer", "array"):
            continue
        scope = code.scope(item)
        index = "" if item.sort == "int" else r"\[[^\[\]]*\]"
        if tokens.text(place) == "int" and re.search(rf"\b{item.name}{index} >>=? ", scope):
            if tokens.text(place - 1) != "unsigned":
                done.add(place)
                yield code.replaced(place, place, "unsigned", "sign of bits that are moved")
        elif tokens.text(place) == "unsigned" and tokens.text(place + 1) != "char":
            value = re.match(r"\w+ = [^;]*? - ", scope)
            if value or re.search(rf"\b{item.name} (>= 0|< 0|> -)|-{item.name}\b", scope):
                done.add(place)
                yield code.replaced(place, place, "int", "whole numbers without a sign")


def _narrow(code: KernelCode) -> Iterator[SourceChange]:
    """`const short* bits = reinterpret_cast<const short*>(p)` made unsigned: the sign of a number
    of 16 or 8 bits fills what stands above it in a word.
    """
    tokens = code.tokens
    for first, last in code.statements:
        words = [
            place
            for place in range(first, last)
            if tokens.text(place) in ("short", "char")
            and tokens.text(place - 1) not in ("unsigned", "signed")
        ]
        if words and tokens.text(words[0] + 1) in ("*", ">"):
            pieces = [(place, place, f"unsigned {tokens.text(place)}") for place in words]
            new = tokens.rewritten(first, last, pieces)
            yield code.replaced(first, last, new, "sign of bits that are joined")


def _casts(code: KernelCode) -> Iterator[SourceChange]:
    """A statement that takes several numbers as unsigned, without that."""
    tokens = code.tokens
    for first, last in code.statements:
        casts = [
            place
            for place in range(first, last)
            if tokens.text(place) in ("unsigned", "int") and tokens.text(place + 1) == "("
        ]
        for words in (("unsigned",), ("unsigned", "int")):
            pieces = [(place, place, "") for place in casts if tokens.text(place) in words]
            is_unsigned = sum(tokens.text(place) == "unsigned" for place in casts) > 1
            if is_unsigned and len(pieces) > 1:
                # as one text: each by itself would be converted to the type of what it replaces
                new = tokens.rewritten(first, last, pieces)
                yield code.replaced(first, last, new, "numbers taken as unsigned")
