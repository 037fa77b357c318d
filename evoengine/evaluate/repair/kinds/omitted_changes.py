"""What is left out in one place and nothing else shows: the begin of a part in a loop over its
elements, the choice by a condition that nothing reads, the next one of a series, an argument that
has a default, a vector that is set back, the number of a loop in several indices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.source_change import SourceChange

# The first value of the number of a part, with what it is worked out from: warp / 4, blockIdx.y.
_PART = re.compile(r"(?:int\()?\(?(\w+)(?:\.x)?\)?\)? ?(?:/|>>) ?\w+|(blockIdx|threadIdx)\.[xyz]")
_NUMBERS = ("threadIdx", "blockIdx")
_MOST_PARTS = 4  # numbers of parts for a loop, the last declared first
_MEMBERS = "xyzw"
_LONGEST = 40  # tokens of a statement of a series
_MOST_NAMES = 4  # for an argument that is left out
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_VECTOR = re.compile(r"float([234])")
_ZEROS = re.compile(r"make_float[234]\((?:0(?:\.0*)?f?,? ?)+\)")
_THREADS = ("threadIdx.x", "threadIdx.y")

Range = tuple[int, int]


def omitted_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Parts that are added once more where they may be left out."""
    yield from _begins(code)
    yield from _chosen(code)
    yield from _series(code)
    yield from _defaults(code)
    yield from _set_back(code)
    yield from _of_a_thread(code)
    yield from _of_a_loop(code)


def _begins(code: KernelCode) -> Iterator[SourceChange]:
    """`kk = k` in a loop up to LENGTH made `kk = part * LENGTH + k`."""
    tokens = code.tokens
    values = {pair[0] for pair in code.values if pair[0] == pair[1]}
    for loop, first_end, second_end, closing in code.counted_loops():
        name, sign = code.loop_variable(loop + 2), first_end + 2
        if tokens.text(first_end + 1) != name or tokens.text(sign) != "<":
            continue
        limit = tokens.source(sign + 1, second_end - 1)
        if second_end - sign > 2:
            limit = f"({limit})"
        parts = [item.name for item in _parts(code, loop)]
        first, last = code.body(closing)
        for place in range(first, last + 1) if parts else ():
            if tokens.text(place) != name or tokens.kind(place) != "name":
                continue
            kind = "begin of a part missing in a loop"
            if place not in values or tokens.text(place - 1) != "=":
                kind += ", in an index"
            if place not in values and not _is_summand(code, place):
                continue
            for part in parts:
                new = f"{part} * {limit} + {name}"
                yield code.replaced(place, place, new, kind)


def _is_summand(code: KernelCode, place: int) -> bool:
    """Whether a name is added to others in an index."""
    before, behind = code.tokens.text(place - 1), code.tokens.text(place + 1)
    return before in ("+", "[", "(") and behind in ("+", "]", ")", ",") and code.in_index(place)


def _parts(code: KernelCode, place: int) -> list[DeclaredName]:
    """The variables that number the parts of a block or a grid, at a place."""
    found, numbers = [], set(_NUMBERS)
    for item, value in first_values(code):
        text = code.tokens.source(*value)
        numbers |= {item.name} if numbers & set(_NAME.findall(text)) else set()
        part = _PART.fullmatch(text)
        if part and {part[1], part[2]} & numbers and item.position < place <= item.last:
            found.append(item)
    return found[-_MOST_PARTS:]


def _chosen(code: KernelCode) -> Iterator[SourceChange]:
    """`(16)` made `(inside ? 16 : 0)`, where nothing reads `inside`; and `if (inside)` before a
    statement.
    """
    tokens = code.tokens
    for item in code.unread:
        if item.position < 0 or "bool" not in code.type_words(item):
            continue
        for first, last in (*code.values, *_operands(code)):
            if not item.position < first <= item.last:
                continue
            text = tokens.source(first, last)
            if _NUMBER.fullmatch(text) or (text.isupper() and first == last):
                new = f"({item.name} ? {text} : 0)"
                yield code.replaced(first, last, new, "choice by a condition that nothing reads")
        for first, last in code.statements:
            if item.position < first <= item.last and not code.declares(first, last):
                new = f"if ({item.name}) {tokens.source(first, last)}"
                yield code.replaced(first, last, new, "condition that nothing reads")


