"""Mistakes that two statements which follow one another have alike, and those of register lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 60  # tokens of a statement
_MOST_NAMES = 6  # in place of one
_MOST_CHANGES = 60  # of a kernel
_MOST_LETTERS = 3  # in which names of two statements differ
_CONSTRAINTS = ('"r"', '"f"', '"l"')
_TO_CODE = ("__float2int_rn", "__float2int_rd", "__double2int_rn", "lrintf", "rintf")

Range = tuple[int, int]


def pair_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Names, indices and registers of neighbours, changed alike or exchanged."""
    pairs = [
        (one, other)
        for one, other in pairwise(code.statements)
        if other[0] == one[1] + 1 and one[1] - one[0] == other[1] - other[0] <= _LONGEST
    ]
    found = [change for pair in pairs for change in _names(code, *pair)]
    yield from found[:_MOST_CHANGES]
    for pair in pairs:
        yield from _turned(code, *pair)
        yield from _copied(code, *pair)
    for one, other in pairwise(code.statements):
        if other[0] == one[1] + 1:
            yield from _four(code, [*_elements(code, one), *_elements(code, other)])
    for statement in code.statements:
        yield from _four(code, _elements(code, statement))
        yield from _operands(code, statement)
        yield from _bytes(code, statement)
    yield from _lists_of_four(code)


