"""Who does a statement: one thread, one of each warp, or all at once by atomic additions; and what
lanes give one another along with a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_FIRST_OF_ALL = re.compile(r"(\w+(?:\.x)?) == 0")
_FIRST_OF_WARP = re.compile(r"(\w+(?:\.x)?) (?:% 32|& 31) == 0")
_PART = re.compile(r"\b(?:const )?(?:int|unsigned)?\b.*[%/&]|>>")
_MAXIMUM = re.compile(r"f?(max|min)f?\(\s*(.+?), (.+)\)", re.DOTALL)
_SHUFFLED = re.compile(r"(__shfl\w*_sync)\s*\(([^,]+), (\w+), ([^;]+)\)", re.DOTALL)
_MOST_PARTS = 4  # coordinates of a thread
_COMPANIONS = 3  # statements behind a shuffle


def owner_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Guards, atomic additions and shuffles of companions that are missing."""
    blocks = StatementBlocks(code)
    yield from _of_each_warp(code)
    yield from _guarded(code, blocks)
    yield from _atomic(code, blocks)
    yield from _compared(code)
    yield from _companions(code, blocks)
    yield from _last_ones(code, blocks)


def _of_each_warp(code: KernelCode) -> Iterator[SourceChange]:
    """`threadIdx.x == 0` made `threadIdx.x % 32 == 0`, and the other way round."""
    for first, last in code.conditions:
        text = code.tokens.source(first, last)
        for pattern, other in ((_FIRST_OF_WARP, "{} == 0"), (_FIRST_OF_ALL, "{} % 32 == 0")):
            found = pattern.search(text)
            if found is None or re.search(r"(?i)lane|warp|round|step|block|stage|split", found[1]):
                continue
            new = text.replace(found[0], other.format(found[1]), 1)
            yield code.replaced(first, last, new, "one of each warp")
            break


def _adds(text: str) -> bool:
    return re.search(r"\+=|\batomic\w+\s*\(", text) is not None


