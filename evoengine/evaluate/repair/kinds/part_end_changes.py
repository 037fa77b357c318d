"""Where parts end and begin that belong to a block, a fragment or an array."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.ahead_changes import waiting_functions
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_OF_BLOCK = re.compile(r"\b(blockIdx\.[xyz])\)? \* (\w+)\b")
_PADDED = re.compile(r"\b(\w+) = (\w+) \+ \w+\s*[,;]")
_WAITS = re.compile(r"\w*wait\w*", re.IGNORECASE)
_LEADING = 2  # the place of the argument in both calls
_FACTORS = ("2", "4", "8")
_MOST_SIZES = 4
_MOST_PARTS = 3

Range = tuple[int, int]


def part_end_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Ends of parts, planes of blocks, rows with padding, groups of copies that may be pending."""
    yield from _ends(code)
    yield from _planes(code)
    yield from _pitches(code)
    yield from _padded(code)
    yield from _cleared(code)
    yield from _waits(code)
    yield from _ones(code)


def _ends(code: KernelCode) -> Iterator[SourceChange]:
    """K made min(int(blockIdx.z + 1) * LENGTH, K): a part ends before the whole does."""
    parts = list(dict.fromkeys(_OF_BLOCK.findall(code.tokens.code)))[:_MOST_PARTS]
    for first, last in (*code.values, *_bounds(code)):
        own = code.names.at(first) if first == last else None
        is_size = own is not None and own.sort == "int" and own.is_parameter
        is_end = code.tokens.text(first - 1) in ("=", "<")
        if not is_size or not is_end:
            continue
        for block, length in parts:
            new = f"min(int({block} + 1) * {length}, {code.tokens.text(first)})"
            yield code.replaced(first, last, new, "end of a block's own part")


def _bounds(code: KernelCode) -> Iterator[Range]:
    """What the variable of each loop is compared with."""
    for place in range(len(code.tokens)):
        is_bound = code.tokens.text(place) == "<" and code.tokens.text(place + 2) == ";"
        if is_bound and code.loop_of(place) is not None:
            yield place + 1, place + 1


def _planes(code: KernelCode) -> Iterator[SourceChange]:
    """out[row * N + i] made out[(blockIdx.z * M + row) * N + i], where each block along an axis
    writes a plane of its own.
    """
    tokens = code.tokens
    for name, first, last in code.indices:
        own = code.names.at(name)
        if own is None or own.sort != "pointer" or tokens.text(last + 2) not in ("=", "+="):
            continue
        text = tokens.source(first, last)
        opening = code.function_of(name)
        body = tokens.source(opening, tokens.partners.get(opening, last))
        axes = dict.fromkeys(re.findall(r"blockIdx\.[yz]", body))
        found = re.match(r"(?:size_t\()?(\w+)\)? \* (\w+)", text)
        if found is None or "blockIdx" in text:
            continue
        end = next(at for at in range(first, last + 1) if tokens.text(at) == "*") - 1
        for axis in axes:
            for size in code.sizes(first)[:_MOST_SIZES]:
                if size != found[2]:
                    new = f"(size_t({axis}) * {size} + {found[1]})"
                    yield code.replaced(first, end, new, "plane of the block missing")


