"""What blocks or lanes do together: who has the last ticket, who sets a counter back, whose number
a lane takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.source_change import SourceChange

_ATOMIC = re.compile(r"\batomic(?:Add|Inc)\(")
_COUNTED = re.compile(r"\batomicAdd\((&?)([^,;]+), 1u?\)")
_LANES = re.compile(r"for \(int (\w+) = 0; \1 < (?:32|min\(32[^;]*\)|count); \+\+\1\)")
_MOST_SHUFFLES = 5  # of one value
_SHARED_LOOP = re.compile(r"= [^;]*% (\d+); [^;]*; \w+ \+= \1\)")
_SHUFFLED_DOWN = re.compile(r"__shfl_down_sync\(([^,()]+), ([\w.\[\]]+), [^,;]+\)")
_BARE = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\b(?! *\()")
_MEMBER = re.compile(r"\w\.([A-Za-z_]\w*)")
_SINGLE = "threadIdx.x == 0"
_MOST_OBJECTS = 3  # of a block

Range = tuple[int, int]


def joint_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Tickets, counters, shares that are added up, numbers of other lanes."""
    yield from _tickets(code)
    yield from _set_back(code)
    yield from _overwritten(code)
    yield from _shuffled(code)
    yield from _kept_by_the_first_lane(code)
    yield from _reduced_twice(code)
    yield from _shared_loops(code)
    yield from _lanes_without(code)
    yield from _lanes_that_keep(code)
    yield from _members(code)
    yield from _second_group(code)


def _tickets(code: KernelCode) -> Iterator[SourceChange]:
    """`ticket == SPLITS` made `SPLITS - 1`, where the ticket is what was counted before; likewise
    the last argument of atomicInc.
    """
    tokens = code.tokens
    counted = {
        item.name for item, value in first_values(code) if _ATOMIC.match(tokens.source(*value))
    }
    counted |= set(re.findall(r"\b(\w+) = atomic(?:Add|Inc)\(", tokens.code))
    spots: list[Range] = []
    for place in range(len(tokens)):
        if tokens.text(place) in ("==", "!=") and tokens.text(place - 1) in counted:
            spots.append(code.extents.operand_behind(place))
        elif tokens.text(place) == "atomicInc" and place + 1 in tokens.partners:
            spots += code.extents.arguments(place + 1)[1:2]
    for _, last in spots:
        if tokens.text(last - 1) == "-":
            yield code.replaced(last - 1, last, "", "count of the last block")
        else:
            yield code.inserted(last, " - 1", "count of the last block")


def _set_back(code: KernelCode) -> Iterator[SourceChange]:
    """`if (threadIdx.x == 0) arrived[tile] = 0` behind `if (!is_last) return`."""
    tokens = code.tokens
    counters = dict.fromkeys(re.findall(r"\batomicAdd\(&([^,;]+), 1u?\)", tokens.code))
    counters |= dict.fromkeys(
        f"*{it}" for it in re.findall(r"\batomicAdd\((\w+), 1u?\)", tokens.code)
    )
    single = f"{_SINGLE} && threadIdx.y == 0" if "threadIdx.y" in tokens.code else _SINGLE
    for counter in counters:
        if re.search(rf"(?<![\w.]){re.escape(counter)} = 0", tokens.code):
            continue
        behind = tokens.code.find("atomicAdd(")
        for first, last in code.statements:
            is_return = tokens.text(first) == "return" and tokens.text(first - 1) == ")"
            if is_return and tokens.span(first, last)[0] > behind:
                new = f" if ({single}) {counter} = 0;"
                yield code.inserted(last, new, "counter of the last block kept")


def _overwritten(code: KernelCode) -> Iterator[SourceChange]:
    """`sums[i] = value` made atomicAdd(&sums[i], value), where scratch begins with zeros."""
    tokens = code.tokens
    if not re.search(r"init: *0", code.source[: code.offset]):
        return
    blocks = StatementBlocks(code)
    for first, last in code.statements:
        end = code.extents.postfix(first)
        own = code.names.at(first)
        is_store = tokens.text(end + 1) == "=" and tokens.text(end) == "]"
        if own is None or own.sort != "pointer" or not own.is_parameter or not is_store:
            continue
        if blocks.declared(first, last) or "float" not in code.type_words(own):
            continue
        value = tokens.source(end + 2, last - 1)
        new = f"atomicAdd(&{tokens.source(first, end)}, {value});"
        yield code.replaced(first, last, new, "share that overwrites the others")


