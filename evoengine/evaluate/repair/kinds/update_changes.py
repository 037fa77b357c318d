"""Running values that lack an update: by a variable that nothing reads, by the factor of a new
maximum, by a reduction over the lanes; and loops that a flag should end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_EXPONENTIAL = re.compile(r"\b(\w*exp2?\w*|ex2\w*)\s*\(")
_NEWER = re.compile(r"(\w+) = (?:fmaxf|fmax|max|__hmax)\((\w+(?:\[[^\]]*\])*), ")
_RISEN = re.compile(r"(\w+) = (\w+)")
_DECIDED = re.compile(r"[=!<>]=|[<>!]|&&|\|\||\b(true|false)\b|__(ballot|any|all)")
_OF_GRID = re.compile(r"\b(threadIdx|blockIdx|blockDim|gridDim)\b|\b(lane|warp|tid|t)\b")
_MOST_PLACES = 4  # at which a loop may end
_MOST_TARGETS = 6  # running values, the last declared first
_MOST_FACTORS = 3  # the last declared first


def update_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Updates of running values, and ends of loops, that are missing."""
    blocks = StatementBlocks(code)
    for item in _unread(code, blocks):
        yield from _ended(code, blocks, item)
        yield from _updated(code, blocks, item)
    yield from _decided(code, blocks)
    yield from _rescaled(code, blocks)
    yield from _rescaled_where_it_rises(code, blocks)
    yield from _rescaled_element(code, blocks)
    yield from _neighbours(code, blocks)


def _unread(code: KernelCode, blocks: StatementBlocks) -> Iterator[DeclaredName]:
    """The variables that nothing reads, though they may be written."""
    read: set[str] = set()
    for place, _, _ in code.atoms():
        following = code.tokens.text(code.extents.postfix(place) + 1)
        if following != "=":
            read.add(code.tokens.text(place))
    for item in code.names.all:
        if item.is_parameter or item.position < 0 or item.sort in ("pointer", "array"):
            continue
        is_own = not item.name.isupper() and code.function_places[item.position]
        begun = blocks.first_value(item)
        of_grid = begun is not None and _OF_GRID.search(code.tokens.source(*begun))
        if item.name not in read and is_own and not of_grid:
            yield item


def _places(code: KernelCode, blocks: StatementBlocks, item: DeclaredName) -> list[int]:
    """The tokens behind which a variable has a value, between statements of its block or of
    blocks in which it is given one.
    """
    tokens = code.tokens
    writes = [item.position] if blocks.first_value(item) is not None else []
    writes += [
        place
        for place in blocks.changes(item.position + 1, item.last)
        if tokens.text(place) == item.name
    ]
    if not writes:
        writes = [item.position]
    found: list[int] = []
    for write in writes:
        block = write
        while (block := tokens.enclosing[block]) >= 0 and block >= tokens.enclosing[item.position]:
            if tokens.text(block) == "{" and block in tokens.partners:
                found += [one.last for one in blocks.items(block) if one.last >= write]
    return sorted(set(found))


def _ended(code: KernelCode, blocks: StatementBlocks, item: DeclaredName) -> Iterator[SourceChange]:
    """`if (found) break` at the end of a loop, or before."""
    if item.sort != "int" or not _is_flag(code, item):
        return
    loops = [loop for loop in blocks.loops() if loop.first < item.position < loop.last]
    words = ("break", "continue") if loops else ("return",)
    places = _places(code, blocks, item)
    for place in dict.fromkeys([*places[-1:], *places[:_MOST_PLACES]]):
        if place >= (loops[-1].last if loops else item.last):
            continue
        for word in words:
            for flag in (item.name, f"!{item.name}"):
                yield code.inserted(place, f" if ({flag}) {word};", "flag that ends nothing")


def _is_flag(code: KernelCode, item: DeclaredName) -> bool:
    """Whether a variable is given what a comparison or a vote says."""
    text = code.tokens.source(item.position, item.last)
    values = re.findall(rf"\b{item.name} [|&]?= ([^;]*);", text)
    is_bool = code.tokens.text(item.declaration) == "bool"
    return is_bool or any(_DECIDED.search(value) for value in values)


