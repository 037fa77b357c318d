"""Changes of operators: comparisons, arithmetic, assignments, negations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_COMPARISONS = {
    "<": ("<=", ">", ">=", "=="),
    "<=": ("<", ">=", ">", "=="),
    ">": (">=", "<", "<=", "=="),
    ">=": (">", "<=", "<", "=="),
    "==": ("!=", "<=", ">=", "<"),
    "!=": ("==", "<", ">"),
}
_ARITHMETIC = {
    "+": ("-", "*"),
    "-": ("+", "*"),
    "*": ("/", "+", "%"),
    "/": ("*", "%"),
    "%": ("/", "*"),
    "&&": ("||",),
    "||": ("&&",),
    "&": ("|", "^", "%"),
    "|": ("&", "^", "+"),
    "^": ("&", "|", "+"),
    "<<": (">>", "*"),
    ">>": ("<<", "/"),
}
_KINDS_OF_TWO = {frozenset("+-"): "sign", frozenset(("&&", "||")): "operator of two conditions"}
_ASSIGNED = {
    "=": ("+=", "*=", "|="),
    "+=": ("=", "-="),
    "-=": ("+=", "="),
    "*=": ("/=", "=", "+="),
    "/=": ("*=", "="),
}
# what needs no brackets as a summand
_TERM = r"[\w.:]+(?:\([^()]*\)|\[[^\[\]]*\])?"
_SUM = re.compile(rf"{_TERM}(?: [-+*] {_TERM})*")
_BRACKETED = re.compile(r"\([^()]*\)")
_BY_ONE, _INVERTED = "comparison by one", "comparison inverted"
_KINDS_OF_COMPARISONS = {
    **dict.fromkeys((("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")), _BY_ONE),
    **dict.fromkeys((("==", "!="), ("!=", "==")), _INVERTED),
}
_MOST_SIZES = 8  # in place of a tile's length, the last declared first


def operator_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every operator, changed."""
    tokens = code.tokens
    for position, token in enumerate(tokens.tokens):
        if token.kind != "sign":
            continue
        text = token.text
        if text in _COMPARISONS and code.extents.is_binary(position):
            for other in _COMPARISONS[text]:
                kind = _KINDS_OF_COMPARISONS.get((text, other), "comparison")
                yield code.replaced(position, position, other, kind)
        elif text in _ARITHMETIC and code.extents.is_binary(position):
            for other in _ARITHMETIC[text]:
                kind = _KINDS_OF_TWO.get(frozenset((text, other)), "operator")
                yield code.replaced(position, position, other, kind)
        elif text in ASSIGNMENTS and text in _ASSIGNED and _is_assignment(code, position):
            for other in _ASSIGNED[text]:
                yield code.replaced(position, position, other, "assignment")
        elif text in ("-", "!") and not code.extents.ends_operand(position - 1):
            yield code.replaced(position, position, "", "negation dropped")
    yield from _whole_tiles(code)
    yield from _by_one(code)
    yield from _all_of_statement(code)
    yield from _negated(code)


def _is_assignment(code: KernelCode, position: int) -> bool:
    """Whether the variable exists before: no declaration."""
    if not code.function_places[position]:
        return False
    if code.tokens.text(position) != "=":
        return True
    tokens, place = code.tokens, position - 1
    while place > 0 and (tokens.text(place) == "]" or tokens.text(place - 1) in (".", "->")):
        is_member = tokens.kind(place) == "name"
        place = place - 2 if is_member else tokens.partners.get(place, place) - 1
    return tokens.kind(place) == "name" and code.names.at(place) is not None


