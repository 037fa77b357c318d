"""Running values that lack an update: by a variable that nothing reads, by the factor of a new
maximum, by a reduction over the lanes; and loops that a flag should end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.statement_blocks import StatementBlocks

_EXPONENTIAL = re.compile(r"\b(\w*exp2?\w*|ex2\w*)\s*\(")
_OF_ONE = re.compile(r"\b(float|int|double)\s+(\w+)\s*\(\s*(?:const\s+)?\1\s+\w+\s*\)\s*\{")
_NEWER = re.compile(r"(\w+) = (?:fmaxf|fmax|max|__hmax)\((\w+(?:\[[^\]]*\])*), ")
_RISEN = re.compile(r"(\w+) = (\w+)")
_MOST_PLACES = 4  # at which a loop may end
_MOST_TARGETS = 6  # running values, the last declared first
_MOST_SIZES = 4


def update_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Updates of running values, and ends of loops, that are missing."""
    blocks = StatementBlocks(code)
    for item in _unread(code, blocks):
        yield from _ended(code, blocks, item)
        yield from _updated(code, blocks, item)
    yield from _rescaled(code, blocks)
    yield from _rescaled_where_it_rises(code, blocks)
    yield from _reduced(code, blocks)
    yield from _divided(code, blocks)


def _unread(code: KernelCode, blocks: StatementBlocks) -> Iterator[DeclaredName]:
    """The variables that nothing reads, though they may be written."""
    read: set[str] = set()
    for place, _, _ in code.atoms():
        following = code.tokens.text(code.extents.postfix(place) + 1)
        if following != "=":
            read.add(code.tokens.text(place))
    others = {item.name for item in code.unread}
    for item in code.names.all:
        if item.is_parameter or item.position < 0 or item.sort in ("pointer", "array"):
            continue
        own = code.tokens.text(item.position)
        unread = item.name not in read if item.sort in ("int", "float") else item.name in others
        if unread and own and not item.name.isupper() and code.function_places[item.position]:
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
    if item.sort != "int":
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


def _updated(
    code: KernelCode, blocks: StatementBlocks, item: DeclaredName
) -> Iterator[SourceChange]:
    """`wanted -= found`, where nothing reads what was found."""
    places = _places(code, blocks, item)
    others = [
        other
        for other in code.visible(item.position, item.sort)
        if not other.is_parameter
        and other.position >= 0
        and not other.name.isupper()
        and not blocks.is_constant(other)
        and not blocks.is_shared(other)
    ]
    operators = ("-=", "+=", "=", "*=") if item.sort in ("int", "float") else ("=",)
    ends = [place for place in places if code.tokens.text(place + 1) == "}"]
    for place in ends:
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


def _reduced(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum = warp_sum(sum)` behind the loop that adds up, where no function gets the sum."""
    tokens = code.tokens
    functions = [
        (sort, name)
        for sort, name in _OF_ONE.findall(tokens.code)
        if re.search(rf"\b{name}\((\w|[\[\]. ])+\)", tokens.code)
    ]
    if not functions:
        return
    called = {
        tokens.text(place + 2)
        for place in range(len(tokens))
        if tokens.text(place + 1) == "(" and tokens.text(place) in {name for _, name in functions}
    }
    for _, items in blocks.blocks():
        for loop in items:
            if tokens.text(loop.first) != "for":
                continue
            changed = blocks.changed(loop.first, loop.last)
            for item in code.names.visible(loop.first):
                is_sum = item.name in changed and item.name not in called
                if not is_sum or item.sort not in ("int", "float") or item.is_parameter:
                    continue
                for sort, name in functions:
                    if sort == tokens.text(item.declaration):
                        new = f" {item.name} = {name}({item.name});"
                        yield code.inserted(loop.last, new, "reduction missing")


def _divided(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`sum.x /= N, sum.y /= N` behind the loop that adds up in a vector."""
    tokens = code.tokens
    for _, items in blocks.blocks():
        for loop in items:
            if tokens.text(loop.first) != "for" or "shfl" in tokens.source(loop.first, loop.last):
                continue
            members: dict[str, list[str]] = {}
            for place in blocks.changes(loop.first, loop.last):
                own = code.names.at(place)
                is_member = tokens.text(place + 1) == "." and tokens.text(place + 3) == "+="
                if own is not None and is_member and own.position < loop.first:
                    found = members.setdefault(own.name, [])
                    found += {tokens.text(place + 2)} - set(found)
            for name, parts in members.items():
                for size in code.sizes(loop.last)[:_MOST_SIZES] if len(parts) > 1 else ():
                    new = ", ".join(f"{name}.{part} /= {size}" for part in parts)
                    yield code.inserted(loop.last, f" {new};", "mean not taken")
