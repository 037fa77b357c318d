"""Indices along the wrong axis or in the wrong direction, or counted from another begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_LEAST, _MOST = 16, 512  # of numbers at which a second part may begin
_MOST_NUMBERS = 4
_MOST_OF_A_HEAD = 24  # tokens
_OWN_NUMBERS = ("blockIdx", "threadIdx")


def axis_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Steps along another axis, mirrored indices, numbers counted from the begin of their part."""
    yield from _other_axis(code)
    yield from _mirrored(code)
    yield from _behind_the_last(code)
    yield from _begins(code)
    yield from _second_choices(code)


def _other_axis(code: KernelCode) -> Iterator[SourceChange]:
    """x[a][b + 1] made x[a + 1][b], and the other way round."""
    tokens = code.tokens
    for _, first, last in code.indices:
        opening = last + 2
        if tokens.text(opening) != "[" or opening not in tokens.partners:
            continue
        second = opening + 1, tokens.partners[opening] - 1
        for own, other in (((first, last), second), (second, (first, last))):
            step = tokens.text(own[1]) if tokens.text(own[1] - 1) == "+" else ""
            if step.isdigit() and own[1] - 2 >= own[0]:
                pair = [
                    code.replaced(own[1] - 1, own[1], "", ""),
                    code.inserted(other[1], f" + {step}", ""),
                ]
                yield together(pair, "step along the other axis")


def _mirrored(code: KernelCode) -> Iterator[SourceChange]:
    """x[(1 - i) * 3 + 1 - j] made x[(i + 1) * 3 + j + 1], and the other way round."""
    tokens = code.tokens
    for _, first, last in code.indices:
        for sign, other in (("-", "+"), ("+", "-")):
            pieces = []
            for place in range(first, last + 1):
                near = tokens.text(place - 1), tokens.text(place + 1)
                name, number = near[::-1] if sign == "-" else near
                is_step = tokens.text(place) == sign and number.isdigit() and name.isidentifier()
                whole = tokens.text(place + 2) not in ("*", "/", "%", ".")
                if is_step and whole:
                    own = (name, number) if sign == "-" else (number, name)
                    new = f"{own[0]} {other} {own[1]}"
                    pieces.append(code.replaced(place - 1, place + 1, new, ""))
            if len(pieces) > 1:
                yield together(pieces, "index mirrored")


def _behind_the_last(code: KernelCode) -> Iterator[SourceChange]:
    """`tiles - blockIdx.x` made `tiles - 1 - blockIdx.x`: counted from the other end, the first one
    is the last and not the one behind it. Also with the variable of a loop to `tiles`.
    """
    tokens = code.tokens
    for place in range(2, len(tokens) - 1):
        if tokens.text(place) != "-" or not code.function_places[place]:
            continue
        name = tokens.text(place - 1)
        is_size = name.isidentifier() and tokens.text(place - 2) in ("=", "(", "[", ",", "+")
        is_number = tokens.text(place + 1) in _OWN_NUMBERS or _counts_to(code, place + 1, name)
        if is_size and is_number:
            yield code.inserted(place - 1, " - 1", "index behind the last")


def _counts_to(code: KernelCode, place: int, size: str) -> bool:
    """Whether a name is the variable of a loop whose condition is that it is below `size`."""
    item = code.names.at(place)
    if item is None or code.loop_of(item.position) is None:
        return False
    texts = [code.tokens.text(at) for at in range(item.position, item.position + _MOST_OF_A_HEAD)]
    return [item.name, "<", size] in [texts[at : at + 3] for at in range(len(texts))]


def _begins(code: KernelCode) -> Iterator[SourceChange]:
    """`row < 64 ? f(row) : g(row)` made g(row - 64): the second part counts from its begin."""
    tokens = code.tokens
    for first, last in code.conditions:
        is_simple = last == first + 2 and tokens.text(first + 1) in ("<", ">=")
        if not is_simple or code.loop_of(first) is not None or tokens.text(last) == "0":
            continue
        own = code.names.at(first)
        if own is None or own.is_parameter or own.sort != "int":
            continue
        _, end = code.extents.statement(last + 1)
        if tokens.text(end + 1) == "else":
            _, end = code.extents.statement(end + 2)
        for place, at, _ in code.atoms_between(last + 1, end):
            if place == at and tokens.text(place) == own.name and tokens.text(place + 1) != "-":
                new = f"({own.name} - {tokens.text(last)})"
                yield code.replaced(place, place, new, "begin of the second part")


def _second_choices(code: KernelCode) -> Iterator[SourceChange]:
    """`i < 4 ? a + row : b + row` made `b + (row - 64)`: the second one counts from its begin."""
    tokens = code.tokens
    numbers = Counter(
        token.text
        for token in tokens.tokens
        if token.text.isdigit() and _LEAST <= int(token.text) <= _MOST
    )
    for place in range(len(tokens)):
        before = code.extents.first_of(place, 0) if tokens.text(place) == "?" else place
        if before == place or tokens.text(before + 1) not in ("<", "<=", "=="):
            continue
        colon = code.extents.last_of(place, 0) + 1
        if tokens.text(colon) != ":":
            continue
        last = code.extents.last_of(colon, 0)
        own = {tokens.text(at) for at in range(place, colon)}
        for at, end, sort in code.atoms_between(colon, last):
            item = code.names.at(at) if at == end else None
            is_local = item is not None and not (item.is_parameter or item.name.isupper())
            if sort == "int" and is_local and tokens.text(at) in own:
                for number, _ in numbers.most_common(_MOST_NUMBERS):
                    new = f"({tokens.text(at)} - {number})"
                    yield code.replaced(at, at, new, "begin of the second part")
