"""Numbers of elements that are taken for numbers of bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.term_changes import times
from evoengine.evaluate.repair.source_change import SourceChange

_COPIES = re.compile(r"cp_|copy|async|bulk|fetch|stage|expect_tx|load|bytes", re.IGNORECASE)
_BYTES = re.compile(r"bytes|size", re.IGNORECASE)
_SIZES = (2, 4, 8)
_LEAST_TERMS = 3
_IN_BYTES = re.compile(r" \* (2|4|8|16|32|64|128|sizeof\([^()]*\))$")
_PRODUCT = re.compile(r"[A-Za-z_][\w.]*( \* [A-Za-z_][\w.]*)+")
_WHOLE_COPIES = ("4", "8", "16")  # that cp.async brings at once


def byte_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`copy16(to, from, left)` made `copy16(to, from, left * 4)`, and `n < 4 ? n : 16` made
    `n < 4 ? n * 4 : 16`.
    """
    for first, last in _numbers(code):
        for size in _SIZES:
            yield times(code, first, last, f"* {size}", "elements for bytes")
    for first, last in _summands(code):
        for size in _SIZES[:2]:
            yield times(code, first, last, f"* {size}", "summand of elements among bytes")


def _summands(code: KernelCode) -> Iterator[tuple[int, int]]:
    """`warp * COLUMNS` in the argument `base + row * PITCH + warp * COLUMNS + n * 32` of a call: a
    product without a number as factor beside one that has the size of an element, or of a chunk.
    """
    tokens = code.tokens
    for place in range(len(tokens) - 1):
        is_call = tokens.kind(place) == "name" and tokens.text(place + 1) == "("
        if not is_call or not code.function_places[place]:
            continue
        for pair in code.extents.arguments(place + 1):
            found = list(_terms(code, *pair))
            texts = [tokens.source(*term) for term in found]
            if any(_IN_BYTES.search(text) for text in texts):
                yield from (
                    term
                    for term, text in zip(found, texts, strict=True)
                    if _PRODUCT.fullmatch(text) and _is_count(code, *term)
                )


def _terms(code: KernelCode, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The summands of a sum of three or more; none of another expression."""
    tokens, begin, place, found = code.tokens, first, first, list[tuple[int, int]]()
    while place <= last + 1:
        if place == last + 1 or (tokens.text(place) == "+" and code.extents.is_binary(place)):
            found.append((begin, place - 1))
            begin = place + 1
        place = tokens.partners.get(place, place) + 1 if tokens.text(place) in "([" else place + 1
    yield from found if len(found) >= _LEAST_TERMS else ()


def _numbers(code: KernelCode) -> Iterator[tuple[int, int]]:
    """Whole numbers that a copy is given, that are beside the bytes of a whole copy in a choice, or
    are named bytes.
    """
    tokens = code.tokens
    for place in range(len(tokens)):
        if not code.function_places[place]:
            continue
        text = tokens.text(place)
        is_named = tokens.kind(place) == "name"
        if is_named and tokens.text(place + 1) == "(" and _COPIES.search(text):
            pairs = code.extents.arguments(place + 1)[1:]
        elif text == "?":
            pairs = _branches(code, place)
        elif is_named and tokens.text(place + 1) == "=" and _BYTES.search(text):
            pairs = [(place + 2, _end_of(code, place + 2))]
        else:
            continue
        for first, last in pairs:
            if first <= last and _is_count(code, first, last):
                yield first, last


def _branches(code: KernelCode, question: int) -> list[tuple[int, int]]:
    """Both branches of a choice of which one is the bytes of a whole copy, or none in a copy."""
    tokens = code.tokens
    end = _end_of(code, question + 1)
    branches = [(question + 1, end), (end + 2, _end_of(code, end + 2))]
    texts = [tokens.source(*pair) for pair in branches if pair[0] <= pair[1]]
    copies = _COPIES.search(tokens.source(*code.extents.statement(question))) is not None
    known = (*_WHOLE_COPIES, "0") if copies else _WHOLE_COPIES
    return branches if any(text in known for text in texts) else []


def _end_of(code: KernelCode, place: int) -> int:
    """The last token of the value that begins at `place`."""
    tokens = code.tokens
    while place < len(tokens) and tokens.text(place) not in (",", ";", ")", ":"):
        place = tokens.partners.get(place, place) + 1 if tokens.text(place) in "([{" else place + 1
    return place - 1


def _is_count(code: KernelCode, first: int, last: int) -> bool:
    """Whether a value is a whole number that is made of a variable, and no address or bytes."""
    if _BYTES.search(code.tokens.source(first, last)):
        return False
    sorts = {sort for _, _, sort in code.atoms_between(first, last)}
    return sorts == {"int"} and not code.tokens.has_any(first, last, {"&", "[", "{", "?"})
