"""Which of two values counts, and what a condition or a term lacks that is at hand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.ahead_changes import functions_with
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_COPIES = re.compile(r"cp\.async|__pipeline_memcpy_async|memcpy_async")
_BYTES = ("4", "8", "16")
_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_JOINED = re.compile(r"&&|\|\|")
_MEMBERS = "xyzw"
_LIMITS = ("min", "max", "fminf", "fmaxf")
_MOST_FLAGS = 4

Range = tuple[int, int]


def choice_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Values of ?: exchanged, flags and weights that are missing, comparisons of both ends."""
    yield from _arms(code)
    yield from _flags(code)
    yield from _copies(code)
    yield from _both_ends(code)
    yield from _weights(code)
    yield from _last_block(code)
    yield from _limits(code)
    yield from _wraps(code)


def _wraps(code: KernelCode) -> Iterator[SourceChange]:
    """`next + 1 < n ? next + 1 : first` made `... : 0`: what goes round begins at 0 again."""
    tokens = code.tokens
    for question, one, other in _choices(code):
        begin = code.extents.first_of(question, 0)
        limited = re.fullmatch(r"(.+ [-+] 1) (<|!=|>=|==) .+", tokens.source(begin, question - 1))
        if limited is None:
            continue
        is_left = limited[2] in ("<", "!=")
        round_again, same = (other, one) if is_left else (one, other)
        if tokens.source(*same) == limited[1] and tokens.source(*round_again) != "0":
            yield code.replaced(*round_again, "0", "begin of another round")


def _arms(code: KernelCode) -> Iterator[SourceChange]:
    """c ? a : b made c ? b : a."""
    for _, one, other in _choices(code):
        if other[0] > other[1] or code.tokens.text(other[1] + 1) == "?":
            continue
        first, second = code.tokens.source(*one), code.tokens.source(*other)
        yield code.replaced(one[0], other[1], f"{second} : {first}", "choices exchanged")


