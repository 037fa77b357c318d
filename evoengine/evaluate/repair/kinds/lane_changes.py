"""Parts of expressions of lanes: which lane is read, which one writes, which ones are compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_PATTERNS = (("/", "8", "%", "2"), ("%", "16"), ("/", "16"), ("%", "8"))
# `lane / 16`, `lane / 8 % 2` and `lane % 16`, and what the last one is made of
_MATRICES = (
    (("/", "16"), ("/", "8", "%", "2"), ("%", "16"), ("/", "16"), "% 8"),
    ((">>", "4"), (">>", "3", "&", "1"), ("&", "15"), (">>", "4"), "& 7"),
)
_BITS = (1, 3, 7)  # that are the same in all lanes which share something
_NEAREST = 6  # variables, the last declared first
_MOST_CONDITIONS = 4
_FIRST_LANE = "threadIdx.x % 32 == 0"

Range = tuple[int, int]


def lane_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Lanes of ldmatrix and shuffles, conditions of one lane, neighbours that are compared."""
    if "ldmatrix" in code.tokens.code:
        yield from _matrices(code)
        yield from _exchanged_matrices(code)
    if "mma" in code.tokens.code:
        yield from _registers(code)
    yield from _groups_of_lanes(code)
    yield from _lanes_of_loops(code)
    yield from _single(code)
    yield from _compared(code)
    yield from _threads(code)
    yield from _barriers(code)


def _matrices(code: KernelCode) -> Iterator[SourceChange]:
    """The row and the chunk that a lane names for ldmatrix: lane % 16, lane / 16 and the like."""
    tokens = code.tokens
    for place, end, sort in code.atoms():
        if sort != "int" or place != end or not code.function_places[place]:
            continue
        for pattern in _PATTERNS:
            if not _stands_behind(code, place, pattern):
                continue
            for other in _PATTERNS:
                if other != pattern:
                    new = f"{tokens.text(place)} {' '.join(other)}"
                    kind = "lanes of a matrix"
                    yield code.replaced(place, place + len(pattern), new, kind)
            break


def _exchanged_matrices(code: KernelCode) -> Iterator[SourceChange]:
    """The second and the third matrix of ldmatrix exchanged: `lane / 16` and `lane / 8 % 2` of a
    statement, each in place of the other, or `lane % 16` and `lane / 16` made
    `lane / 16 * 8 + lane % 8` and `lane / 8 % 2`.
    """
    for first, last in code.statements:
        for uppers, middles, rows, wide, narrow in _MATRICES:
            found = {
                pattern: list(_places(code, first, last, pattern))
                for pattern in (uppers, middles, rows)
            }
            pieces = [
                *((place, middles, "{}") for place in found[uppers]),
                *((place, uppers, "{}") for place in found[middles]),
            ]
            if found[rows] and found[uppers] and not found[middles]:
                pieces = [(place, middles, "{}") for place in found[uppers]]
                pieces += [
                    (place, wide, f"({{}} * 8 + ({{name}} {narrow}))") for place in found[rows]
                ]
            elif not found[uppers] or not found[middles]:
                continue
            changes = []
            for (begin, end), pattern, form in pieces:
                name = code.tokens.text(begin)
                value = f"({name} {' '.join(pattern)})"
                changes.append(code.replaced(begin, end, form.format(value, name=name), ""))
            yield together(changes, "matrices of a load exchanged")


def _places(
    code: KernelCode, first: int, last: int, pattern: tuple[str, ...]
) -> Iterator[tuple[int, int]]:
    """Where a variable stands before the signs and numbers of `pattern`, and no more of them."""
    tokens, count = code.tokens, len(pattern)
    for place in range(first, last - count + 1):
        is_name = tokens.kind(place) == "name" and tokens.text(place + count + 1) not in ("%", "&")
        if is_name and _stands_behind(code, place, pattern):
            yield place, place + count


def _stands_behind(code: KernelCode, place: int, pattern: tuple[str, ...]) -> bool:
    """Whether the tokens behind the one at `place` are those of `pattern`."""
    return all(code.tokens.text(at) == text for at, text in enumerate(pattern, start=place + 1))


def _registers(code: KernelCode) -> Iterator[SourceChange]:
    """`e % 2` made `e / 2 % 2`, and the other way round: which half of the rows, which column."""
    for first, last in code.statements:
        for place, end in _places(code, first, last, ("%", "2")):
            name = code.tokens.text(place)
            yield code.replaced(place, end, f"{name} / 2 % 2", "half of a fragment")
        for place, end in _places(code, first, last, ("/", "2", "%", "2")):
            yield code.replaced(place, end, f"{code.tokens.text(place)} % 2", "half of a fragment")


def _read_lanes(code: KernelCode) -> Iterator[Range]:
    """First and last token of the lane that each __shfl_sync reads."""
    for opening in range(1, len(code.tokens)):
        if code.tokens.text(opening - 1) == "__shfl_sync" and opening in code.tokens.partners:
            yield from code.extents.arguments(opening)[2:3]


