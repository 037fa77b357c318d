"""Coordinates of registers, lanes and tiles: a part that is missing, / for %, another index of the
same statement, a step ahead or behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.term_changes import sorts_between
from evoengine.evaluate.repair.source_change import SourceChange

_POWERS = ("2", "4", "8", "16", "32")
_SPLIT = (8, 16)  # registers, lanes or rows that are split into two coordinates
_MOST_PLACES = 40
_NEAREST = 40  # tokens between both parts of a number
# of register e of a fragment of mma: its row of 16, its column of 8
_PARTS_OF_TWO = ("{} * 8",)
_PARTS_OF_FOUR = ("{} / 2 * 8", "{} % 2", "{} % 2 * 8", "{} / 2")

Range = tuple[int, int]


def coordinate_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every coordinate, changed."""
    yield from _divided_or_modulo(code)
    yield from _parts_of_registers(code)
    yield from _indices_of_the_statement(code)
    yield from _indices_beside(code)
    yield from _variables(code)
    yield from _steps_of_factors(code)
    yield from _register_pairs(code)
    yield from _split_numbers(code)


def _split_numbers(code: KernelCode) -> Iterator[SourceChange]:
    """`r % 4` and `r / 4` of one place made `r / 2` and `r % 2`, and the like: what is split into a
    quotient and a remainder has other parts, or its parts have changed places.
    """
    tokens = code.tokens
    splits = [
        place
        for place in range(1, len(tokens))
        if tokens.text(place) in ("/", "%")
        and tokens.text(place + 1) in _POWERS
        and tokens.kind(place - 1) == "name"
        and code.function_places[place]
        and code.extents.operand_before(place) == (place - 1, place - 1)
    ]
    for one in splits:
        for other in splits:
            is_near = one < other < one + _NEAREST and tokens.text(other) != tokens.text(one)
            of_one = tokens.text(one - 1) == tokens.text(other - 1)
            if not is_near or not of_one or tokens.text(one + 1) != tokens.text(other + 1):
                continue
            for signs in ("/%", "%/"):
                for power in _POWERS:
                    if (tokens.text(one), tokens.text(one + 1)) != (signs[0], power):
                        pair = [
                            code.replaced(one, one + 1, f"{signs[0]} {power}", ""),
                            code.replaced(other, other + 1, f"{signs[1]} {power}", ""),
                        ]
                        yield together(pair, "number split otherwise")


def _register_pairs(code: KernelCode) -> Iterator[SourceChange]:
    """b[0], b[1] made b[2], b[3]: the second pair of registers, which is not the first again."""
    tokens = code.tokens
    for place in range(len(tokens) - 8):
        one, other = tokens.text(place + 2), tokens.text(place + 7)
        is_pair = (
            tokens.text(place) == tokens.text(place + 5)
            and tokens.text(place + 1) == tokens.text(place + 6) == "["
            and tokens.text(place + 3) == tokens.text(place + 8) == "]"
            and tokens.text(place + 4) == ","
        )
        if is_pair and one.isdigit() and other.isdigit() and code.function_places[place]:
            for shift in (2, -2):
                if int(one) + shift >= 0 and int(other) + shift >= 0:
                    pair = [
                        code.replaced(place + 2, place + 2, str(int(one) + shift), ""),
                        code.replaced(place + 7, place + 7, str(int(other) + shift), ""),
                    ]
                    yield together(pair, "registers of the other half")


def _divided_or_modulo(code: KernelCode) -> Iterator[SourceChange]:
    """e % 2 made e / 2, and the other way round."""
    tokens = code.tokens
    for position in range(len(tokens)):
        text = tokens.text(position)
        is_part = text in ("%", "/") and tokens.text(position + 1) in _POWERS
        if is_part and code.function_places[position] and code.extents.is_binary(position):
            other = "/" if text == "%" else "%"
            yield code.replaced(position, position, other, "quotient for remainder")
            for power in _POWERS:
                own = tokens.text(position + 1)
                if power != own and int(power) * int(own) in _SPLIT:
                    new = f"{other} {power}"
                    kind = "quotient by another number for a remainder"
                    yield code.replaced(position, position + 1, new, kind)


def _parts_of_registers(code: KernelCode) -> Iterator[SourceChange]:
    """The row or column of a register that is missing from a place: row made row + e / 2 * 8."""
    if "mma" not in code.tokens.code:
        return
    for item in code.names.all:
        count = _registers(code, item)
        if not count:
            continue
        parts = _PARTS_OF_FOUR if count == 4 else _PARTS_OF_TWO
        for begin, end in code.values:
            is_inside = item.position + 2 < begin and end <= item.last
            if not is_inside or sorts_between(code, begin, end) != {"int"}:
                continue
            if code.loop_of(begin) is not None:
                continue
            own = {code.tokens.text(place) for place in range(begin, end + 1)}
            if item.name not in own:
                for part in parts:
                    new = f" + {part.format(item.name)}"
                    yield code.inserted(end, new, "coordinate of a register missing")


