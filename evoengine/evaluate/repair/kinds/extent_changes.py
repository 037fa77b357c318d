"""Indices whose parts follow from the extents of others: how far a loop goes, how many numbers a
vector has, how many blocks there are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.header_changes import grid_sizes
from evoengine.evaluate.repair.kinds.moved_changes import last_summand
from evoengine.evaluate.repair.source_change import SourceChange

_BOUND = re.compile(r"\b(\w+) < ([^;&|<>]+);")
_LEFT_OUT = re.compile(r"\bif \((\w+) >= (\w+)\) (?:return|continue|break)\b")
_WIDE = re.compile(r"(?:size_t|int64_t)\(([\w.]+)\)|\((?:size_t|int64_t|long long)\) ?([\w.]+)")
_EXTENTS = {"blockIdx": "gridDim", "threadIdx": "blockDim"}
_MOST_DIVIDED = 40  # changes of a kernel
_MOST_NUMBERS = 1
_OF_VECTORS = ("2", "4", "8")  # numbers
_MOST_SIZES = 4

Range = tuple[int, int]


def extent_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Factors, divisors and remainders of indices, by the extents of what they count."""
    text = code.tokens.code
    loops = {
        name: bound
        for name, bound in _BOUND.findall(text)
        if bound.count("(") == bound.count(")")  # else it is a condition, with its statement
    }
    bounds = {**_blocks(code), **dict(_LEFT_OUT.findall(text)), **loops}
    yield from _strides(code, bounds)
    yield from _vectors(code)
    yield from _divided(code)
    yield from _vector_sizes(code)
    yield from _remainders(code)
    yield from _grids(code)
    yield from _batches(code)
    yield from _parts_of_rows(code)


def _sums(code: KernelCode) -> Iterator[tuple[Range, str, Range, Range]]:
    """Of each a * n + b, and b + a * n, the places of a, n and b, and the whole of it."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.function_places[position]:
            continue
        if not extents.is_binary(position):
            continue
        left, right = extents.operand_before(position), extents.operand_behind(position)
        if left[0] > left[1] or right[0] > right[1]:
            continue
        begin = last_summand(code, left)
        for scaled, plain in (((begin, left[1]), right), (right, (begin, left[1]))):
            last = scaled[1]
            first = last - 2 if tokens.text(last - 1) == "." else last  # gridDim.x
            if first - scaled[0] >= 2 and tokens.text(first - 1) == "*":
                is_single = tokens.kind(first) in ("name", "number")
                before = extents.operand_before(first - 1) if is_single else (1, 0)
                if before[0] == scaled[0] and before[0] <= before[1]:
                    yield before, tokens.source(first, last), plain, (begin, right[1])


def _strides(code: KernelCode, bounds: dict[str, str]) -> Iterator[SourceChange]:
    """a * 3 + i made a * N + i where i goes up to N, and b * n + a where the other one does."""
    for before, size, plain, whole in _sums(code):
        one, other = code.tokens.source(*before), code.tokens.source(*plain)
        bound = _extent(other, bounds)
        if bound and bound != size:
            new = f"{_factor(bound)} + {other}"
            yield code.replaced(*whole, f"{one} * {new}", "stride of the loop's length")
        turn = re.fullmatch(r"(.+) % (\w+)", other)
        if turn is not None and turn[2] == size:
            new = f"{other} * 2 + {one}"
            yield code.replaced(*whole, new, "planes for turns")
        wide = _WIDE.fullmatch(one)
        name = next(filter(None, wide.groups())) if wide else one
        bound = _extent(name, bounds)
        if bound:
            cast, _, end = one.rpartition(name)  # the product is the wide one
            row = f"{cast}{other}{end}" if end else f"{cast}{_sum(other)}"
            new = f"{row} * {_factor(bound)} + {name}"
            yield code.replaced(*whole, new, "index transposed, of an extent")


def _extent(text: str, bounds: dict[str, str]) -> str:
    """How many values a variable has; empty where that is not known."""
    grid = re.fullmatch(r"(blockIdx|threadIdx)\.([xyz])", text)
    return f"{_EXTENTS[grid[1]]}.{grid[2]}" if grid else bounds.get(text, "").strip()


def _blocks(code: KernelCode) -> dict[str, str]:
    """How many there are of a variable that is the block's number: what the grid has, by name."""
    text = code.tokens.code
    sizes = {axis: name for name, axis in re.findall(r"\b(\w+) = gridDim\.([xyz])\s*[,;]", text)}
    numbers = re.findall(r"\b(\w+) = (?:int\()?blockIdx\.([xyz])\)?\s*[,;]", text)
    return {name: sizes.get(axis, f"gridDim.{axis}") for name, axis in numbers}


