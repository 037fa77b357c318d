"""Variables that nothing reads, put where they may be missing: a bias, a weight, a residual."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import NARROW, DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.term_changes import sorts_between, spots_of
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_INDICES = 12
_WORKED_OUT = "value that is given, worked out"


def unread_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each variable that is declared and read nowhere: added, multiplied or in place of a zero."""
    yield from _worked_out(code)
    for item in code.unread:
        if item.sort in ("int", "float"):
            yield from _taken(code, item)
            continue  # term_changes has the others of these
        for first, last in spots_of(code):
            if not item.position < first <= item.last or code.in_index(first):
                continue
            for text in _elements(code, item, first):
                yield from _put(code, first, last, text)
        yield from _looked_up(code, item)


def _worked_out(code: KernelCode) -> Iterator[SourceChange]:
    """`1.0f - beta` made `one_minus_beta`, which the launch gives and nothing reads; each of them,
    and all at once.
    """
    tokens = code.tokens
    given = [item for item in code.unread if item.is_parameter and item.sort == "float"]
    places = [
        place
        for place in range(len(tokens) - 2)
        if tokens.kind(place) == "number"
        and (behind := code.names.at(place + 2)) is not None
        and behind.sort == "float"
        and code.function_places[place]
        and code.extents.is_binary(place + 1)
    ]
    pairs = [
        (item, place)
        for item in given
        for place in places
        if tokens.text(place + 2) in item.name and item.position < place <= item.last
    ]
    if not pairs and len(given) == len(places):
        pairs = list(zip(given, places, strict=True))
    found = [
        code.replaced(place, place + 2, item.name, _WORKED_OUT)
        for item, place in pairs
        if item.position < place <= item.last
    ]
    yield from found
    if len(found) > 1:
        yield together(found, _WORKED_OUT)


def _taken(code: KernelCode, item: DeclaredName) -> Iterator[SourceChange]:
    """A value that was read ahead, given at the end of its block to who was there before it:
    `index = next`.
    """
    tokens = code.tokens
    block = tokens.enclosing[item.position]
    if item.is_parameter or block < 0 or tokens.text(block) != "{" or block not in tokens.partners:
        return
    end = tokens.partners[block]
    if end - 1 <= item.position:
        return
    for other in code.visible(block, item.sort):
        if not other.is_parameter and not other.name.isupper() and other.position >= 0:
            new = f" {other.name} = {item.name};"
            yield code.inserted(end - 1, new, "value never taken")


def _looked_up(code: KernelCode, item: DeclaredName) -> Iterator[SourceChange]:
    """Places looked up in a table of whole numbers: i made position[i]."""
    if item.sort != "pointer" or not {"int", "long", "unsigned"} & set(code.type_words(item)):
        return
    for first, last, sort in code.atoms():
        if sort == "int" and item.position < first <= item.last and code.function_places[first]:
            text = f"{item.name}[{code.tokens.source(first, last)}]"
            yield code.replaced(first, last, text, "table that is read nowhere")
    for first, last, _ in code.atoms():
        is_size = first == last and code.tokens.text(first) in code.sizes(first)
        if not is_size or not item.position < first <= item.last or code.in_index(first):
            continue
        for index in code.visible(first, "int"):
            if not index.is_parameter and not index.name.isupper():
                text = f"{item.name}[{index.name}]"
                yield code.replaced(first, last, text, "table that is read nowhere, for a size")


def _put(code: KernelCode, first: int, last: int, text: str) -> Iterator[SourceChange]:
    old = code.tokens.source(first, last)
    if re.fullmatch(r"0(\.0*)?f?|1(\.0*)?f", old):
        yield code.replaced(first, last, text, "unread in place of a number")
    elif sorts_between(code, first, last) & {"float", "array"} or "(" in old or "." in old:
        yield code.replaced(first, last, f"{old} * {text}", "factor that is read nowhere")
        yield code.inserted(last, f" + {text}", "summand that is read nowhere")
        yield code.inserted(last, f" - {text}", "summand that is read nowhere")


def _elements(code: KernelCode, item: DeclaredName, position: int) -> Iterator[str]:
    """The elements of a variable as the kernel may read them at a place."""
    tokens = code.tokens
    if item.sort not in ("pointer", "array"):
        for first, last in _members_of_like(code, item):
            if code.can_stand(first + 1, last, position):
                yield f"{item.name}{tokens.source(first + 1, last)}"
        return
    function = code.function_of(position)
    indices = [
        (first, last)
        for _, first, last in code.indices
        if code.function_of(first) == function and code.can_stand(first, last, position)
    ]
    indices.sort(key=lambda pair: abs(pair[0] - position))
    texts = [tokens.source(first, last) for first, last in indices]
    texts += [name.name for name in code.visible(position, "int") if not name.is_parameter]
    is_narrow = any(NARROW.fullmatch(word) for word in code.type_words(item))
    for text in list(dict.fromkeys(texts))[:_MOST_INDICES]:
        element = f"{item.name}[{text}]"
        yield f"__half2float({element})" if is_narrow else element


def _members_of_like(code: KernelCode, item: DeclaredName) -> Iterator[tuple[int, int]]:
    """How other variables of the same type are read: the name with its members and indices."""
    for place in range(len(code.tokens)):
        own = code.names.at(place) if code.tokens.kind(place) == "name" else None
        if own is not None and own.position != place and own.sort == item.sort:
            last = code.extents.postfix(place)
            if last > place:
                yield place, last
