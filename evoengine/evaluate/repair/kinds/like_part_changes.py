"""Parts of an expression that its like has: a term, a factor, a call, a condition.

Where a kernel has `left = x * STRIDE` and `above = y * STRIDE - PAD`, `- PAD` is missing; where it
has `a.sum + b.sum * f(b.top)`, the factor `f(a.top)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from evoengine.evaluate.repair.expression_extents import PRECEDENCE
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.term_changes import spots_of
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 28  # tokens of an expression that has a part more
_LONGEST_PART = 16
_NEAR_NAME, _NEAR = 80, 260  # tokens between two that are alike: one name, or more
_MOST = 240  # changes of a kernel, the nearest first

Range = tuple[int, int]


@dataclass(frozen=True)
class _Shape:
    """An expression without the names of its variables."""

    signs: tuple[str, ...]  # empty where a variable stands
    names: tuple[str, ...]


def like_part_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each expression with what a like one has more, in the names of its own."""
    spots = _spots(code)
    by_shape: dict[tuple[str, ...], list[tuple[Range, _Shape]]] = {}
    for spot in spots:
        if spot[1] - spot[0] < _LONGEST_PART:
            shape = _shape(code, spot)
            if shape.names:
                by_shape.setdefault(shape.signs, []).append((spot, shape))
    found: dict[tuple[Range, str], tuple[int, SourceChange]] = {}
    for outer in spots:
        if outer[1] - outer[0] >= _LONGEST:
            continue
        for inner in _inside(spots, outer):
            own = _shape(code, inner)
            for spot, shape in by_shape.get(own.signs, ()):
                away = abs(spot[0] - inner[0])
                if outer[0] <= spot[0] <= outer[1] or not _are_like(code, spot, inner, away):
                    continue
                renaming = dict(zip(own.names, shape.names, strict=True))
                new = _extended(code, spot, outer, inner, renaming)
                if new is not None and (spot, new) not in found:
                    change = code.replaced(*spot, new, _kind(code, spot, inner))
                    found[spot, new] = away, change
    for _, change in sorted(found.values(), key=lambda item: item[0])[:_MOST]:
        yield change
    yield from _factors(code)
    yield from _factors_of_sums(code)


def _kind(code: KernelCode, spot: Range, like: Range) -> str:
    """Two expressions of a statement, or of two that follow one another, are likelier alike."""
    first, last = code.extents.statement(spot[0])
    is_near = first - 1 <= like[0] <= last + 1 or code.extents.statement(like[0])[1] == first - 1
    is_near |= code.extents.statement(like[0])[0] == last + 1
    return f"part missing, beside its like{' in the statement' if is_near else ''}"


def _spots(code: KernelCode) -> list[Range]:
    """Expressions: values, conditions, operands of every operator."""
    found = {*spots_of(code), *code.conditions}
    for position in range(len(code.tokens)):
        if code.function_places[position] and code.extents.is_binary(position):
            found |= {
                code.extents.operand_before(position),
                code.extents.operand_behind(position),
            }
    return sorted(pair for pair in found if pair[0] <= pair[1])


def _inside(spots: list[Range], outer: Range) -> list[Range]:
    """The expressions that are a part of another one."""
    return [
        one
        for one in spots
        if outer[0] <= one[0] and one[1] <= outer[1] and one != outer
        and one[1] - one[0] < _LONGEST_PART
    ]  # fmt: skip


def _shape(code: KernelCode, spot: Range) -> _Shape:
    signs, names = [], []
    for place in range(spot[0], spot[1] + 1):
        is_variable = code.tokens.kind(place) == "name" and code.names.at(place) is not None
        signs.append("" if is_variable else code.tokens.text(place))
        if is_variable:
            names.append(code.tokens.text(place))
    return _Shape(tuple(signs), tuple(names))


def _are_like(code: KernelCode, one: Range, other: Range, away: int) -> bool:
    """Whether two expressions of the same shape may stand for the same sort of thing."""
    if one[0] < one[1]:
        return away <= _NEAR
    first, second = code.names.at(one[0]), code.names.at(other[0])
    if first is None or second is None or first.sort != second.sort or away > _NEAR_NAME:
        return False
    return first.name == second.name or first.declaration == second.declaration or _alike(
        first.name, second.name
    )  # fmt: skip


def _alike(one: str, other: str) -> bool:
    """Whether two names differ in one part: begin_x and begin_y, row and row1."""
    first, second = one.lower().split("_"), other.lower().split("_")
    if len(first) == len(second) > 1:
        return sum(a != b for a, b in zip(first, second, strict=True)) == 1
    return one.rstrip("0123456789") == other.rstrip("0123456789")


