"""A change as one of several alternatives at a place of a kernel, chosen by a number while it runs.

So one compilation serves many changes: a value becomes `number == 7 ? changed : value`, a statement
`if (number == 7) changed else statement`. What is decided while compiling (sizes of arrays,
arguments of templates, types, constants) cannot be switched; but a wait for copies can, as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_CONSTANT_WORDS = frozenset(
    ("constexpr", "static_assert", "using", "case", "enum", "__launch_bounds__", "template")
)
_CONSTANT_OPERANDS = frozenset(("__align__", "__launch_bounds__", "alignas", "sizeof", '"n"'))
# Changes of a value's type: an alternative is converted to the type of what it replaces.
_OTHER_TYPES = frozenset(("whole numbers divided", "type of a sum too narrow"))
_WAITS = re.compile(r"wait|\bbar\b|barrier")
_WAIT = re.compile(r"\w+<[^<>;]*>\(\);")
_NUMBERS = re.compile(
    r"(?:(?:const|static|extern|volatile|__shared__|unsigned|(?:alignas|__align__)\([^)]*\)) )*"
    r"(?:float|double|half|__half|bool|char|short|int|long|unsigned|size_t|u?int\d*_t)\b"
)
_QUALIFIERS = frozenset(("const", "static", "constexpr", "volatile", "register", "extern"))
_NO_TYPES = frozenset(("return", "else", "goto", "case", "throw", "delete", "do", "new", "asm"))
_DELIMITERS = frozenset((",", ";", "{", "}", "?", ":", "return", "else", "do")) | ASSIGNMENTS


class Form(StrEnum):
    """How an alternative stands in the source."""

    value = "value"
    place = "place"  # a value that is assigned to, or whose address counts: it is not converted
    statement = "statement"
    insertion = "insertion"  # a statement more


@dataclass(frozen=True)
class SwitchedChange:
    """`new` in place of the source from `start` to `end`, which is a whole value or statement."""

    change: SourceChange
    start: int
    end: int
    new: str
    form: Form
    others: tuple[SwitchedChange, ...] = ()  # chosen along with it, at other places

    @property
    def pieces(self) -> tuple[SwitchedChange, ...]:
        """It and those that are chosen along with it."""
        return (self, *self.others)

    def crosses(self, other: SwitchedChange) -> bool:
        """Whether a piece of it and one of the other have only a part in common, so that one source
        cannot have both: neither lies in the other.
        """
        return any(
            one.start < two.start < one.end < two.end or two.start < one.start < two.end < one.end
            for one in self.pieces
            for two in other.pieces
        )


def that_fit(
    changes: Sequence[SwitchedChange],
) -> tuple[list[SwitchedChange], list[SwitchedChange]]:
    """Those of `changes` that can share a code, the first ones first, and the others."""
    fitting: list[SwitchedChange] = []
    others: list[SwitchedChange] = []
    for item in changes:
        (others if any(map(item.crosses, fitting)) else fitting).append(item)
    return fitting, others


def switched(code: KernelCode, change: SourceChange) -> SwitchedChange | None:
    """The change as an alternative, in each of its places; None where it cannot be one."""
    pieces = [_one_switched(code, piece) for piece in change.pieces]
    found = [replace(piece, change=change) for piece in pieces if piece is not None]
    if len(found) < len(pieces) or _overlap(found):
        return None
    return replace(found[0], others=tuple(found[1:]))


def _overlap(pieces: list[SwitchedChange]) -> bool:
    """Whether one of the pieces stands in another: only one of two alternatives can be chosen."""
    ordered = sorted(pieces, key=lambda item: item.start)
    return any(one.end > other.start for one, other in pairwise(ordered))


def _one_switched(code: KernelCode, change: SourceChange) -> SwitchedChange | None:
    if change.start < code.offset or change.kind in _OTHER_TYPES:
        return None
    if change.start == change.end and change.new.rstrip().endswith(";"):
        return _insertion(code, change)
    touched = _touched(code, change)
    if touched is None:
        return None
    first, last = touched
    if not code.function_places[first]:
        return None
    constants = [place for place in range(first, last + 1) if _is_constant(code, place)]
    if constants:
        by_statement = all(_is_of_a_wait(code, place) for place in constants)
        return _statement(code, change, first, last) if by_statement else None
    removed = code.tokens.source(first, last)
    if ";" in removed or ";" in change.new or _touches_assignment(code, change, first, last):
        return _statement(code, change, first, last)
    return _value(code, change, first, last)


def _touched(code: KernelCode, change: SourceChange) -> tuple[int, int] | None:
    """First and last token that the change replaces, or the one that it is inserted behind."""
    return code.token_places(change.start - code.offset, change.end - code.offset)


def _touches_assignment(code: KernelCode, change: SourceChange, first: int, last: int) -> bool:
    return any(
        code.tokens.text(place) in ASSIGNMENTS
        and code.tokens.enclosing[place] == code.tokens.enclosing[first]
        for place in range(first, last + 1)
    )


def _insertion(code: KernelCode, change: SourceChange) -> SwitchedChange | None:
    touched = _touched(code, change)
    if touched is None or not code.function_places[min(touched[0] + 1, len(code.tokens) - 1)]:
        return None
    if code.tokens.text(touched[0] + 1) == "else":  # which would be that of the number's condition
        return None
    return SwitchedChange(change, change.start, change.end, change.new, Form.insertion)


def _statement(
    code: KernelCode, change: SourceChange, first: int, last: int
) -> SwitchedChange | None:
    """The whole statements around the tokens `first` to `last`."""
    around = [pair for pair in code.statements if pair[0] <= last and first <= pair[1]]
    if not around:
        return None
    begin, end = around[0][0], around[-1][1]
    if len(around) > 1 and code.tokens.text(begin - 1) in (")", "else"):
        return None  # the first is all that an `if` or a loop without braces has; others are behind
    declares = any(
        item.position >= begin
        and item.position <= end
        and code.tokens.enclosing[item.position] == code.tokens.enclosing[begin]
        for item in code.names.all
    )
    if declares or any(_declares_own_type(code, pair[0]) for pair in around):
        return None
    return _spanning(code, change, begin, end, Form.statement)


def _declares_own_type(code: KernelCode, first: int) -> bool:
    """Whether a statement declares a variable of a type of the kernel's own, such as
    `const Slot& slot = ...`, which a block around it would hide.
    """
    tokens, place = code.tokens, first
    while tokens.text(place) in _QUALIFIERS:
        place += 1
    if tokens.kind(place) != "name" or tokens.text(place) in _NO_TYPES:
        return False
    place += 1
    while tokens.text(place) == "::" and tokens.kind(place + 1) == "name":
        place += 2
    if tokens.text(place) == "<" and code.extents.is_template_bracket(place):
        place = next(at for at in range(place, len(tokens)) if tokens.text(at) in (">", ">>")) + 1
    while tokens.text(place) in ("&", "*", "&&", "const"):
        place += 1
    return tokens.kind(place) == "name" and tokens.text(place + 1) in ("=", ";", "[", "{", "(", ",")


def _value(code: KernelCode, change: SourceChange, first: int, last: int) -> SwitchedChange | None:
    """The whole value around the tokens `first` to `last`."""
    tokens = code.tokens
    partners = [
        tokens.partners[place] for place in range(first, last + 1) if place in tokens.partners
    ]
    begin, end = min([first, *partners]), max([last, *partners])
    if _reaches_over_comma(code, first, last):  # arguments exchanged: the whole call
        opening = tokens.enclosing[first]
        if tokens.kind(opening - 1) != "name" or "asm" in (
            tokens.text(opening - 1),
            tokens.text(opening - 2),
        ):
            return None
        begin, end = opening - 1, tokens.partners[opening]
    while begin > 0 and not _ends_value(code, begin - 1, forward=False):
        begin = (
            tokens.partners[begin - 1] if tokens.text(begin - 1) in (")", "]", "}") else begin - 1
        )
    while end + 1 < len(tokens) and not _ends_value(code, end + 1, forward=True):
        end = tokens.partners[end + 1] if tokens.text(end + 1) in ("(", "[", "{") else end + 1
    if any(tokens.text(place) in ("{", "}", ";") for place in range(begin, end + 1)):
        return None
    if any(_is_declared(code, place) for place in range(begin, end + 1)):
        return None
    if _parts_choice(code, begin, end):
        return _statement(code, change, first, last)
    if tokens.text(begin) in ("const", "int", "float", "half", "auto", "if", "for", "while"):
        return None
    if _is_constant(code, begin):
        return None
    if _is_output(code, begin, end):
        return _statement(code, change, first, last)
    following = tokens.text(end + 1)
    assigned = following in ASSIGNMENTS or following in ("++", "--")
    assigned |= tokens.text(begin) == "&" or tokens.text(begin - 1) in ("++", "--", "&")
    own = code.names.at(begin) if begin == end else None
    is_place = assigned or (own is not None and own.sort not in ("int", "float"))
    is_place |= _is_referred_to(code, begin) or _is_object(code, begin, end)
    return _spanning(code, change, begin, end, Form.place if is_place else Form.value)


def _is_declared(code: KernelCode, place: int) -> bool:
    own = code.names.at(place) if code.tokens.kind(place) == "name" else None
    return own is not None and own.position == place


def _parts_choice(code: KernelCode, begin: int, end: int) -> bool:
    """Whether the tokens have the `:` of a choice, and not its `?`."""
    texts = [
        code.tokens.text(place)
        for place in range(begin, end + 1)
        if code.tokens.enclosing[place] == code.tokens.enclosing[begin]
    ]
    return texts.count(":") != texts.count("?")


def _is_object(code: KernelCode, begin: int, end: int) -> bool:
    """Whether a value is an element of what is no number, such as a fragment: a function may take
    it by reference.
    """
    tokens = code.tokens
    own = code.names.at(begin) if tokens.kind(begin) == "name" else None
    if own is None or tokens.text(begin + 1) != "[" or own.position < 1:
        return False
    place = begin + 1
    while tokens.text(place) == "[":
        place = tokens.partners.get(place, end) + 1
    declared = tokens.source(min(own.declaration, own.position), own.position)
    return place == end + 1 and _NUMBERS.match(declared) is None


def _is_output(code: KernelCode, begin: int, end: int) -> bool:
    """Whether a value is what an instruction writes, `"=r"(x)` or `"+f"(x)`: a choice of two is no
    place for it.
    """
    tokens = code.tokens
    is_operand = tokens.text(begin - 1) == "(" and tokens.text(end + 1) == ")"
    return is_operand and tokens.text(begin - 2).startswith(('"=', '"+'))


def _is_referred_to(code: KernelCode, begin: int) -> bool:
    """Whether the value at `begin` is that of a declared reference, which must not be a copy."""
    tokens, place = code.tokens, begin - 2
    if tokens.text(begin - 1) != "=":
        return False
    while tokens.text(place) == "]":
        place = tokens.partners.get(place, place) - 1
    opening = tokens.partners.get(place, place) if tokens.text(place) == ")" else place - 2
    return tokens.text(opening + 1) == "&"


def _reaches_over_comma(code: KernelCode, first: int, last: int) -> bool:
    around = code.tokens.enclosing[first]
    return any(
        code.tokens.text(place) == "," and code.tokens.enclosing[place] == around
        for place in range(first, last + 1)
    )


def _ends_value(code: KernelCode, position: int, forward: bool) -> bool:
    """Whether a value cannot reach over the token at `position`."""
    text = code.tokens.text(position)
    if text in _DELIMITERS:
        return True
    if text in ("(", "[", "{", ")", "]", "}"):
        opens = text in ("(", "[", "{")
        return opens != forward or position not in code.tokens.partners
    return False


def _is_constant(code: KernelCode, position: int) -> bool:
    """Whether what stands there is decided while compiling."""
    tokens, place = code.tokens, position
    while place >= 0:
        opening = tokens.enclosing[place]
        if opening < 0 or tokens.text(opening) == "{":
            break
        name = opening - 1
        while tokens.text(name) == "]":
            name = tokens.partners[name] - 1
        if tokens.text(name) == ")" and tokens.text(tokens.partners.get(name, name) + 1) == "&":
            return True  # a reference to an array
        found = code.names.at(name) if tokens.kind(name) == "name" else None
        declared = any(
            item.position == name for item in code.names.by_name.get(tokens.text(name), ())
        )
        if tokens.text(opening) == "[" and (
            declared or (found is None and tokens.text(name) != ")")
        ):
            return True
        if tokens.text(name) in _CONSTANT_OPERANDS:
            return True
        place = opening
    first, _ = code.extents.statement(place)
    words = {tokens.text(item) for item in range(first, min(first + 4, len(tokens)))}
    return bool(words & _CONSTANT_WORDS) or code.in_template_arguments(position)


def _is_of_a_wait(code: KernelCode, position: int) -> bool:
    """Whether it is a constant operand of an instruction that waits, or the argument of a call that
    has no other, `wait<2>();`: the whole statement can be switched, and its code is short. One of
    another instruction may not exist, a copy of 2 bytes, and refuse the code for all.
    """
    tokens, around = code.tokens, code.tokens.enclosing[position]
    first, last = code.extents.statement(position)
    text = tokens.source(first, last)
    if around > 0 and tokens.text(around - 1) == '"n"':
        return _WAITS.search(text) is not None
    return _WAIT.fullmatch(text) is not None and code.in_template_arguments(position)


def _spanning(
    code: KernelCode, change: SourceChange, first: int, last: int, form: Form
) -> SwitchedChange | None:
    start, end = code.tokens.span(first, last)
    start, end = start + code.offset, end + code.offset
    if change.start < start or change.end > end:
        return None
    new = code.source[start : change.start] + change.new + code.source[change.end : end]
    if not new.strip() and form is not Form.statement:
        return None
    return SwitchedChange(change, start, end, new, form)
