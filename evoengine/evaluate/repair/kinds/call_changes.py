"""Calls that are missing or too many, arguments exchanged, brackets in the wrong place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from evoengine.evaluate.repair.expression_extents import PRECEDENCE, TYPE_NAME
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.name_changes import own_functions
from evoengine.evaluate.repair.source_change import SourceChange

_UNARY = ("sqrtf", "rsqrtf", "rintf", "fabsf", "expf", "logf", "1.0f / ")
_CALL_KINDS = {
    "sqrtf": "root",
    "rsqrtf": "root",
    "rintf": "rounding",
    "fabsf": "sign",
    "expf": "exponential",
    "logf": "exponential",
    "1.0f / ": "reciprocal",
}
_SHUFFLED = 3  # arguments of a shuffle without its width
_STATEMENT_WORDS = frozenset(("if", "for", "while", "switch", "sizeof", "asm"))


def call_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every call and every pair of brackets, changed."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        if tokens.text(position) != "(" or position not in tokens.partners:
            continue
        if not code.function_places[position]:
            continue
        before = tokens.text(position - 1)
        if before in _STATEMENT_WORDS:
            continue
        if extents.is_call(position):
            yield from _call(code, position)
        elif extents.is_cast(tokens.partners[position]):
            yield code.replaced(position, tokens.partners[position], "", "cast dropped")
        yield from _moved_bracket(code, position)
    yield from _moved_brackets_of_sums(code)
    yield from _factors_of_one_term(code)
    yield from _magnitudes(code)
    yield from _braces(code)
    yield from _wrapped(code)


def _call(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    tokens = code.tokens
    closing = tokens.partners[opening]
    arguments = code.extents.arguments(opening)
    begin = opening - 1
    if tokens.text(begin) == ">":
        while begin > 0 and tokens.text(begin) != "<":
            begin -= 1
        begin -= 1
    for first, last in arguments[:3]:
        name = tokens.text(begin)
        kind = "conversion dropped" if "2" in name or TYPE_NAME.fullmatch(name) else "call dropped"
        yield code.replaced(begin, closing, f"({tokens.source(first, last)})", kind)
    innermost = _innermost(code, arguments)
    if innermost is not None:
        yield code.replaced(begin, closing, f"({innermost})", "conversions with bits dropped")
    inner = _inner_argument(code, arguments)
    if inner is not None:
        text = tokens.source(*inner)
        yield code.replaced(begin, closing, f"({text})", "two conversions dropped")
    yield from neighbours_exchanged(code, arguments)
    if len(arguments) == _SHUFFLED + 1 and tokens.text(begin).startswith("__shfl"):
        last = arguments[_SHUFFLED - 1][1]
        yield code.replaced(last + 1, closing, ")", "width of a shuffle too many")


def _inner_argument(code: KernelCode, arguments: list[tuple[int, int]]) -> tuple[int, int] | None:
    """The argument of a call that is the only argument of another: x of f(g(x))."""
    if len(arguments) != 1:
        return None
    first, last = arguments[0]
    opening = first + 1
    if code.tokens.text(opening) != "(" or code.tokens.partners.get(opening) != last:
        return None
    inside = code.extents.arguments(opening)
    return inside[0] if len(inside) == 1 else None


def _innermost(code: KernelCode, arguments: list[tuple[int, int]]) -> str | None:
    """The x of f(g(x) & mask), where bits are taken from a value that is converted there and back;
    None where the only argument is no such operation.
    """
    tokens = code.tokens
    if len(arguments) != 1:
        return None
    first, last = arguments[0]
    opening = first + 1
    closing = tokens.partners.get(opening, last)
    if tokens.text(opening) != "(" or tokens.text(closing + 1) not in ("&", "|", ">>", "<<"):
        return None
    inside = code.extents.arguments(opening)
    return tokens.source(*inside[0]) if len(inside) == 1 else None


def neighbours_exchanged(
    code: KernelCode, arguments: Sequence[tuple[int, int]], kind: str = ""
) -> Iterator[SourceChange]:
    """Each two neighbours exchanged, of a kind of arguments where none is given."""
    tokens = code.tokens
    for (first, last), (begin, end) in pairwise(arguments):
        one, other = tokens.source(first, last), tokens.source(begin, end)
        if one != other:
            are_sizes = not kind and {one, other} <= set(code.sizes(first))
            own = kind or f"arguments exchanged{', sizes' if are_sizes else ''}"
            yield code.replaced(first, end, f"{other}, {one}", own)


def _braces(code: KernelCode) -> Iterator[SourceChange]:
    """Neighbours exchanged in a list of values, and in the operands of asm."""
    tokens = code.tokens
    for position in range(len(tokens)):
        text = tokens.text(position)
        is_list = text == "{" and tokens.text(position - 1) in ("=", "]", "(", ",")
        is_asm = text == "(" and "asm" in (tokens.text(position - 1), tokens.text(position - 2))
        if is_list or is_asm:
            yield from neighbours_exchanged(code, code.extents.arguments(position))


def _moved_bracket(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """f(x) + y made f(x + y), f(x + y) made f(x) + y."""
    tokens, extents = code.tokens, code.extents
    closing = tokens.partners[opening]
    following = closing + 1
    if tokens.text(following) in PRECEDENCE and extents.is_binary(following):
        last = extents.operand_behind(following)[1]
        inside = tokens.source(opening + 1, closing - 1) if closing > opening + 1 else ""
        more = tokens.source(following, last)
        yield code.replaced(opening, last, f"({inside} {more})", "bracket moved")
    if tokens.text(following) == "*" and extents.is_binary(following):
        factor = tokens.source(*extents.operand_behind(following))
        for place in _signs_inside(code, opening):
            one, more = tokens.source(opening + 1, place - 1), tokens.source(place, closing - 1)
            last = extents.operand_behind(following)[1]
            new = f"(({one}) * {factor} {more})"
            yield code.replaced(opening, last, new, "factor of too many terms")
    is_call = extents.is_call(opening)
    is_one = not is_call or len(extents.arguments(opening)) == 1
    for place in range(opening + 1, closing if is_one else opening):
        if tokens.enclosing[place] == opening and extents.is_binary(place):
            left, rest = tokens.source(opening + 1, place - 1), tokens.source(place, closing - 1)
            yield code.replaced(opening, closing, f"({left}) {rest}", "bracket moved")
    if not is_call:
        inside = tokens.source(opening + 1, closing - 1) if closing > opening + 1 else ""
        if not _is_share(code, closing, inside):
            yield code.replaced(opening, closing, inside, "brackets dropped")


def _is_share(code: KernelCode, closing: int, inside: str) -> bool:
    """Whether brackets hold a difference of two names that is divided by a whole number: the share
    of a range. `end - begin / PARTS` is never meant.
    """
    tokens, place = code.tokens, closing + 2
    is_divided = tokens.text(closing + 1) in ("/", "%") and tokens.kind(place) in ("name", "number")
    by = code.names.at(place) if tokens.kind(place) == "name" else None
    is_whole = tokens.text(place).isdigit() if by is None else by.sort == "int"
    return is_divided and is_whole and re.fullmatch(r"\w+ - \w+", inside) is not None


def _moved_brackets_of_sums(code: KernelCode) -> Iterator[SourceChange]:
    """a + b * c made (a + b) * c, and a * b + c made a * (b + c)."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        if not extents.is_binary(position) or not code.function_places[position]:
            continue
        precedence = PRECEDENCE[tokens.text(position)]
        if precedence not in (8, 9):
            continue
        first, _ = extents.operand_before(position)
        right = extents.operand_behind(position)
        if first > position - 1 or right[0] > right[1]:
            continue
        left = tokens.source(first, position - 1)
        for place in range(right[0], right[1] + 1):
            inner = extents.is_binary(place) and PRECEDENCE[tokens.text(place)] > precedence
            if inner and tokens.enclosing[place] == tokens.enclosing[position]:
                near, far = tokens.source(right[0], place - 1), tokens.source(place, right[1])
                sign = tokens.text(position)
                new = f"({left} {sign} {near}) {far}"
                yield code.replaced(first, right[1], new, "bracket moved")
        for place in range(first, position):
            inner = extents.is_binary(place) and PRECEDENCE[tokens.text(place)] > precedence
            if inner and tokens.enclosing[place] == tokens.enclosing[position]:
                new = f"({tokens.source(place + 1, right[1])})"
                yield code.replaced(place + 1, right[1], new, "bracket moved")


