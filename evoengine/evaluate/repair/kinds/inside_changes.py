"""What belongs inside of a call or of brackets, or to another argument."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.name_changes import own_functions
from evoengine.evaluate.repair.kinds.term_changes import sorts_between
from evoengine.evaluate.repair.source_change import SourceChange

_LIMITS = frozenset(("fmaxf", "fminf", "max", "min"))
_ROOTS = frozenset(("sqrtf", "rsqrtf", "sqrt"))
_MOST_ARGUMENTS = 8
_LONGEST = 12  # tokens of a term
_BYTES_OF_COPIES = ("4", "8", "16")
_LEFT = re.compile(r"(\w+) >= (\d)")
_WITHIN = re.compile(r"([\w.+* ]+) \+ (\d) <= ([\w.]+)")

Range = tuple[int, int]


def inside_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Terms moved into a limit or out of it, quotients in brackets, steps of arguments."""
    tokens = code.tokens
    yield from _calls(code)
    yield from _rests_of_vectors(code)
    for place in range(1, len(tokens)):
        if tokens.text(place) != "(" or place not in tokens.partners:
            continue
        if not code.function_places[place]:
            continue
        if tokens.text(place - 1) in _LIMITS:
            yield from _limits(code, place)
        elif tokens.text(place - 1) in _ROOTS:
            yield from _roots(code, place)
        elif tokens.kind(place - 1) == "name":
            yield from _steps(code, place)
        else:
            yield from _quotients(code, place)
            yield from _shared_quotients(code, place)


