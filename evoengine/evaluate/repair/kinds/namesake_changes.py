"""What the like place of a kernel says: a value of the same name, a call of the same function, the
pointer before, a function with the same parameters, a product with a factor more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.name_changes import own_functions
from evoengine.evaluate.repair.kinds.visible_names import has_meaning
from evoengine.evaluate.repair.source_change import SourceChange

_RETURN = re.compile(r"\b(\w+)\(([^(){}]*)\)\s*\{\s*return ([^;]+);\s*\}")
_SIMPLE = re.compile(r"[A-Za-z_]\w*")
_NO_CALLS = frozenset(("if", "while", "for", "switch", "return", "sizeof"))
_LEAST = 4  # tokens of a value
_MOST_LIKE = 4
_REGISTER = re.compile(r"([\w\[\]]+)\[(\d)\] = (.+);", re.DOTALL)

Range = tuple[int, int]


def namesake_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Values, arguments, offsets and terms made those of a like place."""
    yield from _values(code)
    yield from _arguments(code)
    yield from _summed(code)
    yield from _pointers(code)
    yield from _functions(code)
    yield from _products(code)
    yield from _registers(code)
    yield from _coordinates(code)
    yield from _given(code)
    yield from _quotients(code)


def _values(code: KernelCode) -> Iterator[SourceChange]:
    """`column = place % N` made `column = left + place % N`, as another `column` begins."""
    values = [pair for pair in first_values(code) if pair[1][1] > pair[1][0]]
    by_name: dict[str, list[Range]] = {}
    for item, value in values:
        by_name.setdefault(item.name, []).append(value)
    for item, value in values:
        own = code.tokens.source(*value)
        fitting = [
            other
            for other in by_name[item.name]
            if other != value and has_meaning(code, other, value[0])
        ]
        for other in fitting[:_MOST_LIKE]:
            text = code.tokens.source(*other)
            words = [set(re.findall(r"\w+", it)) for it in (own, text)]
            is_part = words[0] < words[1] or words[1] < words[0]
            if is_part and max(other[1] - other[0], value[1] - value[0]) >= _LEAST:
                yield code.replaced(*value, text, "value of its namesake")
            elif item.sort == "int":
                yield from _summands(code, value, other)


def _summands(code: KernelCode, value: Range, other: Range) -> Iterator[SourceChange]:
    """`column = 4 * i` made `head + 4 * i`, as another `column` begins `i < head ? i : ...`."""
    tokens = code.tokens
    own = {tokens.text(place) for place in range(value[0], value[1] + 1)}
    names = dict.fromkeys(
        tokens.text(place)
        for place in range(other[0], other[1] + 1)
        if (item := code.names.at(place)) is not None and item.sort == "int"
    )
    for name in [name for name in names if name not in own][:_MOST_LIKE]:
        new = f"{name} + {tokens.source(*value)}"
        yield code.replaced(*value, new, "summand of its namesake")


def _arguments(code: KernelCode) -> Iterator[SourceChange]:
    """`load(n0, m0)` made `load(m0, n0)`, as another call of the function has them."""
    tokens = code.tokens
    own = {*own_functions(code), *re.findall(r"\bauto (\w+) = \[&?\]", tokens.code)}
    calls: dict[str, list[list[Range]]] = {}
    for place in range(len(tokens)):
        if tokens.text(place) in own and code.function_places[place]:
            calls.setdefault(tokens.text(place), []).append(code.extents.arguments(place + 1))
    for found in calls.values():
        for one in found:
            texts = [tokens.source(*pair) for pair in one]
            for other in found:
                there = [tokens.source(*pair) for pair in other]
                yield from _renamed(code, one, there)
                for a, b in combinations(range(min(len(one), len(other))), 2):
                    is_turned = texts[a] == there[b] and texts[b] == there[a]
                    if is_turned and texts[a] != texts[b]:
                        pair = [
                            code.replaced(*one[a], texts[b], ""),
                            code.replaced(*one[b], texts[a], ""),
                        ]
                        yield together(pair, "arguments in another order than elsewhere")