def _groups_of_lanes(code: KernelCode) -> Iterator[SourceChange]:
    """`lane + k` made `(lane & ~1) + k` where another lane is read: the first one of a group."""
    for lane in _read_lanes(code):
        for first, last, sort in code.atoms_between(*lane):
            if sort == "int" and code.tokens.text(last + 1) in ("+", ")", ","):
                for bits in _BITS:
                    new = f"({code.tokens.source(first, last)} & ~{bits})"
                    yield code.replaced(first, last, new, "first lane of a group")


def _lanes_of_loops(code: KernelCode) -> Iterator[SourceChange]:
    """`__shfl_sync(mask, value, 0)` made `__shfl_sync(mask, value, k)`, in a loop over k."""
    for first, last in _read_lanes(code):
        for item in code.visible(first, "int") if code.tokens.kind(first) == "number" else ():
            if item.position >= 0 and code.loop_of(item.position) is not None:
                yield code.replaced(first, last, item.name, "lane of the loop in a shuffle")


def _single(code: KernelCode) -> Iterator[SourceChange]:
    """A condition of one lane before another one, where what follows is done for all by one."""
    tokens = code.tokens
    known: dict[str, Range] = {}
    for first, last in code.conditions:
        if last - first <= 6 and re.search(r"[\w.] == 0$", tokens.source(first, last)):
            known.setdefault(tokens.source(first, last), (first, last))
    for place in range(len(tokens)):
        if tokens.text(place) != "if" or place + 1 not in tokens.partners:
            continue
        closing = tokens.partners[place + 1]
        body = code.body(closing)
        does_for_all = any(
            tokens.text(at).startswith("atomic") for at in range(body[0], body[1] + 1)
        )
        own = tokens.source(place + 2, closing - 1)
        if not does_for_all or "== 0" in own:
            continue
        texts = [it for it, pair in known.items() if code.can_stand(*pair, place)]
        for text in dict.fromkeys([*texts[:_MOST_CONDITIONS], _FIRST_LANE, "threadIdx.x == 0"]):
            new = f"{text} && {_bracketed(own, '||')}"
            yield code.replaced(place + 2, closing - 1, new, "one lane for all missing")


def _compared(code: KernelCode) -> Iterator[SourceChange]:
    """What a shuffle brings belongs to another segment: `&& of == segment`; the last lane has no
    neighbour: `lane == 31 ||`.
    """
    tokens = code.tokens
    for item in code.names.all:
        opening = item.position + 3
        shuffle = tokens.text(item.position + 2)
        if tokens.text(item.position + 1) != "=" or not shuffle.startswith("__shfl"):
            continue
        arguments = code.extents.arguments(opening)
        if item.sort != "int" or len(arguments) < 2 or arguments[1][0] != arguments[1][1]:
            continue
        own = tokens.source(*arguments[1])
        for first, last in code.conditions:
            if not item.position < first <= item.last or code.loop_of(first) is not None:
                continue
            text = tokens.source(first, last)
            if not re.search(rf"\b{item.name}\b", text):
                for sign in ("==", "!="):
                    new = f"{_bracketed(text, '||')} && {item.name} {sign} {own}"
                    yield code.replaced(first, last, new, "segment of another lane")
            elif "!=" in text and shuffle in ("__shfl_down_sync", "__shfl_up_sync"):
                number = 31 if shuffle == "__shfl_down_sync" else 0
                for lane in _lanes(code, first):
                    new = f"{lane} == {number} || {text}"
                    yield code.replaced(first, last, new, "lane without a neighbour")


def _lanes(code: KernelCode, position: int) -> list[str]:
    """The variables that are the number of a lane, or what is its number."""
    tokens = code.tokens
    names = [
        item.name
        for item in code.visible(position, "int")
        if tokens.text(item.position + 1) == "="
        and re.match(r"threadIdx\.x (% 32|& 31)", tokens.code[tokens.starts[item.position + 2] :])
    ]
    return names or ["threadIdx.x % 32"]


def _bracketed(text: str, sign: str) -> str:
    return f"({text})" if sign in text else text


def _threads(code: KernelCode) -> Iterator[SourceChange]:
    """`threadIdx.x == 0` made `threadIdx.x % 32 == 0`: one of each warp, not of the block."""
    tokens = code.tokens
    for first, last in code.conditions:
        for place in range(first, last + 1):
            if tokens.text(place) != "threadIdx" or tokens.text(place - 1) in ("/", "%", "*"):
                continue
            axis = place + 2
            if tokens.text(axis + 1) == "==":
                yield code.inserted(axis, " % 32", "lane for a thread")


def _barriers(code: KernelCode) -> Iterator[SourceChange]:
    """The number of a named barrier, which every group of warps has its own of."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        if "asm" not in text or not re.search(r"bar(rier)?(\.cta)?\.(sync|arrive)", text):
            continue
        for place in range(first, last + 1):
            if tokens.kind(place) != "number" or tokens.text(place - 1) != "(":
                continue
            for item in code.visible(place, "int")[:_NEAREST]:
                new = f"{item.name} + {tokens.text(place)}"
                yield code.replaced(place, place, new, "barrier of another group")
