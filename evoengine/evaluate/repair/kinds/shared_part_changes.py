"""Parts of shared memory: which place of one is asked for, where one begins, what it begins by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import first_values
from evoengine.evaluate.repair.kinds.moved_changes import last_summand
from evoengine.evaluate.repair.kinds.statement_blocks import StatementBlocks
from evoengine.evaluate.repair.kinds.tile_changes import ROW_LOOP
from evoengine.evaluate.repair.source_change import SourceChange

_PLACE_FUNCTION = re.compile(r"\bint (\w+)\(int (\w+), int (\w+)\)\s*\{\s*return ([^;]+);\s*\}")
_CARVED = re.compile(r"(?:reinterpret_cast<[^;]*?>\()?(\w+)\)?")
_BEHIND = re.compile(r"(?:reinterpret_cast<[^;]*?>\()?(\w+) \+ ([^;]+?)\)?")
_MOST_PARTS = 4
_MOST_PLACES = 12

Range = tuple[int, int]


def shared_part_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Swizzles that are not asked for, parts that lie over others, parts that nothing clears."""
    yield from _swizzled(code)
    yield from _carved(code)
    yield from _cleared(code)


def _swizzled(code: KernelCode) -> Iterator[SourceChange]:
    """`row * 64 + chunk * 8` made `place(row, chunk)`, which says where chunks lie."""
    tokens, extents = code.tokens, code.extents
    functions = [
        (found[1], set(re.findall(r"\* (\w+)", found[4])))
        for found in _PLACE_FUNCTION.finditer(tokens.code)
        if "^" in found[4]
    ]
    for place in range(len(tokens)) if functions else ():
        if tokens.text(place) != "+" or not extents.is_binary(place):
            continue
        left, right = extents.operand_before(place), extents.operand_behind(place)
        left = last_summand(code, left), left[1]
        products = [tokens.text(pair[1] - 1) == "*" for pair in (left, right)]
        if not all(products) or not code.function_places[place]:
            continue
        row, chunk = (_bare(code, (pair[0], pair[1] - 2)) for pair in (left, right))
        sizes = {tokens.text(left[1]), tokens.text(right[1])}
        for name, own in functions:
            if sizes <= own and row and chunk:
                new = f"{name}({row}, {chunk})"
                yield code.replaced(left[0], right[1], new, "swizzle not asked for")


def _bare(code: KernelCode, pair: Range) -> str:
    """An expression without the brackets around it."""
    first, last = pair
    if first < last and code.tokens.partners.get(first) == last:
        first, last = first + 1, last - 1
    return code.tokens.source(first, last) if first <= last else ""


def _carved(code: KernelCode) -> Iterator[SourceChange]:
    """`weights = cast(tile)` made `cast(tile + 64)`, where another part is behind so many rows."""
    pointers = [(item, value) for item, value in first_values(code) if item.sort == "pointer"]
    texts = {item.name: code.tokens.source(*value) for item, value in pointers}
    texts |= dict(re.findall(r"\(\*(\w+)\)\[[^\]]*\] = ([^;]+);", code.tokens.code))
    steps = dict.fromkeys(found[2] for text in texts.values() if (found := _BEHIND.fullmatch(text)))
    for name, text in texts.items():
        found = _CARVED.fullmatch(text)
        if found is None or found[1] not in texts or found[1] == name:
            continue
        start = code.tokens.code.find(f"= {text};", code.tokens.code.find(name))
        if start < 0:
            continue
        at = code.offset + start + 2 + found.end(1)
        for step in list(steps)[:_MOST_PARTS]:
            yield SourceChange(at, at, f" + {step}", "begin of the part behind")


def _cleared(code: KernelCode) -> Iterator[SourceChange]:
    """`for (...) sums[i] = 0.0f`, where sums is a part of the shared memory of a launch and the
    next part says how long it is.
    """
    tokens = code.tokens
    heads = Counter(found[4] for found in ROW_LOOP.finditer(tokens.code))
    if "extern __shared__" not in tokens.code or not heads:
        return
    blocks = StatementBlocks(code)
    values = [(item, tokens.source(*value)) for item, value in first_values(code)]
    for item in code.names.all:
        if item.sort != "pointer" or "float" not in code.type_words(item):
            continue
        sizes = [text.removeprefix(f"{item.name} + ") for _, text in values
                 if text.startswith(f"{item.name} + ")]  # fmt: skip
        if not sizes or re.search(rf"\b{item.name}\[[^\]]*\] = (0|\{{)", tokens.code):
            continue
        adds = re.search(rf"\b{item.name}\[[^;]*\] [+*]=|load_matrix_sync\([^;]*\b{item.name}\b",
                         tokens.code)  # fmt: skip
        opening = tokens.enclosing[item.position]
        if adds is None or tokens.text(opening) != "{":
            continue
        step = heads.most_common(1)[0][0]
        new = f" for (int i = threadIdx.x; i < {sizes[0]}; i += {step}) {item.name}[i] = 0.0f;"
        ends = [it.last for it in blocks.items(opening) if it.last > item.position and it.is_simple]
        for place in ends[:_MOST_PLACES]:
            yield code.inserted(place, new, "part of shared memory not cleared")