def _summed(code: KernelCode) -> Iterator[SourceChange]:
    """`sum.add(row[tail])` made `sum.add(row[tail] - anchor)`, as in `sum.add(v.x - anchor)`."""
    tokens = code.tokens
    calls: dict[str, list[Range]] = {}
    for place in range(len(tokens) - 1):
        is_call = tokens.kind(place) == "name" and tokens.text(place + 1) == "("
        if not is_call or tokens.text(place) in _NO_CALLS:
            continue
        if code.function_places[place] and place + 1 in tokens.partners:
            arguments = code.extents.arguments(place + 1)
            calls.setdefault(tokens.text(place), []).extend(arguments[:1])
    for found in calls.values():
        texts = [tokens.source(*pair) for pair in found]
        summands = dict.fromkeys(
            end[0] for text in texts if (end := re.search(r" [-+] [A-Za-z_]\w*$", text))
        )
        for summand in list(summands)[:_MOST_LIKE]:
            name = summand.split()[-1]
            for pair, text in zip(found, texts, strict=True):
                is_known = name in {item.name for item in code.names.visible(pair[0])}
                if is_known and not re.search(rf"\b{name}\b", text):
                    yield code.inserted(pair[1], summand, "summand of a like call")


def _renamed(code: KernelCode, one: list[Range], there: list[str]) -> Iterator[SourceChange]:
    """`fetch(s, s)` made `fetch(s, s * SIZE)`, as another call has `fetch(next, next * SIZE)`."""
    for pair, text in zip(one, there, strict=False):
        own = code.tokens.source(*pair)
        names = set(re.findall(r"(?<![\w.])[a-z]\w*(?![\w(])", text))
        is_name = pair[0] == pair[1] and code.tokens.kind(pair[0]) == "name"
        if is_name and len(names) == 1 and text not in names and own not in text:
            new = re.sub(rf"\b{names.pop()}\b", own, text)
            yield code.replaced(*pair, new, "argument as elsewhere, of another name")


def _pointers(code: KernelCode) -> Iterator[SourceChange]:
    """`values = v + head * S` made `values = v + head / 4 * S`, as `keys` beside it."""
    tokens = code.tokens
    pointers = [(item, value) for item, value in first_values(code) if item.sort == "pointer"]
    for one, other in pairwise(pointers):
        pair = one[1], other[1]
        if other[1][0] - one[1][1] > 12 or any(tokens.text(it[0] + 1) != "+" for it in pair):
            continue
        ranges = [(it[0] + 2, it[1]) for it in pair]
        texts = [tokens.source(*it) for it in ranges]
        words = [set(re.findall(r"\w+", text)) for text in texts]
        if texts[0] != texts[1] and len(words[0] & words[1]) > 1:
            yield code.replaced(*ranges[1], texts[0], "offset of the pointer beside")
            yield code.replaced(*ranges[0], texts[1], "offset of the pointer beside")


def _functions(code: KernelCode) -> Iterator[SourceChange]:
    """A term of what a function returns that one with the same parameters has."""
    found = [
        (
            set(re.findall(r"(\w+)(?:,|$)", item[2])),
            item[3],
            code.offset + item.end(3),
            item[1],
        )
        for item in _RETURN.finditer(code.tokens.code)
    ]
    for parameters, text, end, name in found:
        for others, like, _, other in found:
            if name == other or not parameters & others:
                continue
            for term in _terms(like):
                own = set(re.findall(r"(?<![\w.])[a-z]\w*", term))
                if own and own <= parameters and term not in text:
                    yield SourceChange(end, end, f" + {term}", "term of a like function")


def _terms(text: str) -> list[str]:
    """The summands of an expression."""
    found, depth, begin = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if depth == 0 and text[place : place + 3] == " + ":
            found.append(text[begin:place])
            begin = place + 3
    return [term for term in (*found, text[begin:]) if depth == 0]