def _operands(code: KernelCode) -> Iterator[Range]:
    """What is given to an instruction: the brackets behind `"r"`."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        if tokens.text(place) == "(" and tokens.text(place - 1).startswith('"'):
            last = tokens.partners.get(place, place) - 1
            if place < last:
                yield place + 1, last


def _series(code: KernelCode) -> Iterator[SourceChange]:
    """`a.x *= f, a.y *= f` with `, a.z *= f` behind, `r[0] = u; r[1] = v;` with `r[2] = ...`: the
    next one where two that stand one behind the other differ in the member or the number alone.
    """
    tokens = code.tokens
    known = {tokens.source(first, last - 1) for first, last in code.assignments}
    for one, other in pairwise(code.assignments):
        if other[0] != one[1] + 1 or max(one[1] - one[0], other[1] - other[0]) > _LONGEST:
            continue
        again = _next(code, one, other)
        if again is None or code.declares(*other) or again in known:
            continue
        last = other[1] - 1
        between = "," if tokens.text(one[1]) == "," else ";"
        yield code.inserted(last, f"{between} {again}", "next of a series missing")


def _next(code: KernelCode, one: Range, other: Range) -> str | None:
    """The statement that follows two, without its end; None where they are no series."""
    tokens = code.tokens
    if one[1] - one[0] != other[1] - other[0]:
        return None
    pieces = []
    for here, there in zip(range(*one), range(*other), strict=True):
        before, after = tokens.text(here), tokens.text(there)
        if before == after:
            continue
        following = _following(before, after)
        if following is None or (following in _MEMBERS and tokens.text(there - 1) != "."):
            return None
        if _is_beyond(code, there, following):
            return None
        pieces.append((there, there, following))
    return tokens.rewritten(other[0], other[1] - 1, pieces) if pieces else None


def _is_beyond(code: KernelCode, place: int, index: str) -> bool:
    """Whether an array that is indexed at a place has no element of this number."""
    tokens = code.tokens
    own = code.names.at(place - 2) if tokens.text(place - 1) == "[" else None
    if own is None or tokens.text(own.position + 1) != "[":
        return False
    length = tokens.text(own.position + 2)
    return length.isdigit() and index.isdigit() and int(index) >= int(length)


def _following(before: str, after: str) -> str | None:
    """What comes behind x and y, or behind 0 and 1."""
    if before in _MEMBERS and after in _MEMBERS and len(before) == len(after) == 1:
        place = _MEMBERS.index(after)
        is_next = place == _MEMBERS.index(before) + 1 and place + 1 < len(_MEMBERS)
        return _MEMBERS[place + 1] if is_next else None
    if _NUMBER.fullmatch(before) and _NUMBER.fullmatch(after):
        return str(2 * int(after) - int(before)) if int(after) > int(before) else None
    return None


def _defaults(code: KernelCode) -> Iterator[SourceChange]:
    """`put(tile, PITCH, scale)` made `put(tile, PITCH)`, where the last parameter has a default,
    and the other way round.
    """
    tokens = code.tokens
    for item in code.names.all:
        opening = tokens.enclosing[item.position] if item.position >= 0 else -1
        if not item.is_parameter or tokens.text(item.position + 1) != "=" or opening < 1:
            continue
        name, closing = tokens.text(opening - 1), tokens.partners.get(opening)
        if closing is None or code.extents.last_of(item.position + 1, 0) != closing - 1:
            continue
        count = len(code.extents.arguments(opening))
        for place in range(len(tokens)):
            is_call = tokens.text(place) == name and tokens.text(place + 1) == "("
            if not is_call or not code.function_places[place]:
                continue
            given = code.extents.arguments(place + 1)
            if len(given) == count > 1:
                change = (given[-2][1] + 1, given[-1][1], "")
                yield code.replaced(*change, "argument too many, which has a default")
            elif len(given) == count - 1 > 0:
                for other in code.visible(place, item.sort)[:_MOST_NAMES]:
                    new = f", {other.name}"
                    kind = "argument missing, which has a default"
                    yield code.inserted(given[-1][1], new, kind)


def _set_back(code: KernelCode) -> Iterator[SourceChange]:
    """`put(run);` made `put(run); run = make_float4(0.0f, ...);`, where `run` begins so, and the
    same at the end of a function that takes it by reference.
    """
    tokens = code.tokens
    begins = {item: tokens.source(*value) for item, value in first_values(code)}
    for item in code.names.all:
        vector = _VECTOR.fullmatch(item.sort)
        if vector is None or item.position < 0:
            continue
        zeros = f"make_{item.sort}({', '.join(['0.0f'] * int(vector[1]))})"
        is_sum = _ZEROS.fullmatch(begins.get(item, "")) is not None
        new = f" {item.name} = {begins[item] if is_sum else zeros};"
        is_given = item.is_parameter and tokens.text(item.position - 1) == "&"
        if not is_sum and not (is_given and "const" not in code.type_words(item)):
            continue
        for first, last in code.statements:
            if not item.position < first <= item.last or tokens.text(first) == item.name:
                continue
            reads = any(
                tokens.text(place) == item.name and tokens.text(place - 1) in ("(", ",")
                for place in range(first, last)
            )
            if reads or (is_given and last + 1 == item.last):
                yield code.inserted(last, new, "reset missing, of a vector")


def _of_a_thread(code: KernelCode) -> Iterator[SourceChange]:
    """`a[threadIdx.x] * b[threadIdx.x]` made `a[i] * b[i]`, in a loop over i."""
    tokens = code.tokens
    indices: dict[tuple[int, str], list[Range]] = {}
    for _, first, last in code.indices:
        text = tokens.source(first, last)
        if text in _THREADS:
            indices.setdefault((code.extents.statement(first)[0], text), []).append((first, last))
    for places in indices.values():
        if len(places) < 2:
            continue
        for item in code.visible(places[0][0], "int"):
            if item.position < 0 or code.loop_of(item.position) is None:
                continue
            found = [code.replaced(*pair, item.name, "") for pair in places]
            yield together(found, "thread for the element of a loop")


def _of_a_loop(code: KernelCode) -> Iterator[SourceChange]:
    """`column + 7 < columns` made `column + e < columns`, in a loop of `e < 8`."""
    tokens = code.tokens
    for loop, first_end, second_end, closing in code.counted_loops():
        name, bound = code.loop_variable(loop + 2), tokens.text(second_end - 1)
        if tokens.source(first_end + 1, second_end - 2) != f"{name} <" or not bound.isdigit():
            continue
        first, last = code.body(closing)
        for place in range(first, last + 1):
            if tokens.text(place) == str(int(bound) - 1) and tokens.text(place - 1) == "+":
                yield code.replaced(place, place, name, "last number of a loop for each")