def _extended(
    code: KernelCode, spot: Range, outer: Range, inner: Range, renaming: dict[str, str]
) -> str | None:
    """`spot` with what stands around `inner` in `outer`; None where that means nothing there or is
    there already.
    """
    tokens = code.tokens
    before, behind = (outer[0], inner[0] - 1), (inner[1] + 1, outer[1])
    visible = {item.name for item in code.names.visible(spot[0])}
    texts = []
    for first, last in (before, behind):
        if first > last:
            texts.append("")
            continue
        pieces = []
        for place in range(first, last + 1):
            if tokens.kind(place) == "name" and code.names.at(place) is not None:
                name = renaming.get(tokens.text(place), tokens.text(place))
                if name not in visible:
                    return None
                pieces.append((place, place, name))
        texts.append(tokens.rewritten(first, last, pieces))
    left, right = _squeezed(texts[0]), _squeezed(texts[1])
    around = _squeezed(
        code.source[max(0, _start(code, spot) - 2 * len(texts[0]) - 8) : _start(code, spot)]
    )
    following = _squeezed(code.source[_end(code, spot) : _end(code, spot) + 2 * len(texts[1]) + 8])
    if around.endswith(left) and following.startswith(right):
        return None
    new = f"{_spaced(texts[0], tokens.text(inner[0] - 1))}{tokens.source(*spot)}"
    new += f" {texts[1]}" if texts[1][:1] not in (")", "]", ",", "") else texts[1]
    is_call = (
        texts[0].count("(") == 1 and texts[0].endswith("(") and tokens.kind(outer[0]) == "name"
    )
    is_whole = spot in code.values or spot in code.conditions
    return new if is_whole or (is_call and not texts[1].endswith("))")) else f"({new})"


def _spaced(text: str, last: str) -> str:
    return f"{text} " if last not in ("(", "[", "") and text else text


def _start(code: KernelCode, spot: Range) -> int:
    return code.tokens.span(*spot)[0] + code.offset


def _end(code: KernelCode, spot: Range) -> int:
    return code.tokens.span(*spot)[1] + code.offset


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _factors(code: KernelCode) -> Iterator[SourceChange]:
    """The factor of the statement before or behind: `a += f * x; b += y;` made `b += f * y;`."""
    for one, other in pairwise(code.assignments):
        for with_factor, without in ((one, other), (other, one)):
            product, value = _added(code, with_factor), _added(code, without)
            if product is None or value is None or _has(code, value, "*"):
                continue
            for place in range(product[0], product[1] + 1):
                own = code.names.at(place)
                is_factor = "*" in (code.tokens.text(place + 1), code.tokens.text(place - 1))
                is_float = own is not None and own.sort == "float"
                if is_factor and is_float and code.can_stand(place, place, value[0]):
                    new = f"{code.tokens.text(place)} * ({code.tokens.source(*value)})"
                    yield code.replaced(*value, new, "factor missing, beside its like")


def _added(code: KernelCode, statement: Range) -> Range | None:
    """What a statement adds or assigns."""
    for place in range(statement[0], statement[1]):
        if code.tokens.text(place) in ("+=", "=", "-=") and code.names.at(statement[0]) is not None:
            return (place + 1, statement[1] - 1) if place + 1 <= statement[1] - 1 else None
    return None


def _has(code: KernelCode, pair: Range, sign: str) -> bool:
    """Whether an expression has a sign outside of brackets."""
    around = code.tokens.enclosing[pair[0]]
    return any(
        code.tokens.text(place) == sign and code.tokens.enclosing[place] == around
        for place in range(pair[0], pair[1] + 1)
    )


def _factors_of_sums(code: KernelCode) -> Iterator[SourceChange]:
    """x + e made x * N + e, where another sum has y * N + e."""
    tokens = code.tokens
    factors: dict[str, dict[str, None]] = {}
    plain: list[tuple[Range, str]] = []
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.extents.is_binary(position):
            continue
        left, right = code.extents.operand_before(position), code.extents.operand_behind(position)
        if left[0] > left[1] or right[0] > right[1] or not code.function_places[position]:
            continue
        for one, other in ((left, right), (right, left)):
            scaled = tokens.text(one[1] - 1) in ("*", "/") and one[1] - one[0] >= 2
            kept = tokens.source(*other)
            is_size = (
                tokens.kind(one[1]) == "number"
                or tokens.text(one[1]).isupper()
                or _is_size(code, one[1])
            )
            if scaled and is_size and tokens.text(one[1] - 1) == "*":
                factors.setdefault(kept, {})[tokens.text(one[1])] = None
            elif PRECEDENCE.get(tokens.text(one[1] - 1), 0) < 10:
                plain.append((one, kept))
    for one, kept in plain:
        for factor in list(factors.get(kept, ()))[:4]:
            item = next((i for i in code.names.visible(one[0]) if i.name == factor), None)
            if factor.isdigit() or item is not None:
                text = tokens.source(*one)
                new = f"{text} * {factor}" if one[0] == one[1] else f"({text}) * {factor}"
                yield code.replaced(*one, new, "factor missing, of a like sum")


def _is_size(code: KernelCode, place: int) -> bool:
    own = code.names.at(place) if code.tokens.kind(place) == "name" else None
    return own is not None and own.sort == "int" and own.is_parameter
