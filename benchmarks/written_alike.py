"""Device code in a form that is equal where only what changes nothing is different: brackets, the
order of the terms of a sum or of the factors of a product, `a += b` for `a = a + b`, conversions to
size_t, ways to write minus infinity and the root, empty statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from evoengine.evaluate.repair.source_tokens import OPENING, TokenList

_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ALL = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}
_COMMUTES = frozenset(("||", "&&", "|", "^", "&", "=="))
_WHOLE = len(_LEVELS)  # binds more tightly than every operator
_ASSIGNED = {"+=": "+", "-=": "-", "*=": "*"}
_CLOSING = frozenset(OPENING.values())
_ENDS = frozenset(
    (";", ",", "?", ":", "=", "return", "/=", "|=", "&=", "^=", *_ASSIGNED, *_CLOSING)
)
_LEAST = "MINUS_INFINITY"
_LEAST_WORDS = re.compile(
    r"-\s*INFINITY|-\s*__int_as_float\(0x7f800000\)|__int_as_float\(0xff800000\)|"
    r"\bminus_infinity\(\)"
)
_SPACE = re.compile(r"(?<!\w) | (?!\w)")
_EMPTY = re.compile(r"([;{}]);+")  # statements
_CONVERSION = re.compile(r"\(size_t\)|\bsize_t(?=\()")


@dataclass(frozen=True, eq=False)
class _Bracket:
    """What stands in brackets."""

    opening: str
    inside: list[str | _Bracket]


Items = list[str | _Bracket]  # tokens and brackets


def form(code: str) -> str:
    """The form of a stretch of device code."""
    plain = _CONVERSION.sub("", _LEAST_WORDS.sub(_LEAST, code))
    items, _ = _nested([token.text for token in TokenList(plain).tokens], 0)
    said = _SPACE.sub("", _sequence(items))
    return _EMPTY.sub(r"\1", said)


def _nested(texts: list[str], place: int, depth: int = 0) -> tuple[Items, int]:
    """The tokens from `place` to the end of the bracket they stand in, and the place behind it. A
    stretch may begin and end within brackets: those that end without a begin are kept as tokens.
    """
    items: Items = []
    while place < len(texts):
        text = texts[place]
        place += 1
        if text in OPENING:
            inside, place = _nested(texts, place, depth + 1)
            items.append(_Bracket(text, inside))
        elif text in _CLOSING and depth:
            break
        else:
            items.append(text)
    return items, place


def _sequence(items: Items) -> str:
    """Expressions with what stands between them."""
    found: list[str] = []
    begin, place = 0, -1
    while place < len(items):
        place += 1
        item = items[place] if place < len(items) else ""
        is_block = isinstance(item, _Bracket) and item.opening == "{"
        if place < len(items) and not is_block and item not in _ENDS:
            continue
        found.append(_expression(items[begin:place])[1])
        if isinstance(item, _Bracket):
            found.append("{" + _sequence(item.inside) + "}")
        elif item in _ASSIGNED:
            found.append("=")
            target = items[_target(items, begin) : place]
            end = next((at for at in range(place, len(items)) if items[at] in (";", ",")), None)
            value = _Bracket("(", items[place + 1 : end])
            rest = items[end:] if end is not None else []
            items = [*items[: place + 1], *target, _ASSIGNED[str(item)], value, *rest]
        else:
            found.append(str(item))
        begin = place + 1
    return "".join(found)


def _target(items: Items, begin: int) -> int:
    """Where what is assigned begins: behind the condition of an `if` or the head of a loop."""
    for place in range(begin, len(items) - 1):
        if items[place] in ("if", "for", "while"):
            return place + 2
    return begin


def _expression(items: Items) -> tuple[int, str]:
    """How tightly the last operator to be applied binds, and the form of an expression."""
    for level, signs in enumerate(_LEVELS):
        places = [at for at in range(1, len(items)) if items[at] in signs and _ends(items[at - 1])]
        if places:
            return level, _joined(items, level, places)
    return _operand(items)


def _ends(item: str | _Bracket) -> bool:
    """Whether an operand may end with it."""
    return isinstance(item, _Bracket) or (item not in _ALL and item not in ("return", "else", "!"))


def _joined(items: Items, level: int, places: list[int]) -> str:
    begins = [0, *(place + 1 for place in places)]
    first = {_ALL["+"]: "+", _ALL["*"]: "*"}.get(level, str(items[places[0]]))
    signs = [first, *(str(items[place]) for place in places)]
    parts = list(zip(signs, begins, [*places, len(items)], strict=True))
    terms = [term for sign, begin, end in parts for term in _term(items[begin:end], level, sign)]
    if level == _ALL["*"]:  # a division of whole numbers is not the inverse of a product
        count = next((at for at, (sign, _) in enumerate(terms) if sign != "*"), len(terms))
        terms = sorted(terms[:count]) + terms[count:]
    elif level == _ALL["+"] or signs[-1] in _COMMUTES:
        terms.sort()
    return "".join(sign + text for sign, text in terms)


def _term(items: Items, level: int, sign: str) -> list[tuple[str, str]]:
    """The operand behind a sign; of a sum in a sum, and so on, its operands."""
    inner, text = _expression(items)
    if inner == level and sign in ("+", "*", "&&", "||") and len(items) == 1:
        bare = items[0]
        while isinstance(bare, _Bracket) and len(bare.inside) == 1:
            bare = bare.inside[0]
        if isinstance(bare, _Bracket):
            inside = bare.inside
            places = [at for at in range(1, len(inside)) if inside[at] in _LEVELS[level]]
            places = [at for at in places if _ends(inside[at - 1])]
            begins = [0, *(place + 1 for place in places)]
            signs = [sign, *(str(inside[at]) for at in places)]
            ends = [*places, len(inside)]
            if sign != "*" or set(signs) == {"*"}:
                return [
                    term
                    for own, begin, end in zip(signs, begins, ends, strict=True)
                    for term in _term(inside[begin:end], level, own)
                ]
    return [(sign, f"({text})" if inner <= level else text)]


def _operand(items: Items) -> tuple[int, str]:
    """An operand without operators outside of brackets."""
    first = items[0] if items else ""
    if len(items) == 1 and isinstance(first, _Bracket) and first.opening == "(":
        inside = first.inside
        if not any(item in _ENDS for item in inside):
            return _expression(inside)
    if first == "rsqrtf" and len(items) == 2 and isinstance(items[1], _Bracket):
        return _ALL["/"], f"*1.0f/sqrtf({_sequence(items[1].inside)})"
    found = []
    for item in items:
        if isinstance(item, str):
            found.append(f"{item} " if item.isidentifier() else item)
        else:
            found.append(item.opening + _sequence(item.inside) + OPENING[item.opening])
    return _WHOLE, "".join(found)
