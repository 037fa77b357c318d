"""What must be of the same: a pointer to the own row, a sigmoid of the own number, lanes before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_EXPONENTIALS = ("expf", "__expf", "exp", "exp2f")
_ONE_BIT = re.compile(r"([12])(u|ull|U|ULL)?")


def own_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Pointers, arguments and quotients made those of the own row or number."""
    yield from _rows(code)
    yield from _sigmoids(code)
    yield from _bits(code)
    yield from _quotients(code)


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """logits[i] made row[i], where `row = logits + ...` is the own part of it."""
    tokens = code.tokens
    parts = [
        (item, tokens.text(item.position + 2))
        for item in code.names.all
        if item.sort == "pointer"
        and tokens.text(item.position + 1) == "="
        and tokens.text(item.position + 3) == "+"
    ]
    for name, _, _ in code.indices:
        for item, whole in parts:
            if tokens.text(name) == whole and item.position + 3 < name <= item.last:
                yield code.replaced(name, name, item.name, "pointer without its row")


def _sigmoids(code: KernelCode) -> Iterator[SourceChange]:
    """b / (1 + expf(-a)) made b / (1 + expf(-b))."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) not in _EXPONENTIALS or tokens.text(place + 2) != "-":
            continue
        around = tokens.enclosing[place]
        is_sum = around > 0 and tokens.text(around + 2) == "+" and tokens.text(around - 1) == "/"
        if not is_sum or tokens.partners.get(place + 1) != place + 4:
            continue
        first, last = code.extents.operand_before(around - 1)
        own = tokens.source(first, last) if first <= last else ""
        if own and own != tokens.text(place + 3) and tokens.kind(last) == "name":
            yield code.replaced(place + 3, place + 3, own, "sigmoid of another number")


def _bits(code: KernelCode) -> Iterator[SourceChange]:
    """(2u << lane) - 1 made (1u << lane) - 1: the lanes before, without the own one; and back."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        found = _ONE_BIT.fullmatch(tokens.text(place - 1))
        if tokens.text(place) == "<<" and found is not None and code.function_places[place]:
            new = f"{3 - int(found[1])}{found[2] or ''}"
            yield code.replaced(place - 1, place - 1, new, "bits of the lanes before")


def _quotients(code: KernelCode) -> Iterator[SourceChange]:
    """head % H made head / H, and back, where the function has both of sizes."""
    tokens = code.tokens
    for position in range(len(tokens)):
        text = tokens.text(position)
        if text not in ("/", "%") or not code.extents.is_binary(position):
            continue
        item = code.names.at(position + 1) if tokens.kind(position + 1) == "name" else None
        is_size = item is not None and item.sort == "int"
        left = code.extents.operand_before(position)
        is_whole = left[0] <= left[1] and tokens.kind(left[1]) == "name"
        if is_size and is_whole and code.function_places[position]:
            other = "/" if text == "%" else "%"
            yield code.replaced(position, position, other, "quotient of a size")
