"""Which ones count: the range of a loop, a case of a flag, an index that comes back, a row."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.coupled_changes import together
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_NEAREST = 8  # variables, the last declared first
_LONGEST_VALUE = 3  # tokens of one that is replaced where a flag holds
_MOST_ROWS = 8  # products of a kernel that may be the begin of a row


def range_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Loops over another range; values of another case; elements outside taken as zero; rows."""
    yield from _loops(code)
    yield from _flags(code)
    yield from _wrapped(code)
    yield from _rows(code)


def _loops(code: KernelCode) -> Iterator[SourceChange]:
    """A loop from a to b made one from 0 to c."""
    tokens = code.tokens
    for position in range(len(tokens)):
        opening = position + 1
        if tokens.text(position) != "for" or opening not in tokens.partners:
            continue
        ends = [
            place
            for place in range(opening + 1, tokens.partners[opening])
            if tokens.text(place) == ";" and tokens.enclosing[place] == opening
        ]
        begin = [
            place for place in range(opening, ends[0] if ends else 0) if tokens.text(place) == "="
        ]
        if len(ends) != 2 or len(begin) != 1 or tokens.text(ends[0] + 2) not in ("<", "<="):
            continue
        first, bound = (begin[0] + 1, ends[0] - 1), (ends[0] + 3, ends[1] - 1)
        if tokens.source(*first) == "0" or bound[0] > bound[1]:
            continue
        for item in code.visible(position, "int"):
            if item.name != tokens.source(*bound):
                pair = [code.replaced(*first, "0", ""), code.replaced(*bound, item.name, "")]
                yield together(pair, "range of a loop")


def _flags(code: KernelCode) -> Iterator[SourceChange]:
    """A whole number that is another one where a flag holds, or where it does not."""
    tokens = code.tokens
    flags = [item for item in code.names.all if tokens.text(item.position - 1) == "bool"]
    for first, last in code.values if flags else ():
        text = tokens.source(first, last)
        is_number = last - first < _LONGEST_VALUE and (
            text.isdigit() or _is_integer(code, first, last)
        )
        if not is_number or code.in_index(first) or "?" in text:
            continue
        for flag in flags:
            if not flag.position < first <= flag.last or flag.name == text:
                continue
            for item in code.visible(first, "int")[:_NEAREST]:
                if item.name in (flag.name, text):
                    continue
                for other in (f"{item.name} + 1", item.name):
                    new = f"({flag.name} ? {other} : {text})"
                    yield code.replaced(first, last, new, "case of a flag missing")


def _is_integer(code: KernelCode, first: int, last: int) -> bool:
    sorts = {
        item.sort
        for place in range(first, last + 1)
        if code.tokens.kind(place) == "name" and (item := code.names.at(place)) is not None
    }
    return sorts == {"int"}


def _wrapped(code: KernelCode) -> Iterator[SourceChange]:
    """a[i % n] made zero where i is n or more."""
    tokens = code.tokens
    for name, first, last in code.indices:
        for position in range(first, last + 1):
            if tokens.text(position) != "%" or not code.extents.is_binary(position):
                continue
            left, right = (
                code.extents.operand_before(position),
                code.extents.operand_behind(position),
            )
            if (left[0], right[1]) != (first, last) or tokens.text(last + 2) in ("=", "+="):
                continue
            index, bound = tokens.source(*left), tokens.source(*right)
            new = f"({index} < {bound} ? {tokens.source(name, first - 1)}{index}] : 0.0f)"
            yield code.replaced(name, last + 1, new, "index that comes back")


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """i made row * N + i in a product, where row * N is a product of the kernel."""
    tokens = code.tokens
    rows = _row_products(code)
    for position, last, sort in code.atoms():
        own = code.names.at(position)
        is_row = sort == "int" and position == last and own is not None and not own.is_parameter
        if not is_row or not code.function_places[position]:
            continue
        is_cast = tokens.text(position - 2) == "size_t" and tokens.text(position + 1) == ")"
        first, end = (position - 2, position + 1) if is_cast else (position, position)
        if tokens.text(end + 1) != "*":
            continue
        name = tokens.text(position)
        for row, size in rows:
            if row != name and {row, size} <= {item.name for item in code.visible(first, "int")}:
                new = f"(size_t({row}) * {size} + {name})"
                yield code.replaced(first, end, new, "begin of a row missing")


def _row_products(code: KernelCode) -> list[tuple[str, str]]:
    """The variables that are multiplied by a size somewhere: row and size."""
    tokens, found = code.tokens, dict[tuple[str, str], None]()
    for position in range(2, len(tokens)):
        size = code.names.at(position + 1) if tokens.kind(position + 1) == "name" else None
        if tokens.text(position) != "*" or size is None or size.sort != "int":
            continue
        place = position - 2 if tokens.text(position - 1) == ")" else position - 1
        row = code.names.at(place) if tokens.kind(place) == "name" else None
        is_size = size.is_parameter or size.name.isupper()
        if row is not None and row.sort == "int" and not row.is_parameter and is_size:
            found[row.name, size.name] = None
    return list(found)[:_MOST_ROWS]