def _factor(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _sum(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+|\w+\([^()]*\)", text) else f"({text})"


def _vectors(code: KernelCode) -> Iterator[SourceChange]:
    """vectors + i made vectors * 4 + i, where `vectors = N / 4` counts those of four numbers."""
    tokens = code.tokens
    for item in code.names.all:
        sign = item.position + 1
        last = code.extents.last_of(sign, 0) if tokens.text(sign) == "=" else -1
        if item.sort != "int" or last - sign < 3 or tokens.text(last - 1) != "/":
            continue
        if code.extents.operand_before(last - 1)[0] != sign + 1:
            continue
        number = tokens.text(last)
        for place, end, _ in code.atoms_between(last, min(item.last, len(tokens) - 1)):
            if place != end or tokens.text(place) != item.name:
                continue
            near = tokens.text(place - 1), tokens.text(place + 1)
            is_compared = {"<", "<=", ">", ">="} & set(near)
            if "*" not in near and not is_compared and not {"/", "%"} & set(near):
                new = f"{item.name} * {number}"
                yield code.replaced(place, place, new, "numbers counted as vectors")


def _divisors(code: KernelCode) -> list[str]:
    """The whole numbers by which the kernel divides most often."""
    tokens = code.tokens
    counts = Counter(
        tokens.text(place + 1)
        for place in range(len(tokens))
        if tokens.text(place) == "/" and tokens.text(place + 1).isdigit()
    )
    return [text for text, _ in counts.most_common(_MOST_NUMBERS)]


def _length(pair: Range) -> int:
    return pair[1] - pair[0]


def _divided(code: KernelCode) -> Iterator[SourceChange]:
    """The last term of an index or argument divided: several numbers share one, or are one."""
    tokens, numbers, found = code.tokens, _divisors(code), 0
    spots = {(first, last) for _, first, last in code.indices}
    for opening in range(1, len(tokens)):
        is_call = tokens.text(opening) == "(" and tokens.kind(opening - 1) == "name"
        if is_call and code.function_places[opening]:
            spots |= set(code.extents.arguments(opening))
    divided = {pair for pair in spots if "/" in tokens.source(*pair)}  # in other units already
    for first, last in [*sorted(divided, key=_length), *sorted(spots - divided)]:
        for place in range(first, last + 1):
            own = code.names.at(place) if tokens.kind(place) == "name" else None
            if own is None or own.sort != "int" or own.is_parameter or own.name.isupper():
                continue
            before, behind = tokens.text(place - 1), tokens.text(place + 1)
            is_first = place == first and behind == "+"
            is_last = place == last and before == "+"
            if not is_first and not is_last:
                continue
            for number in dict.fromkeys([*_OF_VECTORS, *numbers]):
                found += 1
                if found <= _MOST_DIVIDED:
                    new = f"{own.name} / {number}"
                    yield code.replaced(place, place, new, "divisor of a term missing")


def _vector_sizes(code: KernelCode) -> Iterator[SourceChange]:
    """i / P made i / (P / 4), where the kernel has vectors of four of the P numbers of a row."""
    tokens = code.tokens
    known = dict.fromkeys(re.findall(r"\b([A-Z]\w*) / (\d+)\b", tokens.code))
    if "float4" in tokens.code:
        names = [item.name for item in code.names.all if item.is_parameter and item.name.isupper()]
        known |= dict.fromkeys((name, "4") for name in names)
    for position in range(len(tokens)):
        if tokens.text(position) not in ("/", "%") or not code.function_places[position]:
            continue
        name = tokens.text(position + 1)
        for size, number in known:
            if size == name and tokens.text(position + 2) != "/":
                new = f"({name} / {number})"
                kind = "row of vectors"
                yield code.replaced(position + 1, position + 1, new, kind)


def _remainders(code: KernelCode) -> Iterator[SourceChange]:
    """x / h made x % g / h, where x % g stands elsewhere in the function."""
    tokens = code.tokens
    known: dict[tuple[int, str], dict[str, int]] = {}
    for position in range(len(tokens)):
        if tokens.text(position) == "%" and code.extents.is_binary(position):
            left, right = (
                code.extents.operand_before(position),
                code.extents.operand_behind(position),
            )
            if left[0] <= left[1] and right[0] == right[1] and tokens.kind(right[0]) == "name":
                key = code.function_of(position), tokens.source(*left)
                known.setdefault(key, {})[tokens.text(right[0])] = right[0]
    for position in range(len(tokens)):
        if tokens.text(position) != "/" or not code.extents.is_binary(position):
            continue
        left = code.extents.operand_before(position)
        if left[0] > left[1]:
            continue
        for size, place in known.get(
            (code.function_of(position), tokens.source(*left)), {}
        ).items():
            if size != tokens.text(position + 1) and code.can_stand(place, place, position):
                yield code.inserted(left[1], f" % {size}", "remainder before a quotient missing")


def _grids(code: KernelCode) -> Iterator[SourceChange]:
    """blockIdx.z made blockIdx.z % C or / C, where the grid has B * C blocks along this axis."""
    header = code.source[: code.offset]
    factors: dict[str, dict[str, None]] = {"x": {}, "y": {}, "z": {}}
    for axis, size in grid_sizes(header):
        names = re.fullmatch(r'"?(\w+) \* (\w+)"?', size)
        factors[axis] |= dict.fromkeys(names.groups() if names else ())
    for first, last, _ in code.atoms():
        if code.tokens.text(first) != "blockIdx" or not code.function_places[first]:
            continue
        if code.tokens.text(last + 1) in ("/", "%"):
            continue
        for size in factors.get(code.tokens.text(last), ()):
            is_known = size.isdigit() or size in code.sizes(first)
            for sign in ("%", "/") if is_known else ():
                yield code.inserted(last, f" {sign} {size}", "number of two axes of the grid")


def _batches(code: KernelCode) -> Iterator[SourceChange]:
    """b + x made b + size_t(blockIdx.z) * K * N + x, where another pointer has
    a + size_t(blockIdx.z) * M * K.
    """
    tokens = code.tokens
    rows = dict.fromkeys(
        re.findall(r"\+ \(?(size_t\(blockIdx\.[yz]\)|blockIdx\.[yz]) \* \w+", tokens.code)
    )
    for position in range(1, len(tokens)) if rows else ():
        item = code.names.at(position) if tokens.kind(position) == "name" else None
        if item is None or item.sort != "pointer" or not item.is_parameter:
            continue
        if tokens.text(position - 1) not in ("=", "(", ",") or tokens.text(position + 1) == "[":
            continue
        last = code.extents.last_of(position - 1, 0)
        for row in rows:
            if row in tokens.source(position, last):
                continue
            for one, other in combinations(code.sizes(position)[:_MOST_SIZES], 2):
                for first, second in ((one, other), (other, one)):
                    new = f" + {row} * {first} * {second}"
                    yield code.inserted(position, new, "batch of a pointer missing")


def _parts_of_rows(code: KernelCode) -> Iterator[SourceChange]:
    """t % 4 made t % 4 * 8: a thread takes eight elements, and the next one those behind."""
    tokens = code.tokens
    numbers = Counter(re.findall(r"% \w+ \* (\d+)", tokens.code))
    factors = dict.fromkeys([*(text for text, _ in numbers.most_common(2)), "4", "8", "2"])
    spots = [*code.values, *((first, last) for _, first, last in code.indices)]
    found = 0
    for first, last in dict.fromkeys(spots):
        is_part = tokens.text(last - 1) == "%" and code.extents.is_binary(last - 1)
        if not is_part or code.extents.operand_before(last - 1)[0] != first:
            continue
        if tokens.text(last) == "2" or tokens.text(last + 1) in ("?", "*"):
            continue
        for factor in factors:
            found += 1
            if found <= _MOST_DIVIDED:
                yield code.inserted(last, f" * {factor}", "elements of each part missing")