def _choices(code: KernelCode) -> Iterator[tuple[int, Range, Range]]:
    """Of each `c ? a : b` the `?` and the tokens of both values."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) != "?" or not code.function_places[place]:
            continue
        one = place + 1, code.extents.last_of(place, 0)
        colon = one[1] + 1
        if tokens.text(colon) == ":":
            yield place, one, (colon + 1, code.extents.last_of(colon, 0))


def _booleans(code: KernelCode, position: int) -> list[str]:
    """The variables of a function that say whether something holds, the last declared first."""
    return [
        item.name
        for item in code.visible(position, "int")
        if not item.is_parameter and code.tokens.text(item.declaration) == "bool"
    ][:_MOST_FLAGS]


def _flags(code: KernelCode) -> Iterator[SourceChange]:
    """A condition that a flag of the function belongs to, too."""
    for first, last in code.conditions:
        if code.loop_of(first) is not None:
            continue
        text = code.tokens.source(first, last)
        for flag in _booleans(code, first):
            if not re.search(rf"\b{flag}\b", text):
                own = f"({text})" if "||" in text else text
                yield code.replaced(first, last, f"{flag} && {own}", "flag of a condition missing")


def _copies(code: KernelCode) -> Iterator[SourceChange]:
    """How many bytes of a copy are read, or filled with zeros, where a flag says what is inside."""
    tokens, copying = code.tokens, functions_with(code, _COPIES)
    for first, last in code.statements:
        is_own = tokens.text(first) in copying and tokens.text(first + 1) == "("
        if not is_own and not _COPIES.search(tokens.source(first, last)):
            continue
        for place in range(first, last):
            if tokens.text(place) not in _BYTES or tokens.text(place + 1) not in (")", ","):
                continue
            if tokens.text(place - 1) not in ("(", ",") or tokens.text(place - 2) == ":":
                continue
            number = tokens.text(place)
            for flag in _booleans(code, place):
                for new in (f"{flag} ? {number} : 0", f"{flag} ? 0 : {number}"):
                    yield code.replaced(place, place, new, "bytes of what lies outside")


def _both_ends(code: KernelCode) -> Iterator[SourceChange]:
    """a > n && b <= n made a >= n && b < n."""
    tokens = code.tokens
    for first, last in code.conditions:
        signs = [
            place
            for place in range(first, last + 1)
            if tokens.text(place) in _OTHER and code.extents.is_binary(place)
        ]
        if len(signs) == 2 and len(_JOINED.findall(tokens.source(first, last))) == 1:
            pair = [code.replaced(at, at, _OTHER[tokens.text(at)], "") for at in signs]
            yield together(pair, "comparisons of both ends")


def _weights(code: KernelCode) -> Iterator[SourceChange]:
    """d * d made parts[s].x * d * d where the statement reads another member of parts[s]."""
    tokens = code.tokens
    for first, last in code.statements:
        elements = dict.fromkeys(
            (tokens.source(name, end + 1), tokens.text(end + 3))
            for name, _, end in code.indices
            if first <= name <= last
            and tokens.text(end + 2) == "."
            and tokens.text(end + 3) in _MEMBERS
        )
        signs = [at for at in range(first, last) if tokens.text(at) in ("=", "+=", "+")]
        for element, own in elements:
            for member in _members(code, element):
                for sign in signs if member != own else ():
                    if sign + 1 < len(tokens) and tokens.kind(sign + 1) == "name":
                        end = code.extents.last_of(sign, 9)
                        text = tokens.source(sign + 1, end)
                        kind = "weight of a part missing"
                        if element not in text:
                            new = f"{element}.{member} * {text}"
                            yield code.replaced(sign + 1, end, new, kind)
                        elif tokens.text(sign) != "+" and f"{element}.{member}" not in text:
                            new = f"{text} * {element}.{member}"
                            yield code.replaced(sign + 1, end, new, kind)


def _members(code: KernelCode, element: str) -> list[str]:
    """The members of the elements of an array of vectors that the kernel reads, and its others."""
    array = element.partition("[")[0]
    if re.search(rf"float4\b[^;()]*\b{array}\b", code.tokens.code):
        return list(_MEMBERS)
    return list(_MEMBERS[:2])


def _last_block(code: KernelCode) -> Iterator[SourceChange]:
    """`atomicAdd(done, 1) == n` made `== n - 1`: it returns how many came before."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) not in ("==", "!=") or not code.extents.is_binary(position):
            continue
        left, right = (
            code.extents.operand_before(position),
            code.extents.operand_behind(position),
        )
        if left[0] <= left[1] and tokens.text(left[0]) in ("atomicAdd", "atomicInc"):
            if tokens.text(right[1] - 1) != "-":
                yield code.inserted(right[1], " - 1", "count of the last block")
            else:
                yield code.replaced(right[1] - 1, right[1], "", "count of the last block")


def _limits(code: KernelCode) -> Iterator[SourceChange]:
    """`c ? a : min(b, end)` made `min(c ? a : b, end)`: the limit holds in both cases."""
    tokens = code.tokens
    for place, one, other in _choices(code):
        first = code.extents.first_of(place, 0)
        condition = tokens.source(first, place - 1)
        for limited, is_first in ((one, True), (other, False)):
            opening = limited[0] + 1
            is_call = tokens.text(limited[0]) in _LIMITS and tokens.text(opening) == "("
            if not is_call or tokens.partners.get(opening) != limited[1]:
                continue
            own = code.extents.arguments(opening)
            if len(own) != 2:
                continue
            for kept, limit in (own, own[::-1]):
                value = tokens.source(*kept)
                both = (value, tokens.source(*other)) if is_first else (tokens.source(*one), value)
                choice = f"{condition} ? {both[0]} : {both[1]}"
                new = f"{tokens.text(limited[0])}({choice}, {tokens.source(*limit)})"
                yield code.replaced(first, other[1], new, "limit of one case alone")
