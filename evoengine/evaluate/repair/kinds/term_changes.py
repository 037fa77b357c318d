"""Terms and factors that are too many or missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.expression_extents import PRECEDENCE
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_WHOLE_VECTOR = re.compile(r"u?(int|char|short|long)\d")
_CONDITIONS = frozenset(("&&", "||", "==", "!=", "<", ">", "<=", ">="))
_LOADS = ("__ldg", "__ldcg", "__ldcs", "__ldca", "__ldcv")
_LONGEST_TERM = 14  # tokens: longer ones are seldom repeated
_MOST_TERMS = 60  # of a kernel, the shortest first
_NEAREST = 6  # variables, the last declared first


def term_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Operands dropped, and terms of other expressions of the kernel added."""
    yield from _dropped(code)
    yield from _added_names(code)
    yield from _shifted_factors(code)
    yield from _added_terms(code)
    yield from _swizzled(code)
    yield from _rows(code)


def _rows(code: KernelCode) -> Iterator[SourceChange]:
    """The row of an index that has the column alone: i made i + row * N; and a + 8 * b in place of
    2 * a + b.
    """
    tokens = code.tokens
    for _, first, last in code.indices:
        names = [item for item in code.visible(last, "int") if not item.name.isupper()]
        near = [item for item in names if not item.is_parameter][:_NEAREST]
        sizes = [
            item for item in code.visible(last, "int") if item.is_parameter or item.name.isupper()
        ]
        text = tokens.source(first, last)
        for item in near:
            for size in sizes:
                if item.name != size.name and size.name not in text:
                    new = f" + size_t({item.name}) * {size.name}"
                    yield code.inserted(last, new, "row of an index missing")
    yield from _strided(code)


def _strided(code: KernelCode) -> Iterator[SourceChange]:
    tokens = code.tokens
    numbers = sorted(
        {
            token.text
            for token in tokens.tokens
            if token.kind == "number" and token.text.isdigit() and 2 <= int(token.text) <= 64
        },
        key=int,
    )
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.extents.is_binary(position):
            continue
        left, right = code.extents.operand_before(position), code.extents.operand_behind(position)
        for one, other in ((left, right), (right, left)):
            scaled = one[1] - one[0] == 2 and tokens.text(one[0] + 1) == "*"
            if not scaled or other[0] != other[1] or tokens.kind(other[0]) != "name":
                continue
            names = [place for place in (one[0], one[1]) if tokens.kind(place) == "name"]
            if len(names) != 1 or left[0] > left[1]:
                continue
            for number in numbers:
                new = f"{tokens.text(names[0])} + {number} * {tokens.text(other[0])}"
                yield code.replaced(left[0], right[1], new, "stride of the other one")


def _swizzled(code: KernelCode) -> Iterator[SourceChange]:
    """The right side of a ^ of another place, at each operand that has none."""
    tokens = code.tokens
    known = {
        tokens.source(*code.extents.operand_behind(position)): code.extents.operand_behind(position)
        for position in range(len(tokens))
        if tokens.text(position) == "^" and code.extents.is_binary(position)
    }
    for first, last in spots_of(code):
        if "^" in tokens.source(first, last):
            continue
        for text, pair in known.items():
            if pair[0] > pair[1] or text == tokens.source(first, last):
                continue
            own = tokens.source(first, last)
            if code.can_stand(*pair, first):
                yield code.replaced(first, last, f"(({own}) ^ ({text}))", "swizzle missing")
            for other in code.with_other_name(*pair, first):
                new = f"(({own}) ^ ({other}))"
                yield code.replaced(first, last, new, "swizzle missing, of another name")


def _dropped(code: KernelCode) -> Iterator[SourceChange]:
    tokens = code.tokens
    for position in range(len(tokens)):
        if not code.extents.is_binary(position):
            continue
        text = tokens.text(position)
        left, right = code.extents.operand_before(position), code.extents.operand_behind(position)
        if left[0] > left[1] or right[0] > right[1]:
            continue
        kind = _dropped_kind(text)
        yield code.replaced(position, right[1], "", kind)
        new = "-" if text == "-" else ""
        yield code.replaced(left[0], position, new, kind)
        if PRECEDENCE[text] == 9:
            before = _last_term(code, left)
            if before > left[0]:
                yield code.replaced(before, position, "", kind)
        yield from _reduced(code, left[0], right[1])
    for first, last in code.conditions:
        if code.loop_of(first) is None:
            yield code.replaced(first, last, "true", "condition dropped")