def _guarded(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """What every lane adds and one alone should: `if (threadIdx.x % 32 == 0) atomicAdd(...)`."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        if not _adds(text) or blocks.declared(first, last):
            continue
        is_atomic = "atomic" in text
        parts = [
            item.name
            for item in code.visible(first, "int")
            if (value := blocks.first_value(item)) is not None
            and blocks.is_constant(item)
            and not blocks.is_known(item)
            and re.search(r"[%&/]|>>|threadIdx", tokens.source(*value))
            and not re.search(r"blockIdx", tokens.source(*value))
        ]
        conditions = [f"{name} == 0" for name in parts[:_MOST_PARTS]]
        if is_atomic:
            conditions += ["threadIdx.x % 32 == 0", "threadIdx.x == 0"]
        opening = tokens.partners.get(first - 1, -1) if tokens.text(first - 1) == ")" else -1
        is_conditional = opening > 0 and tokens.text(opening - 1) == "if"
        for condition in conditions:
            if is_conditional:
                own = tokens.source(opening + 1, first - 2)
                simple = re.fullmatch(r"[\w.\[\] <>=!+*/%-]+", own)
                new = f"{condition} && {own if simple else f'({own})'}"
                if condition not in own:
                    yield code.replaced(opening + 1, first - 2, new, "one of them alone")
            else:
                yield code.replaced(first, last, f"if ({condition}) {text}", "one of them alone")


def _atomic(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`count += v` in shared memory, `*sum += v`, `++bins[i]`, `top = max(top, v)` made atomic."""
    tokens, kind = code.tokens, "atomic operation missing"
    shared = {item.name for item in code.names.all if blocks.is_shared(item)}
    far = shared | {item.name for item in code.names.all if item.sort == "pointer"}
    for first, last in code.statements:
        text = tokens.source(first, last - 1)
        start = first + 1 if tokens.text(first) in ("*", "++") else first
        name = tokens.text(start)
        if name not in far or blocks.declared(first, last):
            continue
        sign = next((at for at in range(start, last) if tokens.text(at) in ("+=", "-=", "=")), -1)
        target = tokens.source(start, sign - 1) if sign > start else ""
        pointed = f"&{target}" if start == first else target
        is_place = start > first or target.endswith("]") or name in shared
        increment = re.fullmatch(r"\+\+([^=]+)|([^=]+)\+\+", text)
        if increment is not None:
            new = f"atomicAdd(&{(increment[1] or increment[2]).strip()}, 1)"
            yield code.replaced(first, last, f"{new};", kind)
        if sign < 0 or not is_place:
            continue
        value = tokens.source(sign + 1, last - 1)
        if tokens.text(sign) == "+=" and target.endswith("]"):
            continue  # counter_changes has these
        if tokens.text(sign) in ("+=", "-="):
            minus = "-" if tokens.text(sign) == "-=" else ""
            shown = f"-({value})" if minus else value
            yield code.replaced(first, last, f"atomicAdd({pointed}, {shown});", kind)
        elif found := _MAXIMUM.fullmatch(value):
            others = [part for part in found.groups()[1:] if part.strip() != target.strip()]
            if len(others) == 1:
                new = f"atomic{found[1].capitalize()}({pointed}, {others[0]});"
                yield code.replaced(first, last, new, kind)


def _compared(code: KernelCode) -> Iterator[SourceChange]:
    """`if (v > seen) atomicExch(place, v)` made to compare and exchange until it is so, or to
    take the maximum or the sum.
    """
    tokens = code.tokens
    for first, last in code.statements:
        if tokens.text(first) != "atomicExch" or first + 1 not in tokens.partners:
            continue
        arguments = [tokens.source(*pair) for pair in code.extents.arguments(first + 1)]
        if len(arguments) != 2:
            continue
        opening = tokens.partners.get(first - 1, -1) if tokens.text(first - 1) == ")" else -1
        place, value = arguments
        for name in ("atomicMax", "atomicMin", "atomicAdd"):
            new = f"{name}({place}, {value});"
            yield code.replaced(first, last, new, "atomic operation of another kind")
        if opening < 0 or tokens.text(opening - 1) != "if":
            continue
        condition = tokens.source(opening + 1, first - 2)
        names = [
            text
            for at in range(opening + 1, first - 1)
            if tokens.kind(at) == "name"
            and (own := code.names.at(at)) is not None
            and own.sort == "int"
            and (text := own.name) not in value
        ]
        for seen in dict.fromkeys(names):
            new = (
                f"while ({condition}) {{ const int found = atomicCAS({place}, {seen}, {value});"
                f" if (found == {seen}) break; {seen} = found; }}"
            )
            yield code.replaced(opening - 1, last, new, "atomic operation of another kind")


def _companions(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`take(top, place, other, place)`, where `other` is the top of another lane, made to take
    the place of that lane as well.
    """
    tokens = code.tokens
    for number, (first, last) in enumerate(code.statements):
        found = _SHUFFLED.search(tokens.source(first, last))
        declared = blocks.declared(first, last)
        if found is None or not declared:
            continue
        for begin, end in code.statements[number + 1 : number + 1 + _COMPANIONS]:
            is_near = tokens.enclosing[begin] == tokens.enclosing[first]
            if not is_near or not declared & blocks.reads(begin, end):
                continue
            yield from _companions_in(code, (last, begin, end), declared | {found[3]}, found)


def _companions_in(
    code: KernelCode, places: tuple[int, int, int], known: set[str], found: re.Match[str]
) -> Iterator[SourceChange]:
    """A running value of a statement that another lane's takes the place of."""
    tokens, (before, begin, end) = code.tokens, places
    is_branch = tokens.text(begin - 1) in (")", "else")
    for at in range(begin, end):
        own = code.names.at(at) if tokens.kind(at) == "name" else None
        is_value = own is not None and own.sort in ("int", "float") and own.name not in known
        if own is None or not is_value or own.is_parameter or own.position >= begin:
            continue
        if tokens.text(at + 1) in ("=", "+=", "[", ".") or own.name in found[4]:
            continue
        if code.loop_of(own.position) is not None:
            continue
        call = f"{found[1]}({found[2]}, {own.name}, {found[4]})"
        if not is_branch:
            yield code.replaced(at, at, call, "companion of a shuffle missing")
            continue
        start, _ = tokens.span(before + 1, before + 1)
        stop = tokens.span(at, at)[0]
        new = f"const auto evo_other = {call}; {tokens.code[start:stop]}evo_other"
        yield code.replaced(before + 1, at, new, "companion of a shuffle missing")


def _last_ones(code: KernelCode, blocks: StatementBlocks) -> Iterator[SourceChange]:
    """`if (i < n) sum += x[i]` behind `for (; i + 1 < n; i += 2)`: the one that is left over."""
    tokens = code.tokens
    for loop in blocks.loops():
        ends = code.head_ends(loop.opening) if tokens.text(loop.place) == "for" else []
        if len(ends) != 2:
            continue
        bound = re.fullmatch(
            r"(\w+) \+ (\d+) < (.+)", tokens.source(ends[0] + 1, ends[1] - 1), re.DOTALL
        )
        own = code.names.at(ends[0] + 1)
        if bound is None or own is None or own.position > loop.place:
            continue
        name, more, end = bound.groups()
        is_last = tokens.text(loop.last + 1) != "}" or tokens.text(loop.last) == "}"
        for first, last in code.statements:
            if not loop.first <= first <= last <= loop.last or not is_last:
                continue
            text = tokens.source(first, last)
            if name in text and not re.search(rf"\b{name} \+ \d", text):
                head = (
                    f"if ({name} < {end})" if more == "1" else f"for (; {name} < {end}; ++{name})"
                )
                yield code.inserted(loop.last, f" {head} {text}", "last ones left out")
                break