def _decided(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`if (done) break` at the end of a loop, for what a vote of the lanes or a comparison says."""
    tokens = code.tokens
    for loop in blocks.loops():
        body = blocks.items(loop.first) if tokens.text(loop.first) == "{" else []
        for item in code.names.all:
            value = blocks.first_value(item) if item.sort == "int" else None
            is_own = any(one.first <= item.position <= one.last for one in body)
            if value is None or not is_own:
                continue
            is_bool = tokens.text(item.declaration) == "bool"
            text = f" if ({item.name}) break;"
            is_vote = re.search(r"__(ballot|any|all)", tokens.source(*value)) is not None
            in_use = text.strip() in tokens.source(loop.first, loop.last)
            if (is_bool or is_vote) and not in_use:
                yield code.inserted(body[-1].last, text, "flag that ends no loop")


def _updated(
    code: KernelCode, blocks: StatementBlocks, item: DeclaredName
) -> Iterator[SourceChange]:
    """`wanted -= found`, where nothing reads what was found."""
    operators = ["-=", "+=", "=", "*="] if item.sort in ("int", "float") else ["="]
    if item in code.unread and item.sort in ("int", "float"):
        operators.remove("=")  # unread_changes has these
    for place in _places(code, blocks, item):
        if code.tokens.text(place + 1) != "}":
            continue
        others = [
            other
            for other in code.visible(place, item.sort)
            if other.name != item.name
            and not (other.is_parameter or other.position < 0 or other.name.isupper())
            and not (blocks.is_constant(other) or blocks.is_shared(other))
        ]
        for other in others[:_MOST_TARGETS]:
            for operator in operators:
                new = f" {other.name} {operator} {item.name};"
                yield code.inserted(place, new, "update by what nothing reads missing")


def _exponentials(code: KernelCode) -> str:
    """The exponential function that the kernel uses most; empty without one."""
    found = Counter(_EXPONENTIAL.findall(code.tokens.code))
    return found.most_common(1)[0][0] if found else ""


def _sums(code: KernelCode, blocks: StatementBlocks, position: int, old: str) -> list[str]:
    """The running sums at a place: floating values that are added to somewhere behind it."""
    tokens = code.tokens
    found = []
    for item in code.visible(position, "float"):
        if item.is_parameter and item.name not in blocks.changed(position, item.last):
            continue
        if item.name == old or blocks.is_constant(item):
            continue
        for place in range(code.function_of(position), item.last):
            is_own = tokens.text(place) == item.name
            if is_own and tokens.text(place + 1) in ("+=", "=") and code.names.at(place) == item:
                found.append(item.name)
                break
    return found[:_MOST_TARGETS]


def _rescaled(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum *= exp(top - larger)` behind `larger = fmaxf(top, value)`."""
    tokens, function = code.tokens, _exponentials(code)
    if not function:
        return
    for first, last in code.statements:
        for newer, old in _NEWER.findall(tokens.source(first, last)):
            name = old.partition("[")[0]
            for target in _sums(code, blocks, last, name):
                if target == newer:
                    continue
                new = f" {target} *= {function}({old} - {newer});"
                yield code.inserted(last, new, "rescaling by a new maximum missing")


def _rescaled_where_it_rises(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`if (value > top) top = value` made to rescale the sum first."""
    tokens, function = code.tokens, _exponentials(code)
    for first, last in code.statements if function else ():
        found = _RISEN.fullmatch(tokens.source(first, last - 1))
        opening = tokens.partners.get(first - 1, -1)
        if found is None or opening < 0 or tokens.text(opening - 1) != "if":
            continue
        condition = tokens.source(opening + 1, first - 2)
        old, newer = found.groups()
        if not re.fullmatch(rf"{newer} >=? {old}|{old} <=? {newer}", condition):
            continue
        for target in _sums(code, blocks, first, old):
            if target != newer:
                new = f"{target} *= {function}({old} - {newer}), {old} = {newer};"
                yield code.replaced(first, last, new, "rescaling by a new maximum missing")


def _rescaled_element(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum[i] += part` made `sum[i] = sum[i] * factor + part`, the factor an exponential."""
    tokens = code.tokens
    for first, last in code.statements:
        end = code.extents.postfix(first)
        own = code.names.at(first)
        if own is None or tokens.text(end + 1) != "+=" or tokens.has_any(first, last, {","}):
            continue
        if own.sort not in ("float", "array"):
            continue
        target, value = tokens.source(first, end), tokens.source(end + 2, last - 1)
        factors = [
            item.name
            for item in code.visible(first, "float")
            if item.name not in tokens.source(first, last)
            and (begun := blocks.first_value(item)) is not None
            and _EXPONENTIAL.search(tokens.source(*begun))
        ]
        for factor in factors[:_MOST_FACTORS]:
            new = f"{target} = {target} * {factor} + ({value});"
            yield code.replaced(first, last, new, "rescaling of a sum missing")


def _neighbours(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`out[2 * i] *= scale` once more for its neighbour, where nothing does so for it."""
    tokens = code.tokens
    for first, last in code.statements:
        end = code.extents.postfix(first)
        is_update = code.names.at(first) is not None and tokens.text(end + 1) in ("*=", "+=", "=")
        if not is_update or tokens.text(end) != "]" or blocks.declared(first, last):
            continue
        opening = tokens.partners[end]
        index = tokens.source(opening + 1, end - 1)
        target = tokens.source(first, opening)
        behind = tokens.source(first, min(blocks.last_of(last + 1), len(tokens) - 1))
        if not re.search(r"\b2 \*|\* 2\b", index) or f"{target}{index} + 1]" in behind:
            continue
        rest = tokens.source(end + 1, last)
        for new in dict.fromkeys((rest, rest.replace(f"[{index}]", f"[{index} + 1]"))):
            text = f" {target}{index} + 1] {new}"
            yield code.inserted(last, text, "statement of the neighbour missing")