def _last_term(code: KernelCode, left: tuple[int, int]) -> int:
    """The first token of the last term of a sum."""
    place = left[1]
    while place > left[0]:
        if code.tokens.text(place) in (")", "]") and place in code.tokens.partners:
            place = code.tokens.partners[place] - 1
            continue
        if code.extents.is_binary(place) and PRECEDENCE[code.tokens.text(place)] <= 9:
            return place + 1
        place -= 1
    return left[0]


def _reduced(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    """An expression of three operands or more, reduced to one variable of it."""
    if not 4 <= last - first <= 16:
        return
    for begin, end, sort in code.atoms_between(first, last):
        if (
            sort in ("int", "float")
            and code.tokens.enclosing[begin] == code.tokens.enclosing[first]
        ):
            new = code.tokens.source(begin, end)
            yield code.replaced(first, last, new, "expression for a name")
    inner = [place for place in range(first, last) if code.tokens.text(place) == "("]
    for opening in inner:
        for begin, end, sort in code.atoms_between(
            opening, code.tokens.partners.get(opening, opening)
        ):
            if sort in ("int", "float") and end < last:
                new = code.tokens.source(begin, end)
                yield code.replaced(first, last, new, "expression for a name")


def _dropped_kind(operator: str) -> str:
    if operator in ("&&", "||"):
        return "condition too many"
    return "factor too many" if PRECEDENCE[operator] == 10 else "term too many"


def spots_of(code: KernelCode) -> Iterator[tuple[int, int]]:
    """First and last token of each operand of + and -, and of each whole value without any."""
    tokens, extents = code.tokens, code.extents
    found: set[tuple[int, int]] = set(code.values)
    for position in range(len(tokens)):
        is_scaled = tokens.text(position) in ("/", "%")
        if extents.is_binary(position) and (is_scaled or PRECEDENCE[tokens.text(position)] < 10):
            found |= {extents.operand_before(position), extents.operand_behind(position)}
        elif tokens.text(position) == "(" and position in tokens.partners:
            inside = position + 1, tokens.partners[position] - 1
            if inside[0] <= inside[1] and not extents.is_call(position):
                found.add(inside)
    yield from sorted(
        pair
        for pair in found
        if pair[0] <= pair[1] and code.function_places[pair[0]] and not _is_condition(code, pair)
    )


def _is_condition(code: KernelCode, pair: tuple[int, int]) -> bool:
    """Whether a value is true or false: nothing is added to it, and it has no factor."""
    tokens, (first, last) = code.tokens, pair
    return any(
        tokens.text(place) in _CONDITIONS
        and tokens.enclosing[place] == tokens.enclosing[first]
        and code.extents.is_binary(place)
        for place in range(first, last + 1)
    )


def _added_names(code: KernelCode) -> Iterator[SourceChange]:
    """A factor, divisor or summand that is a variable."""
    for first, last in spots_of(code):
        in_index = code.in_index(first)
        sorts = sorts_between(code, first, last)
        if "int" in sorts and not sorts & {"float", "array"}:
            yield from _added_integers(code, first, last, in_index)
        elif sorts & {"float", "array"}:
            yield from _added_floats(code, first, last)


def sorts_between(code: KernelCode, first: int, last: int) -> set[str]:
    """The sorts of the names between two tokens that stand in no index."""
    found, place = set(), first
    while place <= last:
        if code.tokens.text(place) == "[" and place in code.tokens.partners:
            place = code.tokens.partners[place]
        elif code.tokens.kind(place) == "name":
            item = code.names.at(place)
            if item is not None:
                found.add(_sort_of_use(code, item, place))
            elif code.tokens.text(place) in ("threadIdx", "blockIdx"):
                found.add("int")
        place += 1
    return found


def _sort_of_use(code: KernelCode, item: DeclaredName, place: int) -> str:
    """The sort of what is read of a variable: of an element, or of a member of a vector."""
    following = code.tokens.text(place + 1)
    is_loaded = code.tokens.text(place - 2) in _LOADS and code.tokens.text(place - 1) == "("
    if item.sort == "pointer" and (following == "[" or is_loaded):
        return "array"
    if following == "." and item.sort not in ("int", "float", "pointer", "array"):
        return "int" if _WHOLE_VECTOR.match(item.sort) else "float"
    return item.sort


def _added_integers(
    code: KernelCode, first: int, last: int, in_index: bool
) -> Iterator[SourceChange]:
    where = "in an index" if in_index else "elsewhere"
    counted = ", counted backwards" if _is_counted_backwards(code, first, last) else f" {where}"
    yield code.inserted(last, " - 1", f"one less{counted}")
    yield code.inserted(last, " + 1", f"one more {where}")
    for number in (2, 4, 8):
        yield times(code, first, last, f"* {number}", "times a number")
    for item in code.visible(last, "int"):
        yield code.inserted(last, f" + {item.name}", f"summand missing {where}, int")
        sized = item.is_parameter or item.name.isupper()
        if sized:
            for sign in ("*", "/", "%"):
                yield times(code, first, last, f"{sign} {item.name}", "factor missing, int")


def _is_counted_backwards(code: KernelCode, first: int, last: int) -> bool:
    """Whether something that is no number is subtracted, as of the last of the tiles."""
    return any(
        code.tokens.text(place) == "-"
        and code.tokens.kind(place + 1) != "number"
        and code.tokens.enclosing[place] == code.tokens.enclosing[first]
        and code.extents.is_binary(place)
        for place in range(first + 1, last)
    )


def _shifted_factors(code: KernelCode) -> Iterator[SourceChange]:
    """x * y made (x - z) * y: a mean or a zero point that is not subtracted."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "*" or not code.extents.is_binary(position):
            continue
        first, last = code.extents.operand_before(position)
        is_bare = code.extents.postfix(first) == last and code.function_places[position]
        if first > last or not is_bare or not sorts_between(code, first, last) & {"float", "array"}:
            continue
        text = tokens.source(first, last)
        for item in code.visible(first, "float")[:_NEAREST]:
            if item.name != text:
                new = f"({text} - {item.name})"
                yield code.replaced(first, last, new, "summand missing in a factor")


def _added_floats(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    for item in code.visible(last, "float"):
        yield times(code, first, last, f"* {item.name}", "factor missing, float")
        yield times(code, first, last, f"/ {item.name}", "divisor missing, float")
        yield code.inserted(last, f" + {item.name}", "summand missing, float")
        yield code.inserted(last, f" - {item.name}", "summand missing, float")
        yield code.inserted(last, f" - {item.name} * {item.name}", "square missing")
    for item in code.visible(last, "int"):
        if item.is_parameter or item.name.isupper():
            yield times(code, first, last, f"/ {item.name}", "divisor missing, int")
    for number in ("1.44269504f", "0.69314718f", "0.70710678f", "0.5f", "2.0f"):
        yield times(code, first, last, f"* {number}", "times a constant")


def times(code: KernelCode, first: int, last: int, factor: str, kind: str) -> SourceChange:
    """The change that appends a factor to the tokens `first` to `last`, in brackets if need be."""
    has_sum = any(
        code.extents.is_binary(place)
        and PRECEDENCE[code.tokens.text(place)] < 10
        and code.tokens.enclosing[place] == code.tokens.enclosing[first]
        for place in range(first, last + 1)
    )
    text = code.tokens.source(first, last)
    return code.replaced(first, last, f"({text}) {factor}" if has_sum else f"{text} {factor}", kind)


def _added_terms(code: KernelCode) -> Iterator[SourceChange]:
    """A term of another place of the kernel, added or multiplied, where its names are known."""
    terms = _terms(code)
    for first, last in spots_of(code):
        sorts = sorts_between(code, first, last)
        own = code.tokens.source(first, last)
        for text, (begin, end), is_float in terms:
            if is_float != bool(sorts & {"float", "array"}) or text in own:
                continue
            if not sorts or not code.can_stand(begin, end, last):
                continue
            if is_float:
                yield times(code, first, last, f"* {text}", "factor of another place")
                yield code.inserted(last, f" + {text}", "term of another place, float")
                yield code.inserted(last, f" - {text}", "term of another place, float")
            else:
                yield code.inserted(last, f" + {text}", "term of another place, int")
                if "-" in own:
                    yield code.inserted(last, f" - {text}", "term of another place, int")


def _terms(code: KernelCode) -> list[tuple[str, tuple[int, int], bool]]:
    """Terms and factors of the kernel that are more than a name: text, tokens, whether float."""
    found: dict[str, tuple[str, tuple[int, int], bool]] = {}
    for position in range(len(code.tokens)):
        if not (code.function_places[position] and code.extents.is_binary(position)):
            continue
        for first, last in (
            code.extents.operand_before(position),
            code.extents.operand_behind(position),
        ):
            if not first < last < first + _LONGEST_TERM:
                continue
            sorts = sorts_between(code, first, last)
            text = code.tokens.source(first, last)
            if (sorts and not sorts & {"pointer"}) or "[" in text:
                is_float = bool(sorts & {"float", "array", "pointer"})
                found.setdefault(text, (text, (first, last), is_float))
    return sorted(found.values(), key=lambda item: len(item[0]))[:_MOST_TERMS]
