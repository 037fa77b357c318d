"""Which ones count: the range of a loop, a case of a flag, an index that comes back, a row."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_NEAREST = 8  # variables, the last declared first
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
    for position, begins, ends, _ in code.counted_loops():
        begin = [place for place in range(position + 1, begins) if tokens.text(place) == "="]
        if len(begin) != 1 or tokens.text(begins + 2) not in ("<", "<="):
            continue
        yield from _below(code, begins + 2, ends - 1)
        first, bound = (begin[0] + 1, begins - 1), (begins + 3, ends - 1)
        if tokens.source(*first) == "0" or bound[0] > bound[1]:
            continue
        for item in code.visible(position, "int"):
            if item.name != tokens.source(*bound):
                pair = [code.replaced(*first, "0", ""), code.replaced(*bound, item.name, "")]
                yield together(pair, "range of a loop")


def _below(code: KernelCode, sign: int, last: int) -> Iterator[SourceChange]:
    """i <= a made i < N, and the other way round."""
    other = "<" if code.tokens.text(sign) == "<=" else "<="
    for item in code.visible(sign, "int"):
        sized = item.is_parameter or item.name.isupper()
        if sized == (other == "<") and sign < last:
            yield code.replaced(sign, last, f"{other} {item.name}", "end of a loop")


def _flags(code: KernelCode) -> Iterator[SourceChange]:
    """A size that is another number where a flag holds: S made causal ? i + 1 : S."""
    tokens = code.tokens
    flags = [item for item in code.names.all if tokens.text(item.position - 1) == "bool"]
    for first, last in code.values if flags else ():
        size = code.names.at(first) if first == last else None
        if size is None or size.sort != "int" or not size.is_parameter or code.in_index(first):
            continue
        for flag in flags:
            if not flag.position < first <= flag.last or flag.name == size.name:
                continue
            for item in code.visible(first, "int")[:_NEAREST]:
                for other in (f"{item.name} + 1", item.name):
                    if item.name not in (flag.name, size.name):
                        new = f"{flag.name} ? {other} : {size.name}"
                        yield code.replaced(first, last, new, "case of a flag missing")


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
            if tokens.partners.get(right[0]) == right[1]:  # (n) is n
                bound = tokens.source(right[0] + 1, right[1] - 1)
            new = f"{index} < {bound} ? {tokens.source(name, first - 1)}{index}] : 0.0f"
            new = new if (name, last + 1) in code.values else f"({new})"
            yield code.replaced(name, last + 1, new, "index that comes back")


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """i made row * N + i in a product, where row * N is a product of the kernel."""
    yield from _grid_rows(code)
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


def _grid_rows(code: KernelCode) -> Iterator[SourceChange]:
    """The same where the row is that of the block: i made blockIdx.z * N + i in a product."""
    tokens = code.tokens
    known: dict[tuple[str, str], None] = {}
    for first, last, _ in code.atoms():
        sign = last + 2 if tokens.text(last + 1) == ")" else last + 1
        size = code.names.at(sign + 1) if tokens.kind(sign + 1) == "name" else None
        by_size = size is not None and size.sort == "int"
        if last == first + 2 and tokens.text(sign) == "*" and by_size:
            known[tokens.source(first, last), tokens.text(sign + 1)] = None
        elif last == first + 2 and tokens.text(sign) == "*" and tokens.text(sign + 1) == "gridDim":
            known[tokens.source(first, last), tokens.source(sign + 1, sign + 3)] = None
    for first, last, sort in code.atoms():
        own = code.names.at(first) if first == last else None
        is_place = last == first + 2 or (own is not None and not own.is_parameter)
        if sort != "int" or not is_place or not code.function_places[first]:
            continue
        text = tokens.source(first, last)
        sizes = [(row, size) for row, _ in known for size in _columns(code, first)]
        for row, size_name in dict.fromkeys([*list(known)[:_MOST_ROWS], *sizes]):
            if row != text and (code.in_index(first) or tokens.text(last + 1) in ("*", ")")):
                new = f"(size_t({row}) * {size_name} + {text})"
                yield code.replaced(first, last, new, "row of the block missing")


def _columns(code: KernelCode, position: int) -> list[str]:
    """The sizes that a kernel is given, at most two: the length of a row is often the last."""
    names = [item.name for item in code.visible(position, "int") if item.is_parameter]
    return [name for name in names if name.isupper()][:2]


def _row_products(code: KernelCode) -> list[tuple[str, str]]:
    """The variables that are multiplied by a size somewhere, with it; and those that nothing reads
    with every size.
    """
    tokens, found = code.tokens, dict[tuple[str, str], None]()
    for item in code.unread:
        if item.sort == "int" and not item.is_parameter:
            sizes = (other for other in code.names.all if other.sort == "int")
            found |= {(item.name, size.name): None for size in sizes if size.is_parameter}
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