def _registers(code: KernelCode, item: DeclaredName) -> int:
    """How many registers or halves of a fragment a variable counts, 4 or 2; 0 for another one."""
    tokens, place = code.tokens, item.position
    if item.sort != "int" or tokens.text(place + 1) != "=":
        return 0
    if code.loop_of(place) is not None:
        count = tokens.text(place + 6)
        is_count = tokens.text(place + 4) == item.name and tokens.text(place + 5) == "<"
        return int(count) if is_count and count in ("2", "4") else 0
    last = code.extents.last_of(place + 1, 0)
    is_rest = tokens.text(last - 1) == "%" and tokens.text(last) in ("2", "4")
    return int(tokens.text(last)) if is_rest and last - place <= 6 else 0


def _indices_of_the_statement(code: KernelCode) -> Iterator[SourceChange]:
    """An index that is a name or a number, made another one of the same statement; and two such of
    different arrays exchanged.
    """
    tokens = code.tokens
    of_statement: dict[int, list[tuple[str, int]]] = {}
    for name, first, last in code.indices:
        if first == last:
            begin = code.extents.statement(name)[0]
            of_statement.setdefault(begin, []).append((tokens.text(name), first))
    for begin, found in of_statement.items():
        last = code.extents.statement(begin)[1]
        others = list(dict.fromkeys(tokens.text(place) for _, place in found))
        if not 1 < len(others) <= 8 or len(found) > _MOST_PLACES:
            continue
        for _, place in found:
            for other in others:
                if other != tokens.text(place):
                    yield code.replaced(place, place, other, "index of the same statement")
        for number, (one_array, one) in enumerate(found):
            for other_array, two in found[number + 1 :]:
                texts = tokens.text(one), tokens.text(two)
                if one_array != other_array and texts[0] != texts[1]:
                    pieces = [(one, one, texts[1]), (two, two, texts[0])]
                    new = tokens.rewritten(begin, last, pieces)
                    yield code.replaced(begin, last, new, "indices exchanged, of two arrays")


def _indices_beside(code: KernelCode) -> Iterator[SourceChange]:
    """`f(weight[4 * q + j], bias[c + j])` made `f(weight[c + j], bias[c + j])`: arrays side by side
    are often read at the same place.
    """
    tokens = code.tokens
    for (one, *own), (other, *following) in pairwise(code.indices):
        is_beside = own[1] + 2 == other - 1 and tokens.text(other - 1) == ","
        texts = tokens.source(*own), tokens.source(*following)
        if is_beside and tokens.text(one) != tokens.text(other) and texts[0] != texts[1]:
            kind = "index of the array beside it"
            yield code.replaced(own[0], own[1], texts[1], kind)
            yield code.replaced(following[0], following[1], texts[0], kind)


def _variables(code: KernelCode) -> Iterator[SourceChange]:
    """lane % 8 made the variable that is computed from the same name: group = lane / 4."""
    tokens = code.tokens
    made: list[tuple[str, str, int]] = []
    for item in code.names.all:
        if item.sort == "int" and tokens.text(item.position + 1) == "=":
            last = code.extents.last_of(item.position + 1, 0)
            for place in range(item.position + 2, last + 1):
                if tokens.kind(place) == "name" and code.names.at(place) is not None:
                    made.append((item.name, tokens.text(place), item.position))
    for position in range(len(tokens)):
        is_part = tokens.text(position) in ("%", "/") and tokens.text(position + 1) in _POWERS
        if not is_part or not code.function_places[position]:
            continue
        first, last = position - 1, position + 1
        for name, source, declared in made:
            if tokens.text(first) == source and declared + 2 < first:
                visible = {item.name for item in code.visible(first, "int")}
                if name in visible:
                    yield code.replaced(first, last, name, "name for a coordinate")


def _steps_of_factors(code: KernelCode) -> Iterator[SourceChange]:
    """step * BK made (step + 1) * BK, and the same of one less."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "*" or not code.extents.is_binary(position):
            continue
        for place in (position - 1, position + 1):
            own = code.names.at(place) if tokens.kind(place) == "name" else None
            is_plain = own is not None and own.sort == "int" and not own.name.isupper()
            beside = tokens.text(place + 1) not in ("[", ".", "(", "->")
            if is_plain and beside and own is not None and not own.is_parameter:
                for sign in ("+", "-"):
                    new = f"({own.name} {sign} 1)"
                    kind = f"one {'more' if sign == '+' else 'less'}, of a factor"
                    yield code.replaced(place, place, new, kind)