def _shuffled(code: KernelCode) -> Iterator[SourceChange]:
    """`mine[r] * b[k]` made `__shfl_sync(~0u, mine[r], k)`: the number is that of lane k."""
    tokens = code.tokens
    if "lane" not in tokens.code and "threadIdx" not in tokens.code:
        return
    mask = "0xffffffffu" if "0xffffffffu" in tokens.code else "~0u"
    loops = _LANES.findall(tokens.code)
    for first, last in code.statements if loops else ():
        text = tokens.source(first, last)
        if "shfl" in text or not re.search(r"\+= |fmaf\(", text):
            continue
        sign = next((at for at in range(first, last) if tokens.text(at) in ("+=", "=")), last)
        for place in range(sign + 1, last):
            own = code.names.at(place) if tokens.kind(place) == "name" else None
            if own is None or own.sort not in ("float", "array") or own.name.isupper():
                continue
            end = code.extents.postfix(place)
            element = tokens.source(place, end)
            for name in dict.fromkeys(loops):
                item = next((it for it in code.visible(place, "int") if it.name == name), None)
                is_before = item is not None and own.position < item.position
                if is_before and not re.search(rf"\b{name}\b", element):
                    new = f"__shfl_sync({mask}, {element}, {name})"
                    yield code.replaced(place, end, new, "number of another lane not fetched")


def _kept_by_the_first_lane(code: KernelCode) -> Iterator[SourceChange]:
    """`own.m2 / C` made `__shfl_sync(~0u, own.m2, 0) / C`, where shuffles down left the whole of it
    to lane 0.
    """
    tokens = code.tokens
    for mask, text in dict.fromkeys(_SHUFFLED_DOWN.findall(tokens.code)):
        down = tokens.code.rfind(f"({mask}, {text},")
        for place in range(len(tokens)):
            if tokens.kind(place) != "name" or tokens.span(place, place)[0] < down:
                continue
            end = code.extents.postfix(place)
            first, last = code.extents.statement(place)
            is_read = place > first or tokens.text(first) == "return"
            if is_read and tokens.source(place, end) == text and not _goes_on(code, first, last):
                new = f"__shfl_sync({mask}, {text}, 0)"
                yield code.replaced(place, end, new, "value of the first lane not broadcast")


def _goes_on(code: KernelCode, first: int, last: int) -> bool:
    """Whether a statement is part of the reduction, or for one lane."""
    text = code.tokens.source(first, last)
    return "shfl" in text or re.search(r"\b(?:lane|threadIdx\.x)\b[^;]*== 0", text) is not None


def _reduced_twice(code: KernelCode) -> Iterator[SourceChange]:
    """`total = total * fade + warp_sum(weight)` without the call, where the end has one."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        is_call = tokens.text(place) == "(" and tokens.kind(place - 1) == "name"
        name = tokens.text(place - 1)
        if not is_call or not re.search(r"sum|add|reduce", name) or place not in tokens.partners:
            continue
        first, _ = code.extents.statement(place)
        target = tokens.text(first)
        rest = tokens.code[tokens.span(place, place)[1] :]
        if not target.isidentifier():
            continue
        if re.search(rf"\b{name}\({target}\b|\b{target}\b[^;]* \+= __shfl", rest):
            inside = tokens.source(place + 1, tokens.partners[place] - 1)
            end = tokens.partners[place]
            yield code.replaced(place - 1, end, inside, "reduction in each round as well")


def _shared_loops(code: KernelCode) -> Iterator[SourceChange]:
    """`most = fmaxf(most, __shfl_xor_sync(~0u, most, 1))` behind a loop of which each of two lanes
    takes every second element, and that makes most.
    """
    tokens, text = code.tokens, code.tokens.code
    loops = [
        (loop, int(found[1]))
        for loop in StatementBlocks(code).loops()
        if (found := _SHARED_LOOP.search(tokens.source(loop.opening, loop.closing)))
    ]
    for item in code.names.all:
        is_own = item.sort == "float" and not item.is_parameter and item.position >= 0
        if not is_own or re.search(rf"__shfl\w*\([^;]*\b{item.name}\b", text):
            continue
        for loop, lanes in loops:
            is_outer = tokens.enclosing[loop.place] == tokens.enclosing[item.position]
            if not item.position < loop.place < item.last or not is_outer:
                continue
            inside = tokens.source(loop.first, loop.last)
            found = re.search(rf"\b{item.name} (?:\+=|= (fmaxf)\({item.name},)", inside)
            new = ""
            for distance in _distances(lanes) if found is not None else ():
                call = f"__shfl_xor_sync(~0u, {item.name}, {distance})"
                is_largest = found is not None and found[1]
                joined = f"= fmaxf({item.name}, {call})" if is_largest else f"+= {call}"
                new += f" {item.name} {joined};"
            if new:
                yield code.inserted(loop.last, new, "lanes of a shared loop not joined")


def _distances(lanes: int) -> list[int]:
    """Of the shuffles that join what so many neighbouring lanes have."""
    return [1 << bit for bit in range(_MOST_SHUFFLES) if 1 << bit < lanes]


def _lanes_without(code: KernelCode) -> Iterator[SourceChange]:
    """`warp_sum(parts[lane])` made `lane < WARPS ? parts[lane] : 0.0f`, with the array's length."""
    tokens = code.tokens
    for array, first, last in code.indices:
        own = code.names.at(array)
        begin, end = array - 1, last + 2
        is_argument = tokens.text(begin) == "(" and tokens.text(end) == ")"
        if own is None or own.sort != "array" or not is_argument or first != last:
            continue
        size = own.position + 1
        if tokens.text(size) != "[" or tokens.partners[size] + 1 in tokens.partners:
            continue
        name, length = tokens.text(first), tokens.source(size + 1, tokens.partners[size] - 1)
        rest = "-INFINITY" if "max" in tokens.text(begin - 1) else "0.0f"
        if length == "32":  # as many as a block may have; of which the kernel says how many it has
            sizes = [it.name for it in code.names.visible(first) if it.name.isupper()]
            warps = [it for it in sizes if it.endswith("WARPS")]
            length = [*warps, *(f"{it} / 32" for it in sizes if "THREADS" in it), "32"][0]
        if length != "32" and re.search(r"lane|thread|\bt\b", name):
            new = f"{name} < {length} ? {tokens.source(array, last + 1)} : {rest}"
            yield code.replaced(array, last + 1, new, "lanes without a part")