def _names(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """A name that both statements have at the same place, made another one that both have, or one
    that is alike: v2 made v1.
    """
    tokens, moved = code.tokens, other[0] - one[0]
    texts = [
        [tokens.text(place) for place in range(first, last + 1)] for first, last in (one, other)
    ]
    if sum(a != b for a, b in zip(*texts, strict=True)) > len(texts[0]) // 3:
        return
    for place, end, sort in code.atoms_between(*one):
        own = tokens.text(place)
        if place != end or tokens.text(place + moved) != own or sort not in ("int", "float"):
            continue
        stem = own.rstrip("0123456789")
        items = [
            item.name
            for item in code.visible(place, sort)
            if item.name != own
            and (
                (item.name in texts[0] and item.name in texts[1])
                or (stem != own and item.name.rstrip("0123456789") == stem)
            )
        ]
        for name in items[:_MOST_NAMES]:
            changes = [code.replaced(at, at, name, "") for at in (place, place + moved)]
            yield together(changes, "name for another, in statements alike")


def _copied(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """A line that was copied, with one name not changed: where `k_tile` becomes `v_tile`, `ks`
    becomes `vs`.
    """
    tokens, moved = code.tokens, other[0] - one[0]
    if any(tokens.kind(at) != tokens.kind(at + moved) for at in range(one[0], one[1])):
        return
    letters = dict.fromkeys(
        found
        for at in range(one[0], one[1])
        if tokens.kind(at) == "name"
        and (found := _differing(tokens.text(at), tokens.text(at + moved)))
    )
    for place, end, _ in code.atoms_between(*one) if 0 < len(letters) <= _MOST_LETTERS else ():
        own = tokens.text(place)
        if place != end or own != tokens.text(place + moved):
            continue
        visible = {item.name for item in code.names.visible(place)}
        for before, after in letters:
            for at, new in (
                (place + moved, own.replace(before, after, 1)),
                (place, own.replace(after, before, 1)),
            ):
                if new != own and new in visible:
                    yield code.replaced(at, at, new, "name not changed in a copy")


def _differing(one: str, other: str) -> tuple[str, str] | None:
    """The part in which two names of one length differ; None of equal names, and of those that
    differ in all.
    """
    places = [at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1]
    if len(one) != len(other) or not places or (len(places) == len(one) > 2):
        return None
    begin, end = places[0], places[-1] + 1
    return one[begin:end], other[begin:end]


def _turned(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """x[j][0] and x[j][1] of two statements made x[0][j] and x[1][j]."""
    tokens = code.tokens
    found: dict[str, dict[Range, list[SourceChange]]] = {}
    for name, begin, end in code.indices:
        opening = end + 2
        statement = next((it for it in (one, other) if it[0] <= name <= it[1]), None)
        if statement is None or tokens.text(begin - 2) == "]" or tokens.text(opening) != "[":
            continue
        closing = tokens.partners.get(opening, opening)
        first, second = tokens.source(begin, end), tokens.source(opening + 1, closing - 1)
        if first != second and tokens.text(closing + 1) != "[":
            change = code.replaced(begin, closing - 1, f"{second}][{first}", "")
            found.setdefault(tokens.text(name), {}).setdefault(statement, []).append(change)
    for by_statement in found.values():
        changes = [change for items in by_statement.values() for change in items]
        if len(by_statement) == 2 and len(changes) == 2:
            yield together(changes, "indices of an array exchanged")


def _elements(code: KernelCode, statement: Range) -> list[tuple[str, int]]:
    """The array and the place of each index that is a number."""
    return [
        (code.tokens.text(name), first)
        for name, first, last in code.indices
        if statement[0] <= name <= statement[1]
        and first == last
        and code.tokens.kind(first) == "number"
    ]


def _lists_of_four(code: KernelCode) -> Iterator[SourceChange]:
    """{a, c, b, d} made {a, b, c, d}, where each is more than a name."""
    tokens = code.tokens
    for opening in range(len(tokens)):
        if tokens.text(opening) != "{" or not code.function_places[opening]:
            continue
        closing = tokens.partners.get(opening, opening)
        commas = [
            place
            for place in range(opening + 1, closing)
            if tokens.text(place) == "," and tokens.enclosing[place] == opening
        ]
        if len(commas) == 3 and commas[1] - commas[0] > 2:
            second = commas[0] + 1, commas[1] - 1
            third = commas[1] + 1, commas[2] - 1
            if tokens.source(*second) != tokens.source(*third):
                changes = [
                    code.replaced(*second, tokens.source(*third), ""),
                    code.replaced(*third, tokens.source(*second), ""),
                ]
                yield together(changes, "registers in another order")


def _four(code: KernelCode, elements: list[tuple[str, int]]) -> Iterator[SourceChange]:
    """b[0], b[2], b[1], b[3] made b[0], b[1], b[2], b[3], and k[0], k[1], k[0], k[1] made k[0],
    k[0], k[1], k[1]: registers of a fragment in another order.
    """
    for array in dict.fromkeys(name for name, _ in elements):
        places = [place for name, place in elements if name == array]
        if len(places) != 4:
            continue
        second, third = (code.tokens.text(place) for place in places[1:3])
        if second != third:
            changes = [
                code.replaced(places[1], places[1], third, ""),
                code.replaced(places[2], places[2], second, ""),
            ]
            yield together(changes, "registers in another order")


def _operands(code: KernelCode, statement: Range) -> Iterator[SourceChange]:
    """Two operands of an instruction that follow one another, exchanged."""
    tokens, (first, last) = code.tokens, statement
    if tokens.text(first) not in ("asm", "__asm__"):
        return
    operands = [
        (place, place + 2, tokens.partners[place + 1] - 1)
        for place in range(first, last)
        if tokens.text(place) in _CONSTRAINTS and place + 1 in tokens.partners
    ]
    for (place, *one), (behind, *other) in pairwise(operands):
        if tokens.text(place) != tokens.text(behind) or one[1] + 3 != behind:
            continue
        texts = tokens.source(one[0], one[1]), tokens.source(other[0], other[1])
        if texts[0] != texts[1]:
            changes = [
                code.replaced(one[0], one[1], texts[1], ""),
                code.replaced(other[0], other[1], texts[0], ""),
            ]
            yield together(changes, "operands of an instruction exchanged")


def _bytes(code: KernelCode, statement: Range) -> Iterator[SourceChange]:
    """`__float2int_rn(x)` made `__float2int_rn(x) & 255` where the code is a byte of a word."""
    tokens = code.tokens
    if not re.search(r"<< (8|16|24)|0x[67]\d\d\d\b|255|0xff", tokens.code):
        return
    changes = []
    for place in range(*statement):
        closing = tokens.partners.get(place + 1, -1)
        is_code = tokens.text(place) in _TO_CODE and closing > 0
        if is_code and tokens.text(closing + 1) in (",", ";", "|"):
            changes.append(code.inserted(closing, " & 255", "byte of a code not cut"))
    yield from changes
    if len(changes) > 1:
        yield together(changes, "byte of a code not cut")