def _products(code: KernelCode) -> Iterator[SourceChange]:
    """`split * S` made `split * heads * S`, as the kernel has it elsewhere."""
    tokens = code.tokens
    known: dict[tuple[str, str], dict[str, int]] = {}
    for found in re.finditer(r"\b(\w+) \* (\w+) \* (\w+)\b(?! *[*(])", tokens.code):
        known.setdefault((found[1], found[3]), {})[found[2]] = 0
    for place in range(1, len(tokens) - 1) if known else ():
        key = tokens.text(place - 1), tokens.text(place + 1)
        if tokens.text(place) != "*" or "*" in (tokens.text(place - 2), tokens.text(place + 2)):
            continue
        names = {item.name for item in code.names.visible(place)} if key in known else set()
        for factor in known.get(key, ()):
            if factor in names or factor.isdigit():
                yield code.inserted(place, f" {factor} *", "factor of a like product")


def _registers(code: KernelCode) -> Iterator[SourceChange]:
    """`x[1] = f(a + 8); x[2] = f(a + 8 * P)` with the two values exchanged."""
    tokens = code.tokens
    for one, other in pairwise(code.statements):
        texts = [_REGISTER.fullmatch(tokens.source(*pair)) for pair in (one, other)]
        if texts[0] is None or texts[1] is None or texts[0][1] != texts[1][1]:
            continue
        signs = [next(at for at in range(*pair) if tokens.text(at) == "=") for pair in (one, other)]
        pair = [
            code.replaced(signs[0] + 1, one[1] - 1, texts[1][3], ""),
            code.replaced(signs[1] + 1, other[1] - 1, texts[0][3], ""),
        ]
        if texts[0][3] != texts[1][3]:
            yield together(pair, "values of two registers exchanged")


def _coordinates(code: KernelCode) -> Iterator[SourceChange]:
    """`k0 + c < K && n0 + r < N` with r and c exchanged, where `r = i / N, c = i % N`."""
    tokens = code.tokens
    pairs = dict.fromkeys(
        re.findall(r"\b(\w+) = (?:\w+) / [^,;]+, (\w+) = (?:\w+) % [^,;]+[,;]", tokens.code)
    )
    for first, last in code.conditions:
        names = [tokens.text(at) for at in range(first, last + 1)]
        for one, other in pairs:
            if one not in names or other not in names or one == other:
                continue
            pieces = [
                code.replaced(at, at, other if tokens.text(at) == one else one, "")
                for at in range(first, last + 1)
                if tokens.text(at) in (one, other) and code.names.at(at) is not None
            ]
            if len(pieces) > 1:
                yield together(pieces, "row and column of a condition exchanged")


def _given(code: KernelCode) -> Iterator[SourceChange]:
    """`exp(x - high)` made `exp(x - mark[h])` behind `mark[h] = high`: what was kept counts."""
    tokens = code.tokens
    for first, last in code.statements:
        found = re.fullmatch(r"(\w+(?:\[\w+\])+) = (\w+);", tokens.source(first, last))
        own = code.names.at(last - 1) if found is not None else None
        if found is None or own is None or own.sort != "float":
            continue
        for place in range(last + 1, min(own.last, len(tokens) - 1) + 1):
            is_use = tokens.text(place) == own.name and code.names.at(place) == own
            if is_use and tokens.text(place + 1) != "=" and code.can_stand(first, last, place):
                yield code.replaced(place, place, found[1], "element that it was given to")


def _quotients(code: KernelCode) -> Iterator[SourceChange]:
    """`total[e % 2]` made `total[e / 2]`, where all other indices of e are `e / 2`."""
    tokens = code.tokens
    found: dict[tuple[str, str, str], list[int]] = {}
    for _, first, last in code.indices:
        is_part = last == first + 2 and tokens.text(first + 1) in ("/", "%")
        if is_part and tokens.text(last).isdigit():
            key = tokens.text(first), tokens.text(first + 1), tokens.text(last)
            found.setdefault(key, []).append(first + 1)
    for (name, sign, number), places in found.items():
        other = "/" if sign == "%" else "%"
        if len(places) == 1 and len(found.get((name, other, number), ())) > 1:
            yield code.replaced(places[0], places[0], other, "quotient as other indices have it")