def _whole_tiles(code: KernelCode) -> Iterator[SourceChange]:
    """a + b <= c made a < c, the other way round, and a / b rounded up."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        if not extents.is_binary(position) or not code.function_places[position]:
            continue
        text = tokens.text(position)
        left, right = extents.operand_before(position), extents.operand_behind(position)
        if text == "<" and left[0] == left[1] and not code.loop_of(position):
            for size in code.sizes(position)[:_MOST_SIZES]:
                if size != tokens.source(*right):
                    new = f"{tokens.source(*left)} + {size} <= {tokens.source(*right)}"
                    yield code.replaced(left[0], right[1], new, "whole tiles only")
        if text in ("<=", "<"):
            for place in range(left[0], left[1] + 1):
                inner = tokens.text(place) == "+" and extents.is_binary(place)
                if inner and tokens.enclosing[place] == tokens.enclosing[position]:
                    new = f"{tokens.source(left[0], place - 1)} < {tokens.source(*right)}"
                    yield code.replaced(left[0], right[1], new, "bound of whole tiles")
                    variable = code.loop_variable(position)
                    if variable:
                        new = f"{variable} < {tokens.source(*right)}"
                        yield code.replaced(left[0], right[1], new, "bound of whole tiles")
        elif text == "/" and left[0] <= left[1] and right[0] <= right[1]:
            new = _rounded_up(tokens.source(*left), tokens.source(*right))
            yield code.replaced(left[0], right[1], new, "quotient rounded down")


def _rounded_up(above: str, below: str) -> str:
    """`(a - b + N - 1) / N` for `(a - b) / N`."""
    bare = above[1:-1] if _BRACKETED.fullmatch(above) else above
    summed = bare if _SUM.fullmatch(bare) else f"({bare})"
    if below.isdigit():
        return f"({summed} + {int(below) - 1}) / {below}"
    is_whole = _BRACKETED.fullmatch(below) or _SUM.fullmatch(below)
    return f"({summed} + {below if is_whole else f'({below})'} - 1) / {below}"


def _by_one(code: KernelCode) -> Iterator[SourceChange]:
    """a == b - 1 made a < b, and the like: another comparison, without one more or less."""
    tokens = code.tokens
    for position, token in enumerate(tokens.tokens):
        if token.text not in _COMPARISONS or not code.extents.is_binary(position):
            continue
        first, last = code.extents.operand_behind(position)
        if tokens.text(last) == "1" and tokens.text(last - 1) in ("-", "+") and first < last - 1:
            for other in _COMPARISONS[token.text]:
                new = f"{other} {tokens.source(first, last - 2)}"
                yield code.replaced(position, last, new, "comparison without one")


def _all_of_statement(code: KernelCode) -> Iterator[SourceChange]:
    """An assignment that a statement has several times, changed in all of them."""
    tokens = code.tokens
    for first, last in code.statements:
        for sign, others in _ASSIGNED.items():
            places = [item for item in range(first, last + 1) if tokens.text(item) == sign]
            if len(places) < 2 or sign == "=":
                continue
            for other in others:
                new = tokens.rewritten(first, last, [(place, place, other) for place in places])
                yield code.replaced(first, last, new, "assignments")


def _negated(code: KernelCode) -> Iterator[SourceChange]:
    for first, last in code.conditions:
        if code.loop_of(first) is None:
            is_flag = last - first <= 1 and code.tokens.kind(last) == "name"
            kind = "flag negated" if is_flag else "condition negated"
            yield code.replaced(first, last, f"!({code.tokens.source(first, last)})", kind)
    for first, last in code.values:
        text = code.tokens.source(first, last)
        if _is_float(code, first, last):
            yield code.replaced(first, last, f"-({text})", "value negated")
    for position in range(len(code.tokens)):
        if code.tokens.text(position) in ("*", "/", "+") and code.extents.is_binary(position):
            first, last = code.extents.operand_before(position)
            if first <= last and code.function_places[first] and _is_float(code, first, last):
                text = code.tokens.source(first, last)
                yield code.replaced(first, last, f"-({text})", "operand negated")


def _is_float(code: KernelCode, first: int, last: int) -> bool:
    """Whether a value may be a floating-point number, as far as its names tell."""
    if code.tokens.text(first) == "&":  # an address
        return False
    sorts = set()
    for place in range(first, last + 1):
        if code.tokens.text(place) in ("float", "double") and code.tokens.text(place + 1) == "(":
            sorts.add("float")  # made of a whole number there
        found = code.names.at(place) if code.tokens.kind(place) == "name" else None
        if found is not None:
            sorts.add(found.sort)
    return bool(sorts & {"float", "array"}) and not code.in_index(first)