def _limits(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`fmaxf(x, 0.0f) + bias` made `fmaxf(x + bias, 0.0f)`, and the other way round."""
    tokens, kind = code.tokens, "term behind a limit"
    closing = tokens.partners[opening]
    arguments = code.extents.arguments(opening)
    if len(arguments) != 2:
        return
    (first, last), (begin, end) = arguments
    one, other = tokens.source(first, last), tokens.source(begin, end)
    name = tokens.text(opening - 1)
    if name == "min":
        yield from _bytes_left(code, *arguments)
        yield from _bytes_left(code, *arguments[::-1])
    if tokens.text(closing + 1) in ("+", "-", "*"):
        stop = code.extents.operand_behind(closing + 1)[1]
        if stop - closing <= _LONGEST:
            more = tokens.source(closing + 1, stop)
            inside = f"({one})" if more[0] == "*" and last > first else one
            yield code.replaced(opening - 1, stop, f"{name}({inside} {more}, {other})", kind)
    signs = [
        at
        for at in range(first, last)
        if tokens.text(at) in ("+", "-", "*") and tokens.enclosing[at] == opening
    ]
    if len(signs) == 1 and code.extents.is_binary(signs[0]):
        left, right = tokens.source(first, signs[0] - 1), tokens.source(signs[0], last)
        new = f"({name}({left}, {other}) {right})"
        yield code.replaced(opening - 1, closing, new, kind)


def _bytes_left(code: KernelCode, most: Range, left: Range) -> Iterator[SourceChange]:
    """`min(16, n - at)` made `min(16, 4 * (n - at))`: a copy counts in bytes."""
    text = code.tokens.source(*left)
    if code.tokens.source(*most) in _BYTES_OF_COPIES and " - " in text and "*" not in text:
        for size in ("4", "2"):
            yield code.replaced(*left, f"{size} * ({text})", "bytes of what is left")


def _rests_of_vectors(code: KernelCode) -> Iterator[SourceChange]:
    """`left >= 4 ? 16 : 0` made `left >= 4 ? 16 : left > 0 ? 4 * left : 0`, and the same of
    `at + 4 <= n ? 16 : 0`: of a vector at the end a part is copied.
    """
    tokens = code.tokens
    for first, last in code.conditions:
        if tokens.source(last + 1, last + 3) != "? 16 :" or tokens.text(last + 4) != "0":
            continue
        text = tokens.source(first, last)
        if found := _LEFT.fullmatch(text):
            left, count = found[1], int(found[2])
        elif found := _WITHIN.fullmatch(text):
            left, count = f"({found[3]} - ({found[1]}))", int(found[2])
        else:
            continue
        if count in (4, 8):
            new = f"({left} > 0 ? {16 // count} * static_cast<int>({left}) : 0)"
            yield code.replaced(last + 4, last + 4, new, "rest of a vector not copied")


def _shared_quotients(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`(sum + eps) / C` made `(sum / C + eps)`."""
    tokens, closing = code.tokens, code.tokens.partners[opening]
    places = range(opening + 1, closing)
    terms = [at for at in places if tokens.text(at) == "+" and tokens.enclosing[at] == opening]
    is_float = "float" in sorts_between(code, opening + 1, closing - 1)
    if tokens.text(closing + 1) != "/" or len(terms) != 1 or not is_float:
        return
    begin, end = code.extents.operand_behind(closing + 1)
    one = tokens.source(opening + 1, terms[0] - 1)
    more = tokens.source(terms[0] + 1, closing - 1)
    new = f"({one} / {tokens.source(begin, end)} + {more})"
    yield code.replaced(opening, end, new, "term inside of a quotient")


def _roots(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`x / sqrtf(v + eps)` made `x / (sqrtf(v) + eps)`, and the other way round."""
    tokens, kind = code.tokens, "term inside of a root"
    closing = tokens.partners[opening]
    name, signs = tokens.text(opening - 1), ("/", "*")
    is_factor = tokens.text(opening - 2) in signs or tokens.text(closing + 1) in signs
    for place in range(opening + 1, closing):
        if tokens.text(place) == "+" and tokens.enclosing[place] == opening and is_factor:
            one, more = tokens.source(opening + 1, place - 1), tokens.source(place, closing - 1)
            yield code.replaced(opening - 1, closing, f"({name}({one}) {more})", kind)
    around = tokens.enclosing[opening]
    is_sum = tokens.text(opening - 2) == "(" and tokens.text(closing + 1) == "+"
    if is_sum and tokens.text(around) == "(" and tokens.kind(around - 1) != "name":
        end = tokens.partners[around]
        inside = tokens.source(opening + 1, end - 1).replace(")", "", 1)
        if "(" not in inside:
            yield code.replaced(around, end, f"{name}({inside})", kind)


def _calls(code: KernelCode) -> Iterator[SourceChange]:
    """`pair(gelu(a) + x, gelu(b) + y)` made `pair(gelu(a + x), gelu(b + y))`."""
    tokens = code.tokens
    own = set(own_functions(code))
    for first, last in code.statements if own else ():
        pieces: dict[str, list[SourceChange]] = {}
        for place in range(first, last):
            closing = tokens.partners.get(place + 1, -1)
            if tokens.text(place) not in own or closing < 0 or tokens.text(closing + 1) != "+":
                continue
            stop = code.extents.operand_behind(closing + 1)[1]
            if stop - closing <= _LONGEST and len(code.extents.arguments(place + 1)) == 1:
                new = f" {tokens.source(closing + 1, stop)})"
                piece = code.replaced(closing, stop, new, "")
                pieces.setdefault(tokens.text(place), []).append(piece)
        for found in pieces.values():
            if len(found) > 1:
                yield together(found, "terms behind a function")


def _quotients(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`(M / TILE) * n` made `(M + TILE - 1) / TILE * n`."""
    tokens = code.tokens
    closing = tokens.partners[opening]
    is_quotient = closing == opening + 4 and tokens.text(opening + 2) == "/"
    if is_quotient and tokens.text(closing + 1) == "*":
        above, below = tokens.text(opening + 1), tokens.text(opening + 3)
        new = f"({above} + {below} - 1) / {below}"
        yield code.replaced(opening, closing, new, "quotient in brackets rounded down")


def _steps(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`pair_at(b, n + 8, k)` made `pair_at(b, n, k + 8)`: the step is along another axis."""
    tokens = code.tokens
    arguments = code.extents.arguments(opening)
    if not 1 < len(arguments) <= _MOST_ARGUMENTS:
        return
    for own in arguments:
        step = tokens.text(own[1])
        if tokens.text(own[1] - 1) != "+" or not step.isdigit() or own[1] - 2 < own[0]:
            continue
        for other in arguments:
            item = code.names.at(other[0]) if tokens.kind(other[0]) == "name" else None
            is_place = item is not None and item.sort == "int" and not item.is_parameter
            if other != own and is_place and other[1] - other[0] <= _LONGEST:
                pair = [
                    code.replaced(own[1] - 1, own[1], "", ""),
                    code.inserted(other[1], f" + {step}", ""),
                ]
                yield together(pair, "step along another argument")