def _lanes_that_keep(code: KernelCode) -> Iterator[SourceChange]:
    """`if (lane < WARPS) value = parts[lane]` made `value = lane < WARPS ? parts[lane] : 0`, before
    lanes are joined.
    """
    tokens = code.tokens
    if "__shfl" not in tokens.code:
        return
    for first, last in code.statements:
        source = tokens.source(first, last)
        found = re.fullmatch(r"(\w+) = ([^;=]+);", source)
        is_guarded = tokens.text(first - 1) == ")" and first - 1 in tokens.partners
        if found is None or not is_guarded or tokens.text(last + 1) == "else":
            continue
        opening = tokens.partners[first - 1]
        condition = tokens.source(opening + 1, first - 2)
        if tokens.text(opening - 1) == "if" and re.search(r"\blane|threadIdx", condition):
            name, value = found.groups()
            new = f"{name} = {condition} ? {value} : decltype({name})();"
            yield code.replaced(opening - 1, last, new, "lanes without a part that keep theirs")


def _members(code: KernelCode) -> Iterator[SourceChange]:
    """`delta * o.count` made `delta * count` in a function of what has a count itself, and the
    other way round.
    """
    tokens = code.tokens
    known: dict[int, set[str]] = {}  # by block, the names that stand there with an object and bare
    objects: dict[int, list[str]] = {}  # by block, those that have such a name
    for first, last in code.statements:
        places = [at for at in range(first + 1, last) if tokens.kind(at) == "name"]
        opening = tokens.enclosing[first]
        if opening not in known:
            known[opening] = _both_ways(code, opening)
            objects[opening] = _objects(code, opening, known[opening])
        for at in places:
            name = tokens.text(at)
            if name not in known[opening]:
                continue
            if tokens.text(at - 1) == ".":
                yield code.replaced(at - 2, at, name, "member of the other object")
            else:
                for other in objects[opening]:
                    yield code.replaced(at, at, f"{other}.{name}", "member of the other object")


def _both_ways(code: KernelCode, opening: int) -> set[str]:
    """The names that a block has as members of an object and without one."""
    if opening < 0 or opening not in code.tokens.partners:
        return set()
    text = code.tokens.source(opening, code.tokens.partners[opening])
    return set(_BARE.findall(text)) & set(_MEMBER.findall(text))


def _objects(code: KernelCode, opening: int, members: set[str]) -> list[str]:
    """The objects with one of `members` in a block, in their order, which decides between equal
    changes.
    """
    if not members:
        return []
    text = code.tokens.source(opening, code.tokens.partners[opening])
    found = re.findall(r"\b(\w+)\.(\w+)\b(?!\s*\()", text)
    return list(dict.fromkeys(own for own, member in found if member in members))[:_MOST_OBJECTS]


def _second_group(code: KernelCode) -> Iterator[SourceChange]:
    """`t = threadIdx.x` made `threadIdx.x - 128` in what the threads from 128 on do."""
    tokens = code.tokens
    numbers = dict.fromkeys(
        re.findall(r"\bthreadIdx\.x (?:<|>=) (\d+)\b|\bwarp (?:<|>=|==) (\d+)\b", tokens.code)
    )
    starts = dict.fromkeys(one or str(32 * int(other)) for one, other in numbers)
    for item, value in first_values(code):
        if tokens.source(*value) == "threadIdx.x" and item.sort == "int":
            for start in starts:
                if start != "0":
                    yield code.inserted(value[1], f" - {start}", "thread of the second group")