def _factors_of_one_term(code: KernelCode) -> Iterator[SourceChange]:
    """f * (a + b) made a + f * b, or f * a + b."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        opening = position + 1
        if tokens.text(position) != "*" or tokens.text(opening) != "(":
            continue
        if not code.function_places[position] or not extents.is_binary(position):
            continue
        first, closing = extents.operand_before(position)[0], tokens.partners.get(opening)
        if closing is None or first > position - 1:
            continue
        factor = tokens.source(first, position - 1)
        for place in _signs_inside(code, opening):
            one, sign = tokens.source(opening + 1, place - 1), tokens.text(place)
            other = tokens.source(place + 1, closing - 1)
            for new in (f"{one} {sign} {factor} * {other}", f"{factor} * {one} {sign} {other}"):
                yield code.replaced(first, closing, f"({new})", "factor of too many terms")


def _signs_inside(code: KernelCode, opening: int) -> Iterator[int]:
    """The signs between the terms of a sum in brackets."""
    tokens = code.tokens
    for place in range(opening + 1, tokens.partners[opening]):
        is_sign = tokens.text(place) in ("+", "-") and code.extents.is_binary(place)
        if is_sign and tokens.enclosing[place] == opening:
            yield place


def _magnitudes(code: KernelCode) -> Iterator[SourceChange]:
    """The largest of several values made the largest magnitude: fabsf of each."""
    tokens = code.tokens
    for position in range(len(tokens)):
        is_maximum = tokens.text(position) == "fmaxf" and code.function_places[position]
        around = tokens.enclosing[position]
        is_inner = around > 0 and tokens.text(around - 1) == "fmaxf"
        if not is_maximum or is_inner or position + 1 not in tokens.partners:
            continue
        target = tokens.text(position - 2) if tokens.text(position - 1) == "=" else ""
        leaves = [
            pair  # what is the largest so far is a magnitude already
            for pair in _leaves(code, position)
            if pair[0] <= pair[1] and tokens.source(*pair) != target
        ]
        pieces = [
            code.replaced(*pair, f"fabsf({tokens.source(*pair)})", "")
            for pair in leaves
            if tokens.text(pair[0]) != "fabsf"
        ]
        if len(pieces) > 1:
            yield together(pieces, "call missing, magnitudes")


def _leaves(code: KernelCode, maximum: int) -> Iterator[tuple[int, int]]:
    """The arguments of a maximum, and of those among them that are one."""
    for first, last in code.extents.arguments(maximum + 1):
        is_maximum = code.tokens.text(first) == "fmaxf"
        if is_maximum and code.tokens.partners.get(first + 1) == last:
            yield from _leaves(code, first)
        else:
            yield first, last


def _wrapped(code: KernelCode) -> Iterator[SourceChange]:
    """A value put into a function of one argument, or limited by a variable."""
    functions = [*_UNARY, *own_functions(code)]
    tokens = code.tokens
    spots = set(code.values)
    for opening, closing in tokens.partners.items():  # (signed char)(x)
        is_cast = code.extents.is_cast(opening - 1) if tokens.text(opening - 1) == ")" else False
        if tokens.text(opening) == "(" and is_cast and code.function_places[opening]:
            spots.add((opening + 1, closing - 1))
    for position in range(len(tokens)):
        if code.extents.is_binary(position) and code.function_places[position]:
            for first, last in (
                code.extents.operand_before(position),
                code.extents.operand_behind(position),
            ):
                if first <= last:
                    spots.add((first, last))
    for first, last in sorted(spots):
        if tokens.text(first) == "&":  # an address
            continue
        sorts = {
            item.sort
            for place in range(first, last + 1)
            if tokens.kind(place) == "name" and (item := code.names.at(place)) is not None
        }
        text = tokens.source(first, last)
        if sorts & {"float", "array"}:
            for name in functions:
                kind = f"call missing, {_CALL_KINDS.get(name, 'of the kernel')}"
                yield code.replaced(first, last, f"{name}({text})", kind)
            for item in code.visible(last, "float"):
                for limit in ("fmaxf", "fminf"):
                    new = f"{limit}({text}, {item.name})"
                    yield code.replaced(first, last, new, "limit missing")