def _pitches(code: KernelCode) -> Iterator[SourceChange]:
    """The leading dimension of a fragment made that of the array which it is read from."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) not in ("load_matrix_sync", "store_matrix_sync"):
            continue
        arguments = code.extents.arguments(place + 1)
        for pair in arguments[:_LEADING] if len(arguments) > _LEADING else ():
            for at in range(pair[0], pair[1] + 1):
                yield from _own_pitch(code, at, arguments[_LEADING])


def _own_pitch(code: KernelCode, place: int, pitch: Range) -> Iterator[SourceChange]:
    tokens = code.tokens
    item = code.names.at(place) if tokens.kind(place) == "name" else None
    if item is None or item.sort != "array" or code.in_index(place):
        return
    at, sizes = item.position + 1, []
    while tokens.text(at) == "[" and at in tokens.partners:
        if tokens.partners[at] > at + 1:
            sizes.append(tokens.source(at + 1, tokens.partners[at] - 1))
        at = tokens.partners[at] + 1
    if len(sizes) > 1 and sizes[-1] != tokens.source(*pitch):
        yield code.replaced(*pitch, sizes[-1], "leading dimension of its array")


def _padded(code: KernelCode) -> Iterator[SourceChange]:
    """BM * BK + BK * BN made BM * PA + BK * PB, where PA = BK + 8 and PB = BN + 8."""
    tokens = code.tokens
    padded = {bare: name for name, bare in _PADDED.findall(tokens.code) if name.isupper()}
    for first in range(len(tokens)) if padded else ():
        if tokens.text(first) not in ("=", "(", "["):
            continue
        last = code.extents.last_of(first, 0)
        pieces = []
        for place in range(first + 2, last + 1):
            name = padded.get(tokens.text(place))
            is_row = tokens.text(place - 1) == "*" and tokens.text(place + 1) != "*"
            if name is not None and is_row and name != tokens.text(first - 1):
                pieces.append(code.replaced(place, place, name, ""))
        if pieces:
            yield together(pieces, "rows without their padding")


def _cleared(code: KernelCode) -> Iterator[SourceChange]:
    """A loop that sets an array to a number, over several times as many."""
    tokens = code.tokens
    for place, end in _bounds(code):
        loop = code.loop_of(place)
        assert loop is not None
        first, last = code.body(tokens.partners[loop + 1])
        sets_all = tokens.text(last - 2) == "=" and tokens.kind(last - 1) == "number"
        if sets_all and tokens.text(first + 1) == "[" and not tokens.text(place).isdigit():
            sizes = [size for size in code.sizes(place) if size.isupper()][:2]
            for factor in (*_FACTORS, *sizes):
                if factor != tokens.text(place):
                    new = f"{factor} * {tokens.text(place)}"
                    yield code.replaced(place, end, new, "part of an array cleared")


def _waits(code: KernelCode) -> Iterator[SourceChange]:
    """`wait<2 * STAGES>()` made `wait<2 * STAGES - 1>()`: one group of copies less may be open."""
    tokens, waiting = code.tokens, waiting_functions(code)
    for opening, closing in code.extents.template_arguments:
        name = tokens.text(opening - 1)
        is_wait = _WAITS.fullmatch(name) is not None or name in waiting
        if not is_wait or tokens.text(opening - 2) == "void":
            continue
        if tokens.text(closing - 2) in ("-", "+"):
            yield code.replaced(closing - 2, closing - 1, "", "groups of copies by one")
        yield code.inserted(closing - 1, " - 1", "groups of copies by one")
        yield code.inserted(closing - 1, " + 1", "groups of copies by one")
    for first, last in code.statements:
        text = tokens.source(first, last)
        for place in range(first, last) if "asm" in text and "wait_group" in text else ():
            if tokens.text(place) == '"n"' and place + 1 in tokens.partners:
                end = tokens.partners[place + 1] - 1
                if not tokens.text(end).isdigit():
                    yield code.inserted(end, " - 1", "groups of copies by one")


def _ones(code: KernelCode) -> Iterator[SourceChange]:
    """`row + ROWS` made `row + 1` in a limit: the first one counts, not the last."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        item = code.names.at(place) if tokens.kind(place) == "name" else None
        is_size = item is not None and item.sort == "int" and item.name.isupper()
        around = tokens.enclosing[place]
        in_limit = around > 0 and tokens.text(around - 1) in ("min", "max")
        is_last = tokens.text(place - 1) == "+" and tokens.text(place + 1) in (")", ",")
        if is_size and in_limit and is_last:
            yield code.replaced(place, place, "1", "one for a size in a limit")
